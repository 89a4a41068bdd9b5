//! Limits that end or cost something: a usage limit, and a conversation that is compacted while nobody uses it.

use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger_acp::IdleCompaction;
use outrigger_sim::api::ApiError;
use serde_json::{Value, json};

use crate::editor::{said, updates};
use crate::real::Rig;

/// 2100-01-01 12:34 in UTC.
const RESET: u64 = 4_102_490_040;

/// An account with a usage limit that resets at [`RESET`], and the API's answer once it is reached.
pub(crate) fn with_a_limit(rig: &mut Rig) -> ApiError {
    let options = rig.config.options.clone();
    rig.config.options = options
        .auth(Auth::OAuthToken(Secret::new("sk-ant-oat01-no-token")))
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
    let mut limited = ApiError::new(429);
    limited.message = Some("This request would exceed your account's rate limit.".to_owned());
    for (name, value) in [
        ("status", "rejected"),
        ("reset", &RESET.to_string()),
        ("representative-claim", "five_hour"),
    ] {
        let name = format!("anthropic-ratelimit-unified-{name}");
        limited.headers.insert(name, value.to_owned());
    }
    limited
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_usage_limit_is_shown_with_its_reset_and_the_thread_goes_on() {
    let mut rig = Rig::start().await;
    let limited = with_a_limit(&mut rig);
    let mut editor = rig.editor();
    editor.initialize(json!({"session": {"notices": {}}})).await;
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    rig.api.push(limited);
    let id = editor.prompt(&session, "%say never").await;
    let (lines, answer) = editor.until(id).await;
    let notices = updates(&lines, "notice");
    let title = |notice: &&Value| notice["title"].as_str().unwrap_or_default().to_owned();
    let titles: Vec<String> = notices.iter().map(title).collect();
    assert!(
        titles.contains(&"The five hour limit is reached; it resets at 2100-01-01 12:34 UTC".to_owned()),
        "{titles:?} {answer:#}"
    );
    let wait = &answer["error"]["data"]["retryAfterSeconds"];
    assert!(wait.as_u64().is_some_and(|wait| wait > 0), "{answer:#}");

    let (lines, answer) = editor.turn(&session, "%say it goes on").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("it goes on", &json!("end_turn"))
    );
    editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_conversation_is_compacted_after_an_announcement() {
    let mut rig = Rig::start().await;
    let soon = IdleCompaction::new(Duration::from_millis(200)).from_tokens(1);
    rig.config = rig.config.clone().idle_compaction(soon);
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, _) = editor.open(&rig.sandbox.project()).await;
    editor.turn(&session, "%say a long conversation").await;
    let told = editor.wait_for(announces).await;
    let data = &told["params"]["update"]["_meta"]["claudeCode"]["notice"]["data"];
    assert_eq!(data["after_ms"], 100, "{told:#}");
    let compacted = |line: &Value| {
        let update = &line["params"]["update"];
        update["sessionUpdate"] == "tool_call_update" && update["status"] == "completed"
    };
    editor.wait_for(compacted).await;
    let (lines, _) = editor.turn(&session, "%say it goes on").await;
    assert!(said(&lines).ends_with("it goes on"), "{lines:#?}");
    let requests = rig.api.message_requests();
    let sent = json!(requests.last().expect("a request").messages()).to_string();
    assert!(
        sent.contains("continued from a previous conversation"),
        "it was not compacted: {sent}"
    );
    editor.leave().await;
}

/// Whether a line announces a compaction.
fn announces(line: &Value) -> bool {
    line["params"]["update"]["_meta"]["claudeCode"]["notice"]["topic"] == "idle_compaction"
}
