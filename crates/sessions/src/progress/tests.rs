//! Reports of all that takes its time, and what is left of it when it is stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;
use crate::place::SessionFile;
use crate::relocate::RelocateOptions;
use crate::relocate::beside::files_below;
use crate::search::Search;
use crate::write::testing::TestConfigDir;
use crate::{SessionId, Sessions};

/// Keeps the reports, and stops at one of them, counted from 0.
struct Observed {
    reports: Vec<Progress>,
    stop_at: usize,
}

impl Observed {
    fn new() -> Self {
        Self::stopping_at(usize::MAX)
    }

    fn stopping_at(stop_at: usize) -> Self {
        let reports = Vec::new();
        Self { reports, stop_at }
    }

    fn observe(&mut self) -> impl FnMut(Progress) -> ControlFlow<()> {
        |progress| {
            self.reports.push(progress);
            if self.reports.len() > self.stop_at {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }

    /// Whether these are the reports of work that came to its end: from nothing to all, never back, and several.
    #[track_caller]
    fn assert_whole(&self, total: u64) {
        let reports = &self.reports;
        let first = reports.first().expect("something was told");
        assert_eq!((first.done, first.total), (0, total));
        let last = reports.last().expect("something was told");
        assert_eq!((last.done, last.total), (total, total));
        let is_step = |pair: &[Progress]| pair[0].done <= pair[1].done && pair[0].total == pair[1].total;
        assert!(reports.windows(2).all(is_step), "{reports:?}");
        let ends = reports.iter().filter(|report| report.done == total).count();
        assert_eq!(ends, 1, "all is done once: {reports:?}");
        assert!(reports.len() as u64 > total / STEP / 2, "{reports:?}");
    }
}

/// A session of about 2 MiB, with as much beside it and in other places.
fn session(place: &TestConfigDir) -> (SessionFile, u64) {
    let id = SessionId::random();
    let line = json!({"type": "user", "uuid": "u", "cwd": "/old", "sessionId": id, "message": {"content": "needle ".repeat(1000)}});
    let text = format!("{line}\n").repeat(300);
    let file = place.put(&id, "/old", text.as_bytes());
    let mut total = text.len() as u64;
    for (path, content) in [
        (file.subagents_dir().join("agent-1.jsonl"), text.repeat(2)),
        (file.beside().join("tool-results/b.txt"), "x".repeat(2_000_000)),
        (
            file.config_dir().join("file-history").join(id.as_str()).join("a"),
            "before".to_owned(),
        ),
    ] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &content).unwrap();
        total += content.len() as u64;
    }
    (file, total)
}

/// All that lies below a directory, directories included.
fn tree(place: &TestConfigDir) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut tree = BTreeMap::new();
    let mut open = vec![place.dir().to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let content = path.is_file().then(|| fs::read(&path).unwrap());
            if content.is_none() {
                open.push(path.clone());
            }
            tree.insert(path, content);
        }
    }
    tree
}

/// Does something until its end to see how much is told, and then stops it at each report but the last one, after which nothing may be
/// other than before.
#[track_caller]
fn stopped_everywhere<T: std::fmt::Debug>(
    place: &TestConfigDir,
    work: impl Fn(&mut Observed) -> Result<T>,
    reports: usize,
) {
    let before = tree(place);
    assert!(reports > 4, "there is something to stop");
    for stop_at in 0..reports - 1 {
        let mut observed = Observed::stopping_at(stop_at);
        let stopped = work(&mut observed);
        assert!(matches!(stopped, Err(Error::Stopped)), "{stop_at}: {stopped:?}");
        assert_eq!(observed.reports.len(), stop_at + 1, "it stops at once");
        let after = tree(place);
        let changed = |(path, content): &(&PathBuf, &Option<Vec<u8>>)| before.get(*path) != Some(*content);
        let changed: Vec<_> = after.iter().filter(changed).map(|(path, _)| path).collect();
        assert!(
            changed.is_empty() && after.len() == before.len(),
            "{stop_at}: {changed:?}"
        );
    }
}

#[test]
fn reports_are_few_and_end_with_all() {
    let mut observed = Observed::new();
    let mut observe = observed.observe();
    let mut meter = Meter::of(&mut observe);
    let total = 10 * STEP;
    meter.begin(total).unwrap();
    // More than there was at the beginning.
    for _ in 0..12_000 {
        meter.add(STEP / 1000).unwrap();
    }
    meter.end();
    drop(observe);
    observed.assert_whole(total);
    assert!(observed.reports.len() <= 14, "{}", observed.reports.len());
    let mut meter = Meter::unheard();
    meter.begin(7).unwrap();
    meter.add(STEP * 2).unwrap();
}

#[test]
fn an_export_tells_how_far_it_is_and_leaves_nothing_when_it_is_stopped() {
    let place = TestConfigDir::new();
    let (file, total) = session(&place);
    let target = place.dir().join("export");
    let mut observed = Observed::new();
    file.export_observed(&target, observed.observe()).unwrap();
    observed.assert_whole(total);
    let whole = fs::read(&target).unwrap();
    fs::remove_file(&target).unwrap();
    let export = |observed: &mut Observed| file.export_observed(&target, observed.observe());
    stopped_everywhere(&place, export, observed.reports.len());

    let mut written = Vec::new();
    let mut to_writer = Observed::new();
    file.export_to_observed(&mut written, to_writer.observe())
        .unwrap();
    to_writer.assert_whole(total);
    assert_eq!(written.len(), whole.len());
    let mut lines = Observed::new();
    file.export_jsonl_observed(&target, lines.observe()).unwrap();
    lines.assert_whole(file.size);
}

#[test]
fn an_import_tells_how_far_it_is_and_leaves_nothing_when_it_is_stopped() {
    let (here, there) = (TestConfigDir::new(), TestConfigDir::new());
    let (file, _) = session(&here);
    let (export, lines) = (here.dir().join("export"), here.dir().join("lines"));
    file.export(&export).unwrap();
    file.export_jsonl(&lines).unwrap();
    for source in [&export, &lines] {
        let import =
            |observed: &mut Observed| there.sessions.import_observed(source, "/new", observed.observe());
        // Neither the config directory nor anything in it is there yet.
        let mut observed = Observed::new();
        TestConfigDir::new()
            .sessions
            .import_observed(source, "/new", observed.observe())
            .unwrap();
        observed.assert_whole(fs::metadata(source).unwrap().len());
        stopped_everywhere(&there, import, observed.reports.len());
        assert!(!there.sessions.config_dir().exists());
    }
}

#[test]
fn a_move_tells_how_far_it_is_and_changes_nothing_when_it_is_stopped() {
    let place = TestConfigDir::new();
    let (file, total) = session(&place);
    let to = Sessions::at(place.dir().join("another"));
    let go = |observed: &mut Observed| {
        file.relocate_observed(&to, "/new", &RelocateOptions::new(), observed.observe())
    };
    let copy = RelocateOptions::new().copy(true);
    let mut observed = Observed::new();
    file.relocate_observed(&place.sessions, "/elsewhere", &copy, observed.observe())
        .unwrap();
    observed.assert_whole(total);
    stopped_everywhere(&place, go, observed.reports.len());
    let mut observed = Observed::new();
    let moved = go(&mut observed).unwrap();
    observed.assert_whole(total);
    assert!(moved.path.exists() && !file.path.exists());
}

#[test]
fn a_repair_tells_how_far_it_is_and_changes_nothing_when_it_is_stopped() {
    let place = TestConfigDir::new();
    let (file, total) = session(&place);
    file.append("{\"torn").unwrap();
    let mut observed = Observed::new();
    let repair = file.repair_observed(observed.observe()).unwrap();
    observed.assert_whole(fs::metadata(&file.path).unwrap().len());
    let look = |observed: &mut Observed| file.repair_observed(observed.observe());
    stopped_everywhere(&place, look, observed.reports.len());

    let mended = repair.mended().len() as u64;
    let beside = total - file.size - "before".len() as u64;
    let mut observed = Observed::new();
    let new = repair.into_new_observed(observed.observe()).unwrap();
    observed.assert_whole(mended + beside);
    assert_eq!(files_below(&new.beside()).unwrap().len(), 2);
    let make = |observed: &mut Observed| repair.into_new_observed(observed.observe());
    stopped_everywhere(&place, make, observed.reports.len());

    // There are two reports at least, of which only the last one cannot stop it.
    let exchange = |observed: &mut Observed| repair.in_place_observed(observed.observe());
    for stop_at in 0..2 {
        let before = tree(&place);
        let stopped = exchange(&mut Observed::stopping_at(stop_at));
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert_eq!(tree(&place), before);
    }
    let mut observed = Observed::new();
    exchange(&mut observed).unwrap();
    assert_eq!(
        observed.reports[0],
        Progress {
            done: 0,
            total: mended
        }
    );
    assert_eq!(observed.reports.last().map(|last| last.done), Some(mended));
}

#[test]
fn a_search_tells_how_far_it_is_and_can_be_stopped() {
    let place = TestConfigDir::new();
    let mut total = 0;
    for _ in 0..3 {
        let (file, _) = session(&place);
        total += file.size * 3;
    }
    let search = Search::new("needle").include_subagents(true).per_session(1000);
    let observed = Arc::new(Mutex::new(Observed::new()));
    let keep = |observed: &Arc<Mutex<Observed>>| {
        let observed = observed.clone();
        move |progress| observed.lock().unwrap().observe()(progress)
    };
    let hits = place.sessions.search_observed(&search, keep(&observed)).unwrap();
    assert_eq!(hits.map(Result::unwrap).count(), 3 * 900);
    observed.lock().unwrap().assert_whole(total);

    // A session that is passed over counts as done, too; and nothing to search is done at once.
    for (text, tag, total) in [("nothing at all", None, total), ("", Some("none"), total)] {
        let mut search = Search::new(text).include_subagents(true);
        search.tag = tag.map(str::to_owned);
        *observed.lock().unwrap() = Observed::new();
        let hits = place.sessions.search_observed(&search, keep(&observed)).unwrap();
        assert_eq!(hits.count(), 0);
        let observed = observed.lock().unwrap();
        let last = observed.reports.last().unwrap();
        assert_eq!((last.done, last.total), (total, total));
    }
    *observed.lock().unwrap() = Observed::new();
    let nowhere = TestConfigDir::new().sessions;
    assert_eq!(
        nowhere.search_observed(&search, keep(&observed)).unwrap().count(),
        0
    );
    assert_eq!(observed.lock().unwrap().reports.len(), 2);

    *observed.lock().unwrap() = Observed::stopping_at(3);
    let hits = place.sessions.search_observed(&search, keep(&observed)).unwrap();
    let hits: Vec<_> = hits.collect();
    assert!(hits.len() < 3 * 900, "{}", hits.len());
    let stops = hits
        .iter()
        .filter(|hit| matches!(hit, Err(Error::Stopped)))
        .count();
    assert!(stops == 1 && matches!(hits.last(), Some(Err(Error::Stopped))));
    assert!(observed.lock().unwrap().reports.last().unwrap().done < total);
}
