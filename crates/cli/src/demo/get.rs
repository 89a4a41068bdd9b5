//! Where the demo's CLI comes from.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use outrigger::discover::{Candidate, Doctor, VersionCheck};
use outrigger_sim::claude::{Fetch, FetchError, FetchFailure, Progress};

use super::demo_screen::DemoScreen;

/// The agent of the demo.
pub(crate) enum DemoAgent {
    /// A program, and what it is.
    Real { path: PathBuf, what: String },
    /// None could be had, or none was wanted.
    Simulated,
}

/// The CLI that was named, or the pinned one: that of the cache, that which is installed, or else fetched. None where it cannot be had.
pub(super) async fn cli(
    screen: &DemoScreen,
    named: Option<PathBuf>,
    simulated: bool,
) -> anyhow::Result<DemoAgent> {
    if simulated {
        return Ok(DemoAgent::Simulated);
    }
    if let Some(path) = named {
        return self::named(path).await;
    }
    let fetch = match Fetch::new() {
        Ok(fetch) => fetch,
        Err(error) => return instead(screen, error),
    };
    let what = format!("Claude Code {}", outrigger_sim::claude::pin().version);
    if let Some(path) = fetch.cached() {
        screen.fact("cache", &format!("{what} is in {}", path.display()));
        return Ok(DemoAgent::Real { path, what });
    }
    if let Some(path) = installed(outrigger_sim::claude::pin().version.as_str()).await {
        screen.fact("found", &format!("{what} is installed: {}", path.display()));
        return Ok(DemoAgent::Real { path, what });
    }
    screen.fact("fetches", &fetch.notice());
    let stop = StopOnDrop::default();
    let fetch = fetch.stop(Arc::clone(&stop.0));
    let fetched = {
        let mut shown = DownloadProgress::new(screen);
        tokio::task::spawn_blocking(move || {
            let fetched = fetch.run(|progress| shown.progress(progress));
            shown.finish();
            fetched
        })
        .await?
    };
    match fetched {
        Ok(path) => {
            screen.fact("fetched", "its checksum is the pinned one");
            Ok(DemoAgent::Real { path, what })
        }
        Err(error) => instead(screen, error),
    }
}

/// Ends the fetch, which runs on a thread of its own, when nobody waits for it any more.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The CLI of this machine that is of this version, if there is one. Another one would be shown as what it was not tested as.
async fn installed(version: &str) -> Option<PathBuf> {
    let report = Doctor::default().examine().await;
    let is_it = |candidate: &&Candidate| {
        candidate.unusable.is_none()
            && matches!(&candidate.version, VersionCheck::Version(found) if found == version)
    };
    report
        .candidates
        .iter()
        .find(is_it)
        .map(|candidate| candidate.path.clone())
}

/// The program at that path, if it is one that can be run.
async fn named(path: PathBuf) -> anyhow::Result<DemoAgent> {
    // A bare name is meant as a file here, not as something to be searched for.
    let path = std::path::absolute(&path)?;
    let report = Doctor::default().cli_path(&path).examine().await;
    let Some(candidate) = report.candidates.iter().find(|candidate| candidate.path == path) else {
        anyhow::bail!("{} was not found", path.display());
    };
    if let Some(why) = &candidate.unusable {
        anyhow::bail!("cannot run {}: {why}; {}", path.display(), why.advice());
    }
    let what = match &candidate.version {
        VersionCheck::Version(version) => format!("Claude Code {version}"),
        VersionCheck::NotRun => "Claude Code, a script".to_owned(),
        VersionCheck::Odd(said) => anyhow::bail!("{} says it is {said:?}, not Claude Code", path.display()),
        VersionCheck::Failed(error) => anyhow::bail!("{} does not run: {error}", path.display()),
        _ => anyhow::bail!("{} did not tell its version in time", path.display()),
    };
    let what = format!("{what} ({})", path.display());
    Ok(DemoAgent::Real { path, what })
}

/// Does without the CLI where it is not to be had here; a download that is not what it should be is another matter.
fn instead(screen: &DemoScreen, error: FetchError) -> anyhow::Result<DemoAgent> {
    let known = matches!(
        *error.failure,
        FetchFailure::UnsupportedPlatform
            | FetchFailure::NoCacheDirectory
            | FetchFailure::NpmMissing { .. }
            | FetchFailure::NpmFailed { .. }
            | FetchFailure::TimedOut(_)
    );
    if !known {
        return Err(error.into());
    }
    screen.fact(
        "instead",
        &format!(
            "{error}: {}\nSo this goes on with a SIMULATED agent. To see the real one, mend that, or name it with --cli.",
            error.failure
        ),
    );
    Ok(DemoAgent::Simulated)
}

/// How far the download is: a bar on a terminal, else a line every few seconds in which something came.
struct DownloadProgress {
    screen: DemoScreen,
    bar: Option<ProgressBar>,
    phase: &'static str,
    told: Instant,
    /// How many bytes had come by then.
    bytes: u64,
}

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(5);

impl DownloadProgress {
    fn new(screen: &DemoScreen) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style = "  {msg:10}[{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}";
            bar.set_style(
                ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        });
        Self {
            screen: screen.clone(),
            bar,
            phase: "",
            told: Instant::now(),
            bytes: 0,
        }
    }

    fn progress(&mut self, progress: Progress) {
        let (phase, bytes, total) = match progress {
            Progress::Waiting => ("waits", 0, None),
            Progress::Downloading { bytes, total } => ("downloads", bytes, total),
            Progress::Verifying => ("verifies", 0, None),
            Progress::Unpacking { bytes, total } => ("unpacks", bytes, Some(total)),
            _ => return,
        };
        if let Some(bar) = &self.bar {
            bar.set_message(phase);
            bar.set_length(total.unwrap_or(bytes));
            bar.set_position(bytes);
        } else if let Some(text) = self.line(phase, bytes, total) {
            self.screen.fact(phase, &text);
        }
    }

    /// What is said where there is no bar: once for each phase, then as long as something comes.
    fn line(&mut self, phase: &'static str, bytes: u64, total: Option<u64>) -> Option<String> {
        let is_new = std::mem::replace(&mut self.phase, phase) != phase;
        if !is_new && (bytes <= self.bytes || self.told.elapsed() < EVERY) {
            return None;
        }
        self.told = Instant::now();
        self.bytes = bytes;
        let of = total.map(|total| format!("{} of {} MB", bytes / 1_000_000, total / 1_000_000));
        Some(match phase {
            "waits" => "for another process that is fetching the same".to_owned(),
            "verifies" => "the checksum".to_owned(),
            _ => of.unwrap_or_else(|| format!("{} MB", bytes / 1_000_000)),
        })
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Whether a path is below another, links resolved.
pub(super) fn is_below(path: &Path, directory: &Path) -> bool {
    directory
        .canonicalize()
        .is_ok_and(|directory| path.starts_with(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_comes_one_line_is_enough() {
        let mut shown = DownloadProgress::new(&DemoScreen::new());
        let mut later = |phase, bytes| {
            shown.told = Instant::now()
                .checked_sub(EVERY)
                .expect("the machine has run for longer");
            shown.line(phase, bytes, Some(175_000_000))
        };
        assert_eq!(later("downloads", 0).as_deref(), Some("0 of 175 MB"));
        for _ in 0..3 {
            assert_eq!(later("downloads", 0), None);
        }
        assert_eq!(later("downloads", 9_000_000).as_deref(), Some("9 of 175 MB"));
        assert_eq!(later("downloads", 9_000_000), None);
        assert_eq!(later("verifies", 0).as_deref(), Some("the checksum"));
        assert_eq!(shown.line("unpacks", 0, None).as_deref(), Some("0 MB"));
        assert_eq!(shown.line("unpacks", 9_000_000, None), None, "that is too soon");
    }
}
