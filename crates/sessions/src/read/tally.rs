//! Adds up what a session has used, while it grows.

use std::collections::HashMap;
use std::io::{Seek as _, SeekFrom};

use outrigger_protocol::shared::some_count;
use serde::Deserialize;

use crate::file;
use crate::place::SessionFile;
use crate::record::Lines;
use crate::{Error, Result};

/// How many messages of the model are remembered, in case more lines of them follow.
const REMEMBERED: usize = 64;

/// The prompts and tokens of a session, from its transcript. [`update`](Self::update) reads only what is new.
///
/// Subagents have transcripts of their own, which do not count.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Prompts of the user.
    pub prompts: u64,
    /// Tokens of all kinds: input, output, and what was read from and written to the cache.
    pub tokens: u64,
    /// The model of the last message.
    pub model: Option<String>,
    /// The cost in US dollars that the CLI recorded last, which it does at the end of a session.
    pub cost_usd: Option<f64>,
    /// How much of the transcript is read, up to the end of a line.
    read: u64,
    /// What counts for messages whose lines may not all be there: the last line of a message has its usage.
    open: HashMap<String, u64>,
}

#[derive(Deserialize)]
struct TalliedRecord {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: Option<TalliedMessage>,
    #[serde(default, rename = "isMeta")]
    is_meta: bool,
    #[serde(default, rename = "toolUseResult")]
    tool_use_result: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "totalCostUSD")]
    total_cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct TalliedMessage {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<TalliedUsage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TalliedUsage {
    #[serde(deserialize_with = "some_count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "some_count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "some_count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "some_count")]
    cache_creation_input_tokens: Option<u64>,
}

impl TalliedUsage {
    fn sum(&self) -> u64 {
        let all = [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ];
        all.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what was written since the last call. A transcript that has become shorter is read anew.
    ///
    /// # Errors
    /// When the transcript cannot be read.
    pub fn update(&mut self, session: &SessionFile) -> Result<()> {
        let path = &session.path;
        let mut source = file::open(path).map_err(Error::io("open", path))?;
        let length = source.metadata().map_err(Error::io("read", path))?.len();
        if length < self.read {
            *self = Self::default();
        }
        if length == self.read {
            return Ok(());
        }
        source
            .seek(SeekFrom::Start(self.read))
            .map_err(Error::io("read", path))?;
        let mut lines = Lines::new(source);
        while let Some(line) = lines.next().map_err(Error::io("read", path))? {
            if !line.is_ended {
                // The CLI is writing it.
                break;
            }
            self.read += line.length + 1;
            if !line.is_cut()
                && let Ok(line) = serde_json::from_slice(line.bytes)
            {
                self.add(line);
            }
        }
        Ok(())
    }

    fn add(&mut self, line: TalliedRecord) {
        match (&*line.kind, line.message) {
            ("assistant", Some(said)) => {
                // What the CLI says itself is no message of a model.
                self.model = said
                    .model
                    .filter(|model| !model.starts_with('<'))
                    .or(self.model.take());
                let used = said.usage.unwrap_or_default().sum();
                let counted = match said.id {
                    Some(id) => {
                        if self.open.len() >= REMEMBERED && !self.open.contains_key(&id) {
                            self.open.clear();
                        }
                        self.open.insert(id, used).unwrap_or_default()
                    }
                    None => 0,
                };
                self.tokens = self.tokens.saturating_sub(counted).saturating_add(used);
            }
            ("user", Some(_)) if !line.is_meta && line.tool_use_result.is_none() => self.prompts += 1,
            ("cost-state", _) => self.cost_usd = line.total_cost_usd.or(self.cost_usd),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::{SessionId, Sessions};

    #[test]
    fn what_is_new_is_added_and_no_message_counts_twice() {
        let place = tempfile::tempdir().unwrap();
        let id = SessionId::new("00000000-0000-4000-8000-000000000001").unwrap();
        let project = place.path().join("projects").join("-p");
        std::fs::create_dir_all(&project).unwrap();
        let path = project.join(format!("{id}.jsonl"));
        let mut file = std::fs::File::create(&path).unwrap();
        let said = |id: &str, output: u64| {
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"model\":\"m\",\"usage\":{{\"input_tokens\":10,\"output_tokens\":{output},\"cache_read_input_tokens\":null}}}}}}\n"
            )
        };
        let prompt = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
        let result = "{\"type\":\"user\",\"message\":{\"content\":[]},\"toolUseResult\":{\"a\":[1]}}\n";
        writeln!(file, "{prompt}{}{}{result}noise", said("a", 1), said("a", 5)).unwrap();
        let found = Sessions::at(place.path()).find(&id).unwrap();
        let mut tally = Tally::new();
        tally.update(&found).unwrap();
        assert_eq!(
            (tally.prompts, tally.tokens, tally.model.as_deref()),
            (1, 15, Some("m"))
        );

        // Half a line waits for its other half.
        let line = said("b", 100);
        write!(file, "{prompt}{}", &line[..20]).unwrap();
        tally.update(&found).unwrap();
        assert_eq!((tally.prompts, tally.tokens), (2, 15));
        writeln!(
            file,
            "{}{{\"type\":\"cost-state\",\"totalCostUSD\":0.5}}",
            &line[20..]
        )
        .unwrap();
        tally.update(&found).unwrap();
        tally.update(&found).unwrap();
        assert_eq!((tally.tokens, tally.cost_usd), (125, Some(0.5)));

        // A gateway counts in fractions.
        write!(file, "{}", said("c", 5).replace(":10,", ":9.5,")).unwrap();
        tally.update(&found).unwrap();
        assert_eq!(tally.tokens, 140);

        // Another file takes the place of the transcript.
        std::fs::write(&path, prompt).unwrap();
        tally.update(&found).unwrap();
        assert_eq!((tally.prompts, tally.tokens, tally.cost_usd), (1, 0, None));
    }
}
