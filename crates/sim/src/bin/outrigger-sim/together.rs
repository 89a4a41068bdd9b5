//! The part of one process in a run of several that play one script.

use std::io::Write as _;
use std::process::ExitCode;

use outrigger_sim::peer::agent::Builder;
use outrigger_sim::peer::{Exit, Report};
use outrigger_sim::script::{Flaw, Progress, Script};

use super::own::Own;

/// How far the script is, and whether other processes play it, too.
#[derive(Debug, Default)]
pub(crate) struct Together {
    progress: Progress,
    alone: bool,
    /// The file with the frames of this process.
    frames: Option<std::path::PathBuf>,
}

impl Together {
    /// What the run says in the environment; alone without one.
    #[cfg(feature = "players")]
    pub(crate) fn from_env() -> Self {
        use outrigger_sim::players::{FRAMES, PROGRESS};
        let path = |name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(std::path::PathBuf::from)
        };
        match path(PROGRESS) {
            Some(progress) => Self {
                progress: Progress::in_file(progress),
                alone: false,
                frames: path(FRAMES),
            },
            None => Self::alone(),
        }
    }

    /// Without the feature `players` there are no runs of several processes.
    #[cfg(not(feature = "players"))]
    pub(crate) fn from_env() -> Self {
        Self::alone()
    }

    fn alone() -> Self {
        Self {
            alone: true,
            ..Self::default()
        }
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The run has put the files of the script in place, where tools really run: what a process has removed stays removed.
    pub(crate) fn leave_files(&self, script: &mut Script) {
        if !self.alone && script.real_tools != Some(false) {
            script.files.clear();
        }
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Lets the run know each flaw at once, since the process may be killed.
    pub(crate) fn tell_flaws(&self, agent: Builder) -> Builder {
        if self.alone {
            return agent;
        }
        let progress = self.progress.clone();
        agent.on_flaw(move |flaw: &Flaw| {
            if let Err(error) = progress.note(flaw) {
                let _ = writeln!(std::io::stderr(), "cannot note that {flaw}: {error}");
            }
        })
    }

    /// Adds what is missing in the end, unless others go on.
    pub(crate) fn judge(&self, script: &Script, own: &Own, report: &mut Report) {
        if !self.alone {
            return;
        }
        report.flaws = script.judge(&self.progress, std::slice::from_ref(report));
        if !script.rules_left(&self.progress).is_empty() {
            let name = own.script_name();
            let _ = writeln!(
                std::io::stderr(),
                "outrigger-sim: rules of the script are left over. This process played the script alone, from its beginning. If the \
                 program starts several processes that share the script, run it with `outrigger-sim play --sim {name} -- PROGRAM`; \
                 if rules may be left over, set `expect: {{every_rule_used: false}}` in the script."
            );
        }
    }

    /// Ends stdout, once all of it is where the program reads it.
    pub(crate) fn hand_over_stdout(&self) {
        #[cfg(feature = "players")]
        if let Some(file) = &self.frames
            && let Err(error) = outrigger_sim::players::hand_over_stdout(file)
        {
            let _ = writeln!(std::io::stderr(), "cannot end stdout: {error}");
        }
    }

    /// Lets the run know how this process ended.
    pub(crate) fn note_end(&self, exit: Exit) {
        #[cfg(feature = "players")]
        if let Some(file) = &self.frames
            && let Err(error) = outrigger_sim::players::note_end(file, exit)
        {
            let _ = writeln!(std::io::stderr(), "cannot write {}: {error}", file.display());
        }
        #[cfg(not(feature = "players"))]
        let _ = (&self.frames, exit);
    }
}

/// Answers what is asked of a run, and not of the simulated CLI.
pub(crate) fn answer() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    match first.to_str()? {
        #[cfg(feature = "players")]
        "play" => Some(super::programs::play(arguments).unwrap_or_else(|code| code)),
        #[cfg(feature = "players")]
        "conform" => Some(super::programs::conform(arguments).unwrap_or_else(|code| code)),
        #[cfg(feature = "players")]
        "stage" => Some(super::staging::stage(arguments).unwrap_or_else(|code| code)),
        #[cfg(feature = "players")]
        "--in-run" => {
            let directory = arguments.next()?;
            let rest: Vec<_> = arguments.collect();
            let own = std::env::current_exe();
            let failed =
                own.and_then(|own| outrigger_sim::players::become_player(&own, directory.as_ref(), &rest));
            let Err(error) = failed;
            let _ = writeln!(std::io::stderr(), "outrigger-sim: {error}");
            Some(ExitCode::from(super::NO_SCRIPT))
        }
        #[cfg(feature = "players")]
        "--record-frames" => {
            let recorder = outrigger_sim::players::RecorderNotice::read(arguments)?;
            let recorded = outrigger_sim::players::record(&recorder);
            Some(ExitCode::from(u8::from(recorded.is_err())))
        }
        #[cfg(not(feature = "players"))]
        "play" | "conform" | "stage" => {
            let what = "outrigger-sim: this build has no `play`, `conform` and `stage`: build it with the cargo feature `players`";
            let _ = writeln!(std::io::stderr(), "{what}");
            Some(ExitCode::from(2))
        }
        _ => None,
    }
}
