//! Does the steps of a script, on whatever stage.

use std::collections::VecDeque;

use serde_json::Value;

use super::faulty_step::{Death, FaultyStep, Note, Piece};
use crate::inject::Grandchild;
use crate::matcher::Match;
use crate::running::read_json;

/// The exit code when the input ended while a step waited for a line.
const IN_VAIN: i32 = 98;

/// How many bytes are written at once.
const CHUNK: usize = 64 * 1024;

/// Where a script is played.
pub(super) trait FaultyStage {
    /// The next line of the input, without its end; `None` at the end of the input.
    fn read(&mut self) -> Option<Vec<u8>>;
    fn write(&mut self, bytes: &[u8]);
    /// Waits until the client has taken all that was written.
    fn until_taken(&mut self);
    fn complain(&mut self, bytes: &[u8]);
    fn note(&mut self, note: &Note);
    fn close_stdout(&mut self);
    fn close_stdin(&mut self);
    fn survive(&mut self);
    fn grandchild(&mut self, grandchild: Grandchild);
    /// Does nothing for ever; a stage that cannot returns.
    fn hold(&mut self);
}

/// The state of a script while it runs.
pub(super) struct FaultyPlay<'s, S> {
    stage: &'s mut S,
    /// Lines that no step has taken yet.
    waiting: VecDeque<Value>,
    ended: bool,
    prompts: Vec<Value>,
    requests: Vec<Value>,
    uuids: u64,
    rounds: Vec<usize>,
}

impl<'s, S: FaultyStage> FaultyPlay<'s, S> {
    pub(super) fn new(stage: &'s mut S) -> Self {
        Self {
            stage,
            waiting: VecDeque::new(),
            ended: false,
            prompts: Vec::new(),
            requests: Vec::new(),
            uuids: 0,
            rounds: Vec::new(),
        }
    }

    /// Runs all steps, and returns how to end.
    pub(super) fn all(mut self, steps: &[FaultyStep]) -> Death {
        let death = self.steps(steps);
        death.unwrap_or_else(|| {
            while self.receive() {}
            Death::Code(0)
        })
    }

    fn steps(&mut self, steps: &[FaultyStep]) -> Option<Death> {
        steps.iter().find_map(|step| self.step(step))
    }

    fn step(&mut self, step: &FaultyStep) -> Option<Death> {
        match step {
            FaultyStep::Await(like) => return self.take(like),
            FaultyStep::Gather { times, like } => return (0..*times).find_map(|_| self.take(like)),
            FaultyStep::AwaitEnd => while self.receive() {},
            FaultyStep::Line(frame) => {
                let mut line = self.fill(frame).to_string().into_bytes();
                line.push(b'\n');
                self.stage.write(&line);
            }
            FaultyStep::Raw(pieces) => self.put(pieces, |stage, bytes| {
                bytes.chunks(CHUNK).for_each(|chunk| stage.write(chunk));
            }),
            FaultyStep::Cut { pieces, every } => self.put(pieces, |stage, bytes| {
                for chunk in bytes.chunks((*every).max(1)) {
                    stage.write(chunk);
                    stage.until_taken();
                }
            }),
            FaultyStep::Stderr(pieces) => self.put(pieces, |stage, bytes| {
                bytes.chunks(CHUNK).for_each(|chunk| stage.complain(chunk));
            }),
            FaultyStep::Repeat { times, steps } => {
                for round in 0..*times {
                    self.rounds.push(round);
                    let death = self.steps(steps);
                    self.rounds.pop();
                    if death.is_some() {
                        return death;
                    }
                }
            }
            FaultyStep::Die(death) => return Some(*death),
            FaultyStep::CloseStdout => self.stage.close_stdout(),
            FaultyStep::CloseStdin => self.stage.close_stdin(),
            FaultyStep::Survive => self.stage.survive(),
            FaultyStep::Grandchild(grandchild) => self.stage.grandchild(*grandchild),
            FaultyStep::Hold => self.stage.hold(),
        }
        None
    }

    /// Takes the first line that matches; ends when there is none to come.
    fn take(&mut self, like: &Value) -> Option<Death> {
        let like = self.fill(like);
        let wanted = Match::partial(like.clone());
        let mut at = 0;
        loop {
            while at < self.waiting.len() {
                if wanted.flaw(&self.waiting[at]).is_none() {
                    let line = self.waiting.remove(at)?;
                    match line["type"].as_str() {
                        Some("user") => self.prompts.push(line["uuid"].clone()),
                        Some("control_request") => self.requests.push(line["request_id"].clone()),
                        _ => {}
                    }
                    return None;
                }
                at += 1;
            }
            if !self.receive() {
                self.stage
                    .complain(format!("waited in vain for {like}\n").as_bytes());
                self.stage.note(&Note::InVain(like));
                return Some(Death::Code(IN_VAIN));
            }
        }
    }

    fn receive(&mut self) -> bool {
        if self.ended {
            return false;
        }
        match self.stage.read() {
            Some(line) => {
                let line = read_json(&String::from_utf8_lossy(&line));
                self.stage.note(&Note::Received(line.clone()));
                self.waiting.push_back(line);
                true
            }
            None => {
                self.ended = true;
                self.stage.note(&Note::EndOfInput);
                false
            }
        }
    }

    fn put(&mut self, pieces: &[Piece], mut how: impl FnMut(&mut S, &[u8])) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    let text = self.fill_text(text);
                    how(self.stage, text.as_bytes());
                }
                Piece::Bytes(bytes) => how(self.stage, bytes),
                Piece::Times(text, times) => {
                    // As many whole ones as fit into a write, so that 80 MB need no 80 MB here.
                    let at_once = (CHUNK / text.len().max(1)).clamp(1, (*times).max(1));
                    let chunk = text.repeat(at_once);
                    for _ in 0..times / at_once {
                        how(self.stage, chunk.as_bytes());
                    }
                    how(self.stage, text.repeat(times % at_once).as_bytes());
                }
            }
        }
    }

    /// The frame with its names replaced by their values.
    fn fill(&mut self, frame: &Value) -> Value {
        match frame {
            Value::String(text) => self.name(text),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.fill(value)))
                .collect(),
            other => other.clone(),
        }
    }

    fn name(&mut self, text: &str) -> Value {
        let Some(name) = text.strip_prefix('$') else {
            return Value::String(self.fill_text(text));
        };
        if name == "uuid" {
            self.uuids += 1;
            return Value::String(uuid::Uuid::from_u128(u128::from(self.uuids)).to_string());
        }
        let (name, number) = name.split_once('.').unwrap_or((name, ""));
        let known = match name {
            "prompt" => &self.prompts,
            "request" => &self.requests,
            _ => return Value::String(self.fill_text(text)),
        };
        let meant = match number.parse::<usize>() {
            Ok(number) => known.get(number),
            Err(_) => known.last(),
        };
        meant.cloned().unwrap_or_else(|| Value::String(text.to_owned()))
    }

    fn fill_text(&self, text: &str) -> String {
        match self.rounds.last() {
            Some(round) if text.contains("$i") => text.replace("$i", &round.to_string()),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::FaultyScript;
    use super::*;

    /// A client that said all it has to say, and what it got.
    #[derive(Default)]
    struct Memory {
        input: VecDeque<String>,
        output: Vec<u8>,
        writes: Vec<usize>,
        errors: Vec<u8>,
        notes: Vec<Note>,
        held: bool,
    }

    impl FaultyStage for Memory {
        fn read(&mut self) -> Option<Vec<u8>> {
            self.input.pop_front().map(String::into_bytes)
        }

        fn write(&mut self, bytes: &[u8]) {
            self.output.extend(bytes);
        }

        fn until_taken(&mut self) {
            self.writes.push(self.output.len());
        }

        fn complain(&mut self, bytes: &[u8]) {
            self.errors.extend(bytes);
        }

        fn note(&mut self, note: &Note) {
            self.notes.push(note.clone());
        }

        fn close_stdout(&mut self) {}
        fn close_stdin(&mut self) {}
        fn survive(&mut self) {}
        fn grandchild(&mut self, _: Grandchild) {}

        fn hold(&mut self) {
            self.held = true;
        }
    }

    fn play(script: &FaultyScript, input: &[Value]) -> (Death, Memory) {
        let mut memory = Memory {
            input: input.iter().map(Value::to_string).collect(),
            ..Memory::default()
        };
        // What is played is what arrives.
        let script = FaultyScript::from_json(&script.to_json()).unwrap();
        let death = FaultyPlay::new(&mut memory).all(script.steps());
        (death, memory)
    }

    fn lines(memory: &Memory) -> Vec<Value> {
        let text = String::from_utf8(memory.output.clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn conversation() -> Vec<Value> {
        vec![
            json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}}),
            json!({"type": "user", "uuid": "p1", "message": {"role": "user", "content": "hi"}}),
        ]
    }

    #[test]
    fn it_speaks_the_protocol_right() {
        use outrigger_protocol::check::{Checker, Direction};

        let script = FaultyScript::new()
            .initialize()
            .prompt()
            .then(FaultyScript::from(
                super::super::frames::stream_begins()
                    .map(FaultyStep::Line)
                    .to_vec(),
            ))
            .line(super::super::frames::delta("hello"))
            .say("hello")
            .then(FaultyScript::from(
                super::super::frames::stream_ends().map(FaultyStep::Line).to_vec(),
            ))
            .line(super::super::frames::tool_use(
                "t1",
                "Bash",
                json!({"command": "ls"}),
            ))
            .ask("q1", "Bash")
            .line(super::super::frames::withdraw("q1"))
            .line(super::super::frames::tool_result("t1", "a.txt"))
            .line(super::super::frames::state("running"))
            .then(FaultyScript::from(
                super::super::frames::agent_begins("a1")
                    .map(FaultyStep::Line)
                    .to_vec(),
            ))
            .then(FaultyScript::from(
                super::super::frames::agent_ends("a1")
                    .map(FaultyStep::Line)
                    .to_vec(),
            ))
            .result("hello")
            .line(super::super::frames::aborted())
            .line(super::super::frames::foreign_result("found"));
        let (death, memory) = play(&script, &conversation());
        assert_eq!(death, Death::Code(0));
        let mut checker = Checker::new();
        let asked = conversation().remove(0).to_string();
        checker.line(Direction::In, asked.as_bytes());
        for line in lines(&memory) {
            for verdict in checker.line(Direction::Out, line.to_string().as_bytes()) {
                assert!(verdict.is_clean(), "{line}\n{verdict:?}");
            }
        }
    }

    #[test]
    fn names_stand_for_what_was_taken() {
        let script = FaultyScript::new().initialize().take_prompt().repeat(
            2,
            FaultyScript::new()
                .line(json!({"a": "$prompt", "b": "$request.0", "c": ["n $i", "$uuid"], "d": "$prompt.7"})),
        );
        let (_, memory) = play(&script, &conversation());
        let said = lines(&memory);
        assert_eq!(
            said[1],
            json!({"a": "p1", "b": "r1", "c": ["n 0", "00000000-0000-0000-0000-000000000001"], "d": "$prompt.7"})
        );
        assert_eq!(
            said[2]["c"],
            json!(["n 1", "00000000-0000-0000-0000-000000000002"])
        );
    }

    #[test]
    fn lines_wait_for_their_step_and_none_is_waited_for_in_vain() {
        let script = FaultyScript::new()
            .take_prompt()
            .request("initialize")
            .request("interrupt");
        let (death, memory) = play(&script, &conversation());
        assert_eq!(death, Death::Code(98));
        assert!(String::from_utf8(memory.errors).unwrap().contains("interrupt"));
        assert_eq!(memory.notes.len(), 4, "{:?}", memory.notes);
    }

    #[test]
    fn bytes_are_what_was_asked_for() {
        let script = FaultyScript::new()
            .pieces([
                "<".into(),
                Piece::Times("äb".into(), 50_000),
                vec![0xff].into(),
                ">".into(),
            ])
            .cut(3, "1234567")
            .die(Death::Signal(9));
        let (death, memory) = play(&script, &[]);
        assert_eq!(death, Death::Signal(9));
        let expected = [
            b"<".as_slice(),
            "äb".repeat(50_000).as_bytes(),
            &[0xff],
            b">1234567",
        ]
        .concat();
        assert!(memory.output == expected);
        let sizes: Vec<usize> = memory.writes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(sizes, [3, 1]);
    }

    #[test]
    fn holding_is_the_stages_affair() {
        let (_, memory) = play(&FaultyScript::new().step(FaultyStep::Hold), &[]);
        assert!(memory.held);
    }
}
