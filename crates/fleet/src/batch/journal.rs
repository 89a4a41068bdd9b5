//! The file from which a batch goes on after its program was killed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger::protocol::RawJson;
use outrigger::{Cause, SessionId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{BatchJob, JobAnswer, JobFailure, JobResult};
use crate::budget::Amount;
use crate::lasting;

/// The version of the lines.
const VERSION: u32 = 1;

/// The longest journal that is read, in bytes.
const LONGEST: u64 = 4 << 30;

/// What is done of a batch, in a file of JSON lines.
///
/// A line is written and synced before a prompt is sent, and before its result is emitted. A last line that a killed program wrote in part
/// is cut off. The file is locked while it is open, so two programs never run one batch at once. A run that is dropped keeps the file open for
/// a moment, until its tasks have ended.
#[derive(Debug, Clone)]
pub struct Journal(Arc<Mutex<JournalInner>>);

#[derive(Debug)]
struct JournalInner {
    path: PathBuf,
    file: File,
    jobs: HashMap<String, JournaledJob>,
    /// What the program that wrote the file before had spent.
    earlier: Amount,
    /// A line could not be written: what follows it would be without it.
    broken: bool,
}

/// What the journal has of a job.
#[derive(Debug, Clone, Default)]
pub(super) struct JournaledJob {
    /// The checksum of the prompt.
    prompt: String,
    /// How often the job was tried.
    pub(super) tries: u32,
    /// The session of the last try.
    pub(super) session: Option<SessionId>,
    /// The job was tried and has no end. What became of the last try is known from its stored session alone, also if the try has ended: a
    /// program may be killed before it writes how.
    pub(super) is_open: bool,
    /// A tool may have run in a try.
    pub(super) tools: bool,
    /// What the tries have spent.
    pub(super) spent: Amount,
    /// What was reserved for the try that has no end.
    reserved: Amount,
    pub(super) end: Option<Result<JobAnswer, JobFailure>>,
    /// This run has met the job.
    is_met: bool,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("the journal {} cannot be {what}", path.display())]
    #[non_exhaustive]
    Io {
        /// The file.
        path: PathBuf,
        /// `opened`, `read` or `written`.
        what: &'static str,
        /// The error of the file system.
        source: io::Error,
    },
    /// Another program runs the batch.
    #[error("the journal {} is in use: another program runs this batch", path.display())]
    #[non_exhaustive]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A line is none of a journal, or of a newer version.
    #[error("line {line} of {} is no line of a journal that this version reads: {problem}", path.display())]
    #[non_exhaustive]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    /// The first line: the version.
    Batch(u32),
    /// A try begins: the next thing is that its prompt is sent.
    Begin(Begin),
    /// A tool may have run in a try.
    Tools { id: String },
    /// A try has ended, or the last one of a killed program was looked into.
    Tried { id: String, spent: Amount },
    /// A job has ended.
    End(End),
}

#[derive(Debug, Serialize, Deserialize)]
struct Begin {
    id: String,
    /// The checksum of the prompt.
    prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    #[serde(default)]
    reserved: Amount,
}

#[derive(Debug, Serialize, Deserialize)]
struct End {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done: Option<DoneForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<FailedForm>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DoneForm {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<RawJson>,
    #[serde(default)]
    recovered: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct FailedForm {
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    #[serde(default)]
    transient: bool,
    #[serde(default)]
    tools: bool,
}

impl From<&Result<JobAnswer, JobFailure>> for End {
    fn from(end: &Result<JobAnswer, JobFailure>) -> Self {
        let mut this = Self {
            id: String::new(),
            done: None,
            failed: None,
        };
        match end {
            Ok(done) => {
                this.done = Some(DoneForm {
                    text: done.text.clone(),
                    output: done.output.clone(),
                    recovered: done.is_recovered,
                });
            }
            Err(failure) => {
                this.failed = Some(FailedForm {
                    message: failure.message.clone(),
                    cause: failure.cause.clone(),
                    transient: failure.is_transient,
                    tools: failure.tools_may_have_run,
                });
            }
        }
        this
    }
}

impl End {
    fn read(self) -> Option<Result<JobAnswer, JobFailure>> {
        match (self.done, self.failed) {
            (Some(done), None) => Some(Ok(JobAnswer {
                text: done.text,
                output: done.output,
                is_recovered: done.recovered,
            })),
            (None, Some(failed)) => Some(Err(JobFailure {
                message: failed.message,
                cause: failed.cause,
                is_transient: failed.transient,
                tools_may_have_run: failed.tools,
            })),
            _ => None,
        }
    }
}

impl Journal {
    /// Opens the journal in this file; a new one, if there is no file or it is empty.
    ///
    /// # Errors
    /// When the file cannot be read, written or locked, or is no journal; such a file stays as it is.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the file locked for a moment.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let name = path.clone();
        let opened = tokio::task::spawn_blocking(move || JournalInner::open(path)).await;
        let inner = opened.map_err(|error| JournalError::Io {
            path: name,
            what: "opened",
            source: io::Error::other(error),
        })??;
        Ok(Self(Arc::new(Mutex::new(inner))))
    }

    /// How many jobs have ended, with an answer or without.
    pub fn ended(&self) -> usize {
        self.lock().jobs.values().filter(|job| job.end.is_some()).count()
    }

    /// How many jobs there are that began, those that ended included.
    pub fn begun(&self) -> usize {
        self.lock().jobs.len()
    }

    /// What the programs before this one spent. A try that has no end counts with what was reserved for it.
    pub fn spent(&self) -> Amount {
        self.lock().earlier
    }

    fn lock(&self) -> MutexGuard<'_, JournalInner> {
        // Nothing panics halfway through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a job, which no other job of this run may have met.
    ///
    /// # Errors
    /// What is wrong with the job.
    pub(super) fn meet(&self, job: &BatchJob) -> Result<JournaledJob, &'static str> {
        let mut inner = self.lock();
        let prompt = checksum(&job.prompt);
        let known = inner.jobs.entry(job.id.clone()).or_insert_with(|| JournaledJob {
            prompt: prompt.clone(),
            ..JournaledJob::default()
        });
        if known.prompt != prompt {
            return Err("the journal has another prompt for it; use another journal for other prompts");
        }
        if std::mem::replace(&mut known.is_met, true) {
            return Err("there are two jobs of this id");
        }
        Ok(known.clone())
    }

    /// A try of the job begins, in this session.
    pub(super) async fn begin(
        &self,
        job: &BatchJob,
        session: Option<SessionId>,
        reserved: Amount,
    ) -> Result<(), Arc<JournalError>> {
        let begin = Begin {
            id: job.id.clone(),
            prompt: checksum(&job.prompt),
            session,
            reserved,
        };
        self.write(JournalLine::Begin(begin), true).await
    }

    /// A tool may have run in the try that runs.
    pub(super) async fn tools(&self, job: &BatchJob) -> Result<(), Arc<JournalError>> {
        // The line has to survive the program, not the machine: the next look is at the stored session, which was written before.
        self.write(JournalLine::Tools { id: job.id.clone() }, false).await
    }

    /// The try has ended.
    pub(super) async fn tried(&self, job: &BatchJob, spent: Amount) -> Result<(), Arc<JournalError>> {
        let id = job.id.clone();
        self.write(JournalLine::Tried { id, spent }, false).await
    }

    /// The job has ended.
    pub(super) async fn end(
        &self,
        job: &BatchJob,
        end: &Result<JobAnswer, JobFailure>,
    ) -> Result<(), Arc<JournalError>> {
        let mut end = End::from(end);
        end.id.clone_from(&job.id);
        self.write(JournalLine::End(end), true).await
    }

    async fn write(&self, line: JournalLine, sync: bool) -> Result<(), Arc<JournalError>> {
        let this = self.clone();
        let written = tokio::task::spawn_blocking(move || this.lock().write(&line, sync)).await;
        let written = written.unwrap_or_else(|error| {
            Err(JournalError::Io {
                path: self.lock().path.clone(),
                what: "written",
                source: io::Error::other(error),
            })
        });
        written.map_err(Arc::new)
    }
}

impl JournalInner {
    fn open(path: PathBuf) -> Result<Self, JournalError> {
        let failed = |what: &'static str, path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Io { path, what, source }
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(failed("opened", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(JournalError::InUse { path }),
            Err(std::fs::TryLockError::Error(error)) => return Err(failed("opened", &path)(error)),
        }
        let length = file.metadata().map_err(failed("read", &path))?.len();
        if length > LONGEST {
            return Err(failed("read", &path)(io::ErrorKind::FileTooLarge.into()));
        }
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(failed("read", &path))?;
        file.read_to_end(&mut text).map_err(failed("read", &path))?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let mut this = Self {
            path,
            file,
            jobs: HashMap::new(),
            earlier: Amount::default(),
            broken: false,
        };
        for (number, line) in (1..).zip(text[..whole].split_inclusive(|byte| *byte == b'\n')) {
            this.read(number, line)?;
        }
        let header = line_of(&JournalLine::Batch(VERSION)).map_err(failed("written", &this.path))?;
        if whole == 0 && !header.starts_with(&text) {
            // A killed program leaves a part of the header at most: this is somebody else's file, without a line break.
            return Err(JournalError::Line {
                path: this.path.clone(),
                line: 1,
                problem: "the header is missing".to_owned(),
            });
        }
        if whole < text.len() {
            // A program was killed while it wrote.
            let length = whole.try_into().unwrap_or(u64::MAX);
            this.file.set_len(length).map_err(failed("written", &this.path))?;
        }
        if whole == 0 {
            this.write(&JournalLine::Batch(VERSION), true)?;
        }
        // Also for a program that was killed between the two.
        lasting::sync_dir_of(&this.path).map_err(failed("written", &this.path))?;
        for known in this.jobs.values() {
            this.earlier += known.spent;
        }
        Ok(this)
    }

    fn read(&mut self, number: u64, line: &[u8]) -> Result<(), JournalError> {
        let wrong = |problem: String| JournalError::Line {
            path: self.path.clone(),
            line: number,
            problem,
        };
        let line: JournalLine = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        match (&line, number) {
            (JournalLine::Batch(VERSION), 1) => return Ok(()),
            (JournalLine::Batch(version), _) => return Err(wrong(format!("a header of version {version}"))),
            (_, 1) => return Err(wrong("the header is missing".to_owned())),
            _ => {}
        }
        self.apply(line).map_err(|problem| JournalError::Line {
            path: self.path.clone(),
            line: number,
            problem: problem.to_owned(),
        })
    }

    /// Notes what a line says.
    fn apply(&mut self, line: JournalLine) -> Result<(), &'static str> {
        let id = match &line {
            JournalLine::Batch(_) => return Ok(()),
            JournalLine::Begin(Begin { id, .. })
            | JournalLine::Tools { id }
            | JournalLine::Tried { id, .. }
            | JournalLine::End(End { id, .. }) => id,
        };
        if !matches!(line, JournalLine::Begin(_) | JournalLine::End(_)) && !self.jobs.contains_key(id) {
            return Err("it is about a job that did not begin");
        }
        let known = self.jobs.entry(id.clone()).or_default();
        match line {
            JournalLine::Begin(begin) => {
                if known.prompt.is_empty() {
                    known.prompt = begin.prompt;
                } else if known.prompt != begin.prompt {
                    return Err("two prompts have one id");
                }
                // What ended before is run again.
                known.end = None;
                known.tries = known.tries.saturating_add(1);
                // That of an earlier try would say nothing about this one.
                known.session = begin.session;
                known.is_open = true;
                known.reserved = begin.reserved;
                known.spent += begin.reserved;
            }
            JournalLine::Tools { .. } => known.tools = true,
            JournalLine::Tried { spent, .. } => {
                known.spent = known.spent.saturating_sub(std::mem::take(&mut known.reserved));
                known.spent += spent;
            }
            JournalLine::End(end) => {
                known.is_open = false;
                known.end = Some(end.read().ok_or("it is no end")?);
            }
            JournalLine::Batch(_) => {}
        }
        Ok(())
    }

    fn write(&mut self, line: &JournalLine, sync: bool) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io {
            path: self.path.clone(),
            what: "written",
            source,
        };
        if self.broken {
            return Err(failed(io::Error::other("an earlier line could not be written")));
        }
        let text = line_of(line).map_err(failed)?;
        let written = self
            .file
            .write_all(&text)
            .and_then(|()| if sync { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            let error = failed(error);
            self.broken = true;
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for JournalInner {
    fn drop(&mut self) {
        // A child that is being started has this file, and with it the lock, until it runs its program.
        let _ = self.file.unlock();
    }
}

/// A line of the file, with its end.
fn line_of(line: &JournalLine) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

impl JournaledJob {
    /// The result that the journal has.
    pub(super) fn result(&self, id: &str, index: u64) -> Option<JobResult> {
        Some(JobResult {
            id: id.to_owned(),
            index,
            result: self.end.clone()?,
            tries: self.tries,
            spent: self.spent,
            session_id: self.session.clone(),
            is_replayed: true,
        })
    }
}

fn checksum(prompt: &str) -> String {
    Sha256::digest(prompt)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn spent(tokens: u64) -> Amount {
        Amount {
            tokens,
            ..Amount::default()
        }
    }

    async fn written(path: &Path) -> Journal {
        let journal = Journal::open(path).await.unwrap();
        let (a, b) = (BatchJob::new("a", "1"), BatchJob::new("b", "2"));
        journal.meet(&a).unwrap();
        journal.meet(&b).unwrap();
        journal.begin(&a, None, spent(100)).await.unwrap();
        journal.begin(&b, None, spent(100)).await.unwrap();
        journal.tools(&b).await.unwrap();
        journal.tried(&a, spent(7)).await.unwrap();
        journal.end(&a, &Ok(answer())).await.unwrap();
        journal
    }

    #[tokio::test]
    async fn what_was_written_is_known_after_any_cut() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        drop(written(&path).await);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let journal = Journal::open(&path).await.unwrap();
            let a = journal.meet(&BatchJob::new("a", "1")).unwrap();
            let b = journal.meet(&BatchJob::new("b", "2")).unwrap();
            if cut == whole.len() {
                assert_eq!(a.end.unwrap().unwrap().text, "one");
                assert!(!a.is_open && b.is_open && b.tools);
                // The open try counts with what was reserved.
                assert_eq!(journal.spent(), spent(107));
            } else {
                assert!(a.end.is_none(), "{cut}");
            }
            drop(journal);
            // What was cut off is gone: the next program reads the same.
            let again = std::fs::read(&path).unwrap();
            assert!(
                again.ends_with(b"\n") && again.len() <= whole.len().max(cut),
                "{cut}"
            );
        }
    }

    #[test]
    fn the_name_of_a_journal_is_on_disk_once_it_is_open() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        // Also that of a program that was killed before it had done so.
        for _ in 0..2 {
            lasting::SYNCED.take();
            JournalInner::open(path.clone()).unwrap();
            assert_eq!(lasting::SYNCED.take(), [place.path()]);
        }
    }

    /// No prompt is sent behind a line that may not be on disk, and nothing is written behind it.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_line_that_is_not_synced_ends_the_batch() {
        use std::io::Read as _;
        use std::os::fd::OwnedFd;

        use futures_util::stream;
        use outrigger::testing::Simulated;

        use crate::batch::{Batch, BatchStop};

        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let journal = Journal::open(&path).await.unwrap();
        // A pipe takes lines, and cannot be synced.
        let (mut pipe, into) = io::pipe().unwrap();
        let file = std::mem::replace(&mut journal.lock().file, OwnedFd::from(into).into());
        let cli = Simulated::agent(|agent| agent.directives());
        let jobs = [BatchJob::new("a", "%say 1"), BatchJob::new("b", "%say 2")];
        let batch = Batch::new(cli.options()).jobs(1).journal(journal.clone());
        let run = batch.run(stream::iter(jobs.clone())).unwrap();
        let error = run.finish().await.unwrap_err();
        assert!(
            matches!(&error.summary().stopped, Some(BatchStop::Journal(error))
                if matches!(**error, JournalError::Io { what: "written", .. })),
            "{error}"
        );
        let sent = cli.started();
        assert_eq!(sent.len(), 1, "no other job began");
        let received = sent[0].report();
        assert!(
            !received
                .received_kinds()
                .iter()
                .any(|kind| kind.starts_with("user"))
        );
        journal.end(&jobs[0], &Ok(answer())).await.unwrap_err();
        journal.lock().file = file;
        let mut written = String::new();
        pipe.read_to_string(&mut written).unwrap();
        assert_eq!(written.lines().count(), 1, "{written}");
        drop((journal, pipe));

        // The line is there after all: the next run does what was not done.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(&written);
        std::fs::write(&path, text).unwrap();
        // The tasks of the run end in their own time.
        let journal = loop {
            match Journal::open(&path).await {
                Err(JournalError::InUse { .. }) => tokio::task::yield_now().await,
                opened => break opened.unwrap(),
            }
        };
        let batch = Batch::new(cli.options()).journal(journal);
        let mut run = batch.run(stream::iter(jobs)).unwrap();
        let mut answers = Vec::new();
        while let Some(result) = run.next().await {
            answers.push(result.result.unwrap().text);
        }
        answers.sort();
        assert_eq!(answers, ["1", "2"]);
    }

    fn answer() -> JobAnswer {
        JobAnswer {
            text: "one".to_owned(),
            output: None,
            is_recovered: false,
        }
    }

    #[tokio::test]
    async fn a_child_that_is_being_started_does_not_keep_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let journal = written(&path).await;
        // What a child has between its fork and its program.
        let inherited = journal.lock().file.try_clone().unwrap();
        drop(journal);
        Journal::open(&path).await.unwrap();
        drop(inherited);
    }

    #[tokio::test]
    async fn wrong_files_and_jobs_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let journal = written(&path).await;
        assert!(matches!(
            Journal::open(&path).await,
            Err(JournalError::InUse { .. })
        ));
        drop(journal);
        let journal = Journal::open(&path).await.unwrap();
        assert_eq!((journal.begun(), journal.ended()), (2, 1));
        let other = journal.meet(&BatchJob::new("a", "another prompt")).unwrap_err();
        assert!(other.contains("another prompt"), "{other}");
        journal.meet(&BatchJob::new("a", "1")).unwrap();
        let twice = journal.meet(&BatchJob::new("a", "1")).unwrap_err();
        assert!(twice.contains("two jobs"), "{twice}");
        drop(journal);
        for (text, line) in [
            ("{}\n", 1),
            ("{\"begin\":{\"id\":\"a\",\"prompt\":\"x\"}}\n", 1),
            ("{\"batch\":9}\n", 1),
            ("{\"batch\":1}\nnoise\n", 2),
            // Without a line break, and no beginning of a journal.
            ("notes of somebody", 1),
            ("{\"batch\":10}", 1),
            ("{\"batch\":1} ", 1),
            ("{\"batch\":1}\n{\"tools\":{\"id\":\"x\"}}\n", 2),
            ("{\"batch\":1}\n{\"end\":{\"id\":\"x\"}}\n", 2),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Journal::open(&path).await.unwrap_err();
            assert!(
                matches!(error, JournalError::Line { line: found, .. } if found == line),
                "{text}: {error}"
            );
            assert_eq!(
                std::fs::read_to_string(&path).unwrap(),
                text,
                "the file stays as it is"
            );
        }
    }
}
