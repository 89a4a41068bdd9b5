//! The known causes of ends and failures, and how they follow from the evidence.

#[cfg(feature = "serde")]
mod cause_form;
mod name;

use std::fmt;
use std::io;
use std::path::Path;

/// Why a process did not start or ended, or why a turn failed, as far as the evidence shows.
///
/// It comes from the CLI's reason code if there is one; else from known texts, the exit, the signal and the system's error.
/// `Display` is a short description, [`advice`](Self::advice) is what to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    // ---- It did not start -----------------------------------------------------------------------------------------
    /// There is no CLI where it was looked for.
    BinaryMissing,
    /// The file may not be executed.
    NotExecutable,
    /// The program is built for another system, processor or C library, its interpreter is missing, or it is damaged.
    WrongPlatform,
    /// A `.cmd` or `.bat` file, which would hand the arguments to a shell.
    BatchFile,
    /// The program was being written to: an update was under way.
    BeingUpdated,
    /// The working directory does not exist or cannot be entered.
    CwdMissing,
    /// The command line is longer than the system allows.
    ArgumentsTooLong,
    /// The system has no room for another process: memory, processes or open files.
    SystemLimit,

    // ---- It refused to start --------------------------------------------------------------------------------------
    /// No credentials reached the CLI.
    NotLoggedIn,
    /// The key or token was refused.
    InvalidKey,
    /// Permissions were to be skipped by the superuser.
    RootBypass,
    /// The CLI does not know a flag that it was given.
    UnknownOption,
    /// A flag has a value that the CLI does not take, or lacks one, or lacks another flag.
    InvalidArgument,
    /// The CLI refused to run inside another session of itself.
    NestedSession,
    /// There is no such session to be resumed, or no such message in it.
    UnknownSession,
    /// Another process has the session.
    SessionInUse,
    /// The MCP configuration cannot be read.
    McpConfig,
    /// A settings or configuration file is missing, damaged or not valid.
    Settings,
    /// The CLI is too old for a requested feature.
    UnsupportedVersion,
    /// The CLI could not start the session; its reason code, if it gave one.
    StartupFailed(Option<String>),
    /// A line on its stdin was refused: a line of the program's own making, or a fault of this crate.
    InputRefused,

    // ---- It did its work and failed -------------------------------------------------------------------------------
    /// The limit of turns was reached.
    MaxTurns,
    /// The budget is spent.
    Budget,
    /// The conversation is too long for the model.
    TooLong,
    /// The model did not write output of the required shape within the CLI's retries.
    StructuredOutput,
    /// The turn finished, but the structured output is missing.
    NoStructuredOutput,
    /// The answer is longer than the model's output limit, and the CLI's retries did not help.
    MaxOutputTokens,
    /// The model's safeguards, or a filter before it, refused to answer.
    Refused,
    /// The rate limit of the API, or the usage limit of the account, is reached (429).
    RateLimit,
    /// The account has no credit, or another matter of money.
    Billing,
    /// The API was not reached, or the connection broke or fell silent.
    ConnectionFailed,
    /// The API refused or failed in another way.
    Api {
        /// The HTTP status, if the CLI reports it.
        status: Option<u16>,
    },
    /// The turn failed in another way: the CLI's `terminal_reason` or `subtype`, or `unreadable_result` if its result could not be
    /// read, such as one that is longer than `max_line_bytes`. For a process that ended: its last turn failed or was interrupted,
    /// and an exit with code 1 only repeats that.
    TurnFailed(String),

    // ---- It was ended ---------------------------------------------------------------------------------------------
    /// This program ended the CLI: closed, killed or dropped the session, or a deadline did.
    EndedByUs,
    /// The time in all for a turn or a run was over: [`turn_deadline`](crate::Options::turn_deadline),
    /// [`run_deadline`](crate::Options::run_deadline).
    DeadlinePassed,
    /// The JavaScript heap of the CLI was full.
    OutOfHeap,
    /// The system killed the CLI for lack of memory: the control group counted such a kill.
    OutOfMemory,
    /// SIGKILL that this program did not send: most likely the system's out-of-memory killer, else another process.
    Killed,
    /// Another process ended the CLI by this signal (SIGTERM, SIGINT, SIGHUP, …).
    Terminated {
        /// The signal.
        signal: i32,
    },
    /// The CLI crashed.
    Crashed {
        /// The signal, if a signal ended the CLI.
        signal: Option<i32>,
    },
    /// The CLI ended with exit code 0 in the middle of a turn, without a result: the answer may be cut off.
    Truncated,
    /// The CLI ended by itself, and the cause is not known.
    Unexplained,
}

/// What the words of the CLI mean. The beginning of a line, or with `*` in front anywhere in it.
pub(crate) const WORDS: &[(&str, Cause)] = &[
    ("*Not logged in", Cause::NotLoggedIn),
    ("*Please run /login", Cause::NotLoggedIn),
    ("*Invalid API key", Cause::InvalidKey),
    ("*invalid x-api-key", Cause::InvalidKey),
    ("*OAuth token has expired", Cause::InvalidKey),
    ("*OAuth token revoked", Cause::InvalidKey),
    ("*root/sudo privileges", Cause::RootBypass),
    ("error: unknown option", Cause::UnknownOption),
    ("error: unknown command", Cause::UnknownOption),
    ("error: option '", Cause::InvalidArgument),
    ("error: too many arguments", Cause::InvalidArgument),
    ("error: required option", Cause::InvalidArgument),
    ("Error: --json-schema", Cause::InvalidArgument),
    ("Error: Invalid session ID", Cause::InvalidArgument),
    ("Error creating worktree", Cause::InvalidArgument),
    ("Error: Can only use --worktree", Cause::InvalidArgument),
    ("Error processing --setting-sources", Cause::InvalidArgument),
    ("Error: --resume-session-at requires", Cause::InvalidArgument),
    ("Error: When using --print", Cause::InvalidArgument),
    ("No conversation found", Cause::UnknownSession),
    ("No message found with message.uuid", Cause::UnknownSession),
    (
        "Error: --resume requires a valid session ID",
        Cause::UnknownSession,
    ),
    ("Error: Session ID", Cause::SessionInUse),
    ("*cannot be launched inside another", Cause::NestedSession),
    ("Error: Invalid MCP configuration", Cause::McpConfig),
    ("Error: Settings file not found", Cause::Settings),
    ("Error: Invalid settings", Cause::Settings),
    ("*JSON is not valid in --settings", Cause::Settings),
    ("Error parsing streaming input line", Cause::InputRefused),
    ("Error: Missing request on control_request", Cause::InputRefused),
    ("Error: Expected message role", Cause::InputRefused),
    ("Error: Expected message type", Cause::InputRefused),
];

impl Cause {
    /// What the system's refusal to start a program was caused by. Looks at the disk, because the system reports a missing
    /// directory, a missing program and a missing loader alike.
    pub(crate) fn of_spawn(program: &Path, cwd: &Path, error: &io::Error) -> Option<Self> {
        if !cwd.is_dir() {
            return Some(Self::CwdMissing);
        }
        Some(match error.kind() {
            io::ErrorKind::NotFound if program.exists() => Self::WrongPlatform,
            io::ErrorKind::NotFound => Self::BinaryMissing,
            io::ErrorKind::PermissionDenied => Self::NotExecutable,
            io::ErrorKind::ArgumentListTooLong => Self::ArgumentsTooLong,
            io::ErrorKind::ExecutableFileBusy => Self::BeingUpdated,
            io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => Self::SystemLimit,
            _ => match error.raw_os_error()? {
                #[cfg(unix)]
                code => match rustix::io::Errno::from_raw_os_error(code) {
                    rustix::io::Errno::NOEXEC => Self::WrongPlatform,
                    rustix::io::Errno::MFILE | rustix::io::Errno::NFILE => Self::SystemLimit,
                    _ => return None,
                },
                // ERROR_FILENAME_EXCED_RANGE, ERROR_BAD_EXE_FORMAT, ERROR_EXE_MACHINE_TYPE_MISMATCH.
                #[cfg(windows)]
                206 => Self::ArgumentsTooLong,
                #[cfg(windows)]
                193 | 216 => Self::WrongPlatform,
                #[cfg(not(unix))]
                _ => return None,
            },
        })
    }

    /// Whether the cause passes: the same may succeed when it is tried again later, unchanged.
    ///
    /// True for [`RateLimit`](Self::RateLimit), [`ConnectionFailed`](Self::ConnectionFailed), [`Api`](Self::Api) with the status 408,
    /// 409 or 5xx, [`BeingUpdated`](Self::BeingUpdated) and [`SystemLimit`](Self::SystemLimit). The CLI has tried requests to
    /// the API again by itself before it reports a failure.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimit | Self::ConnectionFailed | Self::BeingUpdated | Self::SystemLimit => true,
            Self::Api { status } => matches!(status, Some(408 | 409 | 500..)),
            _ => false,
        }
    }

    /// Whether it is about the start: the CLI was not started, or refused to start the session.
    pub fn is_start(&self) -> bool {
        matches!(
            self,
            Self::BinaryMissing
                | Self::NotExecutable
                | Self::WrongPlatform
                | Self::BatchFile
                | Self::BeingUpdated
                | Self::CwdMissing
                | Self::ArgumentsTooLong
                | Self::SystemLimit
                | Self::RootBypass
                | Self::UnknownOption
                | Self::InvalidArgument
                | Self::NestedSession
                | Self::UnknownSession
                | Self::SessionInUse
                | Self::McpConfig
                | Self::Settings
                | Self::UnsupportedVersion
                | Self::StartupFailed(_)
                | Self::InputRefused
        )
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::BinaryMissing => {
                "install Claude Code or name it with `cli_path`; `outrigger doctor` shows what is found"
            }
            Self::NotExecutable => "check the permissions of the program and of the directories above it",
            Self::WrongPlatform => {
                "install the build for this system, processor and C library; `outrigger doctor` says what does not fit"
            }
            Self::BatchFile => "name claude.exe instead of the batch file",
            Self::BeingUpdated => {
                "try again in a moment, and keep the updater away from an installation that is in use"
            }
            Self::CwdMissing => "the working directory does not exist; create it or pass another `cwd`",
            Self::ArgumentsTooLong => {
                "shorten the options that go to the command line: long texts and schemas, many rules or directories"
            }
            Self::SystemLimit => {
                "raise the limits for processes, open files and memory, or run fewer sessions"
            }
            Self::NotLoggedIn => {
                "set ANTHROPIC_API_KEY, log in with `claude` once, or choose another account with `auth`"
            }
            Self::InvalidKey => "the API key or token is wrong, revoked or has expired; replace it",
            Self::RootBypass => {
                "bypassing permissions is refused for root; run as another user, or set `assume_sandbox` in a throw-away container"
            }
            Self::UnknownOption => "the CLI does not know a flag; update it, or drop the extra argument",
            Self::InvalidArgument => "correct the option that stderr names",
            Self::NestedSession => "this is a nested session; the environment must not carry CLAUDECODE",
            Self::UnknownSession => {
                "the session id is unknown here; sessions belong to a config directory and are looked up from the working directory"
            }
            Self::SessionInUse => {
                "another process has this session open; go on beside it with `fork_session`"
            }
            Self::McpConfig => {
                "the MCP configuration is not readable by the CLI; stderr says what is wrong with it"
            }
            Self::Settings => "correct the settings or configuration file that the CLI names",
            Self::UnsupportedVersion => "update the CLI",
            Self::StartupFailed(_) => "see the text of the CLI's result",
            Self::InputRefused => "report it, with the frames, unless the program sends lines of its own",
            Self::MaxTurns => "prompt again to go on, or raise `max_turns`",
            Self::Budget => "raise `max_budget_usd`, or begin a new session",
            Self::TooLong => "compact the conversation, attach less, or begin a new session",
            Self::StructuredOutput => "simplify the schema, describe its fields, or ask for less at once",
            Self::NoStructuredOutput => {
                "ask again, or say in the prompt that the answer has to be structured output"
            }
            Self::MaxOutputTokens => "ask for a shorter answer, or for one in parts",
            Self::Refused => {
                "the model's safeguards refused; rephrase the prompt in a new session, or choose another model: asking the same again is refused again"
            }
            Self::RateLimit => "the rate limit is reached; wait, then try again",
            Self::Billing => "add credit to the account, or choose another account",
            Self::ConnectionFailed => {
                "the API was not reached; check the network, the proxy and the base URL"
            }
            Self::Api { status: Some(403) } => {
                "the account may not do this; check the key's rights and the organisation"
            }
            Self::Api { status: Some(404) } => "the model does not exist, or the account has no access to it",
            Self::Api { status: Some(500..) } => "the API is overloaded or failing; try again later",
            Self::Api { status: Some(_) } => "the API refused the request; see the result's text",
            Self::Api { status: None } => "the API refused or failed; see the result's text",
            Self::TurnFailed(_) => "see the outcome of the last turn",
            Self::EndedByUs => "start it again, or resume the conversation, if that was not meant",
            Self::DeadlinePassed => "allow more time, or ask for less at once",
            Self::OutOfHeap => {
                "the CLI ran out of memory; resume in a new process, or compact the conversation before it grows"
            }
            Self::OutOfMemory => "give it more memory, or run fewer sessions; resume in a new process",
            Self::Killed => {
                "probably the system's out-of-memory killer (look in the kernel's log): give it more memory or run fewer sessions"
            }
            Self::Terminated { .. } => "another process ended it; look at what manages processes here",
            Self::Crashed { .. } => {
                "resume in a new process; if it happens again, update or reinstall the CLI"
            }
            Self::Truncated => "resume the session and ask again; do not take what was said for complete",
            Self::Unexplained => {
                "read its stderr, if it wrote any; `outrigger doctor` examines the installation"
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartupFailed(Some(reason)) => {
                return write!(f, "it could not start the session: {reason}");
            }
            Self::Api { status: Some(status) } => return write!(f, "the API answered {status}"),
            Self::TurnFailed(reason) => return write!(f, "the last turn failed: {reason}"),
            Self::Terminated { signal } => return write!(f, "another process ended it by signal {signal}"),
            Self::Crashed { signal: Some(signal) } => return write!(f, "it crashed by signal {signal}"),
            _ => {}
        }
        f.write_str(match self {
            Self::BinaryMissing => "the CLI is not there",
            Self::NotExecutable => "the CLI may not be executed",
            Self::WrongPlatform => "the CLI does not fit this system",
            Self::BatchFile => "a batch file is no CLI",
            Self::BeingUpdated => "the CLI is being updated",
            Self::CwdMissing => "the working directory is missing",
            Self::ArgumentsTooLong => "the command line is too long",
            Self::SystemLimit => "the system has no room for another process",
            Self::NotLoggedIn => "it is not logged in",
            Self::InvalidKey => "the key or token was refused",
            Self::RootBypass => "root may not bypass permissions",
            Self::UnknownOption => "it does not know an option",
            Self::InvalidArgument => "an argument is not valid",
            Self::NestedSession => "it refuses to run inside another session",
            Self::UnknownSession => "the session is unknown",
            Self::SessionInUse => "the session is in use",
            Self::McpConfig => "the MCP configuration is not valid",
            Self::Settings => "the settings are not valid",
            Self::UnsupportedVersion => "the CLI is too old",
            Self::StartupFailed(_) => "it could not start the session",
            Self::InputRefused => "it refused a line of input",
            Self::MaxTurns => "the limit of turns is reached",
            Self::Budget => "the budget is spent",
            Self::TooLong => "the conversation is too long",
            Self::StructuredOutput => "the output does not fit the schema",
            Self::NoStructuredOutput => "there is no structured output",
            Self::MaxOutputTokens => "the answer is longer than the output limit",
            Self::Refused => "the model refused to answer",
            Self::RateLimit => "the rate limit is reached",
            Self::Billing => "the account has no credit",
            Self::ConnectionFailed => "the API was not reached, or the connection broke",
            Self::Api { .. } => "the API refused or failed",
            Self::TurnFailed(_) => "the last turn failed",
            Self::EndedByUs => "this program ended it",
            Self::DeadlinePassed => "the time for it is over",
            Self::OutOfHeap => "it ran out of heap memory",
            Self::OutOfMemory => "the system killed it for lack of memory",
            Self::Killed => "another process killed it, probably the system for lack of memory",
            Self::Terminated { .. } => "another process ended it",
            Self::Crashed { .. } => "it crashed",
            Self::Truncated => "it ended in the middle of a turn, without a result",
            Self::Unexplained => "the cause is not known",
        })
    }
}

/// The cause of the last known text: the last text explains the end.
pub(crate) fn from_words(known: &[(&str, Cause)], said: &str) -> Option<Cause> {
    said.lines().rev().find_map(|line| {
        let line = line.trim();
        let meant = |words: &str| match words.strip_prefix('*') {
            Some(words) => line.contains(words),
            None => line.starts_with(words),
        };
        known
            .iter()
            .find(|(words, _)| meant(words))
            .map(|(_, cause)| cause.clone())
    })
}

#[cfg(test)]
mod tests;
