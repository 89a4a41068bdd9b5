//! Exports a session as one file.
//!
//! The file is a header, then each part, then an end, which shows that the file is complete:
//!
//! ```text
//! {"type":"outrigger-session","version":1,"sessionId":"…","cwd":"…","exportedAt":"…"}
//! {"file":"transcript.jsonl","bytes":1234}
//! … 1234 bytes …
//! {"file":"beside/subagents/agent-1.jsonl","bytes":567}
//! … 567 bytes …
//! {"end":true,"files":2}
//! ```
//!
//! Each line and each part ends with a line break that is not counted. The parts have the original bytes.

use std::fs;
use std::io::{Read as _, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::clock::now;
use crate::draft::Draft;
use crate::error::{Error, Result};
use crate::file;
use crate::place::SessionFile;
use crate::progress::{Meter, Progress};
use crate::record::object::{Object, quoted};
use crate::relocate::ELSEWHERE;
use crate::relocate::beside::files_below;

/// The `type` in the first line.
pub(super) const KIND: &str = "outrigger-session";

/// The version of exports, written and accepted.
pub(super) const VERSION: u64 = 1;

/// The transcript's name in an export.
pub(super) const TRANSCRIPT: &str = "transcript.jsonl";

/// The path of the files from beside the transcript.
pub(super) const BESIDE: &str = "beside";

impl SessionFile {
    /// Writes the session as one file, which [`Sessions::import`](crate::Sessions::import) reads: the current transcript,
    /// the files beside it, the undo history of files and the list of tasks. Links are left out: they point out of the session.
    ///
    /// It has the whole conversation, including results of tools, so only its owner can read it.
    ///
    /// # Errors
    /// [`Error::Exists`] when `target` exists; [`Error::Invalid`] when the name of a file is no UTF-8; when a file cannot be read or
    /// written. Nothing is left behind then.
    pub fn export(&self, target: impl AsRef<Path>) -> Result<()> {
        self.export_file(target.as_ref(), &mut Meter::unheard())
    }

    /// As [`export`](Self::export), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`export`](Self::export), and [`Error::Stopped`] if `observe` breaks: then nothing is left behind, either.
    pub fn export_observed(
        &self,
        target: impl AsRef<Path>,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        self.export_file(target.as_ref(), &mut Meter::of(&mut observe))
    }

    fn export_file(&self, target: &Path, meter: &mut Meter<'_>) -> Result<()> {
        let mut draft = Draft::of(target)?;
        self.write_export(draft.writer(), meter)?;
        meter.ask_observer()?;
        draft.create()?;
        meter.end();
        Ok(())
    }

    /// As [`export`](Self::export), to a writer.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the name of a file is no UTF-8, with nothing written; when something cannot be read or written.
    pub fn export_to(&self, target: &mut dyn Write) -> Result<()> {
        self.write_export(target, &mut Meter::unheard())
    }

    /// As [`export_to`](Self::export_to), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`export_to`](Self::export_to), and [`Error::Stopped`] if `observe` breaks. The output then ends in the middle.
    pub fn export_to_observed(
        &self,
        target: &mut dyn Write,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut meter = Meter::of(&mut observe);
        self.write_export(target, &mut meter)?;
        meter.end();
        Ok(())
    }

    fn write_export(&self, target: &mut dyn Write, meter: &mut Meter<'_>) -> Result<()> {
        let parts = self.parts_of_export()?;
        if meter.is_heard() {
            meter.begin(parts.iter().map(|(path, _)| length_of(path)).sum())?;
        }
        let mut header = Object::new();
        header.set_string("type", KIND);
        header.set("version", VERSION.to_string());
        header.set_string("sessionId", self.id.as_str());
        if let Some(cwd) = self.recorded_dir()? {
            header.set_string("cwd", &cwd.to_string_lossy());
        }
        header.set_string("exportedAt", &now());
        let failed = |error| Error::io("write", "the export")(error);
        writeln!(target, "{}", header.to_text()).map_err(failed)?;
        for (path, name) in &parts {
            let file = file::open(path).map_err(Error::io("open", path))?;
            let length = file.metadata().map_err(Error::io("read", path))?.len();
            writeln!(target, r#"{{"file":{},"bytes":{length}}}"#, quoted(name)).map_err(failed)?;
            // Bytes that are appended meanwhile are not exported, and a truncated file must not shift the rest.
            let copied = meter.copy(&mut file.take(length), path, |bytes| write_to(target, bytes))?;
            if copied != length {
                return Err(Error::Changed(path.clone()));
            }
            writeln!(target).map_err(failed)?;
        }
        writeln!(target, r#"{{"end":true,"files":{}}}"#, parts.len()).map_err(failed)
    }

    /// Writes the transcript alone as it is, which is JSON, a record a line.
    ///
    /// # Errors
    /// As [`export`](Self::export).
    pub fn export_jsonl(&self, target: impl AsRef<Path>) -> Result<()> {
        self.export_lines(target.as_ref(), &mut Meter::unheard())
    }

    /// As [`export_jsonl`](Self::export_jsonl), and reports the progress to `observe`.
    ///
    /// # Errors
    /// As [`export_observed`](Self::export_observed).
    pub fn export_jsonl_observed(
        &self,
        target: impl AsRef<Path>,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        self.export_lines(target.as_ref(), &mut Meter::of(&mut observe))
    }

    /// As [`export_jsonl_observed`](Self::export_jsonl_observed), to a writer.
    ///
    /// # Errors
    /// As [`export_to_observed`](Self::export_to_observed).
    pub fn export_jsonl_to_observed(
        &self,
        target: &mut dyn Write,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut meter = Meter::of(&mut observe);
        self.write_lines(target, &mut meter)?;
        meter.end();
        Ok(())
    }

    fn export_lines(&self, target: &Path, meter: &mut Meter<'_>) -> Result<()> {
        let mut draft = Draft::of(target)?;
        self.write_lines(draft.writer(), meter)?;
        meter.ask_observer()?;
        draft.create()?;
        meter.end();
        Ok(())
    }

    fn write_lines(&self, target: &mut dyn Write, meter: &mut Meter<'_>) -> Result<()> {
        let mut file = file::open(&self.path).map_err(Error::io("open", &self.path))?;
        meter.begin(length_of(&self.path))?;
        meter.copy(&mut file, &self.path, |bytes| write_to(target, bytes))?;
        Ok(())
    }

    /// The parts: where each is, and its name in the export.
    fn parts_of_export(&self) -> Result<Vec<(PathBuf, String)>> {
        let mut parts = vec![(self.path.clone(), TRANSCRIPT.to_owned())];
        let mut add = |below: &Path, name: &str| -> Result<()> {
            for (path, relative) in files_below(below)? {
                let relative: Option<Vec<_>> = relative
                    .components()
                    .map(|component| component.as_os_str().to_str())
                    .collect();
                let relative = relative.ok_or_else(|| {
                    let why = format!("{} is no UTF-8, and an export has no other names", path.display());
                    Error::invalid("the name of a file", why)
                })?;
                parts.push((path, format!("{name}/{}", relative.join("/"))));
            }
            Ok(())
        };
        add(&self.beside(), BESIDE)?;
        for part in ELSEWHERE {
            add(&self.config_dir().join(part).join(self.id.as_str()), part)?;
        }
        Ok(parts)
    }
}

fn write_to(target: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    target.write_all(bytes).map_err(Error::io("write", "the export"))
}

/// The length of a file; 0 if it cannot be read, which the export reports later.
fn length_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
