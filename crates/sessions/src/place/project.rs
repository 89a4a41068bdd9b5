//! The CLI's name for the directory of a project's sessions.

use std::borrow::Cow;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use outrigger_protocol::RawJson;
use unicode_normalization::UnicodeNormalization as _;

use super::Sessions;
use crate::file;

/// Longer names are cut here, and get a hash.
const LONGEST: usize = 200;

/// How much of a transcript is looked through for the directory that it was recorded in.
const HEAD: u64 = 64 * 1024;

/// The CLI's name for the directory of the sessions that run in `cwd`, which must be a [`real_path`].
///
/// Each UTF-16 code unit that is no ASCII letter or digit becomes a hyphen. A name longer than 200 is cut, and gets a hyphen and
/// a hash of the whole path, so `/a/b` and `/a-b` share a directory, but two long paths hardly ever do.
pub fn project_dir_name(cwd: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = cwd
        .chars()
        .flat_map(|c| std::iter::repeat_n(plain(c), c.len_utf16()))
        .collect();
    if name.len() <= LONGEST {
        return name;
    }
    let hash = cwd.encode_utf16().fold(0_i32, |hash, unit| {
        let unit = i32::from(unit);
        hash.wrapping_mul(31).wrapping_add(unit)
    });
    format!("{}-{}", &name[..LONGEST], in_base_36(hash.unsigned_abs()))
}

fn in_base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The path by which the CLI knows a directory: absolute, without links, and on macOS in Unicode's normal form C.
///
/// If the path does not exist (any more), its existing part is resolved. Invalid Unicode becomes U+FFFD.
pub fn real_path(dir: &Path) -> String {
    let real = dir.canonicalize().unwrap_or_else(|_| {
        let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        resolve_existing(&absolute)
    });
    let text = real.to_string_lossy();
    // Programs do not print Windows' verbatim form of paths.
    let text = text.strip_prefix(r"\\?\").unwrap_or(&text);
    composed(text).into_owned()
}

/// A path as the CLI compares it, and makes names of it. On macOS a file has one name in all normal forms, and form C counts. On
/// other systems two forms are two files.
pub(crate) fn composed(path: &str) -> Cow<'_, str> {
    composed_on(path, cfg!(target_os = "macos"))
}

fn composed_on(path: &str, is_macos: bool) -> Cow<'_, str> {
    if is_macos && !path.is_ascii() {
        Cow::Owned(path.nfc().collect())
    } else {
        Cow::Borrowed(path)
    }
}

/// Resolves as much of a path as exists, and takes the rest by its words.
fn resolve_existing(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            component => {
                resolved.push(component);
                if let Ok(real) = resolved.canonicalize() {
                    resolved = real;
                }
            }
        }
    }
    resolved
}

impl Sessions {
    /// The directory that has the sessions of the project at `real`, if there is one.
    ///
    /// For a path that is too long for a name, CLIs of another time hashed differently: then any directory with the same first
    /// 200 characters counts if a session in it was recorded in `real`.
    pub(crate) fn find_project_dir(&self, real: &str) -> Option<PathBuf> {
        let exact = self.project_dir_of(real);
        if exact.is_dir() {
            return Some(exact);
        }
        let name = exact.file_name()?.to_str()?;
        if name.len() <= LONGEST {
            return None;
        }
        let mut alike: Vec<PathBuf> = fs::read_dir(self.projects_dir())
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_same_when_cut(path, name) && path.is_dir())
            .collect();
        alike.sort();
        alike.into_iter().find(|path| was_recorded_in(path, real))
    }
}

/// Whether a directory has a name with the same first 200 characters, and a hash.
pub(crate) fn is_same_when_cut(path: &Path, name: &str) -> bool {
    let theirs = path.file_name().and_then(|name| name.to_str());
    let (Some(theirs), Some(cut)) = (theirs, name.get(..LONGEST)) else {
        return false;
    };
    name.len() > LONGEST && theirs.strip_prefix(cut).is_some_and(|rest| rest.starts_with('-'))
}

/// Whether any session in a project's directory recorded `real` as its directory.
fn was_recorded_in(project_dir: &Path, real: &str) -> bool {
    let Ok(entries) = fs::read_dir(project_dir) else {
        return false;
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter_map(|path| recorded_cwd(&path))
        .any(|cwd| composed(&cwd) == real)
}

/// The first working directory that a transcript names, near its beginning.
fn recorded_cwd(transcript: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Placed {
        cwd: String,
    }
    let mut head = Vec::new();
    file::open(transcript)
        .and_then(|file| file.take(HEAD).read_to_end(&mut head))
        .ok()?;
    let head = String::from_utf8_lossy(&head);
    head.lines()
        .filter(|line| line.contains("\"cwd\""))
        .filter_map(|line| RawJson::from_text(line).ok())
        .find_map(|line| line.decode::<Placed>().ok())
        .map(|placed| placed.cwd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_hashed() {
        assert_eq!(project_dir_name("/place/my project_1.x"), "-place-my-project-1-x");
        let long = format!("/{}", "a".repeat(250));
        let name = project_dir_name(&long);
        assert_eq!(&name[..201], format!("-{}-", "a".repeat(199)));
        assert_ne!(name, project_dir_name(&format!("{long}b")));
        // JavaScript's 32-bit hash of "hello" is 99162322.
        assert_eq!(in_base_36(99_162_322), "1n1e4y");
        assert_eq!(in_base_36(0), "0");
        assert_eq!(project_dir_name("/😀"), "---");
    }

    #[test]
    fn a_directory_is_known_by_its_real_path() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap();
        let dir = real.join("e\u{301}");
        fs::create_dir(&dir).unwrap();
        let expected = real.join(if cfg!(target_os = "macos") {
            "\u{e9}"
        } else {
            "e\u{301}"
        });
        assert_eq!(real_path(&dir), expected.to_str().unwrap());
        #[cfg(unix)]
        {
            let link = real.join("link");
            std::os::unix::fs::symlink(&dir, &link).unwrap();
            assert_eq!(real_path(&link), expected.to_str().unwrap());
            assert_eq!(
                real_path(&link.join("gone/./x/..")),
                expected.join("gone").to_str().unwrap()
            );
        }
    }

    #[test]
    fn two_normal_forms_are_one_name_on_macos_only() {
        assert_eq!(composed_on("/cafe\u{301}", true), "/caf\u{e9}");
        assert_eq!(composed_on("/cafe\u{301}", false), "/cafe\u{301}");
        if cfg!(not(target_os = "macos")) {
            assert_eq!(
                project_dir_name(&real_path(Path::new("/no/cafe\u{301}"))),
                "-no-cafe-"
            );
        }
    }

    #[test]
    fn a_long_path_is_found_under_another_hash_only_where_it_was_recorded() {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(place.path());
        let cwd = format!("/{}/mine", "a".repeat(250));
        let cut = &project_dir_name(&cwd)[..LONGEST];
        let make = |hash: &str, cwd: &str| {
            let dir = sessions.projects_dir().join(format!("{cut}-{hash}"));
            fs::create_dir_all(&dir).unwrap();
            let line = serde_json::json!({"type": "user", "cwd": cwd});
            fs::write(
                dir.join("550e8400-e29b-41d4-a716-446655440000.jsonl"),
                format!("{{}}\n{line}\n"),
            )
            .unwrap();
            dir
        };
        make("zzz1", &format!("/{}/theirs", "a".repeat(250)));
        assert_eq!(sessions.find_project_dir(&cwd), None);
        let other = make("zzz2", &cwd);
        assert_eq!(sessions.find_project_dir(&cwd), Some(other));
        let exact = sessions.project_dir_of(&cwd);
        fs::create_dir_all(&exact).unwrap();
        assert_eq!(sessions.find_project_dir(&cwd), Some(exact));
        assert_eq!(sessions.find_project_dir("/short"), None);
    }
}
