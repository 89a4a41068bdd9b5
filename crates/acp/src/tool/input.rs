//! The view of a tool call from its input, which may be partial.

use std::path::Path;

use outrigger::protocol::RawJson;
use outrigger::protocol::tools::canonical_name;

use super::markdown::{both_ends, line};
use super::{Fields, WorkDir};
use crate::event::{CallContent, Content, Diff, Kind, Location};

/// A tool call for the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallView {
    /// A line that names the target, if it is known.
    pub(crate) title: String,
    /// Whether the title names the target.
    pub(crate) named: bool,
    pub(crate) kind: Kind,
    pub(crate) locations: Vec<Location>,
    /// What the call is going to do.
    pub(crate) content: Vec<CallContent>,
    /// The input without the fields that `content` shows.
    pub(crate) input: RawJson,
}

/// The role of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// The tool's output is shown as a terminal.
    Shell,
    /// The tool starts a subagent.
    Agent,
    /// The tool changes the plan, which is shown instead of the call.
    Plan,
    /// Internal to the CLI, and reported in another way.
    Internal,
}

/// The tool name of a call of which only the result came.
pub(crate) const LOST: &str = "Tool";

pub(crate) fn role(tool: &str) -> Role {
    match canonical_name(tool) {
        "Bash" | "PowerShell" => Role::Shell,
        "Agent" => Role::Agent,
        "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" => Role::Plan,
        "StructuredOutput" => Role::Internal,
        _ => Role::Plain,
    }
}

/// The view of a call of this tool.
pub(crate) fn view(tool: &str, input: &RawJson, dir: &WorkDir) -> CallView {
    let view = View {
        fields: Fields::of(input),
        dir,
    };
    let name = canonical_name(tool);
    let title = view.title(tool, name);
    let content = view.content(name);
    let shown: &[&str] = match (name, content.is_empty()) {
        (_, true) => &[],
        ("Write", _) => &["content"],
        ("Edit", _) => &["old_string", "new_string"],
        ("MultiEdit", _) => &["edits"],
        ("NotebookEdit", _) => &["new_source"],
        ("ExitPlanMode", _) => &["plan"],
        ("Agent" | "WebFetch", _) => &["prompt"],
        _ => &[],
    };
    CallView {
        named: title.is_some(),
        title: title.unwrap_or_else(|| nameless(tool, name)),
        kind: kind(name),
        locations: view.locations(name),
        content,
        input: view.fields.without(shown).unwrap_or_else(|| input.clone()),
    }
}

fn kind(name: &str) -> Kind {
    match name {
        "Read"
        | "NotebookRead"
        | "ReadMcpResourceTool"
        | "ReadMcpResourceDirTool"
        | "BashOutput"
        | "TaskOutput"
        | "AgentOutputTool"
        | "ReadNotifications" => Kind::Read,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Kind::Edit,
        "Bash" | "PowerShell" | "TaskStop" | "Monitor" | "REPL" => Kind::Execute,
        "Glob" | "Grep" | "LSP" | "LS" | "ToolSearch" | "ListMcpResourcesTool" => Kind::Search,
        "WebFetch" | "WebSearch" | "web_search" | "web_fetch" => Kind::Fetch,
        "Agent" | "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" | "Workflow" => {
            Kind::Think
        }
        "ExitPlanMode" | "EnterPlanMode" => Kind::SwitchMode,
        _ => Kind::Other,
    }
}

/// Splits `mcp__server__tool`.
fn mcp_name(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix("mcp__")?.split_once("__")
}

/// The title of a call without input.
fn nameless(tool: &str, name: &str) -> String {
    match name {
        "Bash" | "PowerShell" => "Run a command".to_owned(),
        "Agent" => "Start an agent".to_owned(),
        "ExitPlanMode" => "Approve Plan".to_owned(),
        "EnterPlanMode" => "Enter plan mode".to_owned(),
        "TodoWrite" => "Update TODOs".to_owned(),
        "WebFetch" => "Fetch".to_owned(),
        "WebSearch" => "Search the web".to_owned(),
        "AskUserQuestion" => "Ask a question".to_owned(),
        "Glob" => "Find".to_owned(),
        "OfferChromeSetup" => "Offer to set up Chrome".to_owned(),
        "propose_skills" => "Propose skills".to_owned(),
        "ReadNotifications" => "Read notifications".to_owned(),
        "RefreshMcpTools" => "Look for new MCP tools".to_owned(),
        "ReportFindings" => "Report findings".to_owned(),
        "ShowOnboardingRolePicker" => "Ask for a role".to_owned(),
        _ => match mcp_name(tool) {
            Some((server, tool)) => format!("{tool} ({server})"),
            None => tool.to_owned(),
        },
    }
}

struct View<'a> {
    fields: Fields,
    dir: &'a WorkDir,
}

impl View<'_> {
    fn text(&self, names: &[&str]) -> Option<String> {
        self.fields.text(names)
    }

    fn path(&self) -> Option<String> {
        self.text(&["file_path", "notebook_path"])
    }

    fn on_file(&self, verb: &str) -> Option<String> {
        let path = self.path()?;
        Some(format!("{verb} {}", self.dir.short(&path)))
    }

    fn with(&self, verb: &str, names: &[&str]) -> Option<String> {
        Some(format!("{verb} {}", line(&self.text(names)?)))
    }

    fn title(&self, tool: &str, name: &str) -> Option<String> {
        match name {
            "Bash" | "PowerShell" => Some(both_ends(&self.text(&["command"])?)),
            "Read" | "NotebookRead" => Some(format!("{}{}", self.on_file("Read")?, self.range())),
            "Write" => self.on_file("Write"),
            "Edit" | "MultiEdit" => self.on_file("Edit"),
            "NotebookEdit" => match self.text(&["edit_mode"]).as_deref() {
                Some("insert") => self.on_file("Insert a cell in"),
                Some("delete") => self.on_file("Delete a cell of"),
                _ => self.on_file("Edit a cell of"),
            },
            "Glob" => {
                let pattern = self.text(&["pattern"])?;
                let inside = self.inside();
                Some(format!("Find {}{inside}", line(&pattern)))
            }
            "Grep" => {
                let pattern = self.text(&["pattern"])?;
                let inside = self.inside();
                let glob = self.text(&["glob"]).map(|glob| format!(" ({glob})"));
                Some(format!(
                    "grep \"{}\"{inside}{}",
                    line(&pattern),
                    glob.unwrap_or_default()
                ))
            }
            "LS" => Some(format!("List {}", self.dir.short(&self.text(&["path"])?))),
            "WebFetch" | "web_fetch" => self.with("Fetch", &["url"]),
            "WebSearch" | "web_search" => Some(format!(
                "Search the web for \"{}\"",
                line(&self.text(&["query"])?)
            )),
            "Agent" => Some(line(&self.text(&["description"])?)),
            "BashOutput" | "TaskOutput" | "AgentOutputTool" => self.with(
                "Read the output of",
                &["task_id", "bash_id", "shell_id", "agentId"],
            ),
            "TaskStop" => self.with("Stop", &["task_id", "shell_id"]),
            "TodoWrite" => self.todos(),
            "TaskCreate" => self.with("Create task:", &["subject"]),
            "TaskUpdate" => self.with("Update task", &["taskId"]),
            "TaskGet" => self.with("Look at task", &["taskId"]),
            "TaskList" => Some("List tasks".to_owned()),
            // Their titles need no input.
            "ExitPlanMode"
            | "EnterPlanMode"
            | "OfferChromeSetup"
            | "ReadNotifications"
            | "ShowOnboardingRolePicker" => Some(nameless(tool, name)),
            "propose_skills" => Some(self.count("proposals", "Propose a skill", "Propose", "skills")),
            "ReportFindings" => Some(self.count("findings", "Report a finding", "Report", "findings")),
            "RefreshMcpTools" => Some(match self.text(&["server"]) {
                Some(server) => format!("Look for new tools of {}", line(&server)),
                None => nameless(tool, name),
            }),
            "PushNotification" => self.with("Notify:", &["message"]),
            "RemoteTrigger" => self.with("Trigger:", &["action"]),
            "SendFeedback" => self.with("Feedback:", &["title"]),
            "SetGoal" => self.with("Goal:", &["condition"]),
            "Skill" => {
                let args = self.text(&["args"]).map(|args| format!(" {}", line(&args)));
                let skill = self.text(&["skill", "command"])?;
                Some(format!(
                    "Load skill: {}{}",
                    line(&skill),
                    args.unwrap_or_default()
                ))
            }
            "AskUserQuestion" => {
                let questions = self.fields.list("questions");
                let asked = questions
                    .iter()
                    .filter_map(|question| question.text(&["question"]));
                let asked: Vec<_> = asked.collect();
                (!asked.is_empty()).then(|| line(&asked.join(" ")))
            }
            "ToolSearch" => self.with("Find tools:", &["query"]),
            "Monitor" => self.with("Watch:", &["description", "command"]),
            "CronCreate" => {
                let when = self.text(&["cron"])?;
                Some(format!(
                    "Schedule ({}): {}",
                    line(&when),
                    line(&self.text(&["prompt"])?)
                ))
            }
            "CronDelete" => self.with("Unschedule", &["id"]),
            "CronList" => Some("List what is scheduled".to_owned()),
            "ScheduleWakeup" => self.with("Wake up later:", &["reason", "prompt"]),
            "EnterWorktree" => self.with("Enter worktree", &["name", "path"]),
            "ExitWorktree" => self.with("Leave the worktree:", &["action"]),
            "ListMcpResourcesTool" => Some(match self.text(&["server"]) {
                Some(server) => format!("List the resources of {}", line(&server)),
                None => "List MCP resources".to_owned(),
            }),
            "ReadMcpResourceTool" | "ReadMcpResourceDirTool" => self.with("Read", &["uri"]),
            "SendMessage" => self.with("Message to", &["to"]),
            "LSP" => self.with("LSP:", &["operation"]),
            _ => {
                let about = self.text(&[
                    "title",
                    "description",
                    "name",
                    "query",
                    "path",
                    "file_path",
                    "url",
                    "command",
                    "message",
                    "prompt",
                    "id",
                    "operation",
                    "method",
                    "action",
                ]);
                Some(match about {
                    Some(about) => format!("{}: {}", nameless(tool, name), line(&about)),
                    // The input of a foreign tool is unknown, so the title is its name.
                    None => mcp_name(tool).map(|_| nameless(tool, name))?,
                })
            }
        }
    }

    /// A count with its noun.
    fn count(&self, list: &str, one: &str, verb: &str, many: &str) -> String {
        match self.fields.list(list).len() {
            0 => format!("{verb} {many}"),
            1 => one.to_owned(),
            count => format!("{verb} {count} {many}"),
        }
    }

    /// The range of lines.
    fn range(&self) -> String {
        let offset = self.fields.number("offset");
        let limit = self.fields.number("limit");
        match (offset, limit) {
            (None, None) => match self.text(&["pages"]) {
                Some(pages) => format!(" (pages {})", line(&pages)),
                None => String::new(),
            },
            (Some(from), None) => format!(" (from line {from})"),
            (from, Some(count)) => {
                let from = from.unwrap_or(1).max(1);
                format!(" ({from} - {})", from.saturating_add(count.saturating_sub(1)))
            }
        }
    }

    fn inside(&self) -> String {
        let path = self.text(&["path"]);
        path.map_or(String::new(), |path| format!(" in {}", self.dir.short(&path)))
    }

    fn todos(&self) -> Option<String> {
        let todos = self.fields.list("todos");
        let names: Vec<_> = todos.iter().filter_map(|todo| todo.text(&["content"])).collect();
        (!names.is_empty()).then(|| line(&format!("Update TODOs: {}", names.join(", "))))
    }

    fn locations(&self, name: &str) -> Vec<Location> {
        let (path, line) = match name {
            "Read" | "NotebookRead" => {
                let line = self.fields.number("offset").filter(|line| *line > 0);
                (self.path(), line.and_then(|line| u32::try_from(line).ok()))
            }
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => (self.path(), None),
            "Glob" | "Grep" | "LS" => (self.text(&["path"]), None),
            "LSP" => (self.text(&["filePath", "file_path"]), None),
            "Artifact" => (self.text(&["file_path"]), None),
            _ => (None, None),
        };
        let path = path.map(|path| self.dir.absolute(&path));
        path.map(|path| Location { path, line }).into_iter().collect()
    }

    fn content(&self, name: &str) -> Vec<CallContent> {
        let text = |text: String| CallContent::Content(Content::Text(text));
        match name {
            "Write" => {
                let new = self.fields.exact("content");
                self.diffs(new.map(|new| (None, new)))
            }
            "Edit" => self.diffs(replaced(&self.fields)),
            "MultiEdit" => self.diffs(self.fields.list("edits").iter().filter_map(replaced)),
            "NotebookEdit" => {
                let is_deletion = self.text(&["edit_mode"]).as_deref() == Some("delete");
                let new = self.fields.exact("new_source").filter(|_| !is_deletion);
                self.diffs(new.map(|new| (None, new)))
            }
            "Agent" => self.text(&["prompt"]).map(text).into_iter().collect(),
            "WebFetch" => self.text(&["prompt"]).map(text).into_iter().collect(),
            "ExitPlanMode" => self.text(&["plan"]).map(text).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn diffs(&self, changes: impl IntoIterator<Item = (Option<String>, String)>) -> Vec<CallContent> {
        let Some(path) = self.path() else {
            return Vec::new();
        };
        let path = self.dir.absolute(&path);
        let diff = |(old, new)| {
            CallContent::Diff(Diff {
                path: path.clone(),
                old,
                new,
                line: None,
            })
        };
        changes.into_iter().map(diff).collect()
    }
}

/// The old and the new text of an edit.
fn replaced(fields: &Fields) -> Option<(Option<String>, String)> {
    let old = fields.exact("old_string")?;
    Some((
        Some(old).filter(|old| !old.is_empty()),
        fields.exact("new_string")?,
    ))
}

/// A place in a file.
pub(super) fn at(path: &Path, line: u64) -> Location {
    Location {
        path: path.to_owned(),
        line: u32::try_from(line).ok().filter(|line| *line > 0),
    }
}

#[cfg(test)]
mod tests;
