//! Reads and writes lines.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Sink, Stream, sink, stream};
use outrigger::protocol::repair;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use crate::client::gate::Gate;

/// The longest accepted line. An image of 100 MB in base64 fits.
const LONGEST: usize = 256 * 1024 * 1024;

/// The beginnings of lines that the gate counts. The connection writes the members of a notification in this order.
const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update""#;
const SDK_MESSAGE: &str = r#"{"jsonrpc":"2.0","method":"_claude/sdkMessage""#;

/// The lines of the editor. The token fires at the end of the input, before the connection has handled the messages before.
pub(super) fn incoming(
    reader: impl AsyncRead + Send + 'static,
    ended: CancellationToken,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let reader: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(BufReader::new(reader));
    stream::unfold(reader, move |mut reader| {
        let ended = ended.clone();
        async move {
            match line(&mut reader, LONGEST).await {
                Ok(Some(line)) => Some((Ok(line), reader)),
                Ok(None) => {
                    ended.cancel();
                    None
                }
                Err(error) => {
                    ended.cancel();
                    Some((Err(error), reader))
                }
            }
        }
    })
}

/// One line without its end, and without lone surrogates; `None` at the end of the input. Blank lines are skipped. A line that is too long or not UTF-8 is replaced
/// by a text that is no JSON, so that the connection answers with an error and continues.
async fn line(reader: &mut (impl AsyncBufRead + Unpin), longest: usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut skipped = 0_usize;
    loop {
        let read = reader.fill_buf().await?;
        if read.is_empty() {
            return Ok((!is_blank(&line, skipped)).then(|| text(line, skipped)));
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        if skipped == 0 && line.len() + part.len() <= longest {
            line.extend_from_slice(part);
        } else {
            skipped += line.len() + part.len();
            line = Vec::new();
        }
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            if is_blank(&line, skipped) {
                line.clear();
                continue;
            }
            return Ok(Some(text(line, skipped)));
        }
    }
}

fn is_blank(line: &[u8], skipped: usize) -> bool {
    skipped == 0 && line.iter().all(u8::is_ascii_whitespace)
}

fn text(line: Vec<u8>, skipped: usize) -> String {
    if skipped > 0 {
        return format!("a line of {skipped} bytes, which is too long");
    }
    match String::from_utf8(line) {
        Ok(mut line) => {
            if line.ends_with('\r') {
                line.pop();
            }
            // Editors in JavaScript send half of a pair, for example where they truncate a text, and wait for an answer.
            repair::lone_surrogates(&line).unwrap_or(line)
        }
        Err(error) => format!("a line that is not UTF-8: {error}"),
    }
}

/// Writes whole lines in order, and counts each in the gate. An editor that has closed its end is gone, as at the end of the input:
/// `ended` fires, and lines are dropped.
pub(super) fn outgoing(
    writer: impl AsyncWrite + Send + 'static,
    gate: Arc<Gate>,
    ended: CancellationToken,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    let writer: Pin<Box<dyn AsyncWrite + Send>> = Box::pin(writer);
    sink::unfold((writer, gate), move |(mut writer, gate), line: String| {
        let ended = ended.clone();
        async move {
            let is_update = line.starts_with(UPDATE) || line.starts_with(SDK_MESSAGE);
            let mut bytes = line.into_bytes();
            bytes.push(b'\n');
            match write(&mut writer, &bytes).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ended.cancel(),
                written => written?,
            }
            if is_update {
                gate.written();
            }
            Ok((writer, gate))
        }
    })
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use futures_util::SinkExt as _;

    use super::*;

    async fn lines(input: &[u8], longest: usize) -> Vec<String> {
        // A small buffer, so that lines come in parts.
        let mut reader = BufReader::with_capacity(3, input);
        let mut lines = Vec::new();
        while let Some(line) = line(&mut reader, longest).await.expect("memory is readable") {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_cut_at_their_ends_and_blank_ones_passed_over() {
        assert_eq!(
            lines(b"one\r\n\n\r\ntwo\n  \nlast\n\t", 100).await,
            ["one", "two", "last"]
        );
    }

    #[tokio::test]
    async fn half_a_pair_is_mended() {
        assert_eq!(
            lines(br#"{"a":"\ud83d"} "\ud83d\ude00""#, 100).await,
            [r#"{"a":"\ufffd"} "\ud83d\ude00""#]
        );
    }

    #[tokio::test]
    async fn an_editor_that_no_longer_reads_is_gone() {
        let (ours, editor) = tokio::io::duplex(1024);
        let ended = CancellationToken::new();
        let mut sink = Box::pin(outgoing(ours, Arc::default(), ended.clone()));
        sink.send("read".to_owned()).await.expect("the editor reads");
        assert!(!ended.is_cancelled());
        drop(editor);
        for _ in 0..2 {
            sink.send("unread".to_owned()).await.expect("that is no error");
            assert!(ended.is_cancelled());
        }
    }

    #[tokio::test]
    async fn what_is_too_long_or_no_text_is_told_and_passed_over() {
        let lines = lines(b"0123456789\nok\n\xff\nok\n", 5).await;
        assert_eq!(lines[0], "a line of 10 bytes, which is too long");
        assert_eq!(lines[1], "ok");
        assert!(lines[2].starts_with("a line that is not UTF-8"), "{}", lines[2]);
        assert_eq!(lines[3], "ok");
    }
}
