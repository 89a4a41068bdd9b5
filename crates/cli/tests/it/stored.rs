//! `outrigger sessions status`, `push` and `pull`, with stores in files.

use std::fs;

use crate::kept::{ONE, Place, TWO};

const STORES: [&str; 2] = ["dir:store", "sqlite:store.db"];

/// How the one session stands, and how many entries the store lacks, and the disk.
#[track_caller]
fn stands(place: &Place, store: &str, name: &str, lacks: u64, beyond: u64) {
    let all = place.lines(&["status", "--store", store, "--json"]);
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    let found = (&all[0]["standing"], &all[0]["lacks"], &all[0]["beyond"]);
    assert_eq!(
        (found.0.as_str(), found.1.as_u64(), found.2.as_u64()),
        (Some(name), Some(lacks), Some(beyond)),
        "{all}"
    );
}

#[test]
fn what_a_store_lacks_is_told_and_brought() {
    for store in STORES {
        let place = Place::new();
        let file = place.session(&place.project, ONE, "count the files", Some("counting"));
        let whole = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        // A store that is misspelt is no empty one.
        assert_eq!(place.run(&["status", "--store", store]).1, 1);

        fs::write(&file, lines[..2].join("\n") + "\n").unwrap();
        assert_eq!(
            place.done(&["push", ONE, "--store", store]),
            format!("{ONE}  brought 2\n")
        );
        stands(&place, store, "same", 0, 0);
        fs::write(&file, &whole).unwrap();
        stands(&place, store, "behind", 3, 0);
        let said = place.done(&["status", "--store", store]);
        assert_eq!(
            said,
            format!("{ONE}  behind: the store lacks the last 3 entries\n")
        );
        assert_eq!(
            place.done(&["push", "counting", "--store", store]),
            format!("{ONE}  brought 3\n")
        );
        stands(&place, store, "same", 0, 0);
        assert_eq!(
            place.done(&["push", "--all", "--store", store]),
            format!("{ONE}  brought 0\n")
        );

        // Another machine.
        fs::remove_file(&file).unwrap();
        stands(&place, store, "only-there", 0, 5);
        assert_eq!(
            place.done(&["pull", ONE, "--store", store]),
            format!("{ONE}  brought 5\n")
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), whole);
        // One that is behind.
        fs::write(&file, lines[..1].join("\n") + "\n").unwrap();
        stands(&place, store, "ahead", 0, 4);
        assert_eq!(
            place.done(&["pull", "--all", "--store", store]),
            format!("{ONE}  brought 4\n")
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), whole);
        let (_, code) = place.run(&["pull", TWO, "--store", store]);
        assert_eq!(code, 1);
    }
}

#[test]
fn holes_are_filled_and_what_diverged_is_left_alone() {
    for store in STORES {
        let place = Place::new();
        let file = place.session(&place.project, ONE, "count the files", None);
        let whole = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        fs::write(&file, [lines[0], lines[3], ""].join("\n")).unwrap();
        place.done(&["push", ONE, "--store", store]);
        fs::write(&file, &whole).unwrap();
        stands(&place, store, "holes", 2, 0);
        let said = place.done(&["status", ONE, "--store", store]);
        assert!(
            said.contains("holes: the store lacks 2 entries, 2 of them from the midst"),
            "{said}"
        );
        place.done(&["push", ONE, "--store", store]);
        stands(&place, store, "same", 0, 0);

        // Somebody went on with what the store had, and so did this machine.
        let other = lines[3].replace("00000003-", "0000000f-");
        let mine = lines[3].replace("00000003-", "0000000e-");
        fs::write(&file, format!("{whole}{other}\n")).unwrap();
        place.done(&["push", ONE, "--store", store]);
        let diverged = format!("{whole}{mine}\n");
        fs::write(&file, &diverged).unwrap();
        stands(&place, store, "diverged", 1, 1);
        for command in ["push", "pull"] {
            let (said, code) = place.run(&[command, ONE, "--store", store]);
            assert_eq!(code, 1, "{said}");
            assert!(
                said.contains("brought 0, diverged") && said.contains("left alone"),
                "{said}"
            );
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), diverged);
        stands(&place, store, "diverged", 1, 1);
    }
}

#[test]
fn all_are_those_of_this_project_although_another_has_the_same() {
    for store in STORES {
        let place = Place::new();
        let file = place.session(&place.project, ONE, "count the files", None);
        let other = place.session(&place.project.join("other"), ONE, "elsewhere", Some("longer"));
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        let other = fs::File::options().append(true).open(other).unwrap();
        other.set_modified(later).unwrap();
        let said = place.done(&["push", "--all", "--store", store]);
        assert_eq!(said, format!("{ONE}  brought 4\n"));
        let all = place.lines(&["status", "--store", store, "--json"]);
        assert_eq!(all[0]["path"], file.to_str().unwrap(), "{all}");
        stands(&place, store, "same", 0, 0);
    }
}

/// Whoever can write to the project's directory can put other things there than transcripts.
#[test]
#[cfg(unix)]
fn what_is_no_transcript_keeps_nobody_waiting() {
    let place = Place::new();
    let file = place.session(&place.project, ONE, "count the files", None);
    let id = |kind: u32| format!("22222222-aaaa-4aaa-8aaa-00000000000{kind}");
    let beside = |kind: u32| file.with_file_name(format!("{}.jsonl", id(kind)));
    let made = std::process::Command::new("mkfifo").arg(beside(1)).status();
    assert!(made.unwrap().success());
    fs::create_dir(beside(2)).unwrap();
    std::os::unix::fs::symlink(beside(3), beside(3)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", beside(4)).unwrap();
    // Among what belongs to the session, too.
    let agents = file.with_extension("").join("subagents");
    fs::create_dir_all(&agents).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(agents.join("agent-1.jsonl"))
        .status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink(&agents, agents.join("again")).unwrap();
    // A hole without an end of a line.
    let hole = place.session(&place.project, &id(5), "a hole", None);
    let length = fs::metadata(&hole).unwrap().len();
    let hole = fs::File::options().write(true).open(hole).unwrap();
    hole.set_len(length + (64 << 20)).unwrap();

    for store in STORES {
        let said = place.done(&["push", "--all", "--store", store]);
        assert_eq!(said.matches("brought 4").count(), 2, "{said}");
        let said = place.done(&["status", "--store", store]);
        assert_eq!(said.matches("same").count(), 2, "{said}");
        for kind in 1..=4 {
            let (said, code) = place.run(&["push", &id(kind), "--store", store]);
            assert_ne!(code, 0, "{said}");
        }
    }
    place.done(&["list"]);
    place.done(&["search", "count"]);
}

#[test]
fn stores_are_named_by_addresses() {
    let place = Place::new();
    place.session(&place.project, ONE, "count the files", None);
    for wrong in ["store", "http://x", ""] {
        assert_eq!(place.run(&["status", "--store", wrong]).1, 2, "{wrong}");
    }
    // It may be in the environment, where other users of the machine can't see it.
    let mut command = place.command(&["push", ONE]);
    command.env("OUTRIGGER_STORE", "dir:store");
    assert_eq!(crate::tool::ran(&mut command).1, 0);
    stands(&place, "dir:store", "same", 0, 0);
}
