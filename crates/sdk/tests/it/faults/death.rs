//! It dies, or as good as dies, in the middle of something.

use std::time::Duration;

use outrigger::transport::Exit;
use outrigger::{Cause, Error, Session};
use outrigger_sim::peer::faulty::{Death, FaultyScript, FaultyStep, Grandchild, Piece, frames};
use serde_json::json;

use super::stand::{Stand, on_both_runtimes, read, tell, turn};

fn begun() -> FaultyScript {
    FaultyScript::new().initialize().prompt()
}

/// Everybody who can wait for something, and what they get when it ends.
struct Waiting {
    turn: outrigger::Turn,
    later: outrigger::Turn,
    frames: outrigger::Frames,
    ambient: outrigger::Ambient,
    session: Session,
}

impl Waiting {
    async fn begin(stand: &Stand) -> Self {
        let session = stand.session().await;
        Self {
            frames: session.frames(),
            ambient: session.ambient(),
            turn: session.prompt("go").await.unwrap(),
            later: session.prompt("later").await.unwrap(),
            session,
        }
    }

    /// All get the same error, which is returned with what the turn told before.
    async fn end(mut self) -> (Vec<String>, Error) {
        let watch = self.turn.watch();
        let request = self.session.raw_request("mcp_status", json!({}));
        let turn = async {
            let mut told = Vec::new();
            let mut error = None;
            while let Some(event) = self.turn.next().await {
                match event {
                    Ok(event) => told.extend(tell(&event)),
                    Err(found) => assert!(error.replace(found).is_none(), "told once"),
                }
            }
            (told, error.expect("the turn's events end with the error"))
        };
        let frames = async { while self.frames.next().await.is_some() {} };
        let ambient = async { while self.ambient.next().await.is_some() {} };
        let (watched, requested, (told, error), later, run, ended, (), ()) = tokio::join!(
            watch.outcome(),
            request,
            turn,
            self.later.outcome(),
            self.session.wait_run_end(Duration::from_secs(3600)),
            self.session.wait_ended(),
            frames,
            ambient
        );
        let said = error.to_string();
        let others = [
            watched.unwrap_err(),
            requested.unwrap_err(),
            later.unwrap_err(),
            run.unwrap_err(),
            ended,
            self.turn.outcome().await.unwrap_err(),
            self.session.prompt("late").await.unwrap_err(),
            self.session.interrupt().await.unwrap_err(),
        ];
        for other in others {
            assert_eq!(other.to_string(), said);
        }
        assert!(error.is_closed(), "{error}");
        let stats = self.session.stats();
        assert_eq!((stats.unanswered_by_cli, stats.unanswered_by_us), (0, 0));
        (told, error)
    }
}

async fn dies(script: FaultyScript) -> (Vec<String>, Error) {
    let stand = Stand::new(&script);
    let waiting = Waiting::begin(&stand).await;
    let end = waiting.end().await;
    stand.gone().await;
    end
}

async fn dying_in_mid_turn_is_an_error_with_the_evidence() {
    for (death, exit) in [
        (Death::Code(7), Exit::with_code(7)),
        (Death::Signal(9), Exit::with_signal(9)),
        (Death::Signal(11), Exit::with_signal(11)),
    ] {
        let (told, error) = dies(
            begun()
                .say("so far")
                .complain("out of cheese\n")
                .say("so good")
                .die(death),
        )
        .await;
        assert_eq!(told, ["text so far", "text so good"]);
        assert_eq!(error.exit(), Some(exit), "{error}");
        assert_eq!(error.stderr_tail(), Some("out of cheese\n"));
        assert!(error.to_string().contains("out of cheese"), "{error}");
    }
}

/// Exit code 0 without a result is no success.
async fn exiting_with_0_without_a_result_is_an_error() {
    let (told, error) = dies(begun().say("so far").die(Death::Code(0))).await;
    assert_eq!(told, ["text so far"]);
    assert_eq!(error.exit(), Some(Exit::with_code(0)));
    assert_eq!(error.cause(), Some(Cause::Truncated));
}

/// More than a pipe holds is written before the end; all of it is read.
async fn what_was_written_before_the_end_is_read() {
    let long = "x".repeat(1000);
    let (told, error) = dies(
        begun()
            .repeat(500, FaultyScript::new().say(&format!("$i {long}")))
            .die(Death::Code(0)),
    )
    .await;
    let expected = (0..500).map(|number| format!("text {number} {long}"));
    assert!(told.iter().cloned().eq(expected), "{} lines", told.len());
    assert_eq!(error.exit(), Some(Exit::with_code(0)));
}

async fn dying_in_the_middle_of_a_line_loses_only_the_line() {
    let half = frames::text("never said").to_string();
    for death in [Death::Signal(9), Death::Code(0)] {
        let (told, error) = dies(begun().say("so far").raw(&half[..half.len() / 2]).die(death)).await;
        // That there was half a line may be told; that it said something may not.
        let said: Vec<_> = told.iter().filter(|line| line.starts_with("text")).collect();
        assert_eq!(said, ["text so far"], "{told:?}");
        assert!(error.exit().is_some(), "{error}");
    }
}

async fn dying_while_it_waits_for_an_answer_drops_the_handler() {
    struct Dropped(tokio::sync::mpsc::UnboundedSender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let stand = Stand::new(
        &begun()
            .ask("q", "Bash")
            .request("mcp_status")
            .die(Death::Signal(9)),
    );
    let (heard, mut hear) = tokio::sync::mpsc::unbounded_channel();
    let session = stand
        .options()
        .can_use_tool(move |_| {
            let dropped = Dropped(heard.clone());
            async move {
                let _ = dropped.0.send("asked");
                std::future::pending::<outrigger::permissions::PermissionResult>().await
            }
        })
        .start()
        .await
        .unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    assert_eq!(hear.recv().await, Some("asked"));
    let error = session.raw_request("mcp_status", json!({})).await.unwrap_err();
    assert_eq!(error.exit(), Some(Exit::with_signal(9)));
    assert_eq!(hear.recv().await, Some("dropped"));
    assert_eq!(
        turn.outcome().await.unwrap_err().exit(),
        Some(Exit::with_signal(9))
    );
    assert_eq!(session.stats().unanswered_by_us, 0);
    stand.gone().await;
}

/// An outcome that was told before the end stays what it was, whatever the exit.
async fn a_turn_that_has_ended_stays_ended() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .turn("fine")
            .die(Death::Signal(9)),
    );
    let session = stand.session().await;
    let mut turn = session.prompt("go").await.unwrap();
    let (told, outcome) = read(&mut turn).await;
    assert_eq!(
        (told, outcome.result_text()),
        (vec!["text fine".to_owned()], "fine")
    );
    session.wait_ended().await;
    assert_eq!(turn.outcome().await.unwrap().result_text(), "fine");
    stand.gone().await;
}

async fn a_closed_stdout_is_the_end_of_a_session() {
    let (told, error) = dies(begun().say("so far").step(FaultyStep::CloseStdout).take_end()).await;
    assert_eq!(told, ["text so far"]);
    assert!(error.to_string().contains("stdout"), "{error}");
}

/// A grandchild keeps the pipes open, so that their end does not come with the death.
async fn a_grandchild_that_holds_the_pipes_does_not_hide_the_death() {
    let held = Grandchild {
        holds_pipes: true,
        own_session: true,
        survives: true,
    };
    let stand = Stand::new(&begun().grandchild(held).say("so far").die(Death::Code(3)));
    let waiting = Waiting::begin(&stand).await;
    let (told, error) = waiting.end().await;
    assert_eq!(
        (told, error.exit()),
        (vec!["text so far".to_owned()], Some(Exit::with_code(3)))
    );
    // It died by itself, and what it started in a session of its own can't be told from a process of somebody else.
    for pid in stand.grandchildren() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    stand.gone().await;
}

async fn what_cannot_start_says_why() {
    let stand = Stand::new(
        &FaultyScript::new()
            .complain("no cheese at all\n")
            .die(Death::Code(7)),
    );
    let error = stand.options().start().await.unwrap_err();
    assert_eq!(error.exit(), Some(Exit::with_code(7)));
    assert_eq!(error.stderr_tail(), Some("no cheese at all\n"));
    stand.gone().await;

    let stand = Stand::new(&FaultyScript::new().request("initialize").die(Death::Signal(9)));
    let error = stand.options().start().await.unwrap_err();
    assert_eq!(error.exit(), Some(Exit::with_signal(9)));
    stand.gone().await;
}

async fn an_initialize_that_is_never_answered_leaves_nothing() {
    let stand = Stand::new(
        &FaultyScript::new()
            .request("initialize")
            .complain("busy\n")
            .grandchild(Grandchild::default())
            .step(FaultyStep::Survive)
            .step(FaultyStep::Hold),
    );
    let error = stand
        .options()
        .initialize_deadline(Duration::from_millis(400))
        .close_grace(Duration::from_millis(50))
        .term_grace(Duration::from_millis(50))
        .start()
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error}");
    stand.gone().await;
}

/// 2 MB before the answer to `initialize` and in mid-turn, from a CLI that goes on only when they are taken.
async fn much_on_stderr_stops_nothing_and_its_end_is_kept() {
    let flood = || FaultyStep::Stderr(vec![Piece::Times("noise on stderr\n".into(), 131_072)]);
    let stand = Stand::new(
        &FaultyScript::new()
            .step(flood())
            .initialize()
            .prompt()
            .step(flood())
            .say("said")
            .result("fine")
            .step(flood())
            .complain("last words\n")
            .turn("again")
            .take_prompt()
            .die(Death::Code(3)),
    );
    let session = stand.session().await;
    for answer in ["fine", "again"] {
        let (_, outcome) = turn(&session, "go").await;
        assert_eq!(outcome.result_text(), answer);
    }
    let mut lost = session.prompt("last").await.unwrap();
    let error = lost.outcome().await.unwrap_err();
    let tail = error.stderr_tail().unwrap();
    assert!(
        tail.len() <= 64 * 1024 && tail.ends_with("noise on stderr\nlast words\n"),
        "{} bytes",
        tail.len()
    );
    stand.gone().await;
}

/// Its stdin is closed, so that nothing can be written to it any more.
async fn a_closed_stdin_is_told_and_ends_it() {
    let stand = Stand::new(
        &begun()
            .step(FaultyStep::CloseStdin)
            .say("so far")
            .step(FaultyStep::Hold),
    );
    let session = stand
        .options()
        .close_grace(Duration::from_millis(200))
        .start()
        .await
        .unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    // What was written before it closed its stdin is only lost, so this waits until it did.
    while tell(&turn.next().await.unwrap().unwrap()).is_none() {}
    let request = session.raw_request("mcp_status", json!({})).await.unwrap_err();
    let error = turn.outcome().await.unwrap_err();
    assert_eq!(request.to_string(), error.to_string());
    assert!(error.is_closed(), "{error}");
    stand.gone().await;
}

on_both_runtimes!(
    dying_in_mid_turn_is_an_error_with_the_evidence,
    exiting_with_0_without_a_result_is_an_error,
    what_was_written_before_the_end_is_read,
    dying_in_the_middle_of_a_line_loses_only_the_line,
    dying_while_it_waits_for_an_answer_drops_the_handler,
    a_turn_that_has_ended_stays_ended,
    a_closed_stdout_is_the_end_of_a_session,
    a_grandchild_that_holds_the_pipes_does_not_hide_the_death,
    what_cannot_start_says_why,
    an_initialize_that_is_never_answered_leaves_nothing,
    much_on_stderr_stops_nothing_and_its_end_is_kept,
    a_closed_stdin_is_told_and_ends_it,
);
