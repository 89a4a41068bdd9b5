//! What `outrigger sessions` made and changed, resumed by the real CLI.

use std::path::Path;
use std::process::Stdio;

use outrigger::sessions::{SessionFile, Sessions};
use serde_json::Value;
use tokio::process::Command;

use crate::rig::{Ran, Rig, read_until};

/// The session of a rig in which one turn was had.
async fn one_turn(rig: &Rig) -> SessionFile {
    let ran = rig.run(&["%tool Bash {\"command\":\"echo hi\"}\n%say one"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sessions = Sessions::at(rig.sandbox.config());
    let infos = sessions.list(&Default::default()).unwrap();
    assert_eq!(infos.len(), 1, "{infos:?}");
    sessions.find(&infos[0].session_id).unwrap()
}

/// `outrigger sessions` with the config directory of a rig, in which something else may run.
async fn sessions(rig: &Rig, args: &[&str]) -> Ran {
    let mut command = Command::from(rig.program());
    command.arg("sessions").args(args);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    output.await.unwrap().into()
}

/// The id of the session that a command made.
async fn made(rig: &Rig, args: &[&str]) -> String {
    let ran = sessions(rig, args).await;
    assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    ran.stdout.trim().to_owned()
}

/// Resumes a session for one more turn in a directory, and returns what the model was told.
async fn resumed(rig: &Rig, dir: &Path, id: &str) -> String {
    std::fs::create_dir_all(dir).unwrap();
    let mut command = rig.std_command("run", &["--no-ask", "--resume", id, "%say more"]);
    command.current_dir(dir);
    let ran = rig.run_to_end(command).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "more\n"), "{ran:?}");
    let requests = rig.api.message_requests();
    Value::from(requests.last().unwrap().messages().to_vec()).to_string()
}

#[track_caller]
fn assert_whole(told: &str) {
    for part in ["echo hi", "tool_result", "\"one\"", "%say more"] {
        assert!(told.contains(part), "{part:?} in {told}");
    }
}

#[tokio::test]
async fn forks_moves_and_imports_go_on() {
    let rig = Rig::start().await;
    let file = one_turn(&rig).await;
    let project = rig.sandbox.project();
    let fork = made(&rig, &["fork", file.id.as_str()]).await;
    assert_whole(&resumed(&rig, &project, &fork).await);

    let export = rig.sandbox.path().join("a.session");
    let export = export.to_str().unwrap();
    let ran = sessions(&rig, &["export", file.id.as_str(), export]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let elsewhere = rig.sandbox.path().join("elsewhere");
    let to = elsewhere.to_str().unwrap();
    let import = made(&rig, &["import", export, "--dir", to]).await;
    assert_ne!(import, file.id.as_str());
    assert_whole(&resumed(&rig, &elsewhere, &import).await);

    assert_eq!(
        made(&rig, &["move", file.id.as_str(), to, "--yes"]).await,
        file.id.as_str()
    );
    assert!(!file.path.exists());
    assert_whole(&resumed(&rig, &elsewhere, file.id.as_str()).await);
}

#[tokio::test]
async fn what_was_mended_goes_on() {
    let rig = Rig::start().await;
    let file = one_turn(&rig).await;
    // The result of the call and all behind it is lost, and the last line torn.
    let text = std::fs::read_to_string(&file.path).unwrap();
    let at = text
        .lines()
        .position(|line| line.contains("\"tool_result\""))
        .unwrap();
    let kept: Vec<&str> = text.lines().take(at).collect();
    std::fs::write(&file.path, format!("{}\n{{\"torn", kept.join("\n"))).unwrap();
    let new = made(&rig, &["repair", file.id.as_str(), "--new"]).await;
    let same = made(&rig, &["repair", file.id.as_str(), "--in-place", "--yes"]).await;
    assert_eq!(same, file.id.as_str());
    for id in [&new, &same] {
        let told = resumed(&rig, &rig.sandbox.project(), id).await;
        for part in ["echo hi", "was not recorded", "%say more"] {
            assert!(told.contains(part), "{part:?} in {told}");
        }
    }
}

#[tokio::test]
async fn what_the_cli_drives_is_left_alone() {
    let rig = Rig::start().await;
    let file = one_turn(&rig).await;
    let mut child = rig.spawn(
        "run",
        &["--no-ask", "--resume", file.id.as_str(), "%hang\n%say begun"],
    );
    drop(child.stdin.take());
    read_until(&mut child, "begun").await;
    let torn = || std::fs::OpenOptions::new().append(true).open(&file.path).unwrap();
    std::io::Write::write_all(&mut torn(), b"{\"torn").unwrap();
    let to = rig.sandbox.path().join("elsewhere");
    let changing: [&[&str]; 3] = [
        &["delete", file.id.as_str(), "--yes"],
        &["move", file.id.as_str(), to.to_str().unwrap(), "--yes"],
        &["repair", file.id.as_str(), "--in-place", "--yes"],
    ];
    for args in changing {
        let ran = sessions(&rig, args).await;
        assert_eq!(ran.code, Some(1), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("is driven by"), "{args:?}: {ran:?}");
        assert!(file.path.exists() && !to.exists());
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    rig.finish(child).await;
    assert_eq!(made(&rig, changing[2]).await, file.id.as_str());
    assert_eq!(sessions(&rig, changing[0]).await.code, Some(0));
    assert!(!file.path.exists());
}
