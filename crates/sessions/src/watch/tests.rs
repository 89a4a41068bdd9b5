//! Transcripts that are written in pieces, replaced, cut and deleted while they are followed.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::tail::Tail;
use super::{Change, Event, Follow, WatchOptions};
use crate::record::DamageReason;
use crate::{SessionId, Sessions};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

struct Home {
    _place: TempDir,
    sessions: Sessions,
    path: PathBuf,
}

impl Home {
    fn new(text: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(place.path());
        let path = sessions.projects_dir().join("-a").join(format!("{ID}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        Self {
            _place: place,
            sessions,
            path,
        }
    }

    fn watch(&self, options: &WatchOptions) -> Follow {
        let options = options.clone().interval(Duration::from_millis(2));
        self.sessions
            .watch(&SessionId::new(ID).unwrap(), &options)
            .unwrap()
    }

    fn append(&self, text: &str) {
        let mut file = File::options().append(true).open(&self.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

/// An event as its subagent and what happened.
fn shown(event: &Event) -> String {
    let agent = event.agent.as_ref().map_or("", |agent| agent.as_str());
    let change = match &event.change {
        Change::Record(record) => record.text().into_owned(),
        Change::Damaged(damage) => format!("damaged: {}", damage.excerpt),
        other => format!("{other:?}"),
    };
    format!("{agent}{change}")
}

fn now(follow: &mut Follow) -> Option<String> {
    follow.next(Duration::ZERO).unwrap().as_ref().map(shown)
}

fn soon(follow: &mut Follow) -> String {
    let event = follow.next(Duration::from_secs(20)).unwrap();
    shown(&event.expect("nothing happened"))
}

#[test]
fn what_another_thread_writes_in_pieces_is_told_whole_and_in_order() {
    let home = Home::new("{\"old\":1}\n");
    let mut follow = home.watch(&WatchOptions::new());
    let text: String = (0..300)
        .map(|nth| format!("{{\"nth\":{nth},\"text\":\"{}\"}}\n", "ä".repeat(nth % 50)))
        .collect();
    let path = home.path.clone();
    let whole = text.clone();
    let writer = thread::spawn(move || {
        let mut file = File::options().append(true).open(path).unwrap();
        for (nth, piece) in whole.as_bytes().chunks(37).enumerate() {
            file.write_all(piece).unwrap();
            if nth % 50 == 0 {
                thread::sleep(Duration::from_millis(3));
            }
        }
    });
    let mut offset = 10;
    for line in text.lines() {
        let event = follow.next(Duration::from_secs(20)).unwrap().unwrap();
        let Change::Record(record) = &event.change else {
            panic!("{event:?}")
        };
        assert_eq!((record.text().as_ref(), record.position().offset), (line, offset));
        offset += line.len() as u64 + 1;
    }
    writer.join().unwrap();
    assert_eq!(now(&mut follow), None);
}

#[test]
fn a_line_is_waited_for_until_it_is_whole_also_when_it_had_begun() {
    let home = Home::new("{\"a\":1}\n{\"b\"");
    let mut follow = home.watch(&WatchOptions::new());
    assert_eq!(now(&mut follow), None);
    home.append(":2}");
    assert_eq!(
        follow
            .next(Duration::from_millis(20))
            .unwrap()
            .as_ref()
            .map(shown),
        None
    );
    home.append("\n\nno record\n{\"c\":3}\n");
    for expected in ["{\"b\":2}", "damaged: no record", "{\"c\":3}"] {
        assert_eq!(soon(&mut follow), expected);
    }
    let mut all = home.watch(&WatchOptions::new().from_start(true));
    assert_eq!(soon(&mut all), "{\"a\":1}");
}

#[test]
fn a_file_that_is_replaced_cut_or_deleted_is_noticed_and_told() {
    let home = Home::new("{\"a\":1}\n");
    let mut follow = home.watch(&WatchOptions::new());
    home.append("{\"last\":1}\n{\"torn");
    let other = home.path.with_extension("new");
    fs::write(&other, "{\"new\":1}\n").unwrap();
    fs::rename(&other, &home.path).unwrap();
    // What was written to the old file before it went is not lost.
    for expected in ["{\"last\":1}", "damaged: {\"torn", "Replaced", "{\"new\":1}"] {
        assert_eq!(soon(&mut follow), expected);
    }
    File::options()
        .write(true)
        .open(&home.path)
        .unwrap()
        .set_len(0)
        .unwrap();
    assert_eq!(soon(&mut follow), "Truncated");
    home.append("{\"x\":1}\n");
    assert_eq!(soon(&mut follow), "{\"x\":1}");
    fs::remove_file(&home.path).unwrap();
    assert_eq!(
        (soon(&mut follow), soon(&mut follow)),
        ("Gone".to_owned(), "Gone".to_owned())
    );
    let missing = home
        .sessions
        .watch(&SessionId::new(ID).unwrap(), &WatchOptions::new());
    assert!(missing.unwrap_err().is_not_found());
}

#[test]
fn subagents_are_followed_if_asked_for_and_those_that_begin_later_too() {
    let home = Home::new("{\"a\":1}\n");
    let dir = home.path.with_extension("").join("subagents");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("agent-x.jsonl"), "{\"old\":1}\n").unwrap();
    let mut alone = home.watch(&WatchOptions::new());
    let mut follow = home.watch(&WatchOptions::new().include_subagents(true));
    assert_eq!(now(&mut follow), None);
    fs::write(dir.join("agent-y.jsonl"), "{\"new\":1}\n").unwrap();
    assert_eq!(soon(&mut follow), "y{\"new\":1}");
    fs::remove_file(dir.join("agent-x.jsonl")).unwrap();
    assert_eq!(soon(&mut follow), "xGone");
    home.append("{\"b\":1}\n");
    assert_eq!(soon(&mut follow), "{\"b\":1}");
    assert_eq!(
        (now(&mut follow), soon(&mut alone)),
        (None, "{\"b\":1}".to_owned())
    );
    assert_eq!(now(&mut alone), None);
}

#[test]
fn a_line_that_is_too_long_is_told_without_being_held() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x");
    fs::write(&path, format!("{}\n{{\"a\":1}}\n", "x".repeat(300_000))).unwrap();
    let mut tail = Tail::open(&path, true).unwrap().cap(1000);
    let Some(Change::Damaged(damage)) = tail.next().unwrap() else {
        panic!("no damage")
    };
    assert_eq!(
        (damage.reason, damage.length),
        (DamageReason::Oversized(1000), 300_000)
    );
    let Some(Change::Record(record)) = tail.next().unwrap() else {
        panic!("no record")
    };
    assert_eq!((record.position().offset, record.position().line), (300_001, 2));
    assert!(tail.next().unwrap().is_none());
}
