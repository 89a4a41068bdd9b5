//! Forks, titles, tags and removal.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_sessions::write::ForkOptions;

use super::rig::{Rig, THREE_TURNS, json, line_with, lines};

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_on_where_the_session_was() {
    let rig = Rig::start().await;
    let file = rig.three_turns().await;
    let before = fs::read(&file.path).unwrap();
    let fork = file.fork(&ForkOptions::new()).unwrap();
    assert_eq!(rig.resume(&fork.id).await, THREE_TURNS);

    // Up to the first answer, and up to the call of a tool.
    let old = lines(&file);
    let uuid = |words: &[&str]| {
        json(&old[line_with(&old, words)])["uuid"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = ForkOptions::new()
        .up_to_message_id(uuid(&["\"assistant\"", "\"one\""]))
        .title("first");
    let fork = file.fork(&first).unwrap();
    assert_eq!(
        rig.resume(&fork.id).await,
        ["user %say one", "assistant one", "user %say more"]
    );
    let called = ForkOptions::new().up_to_message_id(uuid(&["\"assistant\"", "\"tool_use\"", "\"Bash\""]));
    let told = rig.resume(&file.fork(&called).unwrap().id).await;
    assert_eq!(told[..6], THREE_TURNS[..6]);

    assert_eq!(fs::read(&file.path).unwrap(), before);
    assert_eq!(rig.resume(&file.id).await, THREE_TURNS);
    let forks = rig.sessions.find(&fork.id).unwrap();
    assert_eq!(
        forks.info().unwrap().unwrap().custom_title.as_deref(),
        Some("first")
    );
    // A fork of a fork.
    let again = forks.fork(&ForkOptions::new()).unwrap();
    assert_eq!(rig.resume(&again.id).await[..2], THREE_TURNS[..2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_keeps_what_a_compaction_kept() {
    let rig = Rig::start().await;
    let prompts = ["%say one", "%say two", "%say three", "/compact", "%say after"];
    let id = rig.run(&[], &prompts).await;
    let fork = rig.sessions.fork(&id, &ForkOptions::new()).unwrap();
    let told = rig.resume(&fork).await;
    assert!(
        told.len() >= 3 && told[0].contains("continued from a previous conversation"),
        "{told:?}"
    );
    assert_eq!(told, rig.resume(&id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn titles_and_tags_come_between_what_a_running_cli_writes() {
    let rig = Rig::start().await;
    let mut claude = rig.spawn(&rig.sandbox.project(), &[]);
    claude.prompt("%say one").await.unwrap();
    let id = claude.result().await.unwrap().value["session_id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let is_over = AtomicBool::new(false);
    let mut counts = [0; 2];
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (sessions, id, is_over) = (&rig.sessions, &id, &is_over);
                scope.spawn(move || {
                    let mut count = 0;
                    while !is_over.load(Ordering::Relaxed) && count < 400 {
                        sessions.tag(id, Some(&format!("{writer} {count}"))).unwrap();
                        count += 1;
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    count
                })
            })
            .collect();
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                for number in 0..10 {
                    claude.prompt(&format!("%big {}", 20_000 + number)).await.unwrap();
                    assert_eq!(claude.result().await.unwrap().value["is_error"], false);
                }
            });
        });
        is_over.store(true, Ordering::Relaxed);
        counts = writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
    });
    rig.sessions.rename(&id, "mine").unwrap();
    claude.prompt("%say last").await.unwrap();
    claude.result().await.unwrap();
    claude.finish().await.unwrap();

    let file = rig.sessions.find(&id).unwrap();
    let records: Vec<_> = lines(&file)
        .into_iter()
        .filter(|line| !line.is_empty())
        .map(|line| json(&line))
        .collect();
    for (writer, count) in counts.iter().enumerate() {
        let own = format!("{writer} ");
        let tags = records
            .iter()
            .filter_map(|record| record["tag"].as_str()?.strip_prefix(&own));
        let mut tags: Vec<usize> = tags.map(|number| number.parse().unwrap()).collect();
        // The CLI says again at times what it finds, so that it stays near the end.
        let mut seen = std::collections::HashSet::new();
        tags.retain(|number| seen.insert(*number));
        assert!(
            tags.iter().copied().eq(0..*count),
            "none is lost, and they are in order: {tags:?}"
        );
    }
    let answers = records
        .iter()
        .filter(|record| record["type"] == "assistant")
        .count();
    assert_eq!(answers, 12);
    assert_eq!(file.repair().unwrap().findings(), []);
    let info = file.info().unwrap().unwrap();
    assert_eq!(info.custom_title.as_deref(), Some("mine"));
    assert_eq!(rig.resume(&id).await.len(), 2 * 12 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_is_gone() {
    let rig = Rig::start().await;
    let id = rig.run(&[], &["%say one"]).await;
    rig.sessions.archive(&id).unwrap();
    assert_eq!(rig.resume(&id).await.len(), 3, "an archived one can be resumed");
    rig.sessions.delete(&id).unwrap();
    let mut claude = rig.spawn(&rig.sandbox.project(), &["--resume", id.as_str()]);
    let result = claude.result().await.unwrap().value;
    assert!(
        result["errors"][0]
            .as_str()
            .unwrap()
            .contains("No conversation found"),
        "{result}"
    );
}
