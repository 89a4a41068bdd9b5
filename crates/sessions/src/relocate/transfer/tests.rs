//! Moves and copies.

use serde_json::{Value, json};

use super::*;
use crate::write::testing::TestConfigDir;

struct Two {
    place: TestConfigDir,
    old: PathBuf,
    new: PathBuf,
}

impl Two {
    fn new() -> Self {
        let place = TestConfigDir::new();
        let real = place.dir().canonicalize().unwrap();
        let (old, new) = (real.join("old"), real.join("new"));
        fs::create_dir(&old).unwrap();
        fs::create_dir(&new).unwrap();
        Self { place, old, new }
    }

    /// A session of `old` with something everywhere.
    fn session(&self) -> SessionFile {
        let id = SessionId::random();
        let cwds = [
            self.old.join(""),
            self.old.join("sub"),
            self.old.with_extension("x"),
            self.old.clone(),
        ];
        let record = |cwd: &PathBuf| json!({"type": "user", "cwd": cwd.to_str().unwrap().trim_end_matches('/'), "sessionId": id});
        let lines: String = cwds.iter().map(|cwd| format!("{}\n", record(cwd))).collect();
        let odd = format!("{lines}{{\"type\":\"new\", \"odd\":1e400}}\n{{\"torn");
        let file = self.place.put(&id, self.old.to_str().unwrap(), odd.as_bytes());
        let agent = file.subagents_dir().join("agent-1.jsonl");
        let history = file
            .config_dir()
            .join("file-history")
            .join(id.as_str())
            .join("a@v1");
        for (path, content) in [(agent, lines.as_str()), (history, "before")] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        file
    }
}

fn cwds(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let records = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records
        .filter_map(|record| Some(record["cwd"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn a_session_moves_with_all_it_has() {
    let two = Two::new();
    let file = two.session();
    let sessions = &two.place.sessions;
    assert_eq!(sessions.resume_dir(&file.id).unwrap(), two.old);
    let moved = file
        .relocate(sessions, &two.new, &RelocateOptions::new())
        .unwrap();
    assert_eq!(
        (&moved.id, moved.project_dir()),
        (&file.id, &*sessions.project_dir(&two.new))
    );
    assert!(!file.path.exists() && !file.beside().exists());
    assert_eq!(sessions.find_all(&file.id).len(), 1);
    let expected = [
        two.new.clone(),
        two.new.join("sub"),
        two.old.with_extension("x"),
        two.new.clone(),
    ];
    let expected = expected.map(|path| path.to_str().unwrap().to_owned());
    assert_eq!(cwds(&moved.path), expected);
    assert_eq!(cwds(&moved.subagents_dir().join("agent-1.jsonl")), expected);
    let text = fs::read_to_string(&moved.path).unwrap();
    assert!(
        text.contains("\n{\"type\":\"new\", \"odd\":1e400}\n{\"torn\n{\"type\":\"relocated\""),
        "{text}"
    );
    assert_eq!(sessions.resume_dir(&file.id).unwrap(), two.new);
    let history = file
        .config_dir()
        .join("file-history")
        .join(file.id.as_str())
        .join("a@v1");
    assert_eq!(fs::read(history).unwrap(), b"before");

    // Once more, and back: the last one counts.
    let back = moved
        .relocate(sessions, &two.old, &RelocateOptions::new())
        .unwrap();
    assert_eq!(back.recorded_dir().unwrap().unwrap(), two.old);
    assert!(
        matches!(back.relocate(sessions, &two.old, &RelocateOptions::new()), Err(Error::Exists(path)) if path == back.path)
    );
}

#[test]
fn a_session_goes_to_another_machine() {
    let two = Two::new();
    let file = two.session();
    let other = Sessions::at(two.place.dir().join("elsewhere"));
    let copied = file
        .relocate(&other, "/home/somebody/app", &RelocateOptions::new().copy(true))
        .unwrap();
    assert_eq!(copied.id, file.id);
    assert!(file.path.exists() && file.beside().exists());
    assert_eq!(cwds(&copied.path)[1], "/home/somebody/app/sub");
    assert!(
        other
            .config_dir()
            .join("file-history")
            .join(file.id.as_str())
            .join("a@v1")
            .exists()
    );
    let error = other.resume_dir(&file.id).unwrap_err();
    assert!(
        error.to_string().contains("/home/somebody/app") && error.to_string().contains(file.id.as_str()),
        "{error}"
    );
    // What is there is never overwritten.
    let before = fs::read(&copied.path).unwrap();
    let error = file
        .relocate(&other, &two.new, &RelocateOptions::new())
        .unwrap_err();
    assert!(
        matches!(&error, Error::Exists(path) if *path == copied.path),
        "{error}"
    );
    assert_eq!(fs::read(&copied.path).unwrap(), before);

    other.delete(&file.id).unwrap();
    remove(&other.config_dir().join("file-history")).unwrap();
    file.relocate(&other, &two.new, &RelocateOptions::new()).unwrap();
    assert!(
        !file.path.exists()
            && !file
                .config_dir()
                .join("file-history")
                .join(file.id.as_str())
                .exists()
    );
}

#[test]
fn a_copy_in_the_same_place_is_another_session() {
    let two = Two::new();
    let file = two.session();
    let options = RelocateOptions::new().copy(true).keep_records(true);
    let copy = file.relocate(&two.place.sessions, &two.new, &options).unwrap();
    assert_ne!(copy.id, file.id);
    assert_eq!(cwds(&copy.path), cwds(&file.path), "the records are as they were");
    assert!(!fs::read_to_string(&copy.path).unwrap().contains(file.id.as_str()));
    assert_eq!(copy.recorded_dir().unwrap().unwrap(), two.new);
    assert_eq!(file.recorded_dir().unwrap().unwrap(), two.old);
}

#[test]
fn what_fails_leaves_nothing_behind() {
    let two = Two::new();
    let file = two.session();
    let other = Sessions::at(two.place.dir().join("elsewhere"));
    let taken = other.config_dir().join("tasks").join(file.id.as_str());
    for dir in [&taken, &file.config_dir().join("tasks").join(file.id.as_str())] {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("1.json"), "{}").unwrap();
    }
    let error = file
        .relocate(&other, &two.new, &RelocateOptions::new())
        .unwrap_err();
    assert!(matches!(&error, Error::Exists(path) if *path == taken), "{error}");
    assert!(other.find_all(&file.id).is_empty() && file.path.exists());
    assert!(
        !other
            .config_dir()
            .join("file-history")
            .join(file.id.as_str())
            .exists()
    );
    assert!(!other.projects_dir().exists() && other.config_dir().exists());
}
