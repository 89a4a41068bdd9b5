//! From the entries of a store to the files that the CLI works on.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;

use super::{Difference, split_metadata};
use crate::draft::private;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::write::append::append;

/// The transcripts of a session as a store has them: its own, and those of its parts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Transcripts {
    /// The entries of the session itself.
    pub main: Vec<RawJson>,
    /// The entries of the session's parts, by their subpaths, which are the names of files.
    pub parts: Vec<(String, Vec<RawJson>)>,
}

impl Transcripts {
    /// A session without parts.
    pub fn new(main: Vec<RawJson>) -> Self {
        Self {
            main,
            parts: Vec::new(),
        }
    }

    /// Adds a part. Whether its name can be a file's is looked at when it is written; see [`is_part_name`].
    pub fn part(mut self, subpath: impl Into<String>, entries: Vec<RawJson>) -> Self {
        self.parts.push((subpath.into(), entries));
        self
    }

    /// Writes them as the CLI would have them in the directory of a project, an entry a line, and what stands for a sidecar into
    /// that. Files are for this user alone; nothing that exists is overwritten. Returns what was made, directories too, in the
    /// order in which it was made.
    ///
    /// The files are not forced to the disk: they are copies, and the store has what they have.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a part whose name is no file below its session, with nothing written. [`Error::Exists`] where
    /// a file is already; when one can't be written. What was written before stays.
    pub fn write(self, project: &Path, id: &SessionId) -> Result<Vec<PathBuf>> {
        check_names(self.parts.iter().map(|(subpath, _)| subpath), id)?;
        let mut made = Vec::new();
        make_dir(project, &mut made)?;
        let file = project.join(format!("{id}.jsonl"));
        write_lines(&file, &self.main, &mut made)?;
        let beside = project.join(id.as_str());
        for (subpath, entries) in self.parts {
            let file = beside.join(format!("{subpath}.jsonl"));
            make_dir(file.parent().unwrap_or(&beside), &mut made)?;
            let (lines, metadata) = split_metadata(entries);
            if !lines.is_empty() {
                write_lines(&file, &lines, &mut made)?;
            }
            if let Some(metadata) = metadata {
                let sidecar = beside.join(format!("{subpath}.meta.json"));
                write_file(&sidecar, [metadata.as_str()], &mut made)?;
            }
        }
        Ok(made)
    }
}

/// Appends to the files of a session in the directory of a project what a store has beyond them, as [`compare`](super::compare()) found
/// it; makes those that are missing. What [`Difference::to_pull`] does not give stays in the store. Returns how many entries were
/// written. Whoever calls makes sure that no CLI writes to the session meanwhile, by a [`claim`](crate::Sessions::claim).
///
/// Nothing is overwritten. Ended in the midst, it can be done again.
///
/// # Errors
/// [`Error::Invalid`] for a part whose name is no file below its session, with nothing written; when a file can't be written.
pub fn pull_into(differences: &[Difference], project: &Path, id: &SessionId) -> Result<usize> {
    let pulled = differences
        .iter()
        .filter(|difference| !difference.to_pull().is_empty());
    check_names(pulled.filter_map(|difference| difference.subpath.as_ref()), id)?;
    let mut made = Vec::new();
    let mut pulled = 0;
    for difference in differences {
        let entries = difference.to_pull();
        if entries.is_empty() {
            continue;
        }
        pulled += entries.len();
        let stem = match &difference.subpath {
            None => project.join(id.as_str()),
            Some(subpath) => project.join(id.as_str()).join(subpath),
        };
        // `with_extension` would cut a name that has a dot.
        let with = |end: &str| {
            let mut name = stem.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let file = with(".jsonl");
        make_dir(file.parent().unwrap_or(project), &mut made)?;
        let (lines, metadata) = match &difference.subpath {
            None => (entries.to_vec(), None),
            Some(_) => split_metadata(entries.to_vec()),
        };
        let mut rest = lines.as_slice();
        while let Some((entry, later)) = rest.split_first() {
            if !append(&file, &one_line(entry))? {
                // There is none, or an empty one, which is what is left of a session that never began.
                if file.exists() {
                    std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
                }
                write_lines(&file, rest, &mut made)?;
                break;
            }
            rest = later;
        }
        let sidecar = with(".meta.json");
        if let Some(metadata) = metadata.filter(|_| !sidecar.exists()) {
            write_file(&sidecar, [metadata.as_str()], &mut made)?;
        }
    }
    Ok(pulled)
}

/// An entry without line ends, which can only stand between the parts of a value, where a blank means the same.
fn one_line(entry: &RawJson) -> String {
    entry.get().replace(['\n', '\r'], " ")
}

/// Whether a subpath names a file below its session, on this system: a store is written by many, and what they say becomes a path.
///
/// On Unix `\`, `:` and line ends are parts of names. On Windows `\` is `/`, and what has the others is no name.
pub fn is_part_name(subpath: &str) -> bool {
    is_part_name_on(subpath, cfg!(windows))
}

fn is_part_name_on(subpath: &str, is_windows: bool) -> bool {
    let is_separator = |c| c == '/' || (is_windows && c == '\\');
    let is_refused = |c: char| c == '\0' || (is_windows && (c == ':' || c.is_control()));
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(is_refused);
    subpath.split(is_separator).all(is_name)
}

fn check_names<'n>(mut subpaths: impl Iterator<Item = &'n String>, id: &SessionId) -> Result<()> {
    let Some(subpath) = subpaths.find(|subpath| !is_part_name(subpath)) else {
        return Ok(());
    };
    let why = format!("{subpath:?} of session {id} is no file below its session");
    Err(Error::invalid("the name of a part", why))
}

fn write_lines(file: &Path, entries: &[RawJson], made: &mut Vec<PathBuf>) -> Result<()> {
    let lines = entries.iter().flat_map(|entry| {
        let pieces = entry.get().split(['\n', '\r']);
        let blanks = std::iter::once("").chain(std::iter::repeat(" "));
        blanks
            .zip(pieces)
            .flat_map(|(blank, piece)| [blank, piece])
            .chain(["\n"])
    });
    write_file(file, lines, made)
}

fn write_file<'t>(
    path: &Path,
    texts: impl IntoIterator<Item = &'t str>,
    made: &mut Vec<PathBuf>,
) -> Result<()> {
    let opened = private(OpenOptions::new().write(true).create_new(true)).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::Exists(path.to_owned()));
        }
        Err(error) => return Err(Error::io("create", path)(error)),
    };
    made.push(path.to_owned());
    let mut file = BufWriter::with_capacity(256 * 1024, file);
    let written = texts
        .into_iter()
        .try_for_each(|text| file.write_all(text.as_bytes()));
    written
        .and_then(|()| file.flush())
        .map_err(Error::io("write to", path))
}

/// Makes the directories that are missing, for this user alone.
fn make_dir(directory: &Path, made: &mut Vec<PathBuf>) -> Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        make_dir(above, made)?;
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(directory)
        .map_err(Error::io("create", directory))?;
    made.push(directory.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::from_text(text).unwrap()
    }

    #[test]
    fn entries_become_lines_and_nothing_is_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let (project, id) = (place.path().join("projects").join("p"), SessionId::random());
        let transcripts = || {
            Transcripts::new(vec![raw("{\"a\":\r\n1}"), raw(r#"{"t":"\ud800\u0000"}"#)]).part(
                "subagents/agent-1",
                vec![raw(r#"{"type":"agent_metadata","agentType":"x"}"#), raw("[1]")],
            )
        };
        let made = transcripts().write(&project, &id).unwrap();
        let text = |name: &str| std::fs::read_to_string(project.join(name)).unwrap();
        assert_eq!(
            text(&format!("{id}.jsonl")),
            "{\"a\":  1}\n{\"t\":\"\\ud800\\u0000\"}\n"
        );
        assert_eq!(text(&format!("{id}/subagents/agent-1.jsonl")), "[1]\n");
        assert_eq!(
            text(&format!("{id}/subagents/agent-1.meta.json")),
            r#"{"agentType":"x"}"#
        );
        assert_eq!(made.len(), 7, "{made:?}");
        #[cfg(unix)]
        for path in &made {
            use std::os::unix::fs::PermissionsExt;
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{path:?}");
        }
        assert!(matches!(
            transcripts().write(&project, &id),
            Err(Error::Exists(_))
        ));
    }

    #[test]
    fn what_a_store_has_beyond_is_appended_and_nothing_is_overwritten() {
        use super::super::{StoreComparison, compare};
        let place = tempfile::tempdir().unwrap();
        let (project, id) = (place.path().join("projects").join("-p"), SessionId::random());
        let line = |uuid: &str| raw(&format!(r#"{{"type":"user","uuid":"{uuid}"}}"#));
        let there = |main: &[&str]| {
            let part = vec![line("p"), raw(r#"{"type":"agent_metadata","agentType":"x"}"#)];
            Transcripts::new(main.iter().map(|uuid| line(uuid)).collect()).part("subagents/agent-1.5", part)
        };
        let file = project.join(format!("{id}.jsonl"));
        let pull = |there: &Transcripts| {
            let here = match file.exists() {
                true => Transcripts::of_file(&file).unwrap().1,
                false => Transcripts::default(),
            };
            pull_into(&compare(&here, there), &project, &id).unwrap()
        };
        assert_eq!(pull(&there(&["a"])), 3);
        assert_eq!(pull(&there(&["a"])), 0);
        assert_eq!(pull(&there(&["a", "b", "c"])), 2);
        assert!(
            project
                .join(format!("{id}/subagents/agent-1.5.meta.json"))
                .exists()
        );
        let (_, here) = Transcripts::of_file(&file).unwrap();
        assert_eq!(here.main, there(&["a", "b", "c"]).main);
        let all = compare(&here, &there(&["a", "b", "c"]));
        assert!(
            all.iter().all(|one| one.standing == StoreComparison::Same),
            "{all:?}"
        );
        // A transcript that went on in both places is left alone.
        std::fs::write(&file, format!("{}\n{}\n", line("a").get(), line("x").get())).unwrap();
        assert_eq!(pull(&there(&["a", "b"])), 0);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_in_a_name_stays_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (project, id) = (place.path().join("-p"), SessionId::random());
        let names = ["subagents/agent-a:b", "subagents/a\\..\\b", "subagents/x\ny"];
        let mut there = Transcripts::new(vec![raw(r#"{"n":0}"#)]);
        for name in names {
            there = there.part(name, vec![raw(r#"{"n":1}"#)]);
        }
        there.clone().write(&project, &id).unwrap();
        for name in names {
            assert!(
                project.join(id.as_str()).join(format!("{name}.jsonl")).is_file(),
                "{name}"
            );
        }
        // Read again, they have these names.
        let (_, mut here) = Transcripts::of_file(&project.join(format!("{id}.jsonl"))).unwrap();
        here.parts.sort_by(|a, b| a.0.cmp(&b.0));
        there.parts.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(here.parts, there.parts);
    }

    #[test]
    fn no_part_leaves_its_session() {
        for safe in [
            "subagents/agent-1",
            "a",
            "subagents/workflows/run 1/agent-é",
            "..a/b..",
        ] {
            assert!(
                is_part_name_on(safe, false) && is_part_name_on(safe, true),
                "{safe}"
            );
        }
        assert!(is_part_name_on("subagents\\agent-1", true));
        // Each of these is one name on Unix, and leads out of the directory on Windows.
        for other in ["C:x", "C:\\x", "\\\\host\\x", "a\\..\\b", "a\nb", "agent-a:b"] {
            assert!(is_part_name_on(other, false), "{other}");
            assert!(!is_part_name_on(other, true), "{other}");
        }
        let place = tempfile::tempdir().unwrap();
        for outside in ["", "/etc/x", "../x", "a/../../x", "a//b", "a/", "./a", "a\0"] {
            assert!(
                !is_part_name_on(outside, false) && !is_part_name_on(outside, true),
                "{outside}"
            );
            let id = SessionId::random();
            let written = Transcripts::new(vec![raw("1")])
                .part(outside, vec![raw("2")])
                .write(place.path(), &id);
            assert!(matches!(written, Err(Error::Invalid { .. })), "{outside}");
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{outside}");
        }
    }
}
