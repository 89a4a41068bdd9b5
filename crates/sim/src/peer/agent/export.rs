//! The conversation as a text, as a person would read it in a terminal.

use serde_json::{Value, json};

use super::context::Context;
use crate::matcher::prompt_text;

/// How much of the first prompt names the file.
const LONGEST_NAME: usize = 50;

/// The reply to `export_conversation`: the conversation of this process.
pub(super) fn conversation(ctx: &Context) -> Value {
    let (mut parts, mut first) = (Vec::<String>::new(), None);
    for line in &ctx.log.lock().lines {
        let json = &line.json;
        match json["type"].as_str() {
            Some("user") if line.from_client => {
                let text = prompt_text(json);
                parts.push(format!("❯ {}", text.replace('\n', "\n  ")));
                first.get_or_insert(text);
            }
            Some("assistant") if json["parent_tool_use_id"].is_null() => {
                for block in json["message"]["content"].as_array().into_iter().flatten() {
                    match block["type"].as_str() {
                        Some("text") => {
                            let text = block["text"].as_str().unwrap_or_default();
                            parts.push(format!("● {}", text.replace('\n', "\n  ")));
                        }
                        Some("tool_use") => {
                            let name = block["name"].as_str().unwrap_or_default();
                            parts.push(format!("  Used {name} (ctrl+o to expand)"));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let text: String = parts.iter().map(|part| format!("\n{part}\n")).collect();
    let time: String = ctx.timestamp().replace([':', '.'], "");
    let (day, hour) = time.split_once('T').unwrap_or((&time, ""));
    let hour = hour.get(..6).unwrap_or(hour);
    let name = slug(&first.unwrap_or_default());
    json!({"text": text.trim_end_matches('\n'), "default_filename": format!("{day}-{hour}-{name}.txt")})
}

/// The words of a text's first line, as they may stand in the name of a file.
fn slug(text: &str) -> String {
    let line: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(LONGEST_NAME)
        .collect();
    let words = line.split_whitespace().map(|word| {
        let plain = word.chars().filter(char::is_ascii_alphanumeric);
        plain.collect::<String>().to_lowercase()
    });
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        "conversation".to_owned()
    } else {
        words.join("-")
    }
}

#[test]
fn names_of_files() {
    assert_eq!(slug("%say one"), "say-one");
    assert_eq!(
        slug("%tool Read {\"file_path\": \"/a/b\"}\nmore"),
        "tool-read-filepath-ab"
    );
    assert_eq!(slug("!!"), "conversation");
}
