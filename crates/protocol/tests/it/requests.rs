//! Each request, written as the CLI reads it.

use serde_json::{Map, Value, json};

use outrigger_protocol::outbound::control::*;
use outrigger_protocol::outbound::{
    AttachServeRequest, HookCallbackMatcher, HookFailure, Initialize, ManifestsOrigin, OnPersonsMachine,
    OutboundLine, SdkMcpServerManifest, SdkMcpServerSettings, WhenUnanswered, WorkspaceTrust, encode_request,
};
use outrigger_protocol::shared::{
    AgentDefinition, HookEvent, JsonObject, McpServerConfig, McpStdioServerConfig, PermissionMode,
    PluginConfig, RequestId, SystemPrompt,
};
use outrigger_protocol::{RawJson, drift};

/// Encodes a request and compares it; returns its subtype.
fn check<R: ControlRequest>(request: R, fields: Value) -> &'static str {
    let line = encode_request(&RequestId::from("r"), &request).unwrap();
    let written: Value = serde_json::from_slice(&line).unwrap();
    let Value::Object(fields) = fields else {
        panic!("fields are an object");
    };
    let mut wanted = Map::from_iter([("subtype".to_owned(), json!(R::SUBTYPE))]);
    wanted.extend(fields);
    assert_eq!(
        written,
        json!({"type":"control_request","request_id":"r","request":wanted})
    );
    // The other side reads the same.
    let (read, drift) = drift::watch(|| serde_json::from_slice::<OutboundLine>(&line).unwrap());
    assert_eq!(drift, [], "{}", R::SUBTYPE);
    assert_eq!(serde_json::to_value(&read).unwrap(), written);
    R::SUBTYPE
}

fn object(value: Value) -> JsonObject {
    JsonObject::try_from(value).unwrap()
}

#[test]
fn requests_are_as_the_cli_reads_them() {
    let stdio = || McpServerConfig::Stdio(McpStdioServerConfig::new("x", ["y"]));
    let checked = [
        check(Interrupt::new(), json!({})),
        check(
            Interrupt::new()
                .cancel_queued(true)
                .reason("user-cancel")
                .send_now(false)
                .message_uuid("u")
                .for_user_message_uuids(vec!["u".to_owned()])
                .spare_background_tasks(true)
                .worker_epoch(1u64),
            json!({"cancel_queued":true,"reason":"user-cancel","send_now":false,"message_uuid":"u",
                "for_user_message_uuids":["u"],"spare_background_tasks":true,"worker_epoch":1}),
        ),
        check(CancelAsyncMessage::new("u"), json!({"message_uuid":"u"})),
        check(EndSession::new().reason("done"), json!({"reason":"done"})),
        check(
            SetHasSubscribers::new(Some(true)),
            json!({"has_subscribers":true}),
        ),
        check(
            SetHasSubscribers::new(None::<bool>),
            json!({"has_subscribers":null}),
        ),
        check(SetMessageWaiting::new(true), json!({"waiting":true})),
        check(PromptDraftActivity::new(), json!({})),
        check(SetPromptSuggestionsPaused::new(true), json!({"paused":true})),
        check(
            SetPermissionMode::new(PermissionMode::AcceptEdits)
                .answers_bypass_switch_back(BypassSwitchBack::Now),
            json!({"mode":"acceptEdits","answers_bypass_switch_back":"bypass_now"}),
        ),
        check(ListPermissionRules::new(), json!({})),
        check(
            SetMcpPermissionModeOverride::new("lab", McpPermissionMode::Auto)
                .ask_for_tools(vec![ToolName::from("echo")]),
            json!({"serverName":"lab","mode":"auto","askForTools":[{"name":"echo"}]}),
        ),
        check(
            SetMcpPermissionModeOverride::new("lab", None::<McpPermissionMode>),
            json!({"serverName":"lab","mode":null}),
        ),
        check(SetModel::new(), json!({})),
        check(SetModel::new().model(None), json!({"model":null})),
        check(
            SetModel::new()
                .model(Some("sonnet".to_owned()))
                .system_prompt("s"),
            json!({"model":"sonnet","system_prompt":"s"}),
        ),
        check(ListModels::new(), json!({})),
        check(
            SetMaxThinkingTokens::new()
                .max_thinking_tokens(Some(5000))
                .thinking_display(Some(LiveThinkingDisplay::Omitted)),
            json!({"max_thinking_tokens":5000,"thinking_display":"omitted"}),
        ),
        check(
            SetMaxThinkingTokens::new().max_thinking_tokens(None),
            json!({"max_thinking_tokens":null}),
        ),
        check(McpStatus::new().live_reply(true), json!({"liveReply":true})),
        check(
            McpSetServers::new([("lab".to_owned(), stdio())]),
            json!({"servers":{"lab":{"type":"stdio","command":"x","args":["y"]}}}),
        ),
        check(
            McpMessage::new("calc", json!({"jsonrpc":"2.0","method":"m"})),
            json!({"server_name":"calc","message":{"jsonrpc":"2.0","method":"m"}}),
        ),
        check(McpReconnect::new("lab"), json!({"serverName":"lab"})),
        check(
            McpToggle::new("lab", false),
            json!({"serverName":"lab","enabled":false}),
        ),
        check(
            McpCall::new("mcp__lab__echo")
                .arguments(object(json!({"text":"x"})))
                .timeout_ms(5u64)
                .check_permissions(true)
                .input_files(vec![McpCallInputFile::new("n", "p")])
                .output_files(vec![McpCallOutputFile::new("n", "p")]),
            json!({"tool":"mcp__lab__echo","arguments":{"text":"x"},"timeout_ms":5,"check_permissions":true,
                "input_files":[{"name":"n","lane_path":"p"}],"output_files":[{"name":"n","lane_path":"p"}]}),
        ),
        check(
            McpReadResource::new("lab", "ui://a"),
            json!({"serverName":"lab","uri":"ui://a"}),
        ),
        check(
            McpAuthenticate::new("lab").redirect_uri("http://localhost/"),
            json!({"serverName":"lab","redirectUri":"http://localhost/"}),
        ),
        check(McpClearAuth::new("lab"), json!({"serverName":"lab"})),
        check(
            McpOauthCallbackUrl::new("lab", "http://localhost/?code=1"),
            json!({"serverName":"lab","callbackUrl":"http://localhost/?code=1"}),
        ),
        check(ChannelEnable::new("lab"), json!({"serverName":"lab"})),
        check(ReloadConnectors::new(), json!({})),
        check(
            RewindFiles::new("u").dry_run(true),
            json!({"user_message_id":"u","dry_run":true}),
        ),
        check(
            ReadFile::new("README.md")
                .max_bytes(4u64)
                .encoding(FileEncoding::Base64)
                .anchor(FileAnchor::Repo(RepoAnchor::new("r"))),
            json!({"path":"README.md","max_bytes":4,"encoding":"base64","anchor":{"kind":"repo","repo":"r"}}),
        ),
        check(ListDirectory::new("."), json!({"path":"."})),
        check(FileSuggestions::new("READ"), json!({"query":"READ"})),
        check(
            SeedReadState::new("/p", 1_795_296_322_384.0),
            json!({"path":"/p","mtime":1_795_296_322_384.0}),
        ),
        check(
            RegisterRepoRoot::new("/p").reload_claude_md(true),
            json!({"directory":"/p","reload_claude_md":true}),
        ),
        check(
            SetCwd::new("/p").trust_accepted(true).trusted_directory("/p"),
            json!({"path":"/p","trust_accepted":true,"trusted_directory":"/p"}),
        ),
        check(GetWorkspaceDiff::new(), json!({})),
        check(
            RenameSession::new("t").source(TitleSource::Host),
            json!({"title":"t","source":"host"}),
        ),
        check(SetColor::new("blue"), json!({"color":"blue"})),
        check(
            GenerateSessionTitle::new("d").persist(false),
            json!({"description":"d","persist":false}),
        ),
        check(
            ClaimSession::new("/p")
                .include_initialize(true)
                .agents([("a".to_owned(), AgentDefinition::new("d", "p"))]),
            json!({"cwd":"/p","include_initialize":true,"agents":{"a":{"description":"d","prompt":"p"}}}),
        ),
        check(ExportConversation::new(), json!({})),
        check(GetPlan::new(), json!({})),
        check(
            RemoteControl::new(true).name("n").keep_session_on_exit(true),
            json!({"enabled":true,"name":"n","keep_session_on_exit":true}),
        ),
        check(
            GetContextUsage::new().detail(ContextDetail::Summary),
            json!({"detail":"summary"}),
        ),
        check(GetSessionCost::new(), json!({})),
        check(
            GetUsage::new().skip_behaviors(true),
            json!({"skip_behaviors":true}),
        ),
        check(GetBinaryVersion::new(), json!({})),
        check(
            ApplyFlagSettings::new(object(json!({"model":"m"}))),
            json!({"settings":{"model":"m"}}),
        ),
        check(GetSettings::new(), json!({})),
        check(
            UpdateSettings::new(
                WritableSettings::LocalSettings,
                object(json!({"outputStyle":"x"})),
            ),
            json!({"source":"localSettings","settings":{"outputStyle":"x"}}),
        ),
        check(GetHooksListing::new(), json!({})),
        check(
            ReloadPlugins::new()
                .refuse_if_busy(true)
                .add_plugins(vec![PluginConfig::local("/p")]),
            json!({"refuse_if_busy":true,"add_plugins":[{"type":"local","path":"/p"}]}),
        ),
        check(ReloadSkills::new(), json!({})),
        check(ReloadOutputStyles::new(), json!({})),
        check(StopTask::new("t"), json!({"task_id":"t"})),
        check(
            BackgroundTasks::new().tool_use_id("t"),
            json!({"tool_use_id":"t"}),
        ),
        check(GetTaskOutput::new("t"), json!({"task_id":"t"})),
        check(
            StartShellTask::new("ls")
                .args(vec!["-l".to_owned()])
                .timeout_ms(5u64),
            json!({"command":"ls","args":["-l"],"timeout_ms":5}),
        ),
        check(SideQuestion::new("q"), json!({"question":"q"})),
        check(
            MessageRated::new("u", Sentiment::Positive).surface(RatedSurface::ToolUse),
            json!({"messageUuid":"u","sentiment":"positive","surface":"tool_use"}),
        ),
        check(
            SubmitFeedback::new("d").kind(FeedbackKind::Idea),
            json!({"description":"d","type":"idea"}),
        ),
        check(
            SubmitSurveyFeedback::new("", "a", SurveyResponse::Good, SurveyType::Session),
            json!({"description":"","appearance_id":"a","survey_response":"good","survey_type":"session"}),
        ),
        check(
            ClaudeAuthenticate::new().login_with_claude_ai(false),
            json!({"loginWithClaudeAi":false}),
        ),
        check(
            ClaudeOauthCallback::new("c", "s"),
            json!({"authorizationCode":"c","state":"s"}),
        ),
        check(ClaudeOauthWaitForCompletion::new(), json!({})),
        check(GetMemoryDialog::new(), json!({})),
        check(GetSkillsDialog::new(), json!({})),
        check(GetStatus::new(), json!({})),
        check(GetSandboxDialog::new(), json!({})),
        check(GetChromeDialog::new(), json!({})),
        check(GetChromeBrowsers::new(), json!({})),
        check(SelectChromeBrowser::new("d"), json!({"device_id":"d"})),
        check(
            SetChromeBrowserHints::new(vec!["d".to_owned()])
                .host_platform(HostPlatform::Linux)
                .preferred_device_id(None),
            json!({"localDeviceIds":["d"],"hostPlatform":"linux","preferredDeviceId":null}),
        ),
        check(
            Dictate::new(DictateOp::Audio).pcm("AA=="),
            json!({"op":"audio","pcm":"AA=="}),
        ),
        check(Initialize::new(), json!({})),
    ];
    let missing: Vec<_> = OutboundRequest::KNOWN
        .iter()
        .filter(|subtype| !checked.contains(subtype))
        .collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}

#[test]
fn initialize_is_as_the_cli_reads_it() {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let mut settings = SdkMcpServerSettings::default();
    settings.timeout = Some(5);
    settings.on_persons_machine = Some(OnPersonsMachine {
        except_tools: texts(&["t"]),
    });
    let full = Initialize::new()
        .hook(
            &HookEvent::PreToolUse,
            HookCallbackMatcher::new(["h1", "h2"])
                .matcher("Bash")
                .timeout(30.0)
                .on_failure(HookFailure::Block),
        )
        .hook(&HookEvent::Stop, {
            let mut matcher = HookCallbackMatcher::new(["h3"]);
            matcher.when_unanswered = Some(WhenUnanswered::new(2.5, ["/w"]));
            matcher
        })
        .sdk_mcp_servers(texts(&["calc"]))
        .sdk_mcp_server_configs([("calc".to_owned(), settings)])
        .sdk_mcp_server_manifests([(
            "calc".to_owned(),
            SdkMcpServerManifest::new(object(json!({"protocolVersion":"2025-11-25"})), None),
        )])
        .sdk_mcp_server_manifests_origin(ManifestsOrigin::HostPerSend)
        .json_schema(object(json!({"type":"object"})))
        .prompt(Some(&SystemPrompt::preset_and("also")))
        .plan_mode_instructions("plan")
        .append_subagent_system_prompt("sub")
        .tool_aliases([("Shell".to_owned(), "Bash".to_owned())])
        .code_running_mcp_tools([("lab".to_owned(), texts(&["run"]))])
        .agents([("a".to_owned(), AgentDefinition::new("d", "p"))])
        .title("t")
        .skills(texts(&["s"]))
        .web_search_isolation_exempt_mcp_servers(texts(&["lab"]))
        .prompt_suggestions(true)
        .agent_progress_summaries(true)
        .forward_subagent_text(true)
        .supported_dialog_kinds(texts(&["k"]))
        .renders_chrome_setup_offer(true)
        .per_task_stop_affordance(true)
        .forward_nested_subagent_tool_calls(true)
        .offers_bypass_switch_back(true)
        .keeps_bypass_held(true)
        .rapid_followup_preempt(true)
        .cloud_echo_before_init(true)
        .cloud_status_before_init(true)
        .plugins(vec![PluginConfig::local("/p").skip_mcp_discovery()])
        .mcp_servers([(
            "lab".to_owned(),
            McpServerConfig::Stdio(McpStdioServerConfig::new("x", ["y"])),
        )])
        .managed_settings(object(json!({"a":1})))
        .settings(object(json!({"b":2})))
        .disallowed_tools(texts(&["Bash"]))
        .workspace_trust(WorkspaceTrust {
            accepted: true,
            directory: "/p".into(),
        })
        .attach_serve_request(AttachServeRequest {
            work_id: "w".into(),
            environment_id: "e".into(),
            resume_only: Some(true),
        });
    check(
        full,
        json!({
            "hooks": {
                "PreToolUse": [{"matcher":"Bash","hookCallbackIds":["h1","h2"],"timeout":30.0,"onFailure":"block"}],
                "Stop": [{"hookCallbackIds":["h3"],"whenUnanswered":{"afterSeconds":2.5,"within":["/w"]}}],
            },
            "sdkMcpServers": ["calc"],
            "sdkMcpServerConfigs": {"calc":{"timeout":5,"onPersonsMachine":{"exceptTools":["t"]}}},
            "sdkMcpServerManifests": {"calc":{"initializeResult":{"protocolVersion":"2025-11-25"}}},
            "sdkMcpServerManifestsOrigin": "host_per_send",
            "jsonSchema": {"type":"object"},
            "appendSystemPrompt": "also",
            "planModeInstructions": "plan",
            "appendSubagentSystemPrompt": "sub",
            "toolAliases": {"Shell":"Bash"},
            "codeRunningMcpTools": {"lab":["run"]},
            "agents": {"a":{"description":"d","prompt":"p"}},
            "title": "t",
            "skills": ["s"],
            "webSearchIsolationExemptMcpServers": ["lab"],
            "promptSuggestions": true,
            "agentProgressSummaries": true,
            "forwardSubagentText": true,
            "supportedDialogKinds": ["k"],
            "rendersChromeSetupOffer": true,
            "perTaskStopAffordance": true,
            "forwardNestedSubagentToolCalls": true,
            "offersBypassSwitchBack": true,
            "keepsBypassHeld": true,
            "rapidFollowupPreempt": true,
            "cloudEchoBeforeInit": true,
            "cloudStatusBeforeInit": true,
            "plugins": [{"type":"local","path":"/p","skipMcpDiscovery":true}],
            "mcpServers": {"lab":{"type":"stdio","command":"x","args":["y"]}},
            "managedSettings": {"a":1},
            "settings": {"b":2},
            "disallowedTools": ["Bash"],
            "workspaceTrust": {"accepted":true,"directory":"/p"},
            "attachServeRequest": {"workId":"w","environmentId":"e","resumeOnly":true},
        }),
    );
}

#[test]
fn system_prompts_are_spread_over_their_fields() {
    let fields =
        |prompt: Option<&SystemPrompt>| serde_json::to_value(Initialize::new().prompt(prompt)).unwrap();
    assert_eq!(fields(None), json!({"systemPrompt":[""]}));
    assert_eq!(fields(Some(&"s".into())), json!({"systemPrompt":["s"]}));
    assert_eq!(fields(Some(&SystemPrompt::PRESET)), json!({}));
    assert_eq!(
        fields(Some(&SystemPrompt::Preset {
            append: Some("a".into()),
            exclude_dynamic_sections: Some(true),
            snapshot: Some(false),
        })),
        json!({"appendSystemPrompt":"a","excludeDynamicSections":true,"systemPromptSnapshot":false})
    );
    assert_eq!(
        fields(Some(&SystemPrompt::Custom {
            prompt: vec!["a".into(), "b".into()],
            snapshot: Some(true),
        })),
        json!({"systemPrompt":["a","b"],"systemPromptSnapshot":true})
    );
}

#[test]
fn fields_without_a_type_can_be_sent() {
    let mut initialize = Initialize::new().title("t");
    initialize
        .extra
        .insert("sunrise".to_owned(), json!({"hue":"red"}).into());
    let line = encode_request(&RequestId::from("r"), &initialize).unwrap();
    let written: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(
        written["request"],
        json!({"subtype":"initialize","title":"t","sunrise":{"hue":"red"}})
    );
}

#[test]
fn acknowledgements_may_say_nothing_or_more() {
    for payload in [None, Some("null"), Some("{}"), Some(r#"{"newer":1}"#)] {
        let payload = payload.map(|text| RawJson::from_text(text).unwrap());
        assert_eq!(StopTask::read_reply(payload.as_ref()).unwrap(), Ack {});
    }
    assert_eq!(
        Interrupt::read_reply(None).unwrap().still_queued,
        Vec::<String>::new()
    );
    assert!(check_reply("no_such_subtype", &RawJson::null()).is_none());
    assert!(check_reply("get_task_output", &RawJson::null()).unwrap().is_err());
}

#[test]
fn replies_by_status_are_told_apart() {
    let read = |text: &str| SetCwd::read_reply(Some(&RawJson::from_text(text).unwrap())).unwrap();
    let done = r#"{"status":"ok","cwd":"/p","changed":true,"transcript_relocated":false}"#;
    assert!(matches!(read(done), SetCwdReply::Done(set) if set.changed));
    let needs = r#"{"status":"needs_trust","directory":"/p"}"#;
    assert!(matches!(read(needs), SetCwdReply::NeedsTrust(needs) if needs.directory == "/p"));
    let rejected = r#"{"status":"rejected","reason":"busy","message":"m"}"#;
    assert!(matches!(read(rejected), SetCwdReply::Rejected(why) if why.reason == CwdRejection::Busy));
    assert!(matches!(
        read(r#"{"status":"dreaming"}"#),
        SetCwdReply::Unknown(_)
    ));
}
