//! Server-sent events, from bytes.

use std::collections::VecDeque;

use memchr::memchr2;

use crate::error::{Error, Result};

/// An event of a stream. Ids are not read: a durable event has its number in its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// Cuts bytes into events, however they come. Holds one unfinished event, up to a limit.
#[derive(Debug)]
pub(crate) struct SseParser {
    limit: usize,
    /// The line that has not ended.
    line: Vec<u8>,
    /// The last byte was a carriage return, to which a line feed may belong.
    after_return: bool,
    is_first_line: bool,
    name: String,
    data: Option<Vec<u8>>,
}

impl SseParser {
    /// A parser of events up to so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_return: false,
            is_first_line: true,
            name: String::new(),
            data: None,
        }
    }

    /// Takes the next bytes, and appends the events that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], events: &mut VecDeque<SseEvent>) -> Result<()> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\r', b'\n', bytes) {
            self.extend(&bytes[..end])?;
            self.end_line(events)?;
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
        }
        self.extend(bytes)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<()> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held + bytes.len() > self.limit {
            return Err(Error::TooLarge(self.limit));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut VecDeque<SseEvent>) -> Result<()> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if let Some(data) = self.data.take() {
                let data = String::from_utf8(data).map_err(|_| no_text())?;
                events.push_back(SseEvent { name, data });
            }
            return Ok(());
        }
        let colon = memchr::memchr(b':', &line);
        let (field, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&*line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.name = std::str::from_utf8(value).map_err(|_| no_text())?.to_owned(),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            // Comments, ids, and what this version does not know.
            _ => {}
        }
        // The buffer of a usual line is used again.
        if line.capacity() <= 64 * 1024 {
            line.clear();
            self.line = line;
        }
        Ok(())
    }
}

fn no_text() -> Error {
    Error::Unexpected("an event that is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn parsed<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
        let mut parser = SseParser::new(usize::MAX);
        let mut events = VecDeque::new();
        for chunk in chunks {
            parser.push(chunk, &mut events).unwrap();
        }
        events.into()
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let text = "\u{feff}: a comment\n\nevent: a\r\ndata: one\rdata:  two\ndata\nid: 7\nretry: 5\nother: x\n\nevent: no data\n\ndata:only\n\ndata: cut off";
        assert_eq!(
            parsed([text.as_bytes()]),
            [event("a", "one\n two\n"), event("", "only")]
        );
    }

    #[test]
    fn what_is_too_large_or_no_text_is_an_error() {
        let mut events = VecDeque::new();
        // Without an end of the line, in lines of data, and in a comment.
        for text in [
            "data: 0123456789",
            "data: 01234\ndata: 56789\ndata: 0\n",
            ":0123456789abcdef\n",
        ] {
            let mut parser = SseParser::new(12);
            let pushed = text
                .bytes()
                .try_for_each(|byte| parser.push(&[byte], &mut events));
            assert!(matches!(pushed, Err(Error::TooLarge(12))), "{text}");
        }
        let pushed = SseParser::new(100).push(b"data: \xff\n\n", &mut events);
        assert!(matches!(pushed, Err(Error::Unexpected(_))));
        assert_eq!(events, []);
    }

    #[derive(Debug, Clone)]
    struct SentSseEvent {
        name: String,
        data: Vec<String>,
    }

    fn sent() -> impl Strategy<Value = SentSseEvent> {
        ("[a-z_]{0,8}", proptest::collection::vec("[^\r\n]{0,12}", 1..4))
            .prop_map(|(name, data)| SentSseEvent { name, data })
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            sent in proptest::collection::vec(sent(), 0..6),
            end in prop_oneof!["\n", "\r\n", "\r"],
            comment in "[^\r\n]{0,8}",
            cuts in proptest::collection::vec(0_usize..400, 0..40),
        ) {
            let mut text = String::new();
            let mut line = |line: &str| {
                text.push_str(line);
                text.push_str(&end);
            };
            for event in &sent {
                line(&format!(":{comment}"));
                line(&format!("event: {}", event.name));
                for data in &event.data {
                    line(&format!("data: {data}"));
                }
                line("");
            }
            let expected: Vec<_> = sent.iter().map(|sent| event(&sent.name, &sent.data.join("\n"))).collect();
            let bytes = text.as_bytes();
            prop_assert_eq!(&parsed([bytes]), &expected);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
            prop_assert_eq!(&parsed(chunks), &expected);
            prop_assert_eq!(&parsed(bytes.chunks(1)), &expected);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = SseParser::new(64).push(&bytes, &mut VecDeque::new());
        }
    }
}
