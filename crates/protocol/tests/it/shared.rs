//! What must be on the wire, and what cannot get there.

use serde_json::{Value, json};

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::*;

fn wire<T: serde::Serialize>(value: &T) -> Value {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

fn round<T: serde::Serialize + serde::de::DeserializeOwned>(value: Value) {
    let text = value.to_string();
    let read: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(wire(&read), value);
}

#[test]
fn permission_updates_round_trip() {
    for update in [
        json!({"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls:*"}],"behavior":"allow","destination":"session"}),
        json!({"type":"replaceRules","rules":[{"toolName":"Bash"}],"behavior":"deny","destination":"userSettings"}),
        json!({"type":"removeRules","rules":[],"behavior":"ask","destination":"localSettings"}),
        json!({"type":"setMode","mode":"acceptEdits","destination":"session"}),
        json!({"type":"addDirectories","directories":["/a"],"destination":"cliArg"}),
        json!({"type":"removeDirectories","directories":["/a"],"destination":"projectSettings"}),
        // Newer than this build: echoed as they came.
        json!({"type":"setWeather","sunny":true}),
        json!({"type":"setMode","mode":"delegate","destination":"session"}),
    ] {
        round::<PermissionUpdate>(update);
    }
}

#[test]
fn a_rule_never_has_a_null_content() {
    let rule: PermissionRuleValue =
        serde_json::from_value(json!({"toolName":"Bash","ruleContent":null})).unwrap();
    assert_eq!(serde_json::to_string(&rule).unwrap(), r#"{"toolName":"Bash"}"#);
    assert_eq!(rule.to_string(), "Bash");
    assert_eq!(
        PermissionRuleValue::calls("Bash", "ls:*").to_string(),
        "Bash(ls:*)"
    );
}

#[test]
fn decisions_are_written_as_the_cli_reads_them() {
    let text = |result: PermissionResult| serde_json::to_string(&result).unwrap();
    assert_eq!(text(PermissionResult::allow()), r#"{"behavior":"allow"}"#);
    assert_eq!(
        text(
            PermissionAllow::default()
                .updated_input(json!({"command":"ls"}))
                .unwrap()
                .updated_permissions([PermissionUpdate::set_mode(
                    PermissionMode::AcceptEdits,
                    PermissionUpdateDestination::Session
                )])
                .decision_classification(PermissionDecisionClassification::UserPermanent)
                .into()
        ),
        r#"{"behavior":"allow","updatedInput":{"command":"ls"},"updatedPermissions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}],"decisionClassification":"user_permanent"}"#
    );
    assert_eq!(
        text(PermissionResult::deny("no")),
        r#"{"behavior":"deny","message":"no"}"#
    );
    assert_eq!(
        text(PermissionDeny::new("no").interrupt().into()),
        r#"{"behavior":"deny","message":"no","interrupt":true}"#
    );
}

#[test]
fn malformed_decisions_are_not_read() {
    for bad in [
        json!({"allowed":true}),
        json!({}),
        json!(null),
        json!({"behavior":"ask"}),
        json!({"behavior":"maybe"}),
        json!({"behavior":"deny"}),
        json!({"behavior":"allow","updatedInput":[1]}),
        json!({"behavior":"allow","updatedInput":null}),
        json!({"behavior":"deny","message":"no","interrupt":null}),
        json!({"behavior":"allow","decisionClassification":"whim"}),
    ] {
        assert!(
            serde_json::from_value::<PermissionResult>(bad.clone()).is_err(),
            "{bad}"
        );
        assert!(
            serde_json::from_str::<PermissionResult>(&bad.to_string()).is_err(),
            "{bad}"
        );
    }
    for bad in ["[]", "null", "\"x\"", "1", "true"] {
        assert!(JsonObject::try_from(RawJson::from_text(bad).unwrap()).is_err());
    }
}

#[test]
fn servers_round_trip_and_always_have_args() {
    for config in [
        json!({"type":"stdio","command":"x","args":[],"env":{"A":"b"},"timeout":5,"alwaysLoad":true}),
        json!({"type":"http","url":"http://h","headers":{"X":"y"},"tools":[{"name":"t","permission_policy":"always_ask","org_max_permission":"blocked"}]}),
        json!({"type":"http","url":"http://h","headersHelper":"print-headers","oauth":{"clientId":"c","newer":1}}),
        json!({"type":"sse","url":"http://h","displayName":"H"}),
        json!({"type":"ws","url":"ws://h","headers":{"X":"y"}}),
        json!({"type":"sdk","name":"calc","timeout":1,"alwaysLoad":true}),
        json!({"type":"stdio","command":"x","args":[],"bareElicitationCapability":true}),
    ] {
        round::<McpServerConfig>(config.clone());
        round::<McpServerStatusConfig>(config);
    }
    let bare: McpServerConfig = serde_json::from_str(r#"{"command":"x"}"#).unwrap();
    assert_eq!(wire(&bare), json!({"type":"stdio","command":"x","args":[]}));
    for editor in ["ws-ide", "sse-ide"] {
        round::<McpServerConfig>(json!({"type":editor,"url":"u","ideName":"i","authToken":"t"}));
    }
    let other_name: McpServerConfig =
        serde_json::from_str(r#"{"type":"streamable-http","url":"u"}"#).unwrap();
    assert_eq!(wire(&other_name), json!({"type":"http","url":"u"}));
    for wrong in [
        json!({"command":["x"]}),
        json!({"type":"ws"}),
        json!({"type":"http","url":"u","timeout":"1"}),
    ] {
        assert!(
            serde_json::from_str::<McpServerConfig>(&wrong.to_string()).is_err(),
            "{wrong}"
        );
    }
    round::<McpServerStatusConfig>(json!({"type":"claudeai-proxy","url":"u","id":"i","timeout":3}));
    round::<McpServerStatusConfig>(json!({"type":"carrier-pigeon","loft":"north"}));
}

#[test]
fn secrets_of_servers_are_not_shown_by_debug() {
    let stdio = McpStdioServerConfig::new("x", ["y"]).env("TOKEN", "hush");
    let remote = McpRemoteServerConfig::new("http://h").header("Authorization", "hush");
    let shown = format!("{stdio:?}{remote:?}");
    assert!(shown.contains("TOKEN") && shown.contains("Authorization") && !shown.contains("hush"));
}

#[test]
fn agents_round_trip_and_are_checked() {
    let mut full = json!({
        "description":"d","prompt":"p","tools":["Read"],"disallowedTools":["Bash"],"model":"haiku",
        "mcpServers":["lab",{"own":{"type":"stdio","command":"x","args":[]}}],
        "criticalSystemReminder_EXPERIMENTAL":"r","skills":["s"],"initialPrompt":"i","maxTurns":3,
        "autoCompactWindow":100000,"background":true,"omitClaudeMd":true,"memory":"project","effort":"xhigh",
        "permissionMode":"plan","observer":"o","observerMessage":"m"
    });
    round::<AgentDefinition>(full.clone());
    full["effort"] = json!(7);
    round::<AgentDefinition>(full);
    assert_eq!(AgentDefinition::new("d", "p").validate(), Ok(()));
    assert_eq!(
        AgentDefinition::new("", "p").validate().unwrap_err().field,
        "description"
    );
    assert_eq!(
        AgentDefinition::new("d", "").validate(),
        Ok(()),
        "the CLI takes an empty prompt"
    );
    assert_eq!(
        AgentDefinition::new("d", "p")
            .model(" ")
            .validate()
            .unwrap_err()
            .field,
        "model"
    );
    let mut cramped = AgentDefinition::new("d", "p");
    cramped.auto_compact_window = Some(99_999);
    assert_eq!(cramped.validate().unwrap_err().field, "autoCompactWindow");
    let mut wrong = AgentDefinition::new("d", "p");
    let nameless = McpServerConfig::Stdio(McpStdioServerConfig::new("", ["x"]));
    wrong.mcp_servers = Some(vec![AgentMcpServer::Inline([("s".to_owned(), nameless)].into())]);
    assert_eq!(wrong.validate().unwrap_err().field, "mcpServers");
    let mut lazy = AgentDefinition::new("d", "p");
    lazy.max_turns = Some(0);
    assert_eq!(lazy.validate().unwrap_err().field, "maxTurns");
}

#[test]
fn thinking_and_plugins_round_trip() {
    round::<ThinkingConfig>(json!({"type":"adaptive","display":"omitted"}));
    round::<ThinkingConfig>(json!({"type":"enabled","budgetTokens":5}));
    round::<ThinkingConfig>(json!({"type":"disabled"}));
    round::<PluginConfig>(json!({"type":"local","path":"/p","skipMcpDiscovery":true}));
    assert_eq!(
        PermissionMode::from_wire("dontAsk"),
        Some(PermissionMode::DontAsk)
    );
    let newer = ReportedPermissionMode::from("delegate");
    assert_eq!(newer.known(), None);
    assert!(ReportedPermissionMode::from("plan") == PermissionMode::Plan);
}

#[test]
fn ids_come_back_as_they_were() {
    for text in [r#""a""#, r#""7""#, "7", "7.50", "null"] {
        let id: RequestId = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), text);
        assert_eq!(format!("{id:?}"), text);
    }
    assert_ne!(RequestId::from("7"), serde_json::from_str("7").unwrap());
}
