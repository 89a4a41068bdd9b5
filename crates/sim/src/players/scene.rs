//! A CLI in place, which plays a script for whoever starts it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use super::recorded::{self, PlayedProcess};
use super::runner::{PlayError, place};
use super::{PROGRESS, Player, PlayerStage};
use crate::api::MessagesApi;
use crate::claude::{DUMMY_KEY, LEADS_ELSEWHERE, Sandbox, executable};
use crate::flaw::Flaw;
use crate::peer::Report;
use crate::script::{self, Progress, Script, judge};

/// The variable with the directory in which gates are opened.
const GATES: &str = "OUTRIGGER_SIM_GATES";

/// How long to wait between two looks whether a process has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// What a CLI is put in place with.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Setting {
    /// The script; without one, the prompts say what the model says.
    pub script: Option<PathBuf>,
    /// An existing directory in which the gates of the script are opened; a temporary one unless given.
    pub gates: Option<PathBuf>,
    /// An existing directory that is the home of the CLI, with `.claude` in it; a temporary one unless given.
    pub home: Option<PathBuf>,
    /// An existing directory in which the CLI works; a temporary one unless given. The files of the script are put there.
    pub project: Option<PathBuf>,
    /// A working directory in place of which the CLI gets the project.
    pub moved_from: Option<PathBuf>,
}

/// A CLI in place, simulated or real, until this is [ended](Self::end).
///
/// Whoever starts [`claude`](Self::claude), any number of times, starts the player. All of these processes play one script together.
#[derive(Debug)]
pub struct Scene {
    sandbox: Sandbox,
    setting: Setting,
    run: PathBuf,
    gates: PathBuf,
    claude: PathBuf,
    env: BTreeMap<String, String>,
    stage: PlayerStage,
    loaded: Loaded,
}

/// A script, loaded by the player that plays it.
#[derive(Debug)]
enum Loaded {
    Simulated(Option<Box<Script>>, Progress),
    Real(Option<Box<Script>>, MessagesApi),
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The path of a program that somebody named. A program that is none would be noticed by its client alone, in the middle of a run.
fn runnable(path: PathBuf) -> Result<PathBuf, PlayError> {
    let is_program = || {
        let there = fs::metadata(&path)?;
        if !there.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            if there.permissions().mode() & 0o111 == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "the file is not executable",
                ));
            }
        }
        Ok(())
    };
    match is_program() {
        Ok(()) => Ok(path),
        Err(cause) => Err(PlayError::Cli { path, cause }),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Scene {
    /// Puts the player in place. `own` is the path of `outrigger-sim`, which becomes the player.
    ///
    /// # Cancel safety
    /// Dropping the future removes what was put in place. A fetch of the CLI that has begun goes on in the background.
    ///
    /// # Errors
    /// When the script cannot be played, or the player cannot be had.
    pub async fn set(own: &Path, player: &Player, setting: Setting) -> Result<Self, PlayError> {
        let script = setting.script.as_ref().map(Script::from_file).transpose()?;
        let sandbox = Sandbox::new().map_err(place("make a place for the CLI"))?;
        let [bin, run, gates] = ["bin", "run", "gates"].map(|name| sandbox.path().join(name));
        for directory in [&bin, &run, &gates] {
            fs::create_dir_all(directory).map_err(place("make a place for the CLI"))?;
        }
        let gates = setting.gates.as_deref().map_or(gates, absolute);
        let project = setting.project.clone().unwrap_or_else(|| sandbox.project());
        let home = setting.home.clone().unwrap_or_else(|| sandbox.home());
        let config = home.join(".claude");
        let mut stage = PlayerStage {
            cli: own.to_owned(),
            set: BTreeMap::new(),
            defaults: [
                ("HOME", text(&home)),
                ("CLAUDE_CONFIG_DIR", text(&config)),
                ("ANTHROPIC_API_KEY", DUMMY_KEY.to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
            unset: LEADS_ELSEWHERE.iter().map(|name| (*name).to_owned()).collect(),
            users: users(),
            moved: setting.moved_from.clone().map(|from| (from, project.clone())),
        };
        let mut env = stage.defaults.clone();
        env.insert(GATES.to_owned(), text(&gates));
        let loaded = match player {
            Player::Simulated => {
                let progress = run.join("progress");
                if let Some(script) = &script {
                    script.check(script::ScriptPlayer::Simulator)?;
                }
                let path = setting.script.as_deref().map(absolute).unwrap_or_default();
                // Empty is none: a script in the environment of the user is not for this one.
                stage.set("OUTRIGGER_SIM_SCRIPT", text(&path));
                stage.set(PROGRESS, text(&progress));
                stage.set(GATES, text(&gates));
                stage.set("CLAUDE_CODE_TMPDIR", text(&sandbox.temp()));
                if script
                    .as_ref()
                    .is_none_or(|script| script.real_tools != Some(false))
                {
                    stage.set("OUTRIGGER_SIM_REAL_TOOLS", "1");
                    write_files(script.as_ref(), &project)?;
                }
                // The run has its own.
                stage.unset.push("OUTRIGGER_SIM_REPORT".to_owned());
                Loaded::Simulated(script.map(Box::new), Progress::in_file(progress))
            }
            Player::Real { cli } => {
                if let Some(script) = &script {
                    script.check(script::ScriptPlayer::RealCli)?;
                }
                stage.cli = match cli {
                    Some(cli) => runnable(absolute(cli))?,
                    None => executable().await?,
                };
                write_files(script.as_ref(), &project)?;
                let frames = run.clone();
                let api = MessagesApi::builder()
                    .home(text(&home))
                    .gate_files(&gates)
                    .frames(move |session| frames_of(&frames, session));
                let api = match &script {
                    Some(script) => api.script_of_one_run(script.clone())?,
                    None => api,
                };
                let api = api.start().await?;
                stage.set.extend(sandbox.env(&api.base_url()));
                for name in ["PATH", "HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "ANTHROPIC_API_KEY"] {
                    stage.set.remove(name);
                }
                stage.set("DISABLE_ERROR_REPORTING", "1");
                // A proxy could not reach this machine's loopback.
                stage.set("NO_PROXY", "127.0.0.1");
                let own = |(name, _): &(&String, &String)| !name.starts_with("OUTRIGGER_SIM_");
                let set = stage.set.iter().filter(own);
                env.extend(set.map(|(name, value)| (name.clone(), value.clone())));
                Loaded::Real(script.map(Box::new), api)
            }
        };
        let claude = stage.write(own, &run, &bin).map_err(place(
            "put the player in the place of `claude`, which takes a Unix shell",
        ))?;
        Ok(Self {
            sandbox,
            setting: Setting {
                home: Some(home),
                project: Some(project),
                ..setting
            },
            run,
            gates,
            claude,
            env,
            stage,
            loaded,
        })
    }

    /// What to start in the place of the CLI.
    pub fn claude(&self) -> &Path {
        &self.claude
    }

    /// What a program gets in its environment. The player has what it needs also without it.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// The variables that a program must not have.
    pub fn unset(&self) -> impl Iterator<Item = &str> {
        let unset = self.stage.unset.iter().map(String::as_str);
        unset.chain(["ANTHROPIC_BASE_URL"])
    }

    /// Where the gates of the script are opened, see [`GateFiles`](script::GateFiles).
    pub fn gates(&self) -> &Path {
        &self.gates
    }

    /// The home of the CLI.
    pub fn home(&self) -> PathBuf {
        let home = self.setting.home.clone();
        home.unwrap_or_else(|| self.sandbox.home())
    }

    /// The directory in which the CLI works.
    pub fn project(&self) -> PathBuf {
        let project = self.setting.project.clone();
        project.unwrap_or_else(|| self.sandbox.project())
    }

    /// The temporary directory of this scene, which is another one each time.
    pub fn root(&self) -> &Path {
        self.sandbox.path()
    }

    pub(super) fn run(&self) -> &Path {
        &self.run
    }

    /// Waits for the processes that have not ended yet, for at most this long.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// When the recorded frames cannot be read.
    pub async fn wait(&self, patience: Duration) -> io::Result<()> {
        let until = tokio::time::Instant::now() + patience;
        while tokio::time::Instant::now() < until {
            let files = recorded::files(&self.run)?;
            if files.iter().all(|file| recorded::is_complete(file)) {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// The processes up to now, in the order in which they were started.
    ///
    /// # Errors
    /// When the recorded frames cannot be read.
    pub fn processes(&self) -> io::Result<Vec<PlayedProcess>> {
        let files = recorded::files(&self.run)?;
        let read = files.iter().map(|file| recorded::read(file));
        let read = read.collect::<io::Result<Vec<_>>>()?;
        Ok(read.into_iter().flatten().collect())
    }

    /// What the script expected in vain, or did not expect.
    pub fn flaws(&self, processes: &[PlayedProcess]) -> Vec<Flaw> {
        let reports: Vec<Report> = processes.iter().map(|process| process.report.clone()).collect();
        let mut flaws = match &self.loaded {
            Loaded::Simulated(None, progress) => {
                let lost = |error| vec![Script::new().lost(&error)];
                progress.flaws().unwrap_or_else(lost)
            }
            Loaded::Simulated(Some(script), progress) => script.judge(progress, &reports),
            Loaded::Real(script, api) => {
                let mut flaws = api.verdict().err().map(|flaws| flaws.0).unwrap_or_default();
                flaws.extend(script.as_ref().and_then(|script| {
                    judge::numbers(script, reports.iter().map(|report| report.lines.as_slice()))
                }));
                flaws
            }
        };
        if let Some(script) = &self.setting.script {
            // The processes know the script by its absolute path.
            let (known, named) = (absolute(script), script.to_string_lossy());
            for text in flaws
                .iter_mut()
                .flat_map(|flaw| [&mut flaw.place, &mut flaw.what])
            {
                *text = text.replace(&*known.to_string_lossy(), &named);
            }
        }
        flaws
    }

    /// What is wrong with the ends of processes: one still runs, or was killed. How a process of the real CLI ended is not known.
    pub fn ends(&self, processes: &[PlayedProcess]) -> Vec<Flaw> {
        let simulated = matches!(self.loaded, Loaded::Simulated(..));
        let mut flaws = Vec::new();
        for process in processes {
            let what = match process.report.exit {
                _ if process.running => "was still running at the end",
                None if simulated => "was killed",
                _ => continue,
            };
            flaws.push(Flaw::new("", format!("process {} {what}", process.id)));
        }
        flaws
    }

    /// Ends the processes that still run, and the player with them. The temporary directory is removed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves processes that still run to themselves.
    ///
    /// # Errors
    /// When the recorded frames cannot be read.
    pub async fn end(self) -> io::Result<()> {
        if self.signal(recorded::terminate)? {
            self.wait(GRACE).await?;
            if self.signal(recorded::kill)? {
                self.wait(GRACE).await?;
            }
        }
        if let Loaded::Real(_, api) = self.loaded {
            api.shutdown().await;
        }
        Ok(())
    }

    /// Does this to the processes that still run; whether there are any.
    fn signal(&self, signal: fn(i32)) -> io::Result<bool> {
        let processes = self.processes()?;
        let running: Vec<_> = processes.iter().filter(|process| process.running).collect();
        running.iter().for_each(|process| signal(process.id));
        Ok(!running.is_empty())
    }
}

/// The home and the configuration of the user, which are not those of the player.
fn users() -> BTreeMap<String, String> {
    let names = ["HOME", "CLAUDE_CONFIG_DIR"].into_iter();
    let set = names.filter_map(|name| Some((name.to_owned(), env::var(name).ok()?)));
    set.collect()
}

fn write_files(script: Option<&Script>, project: &Path) -> Result<(), PlayError> {
    let written = script.map_or(Ok(()), |script| script.write_files(project));
    written.map_err(place("write the files of the script"))
}

/// The frames of the process that has this session, up to now; those of the last process if none has.
fn frames_of(run: &Path, session: &str) -> Vec<crate::peer::Line> {
    let files = recorded::files(run).unwrap_or_default();
    let read = files.iter().rev().filter_map(|file| recorded::read(file).ok()?);
    let reports: Vec<Report> = read.map(|process| process.report).collect();
    let of_it = |report: &&Report| {
        let mut lines = report.lines.iter().filter(|line| !line.from_client);
        lines.any(|line| line.json["session_id"] == session)
    };
    let report = reports.iter().find(of_it).or(reports.first());
    report.map(|report| report.lines.clone()).unwrap_or_default()
}
