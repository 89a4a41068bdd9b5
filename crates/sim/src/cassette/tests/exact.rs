//! What is recorded is what is played, byte for byte.

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// Frames as JSON allows them, of which many look like something else.
fn frame() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        3 => "[a-z /.{}:-]{0,12}",
        1 => "\\PC{0,8}",
        1 => Just("{{cwd}}".to_owned()),
        1 => Just("{{as-is:home}} {{secret}} x".to_owned()),
        1 => Just("{\"raw\":\"x\"}".to_owned()),
        1 => Just("/home/user/project/x and -home-user-project and /tmp/a".to_owned()),
    ];
    let leaf = prop_oneof![
        text.clone().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    });
    let delta = "[a-z ]{0,6}".prop_map(|text| {
        json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": {"text": text}}}).to_string()
    });
    prop_oneof![
        6 => value.prop_map(|value| value.to_string()),
        2 => delta,
        1 => Just("{\"raw\":\"not text\"}".to_owned()),
        1 => Just("[\"\\ud83d\", 1e400, 0.10000000000000000001]".to_owned()),
        1 => Just("{\"type\":\"result\"}".to_owned()),
        1 => "[a-z][a-z {}\\[\\]\"]{0,20}",
    ]
}

/// Lines of a process, which need not be frames, nor text.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => frame().prop_map(String::into_bytes),
        1 => Just(Vec::new()),
        1 => Just(b" \t\r".to_vec()),
        1 => Just(b"{\"type\":\"caf\xE9\"}".to_vec()),
        1 => prop::collection::vec(any::<u8>().prop_filter("one line", |byte| *byte != b'\n'), 1..12)
            // White space around a frame goes; it is not what this is about.
            .prop_map(|line| if line.is_ascii() { b"\xFF".to_vec() } else { line }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the CLI writes, in whatever pieces, is what the client reads when it is played.
    #[test]
    fn what_is_recorded_is_what_is_played(
        frames in prop::collection::vec(line(), 0..20), chunk in 1_usize..200, ends in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (passed, played) = runtime.block_on(async {
            let paper = Paper::default();
            let env = [("HOME".to_owned(), "/home/user".to_owned())];
            let about = About::new(["claude"], env, "/home/user/project");
            let recorder = Recorder::new(paper.clone(), &about).unwrap();
            let mut text = frames.join(&b'\n');
            if ends && !text.is_empty() {
                text.push(b'\n');
            }
            let (mut theirs, ours) = tokio::io::duplex(1 << 22);
            for piece in text.chunks(chunk) {
                theirs.write_all(piece).await.unwrap();
            }
            drop(theirs);
            let mut passed = Vec::new();
            recorder.stdout(ours).read_to_end(&mut passed).await.unwrap();
            assert_eq!(passed, text);
            recorder.exit(Some(3), None);
            recorder.finish().unwrap();
            let cassette = Cassette::parse(&paper.text()).unwrap();
            let (mut io, playing) = CassetteReplay::new(cassette).spawn_in_memory();
            let mut played = Vec::new();
            io.stdout.read_to_end(&mut played).await.unwrap();
            assert_eq!(playing.exit().await, Exit::Code(3));
            (text, played)
        });
        prop_assert_eq!(played, passed);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_on_stderr_comes_back_too() {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), &about(&[])).unwrap();
    let said = b"one\n\n\xFF\xFEtwo\n";
    let mut passed = Vec::new();
    recorder.stderr(&said[..]).read_to_end(&mut passed).await.unwrap();
    recorder.exit(Some(0), None);
    let (mut io, playing) = CassetteReplay::new(Cassette::parse(&paper.text()).unwrap()).spawn_in_memory();
    let mut played = Vec::new();
    io.stderr.read_to_end(&mut played).await.unwrap();
    assert_eq!(playing.exit().await, Exit::Code(0));
    assert_eq!(played, said);
}
