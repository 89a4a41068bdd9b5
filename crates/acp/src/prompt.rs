//! Prompts: from the editor's content blocks to the CLI's.
//!
//! A text that begins with a command of the CLI is that command. A link becomes a Markdown link with the name of its file. The text of
//! an embedded resource goes to the end, so that it does not interrupt the sentence.

use std::collections::{HashMap, HashSet};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger::Prompt;
use outrigger::protocol::shared::ContentBlock;

use crate::error::bad;

/// Makes the prompt. `is_command` returns whether the CLI has a command of this name.
///
/// # Errors
/// When the prompt is empty, or has a block that the CLI does not accept.
pub(crate) fn of(blocks: &[acp::ContentBlock], is_command: impl Fn(&str) -> bool) -> Result<Prompt, Error> {
    with_unsaved(blocks, is_command, &HashMap::new())
}

/// The same with unsaved texts, by URL. They go to the end.
///
/// # Errors
/// As [`of`].
pub(crate) fn with_unsaved(
    blocks: &[acp::ContentBlock],
    is_command: impl Fn(&str) -> bool,
    unsaved: &HashMap<String, String>,
) -> Result<Prompt, Error> {
    let mut told: HashSet<&str> = HashSet::new();
    let mut words: Vec<ContentBlock> = Vec::new();
    let mut context: Vec<ContentBlock> = Vec::new();
    let mut command: Option<(String, String)> = None;
    let mut seen_text = false;
    for (position, block) in blocks.iter().enumerate() {
        let refused = |why: String| bad(&format!("prompt[{position}]"), why);
        match block {
            acp::ContentBlock::Text(text) => {
                let is_first = !std::mem::replace(&mut seen_text, true);
                match is_first.then(|| command_of(&text.text, &is_command)).flatten() {
                    Some(found) => command = Some(found),
                    None => words.push(ContentBlock::text(text.text.as_str())),
                }
            }
            acp::ContentBlock::ResourceLink(link) => {
                words.push(ContentBlock::text(as_link(&link.uri)));
                if let Some(text) = unsaved.get(&link.uri)
                    && told.insert(&link.uri)
                {
                    context.push(context_of(
                        &link.uri,
                        &format!(
                            "This file has changes in the editor that are not saved. The file on disk is different; \
                             its text in the editor is:\n{text}"
                        ),
                    ));
                }
            }
            acp::ContentBlock::Image(image) => words.push(image_block(image).map_err(refused)?),
            acp::ContentBlock::Resource(resource) => {
                embed(&resource.resource, &mut words, &mut context).map_err(refused)?;
            }
            acp::ContentBlock::Audio(_) => {
                return Err(refused("Claude takes no audio; send it as text".to_owned()));
            }
            _ => return Err(refused("blocks of this type are not known".to_owned())),
        }
    }
    let blank =
        |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.trim().is_empty());
    if command.is_none() && words.iter().chain(&context).all(blank) {
        return Err(bad("prompt", "it is empty"));
    }
    let all = words.into_iter().chain(context).filter(|block| !blank(block));
    Ok(match command {
        Some((name, arguments)) => all.fold(Prompt::command(name, arguments), Prompt::block),
        None => {
            let mut all = all;
            // The API rejects an empty text.
            let first = match all.next() {
                Some(ContentBlock::Text(text)) => Prompt::text(text.text),
                Some(block) => Prompt::of_block(block),
                None => return Err(bad("prompt", "it is empty")),
            };
            all.fold(first, Prompt::block)
        }
    })
}

const CONTEXT: &str = "<context ref=\"";
const CONTEXT_END: &str = "</context>";

/// The text of a resource, for the model. The link to the resource is among the words.
fn context_of(uri: &str, text: &str) -> ContentBlock {
    ContentBlock::text(format!("\n{CONTEXT}{uri}\">\n{text}\n{CONTEXT_END}"))
}

/// Whether a block of a prompt, which is not its first, is the text of a resource.
pub(crate) fn is_context(text: &str) -> bool {
    text.trim_start().starts_with(CONTEXT) && text.trim_end().ends_with(CONTEXT_END)
}

/// The words of a prompt that was shortened to one line. The texts of resources come last.
pub(crate) fn words_of(line: &str) -> &str {
    line.split_once(CONTEXT)
        .map_or(line, |(words, _)| words.trim_end())
}

/// The command in a text, with its arguments. A prompt of an MCP server, `/mcp:server:name`, has another name in the CLI.
fn command_of(text: &str, is_command: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let rest = text.trim_start().strip_prefix('/')?;
    let (name, arguments) = match rest.split_once(char::is_whitespace) {
        Some((name, arguments)) => (name, arguments.trim_start()),
        None => (rest, ""),
    };
    let of_mcp = name.strip_prefix("mcp:").and_then(|name| {
        let (server, prompt) = name.split_once(':')?;
        let plain = format!("mcp__{server}__{prompt}");
        let worded = format!("{server}:{prompt} (MCP)");
        [plain, worded].into_iter().find(|name| is_command(name))
    });
    let name = of_mcp.or_else(|| is_command(name).then(|| name.to_owned()))?;
    Some((name, arguments.to_owned()))
}

/// A URL as a Markdown link, named by its last segment if it has one.
fn as_link(uri: &str) -> String {
    if !uri.starts_with("file://") && !uri.starts_with("zed://") {
        return uri.to_owned();
    }
    let name = uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or(uri);
    format!("[@{name}]({uri})")
}

fn image_block(image: &acp::ImageContent) -> Result<ContentBlock, String> {
    if !image.data.is_empty() {
        return image_of(&image.mime_type, &image.data);
    }
    match image.uri.as_deref() {
        Some(uri) if uri.starts_with("http://") || uri.starts_with("https://") => {
            Ok(ContentBlock::image_url(uri))
        }
        Some(_) => Err("an image without data needs an http address".to_owned()),
        None => Err("an image needs data".to_owned()),
    }
}

const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

fn image_of(media_type: &str, data: &str) -> Result<ContentBlock, String> {
    if !IMAGES.contains(&media_type) {
        return Err(format!(
            "images of type {media_type:?} are not taken, but {}",
            IMAGES.join(", ")
        ));
    }
    Ok(ContentBlock::image_base64(media_type, data))
}

fn embed(
    resource: &acp::EmbeddedResourceResource,
    words: &mut Vec<ContentBlock>,
    context: &mut Vec<ContentBlock>,
) -> Result<(), String> {
    let with_text =
        |uri: &str, text: &str, words: &mut Vec<ContentBlock>, context: &mut Vec<ContentBlock>| {
            words.push(ContentBlock::text(as_link(uri)));
            context.push(context_of(uri, text));
        };
    match resource {
        acp::EmbeddedResourceResource::TextResourceContents(resource) => {
            with_text(&resource.uri, &resource.text, words, context);
            Ok(())
        }
        acp::EmbeddedResourceResource::BlobResourceContents(resource) => {
            let media_type = resource.mime_type.as_deref().unwrap_or_default();
            if IMAGES.contains(&media_type) {
                words.push(ContentBlock::text(as_link(&resource.uri)));
                words.push(image_of(media_type, &resource.blob)?);
                return Ok(());
            }
            if media_type == "application/pdf" {
                words.push(ContentBlock::text(as_link(&resource.uri)));
                words.push(ContentBlock::pdf_base64(resource.blob.as_str()));
                return Ok(());
            }
            let bytes = STANDARD
                .decode(&resource.blob)
                .map_err(|error| format!("the resource is not base64: {error}"))?;
            let text = String::from_utf8(bytes).map_err(|_| {
                format!("a resource of type {media_type:?} is neither an image nor a PDF nor text")
            })?;
            with_text(&resource.uri, &text, words, context);
            Ok(())
        }
        _ => Err("resources of this form are not known".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn blocks(blocks: Value) -> Vec<acp::ContentBlock> {
        serde_json::from_value(blocks).expect("blocks of the protocol")
    }

    fn shown(value: Value) -> String {
        let prompt = of(&blocks(value), |name| {
            matches!(name, "compact" | "mcp__notes__add")
        });
        format!("{:?}", prompt.expect("a prompt"))
    }

    fn refused(value: Value) -> String {
        let error = of(&blocks(value), |_| false).expect_err("it is refused");
        assert_eq!(i32::from(error.code), -32602);
        error.message
    }

    #[test]
    fn nothing_is_no_prompt() {
        assert!(refused(json!([])).contains("it is empty"));
        assert!(refused(json!([{"type": "text", "text": " \n"}])).contains("it is empty"));
    }

    #[test]
    fn audio_and_odd_images_are_refused_by_their_place() {
        let text = json!({"type": "text", "text": "listen"});
        let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        assert!(refused(json!([text, audio])).contains("prompt[1]"));
        let svg = json!({"type": "image", "data": "AAAA", "mimeType": "image/svg+xml"});
        assert!(refused(json!([svg])).contains("image/svg+xml"));
        let zip = json!({"type": "resource", "resource": {"uri": "file:///a.zip", "blob": "/////w==", "mimeType": "application/zip"}});
        assert!(refused(json!([zip])).contains("neither an image nor a PDF nor text"));
    }

    #[test]
    fn links_are_named_and_resources_follow_the_words() {
        let shown = shown(json!([
            {"type": "resource", "resource": {"uri": "file:///src/a.rs", "text": "fn a() {}"}},
            {"type": "text", "text": "what is this?"},
            {"type": "resource_link", "uri": "file:///src/b.rs", "name": "b"},
            {"type": "resource_link", "uri": "https://example.com/x", "name": "x"},
        ]));
        let at = |part: &str| shown.find(part).unwrap_or_else(|| panic!("{part} in {shown}"));
        assert!(at("[@a.rs](file:///src/a.rs)") < at("what is this?"));
        assert!(at("what is this?") < at("[@b.rs](file:///src/b.rs)"));
        assert!(at("https://example.com/x") < at("<context ref="));
    }

    #[test]
    fn a_command_is_one_only_if_the_cli_has_it() {
        let text = |text: &str| shown(json!([{"type": "text", "text": text}]));
        assert!(text("/compact keep the names").contains("command: Some(\"compact\")"));
        assert!(text("/mcp:notes:add milk").contains("command: Some(\"mcp__notes__add\")"));
        assert!(text("/etc/passwd is what?").contains("command: None"));
        // Only what the user begins with.
        let second = shown(json!([{"type": "text", "text": "see"}, {"type": "text", "text": "/compact"}]));
        assert!(second.contains("command: None"));
    }
}
