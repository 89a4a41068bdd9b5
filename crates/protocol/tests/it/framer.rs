//! Lines, however they are cut into chunks.

use outrigger_protocol::framer::{Framed, LineFramer};
use proptest::prelude::*;

fn lines(cap: usize, chunks: &[&[u8]]) -> Vec<Framed> {
    let mut framer = LineFramer::new(cap);
    let mut out = Vec::new();
    for chunk in chunks {
        framer.feed(chunk, |framed| out.push(framed));
    }
    framer.finish(|framed| out.push(framed));
    out
}

fn line(text: &str) -> Framed {
    Framed::Line(text.as_bytes().into())
}

#[test]
fn blank_lines_are_skipped_and_the_last_line_needs_no_newline() {
    assert_eq!(
        lines(99, &[b"\n  \r\na\r\n\n\xe2\x80\xa8b\n{"]),
        [line("a"), line("\u{2028}b"), line("{")]
    );
}

#[test]
fn an_oversized_line_is_reported_and_its_neighbours_survive() {
    let got = lines(4, &[b"ab\nabcde", b"fgh\ncd\n", b"12345678"]);
    assert_eq!(
        got,
        [
            line("ab"),
            Framed::Oversized {
                head: b"abcd"[..].into(),
                length: 8
            },
            line("cd"),
            Framed::Oversized {
                head: b"1234"[..].into(),
                length: 8
            },
        ]
    );
}

#[test]
fn a_line_as_long_as_the_cap_is_not_oversized() {
    assert_eq!(
        lines(4, &[b"abcd\n", b"ab", b"cd", b"\n"]),
        [line("abcd"), line("abcd")]
    );
}

proptest! {
    #[test]
    fn chunking_never_matters(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xC3), any::<u8>()], 0..200),
                              cuts in proptest::collection::vec(0usize..200, 0..8)) {
        let whole = lines(1000, &[&bytes]);
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&whole, &lines(1000, &each));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&bytes[from..cut]);
            from = cut;
        }
        chunks.push(&bytes[from..]);
        prop_assert_eq!(&whole, &lines(1000, &chunks));
        let whole = lines(5, &[&bytes]);
        prop_assert_eq!(&whole, &lines(5, &each));
        prop_assert_eq!(&whole, &lines(5, &chunks));
    }
}
