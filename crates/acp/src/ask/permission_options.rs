//! The options of a permission request, and what each means.
//!
//! Ids and labels are those of the TypeScript adapter. A lasting choice is offered only if its label names all that it changes; nothing
//! else of the CLI's suggestion is sent back.

use agent_client_protocol::v1::schema as acp;
use outrigger::permissions::rules::Rule;
use outrigger::permissions::{PermissionRequest, PermissionUpdate, PersonReply};
use outrigger::protocol::shared::{
    PermissionBehavior, PermissionMode, PermissionRuleValue, PermissionUpdateDestination,
};

use crate::tool::REFUSED;

/// An option with its meaning.
#[derive(Debug, Clone)]
pub(crate) struct PermissionChoice {
    pub(crate) option: acp::PermissionOption,
    pub(crate) reply: PersonReply,
    /// For a plan in a new conversation; the reply ends the turn of the old one.
    pub(crate) anew: Option<Approved>,
}

/// A plan for a new conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approved {
    pub(crate) plan: String,
    pub(crate) mode: PermissionMode,
}

fn choice(
    id: &str,
    name: impl Into<String>,
    kind: acp::PermissionOptionKind,
    reply: PersonReply,
) -> PermissionChoice {
    PermissionChoice {
        option: acp::PermissionOption::new(id.to_owned(), name, kind),
        reply,
        anew: None,
    }
}

fn once(name: &str) -> PermissionChoice {
    choice(
        "allow-once",
        name,
        acp::PermissionOptionKind::AllowOnce,
        PersonReply::Once,
    )
}

fn always(id: &str, name: impl Into<String>, updates: Vec<PermissionUpdate>) -> PermissionChoice {
    let reply = PersonReply::Always(updates);
    choice(id, name, acp::PermissionOptionKind::AllowAlways, reply)
}

fn reject(name: &str) -> PermissionChoice {
    let reply = PersonReply::No(REFUSED.to_owned());
    choice("reject", name, acp::PermissionOptionKind::RejectOnce, reply)
}

/// The choices for a call, in order.
pub(crate) fn choices(request: &PermissionRequest) -> Vec<PermissionChoice> {
    if request.tool_name == "EnterPlanMode" {
        return vec![once("Yes, enter plan mode"), reject("No, start implementing now")];
    }
    let mut choices = vec![once("Yes")];
    if !request.suppress_always_allow_rule {
        choices.extend(lasting(request));
    }
    choices.push(reject("No"));
    choices
}

/// The choices for a plan. `modes` are the modes of the session; `plan` is the plan for a new conversation.
pub(crate) fn plan_choices(modes: &[&str], plan: Option<&str>) -> Vec<PermissionChoice> {
    let to = |mode| {
        vec![PermissionUpdate::set_mode(
            mode,
            PermissionUpdateDestination::Session,
        )]
    };
    // The choice that permits least comes first.
    let mut choices = vec![choice(
        "exit-plan-default",
        "Yes, manually approve edits",
        acp::PermissionOptionKind::AllowOnce,
        PersonReply::Always(to(PermissionMode::Default)),
    )];
    if modes.contains(&"auto") {
        choices.push(always(
            "exit-plan-auto",
            "Yes, and use auto mode",
            to(PermissionMode::Auto),
        ));
    }
    if modes.contains(&"bypassPermissions") {
        let bypass = to(PermissionMode::BypassPermissions);
        choices.push(always("exit-plan-bypass", "Yes, and bypass permissions", bypass));
    }
    if choices.len() == 1 {
        let edits = to(PermissionMode::AcceptEdits);
        choices.push(always("exit-plan-accept-edits", "Yes, auto-accept edits", edits));
    }
    // Behind the choices that keep the context: a program that takes the first lasting choice should not lose the context.
    if let Some(plan) = plan.map(str::trim).filter(|plan| !plan.is_empty()) {
        choices.push(clearing(modes, plan));
    }
    // The turn ends, so that the user can comment on the plan.
    choices.push(choice(
        "reject",
        "No, keep planning",
        acp::PermissionOptionKind::RejectOnce,
        PersonReply::Stop,
    ));
    choices
}

/// The choice for a new conversation, in the offered mode with the fewest questions.
fn clearing(modes: &[&str], plan: &str) -> PermissionChoice {
    let (id, then, mode) = if modes.contains(&"auto") {
        ("auto", "use auto mode", PermissionMode::Auto)
    } else if modes.contains(&"bypassPermissions") {
        ("bypass", "bypass permissions", PermissionMode::BypassPermissions)
    } else {
        ("accept-edits", "auto-accept edits", PermissionMode::AcceptEdits)
    };
    PermissionChoice {
        anew: Some(Approved {
            plan: plan.to_owned(),
            mode,
        }),
        ..choice(
            &format!("{CLEARING}{id}"),
            format!("Yes, {CLEARS} and {then}"),
            acp::PermissionOptionKind::AllowAlways,
            PersonReply::Stop,
        )
    }
}

/// The prefix of the ids of choices that clear the context, and the words of their labels.
const CLEARING: &str = "exit-plan-clear-";
const CLEARS: &str = "clear context";

/// Adapts the choices that clear the context: removes them if the session can't start over, and adds the fill of the context in percent
/// if it is known.
pub(crate) fn fit_clearing(options: &mut Vec<acp::PermissionOption>, can_clear: bool, used: Option<u64>) {
    let is_clearing = |option: &acp::PermissionOption| option.option_id.0.starts_with(CLEARING);
    options.retain(|option| can_clear || !is_clearing(option));
    let Some(used) = used else { return };
    for option in options.iter_mut().filter(|option| is_clearing(option)) {
        option.name = option
            .name
            .replacen(CLEARS, &format!("{CLEARS} ({used}% used)"), 1);
    }
}

/// The lasting choices.
fn lasting(request: &PermissionRequest) -> Vec<PermissionChoice> {
    let with_updates = |name: String, updates| vec![always("allow-with-updates", name, updates)];
    let tool = request.tool_name.as_str();
    let text = |key: &str| {
        let input: std::collections::BTreeMap<String, outrigger::protocol::RawJson> =
            request.input.decode().ok()?;
        let text: String = input.get(key)?.decode().ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    // A rule that may not be sent would have the call denied.
    let local = |content: String| {
        let rule = PermissionRuleValue::calls(tool, content);
        let checked = Rule::try_from(&rule).and_then(|rule| rule.check_allow());
        checked.ok().map(|()| {
            vec![PermissionUpdate::allow(
                [rule],
                PermissionUpdateDestination::LocalSettings,
            )]
        })
    };
    match tool {
        "Bash" | "PowerShell" => shell_label(tool, &request.suggestions)
            .map(|name| with_updates(name, request.suggestions.clone()))
            .unwrap_or_default(),
        "Read" | "Glob" | "Grep" => file_label(&request.suggestions, "Read")
            .map(|name| with_updates(name, request.suggestions.clone()))
            .unwrap_or_default(),
        "Edit" | "Write" | "NotebookEdit" | "MultiEdit" => file_label(&request.suggestions, "Edit")
            .map(|name| with_updates(name, request.suggestions.clone()))
            .unwrap_or_default(),
        "WebFetch" => text("url")
            .and_then(|url| {
                let host = host_of(&url)?;
                let updates = local(format!("domain:{host}"))?;
                Some(with_updates(
                    format!("Yes, and don't ask again for {host}"),
                    updates,
                ))
            })
            .unwrap_or_default(),
        "Skill" => skill_choices(text("skill"), local),
        _ if request.suggestions.is_empty() => Vec::new(),
        _ => {
            let name = request.display_name.as_deref().unwrap_or(tool);
            if !is_for_tool(tool, &request.suggestions) {
                return Vec::new();
            }
            let name = format!("Yes, and don't ask again for {name} commands");
            with_updates(name, request.suggestions.clone())
        }
    }
}

fn skill_choices(
    skill: Option<String>,
    local: impl Fn(String) -> Option<Vec<PermissionUpdate>>,
) -> Vec<PermissionChoice> {
    // The model may write a skill as a person does, `/commit`. Rules have no slash.
    let skill = skill.as_deref().map(|skill| skill.trim_start_matches('/'));
    let Some(skill) = skill else { return Vec::new() };
    let exact = local(skill.to_owned()).map(|updates| {
        let name = format!("Yes, and don't ask again for {skill}");
        always("allow-skill-exact", name, updates)
    });
    let prefix = skill.split_once(' ').and_then(|(name, _)| {
        let updates = local(format!("{name}:*"))?;
        let label = format!("Yes, and don't ask again for {name}:* commands");
        Some(always("allow-skill-prefix", label, updates))
    });
    exact.into_iter().chain(prefix).collect()
}

/// Whether the suggestions allow only this tool.
fn is_for_tool(tool: &str, suggestions: &[PermissionUpdate]) -> bool {
    suggestions.iter().all(|update| match update {
        PermissionUpdate::AddRules(rules) => {
            rules.behavior == PermissionBehavior::Allow
                && !rules.rules.is_empty()
                && rules
                    .rules
                    .iter()
                    .all(|rule| rule.tool_name == tool && rule.rule_content.is_none())
        }
        _ => false,
    })
}

/// The meaning of suggestions for a shell; `None` if a label can't name it.
fn shell_label(tool: &str, suggestions: &[PermissionUpdate]) -> Option<String> {
    let (mut commands, mut paths, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for update in suggestions {
        match update {
            PermissionUpdate::AddDirectories(list)
                if list.destination == PermissionUpdateDestination::Session =>
            {
                paths.extend(list.directories.iter().map(|path| directory(path)));
            }
            // Of other projects the label says nothing.
            PermissionUpdate::AddRules(rules)
                if rules.behavior == PermissionBehavior::Allow
                    && rules.destination != PermissionUpdateDestination::UserSettings =>
            {
                for rule in &rules.rules {
                    let content = rule.rule_content.as_deref().map(str::trim);
                    let content = content.filter(|content| !content.is_empty())?;
                    if rule.tool_name == tool {
                        let command = content.strip_suffix(":*").unwrap_or(content).to_owned();
                        if !commands.contains(&command) {
                            commands.push(command);
                        }
                    } else if rule.tool_name == "Read" {
                        reads.push(directory(content.strip_suffix("/**").unwrap_or(content)));
                    } else {
                        return None;
                    }
                }
            }
            _ => return None,
        }
    }
    let only_reads = paths.is_empty();
    paths.extend(reads);
    match (commands.is_empty(), paths.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!(
            "Yes, and don't ask again for {} commands",
            list(&commands)
        )),
        (true, false) if only_reads => Some(format!(
            "Yes, allow reading from {} from this project",
            list(&paths)
        )),
        (true, false) => Some(format!(
            "Yes, and always allow access to {} from this project",
            list(&paths)
        )),
        (false, false) if commands.len() == 1 && paths.len() == 1 => Some(format!(
            "Yes, and allow access to {} and {} commands",
            list(&paths),
            list(&commands)
        )),
        (false, false) => Some(format!(
            "Yes, and allow {} access and {} commands",
            list(&paths),
            list(&commands)
        )),
    }
}

/// The meaning of suggestions for a file tool; `None` if they outlast the session, or change anything else.
fn file_label(suggestions: &[PermissionUpdate], rule_tool: &str) -> Option<String> {
    if suggestions.is_empty() {
        return None;
    }
    let is_write = rule_tool == "Edit";
    let mut directories = Vec::new();
    let (mut is_mode, mut is_all) = (false, false);
    for update in suggestions {
        if update.destination() != Some(PermissionUpdateDestination::Session) {
            return None;
        }
        match update {
            PermissionUpdate::SetMode(mode) if is_write && mode.mode == PermissionMode::AcceptEdits => {
                is_mode = true;
            }
            PermissionUpdate::AddDirectories(list) if is_write => {
                directories.extend(list.directories.iter().map(|path| directory(path)));
            }
            PermissionUpdate::AddRules(rules)
                if rules.behavior == PermissionBehavior::Allow
                    && rules.rules.iter().all(|rule| rule.tool_name == rule_tool) =>
            {
                for rule in &rules.rules {
                    match rule.rule_content.as_deref() {
                        Some(path) => directories.push(directory(path.strip_suffix("/**").unwrap_or(path))),
                        None => is_all = true,
                    }
                }
            }
            _ => return None,
        }
    }
    if is_all && !directories.is_empty() {
        return None;
    }
    Some(match (is_write, directories.is_empty()) {
        // The mode is not about these directories alone.
        (true, false) if is_mode => format!(
            "Yes, allow all edits during this session, in {} too",
            list(&directories)
        ),
        (true, true) => "Yes, allow all edits during this session".to_owned(),
        (true, false) => format!(
            "Yes, allow all edits in {} during this session",
            list(&directories)
        ),
        (false, true) => "Yes, during this session".to_owned(),
        (false, false) => format!(
            "Yes, allow reading from {} during this session",
            list(&directories)
        ),
    })
}

/// A path of a rule, whole and with a slash behind it: there may be many directories of one name.
fn directory(path: &str) -> String {
    let path = path.trim_end_matches('/');
    // In rules, two slashes begin a path from the root on.
    let path = path
        .strip_prefix('/')
        .filter(|path| path.starts_with('/'))
        .unwrap_or(path);
    format!("{path}/")
}

/// Joins names.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [others @ .., last] => format!("{}, and {last}", others.join(", ")),
    }
}

/// The host of a URL.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?;
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request(tool: &str, input: Value, suggestions: Value) -> PermissionRequest {
        let line = json!({"type": "control_request", "request_id": "r", "request": {
            "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t",
            "permission_suggestions": suggestions,
        }});
        let frame = outrigger::protocol::Frame::from_line(line.to_string()).remove(0);
        PermissionRequest::from_frame(&frame).expect("a request")
    }

    fn labels(tool: &str, input: Value, suggestions: Value) -> Vec<(String, String)> {
        choices(&request(tool, input, suggestions))
            .into_iter()
            .map(|choice| (choice.option.option_id.0.to_string(), choice.option.name))
            .collect()
    }

    fn lasting_label(tool: &str, input: Value, suggestions: Value) -> Option<String> {
        let labels = labels(tool, input, suggestions);
        assert_eq!(labels.first().map(|(id, _)| id.as_str()), Some("allow-once"));
        assert_eq!(labels.last().map(|(id, _)| id.as_str()), Some("reject"));
        labels
            .into_iter()
            .find(|(id, _)| id == "allow-with-updates")
            .map(|(_, name)| name)
    }

    #[test]
    fn a_lasting_choice_says_what_it_changes() {
        let rule = |tool: &str, content: &str| {
            json!([{"type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": tool, "ruleContent": content}]}])
        };
        let bash = json!({"command": "cargo test"});
        assert_eq!(
            lasting_label("Bash", bash.clone(), rule("Bash", "cargo test:*")).as_deref(),
            Some("Yes, and don't ask again for cargo test commands")
        );
        assert_eq!(
            lasting_label("Bash", bash.clone(), rule("Read", "//home/me/src/**")).as_deref(),
            Some("Yes, allow reading from /home/me/src/ from this project")
        );
        let mode = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        assert_eq!(
            lasting_label("Write", json!({"file_path": "/a"}), mode.clone()).as_deref(),
            Some("Yes, allow all edits during this session")
        );
        let fetch = json!({"url": "https://me@example.com:8443/a?b"});
        assert_eq!(
            lasting_label("WebFetch", fetch, json!([])).as_deref(),
            Some("Yes, and don't ask again for example.com")
        );
        // What the label would not say is not offered.
        assert_eq!(lasting_label("Bash", bash.clone(), mode), None);
        assert_eq!(
            lasting_label("Bash", bash.clone(), rule("Write", "/etc/**")),
            None
        );
        assert_eq!(lasting_label("Bash", bash, json!([])), None);
        assert_eq!(
            lasting_label("mcp__a__b", json!({}), rule("mcp__a__c", "x")),
            None
        );
        let long = "x".repeat(80);
        assert_eq!(
            lasting_label(
                "Bash",
                json!({"command": "x"}),
                rule("Bash", &format!("{long}:*"))
            ),
            Some(format!("Yes, and don't ask again for {long} commands"))
        );
        let everywhere = json!([{"type": "addRules", "behavior": "allow", "destination": "userSettings",
            "rules": [{"toolName": "Bash", "ruleContent": "ls"}]}]);
        assert_eq!(lasting_label("Bash", json!({"command": "ls"}), everywhere), None);
        let all_files = json!([{"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Read", "ruleContent": "/a/**"}, {"toolName": "Read"}]}]);
        assert_eq!(
            lasting_label("Read", json!({"file_path": "/a/b"}), all_files),
            None
        );
        let broad = json!([{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]);
        assert_eq!(lasting_label("Write", json!({"file_path": "/a"}), broad), None);
        let for_good = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "userSettings"}]);
        assert_eq!(lasting_label("Write", json!({"file_path": "/a"}), for_good), None);
    }

    #[test]
    fn plans_are_approved_in_the_modes_that_there_are() {
        let ids = |modes: &[&str]| -> Vec<String> {
            let choices = plan_choices(modes, None).into_iter();
            choices
                .map(|choice| choice.option.option_id.0.to_string())
                .collect()
        };
        assert_eq!(
            ids(&["default", "plan"]),
            ["exit-plan-default", "exit-plan-accept-edits", "reject"]
        );
        assert_eq!(
            ids(&["default", "auto", "bypassPermissions"]),
            [
                "exit-plan-default",
                "exit-plan-auto",
                "exit-plan-bypass",
                "reject"
            ]
        );
    }

    #[test]
    fn a_plan_can_be_carried_out_in_a_new_conversation() {
        let of = |modes: &[&str], plan| -> Vec<PermissionChoice> {
            let choices = plan_choices(modes, plan).into_iter();
            choices.filter(|choice| choice.anew.is_some()).collect()
        };
        for (modes, id, name, mode) in [
            (
                &["auto", "bypassPermissions"][..],
                "exit-plan-clear-auto",
                "Yes, clear context and use auto mode",
                PermissionMode::Auto,
            ),
            (
                &["bypassPermissions"],
                "exit-plan-clear-bypass",
                "Yes, clear context and bypass permissions",
                PermissionMode::BypassPermissions,
            ),
            (
                &["default"],
                "exit-plan-clear-accept-edits",
                "Yes, clear context and auto-accept edits",
                PermissionMode::AcceptEdits,
            ),
        ] {
            let choices = of(modes, Some(" # First\n"));
            let [choice] = &choices[..] else {
                panic!("{choices:?}")
            };
            assert_eq!(choice.option.option_id.0.as_ref(), id);
            assert_eq!(choice.option.name, name);
            let plan = "# First".to_owned();
            assert_eq!(choice.anew, Some(Approved { plan, mode }));
            // The model does not go on where it is.
            assert!(matches!(choice.reply, PersonReply::Stop));
        }
        assert!(of(&["auto"], None).is_empty() && of(&["auto"], Some(" \n")).is_empty());
        // The first that lasts keeps the context.
        let all = plan_choices(&["auto"], Some("x")).into_iter();
        let mut options: Vec<_> = all.map(|choice| choice.option).collect();
        let lasts = |option: &&acp::PermissionOption| option.kind == acp::PermissionOptionKind::AllowAlways;
        let first = options.iter().find(lasts).expect("one lasts");
        assert_eq!(first.option_id.0.as_ref(), "exit-plan-auto");

        fit_clearing(&mut options, true, Some(42));
        assert_eq!(options[2].name, "Yes, clear context (42% used) and use auto mode");
        assert_eq!(options.len(), 4);
        fit_clearing(&mut options, false, None);
        assert_eq!(options.len(), 3);
    }

    /// A lasting choice that may not be sent would have the call denied.
    #[test]
    fn a_skill_is_allowed_for_good_by_a_rule_that_may_be_sent() {
        let rules = |tool: &str, input: Value| -> Vec<String> {
            let choices = choices(&request(tool, input, json!([])));
            let updates = choices.into_iter().filter_map(|choice| match choice.reply {
                PersonReply::Always(updates) => Some(updates),
                _ => None,
            });
            let rules = updates.flatten().map(|update| match update {
                PermissionUpdate::AddRules(update) => update.rules[0].to_string(),
                other => panic!("{other:?}"),
            });
            rules.collect()
        };
        for (skill, expected) in [
            ("commit", vec!["Skill(commit)"]),
            ("/commit", vec!["Skill(commit)"]),
            ("/commit all", vec!["Skill(commit all)", "Skill(commit:*)"]),
            ("mcp__server__*", vec![]),
            ("a(b", vec![]),
            ("/", vec![]),
        ] {
            assert_eq!(rules("Skill", json!({ "skill": skill })), expected, "{skill}");
        }
        for (url, expected) in [
            ("https://example.com/x", vec!["WebFetch(domain:example.com)"]),
            ("http://[::1]/x", vec![]),
            ("https://b\u{fc}cher.example/", vec![]),
        ] {
            assert_eq!(rules("WebFetch", json!({ "url": url })), expected, "{url}");
        }
    }
}
