//! The model's list of what is to do: tasks that it makes and updates one by one, or the older list that it writes as a whole.

use serde_json::{Value, json};

use super::Config;
use super::brain::ToolOutcome;
use super::context::{AgentState, Context};
use super::models::Model;

const TASKS: &[&str] = &["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

const WHOLE: &str = "TodoWrite";

/// The list of a session.
#[derive(Debug, Default)]
pub(super) struct Todos {
    tasks: Vec<Value>,
    made: u64,
    /// The list that is written as a whole.
    whole: Vec<Value>,
}

/// The tools for it. Newer models have them only if the session names its tools.
pub(super) fn tools(config: &Config, state: &AgentState) -> &'static [&'static str] {
    match () {
        () if config.tools.is_none() && !Model::of(&state.model).tasks => &[],
        () if config.whole_todos => &[WHOLE],
        () => TASKS,
    }
}

/// Whether a tool is one for it, there or not.
pub(super) fn has(tool: &str) -> bool {
    tool == WHOLE || TASKS.contains(&tool)
}

/// Runs a tool; nothing if it is none of these.
pub(super) fn run(ctx: &Context, tool: &str, input: &Value) -> Option<ToolOutcome> {
    let todos = &mut ctx.state().todos;
    let id = input["taskId"].as_str().unwrap_or_default();
    Some(match tool {
        WHOLE => todos.write(input),
        "TaskCreate" => todos.create(input),
        "TaskUpdate" => todos.update(id, input),
        "TaskList" => todos.list(),
        "TaskGet" => todos.get(id),
        _ => return None,
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Todos {
    fn write(&mut self, input: &Value) -> ToolOutcome {
        let new = input["todos"].as_array().cloned().unwrap_or_default();
        let old = std::mem::replace(&mut self.whole, new.clone());
        ToolOutcome::text("The list of todos is written.")
            .with_details(json!({"oldTodos": old, "newTodos": new}))
    }

    fn create(&mut self, input: &Value) -> ToolOutcome {
        self.made += 1;
        let id = self.made.to_string();
        let task = json!({"id": id, "subject": input["subject"], "description": input["description"]});
        let mut kept = task.clone();
        kept["status"] = json!("pending");
        kept["blocks"] = json!([]);
        kept["blockedBy"] = json!([]);
        self.tasks.push(kept);
        let told = format!("Task #{id} created successfully: {}", text(&input["subject"]));
        ToolOutcome::text(told).with_details(json!({"task": task}))
    }

    fn update(&mut self, id: &str, input: &Value) -> ToolOutcome {
        let Some(at) = self.tasks.iter().position(|task| task["id"] == id) else {
            let details =
                json!({"success": false, "taskId": id, "updatedFields": [], "error": "Task not found"});
            return ToolOutcome::text("Task not found").with_details(details);
        };
        let task = &mut self.tasks[at];
        let before = task["status"].clone();
        let mut updated = Vec::new();
        for field in ["subject", "description", "activeForm", "owner", "status"] {
            if !input[field].is_null() && input[field] != task[field] {
                task[field] = input[field].clone();
                let deleted = field == "status" && input[field] == "deleted";
                updated.push(if deleted { "deleted" } else { field });
            }
        }
        for (field, list) in [("addBlocks", "blocks"), ("addBlockedBy", "blockedBy")] {
            let more = input[field].as_array().cloned().unwrap_or_default();
            if let (Some(ids), false) = (task[list].as_array_mut(), more.is_empty()) {
                ids.extend(more);
                updated.push(list);
            }
        }
        let told = match updated.as_slice() {
            [] => format!("Updated task #{id}"),
            updated => format!("Updated task #{id} {}", updated.join(", ")),
        };
        let mut details = json!({"success": true, "taskId": id, "updatedFields": updated});
        if task["status"] != before {
            details["statusChange"] = json!({"from": before, "to": task["status"]});
        }
        if task["status"] == "deleted" {
            self.tasks.remove(at);
            let lists = self.tasks.iter_mut().flat_map(|task| {
                let fields = task.as_object_mut().into_iter().flatten();
                fields.filter_map(|(_, value)| value.as_array_mut())
            });
            lists.for_each(|list| list.retain(|other| other != id));
        }
        ToolOutcome::text(told).with_details(details)
    }

    fn list(&self) -> ToolOutcome {
        let lines = self.tasks.iter();
        let lines = lines.map(|task| {
            format!(
                "#{} [{}] {}",
                text(&task["id"]),
                text(&task["status"]),
                text(&task["subject"])
            )
        });
        let told = match self.tasks.is_empty() {
            true => "No tasks found".to_owned(),
            false => lines.collect::<Vec<_>>().join("\n"),
        };
        let tasks = self.tasks.iter();
        let tasks: Vec<Value> = tasks
            .map(|task| {
                json!({
                    "id": task["id"], "subject": task["subject"], "status": task["status"],
                    "blockedBy": task["blockedBy"],
                })
            })
            .collect();
        ToolOutcome::text(told).with_details(json!({"tasks": tasks}))
    }

    fn get(&self, id: &str) -> ToolOutcome {
        let Some(task) = self.tasks.iter().find(|task| task["id"] == id) else {
            return ToolOutcome::text("Task not found").with_details(json!({"task": null}));
        };
        let told = format!(
            "Task #{id}: {}\nStatus: {}\nDescription: {}",
            text(&task["subject"]),
            text(&task["status"]),
            text(&task["description"])
        );
        let fields = ["id", "subject", "description", "status", "blocks", "blockedBy"];
        let shown = fields.map(|field| (field.to_owned(), task[field].clone()));
        ToolOutcome::text(told).with_details(json!({"task": Value::Object(shown.into_iter().collect())}))
    }
}
