//! `outrigger top`.

use std::process::Command;

use rexpect::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::display::Display;
use crate::rig::{PATIENCE, Rig};
use crate::terminal::blocking;

/// The sessions as a program reads them.
fn listed(rig: &Rig, args: &[&str]) -> Vec<Value> {
    let program = rig.std_command("", &[]);
    let mut command = Command::new(program.get_program());
    command.args(["top", "--json"]).args(args).env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_and_what_is_stored_is_shown() {
    let rig = Rig::start().await;
    assert_eq!(listed(&rig, &[]), Vec::<Value>::new());
    let ran = rig.run(&["%usage in=1000 out=100\n%say stored words"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let gate = rig.api.gate("first");
    let prompt = "%tool Bash {\"command\":\"echo hi\"}\n%say {{gate:first}}Hello.";
    let mut child = rig.spawn("run", &["--no-ask", "--allow", "Bash", "--json", prompt]);
    drop(child.stdin.take());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let called = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("\"tool_result\"") {
                return;
            }
        }
        panic!("it ended early");
    };
    tokio::time::timeout(PATIENCE, called).await.expect("in time");

    // The CLI stores a message some time after it wrote the frame.
    let until = std::time::Instant::now() + PATIENCE;
    let mut rows = listed(&rig, &[]);
    while rows[0]["tokens"] == 0 && std::time::Instant::now() < until {
        rows = listed(&rig, &[]);
    }
    assert_eq!(rows.len(), 2, "{rows:?}");
    let (running, stored) = (&rows[0], &rows[1]);
    assert_eq!(
        (&running["state"], &running["driven_by_outrigger"]),
        (&"busy".into(), &true.into()),
        "{running}"
    );
    assert!(
        running["pid"].is_u64()
            && running["resident_bytes"]
                .as_u64()
                .is_some_and(|bytes| bytes > 1 << 20)
    );
    assert!(
        running["tokens"].as_u64().is_some_and(|tokens| tokens > 0) && running["turns"] == 1,
        "{running}"
    );
    assert_eq!(
        (&stored["state"], &stored["tokens"]),
        (&"stored".into(), &1100.into()),
        "{stored}"
    );
    assert!(
        stored["cost_usd"].as_f64().is_some_and(|usd| usd > 0.0),
        "{stored}"
    );
    assert_eq!(listed(&rig, &["--stored", "0"]).len(), 1);

    // At a terminal, which is left as it was.
    let mut display = Display::alone(&rig, 80, &["top", "--every", "1s"]);
    let rig = blocking(move || {
        display.shows("busy");
        display.shows("stored");
        let screen = display.shows("1 run");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        gate.open();
        display.shows("0 run");
        display.signal(Signal::SIGINT);
        let screen = display.ends_with(130);
        assert_eq!(screen.trim(), "", "the other screen is gone");
        rig
    })
    .await;
    rig.finish(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_is_narrow_or_can_draw_nothing_gets_what_fits() {
    let rig = Rig::start().await;
    let ran = rig.run(&["%say stored"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut narrow = Display::alone(&rig, 20, &["top", "--every", "1s"]);
    let dumb = Display::alone_with(&rig, 80, &["top"], &[("TERM", "dumb")]);
    blocking(move || {
        let screen = narrow.shows("stored");
        // The first line is longer than the terminal, and takes one row all the same.
        let rows: Vec<&str> = screen.lines().collect();
        assert!(
            rows[0].starts_with("0 run") && rows[1].trim().is_empty(),
            "{screen}"
        );
        assert!(rows[2].starts_with("STATE"), "{screen}");
        narrow.signal(Signal::SIGINT);
        narrow.ends_with(130);
        // Once, and without a command for the terminal.
        let mut dumb = dumb;
        let screen = dumb.ends_with(0);
        assert!(
            screen.contains("stored") && !screen.contains("Ctrl-C"),
            "{screen}"
        );
    })
    .await;
}
