//! Background tasks and subagents.

use std::collections::{BTreeMap, HashMap};

use outrigger_protocol::{Frame, RawJson};
use serde::Deserialize;

use crate::fields::Fields;

/// How many ended tasks are remembered; the oldest are forgotten first.
pub(crate) const ENDED_KEPT: usize = 1024;

/// How many bytes of text the ended tasks may have together; the oldest are forgotten first.
const ENDED_TEXT_KEPT: usize = 32 * 1024 * 1024;

/// How many tasks are remembered at all; beyond it the oldest are forgotten, even if they run.
const ALL_KEPT: usize = ENDED_KEPT + 4096;

/// How many bytes are kept of each text of a task; the frames have all of it.
const TEXT_KEPT: usize = 256 * 1024;

/// A background task or subagent of the CLI.
///
/// Of its texts at most the first 256 KiB are kept; the frames have all of them.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Task {
    /// The CLI's id of the task; for a subagent also its `agent_id`.
    pub id: String,
    /// A short description.
    pub description: String,
    /// The CLI's name of its kind: `local_agent`, `local_bash`, `local_workflow`, …
    pub task_type: Option<String>,
    /// The kind of subagent.
    pub subagent_type: Option<String>,
    /// The tool call that started it.
    pub tool_use_id: Option<String>,
    /// The task that started it; `None` for one that the main conversation started.
    pub parent_task_id: Option<String>,
    /// The prompt that a subagent was given.
    pub prompt: Option<String>,
    /// Whether the task runs in the background, apart from the turn that started it.
    pub is_backgrounded: bool,
    /// Whether the CLI runs it on its own account rather than for the conversation.
    pub ambient: bool,
    /// The state of the task.
    pub state: TaskState,
    /// The tool that the task used last.
    pub last_tool_name: Option<String>,
    /// The progress, or the result: for a subagent its final answer.
    pub summary: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// The file that holds its output.
    pub output_file: Option<String>,
    /// Tokens, tool calls and time so far.
    pub usage: Option<TaskUsage>,
    /// Whether a notification has told its end, which is the last word until the task is started again.
    is_notified: bool,
}

impl Task {
    fn text_bytes(&self) -> usize {
        let optional = [&self.prompt, &self.summary, &self.error, &self.output_file];
        let texts = optional.into_iter().flatten();
        self.description.len() + texts.map(String::len).sum::<usize>()
    }

    /// Whether the task is an agent or a workflow, whose end wakes the conversation again.
    pub fn is_agent(&self) -> bool {
        self.subagent_type.is_some()
            || self
                .task_type
                .as_deref()
                .is_some_and(|kind| kind.contains("agent") || kind.contains("workflow"))
    }
}

/// Where a task has got to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TaskState {
    /// The task waits.
    Pending,
    /// The task runs.
    #[default]
    Running,
    /// The task is paused.
    Paused,
    /// The task is complete.
    Completed,
    /// The task failed.
    Failed,
    /// The task was stopped.
    Stopped,
    /// The task is no longer among the running ones, but the CLI never reported its end.
    Gone,
    /// A state that this build does not know.
    Other(String),
}

impl TaskState {
    fn read(state: &str) -> Self {
        match state {
            "pending" => Self::Pending,
            "running" => Self::Running,
            "paused" => Self::Paused,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "killed" | "stopped" => Self::Stopped,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Whether the task has ended.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped | Self::Gone)
    }
}

/// What a task used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TaskUsage {
    /// Tokens in all.
    pub total_tokens: u64,
    /// Tool calls.
    pub tool_uses: u64,
    /// Milliseconds.
    pub duration_ms: u64,
}

/// All tasks of a session at one moment.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tasks: Vec<Task>,
}

impl Tasks {
    /// All tasks, in the order in which they were started; ended tasks are kept up to a bound of 1024.
    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    /// The tasks that have not ended.
    pub fn running(&self) -> impl Iterator<Item = &Task> {
        self.iter().filter(|task| !task.state.is_ended())
    }

    /// The task with this id.
    pub fn get(&self, id: &str) -> Option<&Task> {
        self.iter().find(|task| task.id == id)
    }

    /// The tasks that the main conversation started.
    pub fn roots(&self) -> impl Iterator<Item = &Task> {
        self.iter().filter(|task| self.parent_of(task).is_none())
    }

    /// The tasks that `task` started.
    pub fn children<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a Task> {
        self.iter()
            .filter(move |child| child.parent_task_id.as_deref() == Some(&task.id))
    }

    fn parent_of(&self, task: &Task) -> Option<&Task> {
        self.get(task.parent_task_id.as_deref()?)
    }
}

/// Keeps the tasks from the frames that go by.
///
/// The list of running tasks is a level, not an edge: each `background_tasks_changed` is the whole set, so that a lost
/// notification can't leave a task running for ever.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    tasks: BTreeMap<u64, Task>,
    by_id: HashMap<String, u64>,
    /// The turn during which a tool call started a task; zero for none.
    started_in: HashMap<String, u64>,
    next: u64,
}

/// A task of the list, each field read on its own.
struct Snapshot {
    task_id: String,
    task_type: Option<String>,
    subagent_type: Option<String>,
    description: Option<String>,
    parent_task_id: Option<String>,
    ambient: Option<bool>,
}

impl Snapshot {
    /// `None` if the frame does not name the task.
    fn read(listed: &RawJson) -> Option<Self> {
        let fields = Fields::of_object(listed);
        Some(Self {
            task_id: fields.get("task_id")?,
            task_type: fields.get("task_type"),
            subagent_type: fields.get("subagent_type"),
            description: fields.get("description"),
            parent_task_id: fields.get("parent_task_id"),
            ambient: fields.get("ambient"),
        })
    }
}

impl Ledger {
    /// Takes a frame; `turn` is the number of the turn that is running.
    pub(crate) fn on_frame(&mut self, frame: &Frame, turn: Option<u64>) {
        match frame.subtype() {
            Some("task_started") => self.started(&Fields::of(frame), turn),
            Some("task_progress") => self.progress(&Fields::of(frame)),
            Some("task_updated") => self.updated(&Fields::of(frame)),
            Some("task_notification") => self.notified(&Fields::of(frame)),
            Some("background_tasks_changed") => self.snapshot(&Fields::of(frame)),
            _ => return,
        }
        self.forget_old();
    }

    /// The number of the turn during which the tool call `tool_use_id` started a task.
    pub(crate) fn turn_of(&self, tool_use_id: &str) -> Option<u64> {
        self.started_in.get(tool_use_id).copied()
    }

    fn turn_of_task(&self, id: &str) -> Option<u64> {
        let task = self.tasks.get(self.by_id.get(id)?)?;
        self.turn_of(task.tool_use_id.as_deref()?)
    }

    pub(crate) fn tasks(&self) -> Tasks {
        Tasks {
            tasks: self.tasks.values().cloned().collect(),
        }
    }

    /// Whether an agent or workflow still runs in the background, or a command of one: its end will begin another turn.
    pub(crate) fn has_background_agents(&self) -> bool {
        self.tasks.values().any(|task| {
            // An agent that has reported goes on when a command of its own ends.
            let is_of_agent = task.is_agent() || task.parent_task_id.is_some();
            task.is_backgrounded && is_of_agent && !task.state.is_ended() && !task.ambient
        })
    }

    /// The process ended: nothing runs any more.
    pub(crate) fn end(&mut self) {
        for task in self.tasks.values_mut().filter(|task| !task.state.is_ended()) {
            task.state = TaskState::Gone;
        }
    }

    fn task(&mut self, id: &str) -> &mut Task {
        let next = &mut self.next;
        let number = *self.by_id.entry(id.to_owned()).or_insert_with(|| {
            *next += 1;
            *next
        });
        self.tasks.entry(number).or_insert_with(|| Task {
            id: id.to_owned(),
            ..Task::default()
        })
    }

    fn started(&mut self, fields: &Fields, turn: Option<u64>) {
        let Some(id) = fields.get::<String>("task_id") else {
            return;
        };
        let tool_use_id: Option<String> = fields.get("tool_use_id");
        if let Some(tool) = &tool_use_id {
            // What an agent starts belongs to the turn of the agent, whichever turn runs meanwhile. No turn has the number zero.
            let parent: Option<String> = fields.get("parent_task_id");
            let turn = parent.and_then(|parent| self.turn_of_task(&parent)).or(turn);
            self.started_in
                .entry(tool.clone())
                .or_insert(turn.unwrap_or_default());
        }
        let task = self.task(&id);
        task.tool_use_id = tool_use_id.or(task.tool_use_id.take());
        task.description = fields
            .get("description")
            .map(clipped)
            .unwrap_or_else(|| std::mem::take(&mut task.description));
        task.task_type = fields.get("task_type").or(task.task_type.take());
        task.subagent_type = fields.get("subagent_type").or(task.subagent_type.take());
        task.parent_task_id = fields.get("parent_task_id").or(task.parent_task_id.take());
        task.prompt = fields.get("prompt").map(clipped).or(task.prompt.take());
        task.is_backgrounded = fields.get("is_backgrounded").unwrap_or(task.is_backgrounded);
        task.ambient = fields.get("ambient").unwrap_or(task.ambient);
        task.state = TaskState::Running;
        task.is_notified = false;
    }

    fn progress(&mut self, fields: &Fields) {
        let Some(id) = fields.get::<String>("task_id") else {
            return;
        };
        let task = self.task(&id);
        task.last_tool_name = fields.get("last_tool_name").or(task.last_tool_name.take());
        task.summary = fields.get("summary").map(clipped).or(task.summary.take());
        task.usage = fields.get("usage").or(task.usage);
        task.tool_use_id = fields.get("tool_use_id").or(task.tool_use_id.take());
        if task.description.is_empty() {
            task.description = fields.get("description").map(clipped).unwrap_or_default();
        }
    }

    fn updated(&mut self, fields: &Fields) {
        let (Some(id), Some(patch)) = (fields.get::<String>("task_id"), fields.get::<RawJson>("patch"))
        else {
            return;
        };
        let patch = Fields::of_object(&patch);
        let task = self.task(&id);
        if let Some(status) = patch.get::<String>("status") {
            let state = TaskState::read(&status);
            if state.is_ended() || !task.is_notified {
                task.state = state;
            }
        }
        task.description = patch
            .get("description")
            .map(clipped)
            .unwrap_or_else(|| std::mem::take(&mut task.description));
        task.error = patch.get("error").map(clipped).or(task.error.take());
        task.is_backgrounded = patch.get("is_backgrounded").unwrap_or(task.is_backgrounded);
    }

    fn notified(&mut self, fields: &Fields) {
        let Some(id) = fields.get::<String>("task_id") else {
            return;
        };
        let task = self.task(&id);
        if let Some(status) = fields.get::<String>("status") {
            task.state = TaskState::read(&status);
            task.is_notified = task.state.is_ended();
        }
        task.output_file = fields
            .get("output_file")
            .filter(|file: &String| !file.is_empty())
            .or(task.output_file.take());
        task.summary = fields.get("summary").map(clipped).or(task.summary.take());
        task.usage = fields.get("usage").or(task.usage);
        task.tool_use_id = fields.get("tool_use_id").or(task.tool_use_id.take());
    }

    fn snapshot(&mut self, fields: &Fields) {
        let Some(listed) = fields.get::<Vec<RawJson>>("tasks") else {
            return;
        };
        let running: Vec<_> = listed.iter().filter_map(Snapshot::read).collect();
        // Whichever one that can't be read is, it runs.
        let are_all = running.len() == listed.len();
        for task in self.tasks.values_mut() {
            let is_listed = !are_all || running.iter().any(|listed| listed.task_id == task.id);
            if task.is_backgrounded && !is_listed && !task.state.is_ended() {
                task.state = TaskState::Gone;
            }
        }
        for listed in running {
            let task = self.task(&listed.task_id);
            task.is_backgrounded = true;
            // A snapshot names what runs, so an end that was reported before does not hold.
            if task.state.is_ended() {
                task.state = TaskState::Running;
                task.is_notified = false;
            }
            task.task_type = listed.task_type.or(task.task_type.take());
            task.subagent_type = listed.subagent_type.or(task.subagent_type.take());
            task.description = listed
                .description
                .map(clipped)
                .unwrap_or_else(|| std::mem::take(&mut task.description));
            task.parent_task_id = listed.parent_task_id.or(task.parent_task_id.take());
            task.ambient = listed.ambient.unwrap_or(task.ambient);
        }
    }

    /// Makes room: forgets the oldest tasks beyond the bounds.
    fn forget_old(&mut self) {
        // With so few they can't be over a bound, each of them having at most four texts of some length.
        if self.tasks.len() < ENDED_TEXT_KEPT / (4 * TEXT_KEPT) {
            return;
        }
        let is_over = |tasks: &BTreeMap<u64, Task>| {
            let ended = || tasks.values().filter(|task| task.state.is_ended());
            ended().count() > ENDED_KEPT || ended().map(Task::text_bytes).sum::<usize>() > ENDED_TEXT_KEPT
        };
        while is_over(&self.tasks) {
            let oldest = self.tasks.iter().find(|(_, task)| task.state.is_ended());
            let Some(number) = oldest.map(|(number, _)| *number) else {
                break;
            };
            self.forget(number);
        }
        while self.tasks.len() > ALL_KEPT
            && let Some(number) = self.tasks.keys().next().copied()
        {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(task) = self.tasks.remove(&number) {
            self.by_id.remove(&task.id);
            if let Some(tool) = &task.tool_use_id {
                self.started_in.remove(tool);
            }
        }
    }
}

/// The kept part of a text.
fn clipped(mut text: String) -> String {
    if text.len() > TEXT_KEPT {
        let end = (0..=TEXT_KEPT).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(ledger: &mut Ledger, lines: &[&str]) {
        for line in lines {
            ledger.on_frame(
                &Frame::from_line(format!(r#"{{"type":"system",{line}}}"#).into_bytes()).remove(0),
                Some(7),
            );
        }
    }

    #[test]
    fn an_agent_whose_command_runs_is_not_over() {
        let mut ledger = Ledger::default();
        let agent =
            r#""subtype":"task_started","task_id":"a","subagent_type":"Explore","is_backgrounded":true"#;
        let command = r#""subtype":"task_started","task_id":"b","parent_task_id":"a","owned_by_subagent":true,"task_type":"local_bash","is_backgrounded":true"#;
        let ended = |id| {
            format!(
                r#""subtype":"task_notification","task_id":"{id}","status":"completed","output_file":"","summary":"done""#
            )
        };
        feed(&mut ledger, &[agent, command, &ended("a")]);
        assert!(ledger.has_background_agents());
        feed(&mut ledger, &[&ended("b")]);
        assert!(!ledger.has_background_agents());
        feed(&mut ledger, &[agent]);
        assert!(ledger.has_background_agents());
    }

    #[test]
    fn a_task_is_followed_from_start_to_end() {
        let mut ledger = Ledger::default();
        feed(
            &mut ledger,
            &[
                r#""subtype":"task_started","task_id":"a","tool_use_id":"t","description":"look","subagent_type":"Explore","is_backgrounded":true"#,
                r#""subtype":"task_started","task_id":"b","parent_task_id":"a","description":"deeper","subagent_type":"Explore""#,
                r#""subtype":"task_progress","task_id":"a","last_tool_name":"Bash","usage":{"total_tokens":5,"tool_uses":1,"duration_ms":9}"#,
            ],
        );
        assert!(ledger.has_background_agents());
        assert_eq!(ledger.turn_of("t"), Some(7));
        let tasks = ledger.tasks();
        let root = tasks.roots().next().unwrap();
        assert_eq!(
            (
                root.id.as_str(),
                root.last_tool_name.as_deref(),
                root.usage.unwrap().total_tokens
            ),
            ("a", Some("Bash"), 5)
        );
        assert_eq!(
            tasks
                .children(root)
                .map(|task| task.id.as_str())
                .collect::<Vec<_>>(),
            ["b"]
        );
        feed(
            &mut ledger,
            &[
                r#""subtype":"task_notification","task_id":"a","status":"completed","output_file":"/o","summary":"found""#,
            ],
        );
        let tasks = ledger.tasks();
        assert_eq!(
            (
                &tasks.get("a").unwrap().state,
                tasks.get("a").unwrap().summary.as_deref()
            ),
            (&TaskState::Completed, Some("found"))
        );
        assert!(!ledger.has_background_agents());
    }

    #[test]
    fn a_notification_ends_a_task_whatever_is_said_of_it_late() {
        let started = r#""subtype":"task_started","task_id":"a","subagent_type":"x","is_backgrounded":true"#;
        let ended = r#""subtype":"task_notification","task_id":"a","status":"completed","summary":"found""#;
        let late = r#""subtype":"task_updated","task_id":"a","patch":{"status":"running"}"#;
        let progress = r#""subtype":"task_progress","task_id":"a","last_tool_name":"Bash""#;
        let state = |ledger: &Ledger| ledger.tasks().get("a").unwrap().state.clone();
        let mut ledger = Ledger::default();
        feed(&mut ledger, &[started, ended, late, progress]);
        assert_eq!(state(&ledger), TaskState::Completed);
        assert!(!ledger.has_background_agents());
        feed(&mut ledger, &[started, late]);
        assert_eq!(state(&ledger), TaskState::Running, "it was started again");
    }

    #[test]
    fn agents_of_an_earlier_turns_agent_are_ambient() {
        let mut ledger = Ledger::default();
        let agent = r#""subtype":"task_started","task_id":"a","tool_use_id":"t""#;
        let nested = |id| {
            format!(r#""subtype":"task_started","task_id":"{id}","tool_use_id":"t{id}","parent_task_id":"a""#)
        };
        feed(&mut ledger, &[agent]);
        for (id, turn) in [("b", Some(8)), ("c", None)] {
            let frame = format!(r#"{{"type":"system",{}}}"#, nested(id));
            ledger.on_frame(&Frame::from_line(frame.into_bytes()).remove(0), turn);
            assert_eq!(ledger.turn_of(&format!("t{id}")), Some(7));
        }
        let lone = br#"{"type":"system","subtype":"task_started","task_id":"d","tool_use_id":"td"}"#;
        ledger.on_frame(&Frame::from_line(lone.as_slice()).remove(0), None);
        assert_eq!(ledger.turn_of("td"), Some(0), "no turn's");
    }

    #[test]
    fn a_lost_notification_is_mended_by_the_next_snapshot() {
        let mut ledger = Ledger::default();
        feed(
            &mut ledger,
            &[
                r#""subtype":"background_tasks_changed","tasks":[{"task_id":"a","task_type":"local_agent","description":"x"},{"task_id":"b","task_type":"local_bash"}]"#,
                r#""subtype":"background_tasks_changed","tasks":[{"task_id":"b","task_type":"local_bash"}]"#,
            ],
        );
        assert_eq!(ledger.tasks().get("a").unwrap().state, TaskState::Gone);
        assert_eq!(
            ledger
                .tasks()
                .running()
                .map(|task| task.id.as_str())
                .collect::<Vec<_>>(),
            ["b"]
        );
        assert!(!ledger.has_background_agents());
    }

    #[test]
    fn a_task_that_can_not_be_read_costs_no_other_anything() {
        let mut ledger = Ledger::default();
        let all = r#""subtype":"background_tasks_changed","tasks":[{"task_id":"a"},{"task_id":"b"},{"task_id":"c"}]"#;
        feed(&mut ledger, &[all]);
        // `b` has ended; which one the second is, nobody knows.
        let odd = r#""subtype":"background_tasks_changed","tasks":[{"task_id":"a","description":7,"task_type":"local_bash"},{"task_id":7},{"task_id":"d"}]"#;
        feed(&mut ledger, &[odd]);
        let tasks = ledger.tasks();
        let running: Vec<_> = tasks.running().map(|task| task.id.as_str()).collect();
        assert_eq!(running, ["a", "b", "c", "d"]);
        assert_eq!(tasks.get("a").unwrap().task_type.as_deref(), Some("local_bash"));
        let patch = r#""subtype":"task_updated","task_id":"a","patch":{"status":"completed","error":{},"description":7}"#;
        feed(&mut ledger, &[patch]);
        assert_eq!(ledger.tasks().get("a").unwrap().state, TaskState::Completed);
    }

    #[test]
    fn ended_tasks_are_forgotten_beyond_the_bound() {
        let mut ledger = Ledger::default();
        for number in 0..ENDED_KEPT + 50 {
            feed(
                &mut ledger,
                &[
                    &format!(r#""subtype":"task_started","task_id":"{number}","tool_use_id":"t{number}""#),
                    &format!(r#""subtype":"task_notification","task_id":"{number}","status":"completed""#),
                ],
            );
        }
        assert_eq!(ledger.tasks().iter().count(), ENDED_KEPT);
        assert_eq!(ledger.started_in.len(), ENDED_KEPT);
    }
    #[test]
    fn texts_and_tasks_that_never_end_have_a_bound_too() {
        let mut ledger = Ledger::default();
        let long = "é".repeat(TEXT_KEPT);
        for number in 0..200 {
            let task = format!(
                r#""subtype":"task_notification","task_id":"{number}","status":"completed","summary":"{long}""#
            );
            feed(&mut ledger, &[&task]);
        }
        let kept: usize = ledger.tasks().iter().map(Task::text_bytes).sum();
        assert!(
            kept <= ENDED_TEXT_KEPT && kept > ENDED_TEXT_KEPT - TEXT_KEPT,
            "{kept}"
        );
        assert!(ledger.tasks().get("199").is_some());
        for number in 0..ALL_KEPT + 10 {
            let task =
                format!(r#""subtype":"task_progress","task_id":"r{number}","tool_use_id":"u{number}""#);
            feed(&mut ledger, &[&task]);
        }
        assert_eq!(ledger.tasks().iter().count(), ALL_KEPT);
        assert_eq!(ledger.by_id.len(), ALL_KEPT);
    }
}
