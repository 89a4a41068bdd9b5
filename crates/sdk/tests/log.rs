//! What a session writes into the log. A program of its own: which events are wanted is known to a whole process, and other
//! tests would change it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

#[path = "it/support.rs"]
#[expect(dead_code, reason = "it is made for many tests")]
mod support;

use std::io;
use std::sync::{Arc, Mutex};

use outrigger::protocol::shared::PermissionMode;
use outrigger::{Options, Policy};
use outrigger_sim::peer::Agent;
use tracing::Level;
use tracing::instrument::WithSubscriber;

use crate::support::reaching;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What one session with a tool call writes at `level`.
fn log_at(level: Level) -> String {
    log_of(level, |options| options)
}

fn log_of(level: Level, change: impl FnOnce(Options) -> Options) -> String {
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    // The tasks of the session run on this thread, so they write there too.
    let _default = tracing::subscriber::set_default(subscriber);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let talk = async {
        let (options, _running) = reaching(Agent::builder().directives().spawn_in_memory());
        let session = change(options)
            .permissions(Policy::deny_all())
            .initialize_deadline(std::time::Duration::from_secs(60))
            .start()
            .await
            .unwrap();
        let prompt = "%tool Bash {\"command\":\"touch SECRET\"}\n%say SECRET";
        session.prompt(prompt).await.unwrap().outcome().await.unwrap();
        session.close().await.unwrap();
    };
    runtime.block_on(talk.with_current_subscriber());
    let bytes = written.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_log_tells_what_happened_and_not_what_was_said() {
    a_handler_that_is_not_asked_is_warned_of_once();
    // All being well, nothing is written at the level of most programs.
    assert_eq!(log_at(Level::INFO), "");
    let log = log_at(Level::TRACE);
    for part in [
        "session{session_id=",
        "turn{number=1",
        "tool{name=Bash",
        "request{subtype=\"initialize\"",
        "asked{subtype=\"can_use_tool\"",
        "verdict=completed",
        "ended",
    ] {
        assert!(log.contains(part), "{part}\n{log}");
    }
    assert!(!log.contains("SECRET"), "{log}");
}

/// A handler that is set and not asked is worth a warning, with the option and a way out. Part of the one test, since two at a
/// time would change what each other's events are wanted for.
fn a_handler_that_is_not_asked_is_warned_of_once() {
    let log = log_of(Level::WARN, |options| {
        options
            .permission_mode(PermissionMode::DontAsk)
            .allowed_tools(["Read"])
    });
    assert_eq!(log.lines().count(), 2, "{log}");
    for part in [
        "the permission handler is asked about nothing, since `permission_mode` decides first",
        "the permission handler is not asked about Read, since `allowed_tools` decides first",
        "use a PreToolUse hook",
    ] {
        assert!(log.contains(part), "{log}");
    }
}
