//! At a terminal: a pseudo-terminal, with a program in place of the person. It does not echo.

use rexpect::session::PtySession;

use crate::rig::{PATIENCE, Rig};

/// Starts the command at a terminal of its own.
pub(crate) fn at_terminal(rig: &Rig, subcommand: &str, args: &[&str]) -> PtySession {
    let mut command = rig.std_command(subcommand, args);
    command.env("TERM", "xterm");
    let patience = u64::try_from(PATIENCE.as_millis() / 3).unwrap();
    rexpect::session::spawn_command(command, Some(patience)).expect("a terminal")
}

/// Waits for the end and checks the exit status.
pub(crate) fn ends_with(session: &mut PtySession, code: i32) {
    let rest = session.exp_eof().expect("it ends");
    let status = session.process_mut().wait().expect("it can be waited for");
    assert!(
        matches!(status, rexpect::process::WaitStatus::Exited(_, found) if found == code),
        "{status:?}: {rest}"
    );
}

pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work)
        .await
        .expect("it does not panic")
}

const TOUCH: &str = "%tool Bash {\"command\":\"touch made\"}\n%say Done.";

#[tokio::test(flavor = "multi_thread")]
async fn permission_is_asked_and_yes_lets_it_run() {
    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "run", &[TOUCH]);
    blocking(move || {
        session.exp_string("touch made").unwrap();
        session.exp_string("Allow?").unwrap();
        session.send_line("y").unwrap();
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(rig.sandbox.project().join("made").exists());
    rig.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_instead_of_yes_reaches_the_model() {
    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "run", &[TOUCH]);
    blocking(move || {
        session.exp_string("Allow?").unwrap();
        session.send_line("n: write a list instead").unwrap();
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(!rig.sandbox.project().join("made").exists());
    let last = format!("{:?}", rig.api.message_requests().last().unwrap());
    assert!(last.contains("says: write a list instead"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn always_is_asked_but_once() {
    let rig = Rig::start().await;
    let twice = "%tool Write {\"file_path\":\"PROJECT/one\",\"content\":\"1\"}\n%tool Write {\"file_path\":\"PROJECT/two\",\"content\":\"2\"}\n%say Done.";
    let twice = twice.replace("PROJECT", rig.sandbox.project().to_str().unwrap());
    let mut session = at_terminal(&rig, "run", &[&twice]);
    blocking(move || {
        session.exp_string("always would mean").unwrap();
        session.exp_string("[a]lways").unwrap();
        session.send_line("a").unwrap();
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(rig.sandbox.project().join("one").exists());
    assert!(rig.sandbox.project().join("two").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_withdraws_a_question() {
    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "run", &[TOUCH]);
    blocking(move || {
        session.exp_string("Allow?").unwrap();
        session.send_control('c').unwrap();
        session.exp_string("withdrawn").unwrap();
        ends_with(&mut session, 130);
    })
    .await;
    assert!(!rig.sandbox.project().join("made").exists());
    rig.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_by_hand() {
    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "chat", &[]);
    blocking(move || {
        session.exp_string("> ").unwrap();
        session
            .send_line("%tool Bash {\"command\":\"touch made\"}\\")
            .unwrap();
        session.send_line("%say First.").unwrap();
        session.exp_string("Allow?").unwrap();
        // The answer comes from the same terminal as the conversation, and is no message.
        session.send_line("y").unwrap();
        session.exp_string("First.").unwrap();
        session.exp_string("> ").unwrap();
        session.send_line("%hang\\").unwrap();
        session.send_line("%say begun").unwrap();
        session.exp_string("begun").unwrap();
        session.send_control('c').unwrap();
        session.exp_string("interrupting").unwrap();
        session.exp_string("> ").unwrap();
        session.send_line("%say Second.").unwrap();
        session.exp_string("Second.").unwrap();
        session.exp_string("> ").unwrap();
        session.send_control('d').unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(rig.sandbox.project().join("made").exists());
    rig.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_twice_ends_a_conversation() {
    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "chat", &[]);
    blocking(move || {
        session.exp_string("> ").unwrap();
        session.send_control('c').unwrap();
        session.exp_string("again").unwrap();
        session.send_control('c').unwrap();
        ends_with(&mut session, 130);
    })
    .await;
    rig.nothing_left().await;
}
