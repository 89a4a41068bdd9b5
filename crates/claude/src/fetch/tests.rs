//! Fetching, with scripts in the place of npm.

use super::*;

fn tarball(name: &str, kind: tar::EntryType, content: &[u8]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    for (name, kind) in [("package/README.md", tar::EntryType::Regular), (name, kind)] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// A fetch whose npm is a script that packs this tarball.
#[cfg(unix)]
fn fetch(cache: &Path, tarball: &[u8], script: &str) -> Fetch {
    let packed = cache.join("given.tgz");
    fs::write(&packed, tarball).unwrap();
    let npm = cache.join("npm");
    let script = format!("#!/bin/sh\nGIVEN={}\n{script}\n", packed.display());
    outrigger_needs::script(&npm, script).unwrap();
    let mut fetch = Fetch::new().unwrap().cache(cache).npm(npm);
    fetch.package.integrity = format!("sha512-{}", STANDARD.encode(Sha512::digest(tarball)));
    fetch.package.executable_bytes = None;
    fetch.package.executable = "package/claude".to_owned();
    fetch
}

/// `npm pack --silent --ignore-scripts SPEC --pack-destination DIR …`
const PACK: &str = r#"echo "$1 $2 $3 $4" > "$(dirname "$0")/said"; cp "$GIVEN" "$6/it.tgz""#;

#[test]
#[cfg(unix)]
fn fetches_once_and_keeps_only_the_executable() {
    use std::os::unix::fs::PermissionsExt as _;
    let cache = tempfile::tempdir().unwrap();
    let content = b"#!/bin/sh\necho hi\n";
    let fetch = fetch(
        cache.path(),
        &tarball("package/claude", tar::EntryType::Regular, content),
        PACK,
    );
    assert_eq!(fetch.cached(), None);
    // A fetch that was killed.
    fs::create_dir_all(fetch.place().join(".fetch-killed/npm")).unwrap();
    fs::write(fetch.place().join(".fetch-killed/npm/x"), "").unwrap();
    let mut seen = Vec::new();
    let path = fetch.run(|progress| seen.push(progress)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(seen.contains(&Progress::Verifying));
    let total = content.len() as u64;
    assert_eq!(seen.last(), Some(&Progress::Unpacking { bytes: total, total }));
    let said = fs::read_to_string(cache.path().join("said")).unwrap();
    assert_eq!(
        said.trim(),
        format!(
            "pack --silent --ignore-scripts {}@{}",
            fetch.package.package, fetch.version
        )
    );
    let mut left: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, [".lock", "claude"]);

    // From now on npm is not needed.
    let again = fetch.npm(cache.path().join("absent/npm"));
    assert_eq!(again.run(|_| panic!("nothing to do")).unwrap(), path);
}

#[test]
#[cfg(unix)]
fn refuses_what_is_not_pinned() {
    let cache = tempfile::tempdir().unwrap();
    let given = tarball("package/claude", tar::EntryType::Regular, b"other");
    let mut fetch = fetch(cache.path(), &given, PACK);
    fetch.package.integrity = pin().packages[&fetch.platform].integrity.clone();
    let error = fetch.run(|_| ()).unwrap_err();
    assert!(
        matches!(*error.failure, FetchFailure::IntegrityMismatch { .. }),
        "{error:?}"
    );
    assert_eq!(fetch.cached(), None);
}

#[test]
#[cfg(unix)]
fn takes_nothing_but_a_regular_file_of_that_name() {
    for (name, kind) in [
        ("package/other", tar::EntryType::Regular),
        ("package/claude", tar::EntryType::Directory),
        ("package/claude", tar::EntryType::Symlink),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let content: &[u8] = if kind.is_file() { b"x" } else { b"" };
        let fetch = fetch(cache.path(), &tarball(name, kind, content), PACK);
        let error = fetch.run(|_| ()).unwrap_err();
        assert!(
            matches!(*error.failure, FetchFailure::NoExecutable(_)),
            "{name} {kind:?}: {:?}",
            error.failure
        );
    }
}

#[test]
#[cfg(unix)]
fn says_what_npm_said() {
    let cache = tempfile::tempdir().unwrap();
    let failing = fetch(cache.path(), b"", "echo E404 no such package >&2; exit 3");
    let error = failing.run(|_| ()).unwrap_err().failure.to_string();
    assert!(
        error.contains("E404 no such package") && error.contains("exit status: 3"),
        "{error}"
    );

    let slow = fetch(cache.path(), b"", "sleep 60").timeout(Duration::from_millis(50));
    assert!(matches!(
        *slow.run(|_| ()).unwrap_err().failure,
        FetchFailure::TimedOut(_)
    ));

    let stop = Arc::new(AtomicBool::new(false));
    let stopped = fetch(cache.path(), b"", "sleep 60").stop(Arc::clone(&stop));
    let stopped = stopped.run(|_| stop.store(true, Ordering::Relaxed)).unwrap_err();
    assert!(matches!(*stopped.failure, FetchFailure::Stopped), "{stopped:?}");

    fs::write(cache.path().join("file"), "").unwrap();
    for absent in ["absent/npm", "file/npm"] {
        let fetch = failing.clone().npm(cache.path().join(absent));
        let missing = fetch.run(|_| ()).unwrap_err();
        assert!(
            matches!(*missing.failure, FetchFailure::NpmMissing { .. }),
            "{missing:?}"
        );
        assert!(
            missing.failure.to_string().contains("install Node.js"),
            "{missing}"
        );
    }
}

#[test]
fn the_notice_names_package_place_and_terms() {
    let fetch = Fetch::new().unwrap().cache("/some/cache");
    let notice = fetch.notice();
    for part in [
        pin().version.as_str(),
        "@anthropic-ai/claude-code-",
        "/some/cache",
        "Anthropic's",
        "legal",
    ] {
        assert!(notice.contains(part), "{notice}");
    }
}
