//! Reading the CLI's stderr as it comes.

use std::sync::{Arc, Mutex};

use outrigger::Agent;
use outrigger::options::{Auth, Secret};
use outrigger::transport::Pipes;
use outrigger_sim::peer::{Match, Steps};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use crate::support::{Peer, reaching};

#[tokio::test]
async fn lines_come_while_the_session_runs() {
    let script = Steps::new()
        .initialize()
        .complain("first")
        .expect(Match::request("mcp_status"))
        .complain("second")
        .die(9);
    let (told, mut lines) = mpsc::unbounded_channel();
    let (options, _running) = reaching(script.spawn_in_memory());
    let options = options.stderr(move |line| {
        let _ = told.send(line.to_owned());
    });
    let session = options.start().await.unwrap();
    // The CLI waits for a request, so this line came live.
    assert_eq!(lines.recv().await.as_deref(), Some("first"));
    let error = session.raw_request("mcp_status", json!({})).await.unwrap_err();
    assert_eq!(lines.recv().await.as_deref(), Some("second"));
    assert_eq!(error.stderr_tail(), Some("first\nsecond\n"));
}

/// As what a command has detached may do.
#[tokio::test(start_paused = true)]
async fn a_process_that_keeps_stderr_open_is_not_read_after_the_end() {
    let script = Steps::new().initialize().expect_end().exit(0);
    let (io, running) = script.spawn_in_memory();
    let (mut kept, stderr) = tokio::io::duplex(1 << 10);
    let pipes = Pipes::with_process(
        io.stdin,
        io.stdout,
        Some(Box::new(stderr)),
        Peer(Arc::new(running)),
    );
    let options = Agent::builder().auth(Auth::ApiKey(Secret::new("simulated")));
    let session = options.transport(pipes).start().await.unwrap();
    kept.write_all(b"before\n").await.unwrap();
    session.close().await.unwrap();
    let error = kept.write_all(b"after\n").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

/// A callback that hangs, and one that panics, cost nobody else anything.
#[tokio::test(start_paused = true)]
async fn a_bad_callback_harms_nothing() {
    for hangs in [true, false] {
        let mut script = Steps::new().initialize().expect(Match::prompt("go"));
        for number in 0..3000 {
            script = script.complain(format!("line {number}"));
        }
        let script = script
            .send(json!({"type": "result", "subtype": "success", "is_error": false,
                         "terminal_reason": "completed", "num_turns": 1, "result": "fine"}))
            .expect_end()
            .exit(0);
        let (options, _running) = reaching(script.spawn_in_memory());
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let options = options.stderr(move |_| {
            assert!(hangs, "a bug in the callback");
            let _ = wait.lock().unwrap().recv();
        });
        let session = options.start().await.unwrap();
        let answer = session.prompt("go").await.unwrap().answer().await.unwrap();
        assert_eq!(answer.text(), "fine");
        session.close().await.unwrap();
        drop(go);
    }
}
