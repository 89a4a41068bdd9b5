//! The ACP agent for a day: thousands of turns in one process, in sessions that are opened and closed.
//!
//! A day's worth is 3000 turns in 30 sessions. Of ten turns, six are answered with text, two of them with much; two call a tool that needs
//! permission, one starts a subagent in the background, and one is cancelled. `OUTRIGGER_ACP` names the program as it is handed out, which
//! has a limit for all that is resident of it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

/// How much the memory of the agent's own may grow from a tenth of the way to the end, in KiB. What the allocator keeps for its threads
/// is below it; a kilobyte kept of each of 3000 turns is beyond it.
const BOUND: u64 = 3 * 1024;

/// How much may be resident of the program as it is handed out, in KiB: 15 MB.
const RESIDENT: u64 = 15_000_000 / 1024;

/// Longer than any answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct SoakPlan {
    sessions: u64,
    turns: u64,
    release: bool,
}

impl SoakPlan {
    fn read(arguments: &[OsString]) -> Result<Self> {
        let mut plan = Self {
            sessions: 30,
            turns: 3000,
            release: false,
        };
        let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64> {
                let value = arguments
                    .next()
                    .with_context(|| format!("{argument} needs a number"))?;
                value
                    .parse()
                    .with_context(|| format!("{argument} {value}: not a number"))
            };
            match &*argument {
                "--sessions" => plan.sessions = number()?,
                "--turns" => plan.turns = number()?,
                "--release" => plan.release = true,
                other => bail!(
                    "soak acp: unknown argument {other}; it takes --sessions N, --turns N and --release"
                ),
            }
        }
        ensure!(plan.sessions >= 10, "soak acp: --sessions is at least 10");
        ensure!(
            plan.turns >= plan.sessions,
            "soak acp: --turns is at least --sessions"
        );
        Ok(plan)
    }
}

pub(super) fn run(arguments: &[OsString], root: &Path, output: &Path) -> Result<ExitCode> {
    let plan = SoakPlan::read(arguments)?;
    ensure!(
        cfg!(target_os = "linux"),
        "soak acp: it reads /proc, which only Linux has"
    );
    let programs = output.join(if plan.release { "release" } else { "debug" });
    let other = std::env::var_os("OUTRIGGER_ACP").map(PathBuf::from);
    let mut build = super::cargo(root);
    build.args([
        "build",
        "--locked",
        "--package",
        "outrigger-sim",
        "--bin",
        "outrigger-sim",
    ]);
    if other.is_none() {
        build.args(["--package", "outrigger-acp", "--bin", "outrigger-acp"]);
    }
    build.args(plan.release.then_some("--release"));
    ensure!(
        build.status().context("cannot run cargo")?.success(),
        "the programs could not be built"
    );
    // Without optimisation, the program's own code alone is beyond it.
    let resident = if other.is_some() { RESIDENT } else { u64::MAX };
    let program = other.unwrap_or_else(|| programs.join("outrigger-acp"));

    let home = tempfile::tempdir().context("cannot make a directory")?;
    let mut agent = Agent::start(&program, &programs.join("outrigger-sim"), home.path())?;
    println!("after initialize: {}", agent.sample()?);
    agent.first_turn(home.path())?;
    let begun = Instant::now();
    let mut samples = Vec::new();
    for session in 0..plan.sessions {
        // The rest of the division goes to the first sessions.
        let turns = plan.turns / plan.sessions + u64::from(session < plan.turns % plan.sessions);
        agent.session(home.path(), turns)?;
        let sample = agent.sample()?;
        println!("{:>3} sessions: {sample}", session + 1);
        samples.push(sample);
    }
    let Agent { child, input, .. } = &mut agent;
    drop(input.take());
    let status = child.wait().context("the agent cannot be waited for")?;
    ensure!(status.success(), "the agent ended with {status}");

    let (Some(first), Some(last)) = (samples.get(samples.len() / 10), samples.last()) else {
        bail!("there are no samples");
    };
    let most = samples
        .iter()
        .map(|sample| sample.resident)
        .max()
        .unwrap_or_default();
    if most > resident {
        println!("{most} KiB were resident, and {resident} KiB may be");
    }
    println!(
        "{} turns in {} sessions, {:.0} s: own memory {:+} KiB of {BOUND}, resident {:+} KiB, files {:+}, processes left {}",
        plan.turns,
        plan.sessions,
        begun.elapsed().as_secs_f64(),
        grown(first.own, last.own),
        grown(first.resident, last.resident),
        grown(first.files, last.files),
        last.children,
    );
    let is_flat = last.own <= first.own + BOUND && last.files <= first.files && last.children == 0;
    Ok(if is_flat && most <= resident {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn grown(from: u64, to: u64) -> i128 {
    i128::from(to) - i128::from(from)
}

/// What the agent holds while no session is open.
struct Sample {
    /// Resident memory, in KiB: with the program's own code, of which ever more is read.
    resident: u64,
    /// Memory of its own, in KiB.
    own: u64,
    files: u64,
    children: u64,
}

impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            resident,
            own,
            files,
            children,
        } = self;
        write!(
            f,
            "resident {resident} KiB, own {own} KiB, {files} open files, {children} processes"
        )
    }
}

/// The agent, as its editor has it.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<std::io::Result<String>>,
    last: u64,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // After a failure. An agent that ended is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    fn start(program: &Path, cli: &Path, home: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("--no-spare").current_dir(home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
            .env("HOME", home)
            .env("CLAUDE_CONFIG_DIR", home.join("claude"));
        command.env("CLAUDE_CODE_EXECUTABLE", cli);
        command
            .env("ANTHROPIC_API_KEY", "sk-none")
            .env("RUST_LOG", "error");
        let mut child = command
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the agent has no output")?;
        let (tell, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let mut agent = Self {
            child,
            input,
            lines,
            last: 0,
        };
        let capabilities =
            json!({"subagents": {}, "session": {"notices": {}}, "_meta": {"terminal_output": true}});
        agent.call(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        )?;
        Ok(agent)
    }

    /// The first session, of one turn, with the memory after each of its steps.
    fn first_turn(&mut self, home: &Path) -> Result<()> {
        let opened = self.call("session/new", json!({"cwd": home, "mcpServers": []}))?;
        println!("after session/new: {}", self.sample()?);
        let id = opened["sessionId"].as_str().context("a session without an id")?;
        self.turn(id, 1)?;
        println!("after the first turn: {}", self.sample()?);
        self.call("session/close", json!({"sessionId": id}))?;
        Ok(())
    }

    /// A session from its beginning to its end.
    fn session(&mut self, home: &Path, turns: u64) -> Result<()> {
        let opened = self.call("session/new", json!({"cwd": home, "mcpServers": []}))?;
        let id = opened["sessionId"]
            .as_str()
            .context("a session without an id")?
            .to_owned();
        for turn in 0..turns {
            self.turn(&id, turn)?;
        }
        self.call("session/close", json!({"sessionId": id}))?;
        Ok(())
    }

    fn turn(&mut self, session: &str, number: u64) -> Result<()> {
        let bash = json!({"command": "touch file", "description": "Make a file"});
        let agent = json!({
            "description": "Look", "prompt": "%say seen", "subagent_type": "general-purpose", "run_in_background": true,
        });
        let text = match number % 10 {
            0 | 5 => format!("%say {}", "a long answer ".repeat(300)),
            3 | 7 => format!("%tool Bash {bash}\n%say done"),
            8 => format!("%tool Agent {agent}\n%say it runs"),
            9 => "%hang\n%say waiting".to_owned(),
            _ => format!("%say answer {number}"),
        };
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        let id = self.ask("session/prompt", prompt)?;
        let is_cancelled = number % 10 == 9;
        let answer = self.until(|agent, line| {
            if is_cancelled && line["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
                let cancel =
                    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
                agent.write(&cancel)?;
            }
            Ok(line["id"] == id && line.get("method").is_none())
        })?;
        let reason = if is_cancelled { "cancelled" } else { "end_turn" };
        ensure!(
            answer["result"]["stopReason"] == reason,
            "turn {number} ended otherwise: {answer}"
        );
        Ok(())
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.ask(method, params)?;
        let answer = self.until(|_, line| Ok(line["id"] == id && line.get("method").is_none()))?;
        ensure!(answer.get("error").is_none(), "{method}: {answer}");
        Ok(answer["result"].clone())
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<u64> {
        self.last += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))?;
        Ok(self.last)
    }

    /// Reads up to a line, and allows each call.
    fn until(&mut self, mut is_it: impl FnMut(&mut Self, &Value) -> Result<bool>) -> Result<Value> {
        loop {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .context("the agent says nothing any more")??;
            let line: Value = serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))?;
            if line["method"] == "session/request_permission" {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}});
                self.write(&json!({"jsonrpc": "2.0", "id": line["id"], "result": outcome}))?;
            }
            if is_it(self, &line)? {
                return Ok(line);
            }
        }
    }

    fn write(&mut self, line: &Value) -> Result<()> {
        let input = self.input.as_mut().context("the agent's input is closed")?;
        writeln!(input, "{line}").context("the agent does not read")
    }

    fn sample(&self) -> Result<Sample> {
        let proc = Path::new("/proc").join(self.child.id().to_string());
        let status =
            std::fs::read_to_string(proc.join("status")).context("cannot read the agent's memory")?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            number
                .and_then(|number| number.parse().ok())
                .with_context(|| format!("/proc has no {name}"))
        };
        let count = |of: &str| -> Result<u64> {
            let entries = std::fs::read_dir(proc.join(of)).with_context(|| format!("cannot read {of}"))?;
            Ok(u64::try_from(entries.count())?)
        };
        let mut children = 0;
        for task in std::fs::read_dir(proc.join("task")).context("cannot read the agent's threads")? {
            // A thread may have ended meanwhile.
            let of = std::fs::read_to_string(task?.path().join("children")).unwrap_or_default();
            children += of.split_whitespace().count();
        }
        Ok(Sample {
            resident: field("VmRSS:")?,
            own: field("RssAnon:")?,
            files: count("fd")?,
            children: u64::try_from(children)?,
        })
    }
}
