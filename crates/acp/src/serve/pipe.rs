//! Reads and writes lines.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use agent_client_protocol::RawJsonRpcMessage;
use futures_util::{Sink, Stream, sink, stream};
use outrigger::protocol::repair;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::gate::WriteGate;
use crate::wire::truncate;

/// The longest accepted line. An image of 100 MB in base64 fits.
const LONGEST: usize = 256 * 1024 * 1024;

/// How many lines are read while the editor takes none of those that are written. Their answers wait in memory.
const MOST_UNREAD: usize = 4096;

/// The longest line with an error, in bytes, that is sent as it is.
const LONGEST_ERROR: usize = 16 * 1024;

/// In the end, how long an editor may take nothing of the line that is being written, and how long the rest of the line may take.
const LAST_PIECE: Duration = Duration::from_secs(3);
const LAST_LINE: Duration = Duration::from_secs(60);

/// The beginnings of lines that the gate counts. The connection writes the members of a notification in this order.
const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update""#;
const SDK_MESSAGE: &str = r#"{"jsonrpc":"2.0","method":"_claude/sdkMessage""#;

/// Whether the editor takes what is written.
#[derive(Debug, Default)]
pub(super) struct Pace {
    is_writing: AtomicBool,
    read_meanwhile: AtomicUsize,
}

impl Pace {
    fn writes(&self, begins: bool) {
        self.read_meanwhile.store(0, Ordering::Relaxed);
        self.is_writing.store(begins, Ordering::Relaxed);
    }

    /// A line was read. False if the editor only sends.
    fn read(&self) -> bool {
        !self.is_writing.load(Ordering::Relaxed)
            || self.read_meanwhile.fetch_add(1, Ordering::Relaxed) < MOST_UNREAD
    }
}

/// The lines of the editor. An editor that only sends has its connection ended. The token fires at the end of the input, before the connection has handled the messages before.
pub(super) fn incoming(
    reader: impl AsyncRead + Send + 'static,
    pace: Arc<Pace>,
    ended: CancellationToken,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let reader: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(BufReader::new(reader));
    stream::unfold(reader, move |mut reader| {
        let (pace, ended) = (Arc::clone(&pace), ended.clone());
        async move {
            match line(&mut reader, LONGEST).await {
                Ok(Some(line)) if pace.read() => Some((Ok(answerable(line)), reader)),
                Ok(Some(_)) => {
                    ended.cancel();
                    let why = format!("the editor sent {MOST_UNREAD} lines and read no answer");
                    Some((Err(io::Error::other(why)), reader))
                }
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

/// A line that the connection answers, or passes on to who waits for it. It would skip a reply that is not valid JSON-RPC, and what
/// waits for the reply would wait for ever: that becomes an error.
fn answerable(line: String) -> String {
    #[derive(Deserialize)]
    struct MessageHead<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        method: Option<&'a RawValue>,
    }
    let id = match serde_json::from_str(&line) {
        Ok(MessageHead {
            id: Some(id),
            method: None,
        }) => id,
        _ => return line,
    };
    match serde_json::from_str::<RawJsonRpcMessage>(&line) {
        Ok(_) => line,
        Err(error) => {
            tracing::warn!(%error, id = id.get(), "a reply of the editor is not valid JSON-RPC");
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"the editor's reply is not valid JSON-RPC"}}}}"#
            )
        }
    }
}

/// A reply without what is too long in its error: that is what the editor sent.
fn shortened(line: String) -> String {
    #[derive(Deserialize, Serialize)]
    struct Refusal<'a> {
        jsonrpc: &'a str,
        #[serde(borrow)]
        id: &'a RawValue,
        error: Value,
    }
    if line.len() <= LONGEST_ERROR {
        return line;
    }
    let short = match serde_json::from_str::<Refusal<'_>>(&line) {
        Ok(refusal) => serde_json::to_string(&Refusal {
            error: truncate::value(refusal.error),
            ..refusal
        }),
        Err(_) => return line,
    };
    short.unwrap_or(line)
}

/// The output, with what is unwritten of its line. It outlives the connection, so that the last line is written whole.
pub(super) struct LineWriter {
    writer: Pin<Box<dyn AsyncWrite + Send>>,
    rest: io::Cursor<Vec<u8>>,
}

impl LineWriter {
    pub(super) fn new(writer: impl AsyncWrite + Send + 'static) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            writer: Box::pin(writer),
            rest: io::Cursor::default(),
        }))
    }

    async fn write(&mut self, line: String) -> io::Result<()> {
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        self.rest = io::Cursor::new(bytes);
        while self.write_piece().await? {}
        Ok(())
    }

    /// Writes a piece of the rest. False if there was none, and all is flushed.
    async fn write_piece(&mut self) -> io::Result<bool> {
        match self.writer.write_buf(&mut self.rest).await? {
            0 => self.writer.flush().await.map(|()| false),
            _ => Ok(true),
        }
    }

    /// Writes the rest of the last line, as long as the editor takes it.
    pub(super) async fn finish(output: &Mutex<Self>) {
        let finished = timeout(LAST_LINE, async {
            let mut output = output.lock().await;
            while timeout(LAST_PIECE, output.write_piece()).await?.unwrap_or(false) {}
            Ok::<_, tokio::time::error::Elapsed>(())
        });
        if !matches!(finished.await, Ok(Ok(()))) {
            tracing::warn!("the editor does not read the last line, which is cut off");
        }
    }
}

/// Writes whole lines in order, and counts each in the gate. An editor that has closed its end is gone, as at the end of the input:
/// `ended` fires, and lines are dropped.
pub(super) fn outgoing(
    output: Arc<Mutex<LineWriter>>,
    gate: Arc<WriteGate>,
    pace: Arc<Pace>,
    ended: CancellationToken,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold((output, gate), move |(output, gate), line: String| {
        let (pace, ended) = (Arc::clone(&pace), ended.clone());
        async move {
            let is_update = line.starts_with(UPDATE) || line.starts_with(SDK_MESSAGE);
            let line = if is_update { line } else { shortened(line) };
            pace.writes(true);
            match output.lock().await.write(line).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ended.cancel(),
                written => written?,
            }
            pace.writes(false);
            if is_update {
                gate.written();
            }
            Ok((output, gate))
        }
    })
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt as _, StreamExt as _};

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
        let mut sink = Box::pin(outgoing(
            LineWriter::new(ours),
            Arc::default(),
            Arc::default(),
            ended.clone(),
        ));
        sink.send("read".to_owned()).await.expect("the editor reads");
        assert!(!ended.is_cancelled());
        drop(editor);
        for _ in 0..2 {
            sink.send("unread".to_owned()).await.expect("that is no error");
            assert!(ended.is_cancelled());
        }
    }

    #[test]
    fn a_reply_that_is_none_is_an_error() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":null,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":1,"error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":2.0,"id":7,"result":1}"#,
            r#"{"id":7,"result":1}"#,
        ] {
            let answered = answerable(line.to_owned());
            let told: Value = serde_json::from_str(&answered).expect("JSON");
            assert_eq!(
                (&told["id"], &told["error"]["code"]),
                (&7.into(), &(-32600).into())
            );
            assert!(serde_json::from_str::<RawJsonRpcMessage>(&answered).is_ok());
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":"a","result":null}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"a","params":"b"}"#,
            r#"{"jsonrpc":"2.0","method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":1}"#,
            "{",
        ] {
            assert_eq!(answerable(line.to_owned()), line);
        }
    }

    #[test]
    fn an_error_does_not_send_back_what_is_long() {
        let of = |id: &str, data: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32700,"data":{{"line":"{data}"}},"message":"{data}"}}}}"#
            )
        };
        assert_eq!(shortened(of("1", "short")), of("1", "short"));
        let short = shortened(of("\"an id\"", &"x".repeat(1_000_000)));
        assert!(short.len() < 20_000, "{}", short.len());
        let told: Value = serde_json::from_str(&short).expect("JSON");
        assert_eq!(
            (&told["id"], &told["error"]["code"]),
            (&"an id".into(), &(-32700).into())
        );
        // What the editor wants to have is as long as it is.
        let result = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#,
            "x".repeat(1_000_000)
        );
        assert_eq!(shortened(result.clone()), result);
    }

    #[tokio::test]
    async fn an_editor_that_only_sends_is_given_up() {
        let pace = Arc::new(Pace::default());
        let ended = CancellationToken::new();
        let input = "{}\n".repeat(MOST_UNREAD + 1);
        let sent = move || std::io::Cursor::new(input.clone());
        // As long as nothing waits to be written, an editor may send as much as it likes.
        let lines = incoming(sent(), Arc::clone(&pace), ended.clone());
        assert_eq!(
            lines
                .filter(|line| std::future::ready(line.is_ok()))
                .count()
                .await,
            MOST_UNREAD + 1
        );
        pace.writes(true);
        let lines: Vec<_> = incoming(sent(), Arc::clone(&pace), ended.clone())
            .take(MOST_UNREAD + 1)
            .collect()
            .await;
        assert!(lines[..MOST_UNREAD].iter().all(Result::is_ok));
        assert!(lines[MOST_UNREAD].is_err());
        pace.writes(false);
        let lines = incoming(sent(), pace, ended);
        assert_eq!(
            lines
                .filter(|line| std::future::ready(line.is_ok()))
                .count()
                .await,
            MOST_UNREAD + 1
        );
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
