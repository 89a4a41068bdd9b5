//! What the tests share.

use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::faulty::frames;
use outrigger::testing::sim::peer::{Match, ReceivedLines, Steps};
use outrigger::{Event, Outcome, Session, Turn};
use serde_json::{Value, json};

/// Longer than any deadline of a session, on its clock.
pub(crate) const AGES: Duration = Duration::from_secs(100_000);

/// Steps of a script in the words of [`frames`], where `$prompt` is the uuid of the last prompt and `$prompt.N` of the Nth, from 0.
pub(crate) trait Says: Sized {
    /// Writes a frame.
    fn says(self, frame: Value) -> Self;
    /// Takes a prompt.
    fn takes_prompt(self) -> Self;
    /// Takes a control request of this subtype, and answers it.
    fn takes(self, subtype: &str) -> Self;
    /// Takes the answer to what was asked under this id.
    fn takes_answer(self, id: &str) -> Self;

    /// Takes a prompt and begins its turn.
    fn begins(self) -> Self {
        self.takes_prompt()
            .says(frames::lifecycle("queued"))
            .says(frames::lifecycle("started"))
            .says(frames::init())
    }

    /// Ends the turn of the last prompt.
    fn ends(self, text: &str) -> Self {
        self.says(frames::result(text))
            .says(frames::lifecycle("completed"))
    }

    /// A whole turn.
    fn turn(self, text: &str) -> Self {
        self.begins().says(frames::text(text)).ends(text)
    }

    /// Several frames.
    fn says_all(self, frames: impl IntoIterator<Item = Value>) -> Self {
        frames.into_iter().fold(self, Says::says)
    }
}

impl Says for Steps {
    fn says(self, frame: Value) -> Self {
        self.send_with(move |seen| fill(frame, seen))
    }

    fn takes_prompt(self) -> Self {
        self.expect(Match::kind("user"))
    }

    fn takes(self, subtype: &str) -> Self {
        self.expect(Match::request(subtype)).reply(json!({}))
    }

    fn takes_answer(self, id: &str) -> Self {
        self.expect(Match::partial(
            json!({"type": "control_response", "response": {"request_id": id}}),
        ))
    }
}

fn fill(frame: Value, seen: &ReceivedLines) -> Value {
    match frame {
        Value::String(text) if text == "$uuid" => uuid::Uuid::new_v4().to_string().into(),
        Value::String(text) => match text.strip_prefix("$prompt") {
            Some(which) => {
                let mut prompts = seen.lines.iter().filter(|line| line["type"] == "user");
                let prompt = match which.strip_prefix('.').and_then(|n| n.parse().ok()) {
                    Some(n) => prompts.nth(n),
                    None => prompts.next_back(),
                };
                prompt.map_or(Value::Null, |prompt| prompt["uuid"].clone())
            }
            None => text.into(),
        },
        Value::Array(items) => items.into_iter().map(|item| fill(item, seen)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, fill(value, seen)))
            .collect(),
        other => other,
    }
}

/// A CLI that introduces itself and then does these steps.
pub(crate) fn cli(steps: impl Fn(Steps) -> Steps + Send + Sync + 'static) -> Simulated {
    Simulated::steps(move || steps(Steps::new().initialize()))
}

/// The outcome of a prompt, which comes.
pub(crate) async fn outcome(session: &Session, prompt: &str) -> Outcome {
    let mut turn = session.prompt(prompt).await.unwrap();
    tokio::time::timeout(AGES, turn.outcome())
        .await
        .expect("it comes")
        .unwrap()
}

/// The texts of a turn, and its outcome.
pub(crate) async fn read(turn: &mut Turn) -> (Vec<String>, Outcome) {
    let mut texts = Vec::new();
    while let Some(event) = turn.next().await {
        if let Event::Text(text) = event.unwrap() {
            texts.push(text);
        }
    }
    (texts, turn.outcome().await.unwrap())
}

/// Whether the script's client did what it expected.
pub(crate) fn agreed(cli: &Simulated) {
    cli.report().unwrap().verdict.unwrap();
}
