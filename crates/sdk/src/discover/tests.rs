use std::fs;

use super::*;
use crate::env::Variables;

fn surroundings(vars: &[(&str, &Path)]) -> Surroundings {
    let env: Variables = vars
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Surroundings::new(env, std::env::temp_dir())
}

#[cfg(unix)]
fn program(path: &Path, content: &[u8], mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    outrigger_needs::script(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
const SCRIPT: &[u8] = b"#!/bin/sh\necho '9.8.7 (Claude Code)'\n";

/// A 64-bit little-endian program header table with one entry that names the loader.
fn elf(machine: u16, loader: &str) -> Vec<u8> {
    let mut file = vec![0; 64 + 56];
    file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    file[18..20].copy_from_slice(&machine.to_le_bytes());
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[54..56].copy_from_slice(&56u16.to_le_bytes());
    file[56..58].copy_from_slice(&1u16.to_le_bytes());
    file[64..68].copy_from_slice(&3u32.to_le_bytes());
    file[72..80].copy_from_slice(&120u64.to_le_bytes());
    file[96..104].copy_from_slice(&(loader.len() as u64 + 1).to_le_bytes());
    file.extend(loader.as_bytes());
    file.push(0);
    file
}

#[cfg(target_os = "linux")]
const HERE: u16 = if cfg!(target_arch = "x86_64") { 0x3e } else { 0xb7 };
#[cfg(target_os = "linux")]
const ELSEWHERE: u16 = if cfg!(target_arch = "x86_64") { 0xb7 } else { 0x3e };

#[test]
#[cfg(target_os = "linux")]
fn says_why_a_program_cannot_run() {
    let dir = tempfile::tempdir().unwrap();
    let empty = surroundings(&[]);
    let why = |name: &str, content: &[u8], mode: u32| {
        let path = dir.path().join(name);
        program(&path, content, mode);
        binary::inspect(&path, &empty)
    };
    assert_eq!(why("plain", SCRIPT, 0o644), Err(Unusable::NotExecutable));
    assert_eq!(why("text", b"hello", 0o755), Err(Unusable::NotAProgram));
    assert_eq!(why("nothing", b"", 0o755), Err(Unusable::NotAProgram));
    assert_eq!(why("claude.cmd", SCRIPT, 0o755), Err(Unusable::BatchFile));
    assert_eq!(why("claude.BAT. ", SCRIPT, 0o755), Err(Unusable::BatchFile));
    assert_eq!(why("pe", b"MZ", 0o755), Err(Unusable::NotAProgram));
    assert_eq!(
        why("mac", &[0xcf, 0xfa, 0xed, 0xfe, 7, 0, 0, 1], 0o755),
        Err(Unusable::OtherSystem(Format::MachO))
    );
    assert!(matches!(
        why("other", &elf(ELSEWHERE, "/x"), 0o755),
        Err(Unusable::OtherArchitecture { .. })
    ));
    let musl = "/lib/no-such-ld-musl-x86_64.so.1";
    assert_eq!(
        why("musl", &elf(HERE, musl), 0o755),
        Err(Unusable::LoaderMissing(musl.into()))
    );
    assert_eq!(
        why("sh", b"#!/no/such/sh\n", 0o755),
        Err(Unusable::InterpreterMissing("/no/such/sh".into()))
    );
    assert_eq!(
        why("env", b"#!/usr/bin/env -S node --x\n", 0o755),
        Err(Unusable::InterpreterMissing("node".into()))
    );
    assert_eq!(binary::inspect(dir.path(), &empty), Err(Unusable::NotAFile));
    assert_eq!(
        binary::inspect(&dir.path().join("gone"), &empty),
        Err(Unusable::Missing)
    );
    assert_eq!(
        binary::inspect(&dir.path().join("plain/below"), &empty),
        Err(Unusable::Missing)
    );

    let sound = why("sound", &elf(HERE, "/bin/sh"), 0o755).unwrap();
    assert_eq!((sound.format, sound.libc), (Format::Elf, Some(Libc::Glibc)));
    let this = binary::inspect(&std::env::current_exe().unwrap(), &empty).unwrap();
    assert_eq!(this.architectures, [std::env::consts::ARCH]);
}

#[test]
fn headers_cut_anywhere_are_no_programs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut");
    let whole = elf(0x3e, "/lib64/ld-linux-x86-64.so.2");
    for end in 0..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let _ = binary::inspect(&path, &surroundings(&[]));
    }
}

#[test]
#[cfg(unix)]
fn order_and_absolute_entries_of_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let (first, second) = (root.join("first"), root.join("second"));
    let home = root.join("home");
    program(&second.join("claude"), SCRIPT, 0o755);
    program(&home.join(".local/bin/claude"), SCRIPT, 0o755);
    program(&root.join("claude"), SCRIPT, 0o755);

    // The empty and the relative entries would both find the program in the current directory.
    let path = format!(":.:first:{}:{}", first.display(), second.display());
    let mut at = surroundings(&[("PATH", Path::new(&path)), ("HOME", &home)]);
    at.cwd = Some(root.to_owned());
    let found = find(None, &at).unwrap();
    assert_eq!((found.path, found.origin), (second.join("claude"), FoundBy::Path));

    // What cannot be run is passed over.
    program(&first.join("claude"), SCRIPT, 0o644);
    assert_eq!(find(None, &at).unwrap().path, second.join("claude"));

    at.env.insert(
        "CLAUDE_CODE_EXECUTABLE".into(),
        home.join(".local/bin/claude").into(),
    );
    assert_eq!(
        find(None, &at).unwrap().origin,
        FoundBy::Variable("CLAUDE_CODE_EXECUTABLE".into())
    );
    at.env
        .insert("OUTRIGGER_CLAUDE".into(), first.join("claude").into());
    let error = find(None, &at).unwrap_err();
    assert_eq!(
        error,
        FindError::Unusable {
            path: first.join("claude"),
            origin: FoundBy::Variable("OUTRIGGER_CLAUDE".into()),
            why: Unusable::NotExecutable
        }
    );
    assert!(error.advice().contains("chmod"), "{error}");

    assert_eq!(
        find(Some(Path::new("./claude")), &at).unwrap().path,
        root.join("./claude")
    );
    assert!(matches!(
        find(Some(Path::new("claude")), &at),
        Err(FindError::Unusable {
            why: Unusable::NotAbsolute,
            ..
        })
    ));
}

#[test]
#[cfg(unix)]
fn newest_node_of_nvm_first() {
    let dir = tempfile::tempdir().unwrap();
    for version in ["v9.11.2", "v22.3.0", "v18.0.1"] {
        program(
            &dir.path()
                .join(".nvm/versions/node")
                .join(version)
                .join("bin/claude"),
            SCRIPT,
            0o755,
        );
    }
    let at = surroundings(&[("HOME", dir.path())]);
    let all = install_paths::places(&at);
    let nvm: Vec<_> = all
        .iter()
        .filter_map(|p| p.to_str()?.split(".nvm/versions/node/").nth(1))
        .collect();
    assert_eq!(
        nvm,
        ["v22.3.0/bin/claude", "v18.0.1/bin/claude", "v9.11.2/bin/claude"]
    );
}

#[test]
#[cfg(unix)]
fn not_found_names_what_was_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    program(&dir.path().join("claude"), b"junk", 0o755);
    // No home, so that only system-wide installations could be found besides.
    let at = surroundings(&[("PATH", dir.path())]);
    match find(None, &at) {
        Err(FindError::NotFound { refused, .. }) => {
            assert_eq!(refused, [(dir.path().join("claude"), Unusable::NotAProgram)])
        }
        Ok(found) => assert_eq!(found.origin, FoundBy::Installer),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
#[cfg(unix)]
async fn doctor_reports_each_installation() {
    let dir = tempfile::tempdir().unwrap();
    let (good, slow, odd) = (
        dir.path().join("good"),
        dir.path().join("slow"),
        dir.path().join("odd"),
    );
    let home = dir.path().join("home");
    // Says whether anything of the user's environment came along.
    let spy = b"#!/bin/sh\nif [ -n \"$ANTHROPIC_API_KEY\" ] || [ \"$HOME\" = \"$REAL\" ]; then exit 3; fi\necho '9.8.7 (Claude Code)'\n";
    program(&good.join("claude"), spy, 0o755);
    program(&slow.join("claude"), b"#!/bin/sh\nexec sleep 30\n", 0o755);
    program(&odd.join("claude"), b"#!/bin/sh\necho hello; exit 4\n", 0o755);
    fs::create_dir_all(home.join(".claude")).unwrap();
    fs::write(home.join(".claude/.credentials.json"), "{}").unwrap();
    fs::write(
        home.join(".claude/settings.json"),
        r#"{"apiKeyHelper":"print-key"}"#,
    )
    .unwrap();
    let path = format!(
        "{}:{}:{}:/usr/bin:/bin",
        good.display(),
        slow.display(),
        odd.display()
    );
    let at = surroundings(&[
        ("PATH", Path::new(&path)),
        ("HOME", &home),
        ("ANTHROPIC_API_KEY", Path::new("sk-hush")),
        ("CLAUDECODE", Path::new("1")),
    ]);
    let report = Doctor::default()
        .surroundings(at)
        .deadline(std::time::Duration::from_millis(1500))
        .examine()
        .await;

    let version = |dir: &Path| {
        report
            .candidates
            .iter()
            .find(|c| c.path == dir.join("claude"))
            .unwrap()
            .version
            .clone()
    };
    assert_eq!(version(&good), VersionCheck::Version("9.8.7".into()));
    assert_eq!(version(&slow), VersionCheck::TimedOut);
    assert_eq!(version(&odd), VersionCheck::Odd("hello (exit status: 4)".into()));
    assert_eq!(report.chosen, Some(good.join("claude")));
    assert_eq!(
        report.auth,
        [
            AuthSource::Variable("ANTHROPIC_API_KEY".into()),
            AuthSource::Login(home.join(".claude/.credentials.json")),
            AuthSource::ApiKeyHelper(home.join(".claude/settings.json")),
        ]
    );
    assert_eq!(
        report.used,
        Some(AuthSource::Variable("ANTHROPIC_API_KEY".into()))
    );
    assert_eq!(report.nested, ["CLAUDECODE"]);
    assert!(report.is_healthy(), "{:?}", report.problems);
    assert!(
        report
            .problems
            .iter()
            .any(|p| p.found.contains("outranks a stored login")),
        "{:?}",
        report.problems
    );
    let text = serde_json::to_string(&report).unwrap();
    assert!(!text.contains("sk-hush"), "{text}");
}

#[tokio::test]
#[cfg(unix)]
async fn doctor_without_anything() {
    let mut at = surroundings(&[("OUTRIGGER_CLAUDE", Path::new("/no/such/claude"))]);
    at.cwd = None;
    let report = Doctor::default().surroundings(at).examine().await;
    assert!(!report.is_healthy());
    assert_eq!(report.chosen, None);
    let found: Vec<_> = report.problems.iter().map(|p| p.found.as_str()).collect();
    assert!(
        found
            .iter()
            .any(|f| f.contains("/no/such/claude (OUTRIGGER_CLAUDE): no such file")),
        "{found:?}"
    );
    assert!(found.iter().any(|f| f.contains("no home directory")), "{found:?}");
    assert!(found.iter().any(|f| f.contains("working directory")), "{found:?}");
}
