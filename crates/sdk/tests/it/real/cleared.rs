//! What a living CLI keeps when its conversation is cleared: why a process is not used for a second job.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outrigger::Prompt;
use outrigger::permissions::{PermissionDecision, PermissionRequest};
use outrigger::protocol::shared::PermissionMode;

use super::rig::{Rig, turn};

#[tokio::test]
async fn a_cleared_conversation_keeps_the_mode() {
    let rig = Rig::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let session = rig
        .options()
        .can_use_tool(move |_: PermissionRequest| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { PermissionDecision::allow() }
        })
        .start()
        .await
        .unwrap();
    let project = rig.sandbox().project();
    let write = |name: &str| {
        let path = project.join(name);
        format!("%tool Write {{\"file_path\": {path:?}, \"content\": \"x\"}}\n%say done")
    };
    turn(&session, &write("one.txt")).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the mode asks");
    turn(
        &session,
        "%tool Bash {\"command\": \"mkdir sub && cd sub\", \"description\": \"Go\"}\n%say done",
    )
    .await;
    session
        .set_permission_mode(PermissionMode::AcceptEdits)
        .await
        .unwrap();

    let before = session.id().unwrap();
    let mut cleared = session.prompt(Prompt::command("clear", "")).await.unwrap();
    drop(cleared.outcome().await.unwrap());
    let asked_before = asked.load(Ordering::SeqCst);
    turn(&session, &write("two.txt")).await;
    assert_ne!(session.id().unwrap(), before, "it is another conversation");
    assert_eq!(
        asked.load(Ordering::SeqCst),
        asked_before,
        "in the mode of the last"
    );
    turn(
        &session,
        "%tool Bash {\"command\": \"pwd > where\", \"description\": \"Look\"}\n%say done",
    )
    .await;
    assert!(
        project.join("where").exists(),
        "but in the directory of the session"
    );
    session.close().await.unwrap();
}
