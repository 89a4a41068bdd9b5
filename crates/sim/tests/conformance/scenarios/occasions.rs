//! Callbacks for every event, and what calls them.

use serde_json::{Value, json};

use super::{CALL, ECHO, TOUCH, WAIT, allow, nothing};
use crate::scenario::{Reply, Scenario};

/// All events for which a callback can be registered.
const EVENTS: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "PermissionDenied",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
];

fn registrations(events: &[&str]) -> Value {
    let hooks: serde_json::Map<String, Value> = events
        .iter()
        .map(|event| {
            (
                (*event).to_owned(),
                json!([{"hookCallbackIds": [format!("hook_{event}")]}]),
            )
        })
        .collect();
    json!({ "hooks": hooks })
}

fn all(name: &'static str) -> Scenario {
    Scenario::with_initialize(name, registrations(EVENTS))
        .answer("hook_callback", nothing)
        .answer("can_use_tool", allow)
}

fn only(name: &str, event: &str, answer: fn(&Value) -> Option<Reply>) -> Scenario {
    Scenario::with_initialize(name, registrations(&[event]))
        .answer("hook_callback", answer)
        .answer("can_use_tool", allow)
}

pub(super) fn occasions() -> Vec<Scenario> {
    let foreground = CALL.replace("RB", "false");
    let with_tool = foreground.replace(
        "%say from below",
        "%tool Bash {\\\"command\\\": \\\"touch made.txt\\\"}\\n%say from below",
    );
    vec![
        all("occasions_of_a_turn")
            .file("CLAUDE.md", "Be brief.\n")
            .turn(&format!("{TOUCH}\n%say done"))
            .turn("%tool Read {\"file_path\": \"{project}/none.txt\"}\n%say done"),
        all("occasions_of_a_stream")
            .flags("--include-partial-messages")
            .turn("%think hm\n%+say done"),
        all("occasions_of_an_agent").turn(&format!("{with_tool}\n%say done")),
        all("occasions_of_another_model")
            .turn("%say one")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .turn("%say two")
            .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
            .control(json!({"subtype": "apply_flag_settings", "settings": {"model": "claude-haiku-4-5-20251001"}}))
            .turn("%say three"),
        all("occasions_of_a_command")
            .file(".claude/commands/greet.md", "%say hello to $ARGUMENTS\n")
            .turn("/greet you and me"),
        all("occasions_of_clearing")
            .file("CLAUDE.md", "Be brief.\n")
            .turn("%say one")
            .turn("/clear")
            .turn("%say two"),
        all("occasions_of_a_failure")
            .variable("CLAUDE_CODE_MAX_RETRIES", "1")
            .turn("%error 400 n=99 msg=\"bad request\"\n%say done"),
        all("occasions_of_an_interrupt")
            .prompt("%delay 60000\n%say never")
            .until("system/init")
            .control(json!({"subtype": "interrupt"}))
            .until("result"),
        all("occasions_of_resuming")
            .turn("%say one")
            .then_process_with(registrations(EVENTS))
            .answer("hook_callback", nothing)
            .flag("--resume", "{session}")
            .turn("%say two"),
        Scenario::with_initialize("occasions_of_a_deferred_call", registrations(EVENTS))
            .answer("hook_callback", |request| {
                match request["input"]["hook_event_name"].as_str() {
                    Some("PreToolUse") => super::decision("defer"),
                    _ => nothing(request),
                }
            })
            .turn(&format!("{TOUCH}\n%say done"))
            .then_process_with(registrations(EVENTS))
            .answer("hook_callback", nothing)
            .answer("can_use_tool", allow)
            .flags("--await-initialize")
            .flag("--resume", "{session}")
            .until("result"),
        all("occasions_of_settings")
            .turn("%say one")
            .control(json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}))
            .control(json!({"subtype": "rename_session", "title": "Tea"}))
            .turn("%say two"),
        only("switch_denied", "PreModelSwitch", |_| {
            let output = json!({"hookEventName": "PreModelSwitch", "permissionDecision": "deny", "permissionDecisionReason": "no"});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn("%say one")
        .control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))
        .turn("%say two"),
        only("message_shown_otherwise", "MessageDisplay", |_| {
            let output = json!({"hookEventName": "MessageDisplay", "displayContent": "something else"});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn("%say one"),
        only("expansion_refused", "UserPromptExpansion", |_| {
            Some(Reply::Payload(json!({"decision": "block", "reason": "no commands"})))
        })
        .file(".claude/commands/greet.md", "%say hello to $ARGUMENTS\n")
        .turn("/greet you"),
        only("session_start_adds", "SessionStart", |_| {
            let output = json!({"hookEventName": "SessionStart", "additionalContext": "by the way"});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn("%say one")
        .turn("/clear")
        .turn(&format!("{ECHO}\n%say two")),
        Scenario::new("own_command")
            .file(".claude/commands/greet.md", "---\ndescription: Greets\nargument-hint: \"[whom]\"\n---\n%say hello to $ARGUMENTS\n")
            .turn("/greet you and me"),
        Scenario::new("words_of_own_commands")
            .file(".claude/commands/team/greet.md", "%say $1, $0, $2, $ARGUMENTS[0], $ARGUMENTS[2] of $ARGUMENTS\n")
            .file(".claude/commands/named.md", "---\narguments: whom how\n---\n%say $whom, $how, $0\n")
            .turn("/team:greet \"you and\" me")
            .turn("/team:greet")
            .turn("/named you well"),
    ]
}

/// Answers for another event than that of the hook.
fn misnamed(_: &Value) -> Option<Reply> {
    let output = json!({"hookEventName": "PostToolUse", "additionalContext": "x"});
    Some(Reply::Payload(json!({"hookSpecificOutput": output})))
}

/// Refuses prompts that are no directives: those that are folded in, and the ends of tasks.
fn refuses_others(request: &Value) -> Option<Reply> {
    let prompt = request["input"]["prompt"].as_str().unwrap_or_default();
    Some(Reply::Payload(if prompt.starts_with('%') {
        json!({})
    } else {
        json!({"decision": "block", "reason": "no"})
    }))
}

/// What else hooks decide about, and answers that are none.
pub(super) fn decisions() -> Vec<Scenario> {
    let agent = CALL.replace("RB", "false");
    let waits =
        "%tool Bash {\"command\": \"until [ -e go ]; do sleep 0.1; done\", \"run_in_background\": true}";
    let mut all: Vec<Scenario> = [
        "UserPromptSubmit",
        "PostToolBatch",
        "Stop",
        "SubagentStart",
        "SubagentStop",
    ]
    .into_iter()
    .map(|event| {
        let name = format!("answer_for_another_event_at_{event}");
        only(&name, event, misnamed).turn(&format!("{ECHO}\n{agent}\n%say done"))
    })
    .collect();
    all.push(
        only("hook_lets_the_model_try_again", "PermissionDenied", |_| {
            let output = json!({"hookEventName": "PermissionDenied", "retry": true});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .flags("--permission-mode plan")
        .turn(&format!("{TOUCH}\n%say done")),
    );
    all.push(
        only("hook_gives_an_input_that_does_not_fit", "PreToolUse", |_| {
            let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": 5}});
            Some(Reply::Payload(json!({"hookSpecificOutput": output})))
        })
        .turn(&format!("{TOUCH}\n%say done")),
    );
    for (name, answer) in [
        ("hears", nothing as fn(&Value) -> Option<Reply>),
        ("refuses", refuses_others),
    ] {
        all.push(
            only(
                &format!("hook_{name}_a_folded_prompt"),
                "UserPromptSubmit",
                answer,
            )
            .flags("--allowedTools Bash")
            .prompt_with(1, &format!("{WAIT}\n%say done"), json!({}))
            .until_file("runs")
            .prompt_with(2, "and this", json!({}))
            .until("command_lifecycle/queued")
            .until("command_lifecycle/queued")
            .make_file("go")
            .until("result"),
        );
        all.push(
            only(
                &format!("hook_{name}_the_end_of_a_task"),
                "UserPromptSubmit",
                answer,
            )
            .flags("--allowedTools Bash")
            .turn(&format!("{waits}\n%say done"))
            .make_file("go")
            .until("result"),
        );
        all.push(
            only(
                &format!("hook_{name}_the_end_of_a_task_in_a_turn"),
                "UserPromptSubmit",
                answer,
            )
            .flags("--allowedTools Bash")
            .prompt(&format!("{waits}\n{}\n%say done", WAIT.replace("go", "on")))
            .until_file("runs")
            .make_file("go")
            .until("system/task_notification")
            .make_file("on")
            .until("result"),
        );
    }
    all
}
