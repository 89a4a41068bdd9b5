//! What the rules, the mode and the paths decide about a tool call, before any permission request is sent.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::{AgentState, Context};
use super::models::Model;
use super::paths::{self, Area};
use super::rules::{Access, Accessed, PermissionRule, PermissionRules, RuleRoots, RuleSource, Subject, host};
use super::shell::{self, Doubt, ShellCommand, ShellLine};
use super::subagent::is_agent_tool;
use super::{BYPASS, mcp, plans};
use crate::word_list::WordList;

/// Whether the rules remove this tool. A tool of the CLI's own that is denied in mid-session stays, and is refused.
pub(super) fn disallowed(rules: &PermissionRules, tool: &str) -> bool {
    let counts = |rule: &&PermissionRule| rule.source != RuleSource::Session || tool.starts_with("mcp__");
    rules.deny.iter().filter(counts).any(|rule| rule.is_for_all(tool))
}

/// The decision before any request is sent.
pub(super) enum Verdict {
    Allow(&'static str),
    /// By a rule from there.
    AllowByRule(RuleSource),
    Deny {
        message: String,
        reason: &'static str,
        /// Who has decided it, as the result of the tool says.
        source: &'static str,
        /// Whether a hook cannot allow it.
        firm: bool,
    },
    /// A check on the server would decide, which no scripted API has.
    Unchecked {
        /// Whether a hook cannot allow it.
        firm: bool,
    },
    Ask(Why),
}

/// The reason of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// Nothing speaks for it.
    Undecided,
    /// The mode wants it.
    Mode,
    /// A rule of this source wants it.
    Rule(RuleSource),
    /// A rule wants it for a part of a line.
    RuleForPart,
    /// A rule wants it for a command inside of another one, or what the line does cannot be checked.
    RuleInDoubt(PermissionRule, Doubt),
    /// A hook wants it, for this reason.
    Hook(String),
    /// The file is elsewhere.
    Outside(Access, PathBuf),
    /// A file would be written through a link that leads elsewhere, to there.
    LedOut(PathBuf, PathBuf),
    Sensitive(PathBuf),
    /// A command would remove this.
    Critical(PathBuf),
    /// A command line cannot be checked.
    Doubt(Doubt),
    /// A line that would be allowed leaves a command running.
    Background,
    /// A command that is not known.
    Unknown,
    /// A command such as `find`, `sed` or `jq` may do more than its name says.
    Acts,
    /// A line goes elsewhere and changes files there; whether more than by redirections.
    Moves(bool),
    /// `cp` or `mv` has options: the CLI then does not tell which files it changes.
    Options,
    /// A command reads or changes this path.
    Path(Blocked),
    /// A command reads this path, which goes up behind a directory.
    Winding(PathBuf),
    /// Several commands of a line need permission; with what would allow them.
    Several(Vec<Hint>),
}

/// A path that a command must not use unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocked {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    /// The link by which a command would write to this path, which is outside by it alone.
    pub(super) link: Option<PathBuf>,
    /// Whether the command only redirects its output to this path.
    pub(super) redirected: bool,
}

/// What would allow a part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hint {
    Rules(Vec<SuggestedRule>),
    Files(Blocked),
}

/// A tool and the content of a rule for it.
pub(super) type SuggestedRule = (&'static str, String);

impl Verdict {
    /// Whether a hook cannot allow the call.
    pub(super) fn outweighs_hooks(&self) -> bool {
        match self {
            Self::Allow(_) | Self::AllowByRule(_) => false,
            Self::Unchecked { firm } | Self::Deny { firm, .. } => *firm,
            Self::Ask(why) => why.is_firm(),
        }
    }
}

impl Why {
    /// Whether a hook cannot allow the call.
    fn is_firm(&self) -> bool {
        self.is_danger()
            || matches!(
                self,
                Self::Mode | Self::Rule(_) | Self::RuleForPart | Self::RuleInDoubt(..)
            )
    }

    /// Whether this is the reason of the request even where a hook wants one.
    pub(super) fn is_danger(&self) -> bool {
        matches!(
            self,
            Self::LedOut(..) | Self::Sensitive(_) | Self::Critical(_) | Self::Background
        ) || matches!(self, Self::Path(blocked) if blocked.link.is_some())
    }
}

/// Tools that the CLI never asks about.
const UNASKED: WordList = WordList(
    "CronCreate CronDelete CronList EnterPlanMode EnterWorktree ExitWorktree ListAgents ListMcpResourcesTool \
     ReadMcpResourceDirTool ReadMcpResourceTool ReportFindings ScheduleWakeup SendMessage TaskCreate TaskGet TaskList TaskStop TaskUpdate TodoWrite ToolSearch",
);

/// What rules look at in a call.
fn looked_at<'a>(tool: &'a str, input: &'a Value) -> Subject<'a> {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let what = match tool {
        "Bash" | "Monitor" => Accessed::Command(text("command")),
        "Read" => Accessed::File(Access::Read, text("file_path")),
        // A pattern may begin with a directory.
        "Glob" if text("pattern").starts_with('/') => {
            let pattern = text("pattern");
            let fixed = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
            let end = pattern[..fixed].rfind('/').unwrap_or_default();
            Accessed::File(Access::Read, &pattern[..end])
        }
        "Glob" | "Grep" => Accessed::File(Access::Read, text("path")),
        "Write" | "Edit" => Accessed::File(Access::Write, text("file_path")),
        "NotebookEdit" => Accessed::File(Access::Write, text("notebook_path")),
        "WebFetch" => Accessed::Url(text("url")),
        _ => Accessed::Other,
    };
    Subject { tool, what }
}

/// Why a file must not be used by a tool, whatever hooks say.
pub(super) fn denied_file(ctx: &Context, tool: &str, input: &Value) -> Option<(&'static str, RuleSource)> {
    let (project, cwd) = (ctx.project(), ctx.cwd());
    let state = ctx.state();
    let place = RuleRoots::new(ctx, &state, (&project, &cwd), None);
    let call = looked_at(tool, input);
    let Accessed::File(access, path) = call.what else {
        return None;
    };
    let mut rules = state.rules.deny.iter();
    let led_to = Area::new(ctx, &state).resolved(Path::new(path));
    let led_to = led_to.to_string_lossy();
    let rule = rules.find(|rule| {
        // Where its links lead counts here for what may not be read and would be written.
        let is_hidden = access == Access::Write && rule.is_about("Read");
        let followed = Subject {
            what: Accessed::File(access, &led_to),
            ..call
        };
        rule.touches(&call, &place) || (is_hidden && rule.touches(&followed, &place))
    })?;
    let reason = match (access, tool) {
        (Access::Write, "Write") if rule.is_about("Read") => {
            "File is covered by a Read deny rule in your permission settings and cannot be written."
        }
        (Access::Write, _) if rule.is_about("Read") => {
            "File is covered by a Read deny rule in your permission settings and cannot be edited."
        }
        _ => "File is in a directory that is denied by your permission settings.",
    };
    Some((reason, rule.source))
}

/// The mode in which a call is decided.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallMode<'a> {
    pub(super) name: &'a str,
    /// Whether it is that of the kind of agent that makes the call.
    pub(super) is_own: bool,
}

/// The surroundings of a decision.
struct DecisionScene<'a> {
    ctx: &'a Context,
    state: &'a AgentState,
    mode: &'a str,
    /// What rules are about.
    project: PathBuf,
    /// What paths in commands are about.
    cwd: PathBuf,
    home: &'a Path,
    area: Area,
    /// Whether files in the project may be changed unasked.
    edits: bool,
    checked: bool,
}

/// Whether a check on the server decides what is not allowed otherwise.
fn is_checked(ctx: &Context, state: &AgentState, mode: CallMode<'_>) -> bool {
    match mode.name {
        "auto" => true,
        "plan" => {
            !mode.is_own
                && !state.is_mode_answered
                && !state.settings.disable("auto")
                && !ctx.config.may_bypass(&state.settings)
                && Model::of(&state.model).has_auto_mode()
        }
        _ => false,
    }
}

/// Whether no hook can allow this command: where plans are made without that check, and it may do more than read.
pub(super) fn is_kept_from_plans(ctx: &Context, state: &AgentState, mode: CallMode<'_>, line: &str) -> bool {
    let is_unchecked = mode.name == "plan" && !is_checked(ctx, state, mode);
    let parsed = shell::parse(line, Path::new(&ctx.config.home));
    let reads = |command: &ShellCommand| command.only_reads() && command.writes.is_empty();
    let only_reads = parsed.doubt.is_none()
        && !parsed.in_background
        && parsed.commands.iter().all(reads)
        && !line.contains('$');
    is_unchecked && !only_reads
}

/// Where a link leads that a file tool would write to: it writes to no link.
fn written_link(ctx: &Context, area: &Area, tool: &str, input: &Value) -> Option<(PathBuf, PathBuf)> {
    let path = PathBuf::from(input["file_path"].as_str()?);
    let writes = matches!(tool, "Edit" | "Write");
    let is_link = ctx.config.real_tools && writes && path.is_symlink();
    is_link.then(|| (path.clone(), area.resolved(&path)))
}

pub(super) fn decide(
    ctx: &Context,
    state: &AgentState,
    mode: CallMode<'_>,
    tool: &str,
    input: &Value,
) -> Verdict {
    let (mode, checked) = (mode.name, is_checked(ctx, state, mode));
    let scene = DecisionScene {
        ctx,
        state,
        project: ctx.project(),
        cwd: ctx.cwd(),
        home: Path::new(&ctx.config.home),
        area: Area::new(ctx, state),
        mode,
        edits: matches!(mode, "acceptEdits" | "auto"),
        checked,
    };
    let place = scene.place();
    let call = looked_at(tool, input);
    let mut denying = state.rules.deny.iter();
    if let Some(rule) = denying.find(|rule| rule.touches(&call, &place)) {
        let (message, reason) = match call.what {
            Accessed::Command(line) if !rule.is_for_all(tool) => {
                let parsed = shell::parse(line, scene.home);
                let denied = rule.touched(&parsed, &place, true).into_iter().next();
                let denied = denied.filter(|_| parsed.has_pipes && !parsed.is_in_doubt());
                let goes = parsed.commands.iter().any(|command| command.name() == "cd");
                let exact = rule.is_exact() && parsed.commands.len() == 1;
                let line = if exact { line.trim() } else { line };
                let denied = denied.map_or(line, |command| &command.text);
                // A line that cannot be taken apart is denied as a whole.
                let whole = exact || parsed.is_in_doubt() || (goes && !rule.is_about("Bash"));
                let message = format!("Permission to use {tool} with command {denied} has been denied.");
                (message, if whole { "rule" } else { "subcommandResults" })
            }
            Accessed::File(access, path) if !rule.is_for_all(tool) => {
                let does = if access == Access::Read { "read" } else { "edit" };
                (format!("Permission to {does} {path} has been denied."), "rule")
            }
            Accessed::Url(url) => (format!("WebFetch denied access to domain:{}.", host(url)), "rule"),
            _ => (format!("Permission to use {tool} has been denied."), "rule"),
        };
        return Verdict::Deny {
            message,
            reason,
            // A rule about a command decides only a part of a line.
            source: match reason {
                "rule" => rule.source.decided(false),
                _ => "config",
            },
            firm: true,
        };
    }
    if let (true, Accessed::File(_, path)) = (tool == "Read", call.what)
        && scene.area.is_endless(Path::new(path))
    {
        return Verdict::Deny {
            message: format!("Refusing to read {path}: its links lead to each other."),
            reason: "other",
            source: "config",
            firm: true,
        };
    }
    if let Some((link, target)) = written_link(ctx, &scene.area, tool, input) {
        let message = format!(
            "Refusing to write {}: it is a symbolic link. Write to the link's target path instead: {}.",
            link.display(),
            target.display()
        );
        return Verdict::Deny {
            message,
            reason: "other",
            source: "config",
            firm: true,
        };
    }
    if UNASKED.has(tool) {
        return Verdict::Allow("");
    }
    if is_agent_tool(tool) && !scene.checked && mode != BYPASS {
        let mut rules = state.rules.allow.iter();
        let by_rule = rules.any(|rule| rule.is_for_all(tool));
        return Verdict::Allow(if by_rule { "rule" } else { "" });
    }
    if (tool == "AskUserQuestion" && mode != "dontAsk") || tool == "ExitPlanMode" {
        return Verdict::Ask(Why::Undecided);
    }
    if let Accessed::Command(line) = call.what {
        if let Some(why) = scene.asked(&shell::parse(line, scene.home), tool) {
            return Verdict::Ask(why);
        }
    } else {
        // A rule that asks about reading does not ask about writing.
        let writes = matches!(call.what, Accessed::File(Access::Write, _));
        let counts =
            |rule: &&PermissionRule| rule.touches(&call, &place) && !(writes && rule.is_about("Read"));
        if let Some(rule) = state.rules.ask.iter().find(counts) {
            return Verdict::Ask(Why::Rule(rule.source));
        }
    }
    if mode == BYPASS {
        let critical = match call.what {
            Accessed::Command(line) => scene.critical(&shell::parse(line, scene.home)),
            _ => None,
        };
        return critical.map_or(Verdict::Allow("mode"), |path| Verdict::Ask(Why::Critical(path)));
    }
    let counts = |rule: &&PermissionRule| !(scene.checked && rule.is_too_wide());
    let mut allowing = state.rules.allow.iter().filter(counts);
    let allowing = allowing.find(|rule| rule.allows(&call, &place));
    let verdict = match call.what {
        Accessed::Command(line) => scene.command(line, allowing.is_some()),
        Accessed::File(access, path) => {
            let path = paths::absolute(path, &scene.cwd, scene.home);
            // What may be used anyway is put down to a rule for the whole tool alone, and what may be read to one about writing too.
            let edits = |rule: &PermissionRule| rule.is_about("Edit") && !rule.is_for_all("Edit");
            let is_named = |rule: &PermissionRule| {
                let counts = access == Access::Write || (edits(rule) && rule.allows(&call, &place));
                counts && mode != "acceptEdits"
            };
            let mut rules = state.rules.allow.iter().filter(counts);
            let by_rule = allowing.is_some()
                && (!scene.area.includes(&path) || rules.any(|rule| rule.allows_all(tool) || is_named(rule)));
            scene.file(access, path, by_rule)
        }
        _ if mode == "plan" && tool.starts_with("mcp__") && !mcp::only_reads(&state.servers, tool) => {
            Verdict::Ask(Why::Mode)
        }
        _ if allowing.is_some() => Verdict::Allow("rule"),
        _ => Verdict::Ask(Why::Undecided),
    };
    match verdict {
        Verdict::Allow("rule") => {
            Verdict::AllowByRule(allowing.map_or(RuleSource::CliArg, |rule| rule.source))
        }
        // What a command does is up to the check.
        Verdict::Ask(why) if scene.checked && why != Why::Mode => Verdict::Unchecked {
            firm: tool == "Bash" || why.is_firm(),
        },
        Verdict::Ask(why) if mode == "dontAsk" => Verdict::Deny {
            message: format!(
                "Permission to use {tool} has been denied because Claude Code is running in don't ask mode."
            ),
            reason: "mode",
            source: "config",
            firm: why.is_firm(),
        },
        verdict => verdict,
    }
}

/// What is to be said about one command of a line.
enum CommandPart {
    Fine,
    /// The command changes files, as the mode allows.
    FineByMode,
    Blocked(Blocked, bool),
    Unknown(Why),
}

impl DecisionScene<'_> {
    fn place(&self) -> RuleRoots<'_> {
        let places = (self.project.as_path(), self.cwd.as_path());
        RuleRoots::new(self.ctx, self.state, places, Some(&self.area))
    }

    fn file(&self, access: Access, path: PathBuf, by_rule: bool) -> Verdict {
        let mode = self.mode;
        let inside = self.area.includes(&path);
        let plans = plans::directory(self.ctx);
        if access == Access::Read {
            // Its own files: plans, and what background tasks put out.
            let outputs = PathBuf::from(self.ctx.output_file_of(&self.state.session_id, ""));
            let own =
                path.starts_with(plans) || outputs.parent().is_some_and(|tasks| path.starts_with(tasks));
            return match () {
                () if by_rule => Verdict::Allow("rule"),
                () if inside || self.checked => Verdict::Allow("mode"),
                () if own => Verdict::Allow("other"),
                () => Verdict::Ask(Why::Outside(access, path)),
            };
        }
        let led_out = self.area.led_out(&path);
        match () {
            () if path.starts_with(plans) => Verdict::Allow("other"),
            () if paths::is_sensitive(&path, &self.cwd) => Verdict::Ask(Why::Sensitive(path)),
            () if mode == "plan" => Verdict::Ask(Why::Mode),
            () if led_out.is_some() => {
                let to = led_out.unwrap_or_default();
                Verdict::Ask(Why::LedOut(path, to))
            }
            () if by_rule => Verdict::Allow("rule"),
            () if inside && self.edits => Verdict::Allow("mode"),
            () if !inside => Verdict::Ask(Why::Outside(access, path)),
            () => Verdict::Ask(Why::Undecided),
        }
    }

    /// The reason of a request about a line, if a rule asks about it.
    fn asked(&self, line: &ShellLine, tool: &str) -> Option<Why> {
        let place = self.place();
        let rules = &self.state.rules;
        if let Some(rule) = rules.ask.iter().find(|rule| rule.is_for_all(tool)) {
            return Some(Why::Rule(rule.source));
        }
        let mut asking = rules
            .ask
            .iter()
            .map(|rule| (rule, rule.touched(line, &place, false)));
        let (rule, meant) = asking.find(|(_, meant)| !meant.is_empty())?;
        let allows = |command: &ShellCommand| {
            command.only_reads() || rules.allow.iter().any(|rule| rule.means_command(command, false))
        };
        let is_asked = |command: &&ShellCommand| {
            meant.iter().any(|meant| std::ptr::eq(*meant, *command)) || !allows(command)
        };
        Some(match line.doubt {
            Some(doubt) if meant.iter().all(|command| command.nested) => {
                Why::RuleInDoubt(rule.clone(), doubt)
            }
            None if line.has_pipes || line.commands.iter().filter(is_asked).count() > 1 => Why::RuleForPart,
            _ => Why::Rule(rule.source),
        })
    }

    /// What a line would remove that nobody may remove.
    fn critical(&self, line: &ShellLine) -> Option<PathBuf> {
        let mut commands = line.commands.iter();
        commands.find_map(|command| command.removes_critical(&self.cwd, self.home))
    }

    fn command(&self, text: &str, by_rule: bool) -> Verdict {
        let line = shell::parse(text, self.home);
        if let Some(path) = self.critical(&line) {
            return Verdict::Ask(Why::Critical(path));
        }
        let mut written = line
            .commands
            .iter()
            .flat_map(|command| command.paths(&self.cwd, self.home).written);
        if let Some(path) = written.find(|path| paths::is_sensitive(path, &self.cwd)) {
            return Verdict::Ask(Why::Sensitive(path));
        }
        // A rule for all commands allows a line that nothing else allows. What is allowed anyway must not go on in the background.
        if by_rule && !line.in_background {
            return Verdict::Allow("rule");
        }
        match self.commands(&line, text) {
            Verdict::Allow(_) | Verdict::AllowByRule(_) if line.in_background => {
                Verdict::Ask(Why::Background)
            }
            _ if by_rule => Verdict::Allow("rule"),
            verdict => verdict,
        }
    }

    /// The decision about the commands of a line, without a rule for all commands.
    fn commands(&self, line: &ShellLine, text: &str) -> Verdict {
        let mut at = self.cwd.clone();
        let rules = &self.state.rules.allow;
        let writes = |command: &ShellCommand| !command.paths(&at, self.home).written.is_empty();
        let is_left_writing = line.in_background && line.commands.iter().any(writes);
        if let Some(rule) = rules.iter().find(|rule| rule.names(text) && !is_left_writing) {
            let is_one = line.commands.len() == 1 && rule.source != RuleSource::Session;
            let only_reads = matches!(line.commands.as_slice(), [command] if command.only_reads());
            return if only_reads || is_one || rule.source.is_file() {
                Verdict::AllowByRule(rule.source)
            } else {
                Verdict::Allow("subcommandResults")
            };
        }
        // The rule that allows the only command of the line, and nothing like it.
        let exact = match line.commands.as_slice() {
            [command] if !line.has_lists && text.trim_start().starts_with(&command.text) => {
                rules.iter().find(|rule| rule.names_command(command))
            }
            _ => None,
        };
        if let Some(doubt) = line.doubt {
            return Verdict::Ask(Why::Doubt(doubt));
        }
        let (commands, text) = line.without_standing(text, &self.cwd);
        let cds = commands.iter().filter(|command| command.name() == "cd");
        if cds.clone().count() > 1 {
            return Verdict::Ask(Why::Doubt(Doubt::Directories));
        }
        let goes = |command: &&&ShellCommand| {
            let to = command.words.get(1).map_or(".", String::as_str);
            !to.starts_with('/') && to != "."
        };
        let mut changed = commands.iter().map(|command| command.paths(&at, self.home));
        let moves = cds.clone().any(|command| goes(&command))
            && changed.clone().any(|paths| !paths.written.is_empty());
        let moves = moves.then(|| changed.any(|paths| paths.written.len() > paths.redirected.len()));
        let mut denied = self.state.rules.deny.iter();
        if cds.count() > 0
            && line.commands.iter().any(ShellCommand::reads_here)
            && denied.any(|rule| rule.is_about("Read"))
        {
            return Verdict::Ask(Why::Doubt(Doubt::ReadElsewhere));
        }
        let mut parts = Vec::new();
        for command in commands.iter().copied() {
            let part = self.part(command, &at);
            if command.name() == "cd" {
                let to = command.words.get(1).map_or("~", String::as_str);
                at = paths::absolute(to, &at, self.home);
                if matches!(part, CommandPart::Fine) {
                    continue;
                }
            }
            parts.push((command, part));
        }
        let several = commands.iter().filter(|command| !command.is_assignment()).count() > 1;
        let by_mode = parts
            .iter()
            .any(|(_, part)| matches!(part, CommandPart::FineByMode));
        let unclear = parts
            .iter()
            .filter(|(_, part)| !matches!(part, CommandPart::Fine))
            .count();
        parts.retain(|(_, part)| !matches!(part, CommandPart::Fine | CommandPart::FineByMode));
        let outside = parts.iter().find_map(|(_, part)| match part {
            CommandPart::Blocked(blocked, true) => Some(blocked.clone()),
            _ => None,
        });
        if let Some(blocked) = outside
            && (parts.len() == 1 || (self.edits && blocked.access == Access::Write))
        {
            return Verdict::Ask(Why::Path(blocked));
        }
        if let Some(changes) = moves
            && unclear < 2
            && !line.has_pipes
        {
            return Verdict::Ask(Why::Moves(changes));
        }
        let rules = |(command, part): &(&ShellCommand, CommandPart)| match part {
            CommandPart::Blocked(blocked, true) if blocked.access == Access::Read => {
                rules_to_read(&self.area, &blocked.path)
            }
            CommandPart::Unknown(Why::Acts) => Vec::new(),
            CommandPart::Unknown(Why::Options) if self.edits => Vec::new(),
            CommandPart::Unknown(Why::Options) => vec![("Bash", shell::pattern(text))],
            CommandPart::Unknown(_) => vec![("Bash", command.pattern())],
            _ => vec![("Bash", shell::pattern(&command.text))],
        };
        match parts.as_slice() {
            [] if moves.is_some() => Verdict::Ask(Why::Several(Vec::new())),
            [] if self.mode == "auto" && by_mode => Verdict::Allow("mode"),
            [] => exact.map_or(Verdict::Allow("subcommandResults"), |rule| {
                Verdict::AllowByRule(rule.source)
            }),
            [(_, CommandPart::Blocked(blocked, _))] if line.has_pipes && !blocked.redirected => {
                let rule = Hint::Rules(vec![("Bash", shell::pattern(text))]);
                Verdict::Ask(Why::Several(vec![rule, Hint::Files(blocked.clone())]))
            }
            [(_, CommandPart::Blocked(blocked, _))] => Verdict::Ask(Why::Path(blocked.clone())),
            [(_, CommandPart::Unknown(why @ Why::Winding(_)))] => Verdict::Ask(why.clone()),
            [(_, CommandPart::Unknown(why @ Why::Options))] if !line.has_pipes => Verdict::Ask(why.clone()),
            [(_, CommandPart::Unknown(why))] if !several => Verdict::Ask(why.clone()),
            parts => {
                let is_redirected = |(_, part): &(_, CommandPart)| matches!(part, CommandPart::Blocked(blocked, _) if blocked.redirected);
                let has_options =
                    |(_, part): &(_, CommandPart)| matches!(part, CommandPart::Unknown(Why::Options));
                let is_vague = |part: &(_, CommandPart)| is_redirected(part) || has_options(part);
                if moves.is_some() || (parts.len() > 1 && parts.iter().any(is_vague)) {
                    return Verdict::Ask(Why::Several(Vec::new()));
                }
                // What is allowed in a pipe is suggested one by one.
                if line.has_pipes && !line.has_lists {
                    let hint = |part: &(&ShellCommand, CommandPart)| match &part.1 {
                        CommandPart::Blocked(blocked, false) => Hint::Files(blocked.clone()),
                        _ => Hint::Rules(rules(part)),
                    };
                    return Verdict::Ask(Why::Several(parts.iter().map(hint).collect()));
                }
                let mut all: Vec<SuggestedRule> = Vec::new();
                for rule in parts.iter().flat_map(rules) {
                    if !all.contains(&rule) {
                        all.push(rule);
                    }
                }
                Verdict::Ask(Why::Several(vec![Hint::Rules(all)]))
            }
        }
    }

    fn part(&self, command: &ShellCommand, at: &Path) -> CommandPart {
        let paths = command.paths(at, self.home);
        let blocked = |path: &PathBuf, access| {
            let led_out = self.area.led_out(path).filter(|_| access == Access::Write);
            Blocked {
                // What is not there is followed only to outside, to write there.
                path: match &led_out {
                    None if self.area.is_dangling(path) => path.clone(),
                    _ => self.area.resolved(path),
                },
                access,
                link: led_out.map(|_| path.clone()),
                redirected: paths.redirected.contains(path),
            }
        };
        if command.copies_by_options() && (self.edits || paths.redirected.is_empty()) {
            return CommandPart::Unknown(Why::Options);
        }
        // Which files are written must be known.
        if let Some(path) = paths.pattern.clone() {
            let (access, redirected) = (Access::Write, false);
            return CommandPart::Blocked(
                Blocked {
                    path,
                    access,
                    link: None,
                    redirected,
                },
                true,
            );
        }
        if let Some(path) = paths.winding.clone() {
            return CommandPart::Unknown(Why::Winding(path));
        }
        let place = self.place();
        let by_rule_for_files = |path: &PathBuf, access| {
            let mut rules = self.state.rules.allow.iter();
            rules.any(|rule| rule.allows_file(access, path, &place))
        };
        let outside = |path: &PathBuf, access| !self.area.includes(path) && !by_rule_for_files(path, access);
        if let Some(path) = paths.written.iter().find(|path| outside(path, Access::Write)) {
            return CommandPart::Blocked(blocked(path, Access::Write), true);
        }
        if let Some(path) = paths.read.iter().find(|path| outside(path, Access::Read)) {
            return CommandPart::Blocked(blocked(path, Access::Read), true);
        }
        let by_rule = self
            .state
            .rules
            .allow
            .iter()
            .any(|rule| rule.means_command(command, false));
        let is_kept = command.is_assignment() && !paths.redirected.is_empty();
        let allowed = (command.only_reads() && !is_kept) || by_rule;
        let known = allowed || (self.edits && command.only_changes_files());
        let mut written = paths.written.iter();
        match written.find(|path| !by_rule_for_files(path, Access::Write)) {
            _ if allowed && paths.redirected.is_empty() => CommandPart::Fine,
            _ if known && (paths.redirected.is_empty() || self.edits) => CommandPart::FineByMode,
            Some(path) if !self.edits => CommandPart::Blocked(blocked(path, Access::Write), false),
            None if allowed => CommandPart::Fine,
            _ if command.acts() => CommandPart::Unknown(Why::Acts),
            _ => CommandPart::Unknown(Why::Unknown),
        }
    }
}

/// The rules by which this file may be read.
pub(super) fn rules_to_read(area: &Area, path: &Path) -> Vec<SuggestedRule> {
    let directories = area.directories_of(path).into_iter();
    let rule = |directory: PathBuf| ("Read", format!("/{}/**", directory.display()));
    directories.map(rule).collect()
}
