//! Sessions of the real CLI, recorded and played back.

use futures_util::StreamExt as _;
use outrigger::permissions::{PermissionHandler, PermissionRequest, PermissionResult};
use outrigger::testing::assert::{Trace, question, tool};
use outrigger::testing::sim::cassette::{Cassette, Places, RedactionRules, Redactor};
use outrigger::testing::{Recording, Replay, Traced};
use outrigger::{Local, Options, Session};
use serde_json::Value;

use crate::real::rig::{Rig, turn};

const PROMPTS: [&str; 3] = [
    "%say Looking.\n%+tool Bash {\"command\":\"echo $PWD > here.txt; cat here.txt\"}\n%say Done.",
    "%tool Write {\"file_path\":\"other.txt\",\"content\":\"x\"}\n%say It may not.",
    "%say The end.",
];

/// Asked by the CLI, unlike the rules of a policy, which the CLI judges itself.
fn only_bash() -> impl PermissionHandler {
    async |request: PermissionRequest| match request.tool_name.as_str() {
        "Bash" => PermissionResult::allow(),
        _ => PermissionResult::deny("only Bash"),
    }
}

/// All that a session says when it is told to: what each turn shows, and what it cost.
async fn run(options: Options) -> (Vec<(Vec<String>, String, f64)>, Vec<String>) {
    let options = options.include_partial_messages(true).permissions(only_bash());
    let session: Session = options.start().await.unwrap();
    let frames = session.frames();
    let frames = tokio::spawn(frames.map(|frame| frame.unwrap()).collect::<Vec<_>>());
    session.set_model(Some("sonnet")).await.unwrap();
    let mut all = Vec::new();
    for prompt in PROMPTS {
        let (seen, outcome) = turn(&session, prompt).await;
        all.push((seen, outcome.result_text().to_owned(), outcome.cost()));
    }
    assert_eq!(session.close().await.unwrap().code, Some(0));
    let frames = frames.await.unwrap();
    let kinds = frames.iter().map(|frame| {
        let json: Value = serde_json::from_slice(frame.bytes()).unwrap();
        format!("{}/{}/{}", json["type"], json["subtype"], json["event"]["type"])
    });
    (all, kinds.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_cli_plays_back_with_the_same_events() {
    let rig = Rig::start().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("real.ndjson");
    let recording = Recording::new(Local::new(), &path);
    let recorded = run(rig.options().transport(recording.clone())).await;
    recording.finish().unwrap();
    assert_eq!(recorded.0[0].1, "Done.");

    let cassette = Cassette::read(&path).unwrap();
    assert_eq!(
        cassette.cli_version().as_deref(),
        Some(outrigger_sim::claude::pin().version.as_str())
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let home = rig.sandbox().home().to_string_lossy().into_owned();
    assert!(
        !text.contains(&home) && !text.contains(outrigger_sim::api::ApiRequest::DUMMY_KEY),
        "{text}"
    );
    assert_eq!(
        cassette.leaks(&Redactor::new(&Places::default(), RedactionRules::new())),
        []
    );

    // Once where it was recorded, once elsewhere, and no model is asked.
    let asked = rig.api().request_count();
    let elsewhere = Rig::start().await;
    for rig in [&rig, &elsewhere] {
        let replay = Replay::open(&path).unwrap();
        let replayed = run(rig.options().transport(replay.clone())).await;
        replay.check().unwrap();
        assert_eq!(replayed.0, recorded.0);
        assert_eq!(replayed.1, recorded.1);
    }
    assert_eq!(
        (rig.api().request_count(), elsewhere.api().request_count()),
        (asked, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_real_cli_can_be_asked_what_it_did() {
    let rig = Rig::start().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("real.ndjson");
    let recording = Recording::new(Local::new(), &path);
    let traced = Traced::new(recording.clone());
    assert_eq!(traced.trace(), Trace::default());
    let session = rig
        .options()
        .permissions(only_bash())
        .transport(traced.clone())
        .start()
        .await
        .unwrap();
    let pid = session.pid().unwrap();
    for prompt in PROMPTS {
        turn(&session, prompt).await;
    }
    // While it lives, and of what was recorded afterwards.
    let living = traced.trace();
    session.close().await.unwrap();
    recording.finish().unwrap();
    for trace in [living, traced.trace(), Trace::from_file(&path).unwrap()] {
        trace.called([tool("Bash"), tool("Write")]).unwrap();
        trace
            .asked([question("Bash").allowed(), question("Write").denied()])
            .unwrap();
        trace.cost_below(1.0).unwrap();
        assert!(trace.cost_below(0.0).is_err());
        trace.turns_below(10).unwrap();
        assert!(trace.turns_below(2).is_err());
        trace.all_answered().unwrap();
        trace.nothing_unknown().unwrap();
        assert!(trace.called([tool("Bash")]).is_err());
    }
    outrigger::testing::assert::no_process_left(pid, std::time::Duration::from_secs(10)).unwrap();
}
