//! Plays a scenario to a CLI, whichever it is.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{ClaudeProcess, Launch, Sandbox, Seen};
use outrigger_sim::conform::{Kinds, Spoken, placeless};
use serde_json::{Value, json};

use super::scenario::{Reply, Run, Scenario, Step};

/// How long a wait may take. The real CLI needs a second or two to start, on a machine that is busy more.
const PATIENCE: Duration = Duration::from_secs(40);

/// What a process that has ended makes of a step.
const ENDED: &[&str] = &["stdout ended", "cannot write to stdin"];

/// What came of a play.
#[derive(Default)]
pub(crate) struct Played {
    /// What the CLI said, with how each process ended behind its frames.
    pub(crate) spoken: Spoken,
    /// How its requests were answered.
    pub(crate) replies: Vec<String>,
}

/// Plays all processes of a scenario in a new place and keeps what was said in a file.
pub(crate) async fn play(scenario: &Scenario, executable: &Path, keep: &Path) -> Result<Played, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let api = MessagesApi::builder()
        .start()
        .await
        .map_err(|error| text(&error))?;
    let sandbox = Sandbox::new().map_err(|error| text(&error))?;
    for (path, content) in &scenario.files {
        sandbox.write(path, content).map_err(|error| text(&error))?;
    }
    for (path, target) in &scenario.links {
        link(&sandbox.project().join(path), target).map_err(|error| text(&error))?;
    }
    let mut played = Played::default();
    let (mut session, mut answer) = (String::new(), String::new());
    let mut said = String::new();
    let mut problem = None;
    for run in &scenario.runs {
        let place = Place {
            project: sandbox.project().to_string_lossy().into_owned(),
            root: sandbox.path().to_string_lossy().into_owned(),
            session: session.clone(),
            answer: std::mem::take(&mut answer),
            task: String::new(),
        };
        let launch = launch(run, executable, &sandbox, &api, &place);
        let claude = launch.spawn().map_err(|error| text(&error))?;
        let transcript = claude.transcript().clone();
        let mut player = Player {
            run,
            place,
            kinds: Kinds::default(),
            frames: Vec::new(),
            open: Vec::new(),
            unmatched: 0,
            replies: Vec::new(),
        };
        let outcome = player.play(claude).await;
        for entry in transcript.entries() {
            said += &serde_json::to_string(&entry).map_err(|error| text(&error))?;
            said.push('\n');
        }
        for (_, frame) in &player.frames {
            if let Some(id) = frame["session_id"].as_str() {
                session = id.to_owned();
            }
            if let ("assistant", true, Some(id)) = (
                frame["type"].as_str().unwrap_or_default(),
                answer.is_empty(),
                frame["uuid"].as_str(),
            ) {
                answer = id.to_owned();
            }
        }
        let root = sandbox.path().to_string_lossy();
        let frames = player.frames.drain(..);
        played.replies.append(&mut player.replies);
        played
            .spoken
            .frames
            .extend(frames.map(|(kind, frame)| (kind, placeless(&frame, &[(&root, "{root}")]))));
        match outcome {
            Ok(code) => {
                let code = code.map_or_else(|| "signal".to_owned(), |code| code.to_string());
                played.spoken.frames.push((format!("exit/{code}"), Value::Null));
            }
            // A drawn process may be one that either CLI refuses to start.
            Err(error)
                if scenario.name.starts_with(super::DRAWN) && ENDED.iter().any(|why| error.contains(why)) =>
            {
                played
                    .spoken
                    .frames
                    .push(("ended too early".to_owned(), Value::Null));
                break;
            }
            Err(error) => {
                problem = Some(error);
                break;
            }
        }
    }
    std::fs::write(keep, said).map_err(|error| text(&error))?;
    api.shutdown().await;
    if !scenario.lasts() {
        leave_out_slow_commands(&mut played.spoken);
    }
    match problem {
        None => Ok(played),
        // The first line says what was waited for; the rest is in the file.
        Some(problem) => Err(format!("{} (see {})", first_line(&problem), keep.display())),
    }
}

/// Takes out the frames about commands in the foreground that took two seconds. No command of the scenario waits for anything, so
/// it was the machine that took them: a program that is started for the first time is read from the disk.
fn leave_out_slow_commands(spoken: &mut Spoken) {
    let mut slow = BTreeSet::new();
    spoken.frames.retain(|(kind, frame)| {
        let task = frame["task_id"].as_str().unwrap_or_default();
        match kind.as_str() {
            "system/task_started"
                if frame["is_backgrounded"] == false && frame["task_type"] == "local_bash" =>
            {
                slow.insert(task.to_owned());
                false
            }
            "system/task_notification" => !slow.contains(task),
            "tool_progress" => frame["heartbeat"] != true || frame["tool_name"] != "Bash",
            _ => true,
        }
    });
}

#[test]
fn frames_about_a_slow_command_are_left_out_and_those_about_others_stay() {
    let frame = |kind: &str, frame| (kind.to_owned(), frame);
    let others = [
        frame(
            "system/task_started",
            json!({"task_id": "b", "is_backgrounded": true, "task_type": "local_bash"}),
        ),
        frame(
            "system/task_started",
            json!({"task_id": "c", "is_backgrounded": false, "task_type": "local_agent"}),
        ),
        frame("system/task_notification", json!({"task_id": "b"})),
        frame("tool_progress", json!({"tool_name": "Agent", "heartbeat": true})),
    ];
    let slow = [
        frame(
            "system/task_started",
            json!({"task_id": "a", "is_backgrounded": false, "task_type": "local_bash"}),
        ),
        frame("tool_progress", json!({"tool_name": "Bash", "heartbeat": true})),
        frame("system/task_notification", json!({"task_id": "a"})),
    ];
    let mut spoken = Spoken::new(slow.into_iter().chain(others.clone()));
    leave_out_slow_commands(&mut spoken);
    assert_eq!(spoken.frames, others);
    let lasts = |command: &str| Scenario::new("one").turn(command).lasts();
    assert!(lasts("sleep 5") && lasts("until [ -e go ]; do sleep 0.1; done"));
    assert!(!lasts("sleep 0") && !lasts("ls"));
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(unix)]
fn link(path: &Path, target: &str) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &str) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// What stands for something in flags and frames.
struct Place {
    project: String,
    /// What the project and the home are in.
    root: String,
    session: String,
    /// The uuid of the first answer of the process before.
    answer: String,
    /// The last task that was started.
    task: String,
}

impl Place {
    fn fill(&self, text: &str) -> String {
        text.replace("{project}", &self.project)
            .replace("{root}", &self.root)
            .replace("{session}", &self.session)
            .replace("{answer}", &self.answer)
            .replace("{task}", &self.task)
    }
}

fn launch(run: &Run, executable: &Path, sandbox: &Sandbox, api: &MessagesApi, place: &Place) -> Launch {
    let mut launch = Launch::new(executable, sandbox, &api.base_url())
        .patience(PATIENCE)
        .env("OUTRIGGER_SIM_REAL_TOOLS", "1");
    if run.unprompted {
        launch = launch.args([
            "--output-format",
            "stream-json",
            "--verbose",
            "--input-format",
            "stream-json",
        ]);
    }
    for flag in &run.flags {
        launch = launch.arg(place.fill(flag));
    }
    for (name, value) in &run.variables {
        launch = launch.env(*name, *value);
    }
    launch
}

/// Sends a signal to the process.
#[cfg(unix)]
pub(crate) fn signal(claude: &ClaudeProcess, name: &str) -> Result<(), String> {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match name {
        "TERM" => Signal::TERM,
        "INT" => Signal::INT,
        "HUP" => Signal::HUP,
        "KILL" => Signal::KILL,
        other => return Err(format!("no signal is called {other} here")),
    };
    let id = claude.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let id = id.ok_or("the process has ended already")?;
    kill_process(id, signal).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
pub(crate) fn signal(_: &ClaudeProcess, name: &str) -> Result<(), String> {
    Err(format!("there is no SIG{name} here"))
}

/// The frame that answers a request of the CLI.
fn answer_to(id: &Value, payload: Value) -> Value {
    let response = json!({"subtype": "success", "request_id": id, "response": payload});
    json!({"type": "control_response", "response": response})
}

struct Player<'a> {
    run: &'a Run,
    place: Place,
    kinds: Kinds,
    frames: Vec<(String, Value)>,
    /// The requests of the CLI that nobody has answered.
    open: Vec<Value>,
    /// The first frame that the next wait looks at. A frame may come before the reply to the request that caused it.
    unmatched: usize,
    /// The replies to requests of the CLI, before places are filled in.
    replies: Vec<String>,
}

impl Player<'_> {
    async fn play(&mut self, mut claude: ClaudeProcess) -> Result<Option<i32>, String> {
        for (number, step) in self.run.steps.iter().enumerate() {
            let explain = |error: String| format!("step {} ({step:?}): {error}", number + 1);
            self.step(&mut claude, number, step).await.map_err(explain)?;
        }
        // What a signal does is not to be confused with the end of the input.
        if !matches!(self.run.steps.last(), Some(Step::Signal(_))) {
            claude.close_stdin();
        }
        while let Some(seen) = claude.next().await.map_err(|error| error.to_string())? {
            self.take(&mut claude, seen).await?;
        }
        let (status, _) = claude.finish().await.map_err(|error| error.to_string())?;
        Ok(status.code())
    }

    async fn step(&mut self, claude: &mut ClaudeProcess, number: usize, step: &Step) -> Result<(), String> {
        let sent = match step {
            Step::Send(frame) => {
                self.kinds.of_client(frame);
                claude.send(&self.fill(frame)).await
            }
            Step::Line(line) => claude.send_line(&self.place.fill(line)).await,
            Step::Until(kind) => return self.until(claude, |seen, _| seen.starts_with(kind)).await,
            Step::UntilEach(kinds) => {
                let mut left = kinds.clone();
                let is_last = |seen: &str, _: &Value| {
                    if let Some(at) = left.iter().position(|kind| seen.starts_with(kind)) {
                        left.swap_remove(at);
                    }
                    left.is_empty()
                };
                return self.until(claude, is_last).await;
            }
            Step::UntilFile(path) => return self.until_file(claude, path).await,
            Step::MakeFile(path) => {
                let path = Path::new(&self.place.project).join(path);
                return std::fs::write(path, "").map_err(|error| error.to_string());
            }
            Step::AnswerOpen(text, payload) => {
                let asked = self.opened(claude, text).await?;
                let mut payload = self.fill(payload);
                if let Some(response) = payload.get_mut("mcp_response") {
                    response["id"] = asked["request"]["message"]["id"].clone();
                }
                claude.send(&answer_to(&asked["request_id"], payload)).await
            }
            Step::Eof => {
                claude.close_stdin();
                Ok(())
            }
            Step::Signal(name) => return signal(claude, name),
            Step::Control(request) => {
                let id = format!("ask_{number}");
                let request = self.fill(request);
                let frame = json!({"type": "control_request", "request_id": id, "request": request});
                self.kinds.of_client(&frame);
                let before = self.frames.len();
                claude.send(&frame).await.map_err(|error| error.to_string())?;
                self.until(claude, |_, frame| {
                    frame["type"] == "control_response" && frame["response"]["request_id"] == id.as_str()
                })
                .await?;
                self.unmatched = before;
                return Ok(());
            }
        };
        sent.map_err(|error| error.to_string())
    }

    /// Takes the open request with this text. The CLI may still be about to send it: calls of one response take different times.
    async fn opened(&mut self, claude: &mut ClaudeProcess, text: &str) -> Result<Value, String> {
        loop {
            if let Some(place) = self
                .open
                .iter()
                .position(|frame| frame.to_string().contains(text))
            {
                return Ok(self.open.remove(place));
            }
            let seen = claude.next().await.map_err(|error| error.to_string())?;
            let seen = seen.ok_or("stdout ended before such a request was open")?;
            self.take(claude, seen).await?;
        }
    }

    async fn until(
        &mut self,
        claude: &mut ClaudeProcess,
        mut condition: impl FnMut(&str, &Value) -> bool,
    ) -> Result<(), String> {
        loop {
            while let Some((kind, frame)) = self.frames.get(self.unmatched) {
                self.unmatched += 1;
                if condition(kind, frame) {
                    return Ok(());
                }
            }
            let seen = claude.next().await.map_err(|error| error.to_string())?;
            let seen = seen.ok_or("stdout ended")?;
            self.take(claude, seen).await?;
        }
    }

    /// What a command does shows nowhere else while it runs.
    async fn until_file(&mut self, claude: &mut ClaudeProcess, path: &str) -> Result<(), String> {
        let path = Path::new(&self.place.project).join(path);
        let began = tokio::time::Instant::now();
        while !path.exists() {
            if began.elapsed() > PATIENCE {
                return Err(format!("{} did not appear within {PATIENCE:?}", path.display()));
            }
            // What the CLI asks meanwhile is answered. Where nothing is, the frames are left for the next step.
            if self.run.answers.is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            } else if let Ok(seen) = tokio::time::timeout(Duration::from_millis(10), claude.next()).await {
                let seen = seen.map_err(|error| error.to_string())?.ok_or("stdout ended")?;
                self.take(claude, seen).await?;
            }
        }
        Ok(())
    }

    /// Keeps a frame, and answers it if it asks for something.
    async fn take(&mut self, claude: &mut ClaudeProcess, seen: Seen) -> Result<(), String> {
        let kind = self.kinds.of_cli(&seen.value);
        self.frames.push((kind, seen.value.clone()));
        if seen.frame.subtype() == Some("task_started") {
            self.place.task = seen.value["task_id"].as_str().unwrap_or_default().to_owned();
        }
        if seen.value["type"] != "control_request" {
            return Ok(());
        }
        let subtype = seen.value["request"]["subtype"].as_str();
        let answers = &self.run.answers;
        let answer = answers.iter().rev().find(|(asked, _)| Some(*asked) == subtype);
        // The place is filled in again, so an answer may depend on the request and be the same in each place.
        let request = placeless(&seen.value["request"], &[(&self.place.root, "{root}")]);
        let Some(reply) = answer.and_then(|(_, answer)| answer(&request)) else {
            self.open.push(seen.value);
            return Ok(());
        };
        self.replies.push(format!("{reply:?}"));
        let id = &seen.value["request_id"];
        let frame = match reply {
            Reply::Payload(payload) => answer_to(id, self.fill(&payload)),
            Reply::Error(error) => {
                let response = json!({"subtype": "error", "request_id": id, "error": error});
                json!({"type": "control_response", "response": response})
            }
        };
        // It may have closed stdin meanwhile, since it ends.
        let _ = claude.send(&frame).await;
        Ok(())
    }

    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.place.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.fill(value)))
                .collect(),
            other => other.clone(),
        }
    }
}
