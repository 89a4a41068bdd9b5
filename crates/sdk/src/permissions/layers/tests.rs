use std::sync::Mutex;

use futures_util::FutureExt;
use outrigger_protocol::{Frame, RawJson};
use serde_json::json;

use super::super::{Policy, one_at_a_time};
use super::*;

fn bash(command: &str) -> PermissionRequest {
    let line = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "input": {"command": command}, "tool_use_id": "t"}});
    PermissionRequest::from_frame(&Frame::from_line(line.to_string().into_bytes()).remove(0)).unwrap()
}

fn person() -> impl PermissionHandler {
    |_| async { PermissionDecision::deny("says the person") }
}

fn handler() -> impl PermissionHandler {
    chain()
        .layer("rules", Policy::ask_all().allow(["Bash(git *)"]))
        .layer(
            "closure",
            layer(|request| async move {
                match request.input.get() {
                    input if input.contains("magic") => Opinion::Decided(PermissionDecision::allow()),
                    input if input.contains("push") => Opinion::Ask,
                    _ => Opinion::Pass,
                }
            }),
        )
        .layer(
            "ls",
            layer(|request| async move {
                match request.input.get().contains("ls") {
                    true => Opinion::Decided(PermissionDecision::allow()),
                    false => Opinion::Pass,
                }
            }),
        )
        .last("person", person())
}

fn told(handler: &impl PermissionHandler, command: &str) -> (bool, Option<String>) {
    let (decision, by) = handler.decide_and_tell(bash(command)).now_or_never().unwrap();
    let alone = handler.decide(bash(command)).now_or_never().unwrap();
    assert_eq!(alone.is_allow(), decision.is_allow());
    (decision.is_allow(), by.layer)
}

#[test]
fn the_first_that_decides_does() {
    let handler = handler();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told(&handler, "magic"), (true, some("closure")));
    assert_eq!(told(&handler, "ls"), (true, some("ls")));
    assert_eq!(told(&handler, "mkdir"), (false, some("person")));
    // What is to be asked no layer between allows.
    assert_eq!(told(&handler, "git push ls"), (false, some("person")));
    // The CLI judges rules: what it asks about in spite of one the rule does not allow.
    assert_eq!(told(&handler, "git status"), (false, some("person")));
    assert_eq!(told(&chain().or_deny(), "x"), (false, some("nobody")));
}

/// Wherever the rule is that asks, only the last layer allows the call. What the others deny stays denied.
#[test]
fn ask_rules_hold_in_any_layer() {
    let asked = |reason: &str| {
        let line = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
            "tool_name": "Bash", "input": {"command": "git push"}, "tool_use_id": "t", "decision_reason_type": reason}});
        PermissionRequest::from_frame(&Frame::from_line(line.to_string().into_bytes()).remove(0)).unwrap()
    };
    let rule = || Policy::ask_all().ask(["Bash(git push *)"]);
    let yes = || layer(|_| async { Opinion::Decided(PermissionDecision::allow()) });
    let team = || chain().layer("t", Policy::allow_all()).last("person", person());
    let chains: [(&str, Arc<dyn PermissionHandler>, &str); 6] = [
        (
            "behind a policy",
            Arc::new(
                chain()
                    .layer("base", Policy::allow_all())
                    .layer("strict", rule())
                    .last("p", person()),
            ),
            "p",
        ),
        (
            "behind a closure",
            Arc::new(
                chain()
                    .layer("yes", yes())
                    .layer("strict", rule())
                    .last("p", person()),
            ),
            "p",
        ),
        (
            "before another chain",
            Arc::new(chain().layer("strict", rule()).last("team", team())),
            "team: person",
        ),
        (
            "before one that is wrapped",
            Arc::new(
                chain()
                    .layer("strict", rule())
                    .last("team", record(one_at_a_time(team()), |_: Decided| {})),
            ),
            "team: person",
        ),
        (
            "inside",
            Arc::new(
                chain().layer("yes", yes()).last(
                    "team",
                    chain()
                        .layer("yes", yes())
                        .layer("strict", rule())
                        .last("person", person()),
                ),
            ),
            "team: person",
        ),
        (
            "before one that denies",
            Arc::new(
                chain()
                    .layer("base", Policy::allow_all())
                    .layer("no", Policy::deny_all().ask(["Bash(git push *)"]))
                    .last("p", |_| async { PermissionDecision::allow() }),
            ),
            "no",
        ),
    ];
    for (name, handler, layer) in chains {
        let reasons: &[&str] = match layer {
            // For this one it is ambiguous.
            "no" => &["subcommandResults"],
            _ => &["rule", "subcommandResults"],
        };
        for reason in reasons {
            let (decision, by) = handler.decide_and_tell(asked(reason)).now_or_never().unwrap();
            assert!(!decision.is_allow(), "{name}, {reason}");
            assert_eq!(by.layer.as_deref(), Some(layer), "{name}, {reason}");
        }
    }
    // What a layer leaves to the last one no layer of a chain inside allows.
    let handler = chain()
        .layer("ask", layer(|_| async { Opinion::Ask }))
        .last("team", team());
    assert_eq!(told(&handler, "x"), (false, Some("team: person".to_owned())));
    let handler = chain()
        .layer("base", Policy::allow_all())
        .layer("strict", Policy::ask_all().ask(["Bash"]))
        .last("p", person());
    let foreseen = handler.foresee("Bash", &RawJson::from_text("{}").unwrap());
    assert_eq!(foreseen.layer.as_deref(), Some("p"));
}

/// Wherever a policy is, its rules that ask and refuse are handed over.
#[test]
fn chains_hand_over_the_rules_of_all_their_policies() {
    let texts = |rules: &[super::super::rules::Rule]| -> Vec<String> {
        rules.iter().map(ToString::to_string).collect()
    };
    let inner = chain()
        .layer("c", Policy::ask_all().ask(["Bash(c *)"]))
        .last("d", Policy::allow_all().deny(["Bash(d *)"]));
    let handler = chain()
        .layer("a", Policy::ask_all().allow(["Bash(a *)"]))
        .layer("closure", layer(|_| async { Opinion::Pass }))
        .layer("b", Policy::ask_all().deny(["Bash(b *)"]))
        .last("inner", inner);
    let handed = record(one_at_a_time(handler), |_: Decided| {}).rules();
    assert_eq!(texts(&handed.allow), ["Bash(a *)"]);
    assert_eq!(texts(&handed.ask), ["Bash(c *)"]);
    assert_eq!(texts(&handed.deny), ["Bash(b *)", "Bash(d *)"]);
    assert_eq!(handed.misplaced, None);
}

/// What such a rule allows would run without the layer before it being asked.
#[test]
fn rules_that_allow_stand_before_whoever_decides() {
    let allows = || Policy::ask_all().allow(["Bash(a *)"]);
    let closure = || layer(|_| async { Opinion::Pass });
    let misplaced = |handler: &dyn PermissionHandler| {
        handler
            .rules()
            .misplaced
            .map(|(rule, layer)| (rule.to_string(), layer))
    };
    let by = |layer: &str| Some(("Bash(a *)".to_owned(), layer.to_owned()));
    assert_eq!(
        misplaced(&chain().layer("a", allows()).layer("b", closure()).or_deny()),
        None
    );
    assert_eq!(
        misplaced(&chain().layer("b", closure()).layer("a", allows()).or_deny()),
        by("b")
    );
    assert_eq!(
        misplaced(&chain().layer("b", closure()).last("a", allows())),
        by("b")
    );
    let inner = chain().last("a", allows());
    assert_eq!(
        misplaced(&chain().layer("b", closure()).last("inner", inner)),
        by("b")
    );
    // A policy that decides about everything is never passed, and what stands behind it would widen it.
    assert_eq!(
        misplaced(&chain().layer("all", Policy::deny_all()).last("a", allows())),
        by("all")
    );
    let error = crate::Agent::builder()
        .permissions(chain().layer("b", closure()).last("a", allows()))
        .check()
        .unwrap_err();
    assert!(
        error.to_string().contains("`Bash(a *)`") && error.to_string().contains("`b`"),
        "{error}"
    );
}

#[test]
fn chains_foresee() {
    let input = RawJson::encode(&json!({ "command": "x" })).unwrap();
    let foreseen = |handler: &dyn PermissionHandler| {
        let foreseen = handler.foresee("Bash", &input);
        (foreseen.outlook, foreseen.layer.unwrap(), foreseen.rule)
    };
    assert_eq!(
        foreseen(&handler()),
        (Outlook::Unknown, "closure".to_owned(), None)
    );
    let refused = chain()
        .layer("closure", layer(|_| async { Opinion::Pass }))
        .layer("rules", Policy::ask_all().deny(["Bash"]))
        .last("person", person());
    assert_eq!(
        foreseen(&refused),
        (Outlook::Refused, "rules".to_owned(), Some("Bash".to_owned()))
    );
    let asks = chain()
        .layer("first", Policy::ask_all().ask(["Bash"]))
        .layer("second", Policy::allow_all())
        .last("inner", chain().last("person", person()));
    assert_eq!(
        foreseen(&asks),
        (Outlook::Unknown, "inner: person".to_owned(), None)
    );
}

#[tokio::test]
async fn decisions_are_recorded_before_they_go_out() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let recorded = record(handler(), move |decided: Decided| {
        sink.lock()
            .unwrap()
            .push((decided.request.tool_name, decided.decision.is_allow(), decided.by));
    });
    assert!(recorded.decide(bash("ls")).await.is_allow());
    let by = |layer: &str, rule: Option<&str>| DecidedBy {
        layer: Some(layer.to_owned()),
        rule: rule.map(str::to_owned),
    };
    assert_eq!(*seen.lock().unwrap(), [("Bash".to_owned(), true, by("ls", None))]);

    let (sender, mut receiver) = mpsc::channel(1);
    let recorded = record(Policy::allow_all(), sender);
    assert!(recorded.decide(bash("a")).await.is_allow());
    // There is no room: the decision waits.
    let mut second = recorded.decide(bash("b"));
    assert!((&mut second).now_or_never().is_none());
    assert_eq!(receiver.recv().await.unwrap().request.tool_name, "Bash");
    assert!(second.await.is_allow());
    drop(receiver);
    assert!(recorded.decide(bash("c")).await.is_allow());
}

/// A question that is withdrawn takes the layer that thinks about it along, asks no other and leaves no record.
#[test]
fn what_is_dropped_decides_nothing() {
    let inside = Arc::new(());
    let held = Arc::clone(&inside);
    let asked = Arc::new(Mutex::new(0));
    let (count, records) = (Arc::clone(&asked), Arc::clone(&asked));
    let chain = chain()
        .layer(
            "slow",
            layer(move |_| {
                let held = Arc::clone(&held);
                async move {
                    std::future::pending::<()>().await;
                    drop(held);
                    Opinion::Pass
                }
            }),
        )
        .last("person", move |_| {
            *count.lock().unwrap() += 1;
            async { PermissionDecision::allow() }
        });
    let handler = record(chain, move |_: Decided| *records.lock().unwrap() += 1);
    let mut deciding = handler.decide(bash("x"));
    assert!((&mut deciding).now_or_never().is_none());
    assert_eq!(Arc::strong_count(&inside), 3, "the layer, and what it is about");
    drop(deciding);
    assert_eq!(Arc::strong_count(&inside), 2);
    assert_eq!(*asked.lock().unwrap(), 0);
}

/// Wherever a policy is, one that is wrong keeps the session from starting, and refuses what it is asked all the same.
#[test]
fn a_policy_that_is_wrong_stops_the_chain_it_is_in() {
    let wrong = || Policy::ask_all().allow(["Bash(a *)", "Bash("]).deny(["Edit"]);
    let allows = || |_| async { PermissionDecision::allow() };
    let chains: [(&str, Arc<dyn PermissionHandler>); 5] = [
        ("alone", Arc::new(wrong())),
        (
            "first",
            Arc::new(chain().layer("rules", wrong()).last("yes", allows())),
        ),
        (
            "last",
            Arc::new(chain().layer("rules", Policy::ask_all()).last("wrong", wrong())),
        ),
        (
            "inside",
            Arc::new(chain().last("chain", chain().layer("rules", wrong()).last("yes", allows()))),
        ),
        (
            "wrapped",
            Arc::new(record(
                one_at_a_time(
                    chain()
                        .layer("rules", wrong().and(Policy::allow_all()))
                        .last("yes", allows()),
                ),
                |_: Decided| {},
            )),
        ),
    ];
    for (name, handler) in chains {
        assert!(
            !handler.decide(bash("a")).now_or_never().unwrap().is_allow(),
            "{name}"
        );
        let handed = handler.rules();
        assert!(
            handed.allow.is_empty() && handed.deny.len() == 1,
            "{name}: {handed:?}"
        );
        let options = crate::Agent::builder().permissions(handler);
        let error = options.check().unwrap_err().to_string();
        assert!(
            error.starts_with("`permissions`: in `allow` the rule `Bash(` lacks a closing parenthesis"),
            "{name}: {error}"
        );
        let explained = options.explain("Bash", &RawJson::from_text("{}").unwrap());
        let steps = explained.steps.iter();
        assert!(
            steps
                .clone()
                .all(|step| step.who != super::super::Decider::Policy || step.outlook == Outlook::Refused),
            "{name}: {explained}"
        );
        let by_handler: Vec<_> = steps
            .filter(|step| step.who == super::super::Decider::Handler)
            .collect();
        assert!(!by_handler.is_empty(), "{name}: {explained}");
        assert!(
            by_handler
                .iter()
                .all(|step| step.outlook == Outlook::Refused && step.why.contains("Bash(")),
            "{name}: {explained}"
        );
    }
}

/// Rules that are no policy's: of a handler, of a layer and of an object with all callbacks.
#[test]
fn rules_that_nobody_checked_are_checked_before_the_cli_gets_them() {
    struct Own;
    fn own() -> Rules {
        Rules {
            allow: vec![
                "Bash(git *)".parse().unwrap(),
                "Bash(* --version)".parse().unwrap(),
            ],
            deny: vec!["Edit".parse().unwrap()],
            ..Rules::default()
        }
    }
    impl PermissionHandler for Own {
        fn decide<'a>(&'a self, _: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
            Box::pin(async { PermissionDecision::allow() })
        }
        fn rules(&self) -> Rules {
            own()
        }
    }
    impl Layer for Own {
        fn consider<'a>(&'a self, _: &'a PermissionRequest) -> BoxFuture<'a, (Opinion, Option<String>)> {
            Box::pin(async { (Opinion::Pass, None) })
        }
        fn rules(&self) -> Rules {
            own()
        }
    }
    impl crate::Callbacks for Own {
        fn permission_rules(&self) -> Rules {
            own()
        }
    }
    let agent = crate::Agent::builder;
    for (name, options) in [
        ("handler", agent().permissions(Own)),
        ("layer", agent().permissions(chain().layer("own", Own).or_deny())),
        ("callbacks", agent().callbacks(Own)),
    ] {
        let error = options.check().expect_err(name).to_string();
        assert!(
            error.starts_with(
                "`permissions`: in `allow` the rule `Bash(* --version)` leaves open which program runs"
            ),
            "{name}: {error}"
        );
        let handed = options.hosting.handlers.rules();
        assert!(
            handed.allow.is_empty() && handed.deny.len() == 1,
            "{name}: {handed:?}"
        );
    }
}
