//! The floors: the same bytes and the same pipes without the SDK.

use std::io::{Read, Write};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{feed, gauge};

/// Reads the stream and finds its line ends; no copies. How many lines there were, and the CPU time.
pub(crate) fn split(what: &str) -> (u64, Duration) {
    let mut child = feed::command(what).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut chunk = vec![0; 1 << 20];
    let begun = gauge::cpu();
    stdin.write_all(b"{\"uuid\":null}\n").unwrap();
    let mut lines = 0;
    loop {
        let read = stdout.read(&mut chunk).unwrap();
        if read == 0 {
            break;
        }
        lines += memchr::memchr_iter(b'\n', &chunk[..read]).count() as u64;
    }
    let took = gauge::cpu() - begun;
    child.wait().unwrap();
    (lines, took)
}

/// Reads lines and writes a short line back for each; what the peer measured.
pub(crate) async fn echo() -> String {
    let mut child = tokio::process::Command::from(feed::command("echo"))
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    // The loop that answers is a spawned task, as a session's is: on a runtime of several threads it moves between them.
    tokio::spawn(async move {
        stdin.write_all(b"{\"uuid\":null}\n").await.unwrap();
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line).await.unwrap();
        let answer = format!("{:0>200}\n", "");
        for _ in 0..feed::QUESTIONS {
            line.clear();
            stdout.read_line(&mut line).await.unwrap();
            stdin.write_all(answer.as_bytes()).await.unwrap();
        }
        line.clear();
        stdout.read_line(&mut line).await.unwrap();
        child.wait().await.unwrap();
        let result: serde_json::Value = serde_json::from_str(&line).unwrap();
        result["result"].as_str().unwrap().to_owned()
    })
    .await
    .unwrap()
}
