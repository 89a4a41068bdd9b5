//! What has the name of a session's file and is none. Nobody writes to these FIFOs, so whoever waits for one never comes back.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{DIR, Home, record};
use crate::lease::driven_by_cli;
use crate::search::Search;
use crate::{AgentId, ListOptions, MessageOptions, SessionId};

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn other(nth: u32) -> SessionId {
    SessionId::new(&format!("00000000-0000-4000-8000-9{nth:011}")).unwrap()
}

#[test]
fn what_is_no_regular_file_is_no_transcript_and_keeps_nobody_waiting() {
    let home = Home::new();
    let real = home.put(&[
        record("user", "u", None, json!({"cwd": DIR})),
        record("assistant", "a", Some("u"), json!({})),
    ]);
    let dir = home.dir();
    fifo(&dir.join(other(1).file_name()));
    fs::create_dir(dir.join(other(2).file_name())).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.join(other(3).file_name())).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.join(other(4).file_name())).unwrap();
    std::os::unix::fs::symlink(dir.join(real.file_name()), dir.join(other(5).file_name())).unwrap();
    // Beside the transcript, too.
    for name in [
        "custom-title.json",
        "archived.json",
        "subagents/agent-a1.jsonl",
        "subagents/agent-a2.meta.json",
    ] {
        fifo(&dir.join(real.as_str()).join(name));
    }
    let part = record("assistant", "s", None, json!({"isSidechain": true}));
    fs::write(
        dir.join(real.as_str()).join("subagents/agent-a2.jsonl"),
        super::text(&[part]),
    )
    .unwrap();
    fifo(&home.path().join("sessions/1.json"));

    for options in [
        ListOptions::new(),
        ListOptions::new().limit(10),
        ListOptions::new().dir(DIR),
    ] {
        let listed = home.sessions.list(&options).unwrap();
        let ids: Vec<_> = listed.iter().map(|info| info.session_id.as_str()).collect();
        assert_eq!(ids, [real.as_str()], "{options:?}");
        assert_eq!(listed[0].summary, "u");
    }
    for include_subagents in [false, true] {
        let search = Search::new("u").include_subagents(include_subagents);
        let found: Vec<_> = home
            .sessions
            .search(&search)
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(
            found.iter().all(|hit| hit.session.session_id == real) && !found.is_empty(),
            "{found:?}"
        );
    }
    for nth in 1..=4 {
        assert!(
            home.sessions.find(&other(nth)).unwrap_err().is_not_found(),
            "{nth}"
        );
    }
    // A link is found by its name, as the official SDK does it.
    assert!(home.sessions.find(&other(5)).is_ok());
    let file = home.sessions.find(&real).unwrap();
    assert_eq!(file.info().unwrap().unwrap().summary, "u");
    assert_eq!(file.messages(&MessageOptions::new()).unwrap().count(), 2);
    let agents: Vec<_> = file.subagents().into_iter().map(|agent| agent.agent_id).collect();
    assert_eq!(agents, [AgentId::new("a2").unwrap()]);
    assert_eq!(driven_by_cli(home.path(), &real), None);
}

#[test]
fn a_transcript_that_is_replaced_by_a_fifo_ends_what_follows_it() {
    let home = Home::new();
    let id = home.put(&[record("user", "u", None, json!({}))]);
    let file = home.sessions.find(&id).unwrap();
    let mut follow = file
        .watch(&crate::watch::WatchOptions::new().from_start(true))
        .unwrap();
    assert!(follow.next(std::time::Duration::ZERO).unwrap().is_some());
    fs::remove_file(&file.path).unwrap();
    fifo(&file.path);
    assert!(follow.next(std::time::Duration::ZERO).is_err());
    assert!(file.open().is_err());
    assert!(file.records().is_err());
    assert!(file.rename("x").is_err());
    assert!(file.fork(&crate::write::ForkOptions::new()).is_err());
    assert!(file.repair().is_err());
}
