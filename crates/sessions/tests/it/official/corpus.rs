//! Sessions of the real CLI, one a scenario.

use std::path::PathBuf;

use outrigger_sessions::{SessionId, Sessions};
use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{ClaudeProcess, Launch, Sandbox, executable};
use serde_json::{Value, json};

pub(crate) struct Corpus {
    pub(crate) sandbox: Sandbox,
    pub(crate) sessions: Vec<(&'static str, SessionId)>,
    cli: PathBuf,
    api: MessagesApi,
}

/// Has the CLI hold all the conversations.
pub(crate) async fn make() -> Corpus {
    let api = MessagesApi::builder()
        .directives(true)
        .start()
        .await
        .expect("the API starts");
    let mut corpus = Corpus {
        sandbox: Sandbox::new().expect("a directory"),
        sessions: Vec::new(),
        cli: executable().await.expect("the pinned CLI"),
        api,
    };
    let none: [&str; 0] = [];
    let plain = corpus
        .talk("plain", &none, &["%say one", "%think hm\n%+say two\n"])
        .await;
    corpus
        .talk(
            "forked",
            &["--fork-session", &format!("--resume={plain}")],
            &["%say three"],
        )
        .await;
    let resumed = corpus.talk("resumed", &none, &["%say one"]).await;
    corpus.sessions.pop();
    corpus
        .talk("resumed", &[&format!("--resume={resumed}")], &["%say two"])
        .await;
    let parallel = "%tool Bash {\"command\":\"echo 1\"}\n%+tool Bash {\"command\":\"echo 2\"}\n%+tool Bash {\"command\":\"false\"}\n%say done";
    corpus.talk("parallel", &none, &[parallel]).await;
    let below = "%tool Bash {\"command\":\"echo deep\"}\n%say from below";
    let input = json!({"description": "a helper", "prompt": below, "subagent_type": "general-purpose", "run_in_background": false});
    corpus
        .talk("subagent", &none, &[&format!("%tool Agent {input}\n%say done")])
        .await;
    corpus
        .talk(
            "compacted",
            &none,
            &["%say one", "%say two", "/compact", "%say after"],
        )
        .await;
    let named = corpus.talk("named", &none, &["%say name me"]).await;
    corpus.queued().await;
    corpus.in_a_directory_elsewhere().await;

    let sessions = Sessions::at(corpus.sandbox.config());
    sessions.rename(&named, "A name for it").expect("it is renamed");
    sessions.tag(&named, Some("kept")).expect("it is tagged");
    corpus
}

impl Corpus {
    pub(crate) fn id(&self, scenario: &str) -> &SessionId {
        &self
            .sessions
            .iter()
            .find(|(name, _)| *name == scenario)
            .expect("there is one")
            .1
    }

    /// A project of its own.
    pub(crate) fn elsewhere(&self) -> PathBuf {
        self.sandbox.path().join("else where, é")
    }

    fn launch(&self) -> Launch {
        Launch::new(&self.cli, &self.sandbox, &self.api.base_url()).args([
            "--output-format",
            "stream-json",
            "--verbose",
            "--input-format",
            "stream-json",
            "--allowedTools",
            "Bash,Agent",
        ])
    }

    /// Prompts one after the other; returns the session's id.
    async fn talk(&mut self, scenario: &'static str, arguments: &[&str], prompts: &[&str]) -> SessionId {
        let launch = arguments
            .iter()
            .fold(self.launch(), |launch, argument| launch.arg(*argument));
        let mut claude = launch.spawn().expect("it starts");
        claude.initialize().await.unwrap();
        let mut last = Value::Null;
        for prompt in prompts {
            claude.prompt(prompt).await.unwrap();
            last = claude.result().await.unwrap().value;
        }
        self.end(scenario, claude, &last).await
    }

    async fn end(&mut self, scenario: &'static str, claude: ClaudeProcess, result: &Value) -> SessionId {
        claude.finish().await.unwrap();
        let id = result["session_id"].as_str().expect("a result names its session");
        let id = SessionId::new(id).unwrap();
        self.sessions.push((scenario, id.clone()));
        id
    }

    /// A prompt that comes while a tool runs is put into the turn.
    async fn queued(&mut self) {
        let mut claude = self.launch().spawn().expect("it starts");
        claude.initialize().await.unwrap();
        let wait = "%tool Bash {\"command\":\"sleep 2\"}\n%say done";
        claude.prompt(wait).await.unwrap();
        claude
            .until("the call", |seen| seen.frame.kind() == "assistant")
            .await
            .unwrap();
        let next = json!({
            "type": "user", "session_id": "", "parent_tool_use_id": null, "priority": "next",
            "message": {"role": "user", "content": "%say in between"},
        });
        claude.send(&next).await.unwrap();
        let result = claude.result().await.unwrap().value;
        self.end("queued", claude, &result).await;
    }

    async fn in_a_directory_elsewhere(&mut self) {
        std::fs::create_dir(self.elsewhere()).unwrap();
        let mut claude = self
            .launch()
            .directory(self.elsewhere())
            .spawn()
            .expect("it starts");
        claude.initialize().await.unwrap();
        claude.prompt("Where am I?\n%say there").await.unwrap();
        let result = claude.result().await.unwrap().value;
        self.end("elsewhere", claude, &result).await;
    }
}
