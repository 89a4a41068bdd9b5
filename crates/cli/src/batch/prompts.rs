//! The file with the prompts.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use outrigger::protocol::RawJson;
use outrigger_fleet::batch::BatchJob;
use serde::Deserialize;

use super::apart;
use crate::agent::usage;
use crate::exit::Failure;

/// The longest file, in bytes: all of it is checked before anything is sent.
const MOST: u64 = 1 << 30;

/// A prompt of the file.
#[derive(Debug, Clone)]
pub(super) struct GivenPrompt {
    pub(super) job: BatchJob,
    /// Copied to the result.
    pub(super) metadata: Option<RawJson>,
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptLine {
    #[serde(default)]
    id: Option<Id>,
    prompt: String,
    #[serde(default)]
    metadata: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "the `id` is neither a text nor a whole number")]
enum Id {
    Text(String),
    Number(u64),
}

/// Reads the prompts of a file, or of standard input where it is `-`.
pub(super) async fn read(path: PathBuf) -> Result<Vec<GivenPrompt>, Failure> {
    apart(move || read_whole(&path)).await
}

fn read_whole(path: &Path) -> Result<Vec<GivenPrompt>, Failure> {
    let cannot = |error: io::Error| usage(format!("cannot read {}: {error}", path.display()));
    let mut text = Vec::new();
    if path.as_os_str() == "-" {
        let stdin = io::stdin().lock();
        stdin.take(MOST + 1).read_to_end(&mut text).map_err(cannot)?;
    } else {
        let file = File::open(path).map_err(cannot)?;
        file.take(MOST + 1).read_to_end(&mut text).map_err(cannot)?;
    }
    if text.len() as u64 > MOST {
        return Err(usage(format!(
            "{} is longer than {MOST} bytes; split it",
            path.display()
        )));
    }
    parse(&text).map_err(|problem| usage(format!("{}: {problem}", path.display())))
}

/// Reads the lines; what is wrong names its line.
fn parse(text: &[u8]) -> Result<Vec<GivenPrompt>, String> {
    let (mut given, mut ids) = (Vec::new(), HashSet::new());
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let wrong = |problem: String| format!("line {number}: {problem}");
        let line = std::str::from_utf8(line).map_err(|error| wrong(format!("it is not UTF-8 ({error})")))?;
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() {
            continue;
        }
        // A string is a prompt alone.
        let read = match line.starts_with('"') {
            true => serde_json::from_str(line).map(|prompt| PromptLine {
                id: None,
                prompt,
                metadata: None,
            }),
            false => serde_json::from_str(line),
        };
        let line: PromptLine = read.map_err(|error| {
            let (column, text) = (error.column(), error.to_string());
            // The line is the first one of this text.
            let text = text.split(" at line ").next().unwrap_or_default();
            wrong(format!(
                "{text} at column {column}; a line is {{\"prompt\": …}}, with an `id` and `metadata` if you like, or a string of JSON"
            ))
        })?;
        if line.prompt.trim().is_empty() {
            return Err(wrong("the prompt is empty".to_owned()));
        }
        let id = match line.id {
            Some(Id::Text(id)) => id,
            Some(Id::Number(id)) => id.to_string(),
            None => number.to_string(),
        };
        if id.trim().is_empty() {
            return Err(wrong("the id is empty".to_owned()));
        }
        if !ids.insert(id.clone()) {
            return Err(wrong(format!("there is another prompt of the id {id:?}")));
        }
        given.push(GivenPrompt {
            job: BatchJob::new(id, line.prompt),
            metadata: line.metadata,
        });
    }
    match given.is_empty() {
        true => Err("there is no prompt".to_owned()),
        false => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_objects_or_strings_and_what_is_wrong_names_its_line() {
        let given = parse(b"\xef\xbb\xbf" as &[u8]).unwrap_err();
        assert_eq!(given, "there is no prompt");
        let given = parse("\u{feff}{\"id\": 7, \"prompt\": \"a\", \"metadata\": [1, 1e400]}\n\n\"b\"\r\n{\"id\":\"x\",\"prompt\":\"c\"}".as_bytes()).unwrap();
        let jobs: Vec<_> = given
            .iter()
            .map(|given| (&*given.job.id, &*given.job.prompt))
            .collect();
        assert_eq!(jobs, [("7", "a"), ("3", "b"), ("x", "c")]);
        assert_eq!(given[0].metadata.as_ref().map(RawJson::get), Some("[1, 1e400]"));
        for (text, problem) in [
            ("", "there is no prompt"),
            ("{\"prompt\": \"a\"}\n{\"promt\": \"b\"}", "line 2: unknown field"),
            ("{\"id\": \"a\"}", "line 1: missing field"),
            (
                "\"a\"\n{\"id\": 1, \"prompt\": \"b\"}",
                "line 2: there is another prompt of the id \"1\"",
            ),
            ("\"  \"", "line 1: the prompt is empty"),
            ("{\"id\": \" \", \"prompt\": \"a\"}", "line 1: the id is empty"),
            (
                "{\"id\": 1.5, \"prompt\": \"a\"}",
                "line 1: the `id` is neither a text nor a whole number",
            ),
            ("\nhello", "line 2: expected value at column 1; "),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.starts_with(problem), "{text}: {error}");
        }
        let error = parse(b"\"a\"\n\"b\xff\"").unwrap_err();
        assert!(error.starts_with("line 2: it is not UTF-8"), "{error}");
    }
}
