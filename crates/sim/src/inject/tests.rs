//! Each fault, on both ends of both directions.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};

use super::*;
use crate::running::Exit;

const LINES: &str = "{\"type\":\"a\",\"n\":1}\n{\"type\":\"b\",\"n\":2}\n{\"type\":\"a\",\"n\":3}\n";

/// Longer than anything here takes on its clock.
const LONG: Duration = Duration::from_secs(1000);

async fn read_to_end(mut reader: impl tokio::io::AsyncRead + Unpin) -> Vec<String> {
    let mut buffer = vec![0; 4096];
    let mut reads = Vec::new();
    loop {
        let read = timeout(LONG, reader.read(&mut buffer))
            .await
            .expect("it comes")
            .unwrap();
        if read == 0 {
            return reads;
        }
        reads.push(String::from_utf8_lossy(&buffer[..read]).into_owned());
    }
}

fn wire(effect: Effect, at: At) -> Wire {
    Wire::new(&Schedule::new(42).with(effect, at), Stage::Transport).unwrap()
}

/// What comes of the three lines, by reads: through a reader, and through a writer.
async fn through(effect: Effect, at: At) -> Vec<String> {
    let reads =
        read_to_end(wire(effect.clone(), at.clone()).reader(FrameDirection::Output, LINES.as_bytes())).await;

    let wire = wire(effect, at);
    let (end, theirs) = tokio::io::duplex(4096);
    let mut writer = wire.writer(FrameDirection::Output, end);
    // Fails where a fault ends the stream before.
    let _ = writer.write_all(LINES.as_bytes()).await;
    drop(writer);
    let passed = read_to_end(theirs).await.concat();
    assert_eq!(passed, reads.concat(), "both ends do the same");
    wire.drained().await;
    reads
}

fn line(n: usize) -> String {
    format!("{}\n", LINES.lines().nth(n - 1).unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_no_fault_strikes_passes_as_it_is() {
    assert_eq!(through(Effect::Drop {}, At::kind("c")).await.concat(), LINES);
    // A last line without its end, and what is no frame.
    let wire = wire(Effect::Drop {}, At::kind("c"));
    let reads = read_to_end(wire.reader(FrameDirection::Output, &b"noise\n\n\xff\n{\"cut"[..])).await;
    assert_eq!(reads.concat(), "noise\n\n\u{fffd}\n{\"cut");
}

#[tokio::test(start_paused = true)]
async fn frames_are_dropped_doubled_and_reordered() {
    assert_eq!(
        through(Effect::Drop {}, At::anywhere().nth(2)).await,
        [line(1), line(3)]
    );
    assert_eq!(
        through(Effect::Drop {}, At::kind("a").nth(2)).await,
        [line(1), line(2)]
    );
    assert_eq!(through(Effect::Drop {}, At::kind("a")).await, [line(2)]);
    assert_eq!(
        through(Effect::Duplicate { times: 2 }, At::kind("b")).await,
        [line(1), line(2), line(2), line(2), line(3)]
    );
    assert_eq!(
        through(Effect::Reorder { by: 1 }, At::anywhere().nth(1)).await,
        [line(2), line(1), line(3)]
    );
    // There are not that many.
    assert_eq!(
        through(Effect::Reorder { by: 9 }, At::anywhere().nth(1)).await,
        [line(2), line(3), line(1)]
    );
}

#[tokio::test(start_paused = true)]
async fn frames_are_cut_and_joined() {
    let at = At::anywhere().nth(1);
    assert_eq!(
        through(Effect::Split { bytes: 3 }, at.clone()).await,
        [line(1)[..3].to_owned(), line(1)[3..].to_owned(), line(2), line(3)]
    );
    let chopped = through(Effect::Chop { bytes: 1 }, At::anywhere()).await;
    assert_eq!(chopped.len(), LINES.len());
    assert_eq!(
        through(Effect::Merge { frames: 1 }, at.clone()).await,
        [line(1) + &line(2), line(3)]
    );
    // Fewer than it waits for.
    assert_eq!(through(Effect::Merge { frames: 7 }, at.clone()).await, [LINES]);
    assert_eq!(
        through(Effect::Glue {}, at).await.concat(),
        format!("{}{}{}", line(1).trim_end(), line(2), line(3))
    );
}

#[tokio::test(start_paused = true)]
async fn frames_are_spoiled() {
    let at = At::anywhere().nth(2);
    assert_eq!(
        through(Effect::Truncate { bytes: 5 }, at.clone()).await.concat(),
        format!("{}{}\n{}", line(1), &line(2)[..5], line(3))
    );
    let whole = through(Effect::Truncate { bytes: 500 }, at.clone()).await;
    assert_eq!(whole.concat(), LINES, "there is nothing to cut off");

    let wire = || wire(Effect::Corrupt { bytes: 2 }, At::anywhere().nth(2));
    let read = |wire: Wire| async move {
        let mut bytes = Vec::new();
        let mut reader = wire.reader(FrameDirection::Output, LINES.as_bytes());
        reader.read_to_end(&mut bytes).await.unwrap();
        bytes
    };
    let corrupt = read(wire()).await;
    assert_eq!(corrupt, read(wire()).await, "the same seed does the same");
    let changed: Vec<usize> = (0..LINES.len())
        .filter(|at| corrupt[*at] != LINES.as_bytes()[*at])
        .collect();
    assert!((1..=2).contains(&changed.len()), "{changed:?}");
    assert!(
        changed
            .iter()
            .all(|at| (line(1).len()..line(1).len() + line(2).len() - 1).contains(at))
    );
    assert_eq!(corrupt.iter().filter(|byte| **byte == b'\n').count(), 3);

    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let reads = through(
        Effect::AddFields {
            fields: serde_json::Map::new(),
        },
        at.clone(),
    )
    .await;
    let mut grown = json(&reads[1]);
    assert!(grown.as_object_mut().unwrap().remove("unheard_of").is_some());
    assert_eq!(grown, json(&line(2)));
    let change = |value| Effect::SetValue {
        pointer: "/type".into(),
        value,
    };
    assert_eq!(
        json(&through(change(None), at.clone()).await[1]),
        json!({"type": "unheard_of", "n": 2})
    );
    assert_eq!(
        json(&through(change(Some(json!(null))), at.clone()).await[1]),
        json!({"type": null, "n": 2})
    );
    let elsewhere = Effect::SetValue {
        pointer: "/no/such".into(),
        value: None,
    };
    assert_eq!(json(&through(elsewhere, at).await[1]), json(&line(2)));
}

#[tokio::test(start_paused = true)]
async fn things_come_in_between() {
    let noise = Effect::Noise { text: "hm".into() };
    assert_eq!(
        through(noise.clone(), At::kind("b")).await,
        [line(1), "hm\n".into(), line(2), line(3)]
    );
    assert_eq!(
        through(noise.clone(), At::kind("b").behind()).await,
        [line(1), line(2), "hm\n".into(), line(3)]
    );
    assert_eq!(through(noise, At::anywhere().times(2)).await.len(), 5);
    let inserted = through(Effect::Insert { frame: None }, At::anywhere().nth(1)).await;
    assert_eq!(
        serde_json::from_str::<Value>(&inserted[0]).unwrap()["type"],
        "unheard_of"
    );
    let frame = json!({"type": "late"});
    let inserted = through(
        Effect::Insert { frame: Some(frame) },
        At::anywhere().nth(3).behind(),
    )
    .await;
    assert_eq!(inserted[3], "{\"type\":\"late\"}\n");
}

/// A line that strikes at a byte comes behind the frame that has it, also where another fault makes that longer.
#[tokio::test(start_paused = true)]
async fn a_line_never_comes_inside_of_another() {
    let schedule = Schedule::new(1)
        .with(Effect::Insert { frame: None }, At::anywhere().after_bytes(3))
        .with(
            Effect::AddFields {
                fields: serde_json::Map::new(),
            },
            At::anywhere().nth(1),
        );
    let wire = Wire::new(&schedule, Stage::Streams).unwrap();
    let text = read_to_end(wire.reader(FrameDirection::Output, LINES.as_bytes()))
        .await
        .concat();
    let kinds: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds, ["a", "unheard_of", "b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn the_stream_ends_at_a_byte() {
    for cut in [0, 1, 19, 20, LINES.len() as u64] {
        let reads = through(Effect::End {}, At::anywhere().after_bytes(cut)).await;
        assert_eq!(reads.concat(), LINES[..cut as usize], "{cut}");
    }
    assert_eq!(through(Effect::End {}, At::kind("b")).await, [line(1)]);
    assert_eq!(
        through(Effect::End {}, At::kind("b").behind()).await,
        [line(1), line(2)]
    );
}

#[tokio::test(start_paused = true)]
async fn writing_to_a_stream_that_has_ended_fails() {
    let wire = wire(Effect::End {}, At::anywhere().input().nth(2));
    let (end, theirs) = tokio::io::duplex(4096);
    let mut writer = wire.writer(FrameDirection::Input, end);
    writer.write_all(LINES.as_bytes()).await.unwrap();
    assert_eq!(read_to_end(theirs).await, [line(1)]);
    wire.drained().await;
    let error = writer.write_all(b"more\n").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn time_passes() {
    let timed = async |effect, at| {
        let began = Instant::now();
        let reads = read_to_end(wire(effect, at).reader(FrameDirection::Output, LINES.as_bytes())).await;
        assert_eq!(reads.concat(), LINES);
        began.elapsed().as_millis()
    };
    assert_eq!(timed(Effect::Delay { ms: 30 }, At::kind("a")).await, 60);
    assert_eq!(
        timed(Effect::Stall { ms: Some(5) }, At::anywhere().after_bytes(3)).await,
        5
    );
    let slow = timed(
        Effect::Slow {
            bytes_per_second: 1000,
        },
        At::anywhere().nth(1),
    )
    .await;
    assert!(
        (50..=80).contains(&slow),
        "57 bytes at 1000 a second took {slow} ms"
    );
    assert_eq!(timed(Effect::Drop {}, At::kind("none")).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stall_lasts_until_the_process_is_gone() {
    let (end, mut theirs) = tokio::io::duplex(4096);
    let wire = wire(Effect::Stall { ms: None }, At::anywhere().after_bytes(25));
    let mut reader = wire.reader(FrameDirection::Output, end);
    theirs.write_all(LINES.as_bytes()).await.unwrap();
    let mut buffer = [0; 64];
    assert_eq!(reader.read(&mut buffer).await.unwrap(), 19);
    assert_eq!(reader.read(&mut buffer).await.unwrap(), 6);
    assert!(timeout(LONG, reader.read(&mut buffer)).await.is_err());
    drop(theirs);
    assert_eq!(timeout(LONG, reader.read(&mut buffer)).await.unwrap().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cli_that_stops_reading_lets_the_pipe_fill() {
    let wire = wire(Effect::Stall { ms: None }, At::anywhere().input().nth(1));
    let (end, theirs) = tokio::io::duplex(4096);
    let mut writer = wire.writer(FrameDirection::Input, end);
    let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
    let mut written = 0;
    while timeout(LONG, writer.write_all(&line)).await.is_ok() {
        written += 1;
        assert!(written < 1000, "it fills");
    }
    wire.over();
    assert_eq!(read_to_end(theirs).await.concat(), "");
    wire.drained().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_ends_and_both_its_streams_with_it() {
    for (effect, exit) in [
        (Effect::Exit { code: 3 }, Exit::Code(3)),
        (Effect::Signal { signal: 9 }, Exit::Signal(9)),
    ] {
        let wire = wire(effect, At::kind("b"));
        let (input, cli) = tokio::io::duplex(4096);
        let mut stdin = wire.writer(FrameDirection::Input, input);
        let stdout = wire.reader(FrameDirection::Output, LINES.as_bytes());
        assert_eq!(wire.ending(), None);
        assert_eq!(read_to_end(stdout).await, [line(1)]);
        assert_eq!(wire.ended().await, exit);
        wire.drained().await;
        assert!(stdin.write_all(b"{}\n").await.is_err());
        assert_eq!(read_to_end(cli).await.concat(), "");
    }
    let wire = wire(Effect::IgnoreTerm {}, At::kind("b"));
    let stdout = wire.reader(FrameDirection::Output, LINES.as_bytes());
    assert!(!wire.ignores_term());
    assert_eq!(read_to_end(stdout).await.concat(), LINES);
    assert!(wire.ignores_term());
}

#[tokio::test(start_paused = true)]
async fn a_flood_on_stderr_holds_stdout_up_until_it_is_read() {
    let wire = wire(Effect::Stderr { bytes: 100_000 }, At::kind("b"));
    let (words, end) = tokio::io::duplex(64);
    let mut stderr = wire.stderr(end);
    let mut stdout = wire.reader(FrameDirection::Output, LINES.as_bytes());
    let mut buffer = vec![0; 4096];
    assert_eq!(stdout.read(&mut buffer).await.unwrap(), line(1).len());
    assert!(timeout(LONG, stdout.read(&mut buffer)).await.is_err());
    let mut flood = vec![0; 100_000];
    stderr.read_exact(&mut flood).await.unwrap();
    assert!(flood.starts_with(b"[Debug] a flood of words, "));
    assert_eq!(stdout.read(&mut buffer).await.unwrap(), line(2).len());
    drop(words);
    assert_eq!(stderr.read(&mut buffer).await.unwrap(), 0);
    // Nobody reads it: it holds nothing up.
    drop(stderr);
    assert_eq!(read_to_end(stdout).await, [line(3)]);
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_no_strike() {
    let set = |pointer: &str| Effect::SetValue {
        pointer: pointer.to_owned(),
        value: None,
    };
    for (effect, frames) in [
        (set("/m"), [].as_slice()),
        (set("/n"), &[1, 2]),
        (Effect::Truncate { bytes: 500 }, &[]),
        (Effect::Truncate { bytes: 5 }, &[1, 2]),
    ] {
        // One that does nothing does not count.
        let wire = wire(effect.clone(), At::anywhere().times(2));
        read_to_end(wire.reader(FrameDirection::Output, LINES.as_bytes())).await;
        let struck: Vec<u64> = wire.strikes().iter().map(|strike| strike.frame).collect();
        assert_eq!(struck, frames, "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn chance_goes_by_the_seed_and_the_frame_alone() {
    let struck = |schedule: Schedule| async move {
        let wire = Wire::new(&schedule, Stage::Streams).unwrap();
        let lines = "{\"type\":\"x\"}\n".repeat(1000);
        read_to_end(wire.reader(FrameDirection::Output, lines.as_bytes())).await;
        let strikes = wire.strikes().into_iter();
        let dropped: Vec<u64> = strikes
            .filter(|strike| strike.effect == "drop")
            .map(|strike| strike.frame)
            .collect();
        dropped
    };
    let at = At::anywhere().probability(0.1);
    let one = struck(Schedule::new(5).with(Effect::Drop {}, at.clone())).await;
    assert!((60..140).contains(&one.len()), "{}", one.len());
    let beside = Schedule::new(5)
        .with(Effect::Noise { text: "x".into() }, at.clone())
        .with(Effect::Drop {}, at.clone());
    assert_eq!(struck(beside).await, one, "another fault changes nothing");
    assert_ne!(struck(Schedule::new(6).with(Effect::Drop {}, at)).await, one);
}

#[tokio::test(start_paused = true)]
async fn a_fault_can_be_armed_while_the_stream_runs() {
    let wire = Wire::new(&Schedule::new(0), Stage::Streams).unwrap();
    let (end, mut theirs) = tokio::io::duplex(4096);
    let mut reader = wire.reader(FrameDirection::Output, end);
    let mut buffer = [0; 64];
    theirs.write_all(line(1).as_bytes()).await.unwrap();
    assert_eq!(reader.read(&mut buffer).await.unwrap(), line(1).len());
    wire.arm(Fault::new(Effect::Drop {}, At::anywhere().nth(1)))
        .unwrap();
    let refused = wire
        .arm(Fault::new(Effect::Exit { code: 1 }, At::anywhere()))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"the fault {"fault":"exit","code":1}: two byte streams have no process that could end"#
    );
    theirs.write_all((line(2) + &line(3)).as_bytes()).await.unwrap();
    drop(theirs);
    assert_eq!(read_to_end(reader).await, [line(3)]);
    assert_eq!(wire.schedule().faults.len(), 1);
    assert_eq!(
        wire.strikes()[0].to_string(),
        "fault 0, drop: frame 2 from the CLI, b, at byte 19"
    );
}
