//! The cost of a session, as the CLI recorded it.

use std::collections::BTreeMap;
use std::path::Path;

use outrigger_protocol::shared::{amount, count};
use serde::{Deserialize, Serialize};

use super::lite::{Room, is_note, lines};
use crate::error::{Error, Result};
use crate::file;
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::record::Lines;

/// The cost of a session in the CLI's last record of it (`cost-state`). Times are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Cost {
    /// In US dollars, by the CLI's list of prices.
    #[serde(rename = "totalCostUSD", deserialize_with = "amount")]
    pub total_cost_usd: f64,
    /// How long the API took, retries included.
    #[serde(rename = "totalAPIDuration")]
    pub total_api_duration: f64,
    /// How long the API took, without retries.
    #[serde(rename = "totalAPIDurationWithoutRetries")]
    pub total_api_duration_without_retries: f64,
    /// How long tools took.
    pub total_tool_duration: f64,
    /// How long the session ran.
    pub total_duration: f64,
    /// How many lines were added to files.
    pub total_lines_added: u64,
    /// How many lines were removed from files.
    pub total_lines_removed: u64,
    /// When the session began, in milliseconds since 1970.
    pub start_time: Option<f64>,
    /// What each model has used, by its name.
    pub model_usage: BTreeMap<String, ModelCost>,
    /// True if a model was used whose price the CLI does not know, so that the sum is too small.
    pub has_unknown_model_cost: bool,
}

/// What one model has used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ModelCost {
    /// Tokens that were sent and not cached.
    #[serde(deserialize_with = "count")]
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    #[serde(deserialize_with = "count")]
    pub output_tokens: u64,
    /// How many of the output tokens were used for thinking.
    #[serde(deserialize_with = "count")]
    pub thinking_tokens: u64,
    /// Tokens that were read from the cache.
    #[serde(deserialize_with = "count")]
    pub cache_read_input_tokens: u64,
    /// Tokens that were written to the cache.
    #[serde(deserialize_with = "count")]
    pub cache_creation_input_tokens: u64,
    /// Searches of the web.
    #[serde(deserialize_with = "count")]
    pub web_search_requests: u64,
    /// In US dollars.
    #[serde(rename = "costUSD", deserialize_with = "amount")]
    pub cost_usd: f64,
}

impl SessionFile {
    /// The cost of the session. `None` if the CLI did not record it, which it does at the end of a session.
    ///
    /// # Errors
    /// When the transcript cannot be read.
    pub fn cost(&self) -> Result<Option<Cost>> {
        let mut room = Room::default();
        let Some(lite) = room.read(&self.path).map_err(Error::io("read", &self.path))? else {
            return Ok(None);
        };
        let noted = lines(lite.tail).rev().find_map(noted_in);
        if noted.is_some() || lite.is_whole() {
            return Ok(noted);
        }
        // The session may have gone on for long since then.
        let file = file::open(&self.path).map_err(Error::io("open", &self.path))?;
        let mut lines = Lines::new(file);
        let mut cost = None;
        while let Some(line) = lines.next().map_err(Error::io("read", &self.path))? {
            cost = noted_in(line.bytes).or(cost);
        }
        Ok(cost)
    }
}

/// The note that a line is, if it is one.
fn noted_in(line: &[u8]) -> Option<Cost> {
    let line = is_note(line, "cost-state").then_some(line)?;
    serde_json::from_slice(line).ok()
}

impl Sessions {
    /// The cost of a session; see [`SessionFile::cost`]. It is searched in `dir` and its worktrees if `dir` is given.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such session, or the transcript cannot be read.
    pub fn cost(&self, id: &SessionId, dir: Option<&Path>) -> Result<Option<Cost>> {
        self.locate(id, dir)?.cost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_note_counts_wherever_it_is() {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(place.path());
        let id = SessionId::random();
        let dir = sessions.projects_dir().join("-x");
        std::fs::create_dir_all(&dir).unwrap();
        let write = |text: String| std::fs::write(dir.join(id.file_name()), text).unwrap();
        let note = |cost: f64| {
            format!(
                "{{\"type\":\"cost-state\",\"totalCostUSD\":{cost},\"modelUsage\":{{\"m\":{{\"inputTokens\":3,\"costUSD\":{cost}}}}}}}\n"
            )
        };
        write("{\"type\":\"user\"}\n".to_owned());
        assert_eq!(sessions.cost(&id, None).unwrap(), None);
        // A note with odd counts of a gateway is the last one all the same.
        write(note(1.0) + &note(2.0).replace(":3,", ":3.5,\"outputTokens\":null,"));
        let cost = sessions.cost(&id, None).unwrap().unwrap();
        assert_eq!(
            (cost.total_cost_usd, cost.model_usage["m"].input_tokens),
            (2.0, 4)
        );
        write(note(1.0) + &note(2.5));
        let cost = sessions.cost(&id, None).unwrap().unwrap();
        assert_eq!(
            (cost.total_cost_usd, cost.model_usage["m"].input_tokens),
            (2.5, 3)
        );
        write(note(1.0) + &note(2.5) + &"{\"type\":\"user\"}\n".repeat(10_000));
        assert_eq!(sessions.cost(&id, None).unwrap().unwrap().total_cost_usd, 2.5);
    }
}
