//! The reader of frames against the framer and the frames, which read the same one step at a time.

use outrigger_protocol::framer::LineFramer;
use outrigger_protocol::{Frame, FrameReader};
use proptest::prelude::*;

const DELTA: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some\n\"text\" é"}},"session_id":"s","parent_tool_use_id":null,"uuid":"u","api_message_id":"m"}"#;

fn read(chunks: &[&[u8]], cap: usize) -> Vec<Frame> {
    let mut reader = FrameReader::new(cap);
    let mut frames = Vec::new();
    for chunk in chunks {
        reader.feed(chunk, &mut frames);
    }
    reader.finish(&mut frames);
    frames
}

/// What can be told of a frame.
fn told(frame: &Frame) -> String {
    format!(
        "{:?} {:?} {frame:?} {:?} {:?} {:?} {:?}",
        String::from_utf8_lossy(frame.line()),
        String::from_utf8_lossy(frame.bytes()),
        frame.uuid(),
        frame.session_id(),
        frame.event_type(),
        frame.delta()
    )
}

/// How many frames of `stream` in a row share their memory: those that lie as far from each other as they came.
fn groups(frames: &[Frame], stream: &[u8]) -> Vec<usize> {
    let lines = stream.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let distances = lines.zip(frames).map(|(line, frame)| {
        let came_at = line.as_ptr() as usize - stream.as_ptr() as usize;
        (frame.line().as_ptr() as usize).wrapping_sub(came_at)
    });
    let distances: Vec<usize> = distances.collect();
    distances.chunk_by(|a, b| a == b).map(<[usize]>::len).collect()
}

#[test]
fn short_partial_messages_share_their_memory_up_to_a_bound() {
    let many = format!("{DELTA}\r\n\n{DELTA}\n").repeat(10);
    let frames = read(&[many.as_bytes()], 1 << 20);
    assert_eq!(frames.len(), 20);
    assert_eq!(groups(&frames, many.as_bytes()), [16, 4]);
    for frame in &frames {
        assert_eq!(frame.line(), DELTA.as_bytes());
        assert_eq!(frame.text(), DELTA);
        assert_eq!(frame.delta().unwrap().text, "some\n\"text\" é");
    }
    let long = DELTA.replace("some", &"some ".repeat(1024));
    let other = r#"{"type":"keep_alive"}"#;
    let mixed = format!("{DELTA}\n{long}\n{DELTA}\n{other}\n{DELTA}\n");
    let frames = read(&[mixed.as_bytes()], 1 << 20);
    assert_eq!(groups(&frames, mixed.as_bytes()), [1; 5]);
}

#[test]
fn one_that_is_no_utf8_does_not_harm_its_neighbours() {
    let mut bytes = format!("{DELTA}\n").into_bytes();
    bytes.extend(
        DELTA
            .replace("é", "\u{1}")
            .bytes()
            .map(|byte| if byte == 1 { 0xff } else { byte }),
    );
    bytes.extend(format!("\n{DELTA}\n").bytes());
    let frames = read(&[&bytes], 1 << 20);
    let said: Vec<_> = frames
        .iter()
        .map(|frame| frame.delta().map(|delta| delta.text))
        .collect();
    assert_eq!(said[0], said[2]);
    assert_eq!(
        (said[0].as_deref(), said[1].as_deref()),
        (Some("some\n\"text\" é"), None)
    );
    assert!(
        frames
            .iter()
            .all(|frame| frame.decode().is_ok() && frame.uuid() == Some("u"))
    );
    assert!(frames[1].text().contains('\u{fffd}'));
}

#[test]
fn long_lines_are_kept_as_they_came_whatever_the_chunks() {
    let long = |said: &str| {
        let said = said.repeat(3 * 1024);
        format!(r#"{{"type":"user","message":{{"content":"{said}"}},"uuid":"u"}}"#)
    };
    let several = format!("{} {} {{\"type\":\"x\"}}", long("a"), long("é"));
    for line in [
        long("a"),
        long("é\\n"),
        several,
        long("\\ud83d"),
        long("\u{1}"),
        format!("{} x", long("a")),
    ] {
        let bytes = format!("{DELTA}\n{line}\r\n{DELTA}\n{line}").into_bytes();
        let broken = bytes.iter().map(|byte| if *byte == 0xC3 { 0xFF } else { *byte });
        for bytes in [bytes.clone(), broken.collect()] {
            let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            lines[1] = lines[1].strip_suffix(b"\r").unwrap();
            let expected: Vec<_> = lines.into_iter().flat_map(Frame::from_line).collect();
            for size in [1000, 5000, bytes.len()] {
                let frames = read(&bytes.chunks(size).collect::<Vec<_>>(), 1 << 20);
                assert_eq!(frames.len(), expected.len());
                for (frame, expected) in frames.iter().zip(&expected) {
                    assert_eq!(told(frame), told(expected));
                    assert_eq!(
                        format!("{:?}", frame.decode()),
                        format!("{:?}", expected.decode())
                    );
                }
            }
        }
    }
}

#[test]
fn a_line_of_the_same_shape_is_read_like_any_other() {
    let swapped = r#"{"uuid":"u","type":"stream_event","session_id":"s","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}}"#;
    let empty = [
        DELTA.replace(r#""some\n\"text\" é""#, r#""""#),
        DELTA.replace(r#""u""#, r#""""#),
        swapped.replace(r#""text":"a""#, r#""text":"""#),
        // A tool's input begins with nothing.
        swapped.replace(
            r#""text_delta","text":"a""#,
            r#""input_json_delta","partial_json":"""#,
        ),
    ];
    for empty in &empty {
        assert_eq!(empty.matches(r#":"""#).count(), 1, "{empty}");
        let filled = empty.replace(r#":"""#, r#":"of any length""#);
        let frames = read(
            &[format!("{empty}\n{filled}\n{empty}\n{filled}\n").as_bytes()],
            1 << 20,
        );
        let expected: Vec<_> = [empty, &filled, empty, &filled]
            .into_iter()
            .flat_map(|line| Frame::from_line(line.as_str()))
            .collect();
        let [frames, expected] = [frames, expected].map(|frames| frames.iter().map(told).collect::<Vec<_>>());
        assert_eq!(frames, expected);
    }
    for first in [DELTA, swapped] {
        for (from, to) in [
            ("\"u\"", "\"another, longer one\""),
            ("\"u\"", "\"\""),
            ("\"u\"", "\"\\u0075\""),
            ("\"u\"", "\"é\""),
            ("\"u\"", "\"u\\"),
            ("\"u\"", "5"),
            ("\"text\":\"", "\"text\":\"more of it, with \\\" and \\\\"),
            ("\"text\":\"", "\"text\":\"\\x"),
            ("\"text\":\"", "\"text\":\"\",\"more\":\""),
            ("\"text\":\"", "\"text\":\"\u{1}"),
            ("\"index\":0", "\"index\":1"),
            ("\"s\"", "\"t\""),
            ("}}", "}"),
            ("}}", "}}}"),
        ] {
            let second = first.replace(from, to);
            assert_ne!(first, second);
            let frames = read(&[format!("{first}\n{second}\n{first}\n").as_bytes()], 1 << 20);
            let expected: Vec<_> = [first, &second, first]
                .into_iter()
                .flat_map(Frame::from_line)
                .collect();
            let [frames, expected] =
                [frames, expected].map(|frames| frames.iter().map(told).collect::<Vec<_>>());
            assert_eq!(frames, expected);
        }
    }
}

#[test]
fn only_a_plain_delta_is_read_the_short_way() {
    let one = |line: &str| Frame::from_line(line).remove(0);
    assert!(one(DELTA).delta().is_some());
    for (from, to) in [
        ("text_delta", "signature_delta"),
        ("text_delta", "thinking_delta"),
        ("content_block_delta", "content_block_stop"),
        ("stream_event", "stream_events"),
        ("\"index\":0", "\"index\":0.0"),
        ("\"index\":0", "\"index\":-0"),
        ("\"index\":0", "\"index\":9999999999"),
        ("\"index\":0", "\"index\":0,\"index\":0"),
        ("\"index\":0", "\"index\":0,\"more\":0"),
        ("\"index\":0,", ""),
        ("\"uuid\":\"u\"", "\"uuid\":null"),
        ("\"uuid\":\"u\"", "\"uuid\":\"u\",\"uuid\":\"u\""),
        ("\"uuid\":\"u\"", "\"uuid\":\"u\",\"ttft_ms\":1"),
        ("\"uuid\":\"u\",", ""),
        ("\"session_id\":\"s\"", "\"session_id\":{}"),
        ("_id\":null", "_id\":true"),
        ("\"m\"", "5"),
        ("some", "some\\ud83d"),
        ("\"text\":\"", "\"text\":null,\"no\":\""),
        ("{\"type\":\"text_delta\",", "{"),
    ] {
        let line = DELTA.replace(from, to);
        assert_ne!(line, DELTA, "{from}");
        assert_eq!(one(&line).delta(), None, "{line}");
    }
}

proptest! {
    #[test]
    fn it_reads_what_the_framer_and_the_frames_read(
        lines in proptest::collection::vec(prop_oneof![
            6 => Just(DELTA.as_bytes().to_vec()),
            1 => Just(format!("{DELTA} {DELTA}").into_bytes()),
            1 => Just(b"{\"type\":\"stream_event\",\"uuid\":\"u\\n\"} ".to_vec()),
            1 => Just(b"{\"type\":\"user\"}\r".to_vec()),
            3 => "[a-z\"\\\\é]{0,9}".prop_map(|text| DELTA.replace("some", &text).into_bytes()),
            3 => "[a-z\"\\\\é]{0,9}".prop_map(|uuid| DELTA.replace("\"u", &format!("\"{uuid}")).into_bytes()),
            1 => Just(b"noise \xff".to_vec()),
            1 => Just(Vec::new()),
        ], 0..40),
        cuts in proptest::collection::vec(0_usize..9000, 0..6),
        cap in prop_oneof![Just(30_usize), Just(230), Just(1000)],
    ) {
        let stream = lines.join(&b'\n');
        let mut framer = LineFramer::new(cap);
        let mut framed = Vec::new();
        framer.feed(&stream, |found| framed.push(found));
        framer.finish(|found| framed.push(found));
        let expected: Vec<_> = framed.into_iter().flat_map(Frame::read).collect();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([stream.len()]) {
            chunks.push(&stream[from..cut]);
            from = cut;
        }
        let read = read(&chunks, cap);
        prop_assert_eq!(
            read.iter().map(told).collect::<Vec<_>>(),
            expected.iter().map(told).collect::<Vec<_>>()
        );
    }
}
