use outrigger_protocol::RawJson;
use serde_json::{Value, json};

use super::*;
use crate::options::Settings;
use crate::permissions::{PermissionDecision, Policy, chain};
use crate::start::Agent;

fn default_mode() -> Options {
    Agent::builder()
        .cwd("/nowhere")
        .permission_mode(PermissionMode::Default)
}

fn settings(permissions: Value) -> SettingsInput {
    let settings: Settings = serde_json::from_value(json!({ "permissions": permissions })).unwrap();
    settings.into()
}

fn explain(options: &Options, tool: &str, input: Value) -> Explanation {
    options.explain(tool, &RawJson::encode(&input).unwrap())
}

/// Who surely decides, how, and by which rule.
fn decisive(options: &Options, tool: &str, input: Value) -> (Decider, Outlook, Option<String>) {
    let explanation = explain(options, tool, input);
    let step = explanation.decisive().expect("somebody decides").clone();
    assert_eq!(explanation.steps.last(), Some(&step), "{explanation}");
    (step.who, step.outlook, step.rule)
}

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

#[test]
fn who_decides() {
    let handled = || default_mode().can_use_tool(|_| async { PermissionDecision::allow() });
    let rule = |rule: &str| Some(rule.to_owned());
    for (options, tool, input, expected) in [
        (
            handled(),
            "Bash",
            bash("x"),
            (Decider::Handler, Outlook::Unknown, None),
        ),
        (
            default_mode(),
            "Bash",
            bash("x"),
            (Decider::Handler, Outlook::Refused, None),
        ),
        (
            handled().tools(Tools::only(["Read"])),
            "Bash",
            bash("x"),
            (Decider::Tools, Outlook::Refused, None),
        ),
        (
            handled().disallowed_tools(["Bash"]).allowed_tools(["Bash"]),
            "Bash",
            bash("x"),
            (Decider::DisallowedTools, Outlook::Refused, rule("Bash")),
        ),
        (
            handled()
                .disallowed_tools(["Bash(*)"])
                .permission_mode(PermissionMode::BypassPermissions),
            "Bash",
            bash("x"),
            (Decider::DisallowedTools, Outlook::Refused, rule("Bash(*)")),
        ),
        (
            handled().settings(settings(json!({"deny": ["Bash"]}))),
            "Bash",
            bash("x y"),
            (Decider::Settings, Outlook::Refused, rule("Bash")),
        ),
        // A rule that asks wins over one that allows, and the handler is asked.
        (
            handled()
                .settings(settings(json!({"ask": ["Bash(x *)"]})))
                .allowed_tools(["Bash"]),
            "Bash",
            bash("x y"),
            (Decider::Handler, Outlook::Unknown, None),
        ),
        (
            handled().permission_mode(PermissionMode::BypassPermissions),
            "Bash",
            bash("x"),
            (Decider::PermissionMode, Outlook::Allowed, None),
        ),
        (
            handled().permission_mode(PermissionMode::DontAsk),
            "Bash",
            bash("x"),
            (Decider::PermissionMode, Outlook::Refused, None),
        ),
        (
            handled().skills(Skills::All),
            "Skill",
            json!({"skill": "pdf"}),
            (Decider::Skills, Outlook::Allowed, None),
        ),
        (
            handled().permission_prompts(PermissionPrompts::None),
            "Bash",
            bash("x"),
            (Decider::PermissionPrompts, Outlook::Refused, None),
        ),
        (
            default_mode().permission_prompt_tool_name("mcp__a__b"),
            "Bash",
            bash("x"),
            (Decider::PromptTool, Outlook::Unknown, None),
        ),
        (
            handled(),
            QUESTION,
            json!({}),
            (Decider::Tools, Outlook::Refused, None),
        ),
        (
            handled().questions(|asked| async move { asked.answers().choose(0, [0]) }),
            QUESTION,
            json!({}),
            (Decider::Questions, Outlook::Asked, None),
        ),
        (
            default_mode().permissions(Policy::allow_all()),
            PLAN,
            json!({}),
            (Decider::Handler, Outlook::Refused, None),
        ),
        (
            default_mode().permissions(Policy::read_only().deny(["Bash"])),
            "Bash",
            bash("rm x"),
            (Decider::Policy, Outlook::Refused, rule("Bash")),
        ),
    ] {
        assert_eq!(
            decisive(&options, tool, input.clone()),
            expected,
            "{}",
            explain(&options, tool, input)
        );
    }
}

/// The steps that are not sure, with their rules.
fn perhaps(options: &Options, tool: &str, input: Value) -> Vec<(Decider, Outlook, String)> {
    let explanation = explain(options, tool, input);
    let unsure = explanation.steps.into_iter().filter(|step| !step.is_sure);
    unsure
        .filter_map(|step| Some((step.who, step.outlook, step.rule?)))
        .collect()
}

#[test]
fn what_is_not_sure_is_there_as_such() {
    let options = default_mode()
        .disallowed_tools(["Bash(rm *)"])
        .allowed_tools(["Bash"])
        .settings(settings(json!({"ask": ["Bash(x *)"]})))
        .permissions(Policy::allow_all().deny(["Read(.env)"]).ask(["Bash(y *)"]));
    assert_eq!(
        perhaps(&options, "Bash", bash("sh -c 'rm x'")),
        [
            (
                Decider::DisallowedTools,
                Outlook::Refused,
                "Bash(rm *)".to_owned()
            ),
            (Decider::Policy, Outlook::Refused, "Read(.env)".to_owned()),
            (Decider::Settings, Outlook::Asked, "Bash(x *)".to_owned()),
            (Decider::Policy, Outlook::Asked, "Bash(y *)".to_owned()),
            // The CLI's own checks may want a call asked that a rule allows.
            (Decider::AllowedTools, Outlook::Allowed, "Bash".to_owned()),
        ]
    );
    let explanation = explain(&options, "Bash", bash("x"));
    assert_eq!(explanation.outlook(), Outlook::Unknown);
    assert_eq!(explanation.decisive().unwrap().who, Decider::Handler);

    let skilled = default_mode().skills(Skills::named(["pdf"]));
    assert_eq!(
        perhaps(&skilled, "Skill", json!({"skill": "pdf"})),
        [(Decider::Skills, Outlook::Allowed, "Skill(pdf)".to_owned())]
    );

    let options = options.permission_mode(PermissionMode::Auto);
    assert_eq!(
        explain(&options, "WebSearch", json!({})).outlook(),
        Outlook::Unknown
    );

    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Write|Edit", "hooks": []}]}});
    let hooked: Settings = serde_json::from_value(hooks).unwrap();
    let options = default_mode().settings(hooked);
    assert_eq!(explain(&options, "Edit", json!({})).steps[0].who, Decider::Hook);
    assert_ne!(explain(&options, "Bash", bash("x")).steps[0].who, Decider::Hook);
}

#[test]
fn what_is_not_known_is_named() {
    let unknown = |options: Options| explain(&options, "Bash", bash("x")).unknown;
    assert_eq!(
        unknown(default_mode()),
        [
            "the organization's policy, if there is one",
            "what is changed while the session runs"
        ]
    );
    let files = "rules and hooks of the settings files that are loaded";
    assert!(unknown(default_mode().isolation(Isolation::Project)).contains(&files));
    assert!(!unknown(default_mode().isolation(Isolation::Project).setting_sources([])).contains(&files));
}

#[test]
fn explanations_read_well() {
    let policy = Policy::ask_all().ask(["Bash(git push *)"]);
    let options = default_mode().permissions(chain().layer("rules", policy).or_deny());
    assert_eq!(
        explain(&options, "Bash", bash("git push")).to_string(),
        "a call of Bash:\n  perhaps asked by the rules of the permission handler: only the CLI can tell whether the rule means this \
         call (`Bash(git push *)`)\n  \
         perhaps allowed by the CLI: it runs commands that it knows to be read-only without asking\n  \
         refused by the permission handler: layer nobody: the policy refuses what the CLI asks about\n  \
         not known here: the organization's policy, if there is one; what is changed while the session runs\n"
    );
}

#[test]
fn handlers_that_are_not_asked() {
    let handled = || default_mode().permissions(Policy::deny_all());
    let warned = |options: Options| {
        options
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(warned(handled()), [""; 0]);
    assert_eq!(warned(handled().allowed_tools(["Bash(git *)"])), [""; 0]);
    for (options, calls, option) in [
        (
            handled().permission_mode(PermissionMode::BypassPermissions),
            "*",
            "permission_mode",
        ),
        (
            handled().permission_mode(PermissionMode::DontAsk),
            "*",
            "permission_mode",
        ),
        (
            handled().permission_prompts(PermissionPrompts::None),
            "*",
            "permission_prompts",
        ),
        (
            handled().permission_prompt_tool_name("mcp__a__b"),
            "*",
            "permission_prompt_tool_name",
        ),
        (handled().allowed_tools(["Read"]), "Read", "allowed_tools"),
        (handled().allowed_tools(["Bash(*)"]), "Bash", "allowed_tools"),
        (handled().skills(Skills::All), "Skill", "skills"),
    ] {
        let expected = Warning::HandlerNotAsked {
            calls: calls.to_owned(),
            option,
        };
        assert_eq!(options.warnings(), [expected]);
        let text = warned(options).remove(0);
        assert!(
            text.contains(option) && text.contains("PreToolUse hook"),
            "{text}"
        );
    }
    // Who sets no handler expects nothing of it.
    assert_eq!(
        warned(default_mode().permission_mode(PermissionMode::DontAsk)),
        [""; 0]
    );
}

#[test]
fn who_keeps_one_tool_from_writing_is_told_of_others() {
    let warned = |policy: Policy| Agent::builder().permissions(policy).warnings();
    let told = || Warning::OtherWaysToWrite {
        rule: "Edit".to_owned(),
    };
    assert_eq!(warned(Policy::deny_list(["Edit"])), [told()]);
    assert_eq!(warned(Policy::ask_all().ask(["Edit", "Write"])), [told()]);
    for rules in [&["Edit(//**)"][..], &["Edit", "Write", "NotebookEdit", "Bash"]] {
        assert_eq!(warned(Policy::deny_list(rules)), [], "{rules:?}");
    }
}

#[test]
fn who_keeps_files_from_one_way_to_read_is_told_of_others() {
    let warned = |policy: Policy| Agent::builder().permissions(policy).warnings();
    let told = |rule: &str| Warning::OtherWaysToRead {
        rule: rule.to_owned(),
    };
    let ask = |rules: &[&str]| Policy::ask_all().ask(rules.iter().copied());
    assert_eq!(warned(ask(&["Read(./a)", "Edit(./b)"])), [told("Read(./a)")]);
    assert_eq!(warned(ask(&["Read(./a)", "Grep"])), [told("Read(./a)")]);
    assert_eq!(warned(ask(&["Read"])), [told("Read")]);
    assert_eq!(warned(Policy::deny_list(["Read"])), [told("Read")]);
    for policy in [
        ask(&["Read(./a)", "Grep", "Bash"]),
        ask(&["Bash(rm *)"]),
        Policy::deny_list(["Read(./a)"]),
        Policy::deny_list(["Read", "Grep", "Bash"]),
    ] {
        assert!(warned(policy.clone()).is_empty(), "{policy:?}");
    }
}
