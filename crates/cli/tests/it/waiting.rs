//! What a person at a terminal sees while something takes its time, and how the answer looks there.

use crate::display::{Display, timeless};
use crate::rig::Rig;
use crate::terminal::blocking;

/// What holds the answer back before its first word.
const HELD: &str = "%say {{gate:first}}Hello.";

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_the_model_is_shown_and_leaves_nothing() {
    let rig = Rig::start().await;
    let gate = rig.api.gate("first");
    let mut display = Display::start(&rig, "run", 80, &[HELD]);
    blocking(move || {
        display.shows("waiting for the model (1 s)");
        display.shows("waiting for the model (2 s)");
        gate.open();
        let screen = display.ends_with(0);
        assert_eq!(timeless(&screen).trim_end(), "Hello.\n$N, 1 turn, N s");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrow_terminal_without_colours_gets_a_line_that_fits() {
    let rig = Rig::start().await;
    let command = "cat pipe # a command that is much longer than the terminal is wide";
    let prompt = format!("%tool Bash {{\"command\":\"{command}\"}}\n%say Done.");
    make_pipe(&rig);
    let pipe = rig.sandbox.project().join("pipe");
    let mut display = Display::with(
        &rig,
        "run",
        30,
        &["--allow", "Bash", &prompt],
        &[("NO_COLOR", "1")],
    );
    blocking(move || {
        display.shows("Bash: cat pipe # a command t…");
        // Whatever is written comes on a line of its own, and the status goes.
        std::fs::write(pipe, "x").unwrap();
        let screen = display.ends_with(0);
        assert!(!screen.contains('…'), "{screen}");
        assert!(!display.written().contains("\x1b[2m"), "{}", display.written());
    })
    .await;
}

fn make_pipe(rig: &Rig) {
    let made = std::process::Command::new("mkfifo")
        .arg(rig.sandbox.project().join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_runs_is_shown_with_its_time() {
    let rig = Rig::start().await;
    make_pipe(&rig);
    let pipe = rig.sandbox.project().join("pipe");
    let prompt = "%tool Bash {\"command\":\"cat pipe\"}\n%say Done.";
    let mut display = Display::start(&rig, "run", 80, &["--allow", "Bash", prompt]);
    blocking(move || {
        display.shows("Bash: cat pipe (1 s)");
        std::fs::write(pipe, "x").unwrap();
        let screen = display.ends_with(0);
        assert_eq!(
            timeless(&screen).trim_end(),
            "Bash: cat pipe\nDone.\n$N, 2 turns, N s"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_are_shown_at_a_terminal_and_told_when_more_is_wanted() {
    let rig = Rig::start().await;
    let prompt = "%error 500 n=2\n%say Done.";
    let mut display = Display::start(&rig, "run", 80, &[prompt]);
    blocking(move || {
        let screen = display.shows("the API answered 500 (");
        assert!(screen.contains(", retry ") && screen.contains(" of "), "{screen}");
        let screen = display.ends_with(0);
        assert_eq!(timeless(&screen).trim_end(), "Done.\n$N, 1 turn, N s");
    })
    .await;

    let prompt = "again\n%error 529 n=1\n%say Done.";
    let ran = rig.run(&["--verbose", prompt]).await;
    assert!(
        ran.stderr
            .contains("the API answered 529 (overloaded), retry 1 of "),
        "{ran:?}"
    );
    assert_eq!(ran.stdout, "Done.\n", "{ran:?}");
    let prompt = "once more\n%error 529 n=1\n%say Done.";
    let ran = rig.run(&[prompt]).await;
    assert!(
        !ran.stderr.contains("529") && !ran.stderr.contains('\x1b'),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_runs_and_dumb_terminals_have_no_status() {
    let rig = Rig::start().await;
    for (args, term) in [
        (&["--quiet", "%say **Hello.**"][..], "xterm"),
        (&["%say **Hello.**"], "dumb"),
    ] {
        let mut display = Display::with(&rig, "run", 80, args, &[("TERM", term)]);
        blocking(move || {
            let screen = display.ends_with(0);
            assert_eq!(
                timeless(&screen).split('\n').next(),
                Some("**Hello.**"),
                "{screen}"
            );
            assert!(!display.written().contains('\x1b'), "{:?}", display.written());
        })
        .await;
    }
}

const TEXT: &str = "# Result\n\nIt is *quite* **done**, see `main.rs` and [the docs](https://example.com).\n\n1. one\n2. two\n   - inner\n\n```rust\nlet a = *b;\n```\n\n| file | lines |\n|---|--:|\n| a.rs | 10 |\n\nThe end: \u{1b}[2J &#27;[2J.";

fn say(text: &str) -> String {
    format!("%say {}", serde_json::to_string(text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_is_rendered_and_commands_nothing() {
    let rig = Rig::start().await;
    let mut display = Display::start(&rig, "run", 60, &[&say(TEXT)]);
    blocking(move || {
        display.ends_with(0);
        insta::assert_snapshot!(timeless(&display.styled()));
        assert!(!display.written().contains("\x1b[2J"));
    })
    .await;
    let mut display = Display::start(&rig, "run", 30, &[&say(TEXT)]);
    blocking(move || {
        display.ends_with(0);
        insta::assert_snapshot!(timeless(&display.styled()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_stays_as_it_is_without_colours_and_where_it_is_wanted() {
    let rig = Rig::start().await;
    let plain: (&[&str], _) = (&["--plain", "%say **Hello.**"], ("LANG", "C"));
    let colourless: (&[&str], _) = (&["%say **Hello.**"], ("NO_COLOR", "1"));
    for (args, variable) in [plain, colourless] {
        let mut display = Display::with(&rig, "run", 80, args, &[variable]);
        blocking(move || {
            let screen = display.ends_with(0);
            assert!(screen.starts_with("**Hello.**\n"), "{screen}");
        })
        .await;
    }
    let ran = rig.run(&["%say **Hello.**"]).await;
    assert_eq!(ran.stdout, "**Hello.**\n", "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tools_return_commands_nothing() {
    let rig = Rig::start().await;
    rig.sandbox
        .write("evil.sh", "printf '\\033[2Jgone\\033]0;title\\007'")
        .unwrap();
    let prompt = "%tool Bash {\"command\":\"sh evil.sh\"}\n%say Done.";
    let mut display = Display::start(&rig, "run", 80, &["--verbose", "--allow", "Bash", prompt]);
    blocking(move || {
        let screen = display.ends_with(0);
        assert!(screen.contains("gone"), "{screen}");
        let written = display.written();
        assert!(
            !written.contains("\x1b[2J") && !written.contains("\x1b]0"),
            "{written:?}"
        );
    })
    .await;
}

/// The line is drawn again after the program was stopped and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_between_does_no_harm() {
    use rexpect::process::Signal;

    let rig = Rig::start().await;
    let gate = rig.api.gate("first");
    let mut display = Display::start(&rig, "run", 80, &[HELD]);
    blocking(move || {
        display.shows("waiting for the model (1 s)");
        display.signal(Signal::SIGSTOP);
        display.signal(Signal::SIGCONT);
        display.shows("waiting for the model (3 s)");
        display.resize(30);
        display.shows("waiting for the model (5 s)");
        gate.open();
        let screen = display.ends_with(0);
        assert_eq!(timeless(&screen).trim_end(), "Hello.\n$N, 1 turn, N s");
    })
    .await;
}
