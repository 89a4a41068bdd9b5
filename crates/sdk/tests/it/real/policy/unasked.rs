//! What the CLI does without a request, unless the session is kept from it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use outrigger::options::{Isolation, Tools};
use outrigger::permissions::PermissionResult;
use outrigger::protocol::settings::Settings;
use outrigger::protocol::shared::PermissionMode;
use outrigger::{Options, Policy};
use serde_json::json;

use super::place::{Did, Place, bash, made, read};
use crate::real::rig::turn;

/// The model enters plan mode without a request. There, the CLI has a classifier decide, and reads any file.
#[tokio::test(flavor = "multi_thread")]
async fn plan_mode_takes_no_call_from_the_handler() {
    let place = Place::new().await;
    let calls = [
        ("EnterPlanMode", json!({})),
        read(&place.at("out/secret")),
        bash("touch made"),
    ];
    let settings: Settings = serde_json::from_value(json!({"cleanupPeriodDays": 5})).unwrap();
    let file = place
        .rig
        .sandbox()
        .write("settings.json", r#"{"cleanupPeriodDays": 5}"#)
        .unwrap();
    let options = || place.rig.options().permissions(Policy::read_only());
    for options in [
        options(),
        options().permission_mode(PermissionMode::Plan),
        options().settings(settings),
        options().settings(file),
    ] {
        let did = made(options, &calls).await;
        assert_eq!((did[1].0, did[2].0), (Did::Asked, Did::Asked), "{did:?}");
        assert!(!place.rig.sandbox().project().join("made").exists(), "{did:?}");
    }
    // So it is for a closure.
    let person = async |_| PermissionResult::deny("it was asked");
    let did = made(place.rig.options().can_use_tool(person), &calls).await;
    assert_eq!((did[1].0, did[2].0), (Did::Asked, Did::Asked), "{did:?}");
}

/// Nor does it take what would be refused in a session without a handler: no classifier allows it.
#[tokio::test(flavor = "multi_thread")]
async fn plan_mode_allows_nothing_where_nobody_decides() {
    let place = Place::new().await;
    let calls = [
        ("EnterPlanMode", json!({})),
        read(&place.at("out/secret")),
        bash("touch made"),
    ];
    let did = made(place.rig.options(), &calls).await;
    assert_eq!(did[0].0, Did::Refused, "{did:?}");
    let in_plan = place.rig.options().permission_mode(PermissionMode::Plan);
    for did in [did, made(in_plan, &calls).await] {
        assert_eq!((did[1].0, did[2].0), (Did::Asked, Did::Asked), "{did:?}");
        assert!(!place.rig.sandbox().project().join("made").exists(), "{did:?}");
    }
}

fn repository(directory: &Path) {
    let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
    for arguments in [&["init", "-q"][..], &commit[..]] {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@example.com"]);
        let output = command.args(arguments).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
    }
}

/// Tools for which the CLI requests no permission, and that leave something behind or reach other sessions.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_read_does_no_more_than_reading() {
    let place = Place::new().await;
    let project = place.rig.sandbox().project();
    repository(&project);
    let agent = json!({
        "description": "d", "prompt": "hello", "subagent_type": "general-purpose", "isolation": "worktree",
    });
    let calls = [
        ("EnterWorktree", json!({"name": "made"})),
        ("ExitWorktree", json!({"action": "keep"})),
        ("Agent", agent),
        (
            "CronCreate",
            json!({"cron": "* * * * *", "prompt": "x", "durable": true}),
        ),
        ("CronDelete", json!({"id": "x"})),
        (
            "ScheduleWakeup",
            json!({"delaySeconds": 3600, "reason": "x", "prompt": "x"}),
        ),
        ("SendMessage", json!({"to": "x", "message": "x", "summary": "x"})),
    ];
    // With schedules, which a session gets by this variable alone.
    let with_schedules = |options: Options| options.env("CLAUDE_CODE_DISABLE_CRON", "0");
    let options = with_schedules(place.rig.options()).permissions(Policy::read_only());
    for ((tool, _), (did, text)) in calls.iter().zip(made(options, &calls).await) {
        assert_eq!(did, Did::Refused, "{tool}: {text}");
    }
    assert!(!project.join(".claude").exists());
}

/// Not even with all that the user has in a terminal, unless the program says that it is meant.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_user_bypass_no_handler() {
    let place = Place::new().await;
    let settings = json!({"permissions": {"defaultMode": "bypassPermissions"}});
    let file = place.rig.sandbox().config().join("settings.json");
    fs::write(file, settings.to_string()).unwrap();
    let options = || {
        let options = place.rig.options().assume_sandbox(true);
        options
            .isolation(Isolation::Interactive)
            .permissions(Policy::read_only())
    };
    let calls = [bash("touch made")];
    let did = made(options(), &calls).await;
    assert_eq!(did[0].0, Did::Asked, "{did:?}");
    let did = made(options().allow_dangerously_skip_permissions(true), &calls).await;
    assert_eq!(did[0].0, Did::Ran, "{did:?}");
}

/// An untrusted checkout can bring prompts with a schedule; those that are overdue would run at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_brings_no_prompts() {
    let place = Place::new().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let two_hours_ago = now.as_secs().saturating_sub(7200) * 1000;
    let task = json!({
        "id": "27228112", "cron": "* * * * *", "prompt": "SCHEDULED", "createdAt": two_hours_ago, "recurring": true,
    });
    let directory = place.rig.sandbox().project().join(".claude");
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        directory.join("scheduled_tasks.json"),
        json!({ "tasks": [task] }).to_string(),
    )
    .unwrap();
    let session = place.rig.options().tools(Tools::NONE).start().await.unwrap();
    for _ in 0..3 {
        turn(&session, "%say hello").await;
    }
    session.close().await.unwrap();
    let requests = place.rig.api().message_requests();
    assert!(requests.len() >= 3);
    for request in requests {
        let messages = serde_json::to_string(request.messages()).unwrap();
        assert!(!messages.contains("SCHEDULED"), "{messages}");
    }
}
