//! `outrigger batch`: many prompts from a file, and a result for each.

mod prompts;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueHint;
use futures_util::stream;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use outrigger::options::Options;
use outrigger::protocol::RawJson;
use outrigger::{AfterTools, Retry};
use outrigger_fleet::batch::{Batch, BatchOrder, BatchRun, BatchStop, JobResult, Journal, Monitor, Summary};
use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};
use outrigger_fleet::gate::{Gate, GateLimits};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use self::prompts::GivenPrompt;
use crate::agent::{SessionArgs, schema, usage};
use crate::ask::Responder;
use crate::config::ConfigArgs;
use crate::exit::{CommandResult, Failure, Status};
use crate::screen::Screen;
use crate::signals::{Signal, Signals};
use crate::time;

/// What `outrigger batch` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The prompts, a line of JSON each: `{"id": "a", "prompt": "…", "metadata": …}` with the prompt alone required, or a string.
    /// `-` reads standard input.
    #[arg(value_name = "PROMPTS", value_hint = ValueHint::FilePath)]
    prompts: PathBuf,
    /// Where the results go, a line of JSON each; `-` is standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: PathBuf,
    /// Where the journal is: what is done. FILE.journal, for the FILE of `--out`, unless given.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    journal: Option<PathBuf>,
    /// Goes on with a batch that was ended or killed. What is done is not done again; `--out` is written anew.
    #[arg(long)]
    resume: bool,
    /// Also runs the prompts again that failed before.
    #[arg(long, requires = "resume")]
    retry_failed: bool,
    /// Writes the results in the order of the prompts, and not as they come.
    #[arg(long)]
    ordered: bool,
    /// A file with the JSON schema that each answer must fit.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    schema: Option<PathBuf>,

    /// How many prompts run at once; each has a process of its own.
    #[arg(long, short, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Limits")]
    jobs: u16,
    /// How often a prompt is tried that fails for a cause that passes, such as a rate limit.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    tries: u32,
    /// What becomes of a prompt that failed after tools may have run.
    #[arg(long, value_enum, default_value = "fail", help_heading = "Limits")]
    after_tools: Then,
    /// The most that all of it may cost, in US dollars, earlier runs of the journal included.
    #[arg(long, value_name = "USD", help_heading = "Limits")]
    max_cost: Option<f64>,
    /// What is set aside of `--max-cost` for each try before it begins, in US dollars; by default `--max-cost` divided by twice the number
    /// of `--jobs`.
    #[arg(long, value_name = "USD", requires = "max_cost", help_heading = "Limits")]
    reserve: Option<f64>,
    /// How long each try may take, such as `90s` or `10m`.
    #[arg(long, value_name = "DURATION", value_parser = time::duration, help_heading = "Limits")]
    try_timeout: Option<Duration>,
    /// How long all of it may take; what is not done by then is left for `--resume`.
    #[arg(long, value_name = "DURATION", value_parser = time::duration, help_heading = "Limits")]
    timeout: Option<Duration>,

    #[command(flatten)]
    agent: SessionArgs,
    #[command(flatten)]
    _config: ConfigArgs,
}

/// `--after-tools`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Then {
    /// The job counts as failed.
    Fail,
    /// The session goes on, and is told that its turn broke off.
    GoOn,
    /// The prompt is sent once more. What the tools did, they may do twice.
    Repeat,
}

/// Runs the prompts and writes the results.
pub(crate) async fn run(args: Args) -> CommandResult {
    let screen = Screen::new(false, args.agent.verbose, args.agent.quiet);
    let options = args.options(&screen)?;
    let mut signals = Signals::catch()?;
    let opened = async {
        let given = prompts::read(args.prompts.clone()).await?;
        let runtime = Handle::current();
        apart(move || {
            args.check_files()?;
            let journal = runtime.block_on(args.open_journal())?;
            let results = Results::create(&args.out, &given)?;
            Ok((args, given, journal, results))
        })
        .await
    };
    let (args, given, journal, results) = tokio::select! {
        biased;
        // Who writes the prompts may have ended by the same Ctrl-C, and its list may be a part.
        signal = signals.next() => return Ok(signal.status()),
        opened = opened => opened?,
    };
    let jobs: Vec<_> = given.into_iter().map(|given| given.job).collect();
    let mut run = args.batch(options, journal)?.run(stream::iter(jobs))?;
    let bar = BatchBar::new(run.monitor(), args.agent.quiet);

    // A reader of the results may stall, and signals are heeded all the same.
    let (sender, receiver) = mpsc::channel(1);
    let (mut lines, writer) = (Some(sender), apart(move || results.write_all(receiver)));
    tokio::pin!(writer);
    let mut asked = None;
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => match (signal, asked) {
                (Signal::Interrupt, None) => {
                    asked = Some(signal);
                    run.monitor().stop();
                    bar.note("no further prompt begins; Ctrl-C once more ends those that run");
                }
                _ => {
                    // What runs is looked up when the batch goes on.
                    bar.end();
                    drop(run);
                    args.say_way_on(&bar);
                    return Ok(signal.status());
                }
            },
            // Behind the last result, or when one cannot be written.
            written = &mut writer => {
                written?;
                break;
            }
            next = next(&mut run, lines.clone()) => match next {
                Some((place, result)) => {
                    if let Err(failure) = &result.result {
                        bar.note(&format!("{}: {failure}", result.id));
                    }
                    place.send(result);
                }
                None => lines = None,
            },
            () = bar.tick() => {}
        }
    }
    bar.end();
    args.finish(run, &bar, asked).await
}

/// Runs what may block in a thread of its own: it cannot be taken back, and must not keep this program from ending.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        // If nobody waits any more, nobody needs to know.
        let _ = ended.send(work());
    });
    end.await.context("a thread of the batch is gone")?
}

/// The next result, when the writer has room for it. Cancel safe.
async fn next(
    run: &mut BatchRun,
    lines: Option<mpsc::Sender<JobResult>>,
) -> Option<(mpsc::OwnedPermit<JobResult>, JobResult)> {
    let place = match lines {
        Some(lines) => lines.reserve_owned().await.ok(),
        None => None,
    };
    match place {
        Some(place) => Some((place, run.next().await?)),
        // The end of the writer says the rest.
        None => std::future::pending().await,
    }
}

impl Args {
    fn options(&self, screen: &Screen) -> Result<Options, Failure> {
        let mut options = self
            .agent
            .read()?
            .hosted(&Responder::nobody(), screen)
            // Nobody reads along.
            .include_partial_messages(false);
        if let Some(timeout) = self.try_timeout {
            options = options.turn_deadline(timeout);
        }
        match &self.schema {
            Some(path) => Ok(options.output_format(schema(path)?)),
            None => Ok(options),
        }
    }

    fn journal_path(&self) -> Option<PathBuf> {
        if self.journal.is_some() || self.out.as_os_str() == "-" {
            return self.journal.clone();
        }
        let mut path = self.out.clone().into_os_string();
        path.push(".journal");
        Some(path.into())
    }

    /// Nothing that is read is written over.
    fn check_files(&self) -> Result<(), Failure> {
        let journal = self.journal_path();
        let files = [
            ("the prompts", Some(&self.prompts)),
            ("--schema", self.schema.as_ref()),
            ("--out", Some(&self.out)),
            ("--journal", journal.as_ref()),
        ];
        let mut seen: Vec<(&str, Place)> = Vec::new();
        for (what, path) in files {
            let Some(path) = path else { continue };
            let place = match path.as_os_str() == "-" {
                // It may come from a file.
                true if what == "the prompts" => inode(Path::new("/dev/stdin")),
                true => None,
                false => place(path),
            };
            let Some(place) = place else { continue };
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == place) {
                return Err(usage(format!(
                    "{other} and {what} are the same file: {}",
                    path.display()
                )));
            }
            seen.push((what, place));
        }
        Ok(())
    }

    async fn open_journal(&self) -> Result<Option<Journal>, Failure> {
        let Some(path) = self.journal_path() else {
            return match self.resume {
                true => Err(usage(
                    "--resume needs the journal of the batch: --journal FILE".to_owned(),
                )),
                false => Ok(None),
            };
        };
        let is_written = |path: &Path| {
            let found = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
            found && path.as_os_str() != "-"
        };
        if !self.resume && is_written(&self.out) {
            return Err(is_there(&self.out));
        }
        if is_written(&self.out)
            && !has_results(&self.out).with_context(|| format!("cannot read {}", self.out.display()))?
        {
            return Err(usage(format!(
                "{} has no results of a batch; it stays as it is, and another --out is needed",
                self.out.display()
            )));
        }
        let journal = Journal::open(&path).await;
        let journal = journal.map_err(|error| Failure::new(Status::Usage, error))?;
        // A batch of which nothing began, because there was no login, for example, is begun by the same command.
        if !self.resume && journal.begun() > 0 {
            return Err(is_there(&path));
        }
        if self.resume && journal.begun() == 0 && is_written(&self.out) {
            return Err(usage(format!(
                "the journal {} knows of nothing that was done; {} stays as it is, and another --out begins anew",
                path.display(),
                self.out.display()
            )));
        }
        Ok(Some(journal))
    }

    fn batch(&self, options: Options, journal: Option<Journal>) -> Result<Batch, Failure> {
        let retry = Retry::new()
            .tries(self.tries)
            .after_tools(match self.after_tools {
                Then::Fail => AfterTools::Stop,
                Then::GoOn => AfterTools::go_on(),
                Then::Repeat => AfterTools::Repeat,
            });
        let mut limits = GateLimits::default();
        limits.max_running = self.jobs.into();
        let mut batch = Batch::new(options)
            .jobs(self.jobs.into())
            .order(match self.ordered {
                true => BatchOrder::AsTheyCame,
                false => BatchOrder::AsTheyEnd,
            })
            .retry(retry)
            .gate(Gate::new(limits), None);
        if let Some(most) = self.max_cost {
            let dollars = |flag: &str, dollars: f64| {
                Usd::from_dollars(dollars).map_err(|error| usage(format!("--{flag}: {error}")))
            };
            let each = self.reserve.unwrap_or(most / (2.0 * f64::from(self.jobs)));
            let budget = Budget::new("batch", Cap::usd(dollars("max-cost", most)?));
            batch = batch.budget(budget, Amount::usd(dollars("reserve", each)?));
        }
        if let Some(timeout) = self.timeout {
            batch = batch.deadline(timeout);
        }
        if self.retry_failed {
            batch = batch.retry_failed();
        }
        if let Some(journal) = journal {
            batch = batch.journal(journal);
        }
        Ok(batch)
    }

    /// Says how the batch ended.
    async fn finish(&self, run: BatchRun, bar: &BatchBar, asked: Option<Signal>) -> CommandResult {
        let summary = match run.finish().await {
            Ok(summary) => summary,
            Err(error) => {
                let status = error.error().map_or(Status::Usage, Status::of_error);
                return Err(Failure::new(status, error));
            }
        };
        bar.note(&summary.to_string());
        if is_whole(&summary) {
            return Ok(match summary.progress.failed {
                0 => Status::Success,
                _ => Status::Failed,
            });
        }
        self.say_way_on(bar);
        Ok(match (asked, &summary.stopped) {
            (Some(signal), _) => signal.status(),
            (None, Some(BatchStop::Budget(_))) => Status::Limit,
            (None, Some(BatchStop::Deadline(_))) => Status::TimedOut,
            _ => Status::Failed,
        })
    }

    fn say_way_on(&self, bar: &BatchBar) {
        if self.journal_path().is_some() {
            bar.note("the same command with --resume goes on");
        }
    }
}

fn is_there(path: &Path) -> Failure {
    usage(format!(
        "{} is there already; --resume goes on with that batch, and another --out begins a new one",
        path.display()
    ))
}

/// What tells files apart, whatever their names are.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// A file that is there, on Unix.
    Inode(u64, u64),
    /// Where a file will be.
    Path(PathBuf),
}

/// Where a file is, or will be; `None` where it cannot be. Opening it tells why.
fn place(path: &Path) -> Option<Place> {
    if let Some(inode) = inode(path) {
        return Some(inode);
    }
    let mut path = path.to_owned();
    // A link to what is not there yet is followed when it is created. The system follows no more than so many.
    for _ in 0..40 {
        if let Ok(place) = path.canonicalize() {
            return Some(Place::Path(place));
        }
        let Ok(target) = path.read_link() else { break };
        path = path.parent()?.join(target);
    }
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(Place::Path(directory.join(path.file_name()?)))
}

/// A file that is there and has a content, by its number: it may have several names.
#[cfg(unix)]
fn inode(path: &Path) -> Option<Place> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path).ok().filter(|found| found.is_file())?;
    Some(Place::Inode(found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn inode(_path: &Path) -> Option<Place> {
    None
}

/// Whether a file begins as results do, so that they may be written anew. A killed program leaves a first line in part.
fn has_results(path: &Path) -> io::Result<bool> {
    #[derive(serde::Deserialize)]
    struct Found {
        #[serde(rename = "index")]
        _index: u64,
        #[serde(rename = "status")]
        _status: String,
    }
    let mut line = Vec::new();
    BufReader::new(File::open(path)?).read_until(b'\n', &mut line)?;
    Ok(match line.ends_with(b"\n") {
        true => serde_json::from_slice::<Found>(&line).is_ok(),
        false => line.starts_with(b"{\"id\":") || b"{\"id\":".starts_with(&line),
    })
}

fn is_whole(summary: &Summary) -> bool {
    let progress = &summary.progress;
    progress.jobs == Some(progress.done + progress.failed)
}

/// The file of the results.
struct Results {
    out: Box<dyn Write + Send>,
    /// `None` for standard output.
    path: Option<PathBuf>,
    metadata: HashMap<String, RawJson>,
}

impl Results {
    fn create(path: &Path, given: &[GivenPrompt]) -> Result<Self, Failure> {
        let out: Box<dyn Write + Send> = match path.as_os_str() == "-" {
            true => Box::new(io::stdout()),
            false => {
                let file = File::create(path).with_context(|| format!("cannot create {}", path.display()));
                Box::new(BufWriter::new(
                    file.map_err(|error| Failure::new(Status::Usage, error))?,
                ))
            }
        };
        let metadata = given
            .iter()
            .filter_map(|given| Some((given.job.id.clone(), given.metadata.clone()?)));
        Ok(Self {
            out,
            path: (path.as_os_str() != "-").then(|| path.to_owned()),
            metadata: metadata.collect(),
        })
    }

    /// Writes what comes.
    fn write_all(mut self, mut results: mpsc::Receiver<JobResult>) -> Result<(), Failure> {
        while let Some(result) = results.blocking_recv() {
            self.write(result)?;
        }
        Ok(())
    }

    /// Writes a line, at once.
    fn write(&mut self, result: JobResult) -> Result<(), Failure> {
        let mut line = ResultLine {
            metadata: self.metadata.remove(&result.id),
            id: result.id,
            index: result.index,
            status: if result.result.is_ok() { "done" } else { "failed" },
            tries: result.tries,
            cost_usd: result.spent.usd.dollars(),
            tokens: result.spent.tokens,
            session_id: result.session_id.map(String::from),
            text: None,
            output: None,
            recovered: false,
            error: None,
        };
        match result.result {
            Ok(done) => {
                (line.text, line.output) = (Some(done.text), done.output);
                line.recovered = done.is_recovered;
            }
            Err(failure) => {
                line.error = Some(json!({
                    "message": failure.message,
                    "cause": failure.cause,
                    "transient": failure.is_transient,
                    "tools_may_have_run": failure.tools_may_have_run,
                }));
            }
        }
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        let written = self.out.write_all(&bytes).and_then(|()| self.out.flush());
        match &self.path {
            // A reader that went away has a status of its own.
            None => Ok(written?),
            Some(path) => Ok(written.with_context(|| {
                format!("cannot write {}; what is done is in the journal", path.display())
            })?),
        }
    }
}

/// A line of the results.
#[derive(Serialize)]
struct ResultLine {
    id: String,
    index: u64,
    status: &'static str,
    tries: u32,
    cost_usd: f64,
    tokens: u64,
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The structured output, as the model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<RawJson>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    recovered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    /// As it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson>,
}

/// How far it is, on standard error.
struct BatchBar {
    bar: ProgressBar,
    monitor: Monitor,
    is_quiet: bool,
}

impl BatchBar {
    fn new(monitor: Monitor, is_quiet: bool) -> Self {
        let bar = match io::stderr().is_terminal() && !is_quiet {
            true => ProgressBar::new(monitor.progress().jobs.unwrap_or_default()),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            monitor,
            is_quiet,
        }
    }

    /// Draws the bar again now and then.
    async fn tick(&self) {
        let progress = self.monitor.progress();
        self.bar.set_position(progress.done + progress.failed);
        let mut text = format!("{} run", progress.running);
        if progress.failed > 0 {
            text += &format!(", {} failed", progress.failed);
        }
        if progress.retries > 0 {
            text += &format!(", {} retries", progress.retries);
        }
        text += &format!(", {}", progress.spent.usd);
        if let Some(left) = progress.estimate() {
            text += &format!(", about {} left", HumanDuration(left));
        }
        self.bar.set_message(text);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    /// Writes a line above the bar.
    fn note(&self, text: &str) {
        if !self.is_quiet {
            let text = crate::plain::plain(text);
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
