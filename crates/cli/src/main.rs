//! The `outrigger` command: the Claude Code CLI for people at a terminal and for shell scripts.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "writing to the terminal is what this program is for"
)]

/// As in the standard library, but a closed standard error is no reason to panic.
macro_rules! eprint {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($words)*);
    }};
}

/// As in the standard library, but a closed standard error is no reason to panic.
macro_rules! eprintln {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

mod agent;
mod ask;
mod batch;
mod cassette;
mod chat;
mod command_line;
mod completions;
mod config;
mod demo;
mod doctor;
mod event_lines;
mod examples;
mod exit;
mod explain;
mod host;
mod input;
mod keyboard;
mod mock_api;
mod paint;
mod plain;
mod policy;
mod protocol;
mod remote;
mod report;
mod run;
mod screen;
mod serve;
mod sessions;
mod settings;
mod signals;
mod telemetry;
mod text_file;
mod time;
mod typo;
mod version;
mod words;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Drive the Claude Code CLI from a terminal.
#[derive(Debug, Parser)]
#[command(
    name = command_line::NAME,
    version = version::short(),
    long_version = version::long(),
    propagate_version = true,
    after_help = exit::TABLE
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ask the agent one thing, and wait until it is done.
    Run(Box<run::Args>),
    /// Talk with the agent, a line at a time.
    Chat(Box<chat::Args>),
    /// Run many prompts from a file, each in a session of its own, and write a result for each.
    Batch(Box<batch::Args>),
    /// Own sessions for clients that come and go: a host, over HTTP.
    Serve(serve::Args),
    Host(host::Args),
    /// Show how a session works: a real one with tools, on a machine without a key.
    Demo(demo::Args),
    /// Find out why sessions do not start: installations, account, directories.
    Doctor(doctor::Args),
    /// Say who would decide about a tool call: a rule, the mode, a person.
    Explain(Box<explain::Args>),
    /// Let the real CLI talk to an API without a model, which plays a script, or records one.
    MockApi(Box<mock_api::Args>),
    /// Look at the settings on disk, and where each value comes from.
    Settings(Box<settings::Args>),
    /// Look at conversations that the CLI keeps on disk, and change them.
    Sessions(sessions::Args),
    Top(sessions::Top),
    Ps(remote::Ps),
    Attach(Box<remote::Attach>),
    Send(Box<remote::Send>),
    Approve(Box<remote::Approve>),
    Logs(remote::Logs),
    Stop(remote::Stop),
    /// Compare recorded conversations with the types.
    Protocol(protocol::Args),
    Record(Box<cassette::record::Args>),
    Replay(cassette::replay::Args),
    /// Look at recorded sessions, check them, change them.
    Cassette(cassette::Args),
    /// Look at the configuration file, which has values of flags, in profiles.
    Config(config::Args),
    /// Write what a shell needs to complete the words of this command line.
    Completions(completions::Completions),
    /// Write the manual pages.
    Man(completions::Manual),
    /// Be an agent for editors, which speaks the Agent Client Protocol on stdin and stdout. `outrigger acp --help` tells more.
    ///
    /// With `--host URL` the sessions live on a host, and go on when the editor leaves.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Acp {
        /// As for `outrigger-acp`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    if let Some(code) = completions::answer() {
        return code;
    }
    let command = match command_line::parse() {
        Ok(cli) => cli.command,
        Err(code) => return code,
    };
    let is_agent = matches!(command, Command::Acp { .. });
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return words::report(Err(error.into())),
    };
    let code = runtime.block_on(run(command));
    // A read that never ends, of stdin or of a file, would keep the program from ending.
    if is_agent {
        runtime.shutdown_background();
    } else {
        runtime.shutdown_timeout(LAST_WORK);
    }
    code
}

/// How long the work on files that a command has left behind may take at its end.
const LAST_WORK: Duration = Duration::from_secs(3);

async fn run(command: Command) -> ExitCode {
    let result = match command {
        Command::Run(args) => run::run(*args).await,
        Command::Chat(args) => chat::run(*args).await,
        Command::Batch(args) => batch::run(*args).await,
        Command::Serve(args) => serve::run(args).await,
        Command::Host(args) => host::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Explain(args) => explain::run(*args).await,
        Command::MockApi(args) => return mock_api::run(*args).await,
        Command::Settings(args) => settings::run(*args).await,
        Command::Sessions(args) => sessions::run(args).await,
        Command::Top(top) => top.run().await,
        Command::Ps(ps) => ps.run().await,
        Command::Attach(attach) => attach.run().await,
        Command::Send(send) => send.run().await,
        Command::Approve(approve) => approve.run().await,
        Command::Logs(logs) => logs.run().await,
        Command::Stop(stop) => stop.run().await,
        Command::Protocol(args) => protocol::run(args).await,
        Command::Record(args) => cassette::record::run(*args).await,
        Command::Replay(args) => cassette::replay::run(args).await,
        Command::Cassette(args) => cassette::run(args).await,
        Command::Config(args) => config::run(&args, &command_line::command()),
        Command::Completions(args) => completions::complete(&args),
        Command::Man(args) => completions::man(&args),
        Command::Acp { arguments } => match remote::agent_on_host(&arguments) {
            Ok(Some((host, arguments))) => return outrigger_acp::run_on(host, arguments).await,
            Ok(None) => return outrigger_acp::run(arguments).await,
            Err(failure) => Err(failure),
        },
    };
    words::report(result)
}
