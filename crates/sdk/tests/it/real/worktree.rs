//! Sessions of the real CLI in worktrees that it makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger::options::Worktree;
use outrigger::protocol::Message;
use outrigger::protocol::inbound::SystemMessage;
use outrigger::{Cause, Event, Policy, Session};
use serde_json::json;

use super::rig::{PATIENCE, Rig};

fn repository(directory: &Path) {
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        let mut command = Command::new("git");
        command.args(identity).args(arguments).current_dir(directory);
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
}

/// Where the CLI says that it works.
async fn place(session: &Session) -> PathBuf {
    let mut turn = session.prompt("%say Here.").await.unwrap();
    let mut place = None;
    let told = async {
        while let Some(event) = turn.next().await {
            if let Event::Message(message, _) = event.unwrap()
                && let Message::System(system) = &*message
                && let SystemMessage::Init(init) = &**system
            {
                place = Some(PathBuf::from(&init.cwd));
            }
        }
        turn.outcome().await.unwrap();
        place.expect("it says so")
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap()
}

#[tokio::test]
async fn a_session_works_in_its_worktree_and_is_revived_there() {
    outrigger_needs::needs!(outrigger_needs::program("git", "a package of the system has it"));
    let rig = Rig::start().await;
    let project = rig.sandbox().project();
    repository(&project);
    let worktrees = project.canonicalize().unwrap().join(".claude/worktrees");
    let count = || worktrees.read_dir().unwrap().count();

    let named = rig.options().worktree("feature").start().await.unwrap();
    assert_eq!(place(&named).await, worktrees.join("feature"));
    named.close().await.unwrap();
    // It is left behind, and gone on with by its name.
    let again = rig.options().worktree("feature").start().await.unwrap();
    assert_eq!(place(&again).await, worktrees.join("feature"));
    again.close().await.unwrap();
    assert_eq!(count(), 1);

    let unnamed = rig.options().worktree(Worktree::Unnamed).start().await.unwrap();
    let own = place(&unnamed).await;
    assert_eq!(own.parent(), Some(worktrees.as_path()));
    unnamed.clone().close().await.unwrap();
    let revived = unnamed.revive().await.unwrap().session;
    assert_eq!((place(&revived).await, count()), (own, 2));
    revived.close().await.unwrap();
}

#[tokio::test]
async fn a_rule_that_asks_holds_in_a_worktree() {
    outrigger_needs::needs!(outrigger_needs::program("git", "a package of the system has it"));
    let rig = Rig::start().await;
    let project = rig.sandbox().project();
    repository(&project);
    let here = project.canonicalize().unwrap().join(".claude/worktrees/feature");
    let options = || {
        rig.options()
            .permissions(Policy::allow_all().ask(["Edit(/asked)"]))
    };
    let first = options().worktree("feature").start().await.unwrap();
    let write = |name: &str| {
        let input = json!({"file_path": here.join(name), "content": "x"});
        format!("%tool Write {input}\n%say done")
    };
    // A session that is resumed goes back to its worktree by itself.
    for resumed in [false, true] {
        let session = match resumed {
            false => first.clone(),
            true => options()
                .resume(first.id().unwrap().to_string())
                .start()
                .await
                .unwrap(),
        };
        for name in ["asked", "other"] {
            let mut turn = session.prompt(write(name)).await.unwrap();
            tokio::time::timeout(PATIENCE, turn.outcome())
                .await
                .unwrap()
                .unwrap();
        }
        assert!(!here.join("asked").exists(), "resumed: {resumed}");
        std::fs::remove_file(here.join("other")).unwrap();
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_worktree_that_cannot_be_made_is_a_wrong_argument() {
    outrigger_needs::needs!(outrigger_needs::program("git", "a package of the system has it"));
    let rig = Rig::start().await;
    let outside = rig.options().worktree("feature").start().await.unwrap_err();
    assert_eq!(outside.cause(), Some(Cause::InvalidArgument), "{outside}");
    repository(&rig.sandbox().project());
    let above = rig.options().worktree("../up").start().await.unwrap_err();
    assert_eq!(above.cause(), Some(Cause::InvalidArgument), "{above}");
}
