//! From an export back to a session, whole and not so whole.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::write::testing::TestConfigDir;

/// A session with something everywhere.
fn session(place: &TestConfigDir) -> SessionFile {
    let id = SessionId::random();
    let record = json!({"type": "user", "uuid": "u", "parentUuid": null, "cwd": "/old/sub", "sessionId": id, "message": {"content": "x"}});
    let text = format!("{{\"type\":\"new\", \"odd\":1e400,\"cwd\":\"/old\"}}\n{record}\n{{\"torn");
    let file = place.put(&id, "/old", text.as_bytes());
    let of = |part: &str| file.config_dir().join(part).join(id.as_str()).join("a");
    let agent = file.subagents_dir().join("agent-1.jsonl");
    for (path, content) in [
        (agent, format!("{record}\n")),
        (file.beside().join("tool-results/b.bin"), "\n\0{}\n".to_owned()),
        (of("file-history"), "before".to_owned()),
        (of("tasks"), String::new()),
    ] {
        create_dir(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    file
}

fn values(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn an_export_has_all_of_a_session() {
    let (here, there) = (TestConfigDir::new(), TestConfigDir::new());
    let file = session(&here);
    let export = here.dir().join("export");
    file.export(&export).unwrap();
    assert!(matches!(file.export(&export), Err(Error::Exists(_))));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&export).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let imported = there.sessions.import(&export, "/new").unwrap();
    let new = &imported.file;
    assert_eq!(
        (&new.id, &imported.was, new.project.as_deref()),
        (&file.id, &None, Some("/new"))
    );
    let text = fs::read_to_string(&new.path).unwrap();
    let relocated = format!(
        r#"{{"type":"relocated","relocatedCwd":"/new","sessionId":"{}"}}"#,
        file.id
    );
    assert!(text.ends_with(&format!("\n{{\"torn\n{relocated}\n")), "{text}");
    let cwds: Vec<Value> = values(&new.path)
        .into_iter()
        .map(|record| record["cwd"].clone())
        .collect();
    assert_eq!(cwds, ["/new/sub".into(), Value::Null]);
    assert!(
        text.starts_with(r#"{"type":"new","odd":1e400,"cwd":"/new"}"#),
        "what is odd comes through: {text}"
    );
    assert_eq!(
        values(&new.subagents_dir().join("agent-1.jsonl"))[0]["cwd"],
        "/new/sub"
    );
    assert_eq!(
        fs::read(new.beside().join("tool-results/b.bin")).unwrap(),
        b"\n\0{}\n"
    );
    let of = |part: &str| new.config_dir().join(part).join(new.id.as_str()).join("a");
    assert_eq!(
        (
            fs::read(of("file-history")).unwrap(),
            fs::read(of("tasks")).unwrap()
        ),
        (b"before".to_vec(), Vec::new())
    );
    assert_eq!(new.recorded_dir().unwrap(), Some(PathBuf::from("/new")));

    // Once more: the id is taken.
    let before = fs::read(&new.path).unwrap();
    let again = there.sessions.import(&export, "/new").unwrap();
    assert_eq!(again.was, Some(file.id.clone()));
    assert_ne!(again.file.id, file.id);
    assert_eq!(values(&again.file.path)[0]["sessionId"], again.file.id.as_str());
    assert_eq!(
        values(&again.file.subagents_dir().join("agent-1.jsonl"))[0]["sessionId"],
        again.file.id.as_str()
    );
    assert_eq!(fs::read(&new.path).unwrap(), before);
}

#[test]
fn a_session_that_was_deleted_comes_in_again_under_its_id_unless_something_is_left() {
    let here = TestConfigDir::new();
    let file = session(&here);
    let export = here.dir().join("export");
    file.export(&export).unwrap();
    here.sessions.delete(&file.id).unwrap();
    let again = here.sessions.import(&export, "/new").unwrap();
    assert_eq!((&again.file.id, again.was), (&file.id, None));

    // Only the transcript goes, and the files beside it.
    again.file.delete().unwrap();
    let left = here.sessions.config_dir().join("tasks").join(file.id.as_str());
    assert!(left.exists());
    let new = here.sessions.import(&export, "/new").unwrap();
    assert_eq!(new.was.as_ref(), Some(&file.id));
    assert!(left.join("a").exists());

    // An empty transcript.
    here.sessions.delete(&file.id).unwrap();
    let empty = here.sessions.project_dir("/new").join(file.id.file_name());
    fs::write(&empty, "").unwrap();
    let new = here.sessions.import(&export, "/new").unwrap();
    assert_eq!(new.was.as_ref(), Some(&file.id));
}

#[cfg(unix)]
#[test]
fn what_is_exported_comes_in_again_under_its_name() {
    use std::os::unix::ffi::OsStrExt as _;

    let (here, there) = (TestConfigDir::new(), TestConfigDir::new());
    let file = session(&here);
    let names = ["a:b", "c\\d", "..\\e", "C:", "new\nline", "\u{fffd}", " ", "…"];
    for name in names {
        fs::write(file.beside().join(name), name).unwrap();
    }
    let export = here.dir().join("export");
    file.export(&export).unwrap();
    let imported = there.sessions.import(&export, "/new").unwrap().file;
    for name in names {
        assert_eq!(fs::read_to_string(imported.beside().join(name)).unwrap(), name);
    }
    // A name that would be changed is not exported, and neither is the rest.
    let odd = file.beside().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    fs::write(&odd, "").unwrap();
    let export = here.dir().join("another");
    let error = file.export(&export).unwrap_err();
    assert!(
        matches!(error, Error::Invalid { .. }) && error.to_string().contains("odd-"),
        "{error}"
    );
    assert!(!export.exists());
    let mut written = Vec::new();
    file.export_to(&mut written).unwrap_err();
    assert!(written.is_empty());
}

#[test]
fn a_transcript_alone_can_be_imported() {
    let (here, there) = (TestConfigDir::new(), TestConfigDir::new());
    let file = session(&here);
    let export = here.dir().join("any name");
    file.export_jsonl(&export).unwrap();
    assert_eq!(fs::read(&export).unwrap(), fs::read(&file.path).unwrap());
    let imported = there.sessions.import(&export, "/new").unwrap();
    assert_eq!((&imported.file.id, &imported.was), (&file.id, &None));
    assert_eq!(values(&imported.file.path)[0]["cwd"], "/new/sub");
    assert!(!imported.file.beside().exists());
    for text in ["", "{}", "{\"type\":\"tag\"}\n", "hello"] {
        fs::write(&export, text).unwrap();
        let error = there.sessions.import(&export, "/new").unwrap_err();
        assert!(error.to_string().contains("no message"), "{error}");
    }
}

/// All files below a directory.
fn files(place: &TestConfigDir) -> Vec<PathBuf> {
    let files = crate::relocate::beside::files_below(place.sessions.config_dir()).unwrap();
    files.into_iter().map(|(_, relative)| relative).collect()
}

#[test]
fn what_is_cut_off_or_leads_out_is_refused_and_leaves_nothing() {
    let (here, there) = (TestConfigDir::new(), TestConfigDir::new());
    let file = session(&here);
    let export = here.dir().join("export");
    file.export(&export).unwrap();
    let whole = fs::read(&export).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    for end in (0..whole.len() - 1).step_by(7).chain([whole.len() - 2]) {
        fs::write(&export, &whole[..end]).unwrap();
        assert!(there.sessions.import(&export, "/new").is_err(), "cut at {end}");
        assert_eq!(files(&there), Vec::<PathBuf>::new(), "cut at {end}");
    }
    for name in [
        "beside/../../x",
        "beside//x",
        "../x",
        "/x",
        "other/x",
        "beside",
        #[cfg(windows)]
        "beside/a\\\\..\\\\b",
        "beside/a\\u0000b",
        "tasks/..",
    ] {
        let bad = text.replace("beside/tool-results/b.bin", name);
        fs::write(&export, bad).unwrap();
        let error = there.sessions.import(&export, "/new").unwrap_err();
        assert!(error.to_string().contains("no path within"), "{name}: {error}");
        assert_eq!(files(&there), Vec::<PathBuf>::new(), "{name}");
    }
    // A part that is gone, and one that is shorter than it says.
    let part = text.find("{\"file\":\"tasks/a\"").unwrap();
    let end = text.find("{\"end\"").unwrap();
    for (bad, why) in [
        (format!("{}{}", &text[..part], &text[end..]), "fewer files"),
        (
            text[..text.find("\"odd\"").unwrap()].to_owned(),
            "cut off in transcript.jsonl",
        ),
    ] {
        fs::write(&export, bad).unwrap();
        let error = there.sessions.import(&export, "/new").unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(files(&there), Vec::<PathBuf>::new());
    }
    let newer = text.replace("\"version\":1", "\"version\":2");
    fs::write(&export, newer).unwrap();
    let error = there.sessions.import(&export, "/new").unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), has_header in any::<bool>()) {
        let place = TestConfigDir::new();
        let header = format!("{{\"type\":\"{KIND}\",\"version\":1,\"sessionId\":\"{}\"}}\n", SessionId::random());
        let file = place.dir().join("x");
        let bytes = if has_header { [header.as_bytes(), &bytes].concat() } else { bytes };
        fs::write(&file, bytes).unwrap();
        prop_assert!(place.sessions.import(&file, "/new").is_err());
        prop_assert_eq!(files(&place), Vec::<PathBuf>::new());
    }
}
