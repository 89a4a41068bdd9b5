//! Sessions that are recorded, and played back.

use std::io;

use outrigger::options::Launch;
use outrigger::protocol::Frame;
use outrigger::testing::sim::cassette::{Cassette, Said};
use outrigger::testing::sim::peer::{Match, Reply, Steps};
use outrigger::testing::{Recording, Replay, Simulated, recorded_events, snapshot_all};
use outrigger::transport::{BoxFuture, Connection, Transport};
use outrigger::{AmbientEvent, Event, EventLine, Options, Outcome, Policy, Session};
use serde_json::json;

fn shown(event: &Event) -> String {
    match event {
        Event::Text(text) => format!("text {text}"),
        Event::ToolUse(tool) => format!("use {}", tool.name),
        Event::ToolResult(result) => format!("result {}", result.is_error),
        other => format!("{other:?}")
            .chars()
            .take_while(|c| c.is_alphanumeric())
            .collect(),
    }
}

async fn turn(session: &Session, prompt: &str) -> (Vec<String>, Outcome) {
    let mut turn = session.prompt(prompt).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = turn.next().await {
        seen.push(shown(&event.unwrap()));
    }
    (seen, turn.outcome().await.unwrap())
}

async fn run(options: Options) -> Vec<(Vec<String>, String, f64)> {
    let session = options
        .permissions(Policy::allow_list(["Bash"]))
        .start()
        .await
        .unwrap();
    let mut all = Vec::new();
    for prompt in ["%tool Bash {\"command\":\"echo hi\"}\n%say done", "%say again"] {
        let (seen, outcome) = turn(&session, prompt).await;
        all.push((seen, outcome.result_text().to_owned(), outcome.cost()));
    }
    assert_eq!(session.close().await.unwrap().code, Some(0));
    all
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_of_a_session_plays_to_another_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/it.ndjson");
    let cli = Simulated::agent(|agent| agent.sdk_reads_session_state());
    let recording = Recording::new(cli.clone(), &path);
    let recorded = run(cli.options().transport(recording.clone())).await;
    recording.finish().unwrap();
    assert_eq!(recorded[0].1, "done");

    let replay = Replay::open(&path).unwrap();
    for _ in 0..2 {
        assert_eq!(run(replay.options()).await, recorded);
    }
    replay.check().unwrap();
    assert_eq!(replay.played().len(), 2);
}

/// A recording has the events that the session emitted, and outcomes that say the same.
#[tokio::test(start_paused = true)]
async fn the_events_of_a_recording_are_those_of_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.ndjson");
    let cli = Simulated::agent(|agent| agent);
    let recording = Recording::new(cli.clone(), &path);
    let options = cli
        .options()
        .transport(recording.clone())
        .include_partial_messages(true)
        .permissions(Policy::allow_list(["Bash"]));
    let session = options.start().await.unwrap();
    let prompts = [
        "%tool Bash {\"command\":\"echo hi\"}\n%say done \u{fc}",
        "%say again\n%usage in=10 out=5",
        "%error 400 n=9 msg=\"no\"",
    ];
    let mut emitted: Vec<String> = Vec::new();
    for prompt in prompts {
        let mut turn = session.prompt(prompt).await.unwrap();
        while let Some(event) = turn.next().await {
            emitted.push(json!(EventLine::Event(event.unwrap())).to_string());
        }
        let outcome = turn.outcome().await.unwrap();
        emitted.push(json!(EventLine::TurnEnded(outcome)).to_string());
    }
    session.close().await.unwrap();
    recording.finish().unwrap();

    let cassette = Cassette::read(&path).unwrap();
    let recorded: Vec<_> = recorded_events(&cassette).collect();
    let mut asked = 0;
    let mut told = Vec::new();
    for one in &recorded {
        if let AmbientEvent::Event(Event::Message(_, frame)) = &one.event
            && frame.kind() == "user"
        {
            asked += 1;
            continue;
        }
        told.push(json!(EventLine::from(one.event.clone())).to_string());
    }
    assert_eq!(asked, prompts.len(), "prompts are told, too");
    // The working directory stands there as a placeholder.
    emitted.retain(|line| !line.contains("\"subtype\":\"init\""));
    // What comes between the turns belongs to no prompt.
    told.retain(|line| emitted.contains(line));
    assert_eq!(told, emitted);
    let places: Vec<_> = recorded.iter().map(|one| (one.line, one.at)).collect();
    assert!(places.is_sorted() && places[0].0 > 1, "{places:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_says_something_else_ends_with_what_was_expected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.ndjson");
    let cli = Simulated::agent(|agent| agent.replies([Reply::say("one")]));
    let session = cli
        .options()
        .transport(Recording::new(cli.clone(), &path))
        .start()
        .await
        .unwrap();
    turn(&session, "this").await;
    session.close().await.unwrap();

    let replay = Replay::open(&path).unwrap();
    let session = replay.options().start().await.unwrap();
    let error = session.prompt("that").await.unwrap().outcome().await.unwrap_err();
    let shown = error.to_string();
    let divergence = replay.check().unwrap_err();
    assert!(
        shown.contains("97")
            && error
                .stderr_tail()
                .is_some_and(|tail| tail.contains("left the recording")),
        "{error:#?}"
    );
    let difference = "/message/content/0/text: \"this\" was recorded, \"that\" came";
    assert_eq!(divergence.differences[0].to_string(), difference, "{divergence}");
    assert!(divergence.cassette.ends_with("it.ndjson"));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_dropped_half_way_has_not_sent_what_was_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.ndjson");
    let cli = Simulated::agent(|agent| agent.replies([Reply::say("one"), Reply::say("two")]));
    let session = cli
        .options()
        .transport(Recording::new(cli.clone(), &path))
        .start()
        .await
        .unwrap();
    for prompt in ["this", "that"] {
        turn(&session, prompt).await;
    }
    session.close().await.unwrap();

    let replay = Replay::open(&path).unwrap();
    let session = replay.options().start().await.unwrap();
    turn(&session, "this").await;
    session.kill().await.unwrap();
    let divergence = replay.check().unwrap_err();
    assert!(divergence.to_string().contains("that"), "{divergence}");
}

/// A machine without a CLI.
struct NoCli;

impl Transport for NoCli {
    fn open<'a>(&'a self, _: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async { Err(io::Error::new(io::ErrorKind::NotFound, "there is no CLI")) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_leaves_the_cassette_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.ndjson");
    std::fs::write(&path, "kept").unwrap();
    let cli = Simulated::agent(|agent| agent);
    let options = cli.options().transport(Recording::new(NoCli, &path));
    options.start().await.unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}

#[tokio::test(start_paused = true)]
async fn each_session_of_a_transport_gets_a_cassette_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.ndjson");
    let cli = Simulated::agent(|agent| agent);
    let recording = Recording::new(cli.clone(), &path);
    let prompts = ["%say one", "%say two"];
    for prompt in prompts {
        let session = cli.options().transport(recording.clone()).start().await.unwrap();
        turn(&session, prompt).await;
        session.close().await.unwrap();
    }
    let replay = Replay::open(&path).unwrap();
    for (prompt, text) in prompts.into_iter().zip(["one", "two"]) {
        let session = replay.options().start().await.unwrap();
        assert_eq!(turn(&session, prompt).await.1.result_text(), text);
        session.close().await.unwrap();
    }
    replay.check().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_death_is_recorded_and_played() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.ndjson");
    let cli = Simulated::steps(|| {
        let script = Steps::new().initialize().expect(Match::prompt("die"));
        script.complain("it hurts").exit(7)
    });
    let recording = Recording::new(cli.clone(), &path);
    let end = async |options: Options| {
        let session = options.start().await.unwrap();
        let error = session.prompt("die").await.unwrap().outcome().await.unwrap_err();
        error.to_string()
    };
    let recorded = end(cli.options().transport(recording)).await;
    let played = end(Replay::open(&path).unwrap().options()).await;
    let ends = [recorded, played];
    assert!(ends[0].contains('7'), "{ends:?}");
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test(start_paused = true)]
async fn snapshots_of_two_runs_are_the_same() {
    let mut all = Vec::new();
    for seed in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("it.ndjson");
        let cli = Simulated::agent(move |agent| agent.seed(seed));
        let session = cli
            .options()
            .transport(Recording::new(cli.clone(), &path))
            .start()
            .await
            .unwrap();
        turn(&session, "%say hi").await;
        session.close().await.unwrap();
        let cassette = Cassette::read(&path).unwrap();
        let frames: Vec<Frame> = cassette
            .out()
            .skip(1)
            .flat_map(|said: &Said| Frame::from_line(said.text()))
            .collect();
        let refs: Vec<&Frame> = frames.iter().collect();
        all.push((
            frames
                .iter()
                .map(|frame| frame.bytes().to_vec())
                .collect::<Vec<_>>(),
            snapshot_all(refs),
        ));
    }
    assert_ne!(all[0].0, all[1].0);
    assert_eq!(all[0].1, all[1].1);
    assert!(json!(all[0].1).to_string().contains("[uuid-1]"));
}
