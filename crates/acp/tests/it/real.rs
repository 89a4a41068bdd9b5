//! The same with the real CLI, against a scripted API.

use outrigger::Agent;
use outrigger::options::{Auth, Secret};
use outrigger_acp::Config;
use outrigger_sim::api::{ApiRequest, MessagesApi};
use outrigger_sim::claude::{Sandbox, executable};
use serde_json::json;

use crate::editor::{Editor, said, updates};

struct Rig {
    // Ends when it is dropped.
    _api: MessagesApi,
    sandbox: Sandbox,
    config: Config,
}

impl Rig {
    async fn start() -> Self {
        let api = MessagesApi::builder()
            .directives(true)
            .start()
            .await
            .expect("the API starts");
        let sandbox = Sandbox::new().expect("a directory");
        let mut options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
            .cli_path(executable().await.expect("the pinned CLI"));
        for (name, value) in sandbox.env(&api.base_url()) {
            if name != "ANTHROPIC_API_KEY" {
                options = options.env(name, value);
            }
        }
        Self {
            _api: api,
            sandbox,
            config: Config::new().options(options),
        }
    }

    fn editor(&self) -> Editor {
        Editor::with(self.config.clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_from_its_beginning_to_its_end() {
    let rig = Rig::start().await;
    let mut editor = rig.editor();
    editor.initialize(json!({})).await;
    let (session, opened) = editor.open(&rig.sandbox.project()).await;
    assert_eq!(opened["modes"]["currentModeId"], "default");

    // A turn with a call that somebody allows.
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let file = rig.sandbox.project().join("made.txt");
    let write = json!({"file_path": file, "content": "by the agent"});
    let (lines, answer) = editor
        .turn(&session, &format!("%tool Write {write}\n%say done"))
        .await;
    assert_eq!(answer["stopReason"], "end_turn", "{answer}");
    assert_eq!(said(&lines), "done");
    assert_eq!(
        std::fs::read_to_string(&file).expect("it was written"),
        "by the agent"
    );
    let last = updates(&lines, "tool_call_update");
    assert_eq!(
        last.iter().filter_map(|call| call["status"].as_str()).next_back(),
        Some("completed"),
        "{lines:#?}"
    );

    // One that is cancelled.
    let running = editor.prompt(&session, "%hang\n%say beginning").await;
    editor
        .wait_for(|line| line["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let (_, answer) = editor.until(running).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");

    let (lines, answer) = editor.turn(&session, "%say and on").await;
    assert_eq!(
        (said(&lines).as_str(), &answer["stopReason"]),
        ("and on", &json!("end_turn"))
    );
    editor.leave().await;
}
