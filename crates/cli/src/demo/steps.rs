//! What happens in the demo, and whether it happened as it should.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use outrigger::permissions::{PermissionDecision, PermissionRequest};
use outrigger::protocol::tools::ToolInput;
use outrigger::{AmbientEvent, Event, Options, Outcome, Session, TurnUsage, Verdict};
use outrigger_protocol::RawJson;
use outrigger_sim::claude::Sandbox;
use serde_json::json;

use super::Model;
use super::demo_screen::DemoScreen;
use crate::exit::Status;
use crate::plain::plain;

/// What the scripted model says about background work that has ended.
pub(super) const AMBIENT: &str = "The background job is done; finished.txt is there.";

/// Longer than any step takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The script that the model writes, and what it prints: a sum that nobody put into the demo's answers.
const SCRIPT: &str = "i=1; sum=0\nwhile [ $i -le 10 ]; do sum=$((sum + i)); i=$((i + 1)); done\necho \"1 + 2 + ... + 10 = $sum\"\n";
const PRINTED: &str = "1 + 2 + ... + 10 = 55";

/// The steps, and what they need.
pub(super) struct Steps<'a> {
    pub(super) screen: &'a DemoScreen,
    pub(super) model: &'a Model,
    pub(super) sandbox: &'a Sandbox,
}

/// How the demo ended.
pub(super) enum DemoEnd {
    /// After so many steps.
    Well(usize),
    /// By a signal; nothing of it is left.
    Told(Status),
}

/// What was seen of a turn.
struct DemoTurn {
    text: String,
    pieces: usize,
    /// The results of the tool calls, and whether they are errors.
    results: Vec<(bool, String)>,
    outcome: Outcome,
}

impl Steps<'_> {
    /// Runs all steps.
    pub(super) async fn run(
        &self,
        options: Options,
        told: impl Future<Output = io::Result<Status>>,
    ) -> anyhow::Result<DemoEnd> {
        let mut told = pin!(told);
        let options = options.include_partial_messages(true).permissions(self.decide());
        let session = tokio::select! {
            session = options.start() => session.context("the session does not start")?,
            status = &mut told => return Ok(DemoEnd::Told(status?)),
        };
        let steps = async {
            self.tools(&session).await?;
            self.refusal(&session).await?;
            self.interrupt(&session).await?;
            self.background(&session).await
        };
        let done = tokio::select! {
            done = steps => done,
            status = &mut told => {
                session.kill().await?;
                return Ok(DemoEnd::Told(status?));
            }
        };
        if let Err(error) = done {
            self.screen.bad("this did not go as it should");
            session.kill().await?;
            return Err(error);
        }
        let closed = self.close(session).await;
        if closed.is_err() {
            self.screen.bad("this did not go as it should");
        }
        closed?;
        Ok(DemoEnd::Well(5))
    }

    /// Allows what is harmless in a directory that is thrown away, refuses to remove anything, and shows it.
    fn decide(&self) -> impl outrigger::permissions::PermissionHandler + use<> {
        let screen = self.screen.clone();
        move |request: PermissionRequest| {
            let what = call(&request.tool_name, &request.input);
            let decision = match request.tool() {
                ToolInput::Bash(bash) if bash.command.starts_with("rm ") => {
                    PermissionDecision::deny("it removes no files")
                }
                ToolInput::Bash(_) | ToolInput::Write(_) => PermissionDecision::allow(),
                _ => PermissionDecision::deny("this demo needs no such tool"),
            };
            let verdict = if decision.is_allow() {
                screen.paint.green("yes")
            } else {
                screen.paint.red("no, it removes no files")
            };
            screen.line(&format!(
                "   {}{}? the program says {verdict}",
                screen.paint.yellow(format!("{:<8}", "asks")),
                plain(&what)
            ));
            std::future::ready(decision)
        }
    }

    async fn tools(&self, session: &Session) -> anyhow::Result<()> {
        self.screen
            .step(1, "Tools: the model writes a script and runs it");
        let script = self.sandbox.project().join("sum.sh");
        let write = json!({"file_path": script, "content": SCRIPT});
        let run = json!({"command": "sh sum.sh", "description": "Run the script"});
        let directives = format!(
            "%say I write a script for that.\n%+tool Write {write}\n%tool Bash {run}\n%slow 25 chunk=4\n%say It ran: {}",
            self.model.last_result()
        );
        let seen = self
            .turn(
                session,
                "Add up the numbers from 1 to 10 with a shell script.",
                &directives,
            )
            .await?;
        completed(&seen)?;
        let written = std::fs::read_to_string(&script).context("the script was not written")?;
        ensure!(written == SCRIPT, "sum.sh does not hold what the model wrote");
        ensure!(
            seen.results.iter().all(|(is_error, _)| !is_error) && seen.results.len() == 2,
            "a tool failed:{}",
            said(&seen.results)
        );
        ensure!(
            seen.results.iter().any(|(_, text)| text.contains(PRINTED)),
            "the script did not print the sum:{}",
            said(&seen.results)
        );
        if matches!(self.model, Model::Api(_)) {
            ensure!(
                seen.text.contains(PRINTED),
                "the model did not get to see the sum"
            );
        }
        ensure!(seen.pieces > 3, "the text did not come in pieces");
        self.good(&format!("{}; the script is there", cost(&seen.outcome)));
        Ok(())
    }

    async fn refusal(&self, session: &Session) -> anyhow::Result<()> {
        self.screen
            .step(2, "Permissions: the program says no, and no it is");
        let remove = json!({"command": "rm sum.sh", "description": "Remove the script"});
        let directives = format!("%tool Bash {remove}\n%say I may not, so the script stays.");
        let seen = self
            .turn(session, "Remove the script again.", &directives)
            .await?;
        completed(&seen)?;
        ensure!(
            seen.results.len() == 1 && seen.results.iter().all(|(is_error, _)| *is_error),
            "the tool ran:{}",
            said(&seen.results)
        );
        ensure!(
            self.sandbox.project().join("sum.sh").exists(),
            "the script is gone"
        );
        self.good(&format!("{}; the script is still there", cost(&seen.outcome)));
        Ok(())
    }

    async fn interrupt(&self, session: &Session) -> anyhow::Result<()> {
        self.screen
            .step(3, "Interrupt: a slow answer is cut short, the session lives on");
        let long = "Once upon a time a boat went out to sea, and ".repeat(40);
        let shown = "Tell me a long story.";
        self.screen.event("you", shown);
        let mut turn = session
            .prompt(format!("{shown}\n%slow 60 chunk=5\n%say {long}"))
            .await?;
        let run = async {
            let mut pieces = 0;
            while let Some(event) = turn.next().await {
                if let Event::Text(text) = event? {
                    // What was on its way when the interrupt went out still comes.
                    pieces += 1;
                    if pieces <= 12 {
                        self.screen.piece(&text);
                    }
                    if pieces == 12 {
                        self.screen.event("you", "(interrupt)");
                        session.interrupt().await?;
                    }
                }
            }
            anyhow::Ok(turn.outcome().await?)
        };
        let outcome = tokio::time::timeout(PATIENCE, run)
            .await
            .context("the turn did not end in time")??;
        ensure!(
            outcome.verdict() == &Verdict::Interrupted,
            "the turn ended otherwise: {}",
            outcome.verdict()
        );
        self.good(&cost(&outcome));
        let seen = self
            .turn(session, "Never mind. Are you still there?", "%say Still here.")
            .await?;
        completed(&seen)?;
        ensure!(seen.text == "Still here.", "another answer came: {:?}", seen.text);
        self.good(&cost(&seen.outcome));
        Ok(())
    }

    async fn background(&self, session: &Session) -> anyhow::Result<()> {
        self.screen.step(
            4,
            "Background: a job outlives its turn, and its end begins a turn of its own",
        );
        let mut ambient = session.ambient();
        let job = json!({
            "command": "for part in 1 2 3 4 5; do sleep 0.2; done; echo done > finished.txt",
            "description": "Work for a second",
            "run_in_background": true,
        });
        let directives = format!("%tool Bash {job}\n%say It runs. I go on.\n%say {AMBIENT}");
        let seen = self
            .turn(session, "Do that in the background.", &directives)
            .await?;
        completed(&seen)?;
        let running = session.tasks().running().count();
        self.good(&format!(
            "{}; tasks in the background: {running}",
            cost(&seen.outcome)
        ));
        if session.tasks().iter().next().is_none() {
            return self.untold_background().await;
        }
        let woken = async {
            loop {
                match ambient.next().await {
                    Some(AmbientEvent::Event(Event::Text(text))) => self.screen.piece(&text),
                    Some(AmbientEvent::TurnEnded(outcome)) => return Ok(outcome),
                    Some(_) => {}
                    None => bail!("the session ended"),
                }
            }
        };
        let outcome = tokio::time::timeout(PATIENCE, woken)
            .await
            .context("the end of the job began no turn")??;
        // Older versions leave the origin out.
        ensure!(
            outcome.prompts().is_empty() && matches!(outcome.origin(), Some("task-notification") | None),
            "a turn with the origin {} came",
            outcome.origin().unwrap_or("of nobody")
        );
        let written = std::fs::read_to_string(self.sandbox.project().join("finished.txt"));
        let written = written.context("the job wrote no file")?;
        ensure!(written.trim() == "done", "the job wrote {written:?}");
        ensure!(session.tasks().running().count() == 0, "a task still runs");
        self.good(&format!("{}; finished.txt is there", cost(&outcome)));
        Ok(())
    }

    /// The end of a job of which the CLI tells nothing: the oldest versions neither name it nor begin a turn when it ends.
    async fn untold_background(&self) -> anyhow::Result<()> {
        let file = self.sandbox.project().join("finished.txt");
        let is_done = || std::fs::read_to_string(&file).is_ok_and(|written| written.trim() == "done");
        let written = async {
            while !is_done() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, written)
            .await
            .context("the job wrote no file")?;
        self.good(
            "finished.txt is there; this version of Claude Code tells nothing of jobs in the background",
        );
        Ok(())
    }

    /// Ends the session, and looks whether anything of it is left.
    async fn close(&self, session: Session) -> anyhow::Result<()> {
        self.screen.step(
            5,
            "The end: everything is accounted for, and nothing is left behind",
        );
        let (pid, stats, usage) = (session.pid(), session.stats(), session.usage());
        let exit = tokio::time::timeout(PATIENCE, session.close())
            .await
            .context("the session did not end in time")??;
        self.screen.event(
            "session",
            &format!(
                "{} results, {} frames, {} bytes; {} of unknown kind, {} undecodable",
                usage.results,
                stats.frames,
                stats.bytes,
                stats.unknown.values().sum::<u64>(),
                stats.misfits
            ),
        );
        let total = usage.total();
        self.screen.event(
            "usage",
            &format!(
                "{} tokens in, {} out, ${:.4} by the CLI's price list",
                total.input, total.output, usage.cost_usd
            ),
        );
        if let Model::Api(api) = self.model {
            self.screen.event(
                "model",
                &format!("{} requests, all at 127.0.0.1", api.message_requests().len()),
            );
        }
        ensure!(
            stats.misfits == 0 && stats.unanswered_by_us == 0 && stats.unanswered_by_cli == 0,
            "something was left open: {} requests of the CLI and {} of this program without an answer, {} frames that could not be read",
            stats.unanswered_by_us,
            stats.unanswered_by_cli,
            stats.misfits
        );
        ensure!(
            exit.code == Some(0),
            "the CLI ended otherwise than it should: {exit}"
        );
        let left = left_behind(self.sandbox)?;
        let names: Vec<String> = left.iter().map(|process| process.display().to_string()).collect();
        ensure!(left.is_empty(), "processes are left: {}", names.join(", "));
        self.good(&match pid {
            Some(pid) => format!("process {pid} ended with exit code 0, and none of its children is left"),
            None => "the simulated process ended with exit code 0".to_owned(),
        });
        Ok(())
    }

    /// Runs a prompt and shows what happens. The directives, which tell the scripted model what to say, are not shown.
    async fn turn(&self, session: &Session, prompt: &str, directives: &str) -> anyhow::Result<DemoTurn> {
        self.screen.event("you", prompt);
        let mut turn = session.prompt(format!("{prompt}\n{directives}")).await?;
        let run = async {
            let (mut text, mut pieces, mut results) = (String::new(), 0, Vec::new());
            while let Some(event) = turn.next().await {
                match event? {
                    Event::Text(piece) => {
                        self.screen.piece(&piece);
                        text.push_str(&piece);
                        pieces += 1;
                    }
                    Event::ToolUse(tool) => {
                        text.clear();
                        self.screen.event("tool", &call(&tool.name, &tool.input));
                    }
                    Event::ToolResult(result) => {
                        let first = result.text.lines().next().unwrap_or_default().to_owned();
                        let shown = first.chars().take(100).collect::<String>();
                        self.screen.event("result", &shown);
                        results.push((result.is_error, result.text));
                    }
                    Event::ApiError { kind, text } => bail!("the scripted model failed: {kind}: {text}"),
                    Event::Undecodable(_, misfit) => bail!("a frame could not be read: {misfit}"),
                    _ => {}
                }
            }
            let outcome = turn.outcome().await?;
            Ok(DemoTurn {
                text,
                pieces,
                results,
                outcome,
            })
        };
        tokio::time::timeout(PATIENCE, run)
            .await
            .context("the turn did not end in time")?
    }

    fn good(&self, text: &str) {
        self.screen.good(text);
    }
}

fn completed(seen: &DemoTurn) -> anyhow::Result<()> {
    ensure!(
        seen.outcome.verdict() == &Verdict::Completed,
        "the turn ended otherwise: {}",
        seen.outcome.verdict()
    );
    Ok(())
}

/// What tools said, failures first: they are what is looked for.
fn said(results: &[(bool, String)]) -> String {
    let mut results: Vec<&(bool, String)> = results.iter().collect();
    results.sort_by_key(|(is_error, _)| !is_error);
    let one = |(is_error, text): &(bool, String)| {
        let kind = if *is_error { "failure" } else { "result" };
        format!("\n  {kind}: {}", plain(text.trim()).replace('\n', "\n    "))
    };
    match results.as_slice() {
        [] => " no tool said anything".to_owned(),
        results => results.iter().map(|result| one(result)).collect(),
    }
}

/// A tool call in a few words.
fn call(name: &str, input: &RawJson) -> String {
    let input = input.decode::<serde_json::Value>().unwrap_or_default();
    let detail = match (input["command"].as_str(), input["file_path"].as_str()) {
        (Some(command), _) => command,
        (None, Some(path)) => path.rsplit(['/', '\\']).next().unwrap_or(path),
        (None, None) => "",
    };
    format!("{name} {detail}")
}

/// How a turn ended, and what it took.
fn cost(outcome: &Outcome) -> String {
    let usage: &TurnUsage = outcome.usage();
    let total = usage.total();
    let time = outcome
        .duration_ms()
        .map(|ms| format!(", {:.1} s", ms as f64 / 1000.0));
    format!(
        "{}{}, {} tokens in, {} out, ${:.4}",
        outcome.verdict(),
        time.unwrap_or_default(),
        total.input,
        total.output,
        outcome.cost()
    )
}

/// The processes that work in the sandbox, where the system tells; none elsewhere.
fn left_behind(sandbox: &Sandbox) -> anyhow::Result<Vec<PathBuf>> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir("/proc").context("cannot list the processes")?;
    Ok(entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|process| {
            // Other users' processes cannot be read, and are none of the demo's.
            std::fs::read_link(process.join("cwd"))
                .is_ok_and(|cwd| super::get::is_below(&cwd, sandbox.path()))
        })
        .collect())
}
