//! What the examples share: an agent to talk to, and a terminal.
//!
//! Unless `--real` is given, that is the pinned Claude Code with a scripted model on 127.0.0.1: it needs no key and no account, and
//! costs nothing. With `--real` it is the installed `claude`, with whatever account it finds.

#![allow(dead_code, reason = "each example uses a part of it")]

use std::error::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Event, Options, Session};
use outrigger_sim::api::{ApiRequest, MessagesApi};
use outrigger_sim::claude::{Sandbox, executable};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The agent's place: a directory that is removed at the end.
pub(crate) struct Stage {
    sandbox: Sandbox,
    /// The scripted model and the CLI; `None` with `--real`.
    demo: Option<(MessagesApi, PathBuf)>,
}

impl Stage {
    pub(crate) async fn open() -> Result<Self> {
        let sandbox = Sandbox::new()?;
        if std::env::args().any(|argument| argument == "--real") {
            return Ok(Self { sandbox, demo: None });
        }
        let api = MessagesApi::builder().directives(true).start().await?;
        let demo = Some((api, executable().await?));
        Ok(Self { sandbox, demo })
    }

    /// Options that reach the agent. This is the one line that a program of your own has: `Agent::builder()`.
    pub(crate) fn agent(&self) -> Options {
        let mut options = Agent::builder().cwd(self.sandbox.project());
        if let Some((api, cli)) = &self.demo {
            let key = Secret::new(ApiRequest::DUMMY_KEY);
            options = options.auth(Auth::ApiKey(key)).cli_path(cli);
            for (name, value) in self.sandbox.env(&api.base_url()) {
                if name != "ANTHROPIC_API_KEY" {
                    options = options.env(name, value);
                }
            }
        }
        options
    }

    /// The agent's working directory.
    pub(crate) fn project(&self) -> PathBuf {
        self.sandbox.project()
    }

    /// A prompt, with what the scripted model is to do about it, which the real one does not get to see.
    pub(crate) fn prompt(&self, prompt: &str, script: &str) -> String {
        match self.demo {
            Some(_) => format!("{prompt}\n{script}"),
            None => prompt.to_owned(),
        }
    }
}

/// Runs a prompt to its end and shows what happens.
pub(crate) async fn show(session: &Session, prompt: String) -> Result {
    let mut turn = session.prompt(prompt).await?;
    while let Some(event) = turn.next().await {
        match event? {
            Event::Text(text) => println!("model: {text}"),
            Event::ToolUse(call) => println!("tool: {} {}", call.name, call.input.get()),
            Event::ToolResult(result) if result.is_error => println!("failed: {}", result.text),
            _ => {}
        }
    }
    turn.answer().await?;
    Ok(())
}

/// Asks for a line at the terminal. The end of the input is an error.
pub(crate) async fn ask(question: impl Into<String>) -> io::Result<String> {
    let question = question.into();
    let read = move || {
        print!("{question} ");
        io::stdout().flush()?;
        let mut line = String::new();
        match io::stdin().read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim().to_owned()),
        }
    };
    tokio::task::spawn_blocking(read).await?
}
