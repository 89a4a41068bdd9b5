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

/// Waits for what is asked, and types a line.
pub(crate) fn reply(session: &mut PtySession, asked: &str, line: &str) {
    session.exp_string(asked).expect("it asks");
    session.send_line(line).expect("it reads");
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
        reply(&mut session, "Allow?", "y");
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
        reply(&mut session, "Allow?", "n: write a list instead");
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
        reply(&mut session, "[a]lways", "a");
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(rig.sandbox.project().join("one").exists());
    assert!(rig.sandbox.project().join("two").exists());
}

/// Of what the CLI suggests for `touch`, the rule alone is taken: no directory, and no mode in which edits need no question.
#[tokio::test(flavor = "multi_thread")]
async fn suggestions_are_chosen_singly() {
    let rig = Rig::start().await;
    let file = rig.sandbox.project().join("edited");
    let write = format!("%tool Write {{\"file_path\":{file:?},\"content\":\"1\"}}");
    let prompt = format!("%tool Bash {{\"command\":\"touch made\"}}\n{write}\n%say Done.");
    let mut session = at_terminal(&rig, "run", &[&prompt]);
    blocking(move || {
        session.exp_string("always: choose among 3 suggestions").unwrap();
        reply(&mut session, "do instead: ", "a");
        session.exp_string("(kept in: localSettings)").unwrap();
        reply(&mut session, "Which?", "");
        reply(&mut session, "Allow?", "always");
        let list = session.exp_string("Which?").unwrap();
        let number = |what: &str| {
            let before = &list[..list.find(what).unwrap()];
            before
                .trim_end()
                .trim_end_matches('.')
                .rsplit(' ')
                .next()
                .unwrap()
                .to_owned()
        };
        number("permission mode acceptEdits");
        number("add directory");
        session.send_line("4").unwrap();
        reply(
            &mut session,
            "There is no number 4.",
            &number("add rule: allow Bash("),
        );
        // The rule was kept and nothing else: the mode would let the edit pass.
        session.exp_string("edited").unwrap();
        reply(&mut session, "Allow?", "n");
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(rig.sandbox.project().join("made").exists());
    assert!(!rig.sandbox.project().join("edited").exists());
    let settings = rig.sandbox.project().join(".claude/settings.local.json");
    let settings = std::fs::read_to_string(settings).unwrap();
    assert!(settings.contains("Bash(touch"), "{settings}");
    assert!(
        !settings.contains("additionalDirectories") && !settings.contains("acceptEdits"),
        "{settings}"
    );
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
