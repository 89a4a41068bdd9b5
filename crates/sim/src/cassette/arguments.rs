//! The command line of a CLI, as something that can be compared by its meaning.

use serde_json::{Map, Value, json};

use super::file::Said;
use crate::peer::CommandLine;

/// Flags that only change the CLI's own logs.
const ASIDE: &[&str] = &["--debug", "-d", "--debug-to-stderr", "-d2e", "--debug-file"];

/// The meaning of a command line: each flag with its values, in any order, and the other arguments. `None` if there
/// are no flags, so that the command line is unknown.
///
/// Words before the first flag are the program, and possibly its interpreter. Values that are JSON are parsed.
pub(super) fn meaning(argv: &[String]) -> Option<Said> {
    let mut flags = Map::new();
    let mut rest = argv.iter().skip_while(|argument| !argument.starts_with('-'));
    while let Some(argument) = rest.next() {
        let (flag, mut value) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
            _ => (argument.as_str(), None),
        };
        let is_flag = flag.starts_with('-');
        if is_flag && value.is_none() && CommandLine::takes_next(flag) {
            value = rest.next().map(String::as_str);
        }
        if ASIDE.contains(&flag) {
            continue;
        }
        let (name, value) = match value {
            Some(value) => (flag, read(value)),
            None if is_flag => (flag, Value::Bool(true)),
            // The further values of a flag that takes many.
            None => ("arguments", read(flag)),
        };
        let values = flags.entry(name).or_insert_with(|| json!([]));
        if let Some(values) = values.as_array_mut() {
            values.push(value);
        }
    }
    (!flags.is_empty()).then(|| Said::of(&json!({ "argv": flags }).to_string()))
}

fn read(value: &str) -> Value {
    let is_json = value.starts_with(['{', '[']);
    let json = is_json.then(|| crate::running::parse(value).ok()).flatten();
    json.unwrap_or_else(|| value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(argv: &[&str]) -> Option<Value> {
        let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
        meaning(&argv).map(|said| said.value())
    }

    #[test]
    fn flags_have_their_values_whatever_their_order() {
        let one = [
            "claude",
            "--model",
            "opus",
            "--verbose",
            "--settings={\"a\":1,\"b\":2}",
            "-d",
        ];
        let two = [
            "node",
            "cli.js",
            "--verbose",
            "--settings",
            "{\"b\": 2, \"a\": 1}",
            "--model=opus",
        ];
        assert_eq!(of(&one), of(&two));
        assert_eq!(
            of(&one).unwrap(),
            json!({"argv": {"--model": ["opus"], "--verbose": [true], "--settings": [{"a": 1, "b": 2}]}})
        );
        assert_eq!(of(&["claude"]), None);
        assert_ne!(of(&one), of(&["claude", "--model", "opus", "--verbose"]));
        // What stands behind a flag that takes a value is that, whatever it looks like.
        let odd = [
            "claude",
            "--system-prompt",
            "--verbose",
            "--tools",
            "Read",
            "Bash",
        ];
        assert_eq!(
            of(&odd).unwrap(),
            json!({"argv": {"--system-prompt": ["--verbose"], "--tools": ["Read"], "arguments": ["Bash"]}})
        );
    }
}
