//! Other events for hooks in a turn: instruction files, another model, displayed messages, commands that expand.

use serde_json::{Value, json};

use super::context::Context;
use super::hooks::Fired;
use super::turn::{End, Turn};
use super::{commands, disk, mcp};

/// A file with instructions, and whose it is.
async fn instructions(ctx: &Context) -> Vec<(String, &'static str)> {
    let config_dir = ctx.config.config_dir.as_ref();
    let user = config_dir.map(|directory| directory.join("CLAUDE.md"));
    let user = user.map(|path| (path.to_string_lossy().into_owned(), "User", "user"));
    let project = (disk::absolute(ctx, "CLAUDE.md"), "Project", "project");
    let local = (disk::absolute(ctx, "CLAUDE.local.md"), "Local", "local");
    let mut found = Vec::new();
    for (path, kind, source) in user.into_iter().chain([project, local]) {
        let on_disk = ctx.config.reads(source);
        if disk::load(ctx, &path, on_disk).await.is_some() {
            found.push((path, kind));
        }
    }
    found
}

impl Turn {
    /// Reports the changes since the previous turn, whose prompt had this id.
    pub(super) async fn catch_up(&self, before: Option<&str>) {
        if self.agent.is_some() {
            return;
        }
        let (switched, reason) = {
            let mut state = self.ctx.state();
            (state.switched.take(), state.instructions.take())
        };
        if let Some(fields) = switched {
            let model = fields["to_model"].as_str().unwrap_or_default().to_owned();
            self.ctx
                .fire("PostModelSwitch", Some(&model), before, fields)
                .await;
        }
        let Some(reason) = reason else { return };
        if !self.ctx.is_hooked("InstructionsLoaded") {
            return;
        }
        let prompt_id = (reason == "compact").then_some(before).flatten();
        for (path, kind) in instructions(&self.ctx).await {
            let fields = json!({"file_path": path, "memory_type": kind, "load_reason": reason});
            self.ctx
                .fire("InstructionsLoaded", Some(reason), prompt_id, fields)
                .await;
        }
    }

    /// Lets hooks change a displayed text. Texts of subagents are not displayed.
    pub(super) async fn display(&mut self, text: &str) -> Option<String> {
        if self.agent.is_some() || !self.ctx.is_hooked("MessageDisplay") {
            return None;
        }
        let message_id = self.ctx.uuid();
        let new = || self.caller.ctx.uuid();
        let turn_id = self.turn_id.get_or_insert_with(new).clone();
        let fields = json!({
            "turn_id": turn_id, "message_id": message_id, "index": 0, "final": true, "delta": text,
        });
        // The turn notices an abort when it continues.
        let id = format!("{message_id}-0");
        let fired = self.fire("MessageDisplay", None, Some(&id), fields).await;
        let mut content = fired.into_iter().flatten().filter_map(|fired| match fired {
            Fired::Answer(answer) => {
                let content = &answer["hookSpecificOutput"]["displayContent"];
                content.as_str().map(str::to_owned)
            }
            _ => None,
        });
        content.next_back()
    }

    /// Replaces a command by its text. Returns the end of the turn if a hook blocks it.
    pub(super) async fn expand(&mut self) -> Option<End> {
        let [prompt] = &self.prompts[..] else {
            return None;
        };
        if self.ctx.config.no_commands || prompt.composed || !prompt.query {
            return None;
        }
        let (name, arguments) = commands::called(&prompt.text)?;
        let command = commands::all(&self.ctx)
            .into_iter()
            .find(|command| command.name == name);
        let mut served = mcp::prompts(&self.ctx.state().servers)
            .collect::<Vec<_>>()
            .into_iter();
        let served = served.find(|prompt| prompt.name == name);
        let (text, name) = (prompt.text.clone(), name.to_owned());
        let (kind, source, expanded) = match (command, served) {
            (Some(command), _) => ("slash_command", command.source, command.expand(arguments)),
            (None, Some(served)) => match served.text(&self.ctx, arguments).await {
                Ok(expanded) => ("mcp_prompt", "mcp", expanded),
                Err(error) => return Some(End::Unexpanded(error)),
            },
            (None, None) => return None,
        };
        let fields = json!({
            "expansion_type": kind, "command_name": name, "command_args": arguments, "command_source": source, "prompt": text,
        });
        let fired = self.fire("UserPromptExpansion", Some(&name), None, fields).await;
        for fired in fired.into_iter().flatten() {
            if let Fired::Answer(answer) = fired
                && answer["decision"] == "block"
            {
                let reason = answer["reason"].as_str().unwrap_or_default();
                return Some(End::Unexpanded(format!(
                    "UserPromptExpansion operation blocked by hook:\n{reason}\n\nOriginal prompt: {text}"
                )));
            }
        }
        if let Some(prompt) = self.prompts.first_mut() {
            prompt.text = expanded;
        }
        None
    }

    /// Reports that a command was not expanded.
    pub(super) async fn send_unexpanded(&self, text: &str) {
        let fields: Value = json!({"content": text, "level": "warning", "prevent_continuation": true});
        self.ctx.send_system("informational", fields).await;
    }
}
