//! `outrigger sessions status`, `push` and `pull`, with stores in files.

use std::fs;

use crate::kept::{ONE, Place, TWO};

const STORES: [&str; 2] = ["dir:store", "sqlite:store.db"];

/// How the one session stands, and how many entries the store lacks, and the disk.
#[track_caller]
fn stands(place: &Place, store: &str, name: &str, lacks: u64, beyond: u64) {
    let all = place.json(&["status", "--store", store, "--json"]);
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
