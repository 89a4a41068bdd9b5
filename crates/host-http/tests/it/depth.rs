//! Forks, transcripts, files, usage and adoptions over HTTP.

use std::path::Path;

use outrigger_host_http::Limits;
use serde_json::json;

use crate::rig::{Rig, S, host_that_stores, prompt, uuid};

async fn rig() -> (Rig, tempfile::TempDir) {
    rig_with(Limits::default()).await
}

async fn rig_with(limits: Limits) -> (Rig, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let workspaces = tempfile::tempdir().unwrap();
    let host = host_that_stores(dir.path(), workspaces.path()).await;
    (
        Rig::over(dir, host, |front| front.limits(limits)).await,
        workspaces,
    )
}

/// Makes the transcript longer than what the kernel keeps for a client that does not read.
fn lengthen(beside: &Path) {
    let mut projects = std::fs::read_dir(beside.join("claude/projects")).unwrap();
    let project = projects.next().unwrap().unwrap().path();
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(project.join(format!("{S}.jsonl")));
    let line = json!({"type": "filler", "text": "x".repeat(1 << 20)}).to_string() + "\n";
    std::io::Write::write_all(&mut file.unwrap(), line.repeat(64).as_bytes()).unwrap();
}

#[tokio::test]
async fn a_transcript_is_read_no_further_than_its_token_is_valid_and_its_front_is_there() {
    for is_revoked in [true, false] {
        let (rig, beside) = rig().await;
        rig.post(S, &[prompt("a", "%say one")]).await;
        rig.until(0, |event| event["payload"]["status"] == "processed")
            .await;
        lengthen(beside.path());
        let path = format!("/v1/sessions/{S}/transcript");
        let mut slow = rig.open(&path, None).await;
        assert!(slow.head().await.contains("200 OK"));
        if is_revoked {
            rig.tokens.revoke(rig.record.id).await.unwrap();
        } else {
            rig.stop.send(()).unwrap();
        }
        let (read, is_whole) = slow.read_to_end().await;
        assert!(read < 60 << 20 && !is_whole, "{read} {is_whole}");
    }
}

#[tokio::test]
async fn a_transcript_that_is_read_counts_as_a_stream() {
    let mut limits = Limits::default();
    limits.streams_per_token = 1;
    let (rig, beside) = rig_with(limits).await;
    rig.post(S, &[prompt("a", "%say one")]).await;
    let mut stream = rig.stream(S, None).await;
    while stream.next().await.unwrap().data["payload"]["status"] != "processed" {}
    let path = format!("/v1/sessions/{S}/transcript");
    assert_eq!(rig.get(&path).await.problem(), "too-many-streams");
    drop(stream);
    // The front has to see that the client has left.
    while rig.get(&path).await.status == 429 {}

    lengthen(beside.path());
    let mut slow = rig.open(&path, None).await;
    assert!(slow.head().await.contains("200 OK"));
    for path in [path.clone(), format!("/v1/sessions/{S}/events/stream")] {
        assert_eq!(rig.get(&path).await.problem(), "too-many-streams");
    }
    drop(slow);
    while rig.get(&path).await.status == 429 {}
}

#[tokio::test]
async fn a_session_is_forked_read_measured_and_compared() {
    let (rig, _workspaces) = rig().await;
    let of = |what: &str| format!("/v1/sessions/{S}/{what}");
    for (method, path) in [("POST", of("fork")), ("GET", of("transcript"))] {
        let early = rig.json(method, &path, &json!({})).await;
        assert_eq!((early.status, early.problem()), (404, "not-found"), "{path}");
    }
    assert_eq!(rig.get(&of("diff")).await.problem(), "invalid-request");
    rig.post(S, &[prompt("a", "%say one")]).await;
    rig.until(0, |event| event["payload"]["status"] == "processed")
        .await;
    std::fs::write(rig.dir.path().join("note.txt"), "text\n").unwrap();
    for from in ["", "?from=turn", "?from=start"] {
        let diff = rig.get(&of(&format!("diff{from}"))).await;
        assert!(
            diff.body["diff"].as_str().unwrap().contains("+text"),
            "{from}: {diff:?}"
        );
    }
    assert_eq!(rig.get(&of("diff?from=ever")).await.problem(), "invalid-request");

    let transcript = rig.text(&of("transcript")).await;
    assert!(transcript.contains("%say one"), "{transcript}");
    let used = rig.get(&of("usage")).await.body;
    assert_eq!(used["results"], 1);
    assert_eq!(rig.get("/v1/usage").await.body, used);

    let id = uuid("fork");
    let fork = rig
        .json("POST", &of("fork"), &json!({"id": id, "title": "two"}))
        .await;
    assert_eq!(
        (fork.status, &fork.body["forked_from"], &fork.body["id"]),
        (201, &json!(S), &json!(id))
    );
    assert_eq!(fork.body["created_by"], "ada");
    let again = rig
        .json("POST", &of("fork"), &json!({"id": id, "title": "two"}))
        .await;
    assert_eq!(again.status, 201);
    let other = rig
        .json("POST", &of("fork"), &json!({"id": id, "title": "three"}))
        .await;
    assert_eq!((other.status, other.problem()), (409, "reused"));

    // Without checkpoints the CLI refuses.
    let rewound = rig
        .json("POST", &of("rewind"), &json!({"event_id": uuid("a")}))
        .await;
    assert_eq!(
        (rewound.status, rewound.problem()),
        (409, "cli-refused"),
        "{rewound:?}"
    );
    let would = rig
        .json(
            "POST",
            &of("rewind"),
            &json!({"event_id": uuid("a"), "dry_run": true}),
        )
        .await;
    assert_eq!(
        (would.status, &would.body["canRewind"]),
        (200, &json!(false)),
        "{would:?}"
    );
    rig.post(S, &[prompt("b", "%hang")]).await;
    rig.until(0, |event| {
        event["payload"]["event_id"] == uuid("b") && event["payload"]["status"] == "processing"
    })
    .await;
    let running = rig.json("POST", &of("fork"), &json!({})).await;
    assert_eq!((running.status, running.problem()), (409, "turn-runs"));
}

#[tokio::test]
async fn what_the_cli_left_is_listed_and_adopted() {
    let (rig, workspaces) = rig().await;
    let (id, outside) = (uuid("left"), uuid("outside"));
    let config = workspaces.path().join("claude");
    let record = |id: &str, cwd: &std::path::Path| {
        let cwd = cwd.canonicalize().unwrap();
        let name: String = cwd
            .to_str()
            .unwrap()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let project = config.join("projects").join(name);
        std::fs::create_dir_all(&project).unwrap();
        let line = json!({
            "type": "user", "uuid": uuid(id), "parentUuid": null, "sessionId": id, "cwd": cwd, "isSidechain": false,
            "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "Hello"},
        });
        std::fs::write(project.join(format!("{id}.jsonl")), format!("{line}\n")).unwrap();
    };
    record(&id, rig.dir.path());
    record(&outside, workspaces.path());
    let listed = rig.get("/v1/adoptable").await.body;
    let ids: Vec<_> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [&json!(id)]);
    assert_eq!(listed["sessions"][0]["title"], "Hello");
    let refused = rig.get("/v1/adoptable?cwd=/").await;
    assert_eq!(refused.problem(), "forbidden");
    for (id, problem) in [(&outside, "forbidden"), (&uuid("missing"), "not-found")] {
        let refused = rig
            .json("POST", "/v1/adoptions", &json!({"session_id": id}))
            .await;
        assert_eq!(refused.problem(), problem, "{refused:?}");
    }
    let adopted = rig
        .json("POST", "/v1/adoptions", &json!({"session_id": id}))
        .await;
    assert_eq!(
        (adopted.status, &adopted.body["adopted"]),
        (201, &json!(true)),
        "{adopted:?}"
    );
    assert_eq!(rig.get("/v1/adoptable").await.body["sessions"], json!([]));
}

#[tokio::test]
async fn a_workspace_is_removed_when_nothing_in_it_is_lost_or_by_force() {
    let (rig, workspaces) = rig().await;
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(args)
            .current_dir(rig.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status();
        assert!(done.unwrap().success());
    };
    git(&["init", "--quiet"]);
    std::fs::write(rig.dir.path().join("a.txt"), "a\n").unwrap();
    git(&["add", "a.txt"]);
    git(&["commit", "--quiet", "-m", "a"]);
    let made = rig
        .json(
            "POST",
            "/v1/sessions",
            &json!({"cwd": rig.dir.path(), "worktree": {}}),
        )
        .await;
    let (id, tree) = (
        made.body["id"].as_str().unwrap(),
        made.body["cwd"].as_str().unwrap(),
    );
    let path = format!("/v1/sessions/{id}/workspace");
    let early = rig.json("DELETE", &path, &json!({})).await;
    assert_eq!(
        (early.status, early.problem()),
        (400, "invalid-request"),
        "{early:?}"
    );
    rig.post(id, &[prompt("a", "%say hi")]).await;
    let mut stream = rig.stream(id, Some(0)).await;
    while stream.next().await.unwrap().data["payload"]["status"] != "processed" {}
    std::fs::write(format!("{tree}/b.txt"), "work\n").unwrap();
    rig.json("POST", &format!("/v1/sessions/{id}/archive"), &json!({}))
        .await;
    let kept = rig.json("DELETE", &path, &json!({})).await;
    assert_eq!((kept.status, kept.problem()), (409, "workspace-kept"), "{kept:?}");
    assert!(std::path::Path::new(tree).exists());
    let removed = rig
        .json("DELETE", &format!("{path}?force=true"), &json!({}))
        .await;
    assert_eq!(removed.status, 204, "{removed:?}");
    assert!(!std::path::Path::new(tree).exists());
    // Again, as a client does that was not told.
    assert_eq!(rig.json("DELETE", &path, &json!({})).await.status, 204);
    drop(workspaces);
}
