//! Answers as the CLI reads them, inputs as it writes them.

use serde_json::{Value, json};

use outrigger_protocol::drift;
use outrigger_protocol::shared::hook::event::*;
use outrigger_protocol::shared::hook::*;
use outrigger_protocol::tools::BashInput;

fn wire<E: HookKind>(output: HookOutput<E>) -> Value {
    let text = serde_json::to_string(&AnyHookOutput::from(output)).unwrap();
    let again: AnyHookOutput = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn answers_are_written_as_the_cli_reads_them() {
    assert_eq!(wire(HookOutput::<Stop>::none()), json!({}));
    assert_eq!(wire(HookOutput::<Stop>::in_background()), json!({"async": true}));
    assert_eq!(
        wire(HookOutput::<Stop>::block("go on").system_message("m")),
        json!({"decision":"block","reason":"go on","systemMessage":"m"})
    );
    assert_eq!(
        wire(HookOutput::<SessionEnd>::stop("enough")),
        json!({"continue":false,"stopReason":"enough"})
    );
    assert_eq!(
        wire(HookOutput::<PreToolUse>::specific(
            PreToolUseOutput::deny("no").updated_input(json!({})).unwrap()
        )),
        json!({"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",
            "permissionDecisionReason":"no","updatedInput":{}}})
    );
    let typed = BashInput::new("ls");
    assert_eq!(
        wire(HookOutput::<PreToolUse>::specific(
            PreToolUseOutput::default().updated_input(&typed).unwrap()
        )),
        json!({"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls"}}})
    );
    assert!(PreToolUseOutput::default().updated_input("ls").is_err());
    let allow = PermissionRequestAllow::default().updated_input(typed).unwrap();
    assert_eq!(
        wire(HookOutput::<PermissionRequest>::specific(
            PermissionRequestDecision::Allow(allow).into()
        )),
        json!({"hookSpecificOutput":{"hookEventName":"PermissionRequest",
            "decision":{"behavior":"allow","updatedInput":{"command":"ls"}}}})
    );
    assert_eq!(
        wire(HookOutput::<TaskCompleted>::none()),
        json!({}),
        "an event without own answers still has the common part"
    );
    assert_eq!(
        wire(HookOutput::<Notification>::specific(ContextOutput::new("c"))),
        json!({"hookSpecificOutput":{"hookEventName":"Notification","additionalContext":"c"}})
    );
    assert_eq!(
        wire(HookOutput::<PermissionRequest>::specific(
            PermissionRequestDecision::Deny(PermissionRequestDeny::default().message("no").interrupt(true))
                .into()
        )),
        json!({"hookSpecificOutput":{"hookEventName":"PermissionRequest",
            "decision":{"behavior":"deny","message":"no","interrupt":true}}})
    );
    assert_eq!(
        wire(HookOutput::<WorktreeCreate>::specific(WorktreeCreateOutput::new(
            "/w"
        ))),
        json!({"hookSpecificOutput":{"hookEventName":"WorktreeCreate","worktreePath":"/w"}})
    );
    assert_eq!(
        wire(HookOutput::<PostToolUse>::specific(
            PostToolUseOutput::default().updated_mcp_tool_output(json!([1]))
        )),
        json!({"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedMCPToolOutput":[1]}})
    );
}

#[test]
fn every_event_reads_its_input() {
    let base = json!({"session_id":"s","transcript_path":"/t","cwd":"/c","prompt_id":"p","permission_mode":"plan",
        "effort":{"level":"low"},"agent_id":"a","agent_type":"b"});
    let own = [
        (
            "PreToolUse",
            json!({"tool_name":"Bash","tool_input":{},"tool_use_id":"t","mcp_server":{"name":"n","source":"sdk"}}),
        ),
        (
            "PostToolUse",
            json!({"tool_name":"Bash","tool_input":{},"tool_response":"x","tool_use_id":"t","duration_ms":1.5}),
        ),
        (
            "PostToolUseFailure",
            json!({"tool_name":"Bash","tool_input":{},"tool_use_id":"t","error":"e","is_interrupt":false}),
        ),
        (
            "PostToolBatch",
            json!({"tool_calls":[{"tool_name":"Bash","tool_input":{},"tool_use_id":"t","tool_response":1}]}),
        ),
        (
            "Notification",
            json!({"message":"m","title":"t","notification_type":"n"}),
        ),
        (
            "UserPromptSubmit",
            json!({"prompt":"p","source":"sdk","session_title":"t"}),
        ),
        (
            "UserPromptExpansion",
            json!({"expansion_type":"slash_command","command_name":"c","command_args":"","command_source":"s","prompt":"p"}),
        ),
        (
            "SessionStart",
            json!({"source":"fork","model":"m","seconds_since_last_response":2.5,"context_tokens":3,"prompt_cache_likely_expired":true,"estimated_cache_write_usd":0.1}),
        ),
        ("SessionEnd", json!({"reason":"other"})),
        (
            "Stop",
            json!({"stop_hook_active":false,"last_assistant_message":"m","background_tasks":[{"id":"i","type":"shell","status":"running","description":"d","command":"c"}],"session_crons":[{"id":"i","schedule":"* * * * *","recurring":true,"prompt":"p"}]}),
        ),
        (
            "StopFailure",
            json!({"error":"overloaded","error_details":"d","last_assistant_message":"m"}),
        ),
        ("SubagentStart", json!({})),
        (
            "SubagentStop",
            json!({"stop_hook_active":true,"agent_transcript_path":"/a","background_tasks":[],"session_crons":[]}),
        ),
        ("PreCompact", json!({"trigger":"auto","custom_instructions":null})),
        ("PostCompact", json!({"trigger":"manual","compact_summary":"s"})),
        (
            "PreModelSwitch",
            json!({"from_model":"a","to_model":"b","requested_model":null,"source":"sdk","context_tokens":1,"prompt_cache_warm":true,"cache_ttl":"5m","estimated_cache_write_usd":0.5,"pricing":"catalog"}),
        ),
        (
            "PostModelSwitch",
            json!({"from_model":"a","to_model":"b","requested_model":"b","source":"resume","context_tokens":1,"prompt_cache_warm":true,"cache_ttl":"1h","estimated_cache_write_usd":0,"pricing":"default"}),
        ),
        (
            "PermissionRequest",
            json!({"tool_name":"Bash","tool_input":{},"permission_suggestions":[{"type":"setMode","mode":"plan","destination":"session"}],"tool_kind":"mcp_skill","mcp_skill":{"name":"n","version":"1"}}),
        ),
        (
            "PermissionDenied",
            json!({"tool_name":"Bash","tool_input":{},"tool_use_id":"t","reason":"r"}),
        ),
        ("Setup", json!({"trigger":"init"})),
        ("TeammateIdle", json!({"teammate_name":"a","team_name":"b"})),
        (
            "TaskCreated",
            json!({"task_id":"i","task_subject":"s","task_description":"d","teammate_name":"a","team_name":"b"}),
        ),
        ("TaskCompleted", json!({"task_id":"i","task_subject":"s"})),
        (
            "Elicitation",
            json!({"mcp_server_name":"n","message":"m","mode":"url","url":"u","elicitation_id":"e","requested_schema":{}}),
        ),
        (
            "ElicitationResult",
            json!({"mcp_server_name":"n","elicitation_id":"e","mode":"form","action":"accept","content":{}}),
        ),
        ("ConfigChange", json!({"source":"skills","file_path":"/f"})),
        ("WorktreeCreate", json!({"name":"n"})),
        ("WorktreeRemove", json!({"worktree_path":"/w"})),
        (
            "InstructionsLoaded",
            json!({"file_path":"/f","memory_type":"User","load_reason":"include","globs":["*"],"trigger_file_path":"/t","parent_file_path":"/p"}),
        ),
        ("CwdChanged", json!({"old_cwd":"/a","new_cwd":"/b"})),
        ("FileChanged", json!({"file_path":"/f","event":"unlink"})),
        (
            "DirectoryAdded",
            json!({"directory":"/d","source":"slash_command"}),
        ),
        (
            "MessageDisplay",
            json!({"turn_id":"t","message_id":"m","index":0,"final":true,"delta":"d"}),
        ),
        (
            "PreSkillShellCommand",
            json!({"tool_name":"Bash","tool_input":{"command":"c"},"tool_use_id":"t","command_name":"n","command_source":"s","invoked_by":"user"}),
        ),
    ];
    let names: Vec<_> = own.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, HookEvent::KNOWN);
    for (name, own) in own {
        let mut value = base.clone();
        let object = value.as_object_mut().unwrap();
        object.extend(own.as_object().unwrap().clone());
        object.insert("hook_event_name".to_owned(), json!(name));
        let (input, drift) = drift::watch(|| serde_json::from_str::<HookInput>(&value.to_string()).unwrap());
        assert_eq!(drift, [], "{name}");
        assert_eq!(input.event().as_str(), name);
        assert_eq!(
            input.base().map(|base| (base.session_id, base.effort)),
            Some(("s", Some("low")))
        );
        let again = serde_json::to_value(&input).unwrap();
        assert_eq!(crate::support::uncovered(&value, &again), [""; 0], "{name}");
    }
}

#[test]
fn an_unknown_event_is_kept() {
    let input: HookInput = serde_json::from_str(r#"{"hook_event_name":"Sunrise","hue":"red"}"#).unwrap();
    assert!(matches!(input, HookInput::Unknown(_)));
    assert_eq!(input.event().as_str(), "Sunrise");
    assert!(input.base().is_none());
}

#[test]
fn an_input_is_written_as_it_came_without_a_null_for_what_is_absent() {
    let came = r#"{"session_id":"s","transcript_path":"/t","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    let input: PreToolUseInput = serde_json::from_str(came).unwrap();
    assert_eq!(serde_json::to_string(&input).unwrap(), came);
}
