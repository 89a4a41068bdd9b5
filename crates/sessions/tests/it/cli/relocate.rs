//! Sessions that moved, resumed in their new place.

use outrigger_sessions::relocate::RelocateOptions;
use outrigger_sessions::{Error, ListOptions};

use super::rig::{Rig, THREE_TURNS, json, lines};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_in_another_directory() {
    let rig = Rig::start().await;
    let file = rig.three_turns().await;
    let (old, new) = (rig.sandbox.project(), rig.sandbox.path().join("elsewhere"));
    std::fs::create_dir(&new).unwrap();
    let Err(Error::NotFound(error)) = rig.sessions.find_in(&file.id, &new) else {
        panic!("it is not there")
    };
    assert_eq!(error.elsewhere, std::slice::from_ref(&file.path));

    let moved = file
        .relocate(&rig.sessions, &new, &RelocateOptions::new())
        .unwrap();
    assert!(!file.path.exists());
    let cwds = |dir: &std::path::Path| {
        let dir = dir.canonicalize().unwrap();
        let lines = lines(&moved);
        lines
            .iter()
            .filter(|line| json(line)["cwd"] == dir.to_str().unwrap())
            .count()
    };
    assert!(cwds(&old) == 0 && cwds(&new) > 5);
    std::fs::remove_dir_all(&old).unwrap();
    let dir = rig.sessions.resume_dir(&file.id).unwrap();
    assert_eq!(dir, new.canonicalize().unwrap());
    let before = cwds(&new);
    assert_eq!(rig.resume_in(&dir, &file.id).await, THREE_TURNS);
    assert!(cwds(&new) > before, "it goes on in the file that was moved");
    assert_eq!(rig.sessions.find_all(&file.id).len(), 1);
    // The CLI that continues the newest session of the directory finds it, too.
    let id = rig.run_in(&new, &["--continue"], &["%say more"]).await;
    assert_eq!(id, file.id);
}

/// Composed, the name of the directory would be that of another one, except on macOS.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_known_by_its_name_as_the_cli_knows_it() {
    let rig = Rig::start().await;
    let dir = rig.sandbox.path().join("cafe\u{301} x");
    let id = rig.run_in(&dir, &[], &["%say one"]).await;
    let listed = rig.sessions.list(&ListOptions::new().dir(&dir)).unwrap();
    assert_eq!(
        listed.iter().map(|info| &info.session_id).collect::<Vec<_>>(),
        [&id]
    );
    let file = rig.sessions.find_in(&id, &dir).unwrap();
    let other = rig.three_turns().await;
    let moved = other
        .relocate(&rig.sessions, &dir, &RelocateOptions::new())
        .unwrap();
    assert_eq!(moved.project_dir(), file.project_dir());
    assert_eq!(rig.run_in(&dir, &["--continue"], &["%say more"]).await, other.id);
    assert_eq!(rig.told(), THREE_TURNS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_on_another_machine() {
    let (here, there) = (Rig::start().await, Rig::start().await);
    let file = here.three_turns().await;
    let dir = there.sandbox.project();
    for options in [
        RelocateOptions::new().copy(true).keep_records(true),
        RelocateOptions::new(),
    ] {
        let moved = file.relocate(&there.sessions, &dir, &options).unwrap();
        assert_eq!(moved.info().unwrap().unwrap().session_id, file.id);
        assert_eq!(
            there.sessions.resume_dir(&file.id).unwrap(),
            dir.canonicalize().unwrap()
        );
        assert_eq!(there.resume(&file.id).await, THREE_TURNS);
        there.sessions.delete(&file.id).unwrap();
    }
    assert!(here.sessions.find(&file.id).unwrap_err().is_not_found());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_exported_goes_on_where_it_is_imported() {
    let (here, there) = (Rig::start().await, Rig::start().await);
    let file = here.three_turns().await;
    let (export, plain) = (
        here.sandbox.path().join("export"),
        here.sandbox.path().join("plain"),
    );
    file.export(&export).unwrap();
    file.export_jsonl(&plain).unwrap();
    let dir = there.sandbox.project();
    for (source, is_new) in [(&export, false), (&plain, true)] {
        let imported = there.sessions.import(source, &dir).unwrap();
        assert_eq!(
            imported.was.is_some(),
            is_new,
            "the second one finds its id taken"
        );
        assert_eq!(there.resume(&imported.file.id).await, THREE_TURNS);
        assert_eq!(
            there.sessions.resume_dir(&imported.file.id).unwrap(),
            dir.canonicalize().unwrap()
        );
    }
}
