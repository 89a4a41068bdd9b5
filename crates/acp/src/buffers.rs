//! Unsaved buffers: asks the editor for the text of files that a prompt mentions and that differ from the disk.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use futures_util::future::join_all;

use crate::client::Client;

/// The time limit for all files of a prompt.
const PATIENCE: Duration = Duration::from_secs(2);

/// The limit of files for a prompt.
const MOST: usize = 16;

/// The longest text in bytes. Of a longer file the model only gets the name, as of any file.
const LONGEST: usize = 512 * 1024;

/// A file that a prompt mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mentioned {
    uri: String,
    path: PathBuf,
}

/// The files of the workspace that a prompt links to, if the editor has the capability to read them and allows it.
pub(crate) fn mentioned<'a>(
    request: &acp::PromptRequest,
    client: &acp::ClientCapabilities,
    roots: impl Iterator<Item = &'a PathBuf> + Clone,
) -> Vec<Mentioned> {
    let is_off = |meta: Option<&acp::Meta>| {
        let told = meta.and_then(|meta| meta.get("claudeCode")?.get("unsavedBuffers"));
        told == Some(&serde_json::Value::Bool(false))
    };
    if !client.fs.read_text_file || is_off(client.meta.as_ref()) || is_off(request.meta.as_ref()) {
        return Vec::new();
    }
    let mut found: Vec<Mentioned> = Vec::new();
    for block in &request.prompt {
        if let acp::ContentBlock::ResourceLink(link) = block
            && let Some(path) = path_of(&link.uri)
            && roots.clone().any(|root| path.starts_with(root))
            && found.len() < MOST
            && found.iter().all(|other| other.uri != link.uri)
        {
            let uri = link.uri.clone();
            found.push(Mentioned { uri, path });
        }
    }
    found
}

/// The unsaved texts, by URL. Texts that the editor does not send in time are missing.
pub(crate) async fn unsaved(
    client: &Client,
    session: &acp::SessionId,
    files: Vec<Mentioned>,
) -> HashMap<String, String> {
    let texts = files.into_iter().map(|file| async move {
        let asked = client.read_text_file(session, &file.path)?;
        let told = tokio::time::timeout(PATIENCE, asked).await;
        let text = match told {
            Ok(Ok(text)) => text.content,
            Ok(Err(error)) => {
                tracing::debug!(%error, path = %file.path.display(), "the editor has no text of a file");
                return None;
            }
            Err(_) => {
                tracing::warn!(path = %file.path.display(), "the editor did not tell the text of a file in time");
                return None;
            }
        };
        if text.len() > LONGEST {
            tracing::info!(path = %file.path.display(), "the editor's text of a file is too long to be given to the model");
            return None;
        }
        is_unsaved(&file.path, &text).await.then_some((file.uri, text))
    });
    join_all(texts).await.into_iter().flatten().collect()
}

/// Whether the file on disk differs or is missing. What is no regular file has no text to compare, and a pipe may never end.
async fn is_unsaved(path: &Path, text: &str) -> bool {
    let saved = async {
        let about = tokio::fs::metadata(path).await?;
        if !about.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        // Line ends can double the text, not more.
        if about.len() > 2 * LONGEST as u64 {
            return Ok(None);
        }
        tokio::fs::read(path).await.map(Some)
    };
    match saved.await {
        Ok(Some(saved)) => plain(&String::from_utf8_lossy(&saved)) != plain(text),
        Ok(None) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Text as editors hold it: without a byte order mark, and with `\n` as line end.
pub(crate) fn plain(text: &str) -> String {
    text.trim_start_matches('\u{feff}').replace("\r\n", "\n")
}

/// The path of a `file:` URL, without its fragment.
fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.split(['#', '?']).next().unwrap_or_default();
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = decoded(rest)?;
    let path = if cfg!(windows) {
        path.strip_prefix('/').unwrap_or(&path).to_owned()
    } else {
        path
    };
    let path = PathBuf::from(path);
    let goes_up = path
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    (path.is_absolute() && !goes_up).then_some(path)
}

/// Decodes `%XX`. `None` if the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: u8| {
                    char::from(byte)
                        .to_digit(16)
                        .and_then(|digit| u8::try_from(digit).ok())
                };
                bytes.push(digit(*high)? * 16 + digit(*low)?);
                rest = after;
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(uris: &[&str], client: Value, meta: Value) -> Vec<String> {
        let links: Vec<Value> = uris
            .iter()
            .map(|uri| json!({"type": "resource_link", "uri": uri, "name": "x"}))
            .collect();
        let request = json!({"sessionId": "s", "prompt": links, "_meta": meta});
        let request: acp::PromptRequest = serde_json::from_value(request).unwrap();
        let client: acp::ClientCapabilities = serde_json::from_value(client).unwrap();
        let roots = [PathBuf::from("/place"), PathBuf::from("/more")];
        let found = mentioned(&request, &client, roots.iter()).into_iter();
        found.map(|file| file.path.display().to_string()).collect()
    }

    #[test]
    #[cfg(unix)]
    fn files_of_the_workspace_are_asked_for() {
        let can = json!({"fs": {"readTextFile": true}});
        let uris = [
            "file:///place/a%20b.rs#L3:7",
            "file:///more/c.rs",
            "file:///etc/passwd",
            "file:///place/../etc/passwd",
            "https://example.com/place/d",
            "file:///place/a%20b.rs#L3:7",
            "file:///place/%ff",
            "file://place/e",
            "file:///place/%2e%2e/f",
        ];
        assert_eq!(found(&uris, can, Value::Null), ["/place/a b.rs", "/more/c.rs"]);
        let many: Vec<String> = (0..40).map(|number| format!("file:///place/{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            found(&many, json!({"fs": {"readTextFile": true}}), Value::Null).len(),
            MOST
        );
    }

    #[test]
    #[cfg(unix)]
    fn who_cannot_tell_or_does_not_want_to_is_not_asked() {
        let uris = ["file:///place/a.rs"];
        let off = json!({"claudeCode": {"unsavedBuffers": false}});
        assert!(found(&uris, json!({}), Value::Null).is_empty());
        assert!(
            found(
                &uris,
                json!({"fs": {"readTextFile": true}, "_meta": off}),
                Value::Null
            )
            .is_empty()
        );
        assert!(found(&uris, json!({"fs": {"readTextFile": true}}), off).is_empty());
    }

    #[tokio::test]
    async fn line_ends_are_no_change() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a");
        std::fs::write(&path, "\u{feff}one\r\ntwo\r\n").unwrap();
        assert!(!is_unsaved(&path, "one\ntwo\n").await);
        assert!(is_unsaved(&path, "one\ntwo").await);
        assert!(is_unsaved(&home.path().join("new"), "").await);
        assert!(!is_unsaved(home.path(), "a directory").await);
        std::fs::write(&path, vec![b'x'; 2 * LONGEST + 1]).unwrap();
        assert!(is_unsaved(&path, "short").await);
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn a_pipe_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let looked = tokio::time::timeout(Duration::from_secs(5), is_unsaved(&pipe, "text"));
        assert_eq!(looked.await.ok(), Some(false));
    }
}
