//! What the operator of a host allows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger::permissions::Layer;
use outrigger::protocol::shared::{
    PermissionBehavior, PermissionMode, PermissionUpdate, PermissionUpdateDestination,
};
use outrigger::sessions::Sessions;
use outrigger::{LeaseOptions, Options};
use outrigger_fleet::gate::Gate;

use crate::admission::TurnBudget;
use crate::error::{HostError, Result};
use crate::event::SessionRecord;
use crate::memory::MemoryLimits;
use crate::workspace::WorkspacePolicy;

/// What sessions of a host may have. Nothing that a client sends widens it.
///
/// A client that allows a call may send changes of permissions along with it. They may only be for the session: rules to add, a mode of
/// [`permission_modes`](Self::permission_modes), directories below [`roots`](Self::roots). Settings files, and the removal of rules, are the
/// operator's. With code in [`decides_first`](Self::decides_first), rules that allow and directories are the operator's, too: the CLI would not ask the code
/// about the calls that they allow.
#[derive(Clone)]
#[non_exhaustive]
pub struct HostPolicy {
    /// The options of every session: the account, the CLI, tools, rules, environment. The host sets the directory, the session's id, the lease,
    /// and the permission handler.
    pub options: Options,
    /// The directories that sessions may be in, with what is below them.
    pub roots: Vec<PathBuf>,
    /// The models that a client may choose; none by default.
    pub models: Vec<String>,
    /// The permission modes that a client may choose; none by default.
    pub permission_modes: Vec<String>,
    /// How long a process without work lives; 10 minutes by default. An agent in the background is work, a command is none.
    pub idle: Duration,
    /// The most processes at once; 8 by default. For one more, the one that was idle for longest ends.
    pub max_processes: usize,
    /// How many CLI processes wait for new sessions; none by default. A new session whose id, model and permission mode are left to the host takes one as its
    /// first process, so that its first prompt does not wait for the start of the CLI. Resumed and forked sessions cannot take one.
    ///
    /// They count in [`max_processes`](Self::max_processes), take only places that are free, and end when a session needs theirs. With options that depend on
    /// the directory of a session ([`Options::bound_to_directory`]) there are none, and the log of the program (`tracing`) says why.
    pub spares: usize,
    /// How long a start waits for a process of before to end, which still has the lease; 30 s by default.
    pub lease_patience: Duration,
    /// Limits for the memory of each process; `None` by default.
    pub memory: Option<MemoryLimits>,
    /// What the turns of all sessions pass before they begin: the limits of the account; `None` by default.
    pub gate: Option<Gate>,
    /// What the turns of all sessions may cost together; `None` by default. Turns wait while it is exhausted, and an event (`budget_exhausted`) says so. A
    /// turn that background work begins does not wait; it is charged when it ends.
    pub budget: Option<TurnBudget>,
    /// Decides about tool calls before a person is asked; `None` by default. Rules of the [`options`](Self::options) decide before it, and so do the
    /// [`permission_modes`](Self::permission_modes) that clients may choose.
    pub decides_first: Option<Arc<dyn Layer>>,
    /// How long an approval waits for a person; without end by default. Then it is `expired`, and denied.
    pub approvals_expire: Option<Duration>,
    /// The tools whose calls people decide about while no process needs to run: the matcher of a `PreToolUse` hook, such as `Bash|Write|AskUserQuestion`,
    /// or `*` for all. `None` by default: then an approval ends with the process that asked.
    ///
    /// Such a call is left open and its turn waits: over the end of the process, and of the host. [`decides_first`](Self::decides_first) is asked before
    /// people. They are asked whatever rules allow. A deny rule holds, whatever people allow, but the CLI looks at it only when their decision is carried
    /// out. A second such call at the same time, and one of a subagent, are asked about while the process waits, and end with it. The CLI
    /// has to know `defer`, and to keep sessions on disk. If the SDK cannot know its version, as behind a wrapper, set
    /// [`await_initialize`](Options::await_initialize) in the options, too: else the CLI may ask before it knows of the host.
    pub deferred: Option<String>,
    /// Worktrees for sessions, and what turns change in files; `None` by default: then there are no worktrees and no diffs.
    pub workspaces: Option<WorkspacePolicy>,
    /// Whether a client that allows a call may change its input; off by default. The CLI holds a changed input to no rule, so that a client could
    /// make any call of the tool, and of a call that it was asked about one that the operator denies.
    pub changed_inputs: bool,
    /// Whether the host takes the lease of each session, so that nobody else on this machine drives it; on by default. A CLI on another machine
    /// needs a session store with leases for it.
    pub lease: bool,
}

impl fmt::Debug for HostPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostPolicy")
            .field("roots", &self.roots)
            .field("max_processes", &self.max_processes)
            .finish_non_exhaustive()
    }
}

impl HostPolicy {
    /// A policy with these options, for sessions in these directories and below.
    pub fn new<P: Into<PathBuf>>(options: Options, roots: impl IntoIterator<Item = P>) -> Self {
        Self {
            options,
            roots: roots.into_iter().map(Into::into).collect(),
            models: Vec::new(),
            permission_modes: Vec::new(),
            idle: Duration::from_secs(600),
            max_processes: 8,
            spares: 0,
            lease_patience: Duration::from_secs(30),
            memory: None,
            gate: None,
            budget: None,
            decides_first: None,
            approvals_expire: None,
            deferred: None,
            workspaces: None,
            changed_inputs: false,
            lease: true,
        }
    }

    /// Sets [`spares`](Self#structfield.spares).
    pub fn spares(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// The directory without links, if it is in a root.
    pub(crate) fn directory(&self, cwd: &Path) -> Result<PathBuf> {
        let refused = || HostError::NotAllowed(format!("the directory {}, or there is none", cwd.display()));
        let real = cwd.canonicalize().map_err(|_| refused())?;
        let inside = self
            .roots
            .iter()
            .filter_map(|root| root.canonicalize().ok())
            .any(|root| real.starts_with(root));
        if inside && real.is_dir() {
            Ok(real)
        } else {
            Err(refused())
        }
    }

    /// The directory of a session without links. Worktrees are the host's own.
    pub(crate) fn directory_of(&self, session: &SessionRecord) -> Result<PathBuf> {
        self.place_of(session, Path::new(&session.cwd))
    }

    /// The directory without links whose files are those of a session: its directory, or the worktree that it is in.
    pub(crate) fn files_of(&self, session: &SessionRecord) -> Result<PathBuf> {
        let tree = session.worktree.as_ref().map(|worktree| &worktree.path);
        self.place_of(session, Path::new(tree.unwrap_or(&session.cwd)))
    }

    fn place_of(&self, session: &SessionRecord, directory: &Path) -> Result<PathBuf> {
        if let Some(tree) = self.tree_of(session)
            && let Ok(real) = directory.canonicalize()
            && real.starts_with(tree)
            && real.is_dir()
        {
            return Ok(real);
        }
        self.directory(directory)
    }

    fn tree_of(&self, session: &SessionRecord) -> Option<PathBuf> {
        self.workspaces.as_ref()?.tree(session.worktree.as_ref()?)
    }

    /// Refuses a process that runs where no session may be: its directory may have become a link to another place after it was looked at, and before the
    /// process was started in it.
    pub(crate) fn check_process(&self, session: &SessionRecord, pid: Option<u32>) -> Result<()> {
        let Some(real) = pid.and_then(working_directory) else {
            return self.directory_of(session).map(drop);
        };
        let is_in = |place: &Path| place.canonicalize().is_ok_and(|place| real.starts_with(place));
        let tree = self.tree_of(session);
        if tree.is_some_and(|tree| real.starts_with(tree)) || self.roots.iter().any(|root| is_in(root)) {
            return Ok(());
        }
        let what = format!("the directory {}, where the process was started", real.display());
        Err(HostError::NotAllowed(what))
    }

    /// Refuses what clients may not choose.
    pub(crate) fn check(&self, model: Option<&str>, permission_mode: Option<&str>) -> Result<()> {
        if let Some(model) = model
            && !self.models.iter().any(|allowed| allowed == model)
        {
            return Err(HostError::NotAllowed(format!("the model {model}")));
        }
        if let Some(mode) = permission_mode
            && !self.permission_modes.iter().any(|allowed| allowed == mode)
        {
            return Err(HostError::NotAllowed(format!("the permission mode {mode}")));
        }
        Ok(())
    }

    /// Whether the operator has code that decides about calls, beyond rules, which the CLI knows.
    fn has_code(&self) -> bool {
        self.decides_first
            .as_ref()
            .is_some_and(|first| !first.only_has_rules())
    }

    /// Refuses changes of permissions that a client may not make.
    pub(crate) fn check_changes(&self, changes: &[PermissionUpdate]) -> Result<()> {
        let refused = |what: String| Err(HostError::NotAllowed(what));
        for change in changes {
            match change.destination() {
                Some(PermissionUpdateDestination::Session) => {}
                Some(elsewhere) => {
                    return refused(format!("a change of permissions in {}", elsewhere.as_str()));
                }
                None => {
                    return refused(
                        "a change of permissions of a kind that the host does not know".to_owned(),
                    );
                }
            }
            match change {
                PermissionUpdate::SetMode(update) => self.check(None, Some(update.mode.as_str()))?,
                PermissionUpdate::AddDirectories(_) if self.has_code() => {
                    return refused(
                        "directories for the session: the operator's code would not be asked about calls in them".to_owned(),
                    );
                }
                PermissionUpdate::AddDirectories(update) => {
                    for directory in update.directories.iter().map(Path::new) {
                        // The CLI would take another one as relative to the directory of the session.
                        if !directory.is_absolute() {
                            return refused(format!(
                                "the directory {}, which is not absolute",
                                directory.display()
                            ));
                        }
                        self.directory(directory)?;
                    }
                }
                PermissionUpdate::AddRules(update)
                    if self.has_code()
                        && !matches!(
                            update.behavior,
                            PermissionBehavior::Deny | PermissionBehavior::Ask
                        ) =>
                {
                    return refused(
                        "a rule that allows calls: the operator's code would not be asked about them"
                            .to_owned(),
                    );
                }
                // A client that may allow each call may allow them by a rule. Rules of the operator that deny count all the same.
                PermissionUpdate::AddRules(_) | PermissionUpdate::RemoveDirectories(_) => {}
                _ => return refused("the removal of permission rules".to_owned()),
            }
        }
        Ok(())
    }

    /// The stored sessions of the CLI, in this directory or anywhere.
    pub(crate) fn stored(&self, cwd: Option<&Path>) -> Result<Sessions> {
        let mut options = self.options.clone();
        if let Some(cwd) = cwd.or(self.roots.first().map(PathBuf::as_path)) {
            options = options.cwd(cwd);
        }
        let sessions = options.sessions();
        sessions.map_err(|error| HostError::Stored(error.to_string()))
    }

    /// What all sessions have, and spares.
    pub(crate) fn options_of_all(&self) -> Options {
        let options = self.options.clone();
        match self.lease {
            true => options.lease(LeaseOptions::new().owner("outrigger-host")),
            false => options,
        }
    }

    /// The options of a session. A policy that was tightened since holds for sessions of before, too.
    pub(crate) fn options_of(&self, session: &SessionRecord, resume: bool) -> Result<Options> {
        self.check(session.model.as_deref(), session.permission_mode.as_deref())?;
        let cwd = self.directory_of(session)?;
        let mut options = self.options_of_all().cwd(cwd);
        if let Some(model) = &session.model {
            options = options.model(model);
        }
        if let Some(mode) = &session.permission_mode {
            let mode: Result<PermissionMode, _> = serde_json::from_value(mode.as_str().into());
            let mode = mode.map_err(|error| HostError::Invalid(format!("the permission mode: {error}")))?;
            options = options.permission_mode(mode);
        }
        Ok(if resume {
            options.resume(session.id.as_str())
        } else {
            options.session_id(session.id.as_str())
        })
    }
}

/// Where a process works, if this can be known: not elsewhere than on Linux, of no process of another user, and of none with other mounts, which has other
/// paths.
#[cfg(target_os = "linux")]
fn working_directory(pid: u32) -> Option<PathBuf> {
    let of = |process: &str, what: &str| std::fs::read_link(format!("/proc/{process}/{what}")).ok();
    let pid = pid.to_string();
    for what in ["ns/mnt", "root"] {
        let own = of("self", what)?;
        if of(&pid, what)? != own {
            return None;
        }
    }
    of(&pid, "cwd")
}

#[cfg(not(target_os = "linux"))]
fn working_directory(_pid: u32) -> Option<PathBuf> {
    None
}
