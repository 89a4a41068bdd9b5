use outrigger_protocol::Frame;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A request as the CLI makes it, with more fields.
fn request(tool: &str, more: Value) -> PermissionRequest {
    let mut line = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
        "tool_name": tool, "input": {"command": "x"}, "tool_use_id": "t"}});
    let fields = line["request"].as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    PermissionRequest::from_frame(&Frame::from_line(line.to_string().into_bytes()).remove(0)).unwrap()
}

fn bash() -> PermissionRequest {
    request("Bash", json!({}))
}

fn message(decision: &PermissionDecision) -> &str {
    match decision {
        PermissionDecision::Deny(deny) => &deny.message,
        _ => "allowed",
    }
}

#[test]
fn the_default_answers_what_the_cli_asks() {
    let call = bash();
    assert!(Policy::allow_all().decision(&call).is_allow());
    assert_eq!(
        message(&Policy::deny_all().decision(&call)),
        "the policy does not allow this call of Bash: the CLI asked about it in spite of the policy's rules"
    );
    assert_eq!(
        message(&Policy::ask_all().decision(&call)),
        "the policy requires asking a person about this call of Bash, and there is nobody to ask"
    );
    assert!(matches!(Policy::ask_all().opinion(&call), (Opinion::Pass, None)));
    let outside = request("Bash", json!({"decision_reason": "it leaves the project"}));
    assert_eq!(
        message(&Policy::read_only().decision(&outside)),
        "the policy does not allow this call of Bash: the CLI asked about it: it leaves the project"
    );
}

/// The CLI asks in spite of these rules, so they allow nothing.
#[test]
fn no_rule_allows_what_the_cli_asks_about() {
    let policy = Policy::read_only().allow(["Bash", "Edit", "Read", "mcp__a"]);
    for tool in ["Bash", "Edit", "Write", "Read", "mcp__a__b"] {
        assert!(!policy.decision(&request(tool, json!({}))).is_allow(), "{tool}");
    }
}

#[test]
fn rules_for_a_whole_tool_hold_here_too() {
    let policy = Policy::deny_all().ask(["WebSearch", "Bash"]).deny(["Bash"]);
    assert_eq!(
        message(&policy.decision(&bash())),
        "the policy refuses Bash by its rule `Bash`"
    );
    assert_eq!(
        message(&policy.decision(&request("WebSearch", json!({})))),
        "the policy's rule `WebSearch` requires asking a person, and there is nobody to ask"
    );
}

/// What only a person may answer is not allowed by any policy.
#[test]
fn no_rule_stands_for_a_person() {
    let question = request("AskUserQuestion", json!({"requires_user_interaction": true}));
    for policy in [Policy::allow_all(), Policy::allow_list(["AskUserQuestion"])] {
        assert_eq!(message(&policy.decision(&question)), ONLY_A_PERSON);
        assert!(matches!(policy.opinion(&question).0, Opinion::Ask));
    }
    // Older CLIs do not mark them.
    for tool in ["AskUserQuestion", "ExitPlanMode"] {
        let unmarked = request(tool, json!({}));
        assert_eq!(
            message(&Policy::allow_all().decision(&unmarked)),
            ONLY_A_PERSON,
            "{tool}"
        );
    }
    let policy = Policy::deny_list(["AskUserQuestion"]);
    assert!(message(&policy.decision(&question)).contains("by its rule"));
}

/// Without a session nobody has told the CLI of the rules.
#[test]
fn rules_that_the_cli_does_not_know_allow_nothing() {
    for policy in [
        Policy::deny_list(["Bash(rm *)"]),
        Policy::allow_all().ask(["Bash(rm *)"]),
    ] {
        assert_eq!(message(&policy.decision(&bash())), UNBOUND);
    }
    let passes = Policy::ask_all().deny(["Bash(rm *)"]);
    assert!(matches!(
        passes.opinion(&bash()).0,
        Opinion::Decided(PermissionDecision::Deny(_))
    ));
}

#[test]
fn what_a_rule_wants_asked_is_asked() {
    let by_rule = request("Bash", json!({"decision_reason_type": "rule"}));
    let in_parts = request("Bash", json!({"decision_reason_type": "subcommandResults"}));
    let named = request(
        "Bash",
        json!({"matched_ask_rule": {"source": "flagSettings", "tool_name": "Bash", "rule_content": "x *"}}),
    );
    let outside = request("Read", json!({"decision_reason_type": "workingDir"}));
    // The CLI gave up on reading the command, and so on its rules.
    let unread = request("Bash", json!({"decision_reason_type": "other"}));
    let unsafe_if_misread = request("Bash", json!({"decision_reason_type": "safetyCheck"}));
    let asks =
        |policy: &Policy, request: &PermissionRequest| matches!(policy.opinion(request).0, Opinion::Ask);
    for default in [PolicyDefault::Allow, PolicyDefault::Ask, PolicyDefault::Deny] {
        let policy = Policy::new(default).ask(["Bash(x *)", "Read(x)"]);
        assert!(asks(&policy, &by_rule) && asks(&policy, &named));
        // It may be the rule or not.
        assert_eq!(asks(&policy, &in_parts), default != PolicyDefault::Deny);
        assert!(!asks(&policy, &outside) && !asks(&policy, &bash()));
        assert_eq!(asks(&policy, &unread), default != PolicyDefault::Deny);
        assert_eq!(asks(&policy, &unsafe_if_misread), default != PolicyDefault::Deny);
        let others = Policy::new(default).ask(["WebSearch"]);
        assert!(!asks(&others, &unread));
        assert!(!asks(&Policy::new(default), &by_rule));
    }
}

#[test]
fn wrong_rules_make_no_policy() {
    for rules in [["Bash("], ["*"], ["Bash(* x)"], ["Bash(e* a*)"], ["Write(x)"]] {
        assert!(Policy::allow_list(rules).check().is_err(), "{rules:?}");
    }
    assert!(Policy::deny_list(["*"]).check().is_ok());
    assert!(Policy::deny_list(["Grep(x)"]).check().is_err());
    assert!(Policy::ask_all().ask(["Read(*)"]).check().is_err());
}

#[test]
fn the_first_problem_is_kept_with_its_list() {
    let policy = Policy::allow_all()
        .allow(["Bash(git *)"])
        .deny(["Read(.env)", "Grep(x)", "Bash("])
        .allow(["*"])
        .reading();
    let error = policy.check().unwrap_err();
    assert!(matches!(&error, PolicyError::Rule { list: "deny", error } if error.rule() == "Grep(x)"));
    assert!(
        error
            .to_string()
            .starts_with("in `deny` the rule `Grep(x)` has no effect"),
        "{error}"
    );
    let other = Policy::deny_list(["Bash("]);
    assert_eq!(policy.clone().and(other.clone()).check(), Err(error));
    assert_eq!(Policy::allow_all().and(other.clone()).check(), other.check());
    assert_eq!(
        policy.check().unwrap_err(),
        policy.clone().and(Policy::deny_all()).check().unwrap_err()
    );
}

/// However it came to be wrong, and whoever asks it.
#[test]
fn a_policy_that_is_wrong_allows_nothing() {
    let sound = |default| Policy::new(default).allow(["Bash", "Read"]).deny(["Edit"]);
    for default in [PolicyDefault::Allow, PolicyDefault::Ask, PolicyDefault::Deny] {
        for wrong in [
            sound(default).allow(["Bash("]),
            sound(default).allow(["*"]),
            sound(default).ask(["Bash("]),
            sound(default).deny(["Bash("]),
            sound(default).and(Policy::deny_list(["Bash("])),
            Policy::deny_list(["Bash("]).and(sound(default)).reading(),
        ] {
            for tool in ["Bash", "Read", "Write", "AskUserQuestion", "mcp__a__b"] {
                let call = request(tool, json!({}));
                let refusal = wrong.decision(&call);
                assert!(
                    message(&refusal).starts_with("the policy is invalid, so it allows nothing: in `"),
                    "{refusal:?}"
                );
                assert!(matches!(
                    wrong.opinion(&call).0,
                    Opinion::Decided(PermissionDecision::Deny(_))
                ));
                let input = RawJson::from_text("{}").unwrap();
                assert_eq!(Layer::foresee(&wrong, tool, &input).outlook, Outlook::Refused);
                assert_eq!(
                    PermissionHandler::foresee(&wrong, tool, &input).outlook,
                    Outlook::Refused
                );
            }
            // What it refuses the CLI is told all the same, by whoever passes on its rules.
            for handed in [Layer::rules(&wrong), PermissionHandler::rules(&wrong)] {
                assert!(handed.allow.is_empty());
                assert!(handed.deny.iter().any(|rule| rule.as_str() == "Edit"));
            }
        }
    }
}

#[test]
fn read_only_hands_over_no_rule_for_all_files() {
    let rules = Layer::rules(&Policy::read_only());
    assert!(rules.allow.iter().all(|rule| !rule.names_all_of("Read")));
    assert!(rules.allow.iter().any(|rule| rule.as_str() == "Read(./**)"));
}

fn policy() -> impl Strategy<Value = Policy> {
    let default = proptest::sample::select(vec![
        PolicyDefault::Allow,
        PolicyDefault::Ask,
        PolicyDefault::Deny,
    ]);
    let rules = || {
        let some = vec!["Bash", "Bash(git *)", "Read(src/**)", "mcp__a__*", "WebSearch"];
        proptest::collection::vec(proptest::sample::select(some), 0..4)
    };
    (default, rules(), rules(), rules()).prop_map(|(default, allow, ask, deny)| {
        let policy = Policy::new(default).allow(allow);
        policy.ask(ask).deny(deny)
    })
}

fn calls() -> impl Strategy<Value = PermissionRequest> {
    let tools = proptest::sample::select(vec!["Bash", "Read", "Write", "mcp__a__b", "WebSearch"]);
    let reasons = vec![
        "rule",
        "mode",
        "subcommandResults",
        "workingDir",
        "safetyCheck",
        "new",
    ];
    let reason = proptest::option::of(proptest::sample::select(reasons));
    (tools, reason).prop_map(|(tool, reason)| match reason {
        Some(reason) => request(tool, json!({"decision_reason_type": reason})),
        None => request(tool, json!({})),
    })
}

proptest! {
    /// Both policies in one allow nothing that neither allows, in either order.
    #[test]
    fn together_they_allow_no_more(a in policy(), b in policy(), call in calls()) {
        let both = a.clone().and(b.clone()).decision(&call);
        if both.is_allow() {
            prop_assert!(a.decision(&call).is_allow() && b.decision(&call).is_allow());
        }
        prop_assert_eq!(both.is_allow(), b.and(a).decision(&call).is_allow());
    }

    /// Rules that allow never make a difference to what the CLI asks about, and others only make it stricter.
    #[test]
    fn rules_never_widen(policy in policy(), call in calls()) {
        let bare = Policy::new(policy.default).decision(&call);
        if policy.decision(&call).is_allow() {
            prop_assert!(bare.is_allow());
        }
        let mut without = policy.clone();
        without.rules.allow.clear();
        prop_assert_eq!(policy.decision(&call).is_allow(), without.decision(&call).is_allow());
    }
}
