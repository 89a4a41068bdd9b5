//! The command in a place of its own.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{Sandbox, executable};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

/// Longer than anything here takes on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A scripted API, a home, and the real CLI.
pub(crate) struct Rig {
    pub(crate) api: MessagesApi,
    pub(crate) sandbox: Sandbox,
    cli: PathBuf,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
        }
    }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self {
            api: MessagesApi::builder()
                .directives(true)
                .start()
                .await
                .expect("the API starts"),
            sandbox: Sandbox::new().expect("a directory"),
            cli: executable().await.expect("the pinned CLI"),
        }
    }

    /// The program in this place, without arguments.
    pub(crate) fn program(&self) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_outrigger"));
        command
            .env_clear()
            .envs(self.sandbox.env(&self.api.base_url()))
            .current_dir(self.sandbox.project());
        command
    }

    /// The program with its arguments: the subcommand, what finds the CLI, and `args`.
    pub(crate) fn std_command(&self, subcommand: &str, args: &[&str]) -> std::process::Command {
        let mut command = self.program();
        command.arg(subcommand).arg("--cli").arg(&self.cli);
        command.args(["--env", "CLAUDE_CODE_TMPDIR"]).args(args);
        command
    }

    /// The real CLI.
    #[cfg(unix)]
    pub(crate) fn cli(&self) -> &std::path::Path {
        &self.cli
    }

    /// `outrigger run` that asks nobody, with another CLI: that of `args`, which come last.
    #[cfg(unix)]
    pub(crate) async fn run_with(&self, args: &[&str]) -> Ran {
        let mut command = self.program();
        command.args(["run", "--no-ask", "--env", "CLAUDE_CODE_TMPDIR"]);
        command.args(args);
        self.run_to_end(command).await
    }

    pub(crate) fn spawn(&self, subcommand: &str, args: &[&str]) -> Child {
        Command::from(self.std_command(subcommand, args))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("outrigger starts")
    }

    /// Runs it with this standard input to its end; afterwards nothing of it may be left.
    pub(crate) async fn ran(&self, subcommand: &str, args: &[&str], stdin: &str) -> Ran {
        let mut child = self.spawn(subcommand, args);
        let mut input = child.stdin.take().expect("a pipe");
        // A program that fails early does not read.
        let _ = input.write_all(stdin.as_bytes()).await;
        drop(input);
        self.finish(child).await
    }

    /// Runs a command that has nothing to read to its end; afterwards nothing of it may be left.
    pub(crate) async fn run_to_end(&self, command: std::process::Command) -> Ran {
        let mut command = Command::from(command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.kill_on_drop(true).spawn();
        self.finish(child.expect("outrigger starts")).await
    }

    /// Waits for the end; afterwards nothing of it may be left.
    pub(crate) async fn finish(&self, child: Child) -> Ran {
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
            .await
            .expect("it ends in time")
            .expect("it can be waited for");
        self.nothing_left().await;
        output.into()
    }

    /// Runs it to its end without an account.
    pub(crate) async fn ran_without_account(&self, subcommand: &str, args: &[&str]) -> Ran {
        let mut command = self.std_command(subcommand, args);
        command.env_remove("ANTHROPIC_API_KEY");
        self.run_to_end(command).await
    }

    /// `outrigger run` that asks nobody.
    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        let args: Vec<&str> = ["--no-ask"].iter().chain(args).copied().collect();
        self.ran("run", &args, "").await
    }

    /// Waits until no process of this place is left. After a SIGKILL of `outrigger`, the guardian gives the CLI three seconds.
    pub(crate) async fn nothing_left(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "processes are left: {left:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The processes that have this place as their home.
    #[cfg(target_os = "linux")]
    fn processes(&self) -> Vec<String> {
        let home = format!("HOME={}", self.sandbox.home().display());
        let entries = std::fs::read_dir("/proc").expect("/proc");
        entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let variables = std::fs::read(path.join("environ")).ok()?;
                let ours = variables
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == home.as_bytes());
                let command = std::fs::read(path.join("cmdline")).ok()?;
                ours.then(|| String::from_utf8_lossy(&command).replace('\0', " "))
            })
            .collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn processes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Waits until stdout says this; nothing else may read stdout.
pub(crate) async fn read_until(child: &mut Child, words: &str) {
    use tokio::io::AsyncReadExt as _;

    let stdout = child.stdout.as_mut().expect("a pipe");
    let mut seen = Vec::new();
    let said = async {
        while !String::from_utf8_lossy(&seen).contains(words) {
            let mut more = [0; 1024];
            let count = stdout.read(&mut more).await.expect("it can be read");
            assert_ne!(count, 0, "it ended before it said {words:?}");
            seen.extend_from_slice(&more[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, said).await.expect("in time");
}
