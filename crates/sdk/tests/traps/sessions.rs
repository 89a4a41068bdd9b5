//! Traps about sessions that were kept: where they are found, who has them open, and what is left of them after a crash.

use std::path::{Path, PathBuf};

use outrigger::sessions::{MessageOptions, Sessions};
use outrigger::testing::Simulated;
use outrigger::{Cause, Error, Options};

use crate::kit::outcome;

/// A config directory with two projects, and CLIs that keep their sessions there.
struct Place {
    directory: tempfile::TempDir,
    cli: Simulated,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for project in ["here", "elsewhere"] {
            std::fs::create_dir(directory.path().join(project)).unwrap();
        }
        Self {
            directory,
            cli: Simulated::agent(|agent| agent),
        }
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    fn options(&self, project: &str) -> Options {
        let config = self.config().to_string_lossy().into_owned();
        let cwd: &Path = self.directory.path();
        self.cli
            .options()
            .cwd(cwd.join(project))
            .env("CLAUDE_CONFIG_DIR", config)
    }

    /// Has two turns, and gives the id of their session.
    async fn two_turns(&self) -> outrigger::SessionId {
        let session = self.options("here").start().await.unwrap();
        for text in ["one", "two"] {
            assert_eq!(
                outcome(&session, &format!("%say {text}")).await.result_text(),
                text
            );
        }
        let id = session.id().unwrap();
        session.close().await.unwrap();
        id
    }
}

/// How a session that must not begin does not begin.
async fn refused(options: Options) -> Error {
    match options.start().await {
        Err(error) => error,
        Ok(session) => session
            .prompt("%say hm")
            .await
            .unwrap()
            .outcome()
            .await
            .unwrap_err(),
    }
}

/// Guard: `cause.rs` knows what the CLI says of a session that it does not find; it never begins another one instead.
#[tokio::test(start_paused = true)]
async fn resume_from_other_cwd() {
    let place = Place::new();
    let id = place.two_turns().await;
    // The CLI finds it from wherever it is started.
    let session = place
        .options("elsewhere")
        .resume(id.clone())
        .start()
        .await
        .unwrap();
    assert_eq!(outcome(&session, "%say three").await.result_text(), "three");
    assert_eq!(session.id(), Some(id.clone()));
    session.close().await.unwrap();
    // With another config directory it does not, and says so.
    let other = place
        .directory
        .path()
        .join("other")
        .to_string_lossy()
        .into_owned();
    let error = refused(
        place
            .options("here")
            .env("CLAUDE_CONFIG_DIR", other)
            .resume(id.clone()),
    )
    .await;
    assert_eq!(error.cause(), Some(Cause::UnknownSession), "{error}");
    assert!(error.to_string().contains(id.as_str()), "{error}");
}

/// Guard: `cause.rs` knows what the CLI says of a session that there is already.
#[tokio::test(start_paused = true)]
async fn double_resume() {
    let place = Place::new();
    let id = place.two_turns().await;
    let error = refused(place.options("here").session_id(id.clone())).await;
    assert_eq!(error.cause(), Some(Cause::SessionInUse), "{error}");
    // What it is resumed for goes on in a session of its own.
    let fork = place
        .options("here")
        .resume(id.clone())
        .fork_session(true)
        .start()
        .await
        .unwrap();
    assert_eq!(outcome(&fork, "%say apart").await.result_text(), "apart");
    assert_ne!(fork.id(), Some(id));
    fork.close().await.unwrap();
}

/// Guard: `read/index.rs` of the sessions counts what it could not read, and goes on behind it.
#[tokio::test(start_paused = true)]
async fn corrupted_transcript() {
    let place = Place::new();
    let id = place.two_turns().await;
    let sessions = Sessions::at(place.config());
    let id_of_file = id.parse().unwrap();
    let file = sessions.find(&id_of_file).unwrap();
    let texts = || -> (Vec<String>, u64) {
        let messages = sessions.messages(&id_of_file, &MessageOptions::new()).unwrap();
        let damaged = messages.damaged();
        let texts = messages.map(|message| message.unwrap().message.unwrap().get().to_owned());
        (texts.collect(), damaged)
    };
    let (whole, damaged) = texts();
    assert_eq!((whole.len(), damaged), (4, 0));

    // What a machine leaves that was switched off, and a line that two processes wrote at once.
    let text = std::fs::read(&file.path).unwrap();
    let middle = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let corrupted = [
        &text[..middle],
        b"{\"type\":\"us{\"ty\n",
        &text[middle..],
        b"\0\0\0\n{\"type\":\"assis",
    ]
    .concat();
    std::fs::write(&file.path, corrupted).unwrap();
    assert_eq!(
        texts(),
        (whole.clone(), 3),
        "nothing that is whole is lost, and what is not is told"
    );

    let repair = file.repair().unwrap();
    assert!(
        repair.changes_something() && repair.findings().len() >= 3,
        "{:?}",
        repair.findings()
    );
    repair.in_place().unwrap();
    assert_eq!(texts(), (whole, 0));
    let session = place.options("here").resume(id).start().await.unwrap();
    assert_eq!(outcome(&session, "%say three").await.result_text(), "three");
    session.close().await.unwrap();
}
