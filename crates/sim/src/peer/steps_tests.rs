use super::*;
use crate::running::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

async fn write(io: &mut ClientIo, line: Value) {
    io.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn plays_its_steps() {
    let script = Steps::new()
        .initialize_with(json!({"account": {"tokenSource": "test"}}))
        .expect(Match::prompt("hello"))
        .send_raw(*b"noise\n")
        .sleep(Duration::from_secs(3600))
        .send(json!({"type": "result"}))
        .expect(Match::request("interrupt"))
        .reply(json!({"still_queued": []}))
        .complain("bye")
        .expect_end()
        .exit(3);
    let (mut io, peer) = script.spawn_in_memory();
    write(
        &mut io,
        json!({"type": "control_request", "request_id": 7, "request": {"subtype": "initialize"}}),
    )
    .await;
    write(
        &mut io,
        json!({"type": "user", "message": {"role": "user", "content": "hello"}}),
    )
    .await;
    write(
        &mut io,
        json!({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}}),
    )
    .await;
    drop(io.stdin);
    let mut lines = BufReader::new(io.stdout).lines();
    let mut got = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        got.push(line);
    }
    assert_eq!(peer.exit().await, Exit::Code(3));
    let report = peer.join().await;
    report.verdict.clone().unwrap();
    let initialized: Value = serde_json::from_str(&got[0]).unwrap();
    assert_eq!(initialized["response"]["request_id"], 7);
    assert_eq!(
        initialized["response"]["response"]["account"]["tokenSource"],
        "test"
    );
    assert_eq!(
        initialized["response"]["response"]["account"]["apiProvider"],
        "firstParty"
    );
    assert_eq!(
        got[1..],
        [
            "noise",
            r#"{"type":"result"}"#,
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"i","response":{"still_queued":[]}}}"#
        ]
    );
    assert_eq!(
        report.received_kinds(),
        ["control_request/initialize", "user", "control_request/interrupt"]
    );
    let mut stderr = String::new();
    io.stderr.read_to_string(&mut stderr).await.unwrap();
    assert_eq!(stderr, "bye\n");
}

#[tokio::test(start_paused = true)]
async fn says_what_it_expected_and_what_it_received() {
    let (mut io, peer) = Steps::new().expect(Match::prompt("a")).spawn_in_memory();
    write(
        &mut io,
        json!({"type": "user", "message": {"role": "user", "content": "b"}}),
    )
    .await;
    let report = peer.join().await;
    assert_eq!(report.exit, Some(Exit::Code(Steps::MISMATCH_CODE)));
    assert_eq!(
        report.verdict.unwrap_err().to_string(),
        "step 1 of the script\n  EXPECTED {\"type\":\"user\"} and the text \"a\"\n  RECEIVED \
         {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"b\"}}\n  BUT      its text is \"b\""
    );
}

#[tokio::test(start_paused = true)]
async fn does_not_wait_for_ever() {
    let (_io, peer) = Steps::new().expect(Match::any()).spawn_in_memory();
    assert_eq!(
        peer.join().await.verdict.unwrap_err().received,
        "nothing within 30s"
    );
    let (io, peer) = Steps::new().expect(Match::any()).spawn_in_memory();
    drop(io);
    assert_eq!(
        peer.join().await.verdict.unwrap_err().received,
        "the end of input"
    );
}

#[tokio::test(start_paused = true)]
async fn stops_reading_and_closes() {
    let (mut io, peer) = Steps::new()
        .stop_reading()
        .close_stdout()
        .sleep(Duration::from_secs(1))
        .spawn_in_memory();
    let too_much = vec![b'x'; 2 * running::PIPE];
    let stuck = tokio::time::timeout(Duration::from_secs(60), io.stdin.write_all(&too_much)).await;
    assert!(stuck.is_err(), "the pipe should have filled up");
    let mut rest = String::new();
    assert_eq!(io.stdout.read_to_string(&mut rest).await.unwrap(), 0);
    assert_eq!(peer.exited(), None);
    peer.signal(Signal::Kill);
    assert_eq!(peer.exit().await, Exit::Signal(9));
}
