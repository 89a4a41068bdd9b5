//! The peer: a process that speaks the protocol just far enough, and writes what the case asks for as fast as it is read.

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

/// Tells a process of this program to be the peer, and of what kind.
pub(crate) const VARIABLE: &str = "OUTRIGGER_BENCH_FEED";

/// How many messages a stream has.
pub(crate) const MESSAGES: usize = 200_000;

/// How many questions are asked in one run.
pub(crate) const QUESTIONS: usize = 10_000;

/// What the real CLI answers to `initialize`.
pub(crate) const INITIALIZED: &str = include_str!("../../../sim/src/peer/agent/initialize.json");

const SESSION: &str = "31d2bdb5-8d7d-4530-b9a1-881a4fa5c3b0";

/// This program as the peer.
pub(crate) fn command(what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .env(VARIABLE, what)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

/// What is written after the prompt: `(pattern, times)`, of [`MESSAGES`] messages in all.
fn stream(what: &str) -> (Vec<u8>, usize) {
    const CYCLES: usize = 50;
    let mut text = Text(1);
    let mut pattern = String::new();
    let each = match what {
        "mix" | "gigabyte" => {
            (0..CYCLES).for_each(|cycle| mix(&mut pattern, &mut text, cycle));
            20 * CYCLES
        }
        "deltas" => {
            event(&mut pattern, &text.uuid(), "m", &message_start("m"));
            (1..1000).for_each(|_| {
                let uuid = text.uuid();
                let delta = delta(0, "text_delta", "text", &text.of(18));
                event(&mut pattern, &uuid, "m", &delta);
            });
            1000
        }
        _ => panic!("no such stream: {what}"),
    };
    let times = if what == "gigabyte" {
        (1 << 30) / pattern.len() + 1
    } else {
        MESSAGES / each
    };
    (pattern.into_bytes(), times)
}

/// Twenty messages: sixteen stream events, three messages of about 2 KB, a tool result of about 50 KB.
fn mix(out: &mut String, text: &mut Text, cycle: usize) {
    let message = format!("msg_01PZ{cycle:04}h7Qs9UxWnKd3");
    let call = format!("toolu_01Rk{cycle:04}v5TgYbNc2LmXq");
    let mut say = |text: &mut Text, body: String| event(out, &text.uuid(), &message, &body);
    say(text, message_start(&message));
    say(
        text,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
    );
    let mut said = String::new();
    for _ in 0..8 {
        let part = text.of(20);
        said += &part;
        say(text, delta(0, "text_delta", "text", &part));
    }
    say(text, r#"{"type":"content_block_stop","index":0}"#.to_owned());
    say(
        text,
        format!(
            r#"{{"type":"content_block_start","index":1,"content_block":{{"type":"tool_use","id":"{call}","name":"Read","input":{{}}}}}}"#
        ),
    );
    say(
        text,
        delta(1, "input_json_delta", "partial_json", r#"{"file_path": "/wo"#),
    );
    say(
        text,
        delta(1, "input_json_delta", "partial_json", r#"rk/project/src/"#),
    );
    say(text, r#"{"type":"content_block_stop","index":1}"#.to_owned());
    said += &text.of(1300);
    let said = quoted(&said);
    assistant(
        out,
        text,
        &message,
        &format!(r#"{{"type":"text","text":{said}}}"#),
    );
    let old = quoted(&text.of(600));
    let new = quoted(&text.of(700));
    assistant(
        out,
        text,
        &message,
        &format!(
            r#"{{"type":"tool_use","id":"{call}","name":"Edit","input":{{"file_path":"/home/me/project/src/main.rs","old_string":{old},"new_string":{new},"replace_all":false}}}}"#
        ),
    );
    event(out, &text.uuid(), &message, r#"{"type":"message_stop"}"#);
    let file = text.of(23_500);
    let numbered: String = file
        .lines()
        .enumerate()
        .map(|(at, line)| format!("{}\t{line}\n", at + 1))
        .collect();
    let (lines, file, numbered, uuid) = (
        file.lines().count(),
        quoted(&file),
        quoted(&numbered),
        text.uuid(),
    );
    *out += &format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{call}","type":"tool_result","content":{numbered}}}]}},"parent_tool_use_id":null,"session_id":"{SESSION}","uuid":"{uuid}","timestamp":"2026-11-21T21:25:23.083Z","tool_use_result":{{"type":"text","file":{{"filePath":"/home/me/project/src/main.rs","content":{file},"numLines":{lines},"startLine":1,"totalLines":{lines}}}}},"tool_result_meta":[{{"id":"{call}","permission_decision":{{"decision":"accept","source":"config","reason_type":"mode"}}}}]}}"#
    );
    *out += "\n";
    let (said, uuid) = (quoted(&text.of(1700)), text.uuid());
    *out += &format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"text","text":{said}}}]}},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"{uuid}","timestamp":"2026-11-21T21:25:22.885Z","isReplay":true}}"#
    );
    *out += "\n";
}

fn message_start(id: &str) -> String {
    format!(
        r#"{{"type":"message_start","message":{{"id":"{id}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":10,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}}}}}"#
    )
}

fn delta(index: usize, kind: &str, key: &str, text: &str) -> String {
    let text = quoted(text);
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{key}":{text}}}}}"#)
}

fn event(out: &mut String, uuid: &str, message: &str, event: &str) {
    *out += &format!(
        r#"{{"type":"stream_event","event":{event},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"{uuid}","api_message_id":"{message}"}}"#
    );
    *out += "\n";
}

fn assistant(out: &mut String, text: &mut Text, message: &str, block: &str) {
    let uuid = text.uuid();
    *out += &format!(
        r#"{{"type":"assistant","message":{{"id":"{message}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{block}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":10,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}},"context_management":null}},"parent_tool_use_id":null,"session_id":"{SESSION}","uuid":"{uuid}","timestamp":"2026-11-21T21:25:23.021Z","request_id":"req_011CV{message}"}}"#
    );
    *out += "\n";
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Text with the letters, line breaks and quotes of source code; the same in each run.
struct Text(u64);

impl Text {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn of(&mut self, length: usize) -> String {
        const WORDS: [&str; 16] = [
            "let",
            "session",
            "= \"naïve\"",
            "await?",
            "the",
            "return",
            "// over",
            "match",
            "frame.kind()",
            "{",
            "}",
            "of",
            "self.lanes",
            "Some(id)",
            "if",
            "pub(crate) fn",
        ];
        let mut out = String::new();
        let mut line = 0;
        while out.len() < length {
            let word = WORDS[self.next() as usize % WORDS.len()];
            line += word.len() + 1;
            out += word;
            out.push(if line > 50 { '\n' } else { ' ' });
            line = if line > 50 { 0 } else { line };
        }
        out
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{a:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            b & 0xffff,
            a & 0xfff,
            b & 0xfff,
            (a * b) & 0xffff_ffff_ffff
        )
    }
}

/// Is the peer until its stdin ends.
pub(crate) fn serve(what: &str) {
    let mut stdout = std::io::stdout().lock();
    let mut stdin = std::io::stdin().lock();
    let ready = match what {
        "ask" | "call" | "echo" => None,
        _ => Some(stream(what)),
    };
    let mut line = String::new();
    while stdin.read_line(&mut line).unwrap() > 0 {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        line.clear();
        let id = &message["request_id"];
        if message["request"]["subtype"] == "initialize" {
            let reply = INITIALIZED.replace('\n', "");
            writeln!(stdout, r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id},"response":{reply}}}}}"#)
                .unwrap();
        } else if !id.is_null() {
            writeln!(stdout, r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id},"response":{{}}}}}}"#)
                .unwrap();
        } else {
            let uuid = &message["uuid"];
            writeln!(stdout, r#"{{"type":"command_lifecycle","command_uuid":{uuid},"state":"started","uuid":"u","session_id":"{SESSION}"}}"#)
                .unwrap();
            let said = match &ready {
                Some((pattern, times)) => {
                    (0..*times).for_each(|_| stdout.write_all(pattern).unwrap());
                    String::new()
                }
                None => ask(&mut stdin, &mut stdout, what),
            };
            let said = quoted(&said);
            writeln!(stdout, r#"{{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":{said},"stop_reason":"end_turn","session_id":"{SESSION}","total_cost_usd":0.1,"usage":{{"input_tokens":1,"output_tokens":1}},"modelUsage":{{}},"permission_denials":[],"uuid":"r","user_message_uuid":{uuid}}}"#)
                .unwrap();
            if uuid.is_null() {
                return;
            }
        }
    }
}

/// Asks one question after another; returns how long the answers took, in ns: the median and the mean.
fn ask(stdin: &mut impl BufRead, stdout: &mut impl Write, what: &str) -> String {
    let mut took = Vec::with_capacity(QUESTIONS);
    let mut answer = String::new();
    for number in 0..QUESTIONS {
        let question = match what {
            "ask" => format!(
                r#"{{"type":"control_request","request_id":"03078c19-338f-4c28-9b0a-{number:012}","request":{{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{{"command":"cargo test --workspace","description":"Run the tests"}},"tool_use_id":"toolu_{number}","permission_suggestions":[]}}}}"#
            ),
            "call" => format!(
                r#"{{"type":"control_request","request_id":"03078c19-338f-4c28-9b0a-{number:012}","request":{{"subtype":"mcp_message","server_name":"calc","message":{{"method":"tools/call","params":{{"name":"add","arguments":{{"a":2,"b":3}},"_meta":{{"claudecode/toolUseId":"toolu_{number}","progressToken":{number}}}}},"jsonrpc":"2.0","id":{number}}}}}}}"#
            ),
            _ => format!("{number:0>300}"),
        };
        let asked = Instant::now();
        stdout.write_all(question.as_bytes()).unwrap();
        stdout.write_all(b"\n").unwrap();
        stdout.flush().unwrap();
        answer.clear();
        assert!(stdin.read_line(&mut answer).unwrap() > 0);
        took.push(asked.elapsed().as_nanos() as u64);
        let expected = match what {
            "ask" => "allow",
            "call" => r#""text":"5""#,
            _ => "",
        };
        assert!(answer.contains(expected), "{answer}");
    }
    let mean = took.iter().sum::<u64>() / took.len() as u64;
    took.sort_unstable();
    format!("{} {mean}", took[took.len() / 2])
}
