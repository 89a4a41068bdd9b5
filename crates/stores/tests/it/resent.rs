//! Appends that are sent again because nobody knows whether they were done.

use std::pin::pin;
use std::task::Poll;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{SessionKey, SessionStore};

/// Drops appends at each of the points at which they wait, and sends them again: what has no uuid is there once. Meant twice, it is
/// there twice.
pub(crate) async fn dropped_anywhere_and_sent_again(store: &dyn SessionStore) {
    let session = SessionKey::new("p", "dropped");
    for key in [session.clone(), session.with_subpath("part")] {
        let mut wanted = Vec::new();
        let mut is_done = false;
        for polls in 0.. {
            let entry = RawJson::from_text(format!(r#"{{"customTitle":"{polls}"}}"#)).unwrap();
            let entries = [entry.clone(), entry];
            {
                let mut append = pin!(store.append(&key, &entries));
                let mut left = polls;
                is_done = std::future::poll_fn(|cx| {
                    if left == 0 {
                        return Poll::Ready(false);
                    }
                    left -= 1;
                    append.as_mut().poll(cx).map(|done| done.is_ok())
                })
                .await;
            }
            if !is_done {
                store.append(&key, &entries).await.unwrap();
            }
            wanted.extend(entries);
            let stored = store.load(&key).await.unwrap().unwrap();
            assert_eq!(stored, wanted, "{key} after {polls} polls");
            if is_done {
                store.append(&key, &wanted[..2]).await.unwrap();
                assert_eq!(
                    store.load(&key).await.unwrap().unwrap().len(),
                    wanted.len() + 2,
                    "{key}"
                );
                break;
            }
        }
        assert!(is_done, "{key}");
    }
    let summaries = store.list_session_summaries("p").await.unwrap();
    assert!(
        summaries[0].data.get().contains(r#""customTitle":"0""#),
        "{summaries:?}"
    );
}

/// Drops an append that goes on without a reader, deletes what it stored, and sends it again: it is stored again.
pub(crate) async fn deleted_and_sent_again(store: &dyn SessionStore) {
    let session = SessionKey::new("p", "deleted");
    let part = session.with_subpath("part");
    let entries = [RawJson::from_text(r#"{"customTitle":"a"}"#).unwrap()];
    for (key, deleted) in [(&session, &session), (&part, &part), (&part, &session)] {
        {
            let mut append = pin!(store.append(key, &entries));
            std::future::poll_fn(|cx| Poll::Ready(append.as_mut().poll(cx).is_ready())).await;
        }
        while store.load(key).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        store.delete(deleted).await.unwrap();
        assert_eq!(store.load(key).await.unwrap(), None, "{key}");
        store.append(key, &entries).await.unwrap();
        assert_eq!(store.load(key).await.unwrap().unwrap(), entries, "{key}");
        store.delete(&session).await.unwrap();
    }
}
