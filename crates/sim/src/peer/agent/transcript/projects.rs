//! Where the CLI keeps its sessions.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Longer names of directories are cut here, and get a hash.
const LONGEST: usize = 200;

/// How the CLI names the folder of a project's sessions.
pub(in crate::peer::agent) fn project_name(cwd: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // JavaScript replaces each half of a surrogate pair.
    let name: String = cwd
        .chars()
        .flat_map(|c| std::iter::repeat_n(plain(c), c.len_utf16()))
        .collect();
    if name.len() <= LONGEST {
        return name;
    }
    let hash = cwd.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_shl(5)
            .wrapping_sub(hash)
            .wrapping_add(i32::from(unit))
    });
    format!("{}-{}", &name[..LONGEST], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// The directory of a project's sessions.
pub(in crate::peer::agent) fn project(config_dir: &Path, cwd: &Path) -> PathBuf {
    let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let real = real.to_string_lossy();
    // Only there a file has one name in all normal forms.
    #[cfg(target_os = "macos")]
    let real: String = unicode_normalization::UnicodeNormalization::nfc(&*real).collect();
    config_dir.join("projects").join(project_name(&real))
}

/// The file of a session that was kept: in the project's directory, or in any other.
pub(super) fn find(config_dir: &Path, cwd: &Path, session_id: &str) -> Option<PathBuf> {
    let name = format!("{session_id}.jsonl");
    let here = project(config_dir, cwd).join(&name);
    if here.is_file() {
        return Some(here);
    }
    let mut elsewhere: Vec<PathBuf> = std::fs::read_dir(config_dir.join("projects"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join(&name)))
        .filter(|path| path.is_file())
        .collect();
    elsewhere.sort();
    elsewhere.into_iter().next()
}

/// The session of a project that was written to last.
pub(super) fn latest(config_dir: &Path, cwd: &Path) -> Option<PathBuf> {
    sessions(config_dir, cwd).into_iter().next().map(|(_, path)| path)
}

/// The sessions of a project and when they were written to, the last one first.
pub(super) fn sessions(config_dir: &Path, cwd: &Path) -> Vec<(SystemTime, PathBuf)> {
    let entries = std::fs::read_dir(project(config_dir, cwd));
    let entries = entries.into_iter().flatten();
    let sessions = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let stem = path.file_stem()?.to_str()?;
        let is_session = path.extension()? == "jsonl" && uuid::Uuid::parse_str(stem).is_ok();
        let modified = path.metadata().ok()?.modified().ok()?;
        is_session.then_some((modified, path))
    });
    let mut sessions: Vec<_> = sessions.collect();
    sessions.sort();
    sessions.reverse();
    sessions
}

/// The branch of a working directory; the CLI writes `HEAD` if there is none.
pub(super) fn git_branch(cwd: &Path) -> String {
    let head = cwd
        .ancestors()
        .find_map(|directory| std::fs::read_to_string(directory.join(".git/HEAD")).ok());
    let branch = head
        .as_deref()
        .and_then(|head| head.trim().strip_prefix("ref: refs/heads/"));
    branch.unwrap_or("HEAD").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_hashed() {
        assert_eq!(project_name("/place/my project_1.x"), "-place-my-project-1-x");
        let long = format!("/{}", "a".repeat(250));
        let name = project_name(&long);
        assert_eq!(&name[..200], format!("-{}", "a".repeat(199)));
        assert!(name.len() > 201 && name.as_bytes()[200] == b'-');
        assert_ne!(name, project_name(&format!("{long}b")));
        // `Math.abs` of JavaScript's 32-bit hash of "hello", in base 36.
        assert_eq!(base36(99_162_322), "1n1e4y");
        assert_eq!(project_name("/😀"), "---");
    }
}
