//! What the official SDKs read of sessions is what this crate reads of them, field by field.
//!
//! The transcripts are made by the real CLI against a scripted API, and by chance. `cargo xtask sessions-diff` installs the SDKs and
//! runs the tests that need them.

mod compare;
mod corpus;
mod trees;

use outrigger_sessions::{MessageOptions, SessionId, Sessions};

#[tokio::test(flavor = "multi_thread")]
async fn transcripts_of_the_real_cli_are_read_to_the_last_message() {
    let corpus = corpus::make().await;
    let sessions = Sessions::at(corpus.sandbox.config());
    for (scenario, id) in &corpus.sessions {
        let all = MessageOptions::new().include_system_messages(true);
        let messages = sessions.messages(id, &all).unwrap();
        assert_eq!(messages.damaged(), 0, "{scenario}: {:?}", messages.damage());
        let mut told = 0;
        for message in messages {
            let message = message.unwrap();
            let decoded = message.decode();
            assert!(
                decoded.is_ok(),
                "{scenario}: {decoded:?} of {}",
                message.record.text()
            );
            told += 1;
        }
        assert!(told >= 2, "{scenario}: {told} messages");
        assert!(sessions.info(id, None).unwrap().is_some(), "{scenario}");
    }
    let texts = |scenario: &str| -> Vec<String> {
        let id = corpus.id(scenario);
        let messages = sessions.messages(id, &MessageOptions::new()).unwrap();
        messages
            .map(|message| message.unwrap().message.unwrap().get().to_owned())
            .collect()
    };
    let count =
        |scenario: &str, part: &str| texts(scenario).iter().filter(|text| text.contains(part)).count();
    assert_eq!(count("parallel", "\"tool_use_id\""), 3);
    assert_eq!(count("parallel", "\"tool_use\""), 3);
    assert_eq!(count("resumed", "%say"), 2);
    assert_eq!(count("queued", "%say in between"), 1);
    // What the compaction cut off is not told, what came then is.
    assert_eq!(
        (count("compacted", "%say one"), count("compacted", "%say after")),
        (0, 1)
    );
    let agents = sessions.subagents(corpus.id("subagent"), None).unwrap();
    assert_eq!(agents.len(), 1);
    assert!(agents[0].tool_use_id.is_some(), "{agents:?}");
    let said = agents[0].messages(&MessageOptions::new()).unwrap();
    assert!(said.count_all() >= 4, "{said:?}");
    assert!(
        sessions
            .cost(corpus.id("plain"), None)
            .unwrap()
            .is_none_or(|cost| cost.total_cost_usd > 0.0)
    );
    let named = sessions.info(corpus.id("named"), None).unwrap().unwrap();
    assert_eq!(
        (named.summary.as_str(), named.tag.as_deref()),
        ("A name for it", Some("kept"))
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the official SDKs; `cargo xtask sessions-diff` installs them and runs it"]
async fn the_official_sdks_read_the_same_of_the_real_clis_transcripts() {
    let corpus = corpus::make().await;
    let ids: Vec<SessionId> = corpus.sessions.iter().map(|(_, id)| id.clone()).collect();
    let dirs = [corpus.sandbox.project(), corpus.elsewhere()];
    compare::all(&corpus.sandbox.config(), &ids, &dirs);
}

#[test]
#[ignore = "needs the official SDKs; `cargo xtask sessions-diff` installs them and runs it"]
fn the_official_sdks_read_the_same_of_orderly_transcripts_by_chance() {
    let place = tempfile::tempdir().unwrap();
    let ids = trees::orderly(place.path(), 150);
    compare::all(place.path(), &ids, &[trees::PROJECT.into()]);
}

#[test]
#[ignore = "needs the official SDKs; `cargo xtask sessions-diff` installs them and runs it"]
fn the_typescript_sdk_reads_the_same_of_disorderly_transcripts_by_chance() {
    let place = tempfile::tempdir().unwrap();
    let ids = trees::disorderly(place.path(), 600);
    compare::typescript(place.path(), &ids, &[trees::PROJECT.into()]);
}
