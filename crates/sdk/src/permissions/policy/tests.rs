use outrigger_protocol::Frame;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn request(tool: &str, input: Value) -> PermissionRequest {
    asked(tool, input, false)
}

fn asked(tool: &str, input: Value, only_a_person: bool) -> PermissionRequest {
    let line = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "can_use_tool", "tool_name": tool,
        "input": input, "tool_use_id": "t", "requires_user_interaction": only_a_person}});
    PermissionRequest::from_frame(&Frame::from_line(line.to_string().into_bytes()).remove(0)).unwrap()
}

fn bash(command: &str) -> PermissionRequest {
    request("Bash", json!({ "command": command }))
}

fn message(decision: &PermissionDecision) -> &str {
    match decision {
        PermissionDecision::Deny(deny) => &deny.message,
        _ => "allowed",
    }
}

#[test]
fn refusing_wins_over_asking_wins_over_allowing() {
    let policy = Policy::deny_all()
        .allow(["Bash(git *)", "WebSearch"])
        .unwrap()
        .ask(["Bash(git push *)"])
        .unwrap()
        .deny(["Bash(git push --force *)", "WebSearch"])
        .unwrap();
    let says = |request: &PermissionRequest| message(&policy.decision(request)).to_owned();
    assert_eq!(says(&bash("git status")), "allowed");
    assert_eq!(
        says(&bash("git push")),
        "the policy's rule `Bash(git push *)` wants somebody to be asked about this, and nobody is there"
    );
    assert_eq!(
        says(&bash("git push --force x")),
        "the policy refuses Bash by its rule `Bash(git push --force *)`"
    );
    assert_eq!(
        says(&request("WebSearch", json!({"query": "x"}))),
        "the policy refuses WebSearch by its rule `WebSearch`"
    );
    assert_eq!(
        says(&bash("git x; ls")),
        "the policy does not allow Bash: no rule covers `ls`"
    );
    assert_eq!(
        says(&request("Write", json!({"file_path": "/x", "content": ""}))),
        "the policy does not allow Write: no rule covers this call of Write"
    );
}

#[test]
fn defaults() {
    let call = bash("x");
    assert!(Policy::allow_all().decision(&call).is_allow());
    assert!(!Policy::deny_all().decision(&call).is_allow());
    assert_eq!(
        message(&Policy::ask_all().decision(&call)),
        "the policy wants somebody to be asked about Bash, and nobody is there"
    );
    assert!(matches!(Policy::ask_all().opinion(&call), (Opinion::Pass, None)));
    assert!(
        Policy::deny_list(["Bash(rm *)"])
            .unwrap()
            .decision(&call)
            .is_allow()
    );
    let reads = request("Read", json!({"file_path": "/x"}));
    assert!(Policy::read_only().decision(&reads).is_allow());
    assert!(!Policy::read_only().decision(&call).is_allow());
}

/// What only a person may answer is not allowed by any rule.
#[test]
fn no_rule_stands_for_a_person() {
    let question = asked("AskUserQuestion", json!({"questions": []}), true);
    for policy in [
        Policy::allow_all(),
        Policy::allow_list(["AskUserQuestion"]).unwrap(),
    ] {
        assert_eq!(message(&policy.decision(&question)), ONLY_A_PERSON);
        assert!(matches!(policy.opinion(&question).0, Opinion::Ask));
    }
    let policy = Policy::deny_list(["AskUserQuestion"]).unwrap();
    assert!(message(&policy.decision(&question)).contains("by its rule"));
}

#[test]
fn wrong_rules_make_no_policy() {
    for rules in [["Bash("], ["*"], ["Bash(* x)"], ["Write(x)"]] {
        assert!(Policy::allow_list(rules).is_err(), "{rules:?}");
    }
    assert!(Policy::deny_list(["*"]).is_ok());
    assert!(Policy::deny_list(["Grep(x)"]).is_err());
    assert!(Policy::ask_all().ask(["Read(*)"]).is_err());
}

#[test]
fn rules_for_files_go_by_the_place() {
    let policy = Policy::allow_list(["Edit(src/**)"]).unwrap();
    let write = request("Write", json!({"file_path": "/nowhere/src/x", "content": ""}));
    assert!(!policy.decision(&write).is_allow(), "it is not known where");
    assert!(policy.place(Place::new("/nowhere")).decision(&write).is_allow());
}

fn rules() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(
        proptest::sample::select(vec![
            "Bash",
            "Bash(git *)",
            "Bash(rm *)",
            "Bash(npm test)",
            "Read",
            "Read(src/**)",
            "Edit(/docs/**)",
            "WebFetch(domain:example.com)",
            "mcp__a__*",
            "WebSearch",
        ]),
        0..4,
    )
}

fn policy() -> impl Strategy<Value = (Policy, Vec<&'static str>)> {
    let default = proptest::sample::select(vec![
        PolicyDefault::Allow,
        PolicyDefault::Ask,
        PolicyDefault::Deny,
    ]);
    (default, rules(), rules(), rules()).prop_map(|(default, allow, ask, deny)| {
        let policy = Policy::new(default)
            .allow(allow)
            .unwrap()
            .ask(ask)
            .unwrap()
            .deny(&deny)
            .unwrap();
        (policy.place(Place::new("/nowhere")), deny)
    })
}

fn calls() -> impl Strategy<Value = PermissionRequest> {
    proptest::sample::select(vec![
        bash("git status"),
        bash("rm x"),
        bash("git x && rm y"),
        bash("npm test"),
        request("Read", json!({"file_path": "src/x"})),
        request("Write", json!({"file_path": "/nowhere/docs/x", "content": ""})),
        request("WebFetch", json!({"url": "https://example.com", "prompt": ""})),
        request("mcp__a__b", json!({})),
        request("WebSearch", json!({"query": ""})),
    ])
}

/// A call for each command of a line of them; else the call.
fn parts(call: &PermissionRequest) -> Vec<PermissionRequest> {
    let input: Value = serde_json::from_str(call.input.get()).unwrap();
    match input["command"].as_str() {
        Some(line) => line.split(" && ").map(bash).collect(),
        None => vec![call.clone()],
    }
}

#[test]
fn each_command_of_a_line_may_be_allowed_by_another() {
    let git = Policy::allow_list(["Bash(git *)"]).unwrap();
    let rm = Policy::allow_list(["Bash(rm *)"]).unwrap();
    let line = bash("git x && rm y");
    assert!(!git.decision(&line).is_allow());
    assert!(git.clone().and(rm).decision(&line).is_allow());
    let none = Policy::allow_list(["Bash(npm *)"]).unwrap();
    assert!(!git.and(none).decision(&line).is_allow());
}

proptest! {
    /// What a rule of any policy in it refuses is refused by every composition, in any order.
    #[test]
    fn refusing_wins_in_every_composition(
        policies in proptest::collection::vec(policy(), 1..4),
        call in calls(),
        as_one in any::<bool>(),
    ) {
        let refused = policies.iter().any(|(_, deny)| {
            let rules = Rules::parse(deny).unwrap();
            rules.touches(&Call::new(&call.tool_name, &call.input, Place::new("/nowhere"))).is_some()
        });
        let policies = policies.into_iter().map(|(policy, _)| policy);
        let decision = if as_one {
            policies.reduce(Policy::and).unwrap().decision(&call)
        } else {
            let chain = policies.fold(super::super::chain(), |chain, policy| chain.layer("p", policy));
            let handler = chain.last("all", super::super::ask(|_| async { PermissionDecision::allow() }));
            futures_util::FutureExt::now_or_never(handler.decide(call)).unwrap()
        };
        if refused {
            prop_assert!(!decision.is_allow());
        }
    }

    /// Both policies in one allow nothing that neither allows. Of a line of commands each may be allowed by another, as by two rules
    /// of one policy.
    #[test]
    fn together_they_allow_no_more((a, _) in policy(), (b, _) in policy(), call in calls()) {
        let both = a.clone().and(b.clone()).decision(&call);
        if both.is_allow() {
            for part in parts(&call) {
                prop_assert!(a.decision(&part).is_allow() || b.decision(&part).is_allow());
            }
        }
        prop_assert_eq!(both.is_allow(), b.and(a).decision(&call).is_allow());
    }

    /// A policy foresees what it decides.
    #[test]
    fn a_policy_foresees_what_it_decides((policy, _) in policy(), call in calls()) {
        let foreseen = PermissionHandler::foresee(&policy, &Call::new(&call.tool_name, &call.input, Place::anywhere()));
        prop_assert_eq!(foreseen.outlook == Outlook::Allowed, policy.decision(&call).is_allow());
        prop_assert_eq!(foreseen.rule, policy.decide_now(&call).1.rule);
    }
}
