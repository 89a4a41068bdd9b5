//! Flags and commands of the CLI, as it tells them itself, alone in a sandbox without a network.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use outrigger_claude::Sandbox;
use serde_json::{Map, Value, json};

/// How long one run may take. It only reads its arguments.
const DEADLINE: Duration = Duration::from_secs(60);

/// A flag that no version has, by which a run is made to end before it begins.
const NO_FLAG: &str = "--outrigger-asks-for-its-flags";

/// What `--help` shows, and which of the candidates exist beside.
pub(super) fn facts(claude: &Path, candidates: Vec<String>) -> Result<Value> {
    let sandbox = Sandbox::new()?;
    let help = ask(claude, &sandbox, &["--help"])?;
    let (flags, commands) = read_help(&help);
    if flags.is_empty() {
        bail!("`claude --help` shows no flags:\n{help}");
    }
    let mut hidden = Map::new();
    for flag in candidates {
        if flags.contains_key(&flag) {
            continue;
        }
        if let Some(takes) = probe(claude, &sandbox, &flag)? {
            hidden.insert(flag, takes.into());
        }
    }
    Ok(json!({"flags": flags, "hidden_flags": hidden, "commands": commands}))
}

/// What a flag takes, if the CLI knows it: it names the first flag that it does not know, and the argument that a flag lacks.
fn probe(claude: &Path, sandbox: &Sandbox, flag: &str) -> Result<Option<String>> {
    let said = ask(claude, sandbox, &["--print", NO_FLAG, flag])?;
    let lacking = said
        .split_once("option '")
        .filter(|(_, rest)| rest.contains("argument missing"))
        .and_then(|(_, rest)| rest.split_once('\''));
    if let Some((declared, _)) = lacking {
        return Ok(Some(argument(declared)));
    }
    let said = ask(claude, sandbox, &["--print", flag, NO_FLAG])?;
    let unknown = |flag: &str| said.contains(&format!("unknown option '{flag}'"));
    match (unknown(flag), unknown(NO_FLAG)) {
        (true, _) => Ok(None),
        (false, true) => Ok(Some(String::new())),
        // It was about to do something else than to complain.
        (false, false) => bail!("cannot tell whether there is a flag {flag}; the CLI said: {said}"),
    }
}

/// Runs it off every network, and returns all that it said.
fn ask(claude: &Path, sandbox: &Sandbox, arguments: &[&str]) -> Result<String> {
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let mut child = Command::new(this)
        .arg("isolated")
        .arg(claude)
        .args(arguments)
        .env_clear()
        .envs(sandbox.env("http://127.0.0.1:9"))
        // Wide enough that no flag is broken over lines.
        .env("COLUMNS", "400")
        .current_dir(sandbox.project())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", claude.display()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let collect = |stream: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(stream) = stream {
                // What can be read says enough; the rest is missed by whoever looks for it.
                let _ = stream.take(4 << 20).read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let stdout = collect(stdout.map(|stream| Box::new(stream) as _));
    let stderr = collect(stderr.map(|stream| Box::new(stream) as _));
    let until = Instant::now() + DEADLINE;
    while child.try_wait()?.is_none() {
        if Instant::now() >= until {
            // It may just have ended.
            let _ = child.kill();
            child.wait()?;
            bail!("claude {} took more than {DEADLINE:?}", arguments.join(" "));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let read = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
    Ok(read(stdout) + &read(stderr))
}

/// The flags with what they take, and the commands. Nothing of the descriptions.
fn read_help(help: &str) -> (Map<String, Value>, Vec<String>) {
    let (mut flags, mut commands) = (Map::new(), Vec::new());
    let mut section = "";
    for line in help.lines() {
        if !line.starts_with(' ') {
            section = line.trim();
            continue;
        }
        // Entries are two spaces in, what is said about them more.
        let Some(entry) = line.strip_prefix("  ").filter(|entry| !entry.starts_with(' ')) else {
            continue;
        };
        let declared = entry.split("  ").next().unwrap_or_default();
        match section {
            "Options:" => {
                let takes = argument(declared);
                for name in names(declared) {
                    flags.insert(name, takes.clone().into());
                }
            }
            "Commands:" => {
                let names = declared.split_whitespace().next().unwrap_or_default();
                commands.extend(names.split('|').map(str::to_owned));
            }
            _ => {}
        }
    }
    commands.sort();
    (flags, commands)
}

/// The long names in `-r, --resume [value]`.
fn names(declared: &str) -> impl Iterator<Item = String> {
    declared
        .split([' ', ','])
        .filter(|word| word.starts_with("--"))
        .map(str::to_owned)
}

/// What follows the names: `<value>`, `[value]`, or nothing.
fn argument(declared: &str) -> String {
    match declared.find(['<', '[']) {
        Some(at) => declared[at..].trim().to_owned(),
        None => String::new(),
    }
}

/// Adds the strings that are written like a flag in a program's text.
pub(super) fn flags_in(text: &str, found: &mut Vec<String>) {
    for (at, _) in text.match_indices("--") {
        let quoted = text[..at].ends_with(['"', '\'', '`']);
        let name: String = text[at..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        let ends = text[at + name.len()..].starts_with(['"', '\'', '`', '=']);
        let is_flag = name.len() > 3 && name.as_bytes()[2].is_ascii_lowercase() && !name.ends_with('-');
        if quoted && ends && is_flag {
            found.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_read_without_its_descriptions() {
        let help = "Usage: claude [options]\n\nArguments:\n  prompt   Your prompt\n\nOptions:\n  \
                    --allowedTools, --allowed-tools <tools...>\n      Takes --other too\n  \
                    -c, --continue    Continue\n  --debug [filter]  Debug\n\nCommands:\n  \
                    plugin|plugins   Manage\n  auth             Sign in\n";
        let (flags, commands) = read_help(help);
        let expected = json!({
            "--allowedTools": "<tools...>", "--allowed-tools": "<tools...>", "--continue": "", "--debug": "[filter]"
        });
        assert_eq!(Value::Object(flags), expected);
        assert_eq!(commands, ["auth", "plugin", "plugins"]);
    }

    #[test]
    fn flags_are_whole_strings() {
        let mut found = Vec::new();
        flags_in(
            r#"a("--one-two", '--three', `--four=${x}`, "--", "--Not", "see --five", "--six seven", --eight)"#,
            &mut found,
        );
        assert_eq!(found, ["--one-two", "--three", "--four"]);
    }
}
