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

/// Nobody types what is piped in: it is no command, as with `run`, neither of the CLI nor of this program.
#[tokio::test]
async fn what_is_piped_in_is_text() {
    let rig = Rig::start().await;
    let lines = [
        "/context\\\n%say One.\n",
        " /context\\\n%say Two.\n",
        "/no-such-command\\\n%say Three.\n",
        "/mode acceptEdits\\\n%say Four.\n",
        "/quit\n%say Five.\n",
    ];
    let ran = rig.ran("chat", &["--no-ask"], &lines.concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "One.\nTwo.\nThree.\nFour.\nok\nFive.\n", "{ran:?}");
    let warning =
        "warning: /context is a slash command, and was sent as text; typed at a terminal, it is run\n";
    assert_eq!(ran.stderr.matches(warning).count(), 2, "{ran:?}");
    let warning = "warning: /quit is a command of `outrigger chat`, and was sent as text; typed at a terminal, it is run\n";
    assert_eq!(ran.stderr.matches(warning).count(), 1, "{ran:?}");
    assert!(!ran.stderr.contains("no-such-command"), "{ran:?}");
}

#[tokio::test]
async fn what_is_no_text_is_refused() {
    let rig = Rig::start().await;
    let mut child = rig.spawn("chat", &["--no-ask"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"%say One.\n%say caf\xe9\n%say Three.\n")
        .await
        .unwrap();
    drop(stdin);
    let ran = rig.finish(child).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), "One.\n"), "{ran:?}");
    assert!(
        ran.stderr.contains("line 2") && ran.stderr.contains("UTF-8"),
        "{ran:?}"
    );
}
