//! `outrigger chat`.

use tokio::io::AsyncWriteExt as _;

use crate::rig::Rig;

#[tokio::test]
async fn each_line_gets_a_turn_and_the_end_of_the_input_ends_it() {
    let rig = Rig::start().await;
    let ran = rig
        .ran(
            "chat",
            &["--no-ask"],
            "%say One.\n%say \"Two,\\\\n\"\n\nmore:\\\n%say Three.\n",
        )
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("One.\n"), "{ran:?}");
    assert!(ran.stdout.ends_with("Three.\n"), "{ran:?}");
    assert!(
        !ran.stderr.contains("> "),
        "no prompt without a terminal: {ran:?}"
    );
    // One conversation: the last request has the answers before it.
    let requests = rig.api.message_requests();
    let last = format!("{:?}", requests.last().unwrap());
    assert!(last.contains("One.") && last.contains("more:"), "{last}");
}

#[tokio::test]
async fn commands_are_carried_out_between_the_turns() {
    let rig = Rig::start().await;
    let ran = rig
        .ran(
            "chat",
            &["--no-ask", "--quiet"],
            "/cost\n%say One.\n/cost\n/model claude-opus-4-5\n/mode plan\n/mode yolo\n/tasks\n/help\n%say Two.\n/quit\n%say never\n",
        )
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(&lines[..2], ["$0.0000", "One."], "{ran:?}");
    assert!(lines[2].starts_with("$0.0") && lines[2] != "$0.0000", "{ran:?}");
    assert!(lines.contains(&"model: claude-opus-4-5"), "{ran:?}");
    assert!(lines.contains(&"permission mode: plan"), "{ran:?}");
    assert!(lines.contains(&"nothing runs in the background"), "{ran:?}");
    assert!(ran.stdout.contains("the modes are"), "{ran:?}");
    assert!(ran.stdout.contains("/compact"), "{ran:?}");
    assert_eq!(lines.last(), Some(&"Two."), "{ran:?}");
    assert_eq!(
        rig.api.message_requests().last().unwrap().model(),
        Some("claude-opus-4-5")
    );
}

#[tokio::test]
async fn a_command_that_is_sent_as_text_is_warned_of() {
    let rig = Rig::start().await;
    let ran = rig
        .ran("chat", &["--no-ask"], " /context\\\n%say As text.\n/context\n")
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("As text.\n"), "{ran:?}");
    let warning = "warning: /context is a slash command, and was sent as text; without the blank before it, it is run\n";
    assert_eq!(ran.stderr.matches(warning).count(), 1, "{ran:?}");
}

#[tokio::test]
async fn a_turn_that_fails_does_not_end_the_conversation() {
    let rig = Rig::start().await;
    let ran = rig
        .ran(
            "chat",
            &["--no-ask"],
            "%error 400 n=99 msg=\"no such thing\"\\\n%say never\n%say Still here.\n",
        )
        .await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("no such thing"), "{ran:?}");
    assert!(ran.stdout.ends_with("Still here.\n"), "{ran:?}");
}

#[tokio::test]
async fn sigterm_ends_it_while_it_waits_for_a_line() {
    let rig = Rig::start().await;
    let mut child = rig.spawn("chat", &["--no-ask"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"%say One.\n").await.unwrap();
    crate::rig::read_until(&mut child, "One.").await;
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ran = rig.finish(child).await;
    assert_eq!(ran.code, Some(143), "{ran:?}");
    drop(stdin);
}
