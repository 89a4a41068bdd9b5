//! What tools do.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::background::{self, Task};
use super::brain::{CallPlan, CallResult, ToolOutcome};
use super::caller::{CallLine, Caller, Halt, Made, ModelCall};
use super::context::{Abort, AgentState, Context};
use super::mcp;
use super::permission;
use super::rules::{PermissionRule, RuleSource};
use super::subagent::is_agent_tool;
use super::turn::INTERRUPTED;
use super::{Config, disk, judge, not_simulated, paths, payload, plans, shell, structured, todos};

/// After this long a foreground command is announced as a task.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(3);

/// How long a command may take whose call does not say.
const LONGEST_RUN: Duration = Duration::from_secs(120);

/// How often a tool that runs gives a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Tools that exist only if a person can answer.
const NEED_A_PERSON: &[&str] = &["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

/// The output of a command so far.
pub(super) type Output = Arc<Mutex<String>>;

/// What came out of a tool, and the exit code if it was a command.
pub(super) struct Ran {
    pub(super) outcome: ToolOutcome,
    pub(super) code: i32,
}

/// The tools that look for files, which are there where a flag allows one of them, and where there is no `Bash`.
pub(super) const SEARCH: [&str; 2] = ["Glob", "Grep"];

/// The tools of the CLI's own that a session has, but for those that rules take away.
fn chosen(config: &Config, state: &AgentState) -> Vec<String> {
    let Some(chosen) = &config.tools else {
        let mut tools = payload::tools();
        let rules = &state.rules;
        let is_allowed = |rule: &PermissionRule| {
            rule.source == RuleSource::CliArg && SEARCH.iter().any(|tool| rule.is_about(tool))
        };
        let searches =
            rules.deny.iter().any(|rule| rule.is_for_all("Bash")) || rules.allow.iter().any(is_allowed);
        if searches {
            let place = tools
                .iter()
                .position(|tool| tool.as_str() > "Grep" && tool != "Task");
            let place = place.unwrap_or(tools.len());
            tools.splice(place..place, SEARCH.map(str::to_owned));
        }
        if judge::disallowed(rules, "Bash") {
            tools.retain(|tool| tool != "Monitor");
        }
        return tools;
    };
    // The order is that of the CLI, which calls the tool that starts subagents `Agent` there.
    let mut chosen = chosen.clone();
    chosen.sort_by_key(|tool| {
        if tool == "Task" {
            "Agent".to_owned()
        } else {
            tool.clone()
        }
    });
    chosen.dedup();
    chosen
}

/// The tools that `system/init` lists.
pub(super) fn listed(config: &Config, state: &AgentState) -> Vec<String> {
    let mut tools = chosen(config, state);
    if !config.permission_prompts {
        tools.retain(|tool| !NEED_A_PERSON.contains(&tool.as_str()));
    }
    tools.retain(|tool| !todos::has(tool));
    for todo in todos::tools(config, state) {
        let wanted = config
            .tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|tool| tool == todo));
        if wanted {
            let place = tools.iter().position(|tool| tool.as_str() > *todo);
            tools.insert(place.unwrap_or(tools.len()), (*todo).to_owned());
        }
    }
    tools.extend(config.handlers.iter().map(|(name, _)| name.clone()));
    if state.schema.is_some() {
        let place = tools.iter().position(|tool| tool.as_str() > structured::TOOL);
        tools.insert(place.unwrap_or(tools.len()), structured::TOOL.to_owned());
    }
    tools.extend(mcp::tool_names(&state.servers));
    tools.retain(|tool| !judge::disallowed(&state.rules, tool));
    tools
}

/// Why there is no such tool; none if there is.
pub(super) fn missing(ctx: &Context, name: &str) -> Option<String> {
    let config = &ctx.config;
    if config.handlers.iter().any(|(tool, _)| tool == name) {
        return None;
    }
    // The tool that starts subagents is listed under its old name, and has both names.
    let listed = |tools: &[String]| {
        let name_of = |tool: &String| tool == name || (is_agent_tool(tool) && is_agent_tool(name));
        tools.iter().any(name_of)
    };
    let left_out = config.tools.as_ref().is_some_and(|tools| !listed(tools)) && listed(&payload::tools());
    if left_out || judge::disallowed(&ctx.state().rules, name) {
        let why = format!("{name} is disabled for this session, in subagents as well as here.");
        return Some(format!("No such tool available: {name}. {why}"));
    }
    if mcp::find(ctx, name).is_some() {
        return None;
    }
    if !config.permission_prompts && NEED_A_PERSON.contains(&name) {
        return Some(format!("No such tool available: {name}"));
    }
    let known = match &config.tools {
        _ if todos::has(name) => {
            todos::tools(config, &ctx.state()).contains(&name)
                && config.tools.as_ref().is_none_or(|tools| listed(tools))
        }
        _ => listed(&chosen(config, &ctx.state())),
    };
    (!known).then(|| format!("No such tool available: {name}"))
}

impl Caller {
    /// Runs a tool that may run.
    pub(super) async fn work(
        &self,
        call: ModelCall,
        meta: Value,
        messages: Vec<String>,
    ) -> Result<Made, Halt> {
        let began = self.ctx.log.elapsed();
        let stopped = |why| Halt::Abort(why, permission::STOPPED);
        let outcome = match &call.plan {
            CallPlan::Outcome(outcome) => Ok(outcome.clone()),
            _ if is_agent_tool(&call.name) && !self.is_handled(&call.name) => self.run_agent(&call).await,
            _ => self.run_tool(&call).await,
        };
        let mut outcome = outcome.map_err(stopped)?;
        if call.by_user && outcome.details["userModified"] == false {
            outcome.details["userModified"] = json!(true);
        }
        let took = self.ctx.log.elapsed().saturating_sub(began);
        let behind = self
            .after_tool(&call, &mut outcome, took)
            .await
            .map_err(stopped)?;
        let mut block = json!({"type": "tool_result", "tool_use_id": call.id, "content": outcome.content});
        if let Some(is_error) = outcome.is_error {
            block["is_error"] = json!(is_error);
        }
        let mut meta = meta;
        if outcome.content == INTERRUPTED {
            meta["non_execution_kind"] = json!("interrupted");
        }
        meta["id"] = json!(call.id);
        let extra = json!({"tool_use_result": outcome.details, "tool_result_meta": [meta]});
        let mut lines: Vec<CallLine> = messages.into_iter().map(CallLine::Message).collect();
        lines.push(CallLine::result(block, extra));
        lines.extend(behind.into_iter().map(CallLine::Message));
        Ok(Made {
            result: CallResult {
                name: call.name,
                content: outcome.content,
                is_error: outcome.is_error == Some(true),
            },
            lines,
        })
    }

    async fn run_tool(&self, call: &ModelCall) -> Result<ToolOutcome, Abort> {
        let output = Output::default();
        let mut job = tokio::spawn(execute(
            self.ctx.clone(),
            call.name.clone(),
            call.used.clone(),
            call.id.clone(),
            call.plan.clone(),
            output.clone(),
            self.reader(),
        ));
        let is_command = call.name == "Bash" && !self.is_handled("Bash");
        if !is_command {
            return match self.or_abort(&mut job).await {
                Ok(ran) => {
                    Ok(ran.map_or_else(|_| ToolOutcome::error("the tool broke down"), |ran| ran.outcome))
                }
                Err(why) => {
                    job.abort();
                    Err(why)
                }
            };
        }
        let description = call.used["description"]
            .as_str()
            .or(call.used["command"].as_str())
            .unwrap_or_default();
        let (mut task, moved) = Task::new(&self.ctx, &call.id, description, &output, &job);
        if let CallPlan::Command { tag, .. } = &call.plan {
            task.tag = Some(*tag);
        }
        if call.used["run_in_background"] == true {
            return Ok(background::start(&self.ctx, task, job).await);
        }
        self.ctx.state().commands += 1;
        let outcome = self.watch_command(call, task, moved, job, &output).await;
        self.ctx.state().commands -= 1;
        outcome
    }

    /// Waits for a command in the foreground.
    async fn watch_command(
        &self,
        call: &ModelCall,
        mut task: Task,
        moved: oneshot::Receiver<()>,
        mut job: JoinHandle<Ran>,
        output: &Output,
    ) -> Result<ToolOutcome, Abort> {
        let mut terminating = self.ctx.terminating.subscribe();
        let mut announced = false;
        let mut beats = 0_u64;
        let mut moved = Some(moved);
        let began = tokio::time::Instant::now();
        // The clock of a test may jump beyond the time that a command has where the input does not say.
        let usual = self.ctx.config.real_tools.then_some(LONGEST_RUN);
        let limit = call.used["timeout"]
            .as_f64()
            .map(|most| Duration::from_millis(most as u64));
        let limit = limit.or(usual).filter(|limit| !limit.is_zero());
        loop {
            let next = if announced {
                HEARTBEAT * (beats as u32 + 1)
            } else {
                ANNOUNCED_AFTER
            };
            let backgrounded = async {
                match &mut moved {
                    Some(moved) => moved.await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            let step = async {
                tokio::select! {
                    biased;
                    ran = &mut job => ToolStep::Done(ran.ok()),
                    moved = backgrounded => if moved { ToolStep::Moved } else { ToolStep::Gone },
                    Ok(_) = terminating.wait_for(|terminating| *terminating) => ToolStep::Killed,
                    () = tokio::time::sleep_until(began + limit.unwrap_or_default()), if limit.is_some() => ToolStep::Late,
                    () = tokio::time::sleep_until(began + next) => ToolStep::Beat,
                }
            };
            // A prompt that is to come at once waits for the command.
            match self.or_aborted_by(|why| why != Abort::Displaced, step).await {
                Ok(ToolStep::Late) => {
                    let limit = limit.unwrap_or_default();
                    let said = command_outcome("", 0, output).details["stdout"].clone();
                    let said = said.as_str().unwrap_or_default();
                    let before = if said.is_empty() {
                        String::new()
                    } else {
                        format!("{said}\n")
                    };
                    let command = call.used["command"].as_str().unwrap_or_default();
                    if command.trim_start().starts_with("sleep ") {
                        job.abort();
                        if announced {
                            background::end_foreground(&self.ctx, &task.id, "stopped").await;
                        }
                        let text = format!(
                            "Exit code 143\n{before}Command timed out after {}s",
                            limit.as_secs()
                        );
                        return Ok(ToolOutcome::error(text));
                    }
                    let id = task.id.clone();
                    let mut outcome = if announced {
                        background::moved(&self.ctx, &id, job).await
                    } else {
                        background::start(&self.ctx, task, job).await
                    };
                    outcome.content = json!(format!(
                        "{before}Command did not complete within its {}s timeout and was moved to the background (ID: {id}). \
                         Output is being written to: {}. You will be notified when it completes.",
                        limit.as_millis().div_ceil(1000),
                        self.ctx.output_file(&id)
                    ));
                    if let Some(details) = outcome.details.as_object_mut() {
                        details.shift_remove("backgroundedByUser");
                        details.insert("stdout".to_owned(), json!(said));
                        details.insert("timedOutAfterMs".to_owned(), json!(limit.as_millis() as u64));
                    }
                    return Ok(outcome);
                }
                Ok(ToolStep::Done(ran)) => {
                    if announced {
                        background::end_foreground(&self.ctx, &task.id, "completed").await;
                    }
                    let broke = || ToolOutcome::error("the command was killed");
                    return Ok(ran.map_or_else(broke, |ran| ran.outcome));
                }
                Ok(ToolStep::Moved) => return Ok(background::moved(&self.ctx, &task.id, job).await),
                Ok(ToolStep::Gone) => moved = None,
                Ok(ToolStep::Killed) => {
                    job.abort();
                    return Ok(command_outcome("", 137, output));
                }
                Ok(ToolStep::Beat) if !announced => {
                    announced = true;
                    let line = task.started(false);
                    self.ctx
                        .state()
                        .tasks
                        .push(std::mem::replace(&mut task, Task::placeholder()));
                    let id = line["task_id"].as_str().unwrap_or_default();
                    id.clone_into(&mut task.id);
                    self.ctx.send_system("task_started", line).await;
                }
                Ok(ToolStep::Beat) => {
                    let line = json!({
                        "type": "tool_progress",
                        "tool_use_id": format!("{}-heartbeat-{beats}", call.id),
                        "parent_tool_use_id": call.id,
                        "tool_name": call.name,
                        "elapsed_time_seconds": began.elapsed().as_secs(),
                        "heartbeat": true,
                    });
                    beats += 1;
                    self.ctx.send_stamped(line).await;
                }
                Err(why) => {
                    job.abort();
                    if announced {
                        background::end_foreground(&self.ctx, &task.id, "stopped").await;
                    }
                    return Err(why);
                }
            }
        }
    }
}

enum ToolStep {
    Done(Option<Ran>),
    /// The client has moved it to the background.
    Moved,
    /// The process is to end.
    Killed,
    /// It has taken too long.
    Late,
    /// Nobody can do that any more.
    Gone,
    Beat,
}

/// Runs a tool.
async fn execute(
    ctx: Arc<Context>,
    name: String,
    input: Value,
    id: String,
    plan: CallPlan,
    output: Output,
    by: disk::Viewer,
) -> Ran {
    if let CallPlan::Command {
        after,
        output: text,
        code,
        ..
    } = &plan
    {
        if !after.is_zero() {
            tokio::time::sleep(*after).await;
        }
        output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(text);
        return Ran {
            outcome: command_outcome("", *code, &output),
            code: *code,
        };
    }
    let real = match &plan {
        CallPlan::RunReal => true,
        CallPlan::RunSimulated => false,
        _ => ctx.config.real_tools,
    };
    if let Some((_, run)) = ctx.config.handlers.iter().rev().find(|(tool, _)| *tool == name) {
        let outcome = run(&input);
        let code = i32::from(outcome.is_error == Some(true));
        return Ran { outcome, code };
    }
    let outcome = match name.as_str() {
        "Bash" => {
            let command = input["command"].as_str().unwrap_or_default();
            let before = disk::stale(&ctx, &by, real).await;
            let code = if real {
                real_command(&ctx, command, &output, by.is_none()).await
            } else {
                pretended_command(&ctx, command, &output).await
            };
            if code == 0 {
                disk::show(&ctx, &by, command, real).await;
            }
            let outcome = bounded(&ctx, command_outcome(command, code, &output), real).await;
            let changed = disk::stale(&ctx, &by, real).await.into_iter();
            let changed = changed.filter(|path| !before.contains(path));
            let outcome = match shell::edits_in_place(command) {
                true => with_hint(&ctx, outcome, &changed.collect::<Vec<_>>()),
                false => outcome,
            };
            return Ran { outcome, code };
        }
        name if name.starts_with("mcp__") => match mcp::find(&ctx, name) {
            Some(found) => mcp::run(&ctx, &found, &input, &id).await,
            None => ToolOutcome::error(format!("No such tool available: {name}")),
        },
        "Read" => disk::read(&ctx, &by, &input, real).await,
        "Write" => disk::write(&ctx, &by, &input, real).await,
        "Edit" => disk::edit(&ctx, &by, &input, real).await,
        "AskUserQuestion" => plans::answered(&input),
        "EnterPlanMode" => plans::switch(&ctx, true).await,
        "ExitPlanMode" => plans::switch(&ctx, false).await,
        _ => {
            todos::run(&ctx, &name, &input).unwrap_or_else(|| ToolOutcome::error(not_simulated::tool(&name)))
        }
    };
    let code = i32::from(outcome.is_error == Some(true));
    Ran { outcome, code }
}

/// Commands that write nothing if they succeed.
const SILENT: &[&str] = &[
    "cd", "chgrp", "chmod", "chown", "cp", "export", "ln", "mkdir", "mv", "rm", "rmdir", "touch", "unset",
    "wait",
];

fn command_outcome(command: &str, code: i32, output: &Output) -> ToolOutcome {
    let output = output.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let output = output.trim_end();
    let (stdout, stderr) = output.split_at(output.rfind(RESET).unwrap_or(output.len()));
    let stdout = stdout.trim_start_matches(['\r', '\n']);
    let text = format!("{stdout}{stderr}");
    let text = text.trim_start_matches(['\r', '\n']);
    let meaning = shell::meaning(command, code);
    if code != 0 && meaning.is_none() {
        return ToolOutcome::error(format!("Exit code {code}\n{text}").trim_end());
    }
    let commands = shell::parse(command, Path::new("~")).commands;
    let is_silent = |command: &shell::ShellCommand| {
        let name = command.name();
        SILENT.contains(&name) && command.text.split_whitespace().any(|word| word == name)
    };
    let all_silent = !commands.is_empty() && commands.iter().all(is_silent);
    let mut outcome = ToolOutcome::text(match text {
        "" => "(Bash completed with no output)",
        text => text,
    });
    outcome.is_error = Some(false);
    let mut details = json!({
        "stdout": stdout, "stderr": stderr, "interrupted": false, "isImage": false, "noOutputExpected": all_silent,
    });
    if let Some(meaning) = meaning {
        details["returnCodeInterpretation"] = json!(meaning);
    }
    outcome.with_details(details)
}

/// How much of an output the model reads, in characters; of a longer one it reads the beginning.
const LONGEST: usize = 30_000;
const BEGINNING: usize = 2_000;

/// How much of an error it reads: as much from both ends.
const LONGEST_ERROR: usize = 10_000;

fn beginning(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
    &text[..end]
}

/// Keeps a long output in a file, and shows the beginning of it.
async fn bounded(ctx: &Context, mut outcome: ToolOutcome, real: bool) -> ToolOutcome {
    if let Some(text) = outcome
        .content
        .as_str()
        .filter(|_| outcome.is_error == Some(true))
    {
        let (text, half) = (beginning(text, LONGEST), LONGEST_ERROR / 2);
        let length = text.chars().count();
        if length > LONGEST_ERROR {
            let left_out = length - LONGEST_ERROR;
            let end: String = text.chars().skip(length - half).collect();
            let text = format!(
                "{}\n\n... [{left_out} characters truncated] ...\n\n{end}",
                beginning(text, half)
            );
            outcome.content = json!(text);
        }
        return outcome;
    }
    let Some(whole) = outcome.details["stdout"].as_str().map(str::to_owned) else {
        return outcome;
    };
    if whole.chars().count() <= LONGEST {
        return outcome;
    }
    let path = ctx.result_file();
    // Without the file the model still has the beginning.
    let _ = disk::store(ctx, &path, &whole, real).await;
    outcome.content = json!(format!(
        "<persisted-output>\nOutput too large ({}). Full output saved to: {path}\n\nPreview (first 2KB):\n{}\n...\n\
         </persisted-output>",
        disk::size(whole.len()),
        beginning(&whole, BEGINNING)
    ));
    outcome.details["stdout"] = json!(beginning(&whole, LONGEST));
    outcome.details["persistedOutputPath"] = json!(path);
    outcome.details["persistedOutputSize"] = json!(whole.len());
    outcome
}

/// Tells of files that the model has seen and the command has changed.
fn with_hint(ctx: &Context, mut outcome: ToolOutcome, changed: &[String]) -> ToolOutcome {
    let Some(details) = outcome.details.as_object_mut().filter(|_| !changed.is_empty()) else {
        return outcome;
    };
    let cwd = ctx.cwd();
    let names = changed.iter().map(Path::new);
    let names = names.map(|path| path.strip_prefix(&cwd).unwrap_or(path).to_string_lossy());
    let hint = format!(
        "[This command modified {} file{} you've previously read: {}. Call Read before editing.]",
        changed.len(),
        if changed.len() == 1 { "" } else { "s" },
        names.collect::<Vec<_>>().join(", ")
    );
    let stdout = details["stdout"].as_str().filter(|stdout| !stdout.is_empty());
    outcome.content = json!(stdout.map_or_else(|| hint.clone(), |stdout| format!("{stdout}\n{hint}")));
    details.insert("staleReadFileStateHint".to_owned(), json!(hint));
    outcome
}

/// What a shell says at its end: behind the mark the directory in which it is, if the line succeeded.
const SHELL: &str = "exec 2>&1\neval \"$1\" && printf '\\0%s' \"$(pwd -P)\"";

/// Begins what the CLI itself says when the shell has left the directories that it may use.
const RESET: &str = "\nShell cwd was reset to ";

/// Follows the shell of the main agent to another directory, unless it has left those that it may use.
fn follow(ctx: &Context, output: &Output, by_main: bool) {
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((said, directory)) = output.rsplit_once('\0') else {
        return;
    };
    let (said, directory) = (said.to_owned(), std::path::PathBuf::from(directory));
    *output = said;
    let here = ctx.cwd();
    if !by_main || directory == here || here.canonicalize().is_ok_and(|here| here == directory) {
        return;
    }
    let inside = paths::Area::new(ctx, &ctx.state()).includes(&directory);
    if inside {
        ctx.shell_goes_to(directory);
    } else {
        let project = ctx.project();
        ctx.shell_goes_to(project.clone());
        output.push_str(&format!("{RESET}{}", project.display()));
    }
}

/// Runs a command line in the working directory and gives its exit code. Dropping it kills the shell.
async fn real_command(ctx: &Context, command: &str, output: &Output, by_main: bool) -> i32 {
    let mut env = ctx.state().settings.env();
    // Logins are kept from commands.
    let changed = ctx.state().environment.clone().into_iter();
    env.extend(changed.filter(|(name, _)| name != "CLAUDE_CODE_OAUTH_TOKEN"));
    let child = tokio::process::Command::new("bash")
        .arg("-c")
        .args([SHELL, "bash", command])
        .current_dir(ctx.cwd())
        .envs(env)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let write = |text: &str| {
        output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(text)
    };
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            write(&format!("bash: {error}"));
            return 126;
        }
    };
    if let Some(mut stdout) = child.stdout.take() {
        let mut buffer = vec![0; 8192];
        while let Ok(got @ 1..) = stdout.read(&mut buffer).await {
            write(&String::from_utf8_lossy(&buffer[..got]));
        }
    }
    let ended = child.wait().await;
    follow(ctx, output, by_main);
    match ended {
        // A shell that was killed by a signal has no code; the CLI shows 137 for SIGKILL.
        Ok(status) => status.code().unwrap_or(137),
        Err(_) => 1,
    }
}

/// Plays a command line on files in memory and tokio's clock, and gives its exit code.
async fn pretended_command(ctx: &Context, command: &str, output: &Output) -> i32 {
    let line = shell::parse(command, Path::new(&ctx.config.home));
    for command in line
        .commands
        .into_iter()
        .filter(|command| !command.words.is_empty())
    {
        let (text, code) = pretended(ctx, &command.words).await;
        match command.writes.last() {
            Some(file) => {
                let path = disk::absolute(ctx, file);
                ctx.state().files.insert(path, text);
            }
            None => output
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(&text),
        }
        if code != 0 || command.name() == "exit" {
            return code;
        }
    }
    0
}

/// Plays one command: what it puts out, and its exit code.
async fn pretended(ctx: &Context, words: &[String]) -> (String, i32) {
    let arguments = &words[1..];
    let mut output = String::new();
    match words[0].as_str() {
        "echo" => output = format!("{}\n", arguments.join(" ")),
        "sleep" => {
            let seconds = arguments
                .first()
                .and_then(|argument| argument.parse::<f64>().ok());
            let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            ctx.pause(duration.unwrap_or_default()).await;
        }
        "touch" => {
            for file in arguments {
                let path = disk::absolute(ctx, file);
                ctx.state().files.entry(path).or_default();
            }
        }
        "rm" => {
            for file in arguments {
                let path = disk::absolute(ctx, file);
                ctx.state().files.remove(&path);
            }
        }
        "cat" => {
            for file in arguments {
                let path = disk::absolute(ctx, file);
                let content = ctx.state().files.get(&path).cloned();
                match content {
                    Some(content) => output.push_str(&content),
                    None => {
                        output.push_str(&format!("cat: {file}: No such file or directory\n"));
                        return (output, 1);
                    }
                }
            }
        }
        "true" => {}
        "false" => return (output, 1),
        "exit" => {
            let code = arguments.first().and_then(|code| code.parse().ok());
            return (output, code.unwrap_or(0));
        }
        unknown => return (format!("bash: {unknown}: command not found\n"), 127),
    }
    (output, 0)
}
