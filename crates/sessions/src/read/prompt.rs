//! The prompt that a session is known by.

use super::lite::lines;
use crate::record::{RecordKind, elements, fields, is_truthy, last, text_of};

/// Longer prompts are cut after this many characters.
const LONGEST: usize = 200;

/// The user's first prompt, from the beginning of a transcript.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstPrompt {
    /// The first text that the user typed; else the first command.
    pub(crate) text: Option<String>,
    /// What there was in place of a text.
    pub(crate) other: Option<&'static str>,
}

/// Looks for the first prompt in the lines of `head`.
pub(crate) fn first(head: &[u8]) -> FirstPrompt {
    let mut found = FirstPrompt::default();
    let mut command = None;
    for line in lines(head) {
        let Some(content) = prompt_content(line) else {
            continue;
        };
        for text in &content.texts {
            match displayed(text) {
                DisplayedPrompt::Prompt(text) => {
                    found.text = Some(text);
                    return found;
                }
                DisplayedPrompt::Command(name) => command = command.or(Some(name)),
                DisplayedPrompt::Nothing => {}
            }
        }
        found.other = found.other.or(content.other);
    }
    found.text = command.filter(|command| !command.is_empty());
    found
}

/// Whether a line is a prompt, and no result of a tool, reminder or summary.
pub(crate) fn is_prompt(line: &[u8]) -> bool {
    prompt_content(line).is_some_and(|content| !content.texts.is_empty() || content.other.is_some())
}

/// The parts of a prompt.
struct Content {
    texts: Vec<String>,
    other: Option<&'static str>,
}

/// The content of a line that is a prompt.
fn prompt_content(line: &[u8]) -> Option<Content> {
    // Most lines are something else, and need not be read to know it.
    let is_user = |pattern: &[u8]| memchr::memmem::find(line, pattern).is_some();
    if !is_user(b"\"type\":\"user\"") && !is_user(b"\"type\": \"user\"") {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let fields = fields(&text).ok()?;
    let is_hidden = |key| last(&fields, key).is_some_and(is_truthy);
    let kind = text_of(last(&fields, "type")?)?;
    if kind != RecordKind::User.as_str() || is_hidden("isMeta") || is_hidden("isCompactSummary") {
        return None;
    }
    let message = crate::record::fields(last(&fields, "message")?).ok()?;
    read_content(last(&message, "content")?)
}

/// Reads a text or a list of blocks. `None` if there is a result of a tool among them.
fn read_content(value: &str) -> Option<Content> {
    let mut content = Content {
        texts: Vec::new(),
        other: None,
    };
    if let Some(text) = text_of(value) {
        content.texts.push(text);
        return Some(content);
    }
    for block in elements(value)? {
        let Ok(block) = fields(&block) else {
            continue;
        };
        let said = |key| last(&block, key).and_then(text_of);
        match said("type").as_deref() {
            Some("text") => content.texts.extend(said("text")),
            Some("tool_result") => return None,
            Some("image") => content.other = content.other.or(Some("Image")),
            Some("document") => content.other = content.other.or(Some("Document")),
            _ => {}
        }
    }
    Some(content)
}

enum DisplayedPrompt {
    Prompt(String),
    Command(String),
    Nothing,
}

/// How a text is shown.
fn displayed(text: &str) -> DisplayedPrompt {
    let text = text.replace('\n', " ");
    let text = text.trim();
    if text.is_empty() {
        return DisplayedPrompt::Nothing;
    }
    if let Some(name) = between(text, "<command-name>", "</command-name>") {
        return DisplayedPrompt::Command(name.to_owned());
    }
    if let Some(line) = between(text, "<bash-input>", "</bash-input>") {
        return DisplayedPrompt::Prompt(cut(&format!("! {line}")));
    }
    if is_tag(text) || is_interruption(text) {
        return DisplayedPrompt::Nothing;
    }
    DisplayedPrompt::Prompt(cut(text))
}

fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, behind) = text.split_once(open)?;
    Some(behind.split_once(close)?.0)
}

/// Whether a text begins with a tag, as what programs put into prompts does.
fn is_tag(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('<') else {
        return false;
    };
    let name = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    let behind = name.and_then(|at| rest[at..].chars().next());
    rest.starts_with(|c: char| c.is_ascii_lowercase())
        && behind.is_some_and(|c| c == '>' || c.is_whitespace())
}

fn is_interruption(text: &str) -> bool {
    let rest = text.strip_prefix("[Request interrupted by user");
    rest.is_some_and(|rest| rest.contains(']'))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(prompts: &[Value]) -> FirstPrompt {
        let lines: Vec<String> = prompts
            .iter()
            .map(|content| {
                json!({"type": "user", "message": {"role": "user", "content": content}}).to_string()
            })
            .collect();
        first(lines.join("\n").as_bytes())
    }

    fn text(prompts: &[Value]) -> Option<String> {
        of(prompts).text
    }

    #[test]
    fn the_first_text_that_somebody_typed_counts() {
        for (prompt, shown) in [
            ("  a\n\n b\t ", "a   b"),
            ("< not a tag", "< not a tag"),
            ("<1x>", "<1x>"),
            ("<Foo>x", "<Foo>x"),
            ("<bash-input>ls -l</bash-input>", "! ls -l"),
            ("x <bash-input>ls</bash-input> more", "! ls"),
            ("[Request interrupted", "[Request interrupted"),
        ] {
            assert_eq!(
                text(&[json!(prompt), json!("second")]).as_deref(),
                Some(shown),
                "{prompt}"
            );
        }
        for prompt in [
            "",
            " \n ",
            "<foo bar>hello</foo>",
            "<foo>hello",
            "  <foo>x",
            "<local-command-stdout></local-command-stdout>",
            "<command-name>/foo</command-name>",
            "[Request interrupted by user for tool use]",
            "[Request interrupted by user] and more",
        ] {
            assert_eq!(
                text(&[json!(prompt), json!("second")]).as_deref(),
                Some("second"),
                "{prompt}"
            );
        }
    }

    #[test]
    fn results_reminders_and_summaries_are_no_prompts() {
        let result = json!([{"type": "tool_result", "content": "x"}, {"type": "text", "text": "hey"}]);
        assert_eq!(text(&[result, json!("second")]).as_deref(), Some("second"));
        let mention = json!("a \"tool_result\" and \"isMeta\":true");
        assert_eq!(
            text(std::slice::from_ref(&mention)),
            mention.as_str().map(str::to_owned)
        );
        for flag in ["isMeta", "isCompactSummary"] {
            let line = json!({"type": "user", flag: true, "message": {"content": "x"}}).to_string();
            assert_eq!(first(line.as_bytes()), FirstPrompt::default());
            assert!(!is_prompt(line.as_bytes()));
        }
        assert!(is_prompt(
            br#"{"type": "user", "message": {"content": [{"type":"image"}]}}"#
        ));
        assert_eq!(
            first(br#"{"type":"assistant","message":{"content":"x"},"y":{"type":"user"}}"#),
            FirstPrompt::default()
        );
        // What is cut off is no line.
        assert_eq!(
            first(br#"{"type":"user","message":{"content":"cut"#),
            FirstPrompt::default()
        );
    }

    #[test]
    fn a_command_counts_if_there_is_nothing_else_and_pictures_are_named() {
        let commands = [
            json!("<command-name>/a</command-name>"),
            json!("<command-name>/b</command-name> x"),
        ];
        assert_eq!(text(&commands).as_deref(), Some("/a"));
        let found = of(&[json!([{"type": "image"}]), json!([{"type": "document"}])]);
        assert_eq!((found.text, found.other), (None, Some("Image")));
        assert_eq!(
            text(&[json!([{"type": "image"}, {"type": "text", "text": "hey"}])]).as_deref(),
            Some("hey")
        );
    }

    #[test]
    fn a_long_prompt_is_cut() {
        let long = format!("{} yyy", "é".repeat(199));
        assert_eq!(text(&[json!(long)]), Some(format!("{}…", "é".repeat(199))));
        assert_eq!(text(&[json!("é".repeat(200))]), Some("é".repeat(200)));
    }
}
