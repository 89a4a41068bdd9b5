//! Summaries that were damaged in the store.

use outrigger_protocol::RawJson;
use outrigger_sessions::ListOptions;
use outrigger_sessions::store::{SessionKey, SessionStore, StoreSessions};
use std::sync::Arc;

/// Summaries that are none: no JSON, no text, or no object.
pub(crate) const DAMAGED: [&[u8]; 6] = [b"", b"{", b"{\"a\":\"\xff\"}", b"null", b"[]", b"\"{}\""];

/// The session of which [`a_summary_fails_nothing`] wants the summary damaged.
pub(crate) const PROJECT: &str = "p";
pub(crate) const SESSION: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

/// Has the summary of a session damaged in these ways: that fails no list and no append, hides no session, and loses nothing of the
/// summary. `open` opens the store as another program would; `damage` writes such a summary.
pub(crate) async fn a_summary_fails_nothing(
    damages: &[&[u8]],
    open: impl AsyncFn() -> Arc<dyn SessionStore>,
    damage: impl AsyncFn(&[u8]),
) {
    let (key, other) = (
        SessionKey::new(PROJECT, SESSION),
        SessionKey::new(PROJECT, "1f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22"),
    );
    let raw = |text: &str| [RawJson::from_text(text).unwrap()];
    let store = open().await;
    let prompt =
        r#"{"type":"user","uuid":"u","cwd":"/here","message":{"role":"user","content":"the prompt"}}"#;
    for key in [&key, &other] {
        store.append(key, &raw(prompt)).await.unwrap();
    }
    for (n, damaged) in damages.iter().enumerate() {
        damage(damaged).await;
        let what = String::from_utf8_lossy(damaged);
        let store = open().await;
        assert_eq!(store.list_sessions(PROJECT).await.unwrap().len(), 2, "{what}");
        let summaries = store.list_session_summaries(PROJECT).await.unwrap();
        let ids: Vec<_> = summaries.iter().map(|one| one.session_id.as_str()).collect();
        assert_eq!(ids, [other.session_id.as_str()], "{what}");
        let listed = StoreSessions::new(Arc::clone(&store), PROJECT);
        let listed = listed.list(&ListOptions::new()).await.unwrap();
        assert_eq!(listed.len(), 2, "{what}: {listed:?}");
        assert!(
            listed
                .iter()
                .all(|one| one.first_prompt.as_deref() == Some("the prompt")),
            "{what}: {listed:?}"
        );

        let title = format!(r#"{{"type":"custom-title","customTitle":"title {n}"}}"#);
        store.append(&key, &raw(&title)).await.unwrap();
        assert_eq!(store.load(&key).await.unwrap().unwrap().len(), n + 2, "{what}");
        let summaries = store.list_session_summaries(PROJECT).await.unwrap();
        let made = summaries.iter().find(|one| one.session_id == key.session_id);
        let made = made.unwrap().data.get();
        for part in ["the prompt", "/here", &format!("title {n}")] {
            assert!(made.contains(part), "{what}: {made}");
        }
    }
}
