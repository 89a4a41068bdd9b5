//! What a person sees of work that takes its time, and what Ctrl-C leaves of it: at a pseudo-terminal.

use std::fs;
use std::process::{Command, Stdio};

use rexpect::session::PtySession;

use crate::kept::{ONE, Place};
use crate::rig::PATIENCE;
use crate::terminal::ends_with;

fn at_terminal(mut command: Command) -> PtySession {
    command.env("TERM", "xterm").stdin(Stdio::inherit());
    let patience = u64::try_from(PATIENCE.as_millis() / 3).unwrap();
    rexpect::session::spawn_command(command, Some(patience)).expect("a terminal")
}

/// A session with so many MiB beside it.
fn long_session(place: &Place, mib: usize) {
    let path = place.session(&place.project, ONE, "count the files", Some("counting"));
    let beside = path.with_extension("").join("tool-results");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("long.txt"), vec![b'x'; mib << 20]).unwrap();
}

#[test]
fn a_bar_has_all_of_the_session_and_programs_get_none() {
    let place = Place::new();
    long_session(&place, 12);
    let mut export = at_terminal(place.command(&["export", ONE, "a.session"]));
    let seen = export.exp_string("/12.00 MiB").unwrap();
    assert!(seen.contains('['), "{seen:?}");
    ends_with(&mut export, 0);
    let to = place.project.with_file_name("other");
    let import = ["import", "a.session", "--dir", to.to_str().unwrap()];
    let mut import = at_terminal(place.command(&import));
    import.exp_string("/12.00 MiB").unwrap();
    ends_with(&mut import, 0);
    let mut json = at_terminal(place.command(&["import", "a.session", "--json"]));
    let seen = json.exp_eof().unwrap();
    assert!(seen.contains("sessionId") && !seen.contains("MiB"), "{seen:?}");
    // Standard error is none here.
    let output = place.command(&["export", ONE, "b.session"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn ctrl_c_stops_an_import_and_leaves_nothing() {
    let place = Place::new();
    let lines = place.project.join("lines.jsonl");
    let line = format!(
        "{{\"type\":\"user\",\"uuid\":\"u\",\"cwd\":\"/x\",\"sessionId\":\"{ONE}\",\"message\":{{}}}}\n"
    );
    // Many short ones, which take seconds.
    fs::write(&lines, line.repeat((48 << 20) / line.len())).unwrap();
    let mut import = at_terminal(place.command(&["import", "lines.jsonl"]));
    import.exp_string("MiB").unwrap();
    import.send_control('c').unwrap();
    import.exp_string("it was stopped; nothing was changed").unwrap();
    ends_with(&mut import, 130);
    assert!(!place.config.exists(), "{:?}", fs::read_dir(&place.config));
}
