use std::sync::Mutex;

use futures_util::FutureExt;
use outrigger_protocol::{Frame, RawJson};
use serde_json::json;

use super::super::{Policy, ask};
use super::*;

fn bash(command: &str) -> PermissionRequest {
    let line = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool",
        "tool_name": "Bash", "input": {"command": command}, "tool_use_id": "t"}});
    PermissionRequest::from_frame(&Frame::from_line(line.to_string().into_bytes()).remove(0)).unwrap()
}

fn person() -> impl PermissionHandler {
    ask(|_| async { PermissionDecision::deny("says the person") })
}

fn handler() -> impl PermissionHandler {
    chain()
        .layer(
            "closure",
            layer(|request| async move {
                match request.input.get().contains("magic") {
                    true => Opinion::Decided(PermissionDecision::allow()),
                    false => Opinion::Pass,
                }
            }),
        )
        .layer(
            "first",
            Policy::ask_all()
                .allow(["Bash(git *)"])
                .unwrap()
                .ask(["Bash(git push *)"])
                .unwrap(),
        )
        .layer(
            "second",
            Policy::ask_all()
                .allow(["Bash"])
                .unwrap()
                .deny(["Bash(rm *)"])
                .unwrap(),
        )
        .last("person", person())
}

fn told(handler: &impl PermissionHandler, command: &str) -> (bool, Option<String>, Option<String>) {
    let (decision, by) = handler.decide_and_tell(bash(command)).now_or_never().unwrap();
    let alone = handler.decide(bash(command)).now_or_never().unwrap();
    assert_eq!(alone.is_allow(), decision.is_allow());
    (decision.is_allow(), by.layer, by.rule)
}

#[test]
fn the_first_that_decides_does() {
    let handler = handler();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told(&handler, "magic"), (true, some("closure"), None));
    assert_eq!(
        told(&handler, "git status"),
        (true, some("first"), some("Bash(git *)"))
    );
    assert_eq!(told(&handler, "ls"), (true, some("second"), some("Bash")));
    // What is to be asked no layer between allows.
    assert_eq!(told(&handler, "git push"), (false, some("person"), None));
    // What a later layer refuses no earlier one allows.
    assert_eq!(
        told(&handler, "rm magic"),
        (false, some("second"), some("Bash(rm *)"))
    );
    assert_eq!(
        told(&handler, "git x; rm y"),
        (false, some("second"), some("Bash(rm *)"))
    );
    let (decision, by) = chain()
        .or_deny()
        .decide_and_tell(bash("x"))
        .now_or_never()
        .unwrap();
    assert!(!decision.is_allow() && by.layer == some("nobody"));
}

#[test]
fn chains_foresee() {
    let foreseen = |command: &str| {
        let input = RawJson::encode(&json!({ "command": command })).unwrap();
        let foreseen = handler().foresee(&Call::new("Bash", &input, Place::anywhere()));
        (foreseen.outlook, foreseen.layer.unwrap(), foreseen.rule)
    };
    assert_eq!(
        foreseen("rm x"),
        (
            Outlook::Refused,
            "second".to_owned(),
            Some("Bash(rm *)".to_owned())
        )
    );
    assert_eq!(foreseen("git x"), (Outlook::Unknown, "closure".to_owned(), None));
    let chain = chain()
        .layer("first", Policy::ask_all().ask(["Bash(git push *)"]).unwrap())
        .layer("second", Policy::ask_all().allow(["Bash"]).unwrap())
        .last("inner", self::chain().last("person", person()));
    let input = RawJson::encode(&json!({"command": "git push"})).unwrap();
    let foreseen = chain.foresee(&Call::new("Bash", &input, Place::anywhere()));
    assert_eq!(
        (foreseen.outlook, foreseen.layer.as_deref()),
        (Outlook::Unknown, Some("inner: person"))
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
    assert_eq!(
        *seen.lock().unwrap(),
        [("Bash".to_owned(), true, by("second", Some("Bash")))]
    );

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
        .last(
            "person",
            ask(move |_| {
                *count.lock().unwrap() += 1;
                async { PermissionDecision::allow() }
            }),
        );
    let handler = record(chain, move |_: Decided| *records.lock().unwrap() += 1);
    let mut deciding = handler.decide(bash("x"));
    assert!((&mut deciding).now_or_never().is_none());
    assert_eq!(Arc::strong_count(&inside), 3, "the layer, and what it is about");
    drop(deciding);
    assert_eq!(Arc::strong_count(&inside), 2);
    assert_eq!(*asked.lock().unwrap(), 0);
}
