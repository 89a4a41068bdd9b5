//! A launch: the program, its arguments, its environment and the first request.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::{Initialize, InitializeReply};
use outrigger_protocol::shared::JsonObject;

use super::flags::is_ours;
use super::handover::{self, Filling, Handed, Lent, as_user};
use super::secret::{Secrets, sounds_secret};
use super::{Auth, CUSTOM_HEADERS, Isolation, Options, OptionsError, RunAs, Secret, SettingsInput};
use crate::discover::{self, is_module};
use crate::env::{self, Surroundings, Variables};
use crate::error::ModuleProblem;
use crate::private_dir::private_directory_in;
use crate::regular_file;

/// The abilities of the program that the command line has to announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Host {
    /// Whether the program answers permission requests: `--permission-prompt-tool=stdio`.
    pub answers_permissions: bool,
    /// Whether the CLI runs on another machine, or with another file system: then nothing is searched for or checked on this one.
    pub remote: bool,
    /// Whether the process is a spare that waits to be claimed: `--await-claim`. It runs in a directory of its own, and `cwd` is
    /// only the base of relative paths in the options.
    pub awaits_claim: bool,
}

impl Host {
    /// Sets `remote`.
    pub fn remote(mut self) -> Self {
        self.remote = true;
        self
    }

    /// Sets `awaits_claim`.
    pub fn awaiting_claim(mut self) -> Self {
        self.awaits_claim = true;
        self
    }

    /// A program that answers permission requests.
    pub fn answering_permissions() -> Self {
        Self {
            answers_permissions: true,
            ..Self::default()
        }
    }
}

/// All that is needed to start the CLI. Made by [`Options::launch`].
///
/// `Debug` shows no value of the environment, no long or secret argument and nothing of `initialize`.
#[non_exhaustive]
pub struct Launch {
    /// The program; an absolute path.
    pub program: PathBuf,
    /// The arguments of the process.
    pub args: Vec<OsString>,
    /// The complete environment of the process, which must inherit nothing else.
    pub env: Variables,
    /// The working directory of the process, which exists.
    pub cwd: PathBuf,
    /// The user to run it as; `None` for this program's.
    pub run_as: Option<RunAs>,
    /// The first request to send. The session adds its in-process servers.
    pub initialize: Initialize,
    /// Whether the CLI waits for that request: then it must be the first line, and no prompt may be sent before its reply.
    pub await_initialize: bool,
    /// What the reply has to confirm; see [`Launch::confirm`].
    pub confirmations: Vec<Confirmation>,
    /// The account that was chosen, to compare with the CLI's report.
    pub auth: Auth,
    /// Whether every prompt is to be marked `client_composed`.
    pub verbatim_prompts: bool,
    /// The longest line to read, in bytes, if one was set.
    pub max_line_bytes: Option<usize>,
    /// The secrets of this launch, to redact them in the CLI's output.
    pub secrets: Vec<Secret>,
    /// The session's private directory and files. Drop it when the process has ended, not before.
    pub guard: LaunchFiles,
}

/// The private directory of a session that was resumed from a store.
pub(crate) trait Resumed: fmt::Debug + Send + Sync + 'static {
    /// Set to true when the store has everything.
    fn settled(&self) -> &Arc<AtomicBool>;

    /// The part that the CLI's user owns.
    fn owned_by_user(&self) -> &[PathBuf];
}

/// Private directories and files of a session; removed when dropped.
#[derive(Debug, Default)]
pub struct LaunchFiles {
    home: Option<Handed>,
    parking: Option<Lent>,
    files: Vec<tempfile::TempPath>,
    /// The private directory of a session that was resumed from a store.
    resumed: Option<Box<dyn Resumed>>,
}

impl LaunchFiles {
    /// The temporary home of a hermetic session.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_ref().map(Handed::path)
    }

    /// Removes everything now, and reports a failure. Dropping does the same and ignores failures.
    ///
    /// # Errors
    ///
    /// The first failure; the rest is removed all the same.
    pub fn close(self) -> io::Result<()> {
        drop(self.resumed);
        let files = self.files.into_iter().map(tempfile::TempPath::close);
        let parking = self.parking.into_iter().map(Lent::close);
        let home = self.home.into_iter().map(Handed::close);
        files.chain(parking).chain(home).fold(Ok(()), io::Result::and)
    }

    /// The paths that the guardian removes if this program dies, with the rights of the CLI's user.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let resumed = self.resumed.as_ref().map(|place| place.owned_by_user());
        let given = [self.home.as_ref().map(Handed::given), resumed];
        let given = given.into_iter().flatten().flatten().map(PathBuf::as_path);
        let all = given.chain(self.parking()).chain(self.files());
        all.filter_map(|path| std::path::absolute(path).ok()).collect()
    }

    pub(crate) fn keep(&mut self, place: impl Resumed) {
        self.resumed = Some(Box::new(place));
    }

    /// Set to true when the store has all that is in the session's private directory.
    pub(crate) fn settled(&self) -> Arc<AtomicBool> {
        let place = self.resumed.as_ref().map(|place| place.settled());
        place.cloned().unwrap_or_default()
    }

    /// The directory of a spare.
    pub fn parking(&self) -> Option<&Path> {
        self.parking.as_ref().and_then(Lent::path)
    }

    /// The private files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.as_ref())
    }
}

/// A launch whose temporary home is being filled, and still belongs to this program.
pub(crate) struct Draft {
    pub(crate) launch: Launch,
    home: Option<Filling>,
}

impl Draft {
    /// Changes the owner of the filled home. Nothing may be written there afterwards.
    pub(crate) fn hand_over(mut self) -> Result<Launch, OptionsError> {
        if let Some(home) = self.home {
            let path = home.path().to_owned();
            let handed = home.hand_over();
            self.launch.guard.home = Some(handed.map_err(|error| private(HERMETIC, &path, &error))?);
        }
        Ok(self.launch)
    }
}

/// More than this is no settings file.
const MOST_SETTINGS: u64 = 16 << 20;

/// Keeps the CLI from running the prompts in `.claude/scheduled_tasks.json`, a file that it reads whatever the setting sources are.
const NO_SCHEDULES: &str = "CLAUDE_CODE_DISABLE_CRON";

/// The purpose of a home, for errors.
const HERMETIC: &str = "a hermetic session";

/// A part of `initialize` that the reply has to confirm. A CLI that does not know the field ignores it, and the session would run
/// without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Confirmation {
    /// [`Options::mcp_servers`](super::Options::mcp_servers).
    McpServers,
    /// [`Options::plugins`](super::Options::plugins).
    Plugins,
    /// [`Options::settings`](super::Options::settings).
    Settings,
    /// [`Options::managed_settings`](super::Options::managed_settings).
    ManagedSettings,
    /// [`Options::disallowed_tools`](super::Options::disallowed_tools).
    DisallowedTools,
    /// [`Options::code_running_mcp_tools`](super::Options::code_running_mcp_tools).
    CodeRunningMcpTools,
    /// [`Options::hook`](super::Options::hook). An old CLI does not report it and has accepted the hooks; one that reports `false` has not.
    Hooks,
    /// A hook with [`OnFailure::Block`](crate::hooks::OnFailure::Block).
    HookOnFailure,
}

impl Confirmation {
    /// Whether the CLI reads the field only while it starts, and so has to wait for `initialize`.
    pub(super) fn is_taken_at_launch(self) -> bool {
        !matches!(
            self,
            Self::CodeRunningMcpTools | Self::Hooks | Self::HookOnFailure
        )
    }

    /// The field of the reply that confirms it.
    pub fn field(self) -> &'static str {
        match self {
            Self::McpServers => "mcp_servers_applied",
            Self::Plugins => "plugins_applied",
            Self::Settings => "settings_applied",
            Self::ManagedSettings => "managed_settings_applied",
            Self::DisallowedTools => "disallowed_tools_applied",
            Self::CodeRunningMcpTools => "code_running_mcp_tools_applied",
            Self::Hooks => "hooks_applied",
            Self::HookOnFailure => "hook_on_failure_supported",
        }
    }

    /// The option.
    pub fn option(self) -> &'static str {
        match self {
            Self::McpServers => "mcp_servers",
            Self::Plugins => "plugins",
            Self::Settings => "settings",
            Self::ManagedSettings => "managed_settings",
            Self::DisallowedTools => "disallowed_tools",
            Self::CodeRunningMcpTools => "code_running_mcp_tools",
            Self::Hooks | Self::HookOnFailure => "hook",
        }
    }
}

/// The CLI did not confirm an option that the session depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unconfirmed {
    /// What was not confirmed.
    pub what: Confirmation,
    /// Whether the reply lacks the field, because the CLI is too old.
    pub ignored: bool,
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (option, field) = (self.what.option(), self.what.field());
        if self.ignored {
            write!(
                f,
                "the CLI ignored `{option}`: its reply to initialize has no {field}; update Claude Code"
            )
        } else {
            write!(
                f,
                "the CLI did not accept `{option}`, according to {field} in its reply to initialize; look at its stderr"
            )
        }
    }
}

impl std::error::Error for Unconfirmed {}

impl ModuleProblem for Unconfirmed {
    fn names_options(&self) -> bool {
        true
    }
}

impl Options {
    /// Makes a launch of the options, after [`check_in`](Self::check_in): finds the CLI, creates the session's private directory
    /// and files, computes the environment. It starts nothing. Dropping the [`LaunchFiles`] removes the files.
    ///
    /// # Errors
    ///
    /// As [`check_in`](Self::check_in); also for a missing CLI, working directory, home or file, and for private directories that
    /// cannot be created. For a [remote](Host::remote) CLI, the program, directory and files are not checked.
    pub fn launch(&self, surroundings: &Surroundings, host: Host) -> Result<Launch, OptionsError> {
        self.draft(surroundings, host)?.hand_over()
    }

    /// As [`launch`](Self::launch), with a temporary home that can still be filled.
    pub(crate) fn draft(&self, surroundings: &Surroundings, host: Host) -> Result<Draft, OptionsError> {
        self.rules(surroundings, host)?;
        let cwd = match &self.cwd {
            Some(cwd) if host.remote => cwd.clone(),
            _ => self.working_directory(surroundings)?,
        };
        let plan = self.plan(host, &cwd)?;
        let program = if host.remote {
            self.cli_path.clone().unwrap_or_else(|| PathBuf::from("claude"))
        } else {
            self.check_files(&cwd)?;
            discover::find(self.cli_path.as_deref(), surroundings)?.path
        };

        let mut guard = LaunchFiles::default();
        let mut home = None;
        let mut env = self.variables(surroundings, &cwd, &mut home)?;
        let cwd = if host.awaits_claim && !host.remote {
            let parking = self.park(&env, home.is_some(), &mut guard)?;
            env::put(&mut env, "PWD".into(), parking.clone().into());
            parking
        } else {
            cwd
        };
        let (program, mut args) = self.program(program, surroundings)?;
        args.extend(plan.args);
        for file in plan.files {
            let path = self.private_file(&file.content, file.flag, &mut guard)?;
            let mut argument = OsString::from(format!("--{}=", file.flag));
            argument.push(path);
            args.push(argument);
        }
        let launch = Launch {
            program,
            args,
            secrets: self.secrets(&env),
            env,
            cwd,
            run_as: self.user,
            initialize: plan.initialize,
            await_initialize: plan.await_initialize,
            confirmations: plan.confirmations,
            auth: self.auth.clone(),
            verbatim_prompts: self.verbatim_prompts,
            max_line_bytes: self.max_line_bytes,
            guard,
        };
        Ok(Draft { launch, home })
    }

    pub(crate) fn working_directory(&self, surroundings: &Surroundings) -> Result<PathBuf, OptionsError> {
        let cwd = match (&self.cwd, &surroundings.cwd) {
            (Some(own), Some(base)) => base.join(own),
            (Some(own), None) if own.is_absolute() => own.clone(),
            (Some(own), None) => {
                let problem = "is relative, and this process's working directory does not exist any more";
                return Err(OptionsError::Cwd {
                    path: own.clone(),
                    problem,
                });
            }
            (None, Some(base)) => base.clone(),
            (None, None) => {
                let problem = "this process's working directory does not exist any more: name one";
                return Err(OptionsError::Cwd {
                    path: PathBuf::new(),
                    problem,
                });
            }
        };
        match std::fs::metadata(&cwd) {
            Ok(meta) if meta.is_dir() => Ok(cwd),
            Ok(_) => Err(OptionsError::Cwd {
                path: cwd,
                problem: "is not a directory",
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(OptionsError::Cwd {
                path: cwd,
                problem: "cannot be entered: check the permissions",
            }),
            Err(_) => Err(OptionsError::Cwd {
                path: cwd,
                problem: "does not exist: create it, or name another",
            }),
        }
    }

    /// The files and directories without which the CLI would not start.
    fn check_files(&self, cwd: &Path) -> Result<(), OptionsError> {
        let settings = match &self.settings {
            Some(SettingsInput::File(path)) => Some(path),
            _ => None,
        };
        let files = [
            ("settings", settings),
            ("system_prompt_file", self.system_prompt_file.as_ref()),
        ]
        .into_iter()
        .filter_map(|(option, path)| Some((option, path?)))
        .chain(
            self.mcp_config_files
                .iter()
                .map(|path| ("mcp_config_files", path)),
        );
        if let Some(root) = &self.project_config_root {
            let path = cwd.join(root);
            if let Err(error) = std::fs::read_dir(&path) {
                return Err(OptionsError::File {
                    option: "project_config_root",
                    path,
                    error: error.to_string(),
                });
            }
        }
        for (option, path) in files {
            let path = cwd.join(path);
            let read = match option {
                "settings" => regular_file::read(&path, MOST_SETTINGS).map(Some),
                _ => regular_file::check(&path).map(|()| None),
            };
            match read {
                Ok(text) => text.map_or(Ok(()), |text| self.check_settings_file(&path, &text))?,
                Err(error) => {
                    return Err(OptionsError::File {
                        option,
                        path,
                        error: error.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks what stands in a settings file. The CLI starts without one that it cannot read, and says nothing.
    fn check_settings_file(&self, path: &Path, text: &[u8]) -> Result<(), OptionsError> {
        let text = String::from_utf8_lossy(text);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let raw = RawJson::from_text(text).map_err(|error| error.to_string());
        let object = raw.and_then(|raw| JsonObject::try_from(raw).map_err(|error| error.to_string()));
        let settings = object.map_err(|error| OptionsError::File {
            option: "settings",
            path: path.to_owned(),
            error: format!("it is no JSON object, so the CLI would start without it: {error}"),
        })?;
        self.check_own_settings(&settings)
    }

    /// The program, and the arguments before the CLI's own.
    fn program(
        &self,
        cli: PathBuf,
        surroundings: &Surroundings,
    ) -> Result<(PathBuf, Vec<OsString>), OptionsError> {
        let mut args: Vec<OsString> = self.executable_args.iter().map(OsString::from).collect();
        if !is_module(&cli) {
            return Ok((cli, args));
        }
        let name = format!("{}{}", self.executable.program(), std::env::consts::EXE_SUFFIX);
        match discover::on_path(&name, surroundings) {
            Some(runtime) => {
                args.push(cli.into_os_string());
                Ok((runtime, args))
            }
            None => Err(OptionsError::Runtime { name, script: cli }),
        }
    }

    fn variables(
        &self,
        surroundings: &Surroundings,
        cwd: &Path,
        filling: &mut Option<Filling>,
    ) -> Result<Variables, OptionsError> {
        let parent = self.environment.without_unset(&surroundings.env);
        let mut variables = self.environment.inherited(&parent);
        variables.extend(self.auth.variables(&parent));
        let decides_schedules =
            env::get(&variables, NO_SCHEDULES).is_some() || self.environment.unsets(NO_SCHEDULES.as_ref());
        let mut set = |name: &str, value: &OsStr| env::put(&mut variables, name.into(), value.into());

        if self.isolation == Isolation::Hermetic {
            let home = self.make_home(cwd, filling)?;
            for (name, place) in &home.variables {
                set(name, place.as_os_str());
            }
        } else if env::get(self.environment.own(), "HOME").is_none() {
            let home = surroundings.home().ok_or(OptionsError::NoHome)?;
            set("HOME", home.as_os_str());
        }
        set("PWD", cwd.as_os_str());
        set("CLAUDE_CODE_ENTRYPOINT", OsStr::new("sdk-rust"));
        set("CLAUDE_AGENT_SDK_VERSION", OsStr::new(env!("CARGO_PKG_VERSION")));
        // The frames that tell when a run is really over, and a `result` with a reason when it cannot begin.
        set("CLAUDE_CODE_SDK_READS_SESSION_STATE", OsStr::new("1"));
        set("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", OsStr::new("1"));
        // How far a start has come, for the error when it comes no further.
        set("CLAUDE_CODE_SDK_READS_STARTUP_MARKS", OsStr::new("1"));
        // Windows must not look for programs in the working directory, which may be anybody's checkout.
        set("NoDefaultCurrentDirectoryInExePath", OsStr::new("1"));
        let switches = [
            (
                self.enable_file_checkpointing,
                "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING",
                "true",
            ),
            (self.question_extended, "CLAUDE_CODE_QUESTION_EXTENDED", "1"),
            (
                self.question_optional_descriptions,
                "CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS",
                "1",
            ),
            (self.assume_sandbox, "IS_SANDBOX", "1"),
            (self.disable_autoupdater, "DISABLE_AUTOUPDATER", "1"),
            (!decides_schedules && !self.reads_checkout(), NO_SCHEDULES, "1"),
        ];
        for (on, name, value) in switches {
            if on {
                set(name, OsStr::new(value));
            }
        }
        if let Some(format) = self.question_preview_format {
            set("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", OsStr::new(format.as_str()));
        }
        if let Some(name) = &self.client_app {
            set("CLAUDE_AGENT_SDK_CLIENT_APP", OsStr::new(name));
        }
        for (name, value) in self.environment.own() {
            set_own(&mut variables, name, value);
        }
        // The runtime inside of the CLI sends a report of its crash to its makers, unless somebody decided about it.
        let is_set = |name: &str| env::get(&variables, name).is_some_and(|value| !value.is_empty());
        if !["BUN_ENABLE_CRASH_REPORTING", "BUN_CRASH_REPORT_URL"]
            .into_iter()
            .any(is_set)
        {
            env::put(&mut variables, "BUN_ENABLE_CRASH_REPORTING".into(), "0".into());
        }
        Ok(variables)
    }

    fn make_home(&self, cwd: &Path, filling: &mut Option<Filling>) -> Result<Home, OptionsError> {
        let make = |root: &Path, home: &Home| {
            let below = home.variables.iter().map(|(_, path)| path.as_path());
            [root]
                .into_iter()
                .chain(below)
                .try_for_each(handover::make_private)
        };
        if let Some(path) = &self.hermetic_home {
            let root = cwd.join(path);
            let home = Home::below(&root);
            return match as_user(self.user, || make(&root, &home)) {
                Ok(()) => Ok(home),
                Err(error) => Err(private(HERMETIC, &root, &self.with_rights(error))),
            };
        }
        let failed = |error: io::Error| private(HERMETIC, &std::env::temp_dir(), &error);
        let root = Filling::make("outrigger-", self.user).map_err(failed)?;
        let home = Home::below(root.path());
        make(root.path(), &home).map_err(failed)?;
        *filling = Some(root);
        Ok(home)
    }

    /// Adds the user whose rights were not sufficient.
    fn with_rights(&self, error: io::Error) -> io::Error {
        match self.user {
            Some(user) if error.kind() == io::ErrorKind::PermissionDenied => {
                let uid = user.uid;
                let what = format!(
                    "{error}; it is made with the rights of user {uid}: make it first, for that user"
                );
                io::Error::new(error.kind(), what)
            }
            _ => error,
        }
    }

    /// Creates the directory of a spare, below the CLI's config directory: elsewhere other users could put project settings or
    /// agents into a parent directory.
    fn park(
        &self,
        env: &Variables,
        in_filling: bool,
        guard: &mut LaunchFiles,
    ) -> Result<PathBuf, OptionsError> {
        let config = match (env::get(env, "CLAUDE_CONFIG_DIR"), env::get(env, "HOME")) {
            (Some(config), _) => PathBuf::from(config),
            (None, Some(home)) => Path::new(home).join(".claude"),
            (None, None) => return Err(OptionsError::NoHome),
        };
        let spares = config.join("spares");
        let make = || {
            for directory in [&config, &spares] {
                if !directory.is_dir() {
                    handover::make_private(directory)?;
                }
            }
            private_directory_in("spare-", &spares)
        };
        // A temporary home is this program's until it is handed over, with what is in it.
        let maker = self.user.filter(|_| !in_filling);
        let parking =
            as_user(maker, make).map_err(|error| private("a spare", &spares, &self.with_rights(error)))?;
        let place = parking.path().to_owned();
        guard.parking = Some(Lent::new(parking, self.user));
        Ok(place)
    }

    fn private_file(
        &self,
        content: &str,
        flag: &str,
        guard: &mut LaunchFiles,
    ) -> Result<PathBuf, OptionsError> {
        let prefix = format!("outrigger-{flag}-");
        let made = handover::private_file(&prefix, ".json", content.as_bytes(), self.user);
        let file = made.map_err(|error| {
            let purpose = "what must not be on the command line";
            private(purpose, &std::env::temp_dir(), &error)
        })?;
        let place = file.to_path_buf();
        guard.files.push(file);
        Ok(place)
    }

    fn secrets(&self, env: &Variables) -> Vec<Secret> {
        let mut secrets = Secrets::default();
        for (name, value) in env {
            let name = name.to_string_lossy();
            if name == CUSTOM_HEADERS || sounds_secret(&name) {
                secrets.add(&name, &value.to_string_lossy());
            }
        }
        if let Some(SettingsInput::Inline(settings)) = &self.settings {
            secrets.add_settings(settings);
        }
        if let Some(settings) = &self.managed_settings {
            secrets.add_settings(settings);
        }
        for server in self.mcp_servers.values() {
            secrets.add_below(server);
        }
        for agent in self.agents.values() {
            secrets.add_below(agent);
        }
        secrets.into_list()
    }
}

fn set_own(variables: &mut Variables, name: &OsStr, value: &OsStr) {
    env::put(variables, name.to_owned(), value.to_owned());
}

/// The directories of a hermetic session, with the variables that name them.
struct Home {
    variables: Vec<(&'static str, PathBuf)>,
}

impl Home {
    fn below(root: &Path) -> Self {
        let home = root.join("home");
        let mut variables = vec![
            ("HOME", home.clone()),
            ("CLAUDE_CONFIG_DIR", home.join(".claude")),
            ("CLAUDE_CODE_TMPDIR", root.join("tmp")),
            ("XDG_CONFIG_HOME", home.join(".config")),
            ("XDG_CACHE_HOME", home.join(".cache")),
            ("XDG_DATA_HOME", home.join(".local/share")),
            ("XDG_STATE_HOME", home.join(".local/state")),
        ];
        if cfg!(windows) {
            variables.push(("USERPROFILE", home.clone()));
            variables.push(("APPDATA", home.join("AppData/Roaming")));
            variables.push(("LOCALAPPDATA", home.join("AppData/Local")));
        }
        Self { variables }
    }
}

fn private(purpose: &'static str, path: &Path, error: &io::Error) -> OptionsError {
    OptionsError::Private {
        purpose,
        path: path.to_owned(),
        error: error.to_string(),
    }
}

impl Launch {
    /// The command to start, with no inherited environment. The caller sets pipes and process groups.
    pub fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.cwd);
        #[cfg(unix)]
        if let Some(user) = self.run_as {
            use std::os::unix::process::CommandExt;
            command.uid(user.uid).gid(user.gid);
        }
        command
    }

    /// Compares the reply to `initialize` with what it has to confirm.
    ///
    /// # Errors
    ///
    /// The first part that the CLI did not confirm. Do not use the session then.
    pub fn confirm(&self, reply: &InitializeReply) -> Result<(), Unconfirmed> {
        for &what in &self.confirmations {
            let said = match what {
                Confirmation::McpServers => reply.mcp_servers_applied,
                Confirmation::Plugins => reply.plugins_applied,
                Confirmation::Settings => reply.settings_applied,
                Confirmation::ManagedSettings => reply.managed_settings_applied,
                Confirmation::DisallowedTools => reply.disallowed_tools_applied,
                Confirmation::CodeRunningMcpTools => {
                    let taken = reply.code_running_mcp_tools_applied.as_ref();
                    taken.map(|taken| takes_all(taken, self.initialize.code_running_mcp_tools.as_ref()))
                }
                Confirmation::Hooks => Some(reply.hooks_applied.unwrap_or(true)),
                Confirmation::HookOnFailure => reply.hook_on_failure_supported,
            };
            if said != Some(true) {
                return Err(Unconfirmed {
                    what,
                    ignored: said.is_none(),
                });
            }
        }
        Ok(())
    }

    /// The command line for logs and errors. Long values, possible secrets, and what does not come from an option of its own are only
    /// counted: arguments of [`Options::executable_args`](super::Options::executable_args), values of other flags.
    pub fn shown(&self) -> Vec<String> {
        const JSON: &[&str] = &["settings", "managed-settings", "mcp-config", "json-schema"];
        let program = std::iter::once(self.program.to_string_lossy().into_owned());
        program
            .chain(self.args.iter().map(|argument| {
                let text = argument.to_string_lossy();
                let flag = text.strip_prefix("--");
                let Some((flag, value)) = flag.and_then(|flag| flag.split_once('=')) else {
                    let is_plain = flag.is_some_and(is_ours) || is_module(Path::new(argument));
                    return match is_plain {
                        true => text.into_owned(),
                        false => format!("({} bytes)", text.len()),
                    };
                };
                let hidden = value.len() > 200
                    || !is_ours(flag)
                    || (JSON.contains(&flag) && value.trim_start().starts_with('{'));
                if hidden {
                    format!("--{flag}=({} bytes)", value.len())
                } else {
                    text.into_owned()
                }
            }))
            .collect()
    }
}

/// Whether all declared names are among the accepted ones.
fn takes_all(
    taken: &BTreeMap<String, Vec<String>>,
    declared: Option<&BTreeMap<String, Vec<String>>>,
) -> bool {
    declared.into_iter().flatten().all(|(server, tools)| {
        taken
            .get(server)
            .is_some_and(|taken| tools.iter().all(|tool| taken.contains(tool)))
    })
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("command", &self.shown())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("run_as", &self.run_as)
            .field("await_initialize", &self.await_initialize)
            .field("confirmations", &self.confirmations)
            .field("auth", &self.auth)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
