//! Traps about rules that the CLI judges.

use outrigger::options::{OptionsError, Settings};
use outrigger::permissions::rules::Rule;
use outrigger::permissions::{
    Decided, Opinion, PermissionAllow, PermissionDecision, PermissionHandler as _, PermissionRequest,
    PermissionUpdate, PolicyDefault, chain, layer, one_at_a_time, record,
};
use outrigger::testing::Simulated;
use outrigger::testing::assert::{Trace, question};
use outrigger::testing::sim::peer::Steps;
use outrigger::testing::sim::peer::agent::Reply;
use outrigger::testing::sim::peer::faulty::frames;
use outrigger::{Agent, Options, Policy};
use serde_json::{Value, json};

use crate::kit::{Says as _, outcome};

/// A CLI of this version that asks about a call of a tool, and says these things more of why.
fn asking(version: &'static str, tool: &'static str, more: Value) -> Simulated {
    Simulated::steps(move || {
        let mut asked = frames::ask("q", tool);
        let fields = asked["request"].as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let script = Steps::new().initialize_with(json!({ "claude_code_version": version }));
        script.begins().says(asked).takes_answer("q").ends("done")
    })
}

/// Whether the call was allowed.
async fn is_allowed(cli: &Simulated, options: Options) -> bool {
    let session = options.start().await.unwrap();
    outcome(&session, "go").await;
    session.close().await.unwrap();
    let trace = Trace::from(cli.report().unwrap());
    trace.asked([question("Bash").denied()]).is_err()
        && trace.asked([question("ExitPlanMode").denied()]).is_err()
}

fn texts(rules: &[Rule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

/// Guard: `permissions/policy.rs`, a CLI that never says why it asks may ask because of a rule.
#[tokio::test(start_paused = true)]
async fn ask_rules_of_a_cli_that_gives_no_reasons() {
    let policy = |default| {
        let policy = Policy::new(default).allow(["Bash(touch *)"]);
        policy.ask(["Bash(git push *)"])
    };
    for (version, is_told) in [
        ("2.1.330", true),
        ("2.1.150", true),
        ("2.1.149", false),
        ("2.0.0", false),
        ("new", false),
    ] {
        let cli = asking(version, "Bash", json!({}));
        let options = cli.options().permissions(policy(PolicyDefault::Allow));
        assert_eq!(is_allowed(&cli, options).await, is_told, "{version}");
        // Whoever stands behind the rules is not asked either, but for the last.
        let cli = asking(version, "Bash", json!({}));
        let yes = || layer(|_| async { Opinion::Decided(PermissionDecision::allow()) });
        let layers = chain()
            .layer("rules", policy(PolicyDefault::Ask))
            .layer("yes", yes())
            .or_deny();
        assert_eq!(
            is_allowed(&cli, cli.options().permissions(layers)).await,
            is_told,
            "{version}"
        );
        let cli = asking(version, "Bash", json!({}));
        let options = cli.options().permissions(policy(PolicyDefault::Deny));
        assert!(!is_allowed(&cli, options).await, "{version}");
    }
}

/// Guard: `permissions/policy.rs`, of a command that the CLI cannot read it does not say whether a rule is about it.
#[tokio::test(start_paused = true)]
async fn ask_rules_and_a_command_that_cannot_be_read() {
    let unread =
        || json!({"decision_reason_type": "other", "decision_reason": "Contains zsh =cmd equals expansion"});
    for (rule, allowed) in [("Bash(git push *)", false), ("WebSearch", true)] {
        let cli = asking("2.1.330", "Bash", unread());
        let options = cli.options().permissions(Policy::allow_all().ask([rule]));
        assert_eq!(is_allowed(&cli, options).await, allowed, "{rule}");
    }
}

/// Guard: `permissions.rs`, no answer takes away what the session was started with.
#[tokio::test(start_paused = true)]
async fn rules_taken_away_by_an_answer() {
    let rules = json!([{"toolName": "Bash", "ruleContent": "rm *"}]);
    let update = |kind: &str, behavior: &str, destination: &str| json!({"type": kind, "rules": rules, "behavior": behavior, "destination": destination});
    for (update, allowed) in [
        (update("removeRules", "deny", "cliArg"), false),
        (update("replaceRules", "deny", "cliArg"), false),
        (update("replaceRules", "ask", "cliArg"), false),
        (
            json!({"type": "replaceRules", "behavior": "deny", "destination": "cliArg", "rules": 7}),
            false,
        ),
        (update("replaceRules", "allow", "cliArg"), true),
        (update("removeRules", "deny", "session"), true),
        (update("addRules", "deny", "cliArg"), true),
    ] {
        let cli = asking("2.1.330", "Bash", json!({}));
        let answer = serde_json::from_value::<PermissionUpdate>(update.clone()).unwrap();
        let handler = move |_: PermissionRequest| {
            let allow = PermissionAllow::default().updated_permissions([answer.clone()]);
            std::future::ready(PermissionDecision::from(allow))
        };
        assert_eq!(
            is_allowed(&cli, cli.options().permissions(handler)).await,
            allowed,
            "{update}"
        );
    }
}

/// Guard: `permissions.rs`, no answer brings a rule that allows more than it says.
#[tokio::test(start_paused = true)]
async fn wide_rules_of_an_answer() {
    let change = |kind: &str, behavior: &str, tool: &str, content: Option<&str>| {
        let rule = match content {
            Some(content) => json!({"toolName": tool, "ruleContent": content}),
            None => json!({"toolName": tool}),
        };
        json!({"type": kind, "rules": [rule], "behavior": behavior, "destination": "session"})
    };
    let add = |tool, content| change("addRules", "allow", tool, content);
    let wide = add("Bash", Some("e* a*"));
    let odd = add("Bash", Some("find . -name \\*.rs"));
    for (update, suggested, allowed) in [
        (wide.clone(), None, false),
        (wide.clone(), Some(wide), false),
        (
            change("replaceRules", "allow", "Bash", Some("*sh *")),
            None,
            false,
        ),
        (change("addRules", "permit", "Bash", Some("*sh *")), None, false),
        (add("*", None), None, false),
        (add("mcp__*", None), None, false),
        (add("Bash", Some("")), None, false),
        (add("Bash", Some("* *")), None, false),
        (add("Read", Some("*")), None, false),
        (add("WebSearch", Some("query:x")), None, false),
        (
            json!({"type": "addRules", "behavior": "allow", "destination": "session", "rules": 7}),
            None,
            false,
        ),
        (odd.clone(), None, false),
        (odd.clone(), Some(odd), true),
        (change("addRules", "deny", "Bash", Some("e* a*")), None, true),
        (change("removeRules", "allow", "Bash", Some("e* a*")), None, true),
        (add("Bash", None), None, true),
        (add("Bash", Some("git log:*")), None, true),
        (add("Bash", Some("echo f() , x")), None, true),
        (add("Read", Some("//tmp/x/**")), None, true),
        (add("WebFetch", Some("domain:example.com")), None, true),
        (add("mcp__server__tool", None), None, true),
    ] {
        let more = json!({"permission_suggestions": suggested.iter().collect::<Vec<_>>()});
        let cli = asking("2.1.330", "Bash", more);
        let answer = serde_json::from_value::<PermissionUpdate>(update.clone()).unwrap();
        let handler = move |_: PermissionRequest| {
            let allow = PermissionAllow::default().updated_permissions([answer.clone()]);
            std::future::ready(PermissionDecision::from(allow))
        };
        assert_eq!(
            is_allowed(&cli, cli.options().permissions(handler)).await,
            allowed,
            "{update}"
        );
    }
}

/// Guard: `permissions/policy.rs`, older CLIs do not mark what only a person may answer.
#[tokio::test(start_paused = true)]
async fn plan_of_an_older_cli() {
    let cli = asking("2.1.100", "ExitPlanMode", json!({"input": {"plan": "all of it"}}));
    let options = cli.options().permissions(Policy::allow_all());
    assert!(!is_allowed(&cli, options).await);
}

/// Guard: `permissions/policy.rs`, a policy whose rules the CLI does not know allows nothing.
#[tokio::test(start_paused = true)]
async fn rules_that_nobody_handed_over() {
    for policy in [
        Policy::deny_list(["Bash(rm *)"]),
        Policy::allow_all().ask(["WebSearch"]),
    ] {
        let cli = asking("2.1.330", "Bash", json!({}));
        let kept = policy.clone();
        let handler = move |request: PermissionRequest| std::future::ready(kept.decision(&request));
        assert!(
            !is_allowed(&cli, cli.options().permissions(handler)).await,
            "{policy:?}"
        );
        let cli = asking("2.1.330", "Bash", json!({}));
        assert!(is_allowed(&cli, cli.options().permissions(policy)).await);
    }
}

/// Guard: `options/check.rs`, what a rule allows is not taken from a layer that decides before it.
#[test]
fn rule_behind_layer() {
    let guard = || layer(|_| async { Opinion::Decided(PermissionDecision::deny("no")) });
    let rules = || Policy::ask_all().allow(["Bash(touch *)"]);
    let options = || Agent::builder();
    let behind = [
        options().permissions(chain().layer("guard", guard()).layer("rules", rules()).or_deny()),
        options().permissions(chain().layer("guard", guard()).last("rules", rules())),
        options().permissions(
            chain()
                .layer("guard", guard())
                .last("inner", chain().layer("rules", rules()).or_deny()),
        ),
        options().permissions(record(
            one_at_a_time(chain().layer("guard", guard()).last("rules", rules())),
            |_: Decided| {},
        )),
    ];
    for options in behind {
        assert!(
            matches!(options.check(), Err(OptionsError::RuleBehindLayer { .. })),
            "{:?}",
            options.check()
        );
    }
    let before = chain().layer("rules", rules()).layer("guard", guard()).or_deny();
    options().permissions(before).check().unwrap();
}

/// Guard: `options/routes.rs`, a settings file leaves no place for rules that ask.
#[test]
fn ask_rules_beside_a_settings_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let options = |policy| {
        Agent::builder()
            .settings(file.path().to_owned())
            .permissions(policy)
    };
    let asks = Policy::ask_all().ask(["Bash(git push *)"]);
    let error = options(asks).check().unwrap_err();
    assert!(matches!(error, OptionsError::Conflict { .. }), "{error}");
    options(Policy::deny_list(["Bash(rm *)"])).check().unwrap();
}

/// Guards: `permissions/layers.rs` and `permissions/person.rs`, the CLI gets the rules of every policy, wherever it is.
#[test]
fn rules_of_every_layer() {
    let inner = chain()
        .layer("c", Policy::ask_all().ask(["Bash(c *)"]))
        .last("d", Policy::allow_all().deny(["Bash(d *)"]));
    let all = chain()
        .layer("a", Policy::ask_all().deny(["Bash(a *)"]))
        .layer("closure", layer(|_| async { Opinion::Pass }))
        .layer("b", Policy::ask_all().ask(["Bash(b *)"]))
        .last("inner", inner);
    let handed = record(one_at_a_time(all), |_: Decided| {}).rules();
    assert_eq!(texts(&handed.ask), ["Bash(b *)", "Bash(c *)"]);
    assert_eq!(texts(&handed.deny), ["Bash(a *)", "Bash(d *)"]);
}

/// Guard: `options/routes.rs`, rules that ask are handed over in the settings.
#[tokio::test(start_paused = true)]
async fn ask_rules_are_handed_over() {
    let call = || Reply::tool("Bash", json!({"command": "touch a.txt", "description": "touch"}));
    for (rule, is_asked) in [("Bash(touch *)", true), ("Bash(mkdir *)", false)] {
        let cli = Simulated::agent(move |agent| agent.replies([call(), Reply::say("done")]));
        let policy = Policy::ask_all().allow(["Bash"]).ask([rule]);
        let session = cli.options().permissions(policy).start().await.unwrap();
        outcome(&session, "go").await;
        session.close().await.unwrap();
        let trace = Trace::from(cli.report().unwrap());
        assert_eq!(
            trace.asked([question("Bash").denied()]).is_ok(),
            is_asked,
            "{rule}"
        );
    }
}

/// Guard: `permissions/policy.rs`, `Read` alone is for all files there are.
#[test]
fn read_only_is_the_project() {
    let handed = outrigger::permissions::Layer::rules(&Policy::read_only());
    assert!(
        handed.allow.iter().all(|rule| !rule.names_all_of("Read")),
        "{handed:?}"
    );
    assert!(texts(&handed.allow).contains(&"Read(./**)".to_owned()));
}

/// Guard: `value_syntax.rs`, what the CLI would take for several rules is none.
#[test]
fn rule_within_a_rule() {
    for rule in [
        "Bash(f(),Bash,x)",
        "Bash(f() Bash x)",
        "Bash(a),Bash",
        "Bash Read",
    ] {
        Policy::allow_list([rule]).check().unwrap_err();
        Agent::builder().allowed_tools([rule]).check().unwrap_err();
        Agent::builder().disallowed_tools([rule]).check().unwrap_err();
    }
}

/// Guard: `options/check.rs`, the options take the rules that a policy takes, and no others.
#[test]
fn rules_of_the_options() {
    let wrong = |agent: Options, option: &str| match agent.check().unwrap_err() {
        OptionsError::Rule { option: named, error } => {
            assert_eq!(named, option);
            error.to_string()
        }
        other => panic!("{other}"),
    };
    for rule in [
        "",
        "Read,Bash",
        "Bash(ls",
        "Bash Read",
        "bash",
        "Bash(* *)",
        "Write(src/**)",
        "Read(../x)",
        "mcp__server__tool(x)",
    ] {
        let text = wrong(Agent::builder().allowed_tools([rule]), "allowed_tools");
        let denied = wrong(Agent::builder().disallowed_tools([rule]), "disallowed_tools");
        let policy = Policy::allow_list([rule]).check().unwrap_err().to_string();
        assert_eq!(denied, text);
        assert_eq!(policy, format!("in `allow` {text}"));
    }
    for rule in ["Bash(e* a*)", "*", "mcp__*", "WebSearch(query:x)"] {
        let text = wrong(Agent::builder().allowed_tools([rule]), "allowed_tools");
        let policy = Policy::allow_list([rule]).check().unwrap_err().to_string();
        assert_eq!(policy, format!("in `allow` {text}"));
        Agent::builder().disallowed_tools([rule]).check().unwrap();
    }
    for rule in [
        "Read",
        "Task",
        "mcp__server",
        "mcp__server__tool",
        "Bash(git log:*)",
        "Edit(src/**)",
    ] {
        Agent::builder().allowed_tools([rule]).check().unwrap();
        Agent::builder().disallowed_tools([rule]).check().unwrap();
    }
}

/// Guard: `options/check.rs`, the rules in inline settings are those that the CLI does not skip or misread.
#[test]
fn rules_in_settings() {
    let with = |list: &str, rule: &str| -> Settings {
        serde_json::from_value(json!({"permissions": {list: ["Read", rule]}})).unwrap()
    };
    let is_wrong = |agent: Options, option: &str| match agent.check().unwrap_err() {
        OptionsError::Rule { option: named, .. } => assert_eq!(named, option),
        other => panic!("{other}"),
    };
    for rule in [
        "",
        "bash",
        "Bash(ls",
        "Bash Read",
        "Write(src/**)",
        "mcp__server__tool(x)",
    ] {
        for list in ["allow", "ask", "deny"] {
            is_wrong(Agent::builder().settings(with(list, rule)), "settings");
            is_wrong(
                Agent::builder().managed_settings(with(list, rule)),
                "managed_settings",
            );
        }
    }
    for rule in ["Bash(e* a*)", "*", "WebSearch(query:x)"] {
        is_wrong(Agent::builder().settings(with("allow", rule)), "settings");
        Agent::builder().settings(with("deny", rule)).check().unwrap();
    }
    // In settings nothing is split, so parentheses and commas inside are part of the rule.
    for rule in [
        "Bash(python -c \"print(1, 2)\")",
        "Bash(git log:*)",
        "Edit(src/**)",
        "mcp__server",
    ] {
        for list in ["allow", "ask", "deny"] {
            Agent::builder().settings(with(list, rule)).check().unwrap();
        }
    }
}
