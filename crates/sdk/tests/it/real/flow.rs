//! Steps that several tests take.

#[cfg(unix)]
use std::path::{Path, PathBuf};

use outrigger::protocol::Message;
use outrigger::protocol::inbound::system::SystemMessage;
use outrigger::{Ambient, AmbientEvent, Event, Outcome, Session, Turn};

use super::rig::{PATIENCE, show};

/// A future that must end in time.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

/// The events of a turn, shown, up to the one that is shown like this.
pub(crate) async fn until(turn: &mut Turn, wanted: &str) -> Vec<String> {
    soon(async {
        let mut seen = Vec::new();
        while let Some(event) = turn.next().await {
            if let Some(shown) = show(&event.expect("the session lives")) {
                let found = shown == wanted;
                seen.push(shown);
                if found {
                    return seen;
                }
            }
        }
        panic!("the turn ended without `{wanted}`: {seen:?}")
    })
    .await
}

/// The rest of a turn: its events, shown, and its outcome.
pub(crate) async fn rest(turn: &mut Turn) -> (Vec<String>, Outcome) {
    soon(async {
        let mut seen = Vec::new();
        while let Some(event) = turn.next().await {
            seen.extend(show(&event.expect("the session lives")));
        }
        (seen, turn.outcome().await.expect("the turn ends"))
    })
    .await
}

/// How a turn ended.
pub(crate) async fn end(turn: &mut Turn) -> Outcome {
    soon(turn.outcome()).await.expect("the turn ends")
}

/// All events of a turn, and its outcome.
pub(crate) async fn events(session: &Session, prompt: &str) -> (Vec<Event>, Outcome) {
    soon(async {
        let mut turn = session.prompt(prompt).await.expect("the prompt is accepted");
        let mut seen = Vec::new();
        while let Some(event) = turn.next().await {
            seen.push(event.expect("the session lives"));
        }
        (seen, turn.outcome().await.expect("the turn ends"))
    })
    .await
}

/// The `system` messages among the events.
pub(crate) fn system(events: &[Event]) -> impl Iterator<Item = &SystemMessage> {
    events.iter().filter_map(|event| match event {
        Event::Message(message, _) => match message.as_ref() {
            Message::System(system) => Some(&**system),
            _ => None,
        },
        _ => None,
    })
}

/// The outcome of the next turn that no prompt of ours began.
pub(crate) async fn ambient_turn(ambient: &mut Ambient) -> Outcome {
    soon(async {
        loop {
            if let AmbientEvent::TurnEnded(outcome) = ambient.next().await.expect("the session lives") {
                return outcome;
            }
        }
    })
    .await
}

/// A named pipe: who reads it waits for who writes it, so that a shell command and a test can wait for each other.
#[cfg(unix)]
pub(crate) struct Pipe(PathBuf);

#[cfg(unix)]
impl Pipe {
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        Self(path)
    }

    /// Waits for somebody to write, and for all that is written.
    pub(crate) async fn read(&self) -> String {
        soon(tokio::fs::read_to_string(&self.0))
            .await
            .expect("it can be read")
    }

    /// Waits for somebody to read.
    pub(crate) async fn write(&self, text: &str) {
        soon(tokio::fs::write(&self.0, text))
            .await
            .expect("it can be written");
    }
}

/// A `%tool` line.
pub(crate) fn tool(name: &str, input: serde_json::Value) -> String {
    format!("%tool {name} {input}")
}

/// A `%tool Bash` line.
pub(crate) fn bash(command: &str) -> String {
    tool(
        "Bash",
        serde_json::json!({"command": command, "description": "a step of the test"}),
    )
}
