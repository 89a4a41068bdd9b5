//! The real CLI in a place of its own, with a scripted model.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_sessions::{SessionFile, SessionId, Sessions};
use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{ClaudeProcess, Launch, Sandbox, executable};
use serde_json::Value;

pub(crate) struct Rig {
    pub(crate) api: MessagesApi,
    pub(crate) sandbox: Sandbox,
    pub(crate) sessions: Sessions,
    cli: PathBuf,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let api = MessagesApi::builder().directives(true).start().await.unwrap();
        let sandbox = Sandbox::new().unwrap();
        Self {
            api,
            sessions: Sessions::at(sandbox.config()),
            sandbox,
            cli: executable().await.unwrap(),
        }
    }

    /// A process in `dir`, which is created if it is not there.
    pub(crate) fn spawn(&self, dir: &Path, arguments: &[&str]) -> ClaudeProcess {
        fs::create_dir_all(dir).unwrap();
        let launch = Launch::new(&self.cli, &self.sandbox, &self.api.base_url()).directory(dir);
        let launch = arguments
            .iter()
            .fold(launch, |launch, argument| launch.arg(*argument));
        launch.spawn().unwrap()
    }

    /// Runs prompts in the project, from beginning to end of a process, and returns the session.
    pub(crate) async fn run(&self, arguments: &[&str], prompts: &[&str]) -> SessionId {
        self.run_in(&self.sandbox.project(), arguments, prompts).await
    }

    pub(crate) async fn run_in(&self, dir: &Path, arguments: &[&str], prompts: &[&str]) -> SessionId {
        let mut claude = self.spawn(dir, arguments);
        let mut id = None;
        for prompt in prompts {
            claude.prompt(prompt).await.unwrap();
            let result = claude.result().await.unwrap().value;
            assert_eq!(result["is_error"], false, "{result}");
            id = result["session_id"].as_str().map(str::to_owned);
        }
        claude.finish().await.unwrap();
        id.unwrap().parse().unwrap()
    }

    /// A session of three turns, two of them with a tool, and its transcript.
    pub(crate) async fn three_turns(&self) -> SessionFile {
        let file = self.sandbox.write("a.txt", "hello").unwrap();
        let read = format!(r#"%tool Read {{"file_path":"{}"}}"#, file.display());
        let both =
            format!("{read}\n%tool Bash {{\"command\":\"echo hi\",\"description\":\"say hi\"}}\n%say read");
        let id = self.run(&[], &["%say one", &both, "%say three"]).await;
        self.sessions.find(&id).unwrap()
    }

    /// Resumes a session for one more turn, which has to succeed, and returns what the model was told.
    pub(crate) async fn resume(&self, id: &SessionId) -> Vec<String> {
        self.resume_in(&self.sandbox.project(), id).await
    }

    pub(crate) async fn resume_in(&self, dir: &Path, id: &SessionId) -> Vec<String> {
        let same = self.run_in(dir, &["--resume", id.as_str()], &["%say more"]).await;
        assert_eq!(same, *id);
        self.told()
    }

    /// What the model was told last: each message with its role and its blocks, without what the CLI adds in tags, and without ids
    /// that differ from session to session.
    pub(crate) fn told(&self) -> Vec<String> {
        let requests = self.api.message_requests();
        let messages = requests.last().unwrap().messages();
        let messages = messages.iter().filter(|message| message["role"] != "system");
        messages
            .map(|message| {
                format!(
                    "{}{}",
                    message["role"].as_str().unwrap(),
                    blocks(&message["content"])
                )
            })
            .filter(|message| message.contains(' '))
            .collect()
    }
}

fn blocks(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return format!(" {text}");
    }
    let shown = |block: &Value| {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match block["type"].as_str().unwrap() {
            "text" if text(&block["text"]).starts_with('<') => String::new(),
            "text" => format!(" {}", first_line(&text(&block["text"]))),
            "tool_use" => format!(" uses {}", text(&block["name"])),
            "tool_result" => format!(" result {}", first_line(&text(&block["content"]))),
            other => format!(" {other}"),
        }
    };
    content.as_array().unwrap().iter().map(shown).collect()
}

fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    // Those of the CLI and of this library are long, and of no interest here beyond their beginning.
    line.split(" {").next().unwrap_or_default()
}

/// What the model is told of [`Rig::three_turns`], with what was said on resuming.
pub(crate) const THREE_TURNS: [&str; 11] = [
    "user %say one",
    "assistant one",
    "user %tool Read",
    "assistant uses Read",
    "user result 1\thello",
    "assistant uses Bash",
    "user result hi",
    "assistant read",
    "user %say three",
    "assistant three",
    "user %say more",
];

/// The lines of a transcript.
pub(crate) fn lines(file: &SessionFile) -> Vec<String> {
    let text = fs::read_to_string(&file.path).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The number of the first line that has all of these words.
pub(crate) fn line_with(lines: &[String], words: &[&str]) -> usize {
    let found = lines
        .iter()
        .position(|line| words.iter().all(|word| line.contains(word)));
    found.unwrap_or_else(|| panic!("no line with {words:?}"))
}

pub(crate) fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}
