//! Runs the judge over recorded conversations with the real CLI.
//!
//! `OUTRIGGER_RECORDINGS` may name a directory with more recordings of the same kind; they are judged too.

use std::path::{Path, PathBuf};

use outrigger_protocol::check::{Checker, Direction, Recorded, recorded};

fn judge(checker: &mut Checker, path: &Path) {
    checker.conversation();
    for line in std::fs::read(path).unwrap().split(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match recorded(line) {
            Recorded::Frame(direction, frame) => checker.line(direction, frame.get().as_bytes()),
            Recorded::Text(direction, text) => checker.raw_text(direction, &text),
            Recorded::Start => {
                checker.conversation();
                continue;
            }
            Recorded::Plain => checker.line(Direction::Unknown, line),
            _ => continue,
        };
    }
}

fn recordings(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    found.sort();
    found
}

#[test]
fn everything_recorded_is_fully_typed_and_lossless() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut directories = vec![own];
    directories.extend(std::env::var_os("OUTRIGGER_RECORDINGS").map(PathBuf::from));
    let mut checker = Checker::new();
    for directory in directories {
        for path in recordings(&directory) {
            judge(&mut checker, &path);
        }
    }
    let report = checker.report();
    println!("{report}");
    assert!(report.frames() > 100, "too few frames: {}", report.frames());
    assert!(report.passed(), "{report}");
}
