//! The pages for users of editors, held against the code: each begins with the same step, and what they name is there.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::root;

/// The pages of single editors.
const PAGES: [&str; 4] = ["zed", "jetbrains", "neovim", "emacs"];

/// The variables that the pages name, and a file that reads each or passes it on.
const VARIABLES: &[(&str, &str)] = &[
    ("ACP_EL", "xtask/src/clients.rs"),
    ("ANTHROPIC_API_KEY", "crates/sdk/src/env.rs"),
    ("CLAUDE_CODE_EXECUTABLE", "crates/acp/src/program.rs"),
    ("CLAUDE_CODE_OAUTH_TOKEN", "crates/sdk/src/env.rs"),
    ("CODECOMPANION", "xtask/src/clients.rs"),
    ("MCP_TOOL_TIMEOUT", INHERITED),
    ("OUTRIGGER_TOKEN", "crates/cli/src/remote/access.rs"),
    ("RUST_LOG", "crates/acp/src/program.rs"),
];

/// The CLI's own, which gets the environment of the agent.
const INHERITED: &str = "crates/acp/src/config.rs";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn page(editor: &str) -> String {
    read(&format!("docs/editors-{editor}.md"))
}

/// The blocks of code in a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let after = page.split(&fence).skip(1);
    after.map(|rest| rest.split("```").next().unwrap()).collect()
}

/// What stands between backticks in the text.
fn spans(page: &str) -> Vec<String> {
    let prose: Vec<&str> = page.split("```").step_by(2).collect();
    let prose = prose.join(" ");
    let spans = prose.split('`').skip(1).step_by(2);
    spans
        .map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn each_page_begins_with_the_same_step() {
    let first: Vec<String> = PAGES
        .iter()
        .map(|editor| {
            let page = page(editor);
            let (title, rest) = page.split_once("\n\n").unwrap();
            assert!(title.starts_with("# "), "{editor}: {title}");
            assert!(rest.starts_with("## 1. Install the agent\n"), "{editor}");
            blocks(&page, "console")[0].to_owned()
        })
        .collect();
    assert!(first.iter().all(|step| *step == first[0]), "{first:#?}");
    // The commands are those of the overview, and what they use is there.
    let overview = spans(&read("docs/editors.md"));
    for line in first[0].lines() {
        let command = line.strip_prefix("$ ").unwrap().to_owned();
        assert!(overview.contains(&command), "docs/editors.md has no `{command}`");
    }
    assert!(first[0].contains("--profile dist -p outrigger-acp"));
    assert!(read("Cargo.toml").contains("\n[profile.dist]\n"));
    assert!(read("packages/npm/pack.mjs").contains("\n  acp: {"));
}

#[test]
fn the_settings_start_the_program() {
    let bin = read("packages/acp/package.json");
    let bin: Value = serde_json::from_str(&bin).unwrap();
    let command = bin["bin"].as_object().unwrap().keys().next().unwrap().clone();
    for editor in ["zed", "jetbrains"] {
        let page = page(editor);
        let [settings] = blocks(&page, "json")[..] else {
            panic!("{editor} has one block of settings")
        };
        let settings: Value = serde_json::from_str(settings).unwrap();
        let servers = settings["agent_servers"].as_object().unwrap();
        let server = servers.values().next().unwrap();
        assert_eq!(server["command"], command, "{editor}");
        assert!(server["args"].is_array() && server["env"].is_object(), "{editor}");
        assert_eq!(server.get("type").is_some(), editor == "zed", "{editor}");
    }
    for editor in ["neovim", "emacs"] {
        let page = page(editor);
        let named = page.matches(&format!("\"{command}\"")).count();
        assert!(named >= 2, "{editor} names \"{command}\"");
    }
}

/// The settings for Neovim are those that its scenario runs with, and the function for Emacs is the one that its scenarios call.
#[test]
fn the_settings_of_neovim_and_emacs_are_those_that_are_tested() {
    let plain = |text: &str| {
        let lines = text.lines().map(|line| line.split("--").next().unwrap());
        lines.flat_map(str::split_whitespace).collect::<String>()
    };
    let neovim = page("neovim");
    let settings = plain(blocks(&neovim, "lua")[0]).replace("{\"outrigger-acp\"}", "agent");
    let tested = plain(&read("clients/acp/editors/neovim.lua"));
    assert!(tested.contains(&settings), "{settings}");
    let emacs = page("emacs");
    let call = blocks(&emacs, "elisp").join("");
    for word in ["acp-make-client", ":command ", ":command-params "] {
        assert!(call.contains(word), "{word}");
        assert!(read("clients/acp/editors/emacs.el").contains(word), "{word}");
    }
}

#[test]
fn the_variables_are_those_that_are_read() {
    let text = PAGES.map(page).concat() + &read("docs/editors.md");
    let is_of_a_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let named: BTreeSet<&str> = text
        .split(|c: char| !(is_of_a_name(c) || c.is_ascii_lowercase()))
        .filter(|word| word.contains('_') && word.chars().all(is_of_a_name))
        .chain(["CODECOMPANION"])
        .collect();
    let known: BTreeSet<&str> = VARIABLES.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, known);
    for (name, file) in VARIABLES {
        let word = match *file {
            INHERITED => ".environment(Environment::inherit_all())".to_owned(),
            _ => format!("\"{name}\""),
        };
        assert!(read(file).contains(&word), "{file} has no {word}, for {name}");
    }
}

/// The flags of the agent are held against its parser by a test of its own (`crates/acp/src/program.rs`).
#[test]
fn the_files_that_the_pages_name_are_there() {
    let names = PAGES.map(|editor| format!("docs/editors-{editor}.md"));
    for name in names.iter().map(String::as_str).chain(["docs/editors.md"]) {
        for span in spans(&read(name)) {
            let is_path =
                span.starts_with("clients/") || span.starts_with("packages/") || span.starts_with("crates/");
            if is_path && !span.contains(' ') {
                assert!(root().join(&span).exists(), "{name}: {span}");
            }
        }
    }
}
