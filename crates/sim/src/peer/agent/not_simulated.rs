//! What is the CLI's private life, and not simulated: the list of it, and what is said where it is met.

use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use super::commands;
use super::context::{Context, QueuedPrompt};

/// `docs/testing.md` has the same.
static LIST: LazyLock<List> =
    LazyLock::new(|| serde_json::from_str(include_str!("not_simulated.json")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Slash commands.
    commands: Vec<String>,
    /// Tools, unless a script says what comes out of them.
    tools: Vec<String>,
    /// Control requests.
    requests: Vec<String>,
}

/// Something that a session or a prompt uses, and that is not simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::peer) enum Feature {
    Plugins,
    MainAgent,
    ManagedSettings,
    SettingsHooks,
    Sandbox,
    AvailableModels,
    ConfiguredServers,
    ServerPolicy,
    Flags,
    Skill,
    Mention,
    LongPrompt,
    Autocompact,
    Compaction,
    PermissionTool,
    Worktree,
}

impl Feature {
    #[cfg(test)]
    const ALL: [Self; 16] = [
        Self::Plugins,
        Self::MainAgent,
        Self::ManagedSettings,
        Self::SettingsHooks,
        Self::Sandbox,
        Self::AvailableModels,
        Self::ConfiguredServers,
        Self::ServerPolicy,
        Self::Flags,
        Self::Skill,
        Self::Mention,
        Self::LongPrompt,
        Self::Autocompact,
        Self::Compaction,
        Self::PermissionTool,
        Self::Worktree,
    ];

    /// The name, as `docs/testing.md` has it.
    const fn name(self) -> &'static str {
        match self {
            Self::Plugins => "a plugin",
            Self::MainAgent => "an agent for the whole session (`--agent`)",
            Self::ManagedSettings => "managed settings",
            Self::SettingsHooks => "a hook in settings",
            Self::Sandbox => "commands in a sandbox (`sandbox` of settings)",
            Self::AvailableModels => "a list of the models to choose from (`availableModels`)",
            Self::ConfiguredServers => "an MCP server of `.mcp.json` or `.claude.json`",
            Self::ServerPolicy => {
                "a list of the MCP servers to allow or deny (`allowedMcpServers`, `deniedMcpServers`)"
            }
            Self::Flags => {
                "a flag that changes what the CLI reads and calls (`--bare`, `--project-config-root`, `--restricted`, `--safe-mode`)"
            }
            Self::Skill => "a skill",
            Self::Mention => "a file that a prompt names by `@`",
            Self::LongPrompt => "a prompt of more than two million characters",
            Self::Autocompact => "a limit at which the context is compacted (`--autocompact`)",
            Self::Compaction => "a request behind others that the API finds too long, and the CLI compacts",
            Self::PermissionTool => {
                "a tool of a server that decides about calls (`--permission-prompt-tool`)"
            }
            Self::Worktree => "an agent in a worktree of its own (`isolation`)",
        }
    }
}

/// More bytes may be more tokens than the model takes, which nobody counts here.
const LONGEST_PROMPT: usize = 2_000_000;

const INSTEAD: &str = "let the real CLI play this script (`outrigger mock-api`)";

/// What a turn ends with that begins with this slash command; none if it is no command of this list.
pub(super) fn command(name: &str) -> Option<String> {
    let listed = LIST.commands.iter().any(|command| command == name);
    listed.then(|| format!("/{name} is not simulated: {INSTEAD}"))
}

/// The error that answers this control request; none if it is none of this list.
pub(super) fn request(subtype: &str) -> Option<String> {
    let listed = LIST.requests.iter().any(|request| request == subtype);
    listed.then(|| format!("the control request {subtype} is not simulated: {INSTEAD}"))
}

/// Why a schema with this keyword is refused.
pub(super) fn keyword(keyword: &str) -> String {
    format!("the keyword {keyword} is not simulated: {INSTEAD}")
}

/// What a turn ends with that uses this.
pub(super) fn feature(feature: Feature) -> String {
    format!("{} is not simulated: {INSTEAD}", feature.name())
}

/// What a turn with these prompts uses that is not simulated.
pub(super) fn used(ctx: &Context, prompts: &[QueuedPrompt]) -> Option<Feature> {
    let config = &ctx.config;
    if let Some(feature) = config.unsimulated.first() {
        return Some(*feature);
    }
    {
        let state = ctx.state();
        if let Some(feature) = state.unsimulated {
            return Some(feature);
        }
        let is_on = |key: &str| state.settings.get(&[key]).is_some_and(|value| value == true);
        let has = |key: &str, counts: fn(&serde_json::Value) -> bool| {
            let value = state.settings.get(&[key]).unwrap_or_default();
            value
                .as_object()
                .is_some_and(|object| object.values().any(counts))
        };
        if has("enabledPlugins", |enabled| enabled != false) {
            return Some(Feature::Plugins);
        }
        let is_hook = |matchers: &serde_json::Value| matchers.as_array().is_some_and(|list| !list.is_empty());
        if has("hooks", is_hook) && !is_on("disableAllHooks") {
            return Some(Feature::SettingsHooks);
        }
        if state
            .settings
            .get(&["sandbox", "enabled"])
            .is_some_and(|enabled| enabled == true)
        {
            return Some(Feature::Sandbox);
        }
        if state.settings.get(&["availableModels"]).is_some() {
            return Some(Feature::AvailableModels);
        }
        if state.settings.configures_servers() {
            return Some(Feature::ConfiguredServers);
        }
        let denied = state.settings.get(&["deniedMcpServers"]).unwrap_or_default();
        let denies = denied.as_array().is_some_and(|denied| !denied.is_empty());
        if denies || state.settings.get(&["allowedMcpServers"]).is_some() {
            return Some(Feature::ServerPolicy);
        }
    }
    if prompts.iter().any(|prompt| prompt.text.len() > LONGEST_PROMPT) {
        return Some(Feature::LongPrompt);
    }
    let prompts = prompts.iter().filter(|prompt| prompt.query && !prompt.composed);
    for prompt in prompts {
        if let Some((name, _)) = commands::called(&prompt.text)
            && !config.no_commands
            && commands::is_skill(config, &ctx.project(), name)
        {
            return Some(Feature::Skill);
        }
        if mentions(&prompt.text).any(|path| is_file(ctx, path)) {
            return Some(Feature::Mention);
        }
    }
    None
}

/// What a prompt names by `@`, as it stands there.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices('@').filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(char::is_whitespace)
    });
    starts.filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(path, _)| path),
            None => rest.split(char::is_whitespace).next(),
        }
    })
}

/// Whether the CLI would find something to read at a mentioned path. It may have lines (`#L1-10`) and a mark at its end.
fn is_file(ctx: &Context, path: &str) -> bool {
    let without_lines = path.split_once('#').map_or(path, |(path, _)| path);
    let bare = without_lines.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    [path, without_lines, bare].into_iter().any(|path| {
        let place = match path.strip_prefix("~/") {
            Some(path) => Path::new(&ctx.config.home).join(path),
            None => ctx.project().join(path),
        };
        !path.is_empty()
            && (place.exists() || ctx.config.files.contains_key(place.to_string_lossy().as_ref()))
    })
}

/// What a call of this tool ends with.
pub(super) fn tool(name: &str) -> String {
    if LIST.tools.iter().any(|tool| tool == name) {
        return call(name);
    }
    format!("No such tool available: {name}")
}

/// What such a call ends with.
pub(super) fn call(what: &str) -> String {
    format!("{what} is not simulated: give the call an outcome, or {INSTEAD}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/testing.md"));

    fn names(line: &str) -> Vec<&str> {
        let (_, rest) = PAGE.split_once(line).unwrap();
        let (list, _) = rest.split_once("\n\n").unwrap();
        let quoted = list.split('`').skip(1).step_by(2);
        quoted.map(|name| name.trim_start_matches('/')).collect()
    }

    #[test]
    fn the_page_has_the_same_list() {
        assert_eq!(names("* Slash commands: "), LIST.commands);
        assert_eq!(
            names("* Tools, unless a script gives the call an outcome: "),
            LIST.tools
        );
        assert_eq!(names("* Control requests: "), LIST.requests);
        let keywords = names("* Keywords of a JSON schema, which is refused: ");
        let refused: Vec<&str> = super::super::structured::NOT_SIMULATED.iter().collect();
        assert_eq!(keywords, refused);
    }

    #[test]
    fn the_page_has_the_features() {
        let (_, rest) = PAGE.split_once("* Of a session or a prompt: ").unwrap();
        let (list, _) = rest.split_once(".\n\n").unwrap();
        let list = list.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(list, Feature::ALL.map(Feature::name).join("; "));
    }

    #[test]
    fn mentions_stand_at_the_beginning_of_a_word() {
        let text = "@a.txt and (@b) me@c.example \"@d\" @\"e f.md\"\n@~/g";
        assert_eq!(mentions(text).collect::<Vec<_>>(), ["a.txt", "e f.md", "~/g"]);
    }

    #[test]
    fn every_tool_is_simulated_or_listed() {
        let simulated = [
            "Task",
            "AskUserQuestion",
            "Bash",
            "Edit",
            "EnterPlanMode",
            "ExitPlanMode",
            "Read",
            "TaskStop",
            "Write",
        ];
        for tool in super::super::payload::tools() {
            let listed = LIST.tools.contains(&tool);
            assert_ne!(listed, simulated.contains(&tool.as_str()), "{tool}");
        }
    }
}
