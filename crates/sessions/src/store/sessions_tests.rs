//! The same session on disk and in a store.

use super::super::conformance::tests::block_on;
use super::super::{BoxFuture, MemoryStore, import_to_store};
use super::*;
use crate::Sessions;

const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";
const OTHER: &str = "1f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

fn id() -> SessionId {
    SessionId::new(ID).unwrap()
}

/// A session with a subagent, on disk.
fn on_disk() -> (tempfile::TempDir, Sessions) {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("projects/-p");
    let agents = project.join(ID).join("subagents");
    std::fs::create_dir_all(&agents).unwrap();
    let line = |uuid: &str, parent: &str, kind: &str, text: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"{ID}","timestamp":"2026-01-02T03:04:05.678Z","cwd":"/w","gitBranch":"main","isSidechain":false,"message":{{"role":"{kind}","content":"{text}"}}}}"#
        )
    };
    let a = "00000000-0000-4000-8000-00000000000a";
    let b = "00000000-0000-4000-8000-00000000000b";
    let main = [
        line(a, "null", "user", "hello"),
        line(b, &format!("\"{a}\""), "assistant", "hi"),
        r#"{"type":"tag","tag":"blue","sessionId":"x"}"#.to_owned(),
    ];
    std::fs::write(project.join(format!("{ID}.jsonl")), main.join("\n") + "\n").unwrap();
    std::fs::write(
        agents.join("agent-a1.jsonl"),
        line(a, "null", "user", "look") + "\n",
    )
    .unwrap();
    std::fs::write(agents.join("agent-a1.meta.json"), r#"{"toolUseId":"t1"}"#).unwrap();
    let sessions = Sessions::at(root.path());
    (root, sessions)
}

fn imported() -> (tempfile::TempDir, Sessions, Arc<MemoryStore>, StoreSessions) {
    let (root, sessions) = on_disk();
    let store = Arc::new(MemoryStore::new());
    let file = sessions.find(&id()).unwrap().path;
    block_on(import_to_store(&file, &*store, ImportOptions::default())).unwrap();
    let stored = StoreSessions::new(Arc::clone(&store) as _, "-p");
    (root, sessions, store, stored)
}

#[test]
fn a_store_tells_what_the_disk_tells() {
    let (_root, sessions, _, stored) = imported();
    let mut on_disk = sessions.list(&ListOptions::new()).unwrap();
    let mut in_store = block_on(stored.list(&ListOptions::new())).unwrap();
    assert_eq!(block_on(stored.info(&id())).unwrap(), Some(in_store[0].clone()));
    // These a store has of its own.
    for info in on_disk.iter_mut().chain(&mut in_store) {
        info.last_modified = 0;
        info.file_size = None;
    }
    assert_eq!(in_store, on_disk);

    let options = MessageOptions::new();
    let disk: Vec<_> = sessions
        .messages(&id(), &options)
        .unwrap()
        .map(|message| message.unwrap())
        .collect();
    let json = |messages: &[SessionMessage]| serde_json::to_value(messages).unwrap();
    assert_eq!(
        json(&block_on(stored.messages(&id(), &options)).unwrap()),
        json(&disk)
    );
    assert_eq!(disk.len(), 2);

    let agents = block_on(stored.subagents(&id())).unwrap();
    assert_eq!(agents, [AgentId::new("a1").unwrap()]);
    let disk = sessions.subagent_messages(&id(), &agents[0], &options).unwrap();
    let disk: Vec<_> = disk.map(|message| message.unwrap()).collect();
    let said = block_on(stored.subagent_messages(&id(), &agents[0], &options)).unwrap();
    assert_eq!(json(&said), json(&disk));
    assert_eq!(disk[0].parent_tool_use_id.as_deref(), Some("t1"));
}

#[test]
fn titles_tags_and_forks_are_written_to_the_store() {
    let (_root, _, store, stored) = imported();
    block_on(stored.rename(&id(), "  a title ")).unwrap();
    block_on(stored.tag(&id(), None)).unwrap();
    let info = block_on(stored.info(&id())).unwrap().unwrap();
    assert_eq!((info.custom_title.as_deref(), info.tag), (Some("a title"), None));
    for refused in [
        block_on(stored.rename(&id(), " ")),
        block_on(stored.tag(&id(), Some("\u{200b}"))),
    ] {
        assert_eq!(*refused.unwrap_err().kind(), StoreErrorKind::Invalid);
    }
    let unknown = SessionId::new(OTHER).unwrap();
    let refused = block_on(stored.rename(&unknown, "x")).unwrap_err();
    assert_eq!(*refused.kind(), StoreErrorKind::NotFound);
    assert_eq!(store.len(), 1, "nothing is made that wasn't there");

    let fork = block_on(stored.fork(&id(), &ForkOptions::new().title("copy"))).unwrap();
    assert_eq!(
        block_on(stored.messages(&fork, &MessageOptions::new()))
            .unwrap()
            .len(),
        2
    );
    let info = block_on(stored.info(&fork)).unwrap().unwrap();
    assert_eq!(info.custom_title.as_deref(), Some("copy"));
    let taken = block_on(stored.fork(&id(), &ForkOptions::new().id(fork.clone()))).unwrap_err();
    assert_eq!(*taken.kind(), StoreErrorKind::Invalid);
    assert_eq!(
        block_on(stored.messages(&fork, &MessageOptions::new()))
            .unwrap()
            .len(),
        2,
        "nothing is added to it"
    );
    assert!(block_on(stored.delete(&fork)).unwrap());
    assert_eq!(block_on(stored.info(&fork)).unwrap(), None);
    let gone = block_on(stored.messages(&fork, &MessageOptions::new())).unwrap_err();
    assert_eq!(*gone.kind(), StoreErrorKind::NotFound);
}

/// Has no summaries, and fails to load one session.
struct Bare(Arc<MemoryStore>);

impl SessionStore for Bare {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        self.0.append(key, entries)
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        if key.session_id == OTHER {
            let error = StoreError::new(StoreErrorKind::Failed, "told to");
            return Box::pin(std::future::ready(Err(error)));
        }
        self.0.load(key)
    }

    fn capabilities(&self) -> super::super::Capabilities {
        let mut has = super::super::Capabilities::NONE;
        has.list_sessions = true;
        has
    }

    fn list_sessions<'a>(
        &'a self,
        project: &'a str,
    ) -> BoxFuture<'a, Result<Vec<super::super::StoredSession>>> {
        self.0.list_sessions(project)
    }
}

#[test]
fn a_subagent_is_found_in_a_store_that_lists_no_parts() {
    let (_root, sessions, store, _) = imported();
    let plain = StoreSessions::new(Arc::new(Bare(store)), "-p");
    let (agent, options) = (AgentId::new("a1").unwrap(), MessageOptions::new());
    let said = block_on(plain.subagent_messages(&id(), &agent, &options)).unwrap();
    let disk = sessions.subagent_messages(&id(), &agent, &options).unwrap();
    let disk: Vec<_> = disk.map(|message| message.unwrap()).collect();
    let json = |messages: &[SessionMessage]| serde_json::to_value(messages).unwrap();
    assert_eq!(json(&said), json(&disk));
    let none = AgentId::new("a2").unwrap();
    let missing = block_on(plain.subagent_messages(&id(), &none, &options));
    assert_eq!(*missing.unwrap_err().kind(), StoreErrorKind::NotFound);
}

#[test]
fn a_list_without_summaries_loads_and_one_bad_session_spoils_no_list() {
    let (_root, _, store, stored) = imported();
    let with_summaries = block_on(stored.list(&ListOptions::new())).unwrap();
    let entry = [RawJson::from_text(r#"{"type":"x","isSidechain":true}"#).unwrap()];
    block_on(store.append(
        &SessionKey::new("-p", "2f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22"),
        &entry,
    ))
    .unwrap();
    block_on(store.append(&SessionKey::new("-p", "no-id-of-the-cli"), &entry)).unwrap();
    block_on(store.append(&SessionKey::new("-p", OTHER), &entry)).unwrap();
    let bare = StoreSessions::new(Arc::new(Bare(store)), "-p");
    let list = block_on(bare.list(&ListOptions::new())).unwrap();
    assert_eq!(
        list[0].session_id.as_str(),
        OTHER,
        "the newest, of which nothing is known"
    );
    assert_eq!(list[0].summary, "");
    assert_eq!(list[1..], with_summaries);
    assert_eq!(
        block_on(bare.list(&ListOptions::new().offset(2).limit(5)))
            .unwrap()
            .len(),
        1
    );
    assert!(!block_on(bare.delete(&id())).unwrap());
    assert!(block_on(bare.subagents(&id())).unwrap().is_empty());
}
