//! Commands as rules read them: without what only runs them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex_lite::Regex;
use serde::Deserialize;

use super::shell::{self, ShellCommand};

static RUNNERS: LazyLock<BTreeMap<String, Runner>> =
    LazyLock::new(|| serde_json::from_str(include_str!("runners.json")).unwrap_or_default());

/// A program that runs the command behind it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Runner {
    /// The options with a value in the next word.
    values: Vec<String>,
    /// The options whose value is a command line.
    lines: Vec<String>,
    /// What comes in front of the command.
    operand: Option<Operand>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Operand {
    Any,
    Number,
}

/// How the programs are written that every rule sees through.
static SEEN_THROUGH: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"^timeout[ \t]+(?:(?:--(?:foreground|preserve-status|verbose)|--(?:kill-after|signal)(?:=|[ \t]+)[\w.+-]+|-v|-[ks][ \t]*[\w.+-]+)[ \t]+)*(?:--[ \t]+)?\d+(?:\.\d+)?[smhd]?[ \t]+",
        r"^(?:time|nohup)[ \t]+(?:--[ \t]+)?",
        r"^nice(?:[ \t]+-n[ \t]+-?\d+|[ \t]+-\d+)?[ \t]+(?:--[ \t]+)?",
        r"^stdbuf(?:[ \t]+-[ioe][LN0-9]+)+[ \t]+(?:--[ \t]+)?",
        r"^command(?:[ \t]+-p+)*(?:[ \t]+--)?[ \t]+",
        r"^(?:builtin|noglob)(?:[ \t]+--)?[ \t]+",
    ];
    patterns
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
});

/// Variables in front of a command, whatever their values, if the shell replaces nothing in those.
static VARIABLES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let value = r#"(?:'[^'\n\r]*'|"(?:\\.|[^"$`\\\n\r])*"|\\.|[^ \t\n\r$`;|&()<>\\'"])*"#;
    Regex::new(&format!(r"^(?:[A-Za-z_]\w*(?:\[[^\]]*\])?\+?={value}[ \t]+)+")).ok()
});

/// How a command may be written for a rule to be about it. A rule that denies or asks also sees through programs that run others
/// as somebody else or elsewhere, all variables, and the directory of the program.
pub(super) fn spellings(command: &ShellCommand, restricts: bool) -> Vec<String> {
    let text = command.plain().to_owned();
    let mut found = vec![seen_through(&text), text];
    if restricts {
        for wide in [false, true] {
            let inner = unwrapped(&command.words, wide);
            if let Some((first, rest)) = inner.split_first() {
                let base = first.rsplit('/').next().unwrap_or_default();
                found.push(join(base, rest));
                found.push(join(first, rest));
            }
        }
        found.push(command.words.join(" "));
        // The closing brackets are no word of a condition.
        if let Some((_, words)) = command.words.split_last().filter(|_| command.name() == "[[") {
            found.push(words.join(" "));
        }
        let mut next = 0;
        while let Some(text) = found.get(next).cloned() {
            let variables = VARIABLES.as_ref().and_then(|regex| regex.find(&text));
            let bare = text[variables.map_or(0, |found| found.end())..].to_owned();
            for text in [seen_through(&text), bare] {
                if !found.contains(&text) {
                    found.push(text);
                }
            }
            next += 1;
        }
    }
    found.dedup();
    found
}

fn join(first: &str, rest: &[String]) -> String {
    let words = std::iter::once(first).chain(rest.iter().map(String::as_str));
    Vec::from_iter(words).join(" ")
}

/// A command without harmless variables and the programs that every rule sees through; its first word without quotes.
fn seen_through(text: &str) -> String {
    let mut text = text.trim_start();
    while let Some((first, rest)) = text.split_once([' ', '\t'])
        && shell::is_harmless(first)
    {
        text = rest.trim_start();
    }
    let mut text = unquoted(text);
    loop {
        let mut all = SEEN_THROUGH.iter().filter_map(|regex| regex.find(&text));
        let rest = all
            .find_map(|found| text.get(found.end()..))
            .filter(|rest| !rest.is_empty() && !rest.starts_with('-'));
        match rest {
            Some(rest) => text = unquoted(rest),
            None => return text.trim().to_owned(),
        }
    }
}

/// The text, its first word without quotes.
fn unquoted(text: &str) -> String {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    let quotes = |quote: char| first.matches(quote).count() % 2 == 0;
    if quotes('"') && quotes('\'') {
        format!("{}{rest}", first.replace(['"', '\'', '\\'], ""))
    } else {
        text.to_owned()
    }
}

/// The words of the command that is run in the end. In a wide reading the last of several letters of an option may take a value.
fn unwrapped(words: &[String], wide: bool) -> Vec<String> {
    let mut words = words.to_vec();
    loop {
        let variables = words.iter().take_while(|word| shell::is_assignment(word)).count();
        words.drain(..variables);
        let name = words.first().and_then(|first| first.rsplit('/').next());
        let Some((name, runner)) = name.and_then(|name| RUNNERS.get_key_value(name)) else {
            return words;
        };
        match runner.command(name, &words, wide) {
            Some(inner) => words = inner,
            None => return words,
        }
    }
}

impl Runner {
    /// The command in these words.
    fn command(&self, name: &str, words: &[String], wide: bool) -> Option<Vec<String>> {
        let mut operand = self.operand;
        let mut at = 1;
        while let Some(word) = words.get(at) {
            let next = words.get(at + 1);
            if let Some(line) = self.line(word, next) {
                return Some(line.split_whitespace().map(str::to_owned).collect());
            }
            let is_operand = |operand: Operand| match operand {
                Operand::Any => true,
                Operand::Number => word.starts_with(|c: char| c.is_ascii_digit()),
            };
            at += match () {
                () if word == "--" => {
                    let taken = operand.is_some() && next.is_some();
                    return words.get(at + 1 + usize::from(taken)..).map(<[String]>::to_vec);
                }
                () if word.starts_with('-') && (word != "-" || self.operand.is_none()) => {
                    if name == "command" && word.contains(['v', 'V']) {
                        return None;
                    }
                    let is_last = |letter: char| self.values.contains(&format!("-{letter}"));
                    let letters = word.trim_start_matches('-');
                    let clustered =
                        wide && !word.starts_with("--") && letters.chars().next_back().is_some_and(is_last);
                    1 + usize::from(self.values.contains(word) || clustered)
                }
                () if matches!(name, "env" | "sudo") && shell::is_assignment(word) => 1,
                () if next.is_some() && operand.is_some_and(is_operand) => {
                    operand = None;
                    1
                }
                () => return words.get(at..).map(<[String]>::to_vec),
            };
        }
        None
    }

    /// The command line that is the value of an option.
    fn line<'a>(&self, word: &'a str, next: Option<&'a String>) -> Option<&'a str> {
        self.lines.iter().find_map(|option| {
            let rest = word.strip_prefix(option.as_str())?;
            match rest.strip_prefix('=') {
                _ if rest.is_empty() => next.map(String::as_str),
                Some(line) => Some(line),
                None if option.len() == 2 => Some(rest),
                None => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn rules_see_through_what_only_runs_a_command() {
        let spelled = |line: &str, restricts| {
            let command = shell::parse(line, Path::new("/h")).commands.remove(0);
            spellings(&command, restricts).contains(&"touch x".to_owned())
        };
        for line in [
            "touch x",
            "touch x > out",
            "timeout -k 1 5 touch x",
            "nice -n 5 nohup touch x",
            "time touch x",
            "stdbuf -o0 touch x",
            "command touch x",
            "'touch' x",
            "CI=1 touch x",
        ] {
            assert!(spelled(line, false) && spelled(line, true), "{line}");
        }
        for line in [
            "FOO=1 touch x",
            "FOO='a b' touch x",
            "FOO=$BAR touch x",
            "env touch x",
            "env -i -u A FOO=1 touch x",
            "env -S 'touch x'",
            "sudo -u root touch x",
            "sudo -Eu root touch x",
            "sudo FOO=1 nice touch x",
            "setsid touch x",
            "taskset 0x1 touch x",
            "flock -w 1 lock touch x",
            "flock lock -c 'touch x'",
            "chrt -- 5 touch x",
            "exec touch x",
            "/usr/bin/touch x",
            "env /usr/bin/touch x",
        ] {
            assert!(!spelled(line, false) && spelled(line, true), "{line}");
        }
        for line in [
            "command -v touch x",
            "bash -c 'touch x'",
            "touchx",
            "echo touch x",
        ] {
            assert!(!spelled(line, true), "{line}");
        }
    }
}
