//! Slash commands that are files: `commands/NAME.md` of the project and of the user.

use std::path::Path;
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};
use serde_json::{Value, json};

use super::Config;
use super::context::Context;
use super::{mcp, payload};

/// A command of a file.
pub(super) struct FileCommand {
    pub(super) name: String,
    /// The source of the command, as settings are named.
    pub(super) source: &'static str,
    description: String,
    hint: String,
    /// The names of the words of the arguments.
    names: Vec<String>,
    body: String,
}

/// Where the arguments of a command go: one word, all, a word by its number, and a word by its name.
static PLACES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$(?:ARGUMENTS\[(\d+)\]|(ARGUMENTS)|(\d+)|(\w+))").ok());

/// The words of the arguments, of which a quoted one may have spaces.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for char in text.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, _) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

/// The command in a text, and its arguments.
pub(super) fn called(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?.trim_end();
    let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c));
    plain.then_some((name, arguments.trim()))
}

/// All that there are, by name; those of the project win.
pub(super) fn all(ctx: &Context) -> Vec<FileCommand> {
    let files = markdown(&ctx.config, &ctx.project(), "commands").into_iter();
    let mut commands: Vec<FileCommand> = files
        .map(|(name, source, text)| FileCommand::read(name, source, &text))
        .collect();
    commands.sort_by(|a, b| a.name.cmp(&b.name));
    commands.dedup_by(|later, first| later.name == first.name);
    commands
}

/// The commands of files, of the CLI and of servers, as the reply to `initialize` has them.
pub(super) fn listed(ctx: &Context) -> Value {
    let own = all(ctx);
    let own = own.iter().map(FileCommand::listed);
    let commands = own.chain(payload::commands());
    commands
        .chain(mcp::prompts(&ctx.state().servers).map(|prompt| prompt.listed()))
        .collect()
}

/// The Markdown files of this kind: their names, whose they are and their texts, those of the project first.
pub(super) fn markdown(config: &Config, cwd: &Path, kind: &str) -> Vec<(String, &'static str, String)> {
    let project = cwd.join(".claude");
    let user = config.config_dir.as_deref();
    let mut found = Vec::new();
    for (source, setting, directory) in [
        ("project", "projectSettings", Some(project.as_path())),
        ("user", "userSettings", user),
    ] {
        if let Some(directory) = directory.filter(|_| config.reads(source)) {
            let files = files(&directory.join(kind), "", DEEPEST);
            found.extend(files.into_iter().map(|(name, text)| (name, setting, text)));
        }
    }
    found
}

/// How many directories below each other have commands.
const DEEPEST: usize = 8;

/// The Markdown files in a directory and in those below it, which are in front of the names of their files.
fn files(directory: &Path, prefix: &str, depth: usize) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        let name = format!("{prefix}{stem}");
        if path.is_dir() && depth > 0 {
            found.extend(files(&path, &format!("{name}:"), depth - 1));
        } else if path.extension().is_some_and(|end| end == "md") {
            found.extend(std::fs::read_to_string(&path).ok().map(|text| (name, text)));
        }
    }
    found
}

/// Whether there is a skill of this name, of the project or of the user.
pub(super) fn is_skill(config: &Config, cwd: &Path, name: &str) -> bool {
    let project = cwd.join(".claude");
    let places = [
        ("project", Some(project.as_path())),
        ("user", config.config_dir.as_deref()),
    ];
    places.into_iter().any(|(source, directory)| {
        config.reads(source)
            && directory
                .is_some_and(|directory| directory.join("skills").join(name).join("SKILL.md").is_file())
    })
}

/// The head of a Markdown file, and what follows it.
pub(super) fn parts(text: &str) -> (&str, &str) {
    let parts = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    parts.unwrap_or(("", text))
}

/// A field of such a head.
pub(super) fn field(head: &str, key: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// A field that is a list: names with commas between them, `[a, b]`, or a line with `-` for each.
pub(super) fn list(head: &str, key: &str) -> Option<Vec<String>> {
    let value = field(head, key)?;
    let value = value
        .strip_prefix('[')
        .and_then(|value| value.strip_suffix(']'))
        .unwrap_or(&value);
    let own = |name: &str| name.trim().trim_matches(['"', '\'']).to_owned();
    if !value.is_empty() {
        return Some(value.split(',').map(own).collect());
    }
    let behind = head
        .lines()
        .skip_while(|line| !line.starts_with(&format!("{key}:")))
        .skip(1);
    let entries = behind.map_while(|line| line.trim_start().strip_prefix('-'));
    Some(entries.map(own).collect())
}

impl FileCommand {
    fn read(name: String, source: &'static str, text: &str) -> Self {
        let (head, body) = parts(text);
        let first = || body.lines().next().unwrap_or_default().to_owned();
        Self {
            name,
            source,
            description: field(head, "description").unwrap_or_else(first),
            hint: field(head, "argument-hint").unwrap_or_default(),
            names: words(&field(head, "arguments").unwrap_or_default()),
            body: body.to_owned(),
        }
    }

    /// The text of the command with these arguments.
    pub(super) fn expand(&self, arguments: &str) -> String {
        let words = words(arguments);
        let replaced = |found: &Captures<'_>| {
            let text = |n: usize| found.get(n).map(|part| part.as_str());
            let number = text(1).or(text(3)).and_then(|number| number.parse().ok());
            let named = text(4).and_then(|name| self.names.iter().position(|known| known == name));
            let word = number.or(named).and_then(|at: usize| words.get(at).cloned());
            match text(2) {
                Some(_) => arguments.to_owned(),
                // What stands for no word stays.
                None => word.unwrap_or_else(|| found[0].to_owned()),
            }
        };
        let body = self.body.trim_end();
        PLACES.as_ref().map_or_else(
            || body.to_owned(),
            |places| places.replace_all(body, replaced).into_owned(),
        )
    }

    /// The command in the reply to `initialize`.
    pub(super) fn listed(&self) -> Value {
        let whose = self.source.trim_end_matches("Settings");
        json!({
            "name": self.name, "description": format!("{} ({whose})", self.description), "argumentHint": self.hint,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_and_expanded() {
        let text = "---\ndescription: Greets\nargument-hint: \"[whom]\"\n---\nsay hello to $ARGUMENTS\n";
        let command = FileCommand::read("greet".to_owned(), "projectSettings", text);
        assert_eq!(command.expand("you"), "say hello to you");
        let text =
            "---\narguments: whom how\n---\n$1, $0, $2, $ARGUMENTS[0], $whom, $how and $why of $ARGUMENTS";
        let other = FileCommand::read("other".to_owned(), "projectSettings", text);
        assert_eq!(
            other.expand("'a b' c"),
            "c, a b, $2, a b, a b, c and $why of 'a b' c"
        );
        assert_eq!(
            command.listed(),
            json!({"name": "greet", "description": "Greets (project)", "argumentHint": "[whom]"})
        );
        assert_eq!(called("/greet you and me\n"), Some(("greet", "you and me")));
        assert_eq!(called("/greet"), Some(("greet", "")));
        assert_eq!(called("/a/path"), None);
        assert_eq!(called("greet"), None);
    }
}
