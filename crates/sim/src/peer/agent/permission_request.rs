//! The `can_use_tool` request: how it describes a call, why it is sent, and what it suggests.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use unicode_width::UnicodeWidthChar as _;

use super::caller::ModelCall;
use super::context::{AgentState, Context};
use super::decision::{Hint, SuggestedRule, Why, rules_to_read};
use super::mcp;
use super::paths::{self, Area};
use super::rules::{Access, host};
use super::shell::{self, Doubt};
use crate::fields::JsonFields as _;

/// Whether a line is redirected to this file.
fn is_redirected(ctx: &Context, line: &str, path: &PathBuf) -> bool {
    let (cwd, home) = (ctx.cwd(), Path::new(&ctx.config.home));
    let mut commands = shell::parse(line, home).commands.into_iter();
    commands.any(|command| command.paths(&cwd, home).redirected.contains(path))
}

fn led_out(path: &Path, to: &Path) -> String {
    let (path, to) = (path.display(), to.display());
    format!("{path} resolves through a symlink to {to}, which is outside the allowed working directories")
}

/// The description of a call for a person.
pub(super) fn description(ctx: &Context, tool: &str, input: &Value) -> Value {
    let described = |key: &str| match input[key].as_str() {
        Some(path) => json!(paths::described(
            Path::new(path),
            &ctx.cwd(),
            Path::new(&ctx.config.home)
        )),
        None => Value::Null,
    };
    let shortened = |key: &str| {
        input[key]
            .as_str()
            .map_or(Value::Null, |text| json!(shortened(text)))
    };
    match tool {
        "Bash" | "Monitor" => match input["description"].as_str() {
            Some(description) if !description.is_empty() => json!(description),
            _ => shortened("command"),
        },
        "Write" | "Edit" | "Read" => described("file_path"),
        "NotebookEdit" => described("notebook_path"),
        "Glob" | "Grep" => shortened("pattern"),
        "WebFetch" => shortened("url"),
        "WebSearch" => shortened("query"),
        "Agent" => input["description"].clone(),
        _ => Value::Null,
    }
}

/// A text in 50 columns, of which a wide character takes two.
fn shortened(text: &str) -> String {
    const COLUMNS: usize = 50;
    let width = |c: char| c.width().unwrap_or(0);
    if text.chars().map(width).sum::<usize>() <= COLUMNS {
        return text.to_owned();
    }
    let mut left = COLUMNS - 1;
    let fitting = text.chars().take_while(|c| {
        let fits = width(*c) <= left;
        left -= width(*c).min(left);
        fits
    });
    fitting.chain(['…']).collect()
}

/// The `can_use_tool` request.
pub(super) fn permission_request(
    ctx: &Context,
    state: &AgentState,
    mode: &str,
    call: &ModelCall,
    why: Why,
    mcp: Option<&mcp::FoundTool>,
) -> Value {
    let tool = call.name.as_str();
    let mut request = json!({
        "subtype": "can_use_tool",
        "tool_name": tool,
        "display_name": tool,
        "input": call.shown,
        "tool_use_id": call.id,
    });
    if tool == "AskUserQuestion"
        && let Some(input) = request["input"].as_object_mut()
    {
        input.shift_remove("answers");
    }
    let description = description(ctx, tool, &call.shown);
    request.put("description", (!description.is_null()).then_some(description));
    let waits = tool == "AskUserQuestion" || tool == "ExitPlanMode";
    request.put("requires_user_interaction", waits.then_some(true));
    let line = call.shown["command"].as_str().unwrap_or_default();
    let parsed = shell::parse(line, Path::new(&ctx.config.home));
    let cwd = ctx.cwd();
    let (commands, line) = parsed.without_standing(line, &cwd);
    let acts = commands.iter().find(|command| !command.is_assignment());
    let alone = acts.map_or_else(|| shell::pattern(line), |command| command.pattern());
    let area = Area::new(ctx, state);
    let suggest = Suggest {
        tool,
        line,
        cwd: &cwd,
        area: &area,
        edits: mode == "acceptEdits" || (mode == "plan" && ctx.config.may_bypass(&state.settings)),
    };
    let by_rule = matches!(why, Why::Rule(_) | Why::Mode | Why::Hook(_));
    let why = match why {
        Why::RuleInDoubt(rule, doubt) => {
            request["matched_ask_rule"] = rule.matched();
            Why::Doubt(doubt)
        }
        why => why,
    };
    let mut set = |fields: Value| request.merge(fields);
    match why {
        Why::Undecided if waits => {}
        Why::Undecided => set(json!({"permission_suggestions": suggest.undecided(&call.shown)})),
        Why::Mode => set(json!({"decision_reason_type": "mode"})),
        Why::Rule(source) => set(json!({
            "decision_reason_type": "rule", "decision_reason_rule_source": source.as_str(), "server_policy_ask_only": false,
        })),
        Why::Hook(reason) => {
            if !reason.is_empty() || !call.is_placed() {
                set(json!({ "decision_reason": reason }));
            }
            set(json!({
                "decision_reason_type": "hook", "decision_reason_hook_event": "PreToolUse",
                "decision_reason_hook_source": "settings",
            }));
        }
        Why::Outside(access, path) => {
            let mut reason = "Path is outside allowed working directories".to_owned();
            if let Some(to) = area.led_out(&path) {
                reason = led_out(&path, &to);
                set(json!({"blocked_path": to.to_string_lossy()}));
            }
            set(json!({
                "decision_reason": reason, "decision_reason_type": "workingDir",
                "permission_suggestions": suggest.files(access, &path, access == Access::Write),
            }));
        }
        Why::LedOut(path, to) => set(json!({
            "blocked_path": to.to_string_lossy(), "classifier_approvable": false, "decision_reason": led_out(&path, &to),
            "decision_reason_type": "safetyCheck", "suppress_always_allow_rule": true,
            "permission_suggestions": suggest.files(Access::Write, &path, true),
        })),
        Why::Sensitive(path) => {
            let is_inside = area.includes(&path);
            let reason = if paths::is_of_the_cli(&path) && is_inside {
                format!(
                    "Claude requested permissions to write to {}, but you haven't granted it yet.",
                    path.display()
                )
            } else {
                format!(
                    "Claude requested permissions to edit {} which is a sensitive file.",
                    path.display()
                )
            };
            let suggestions = if line.is_empty() && is_inside {
                suggest.accept_edits()
            } else if line.is_empty() {
                suggest.files(Access::Write, &path, true)
            } else {
                set(json!({"blocked_path": path.to_string_lossy()}));
                let mut suggestions = vec![suggest.directories(&path)];
                if !is_redirected(ctx, line, &path) {
                    suggestions.extend(suggest.accept_edits());
                }
                suggestions
            };
            set(json!({
                "classifier_approvable": true, "decision_reason": reason, "decision_reason_type": "safetyCheck",
                "permission_suggestions": suggestions,
            }));
        }
        Why::Critical(path) => set(json!({
            "classifier_approvable": false, "decision_reason_type": "safetyCheck", "permission_suggestions": [],
            "decision_reason": format!("Dangerous rm operation on critical path: {}", path.display()),
            "suppress_always_allow_rule": true,
        })),
        Why::Background => set(json!({
            "classifier_approvable": false, "suppress_always_allow_rule": true,
            "decision_reason_type": if parsed.has_pipes { "subcommandResults" } else { "safetyCheck" },
            "decision_reason": "The `&` operator runs a command in the background, behind the checks of this one",
        })),
        Why::Doubt(doubt @ (Doubt::Subshell | Doubt::Directories)) => {
            set(json!({"decision_reason": doubt.reason(), "decision_reason_type": "other"}));
        }
        Why::Doubt(doubt) => set(json!({
            "decision_reason": doubt.reason(), "decision_reason_type": "other", "permission_suggestions": [],
        })),
        Why::Unknown => {
            set(
                json!({"decision_reason": "This command requires approval", "decision_reason_type": "other"}),
            );
            if !parsed.in_background {
                set(json!({"permission_suggestions": [suggest.rule(&alone)]}));
            }
        }
        Why::Acts => {
            set(json!({
                "decision_reason": "This command may do more than its name says, and a person is asked each time",
                "decision_reason_type": "other",
            }));
            if !alone.starts_with("sed") {
                set(json!({"permission_suggestions": []}));
            }
        }
        Why::Moves(_) | Why::Options => {
            let reason = match why {
                Why::Options => "Which files this command changes is not told from its options",
                _ => "The line goes to another directory and changes files there",
            };
            set(json!({"decision_reason": reason, "decision_reason_type": "other"}));
            if !matches!(why, Why::Moves(false)) {
                let mut suggestions = Vec::new();
                if !suggest.edits {
                    suggestions.push(suggest.rule(&shell::pattern(line)));
                    suggestions.extend(suggest.accept_edits());
                }
                set(json!({"permission_suggestions": suggestions}));
            }
        }
        Why::Winding(path) => set(json!({
            "blocked_path": path, "decision_reason": "This path goes up again behind a directory",
            "decision_reason_type": "other",
        })),
        Why::Path(blocked) if blocked.link.is_some() => {
            let link = blocked.link.clone().unwrap_or_default();
            set(json!({
                "blocked_path": blocked.path.to_string_lossy(), "classifier_approvable": false,
                "decision_reason": led_out(&link, &blocked.path), "decision_reason_type": "safetyCheck",
                "suppress_always_allow_rule": true, "permission_suggestions": suggest.hint(&Hint::Files(blocked)),
            }));
        }
        Why::Path(blocked) if blocked.access == Access::Read && area.is_dangling(&blocked.path) => {
            set(json!({"blocked_path": blocked.path.to_string_lossy()}));
            if area.is_endless(&blocked.path) {
                set(
                    json!({"decision_reason": "Its links lead to each other", "decision_reason_type": "other"}),
                );
            }
        }
        Why::Path(blocked) => {
            let mut suggestions = vec![suggest.rule(&shell::pattern(line))];
            set(json!({"blocked_path": blocked.path.to_string_lossy()}));
            if !blocked.path.is_absolute() {
                set(json!({
                    "decision_reason": "A pattern may stand for more files than one", "decision_reason_type": "other",
                }));
            }
            let is_read = blocked.access == Access::Read;
            suggestions.extend(suggest.hint(&Hint::Files(blocked)));
            if !(is_read && parsed.in_background) {
                set(json!({"permission_suggestions": suggestions}));
            }
        }
        // It has become a doubt.
        Why::RuleInDoubt(..) => {}
        Why::RuleForPart => set(json!({"decision_reason_type": "subcommandResults"})),
        Why::Several(hints) => {
            set(json!({"decision_reason_type": "subcommandResults"}));
            let suggestions: Vec<Value> = hints.iter().flat_map(|hint| suggest.hint(hint)).collect();
            if !suggestions.is_empty() && !parsed.in_background {
                set(json!({"permission_suggestions": suggestions}));
            }
        }
    }
    if let Some(found) = mcp {
        set(json!({
            "mcp_server": {"name": found.server, "source": "sdk"}, "display_name": mcp::display_name(&found.tool),
        }));
        if !by_rule {
            // Whether no hook has a say.
            let mut hooks = state.hooks.iter();
            let is_hooked = hooks.any(|hook| hook.fits("PermissionRequest", Some(tool)));
            set(json!({"server_policy_ask_only": !is_hooked}));
        }
    }
    request
}

/// What would spare the person the next request.
struct Suggest<'a> {
    tool: &'a str,
    line: &'a str,
    cwd: &'a Path,
    area: &'a Area,
    /// Whether the mode in which files may be changed is not suggested.
    edits: bool,
}

fn add_rules(rules: &[SuggestedRule], destination: &str) -> Value {
    let rules = rules.iter();
    let rules: Vec<Value> = rules
        .map(|(tool, content)| json!({"toolName": tool, "ruleContent": content}))
        .collect();
    json!({"type": "addRules", "rules": rules, "behavior": "allow", "destination": destination})
}

impl Suggest<'_> {
    fn rule(&self, content: &str) -> Value {
        let rule = json!({"toolName": self.tool, "ruleContent": content});
        json!({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"})
    }

    /// The mode in which files may be changed, unless it is that already.
    fn accept_edits(&self) -> Vec<Value> {
        let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
        if self.edits { Vec::new() } else { vec![mode] }
    }

    fn directories(&self, path: &Path) -> Value {
        let directories = self.area.directories_of(&self.cwd.join(path));
        json!({"type": "addDirectories", "directories": directories, "destination": "session"})
    }

    /// What would allow this use of a file; with the mode in front for the tools that only use files.
    fn files(&self, access: Access, path: &Path, mode_first: bool) -> Vec<Value> {
        if access == Access::Write {
            let mode = if mode_first {
                self.accept_edits()
            } else {
                Vec::new()
            };
            return [mode, vec![self.directories(path)]].concat();
        }
        let rules = rules_to_read(self.area, path).into_iter();
        rules.map(|rule| add_rules(&[rule], "session")).collect()
    }

    fn hint(&self, hint: &Hint) -> Vec<Value> {
        match hint {
            Hint::Rules(rules) if rules.is_empty() => Vec::new(),
            Hint::Rules(rules) => vec![add_rules(rules, "localSettings")],
            Hint::Files(blocked) => {
                let mut suggestions = self.files(blocked.access, &blocked.path, false);
                if blocked.access == Access::Write && !blocked.redirected {
                    suggestions.extend(self.accept_edits());
                }
                suggestions
            }
        }
    }

    fn undecided(&self, input: &Value) -> Vec<Value> {
        match self.tool {
            "Write" | "Edit" | "NotebookEdit" => self.accept_edits(),
            "WebFetch" => {
                let host = host(input["url"].as_str().unwrap_or_default());
                vec![self.rule(&format!("domain:{host}"))]
            }
            "Bash" => vec![self.rule(&shell::pattern(self.line))],
            tool => vec![json!({
                "type": "addRules", "rules": [{"toolName": tool}], "behavior": "allow", "destination": "localSettings",
            })],
        }
    }
}
