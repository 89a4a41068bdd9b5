//! `outrigger chat` at a terminal: the line that is edited, and what goes on around it.

use std::os::unix::fs::PermissionsExt as _;

use outrigger_sim::api::Reply;
use rexpect::process::Signal;

use crate::display::Display;
use crate::rig::{PATIENCE, Rig};
use crate::terminal::blocking;

const LEFT: &str = "\x1b[D";
const UP: &str = "\x1b[A";
const HOME: &str = "\x01";

fn last_said(rig: &Rig) -> String {
    rig.api
        .message_requests()
        .last()
        .unwrap()
        .last_user_text()
        .unwrap()
}

/// A conversation that waits for its first prompt.
fn chat(rig: &Rig, columns: u16, args: &[&str]) -> Display {
    let display = Display::start(rig, "chat", columns, args);
    display.at("> ");
    display
}

/// Says something, and waits until it is answered and the next prompt is awaited.
fn say(display: &mut Display, text: &str) {
    display.enter(&format!("%say {text}"));
    display.wait(text, |screen| {
        let said = screen.contents().lines().any(|line| line == text);
        said && screen.cursor_position().1 == 2
    });
    display.at("> ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_edited_before_it_is_sent() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("ay Hllo.");
        display.at("> ay Hllo.");
        display.press(&LEFT.repeat(4));
        display.press("e");
        display.press(HOME);
        display.press("%s");
        display.at("> %s");
        display.enter("");
        display.shows("\nHello.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    assert!(last_said(&rig).ends_with("%say Hello."), "{}", last_said(&rig));
    rig.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paste_of_several_lines_is_one_prompt() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("\x1b[200~first\r\nsecond\n%say Got both.\x1b[201~");
        display.shows("%say Got both.");
        display.enter("");
        display.shows("\nGot both.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    let said = last_said(&rig);
    assert!(said.ends_with("first\nsecond\n%say Got both."), "{said:?}");
    let prompts = rig.api.message_requests();
    assert!(
        prompts
            .iter()
            .all(|request| request.last_user_text().unwrap().contains("second"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn backslashes_in_a_paste_are_text() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("\x1b[200~make \\\r\n  all\x1b[201~\\\r%say Both.");
        display.shows("%say Both.");
        display.enter("");
        display.shows("\nBoth.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    let said = last_said(&rig);
    assert!(said.ends_with("make \\\n  all\n%say Both."), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_lines_are_written_by_alt_enter_or_a_backslash() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("one\x1b\rtwo\\\r%say Three.");
        display.shows("%say Three.");
        insta::assert_snapshot!(display.shows("two"));
        display.enter("");
        display.shows("\nThree.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    assert!(
        last_said(&rig).ends_with("one\ntwo\n%say Three."),
        "{}",
        last_said(&rig)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_is_kept_for_the_next_time_but_not_what_begins_with_a_space() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        say(&mut display, "One.");
        display.press(" private\x1b\r");
        say(&mut display, "Secret.");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    let file = rig.sandbox.home().join(".local/state/outrigger/history");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "%say One.\n");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));

    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press(UP);
        display.at("> %say One.");
        display.press("\x15");
        display.at("> ");
        // Ctrl-R looks for it.
        display.press("\x12One");
        display.shows("(search: One) %say One.");
        display.enter("");
        display.at("> %say One.");
        display.press("\x0c");
        display.wait("an empty screen above", |screen| {
            screen.contents().starts_with("> %say One.")
        });
        display.press("\x03");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_clears_the_line_then_hints_then_ends() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("not to be sent");
        display.at("> not to be sent");
        display.press("\x03");
        display.at("> ");
        display.press("\x03");
        display.shows("(Ctrl-C again, or Ctrl-D, ends the conversation)");
        display.at("> ");
        display.press("\x03");
        display.ends_with(130);
    })
    .await;
    assert!(rig.api.message_requests().is_empty());
    rig.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_interrupts_the_turn() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("%hang\x1b\r%say begun ");
        display.enter("");
        display.shows("\nbegun");
        display.press("\x03");
        display.shows("interrupting");
        display.at("> ");
        say(&mut display, "Second.");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    rig.nothing_left().await;
}

/// Whoever types while a question comes answers with nothing that was typed before, and finds it again afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_half_typed_is_no_answer_and_comes_back() {
    let rig = Rig::start().await;
    let gate = rig.api.gate("first");
    let mut display = chat(&rig, 80, &[]);
    let made = rig.sandbox.project().join("made");
    blocking(move || {
        display
            .press("%say {{gate:first}}Look.\x1b\r%+tool Bash {\"command\":\"touch made\"}\x1b\r%say First.");
        display.enter("");
        display.shows("waiting for the model");
        display.press("%say Sec");
        gate.open();
        display.shows("Allow?");
        display.asks("do instead: ");
        display.enter("y");
        display.shows("\nFirst.\n");
        display.at("> %say Sec");
        display.enter("ond.");
        display.shows("\nSecond.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    assert!(made.exists());
    assert!(last_said(&rig).ends_with("%say Second."), "{}", last_said(&rig));
}

/// An agent in the background asks, and says what came of it, while a person edits a line.
#[tokio::test(flavor = "multi_thread")]
async fn background_work_disturbs_no_line() {
    let rig = Rig::start().await;
    let gate = rig.api.gate("agent");
    rig.api.add_rule(|request| {
        let last = request.messages().last()?.to_string();
        let told = request.agent_id().is_none() && last.contains("<task-notification>");
        told.then(|| {
            Reply::say("The helper is done.\n\nIt has made a file, and this line is longer than the terminal is wide.")
        })
    });
    let inner = "%say {{gate:agent}}Now.\\n%+tool Bash {\\\"command\\\":\\\"touch made\\\"}\\n%say found";
    let prompt = format!(
        "%tool Agent {{\"description\":\"a helper\",\"subagent_type\":\"general-purpose\",\"prompt\":\"{inner}\"}}\x1b\r%say Started."
    );
    let mut display = chat(&rig, 60, &[]);
    let made = rig.sandbox.project().join("made");
    blocking(move || {
        display.press(&prompt);
        display.enter("");
        display.shows("\nStarted.\n");
        display.at("> ");
        display.press("two lines:\x1b\r%say half a ");
        display.at("  %say half a ");
        gate.open();
        display.shows("Allow?");
        display.asks("do instead: ");
        display.enter("y");
        display.at("  %say half a ");
        display.shows("than the terminal is wide.");
        display.at("  %say half a ");
        display.enter("line");
        display.shows("\nhalf a line\n");
        display.at("> ");
        let screen = display.shows("half a line");
        display.press("\x04");
        display.ends_with(0);
        let from = screen.find("(from the background)").unwrap();
        insta::assert_snapshot!(&screen[from..]);
    })
    .await;
    assert!(made.exists());
    assert!(
        last_said(&rig).ends_with("two lines:\n%say half a line"),
        "{}",
        last_said(&rig)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_ahead_is_queued() {
    let rig = Rig::start().await;
    let gate = rig.api.gate("first");
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.enter("%say {{gate:first}}First.");
        display.shows("waiting for the model");
        display.enter("%say Second.");
        display.shows("(queued) %say Second.");
        gate.open();
        display.shows("\nSecond.\n");
        let screen = display.at("> ");
        assert!(screen.find("\nFirst.") < screen.find("\nSecond."), "{screen}");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
}

/// More than may wait, and then a question: the person is asked, and can answer.
#[tokio::test(flavor = "multi_thread")]
async fn however_much_is_typed_ahead_a_question_is_asked() {
    for terminal in ["xterm-256color", "dumb"] {
        let rig = Rig::start().await;
        let gate = rig.api.gate("first");
        let mut display = Display::with(&rig, "chat", 80, &[], &[("TERM", terminal)]);
        blocking(move || {
            display.at("> ");
            display
                .press("%say {{gate:first}}Look.\\\r%+tool Bash {\"command\":\"touch made\"}\\\r%say First.");
            display.enter("");
            if terminal != "dumb" {
                display.shows("waiting for the model");
            }
            let lines = |from: u8, to: u8| (from..to).map(|n| format!("m{n}\n")).collect::<String>();
            display.press(&lines(0, 64));
            display.shows("(queued) m63");
            display.press(&lines(64, 140));
            display.shows("(not queued: 64 messages wait already) m139");
            gate.open();
            display.shows("Allow?");
            display.asks("do instead: ");
            display.signal(Signal::SIGTERM);
            display.ends_with(143);
        })
        .await;
        rig.nothing_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_files_are_completed_and_unknown_commands_told() {
    let rig = Rig::start().await;
    rig.sandbox.write("needle.txt", "").unwrap();
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("/tas\t");
        display.at("> /tasks ");
        display.enter("");
        display.shows("nothing runs in the background");
        display.at("> ");
        display.enter("/compcat");
        display.shows("There is no command /compcat. Did you mean /compact?");
        display.at("> ");
        display.press("%say see @need\t");
        display.at("> %say see @needle.txt ");
        display.press("\x03");
        display.at("> ");
        display.press("/co\t");
        display.shows("/compact");
        display.shows("/context");
        display.press("\x03");
        display.at("> ");
        display.enter("/quit");
        display.ends_with(0);
    })
    .await;
    assert!(rig.api.message_requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_line_survives_a_change_of_the_size_and_a_stop() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("%say a line of some words");
        display.at("> %say a line of some words");
        display.resize(20);
        display.press(" more");
        display.shows("more");
        display.resize(60);
        display.press(".");
        display.shows("more.");
        // The shell would go on here; nobody stops a group without a parent that waits for it.
        display.signal(Signal::SIGSTOP);
        display.signal(Signal::SIGCONT);
        display.enter("");
        display.shows("\na line of some words more.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_the_line_back() {
    let rig = Rig::start().await;
    let mut display = Display::in_shell(&rig, "chat");
    blocking(move || {
        display.at("$ ");
        display.enter("sh run.sh");
        display.at("> ");
        display.press("%say half a ");
        display.at("> %say half a ");
        display.press("\x1a");
        display.shows("Stopped");
        display.at("$ ");
        // The shell has it as it was: what is typed is shown, and a line is a line.
        display.enter("echo $((6 * 7))");
        display.shows("\n42\n");
        display.at("$ ");
        display.enter("fg");
        display.at("> %say half a ");
        display.enter("line");
        display.shows("\nhalf a line\n");
        display.at("> ");
        display.press("\x04");
        display.at("$ ");
        display.enter("exit");
        display.ends_with(0);
    })
    .await;
    rig.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_while_a_line_is_edited() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    blocking(move || {
        display.press("half a line");
        display.at("> half a line");
        display.signal(Signal::SIGTERM);
        display.ends_with(143);
        // The terminal is as it was: pastes are not marked any more.
        assert!(display.written().contains("\x1b[?2004l"));
    })
    .await;
    rig.nothing_left().await;
}

/// A terminal that can do little gets lines as it has them.
#[tokio::test(flavor = "multi_thread")]
async fn a_dumb_terminal_has_plain_lines() {
    let rig = Rig::start().await;
    let mut display = Display::with(&rig, "chat", 80, &[], &[("TERM", "dumb")]);
    blocking(move || {
        display.at("> ");
        display.enter("%say One.");
        display.shows("\nOne.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
        assert!(!display.written().contains('\x1b'), "{:?}", display.written());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_carried_out_between_the_turns() {
    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &["--no-ask", "--quiet"]);
    blocking(move || {
        display.enter("/cost");
        display.shows("$0.0000");
        display.at("> ");
        say(&mut display, "One.");
        for (command, answer) in [
            ("/model claude-opus-4-5", "model: claude-opus-4-5"),
            ("/mode plan", "permission mode: plan"),
            ("/mode yolo", "the modes are"),
            ("/tasks", "nothing runs in the background"),
            ("/help", "/compact"),
        ] {
            display.at("> ");
            display.enter(command);
            display.shows(answer);
        }
        display.at("> ");
        say(&mut display, "Two.");
        display.enter("/quit");
        display.ends_with(0);
    })
    .await;
    assert_eq!(
        rig.api.message_requests().last().unwrap().model(),
        Some("claude-opus-4-5")
    );
}

/// The process of the CLI.
#[cfg(target_os = "linux")]
fn cli_of(rig: &Rig) -> rustix::process::Pid {
    let home = format!("HOME={}", rig.sandbox.home().display());
    let exe = rig.cli().canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_it = |process: &std::fs::DirEntry| {
        let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let is_ours = environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == home.as_bytes());
        is_ours && std::fs::read_link(process.path().join("exe")).is_ok_and(|of| of == exe)
    };
    let found = processes
        .filter(is_it)
        .find_map(|process| process.file_name().to_str()?.parse().ok());
    rustix::process::Pid::from_raw(found.expect("the CLI runs")).unwrap()
}

/// Waits until the CLI, which is stopped, has something to read.
#[cfg(target_os = "linux")]
fn until_asked(cli: rustix::process::Pid) {
    let stdin = std::fs::File::open(format!("/proc/{}/fd/0", cli.as_raw_nonzero())).unwrap();
    let until = std::time::Instant::now() + PATIENCE;
    while rustix::io::ioctl_fionread(&stdin).unwrap() == 0 {
        assert!(std::time::Instant::now() < until, "the CLI is asked nothing");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_gives_up_a_command_to_which_the_cli_does_not_reply() {
    use rustix::process::{Signal, kill_process};

    let rig = Rig::start().await;
    let mut display = chat(&rig, 80, &[]);
    let cli = cli_of(&rig);
    kill_process(cli, Signal::STOP).unwrap();
    blocking(move || {
        display.enter("/model opus");
        until_asked(cli);
        display.press("\x03");
        display.shows("given up; the CLI may do it all the same");
        kill_process(cli, Signal::CONT).unwrap();
        say(&mut display, "Here.");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    rig.nothing_left().await;
}
