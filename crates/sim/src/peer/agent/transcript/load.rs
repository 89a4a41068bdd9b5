//! Reading a session back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::projects;
use crate::matcher::prompt_text;
use crate::peer::agent::Config;
use crate::peer::agent::cost::Used;

/// The session to resume.
#[derive(Debug, Clone)]
pub(in crate::peer::agent) enum Resume {
    /// The one of this id or title; `None` is `--resume` without a value.
    Id(Option<String>),
    /// The last one of the working directory, if there is one.
    Latest,
}

/// A stored session, up to the point where it is resumed.
#[derive(Debug)]
pub(in crate::peer::agent) struct StoredSession {
    pub(in crate::peer::agent) path: PathBuf,
    pub(in crate::peer::agent) session_id: String,
    /// The records of the conversation, from the first one to the tip.
    pub(in crate::peer::agent) chain: Vec<Value>,
    /// The uuids of all prompts and answers in the file.
    pub(in crate::peer::agent) seen: HashSet<String>,
    /// The highest number of a message of the model, also of those that are not on the way to the tip.
    pub(in crate::peer::agent) messages: u32,
    pub(in crate::peer::agent) used: BTreeMap<String, Used>,
    pub(in crate::peer::agent) title: Option<String>,
    pub(in crate::peer::agent) tools_used: Vec<String>,
    pub(in crate::peer::agent) deferred: Option<Deferred>,
    /// The worktree that the session works in.
    pub(in crate::peer::agent) worktree: Option<Value>,
}

/// A tool call that a hook has deferred, and the turn that it belongs to.
#[derive(Debug, Clone)]
pub(in crate::peer::agent) struct Deferred {
    pub(in crate::peer::agent) id: String,
    pub(in crate::peer::agent) name: String,
    pub(in crate::peer::agent) input: Value,
    /// The uuid of the answer that made the call.
    pub(in crate::peer::agent) answer: String,
    /// The text of the prompt.
    pub(in crate::peer::agent) prompt: String,
    /// How many answers the model has given to it.
    pub(in crate::peer::agent) rounds: usize,
}

/// Why a session cannot be resumed.
#[derive(Debug)]
pub(in crate::peer::agent) struct LoadFailure {
    /// The message for stderr, and for the result.
    pub(in crate::peer::agent) text: String,
    /// The requested id, if it is a session id.
    pub(in crate::peer::agent) session_id: Option<String>,
    /// Whether the host gets a result.
    pub(in crate::peer::agent) told: bool,
    /// The name of its kind, if the result has it.
    pub(in crate::peer::agent) reason: Option<&'static str>,
}

impl LoadFailure {
    /// One that the host gets a result of.
    pub(in crate::peer::agent) fn new(text: String, session_id: Option<&str>) -> Self {
        Self {
            text,
            session_id: session_id.map(str::to_owned),
            told: true,
            reason: None,
        }
    }

    /// A new session has the id of one that is kept.
    pub(in crate::peer::agent) fn taken(id: &str) -> Self {
        Self {
            told: false,
            ..Self::new(format!("Error: Session ID {id} is already in use."), None)
        }
    }
}

/// Finds and reads the session to resume. `None` means a new one.
pub(in crate::peer::agent) fn load(config: &Config) -> Result<Option<StoredSession>, LoadFailure> {
    let Some(resume) = &config.resume else {
        return Ok(None);
    };
    let directory = config.config_dir.as_deref();
    let (path, id) = match resume {
        Resume::Latest => match directory.and_then(|directory| projects::latest(directory, &config.cwd)) {
            Some(path) => (path, None),
            None => return Ok(None),
        },
        Resume::Id(id) => match id.as_deref().map(str::trim) {
            Some(id) if uuid::Uuid::parse_str(id).is_ok() => {
                match directory.and_then(|directory| projects::find(directory, &config.cwd, id)) {
                    Some(path) => (path, Some(id)),
                    None => return Err(unknown(id)),
                }
            }
            title => (titled(directory, &config.cwd, title.unwrap_or_default())?, None),
        },
    };
    let records = read(&path);
    let agents = std::fs::read_dir(path.with_extension("").join("subagents"));
    let agents = agents.into_iter().flatten().flatten();
    let below = agents.map(|agent| last_message(&read(&agent.path()))).max();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let session_id = id.map_or_else(|| stem.unwrap_or_default(), str::to_owned);
    let chain = chain(&records, config, &session_id)?;
    if chain.is_empty() {
        return Err(unknown(&session_id));
    }
    let used = last(&records, "cost-state").map(|state| Used::read(&state["modelUsage"]));
    let tools = last(&records, "tools-used").and_then(|record| record["tools"].as_array().cloned());
    let tools = tools.into_iter().flatten();
    Ok(Some(StoredSession {
        seen: records.iter().filter_map(uuid).map(str::to_owned).collect(),
        messages: last_message(&records).max(below.unwrap_or_default()),
        used: used.unwrap_or_default(),
        title: title_of(&records),
        tools_used: tools
            .filter_map(|tool| tool.as_str().map(str::to_owned))
            .collect(),
        deferred: deferred(&chain),
        worktree: last(&records, "worktree-state")
            .map(|record| record["worktreeSession"].clone())
            .filter(Value::is_object),
        chain,
        path,
        session_id,
    }))
}

/// The records of a transcript.
fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let records = text.lines().map(serde_json::from_str);
    records.filter_map(Result::ok).collect()
}

/// The highest number of a message of a simulated model.
fn last_message(records: &[Value]) -> u32 {
    let ids = records
        .iter()
        .filter_map(|record| record["message"]["id"].as_str());
    let numbers = ids.filter_map(|id| id.strip_prefix("msg_sim_")?.parse().ok());
    numbers.max().unwrap_or_default()
}

fn unknown(id: &str) -> LoadFailure {
    LoadFailure::new(format!("No conversation found with session ID: {id}"), Some(id))
}

/// The one session of the project with this title.
fn titled(directory: Option<&Path>, cwd: &Path, title: &str) -> Result<PathBuf, LoadFailure> {
    const NEEDS: &str = "Error: --resume requires a valid session ID or session title when used with --print. Usage: claude \
                         -p --resume <session-id|title>";
    let failed = |text| LoadFailure::new(text, None);
    if title.is_empty() {
        return Err(failed(NEEDS.to_owned()));
    }
    let sessions = directory.map(|directory| projects::sessions(directory, cwd));
    let mut named: Vec<PathBuf> = Vec::new();
    for (_, path) in sessions.unwrap_or_default() {
        let found = title_of(&read(&path)).is_some_and(|found| found.to_lowercase() == title.to_lowercase());
        if found {
            named.push(path);
        }
    }
    match named.as_slice() {
        [] => Err(failed(format!(
            "{NEEDS}. Provided value \"{title}\" is not a UUID and does not match any session title."
        ))),
        [only] => Ok(only.clone()),
        several => {
            let mut text = format!(
                "Error: --resume \"{title}\" matches {} sessions. Pass one of these session IDs to disambiguate:",
                several.len()
            );
            for stem in several.iter().filter_map(|path| path.file_stem()) {
                // The CLI also says when it was written to.
                text.push_str(&format!("\n  {}", stem.to_string_lossy()));
            }
            Err(failed(text))
        }
    }
}

/// The title that somebody gave a session last.
fn title_of(records: &[Value]) -> Option<String> {
    let record = last(records, "custom-title")?;
    Some(record["customTitle"].as_str()?.to_owned())
}

/// The last record of a kind.
fn last<'a>(records: &'a [Value], kind: &str) -> Option<&'a Value> {
    records.iter().rev().find(|record| record["type"] == kind)
}

fn uuid(record: &Value) -> Option<&str> {
    record["uuid"].as_str()
}

/// Whether a record is a prompt of the host.
pub(in crate::peer::agent) fn is_prompt(record: &Value) -> bool {
    record["type"] == "user" && record["toolUseResult"].is_null() && record["isMeta"] != true
}

/// The call that the conversation ends with, if a hook has deferred it.
fn deferred(chain: &[Value]) -> Option<Deferred> {
    let is_message = |record: &Value| record["type"] == "user" || record["type"] == "assistant";
    let noted = chain
        .iter()
        .rev()
        .take_while(|record| !is_message(record))
        .map(|record| &record["attachment"])
        .find(|attachment| attachment["type"] == "hook_deferred_tool")?;
    let id = noted["toolUseID"].as_str()?;
    let calls = |record: &Value| {
        let mut blocks = record["message"]["content"].as_array().into_iter().flatten();
        record["type"] == "assistant" && blocks.any(|block| block["id"] == id)
    };
    let called = chain.iter().rposition(calls)?;
    let prompt = chain[..called].iter().rposition(is_prompt)?;
    let turn: Vec<&Value> = chain[prompt..=called]
        .iter()
        .filter(|record| is_message(record))
        .collect();
    // The blocks of one answer follow each other.
    let begins = |pair: &&[&Value]| pair[0]["type"] == "user" && pair[1]["type"] == "assistant";
    Some(Deferred {
        id: id.to_owned(),
        name: noted["toolName"].as_str()?.to_owned(),
        input: noted["toolInput"].clone(),
        answer: uuid(&chain[called])?.to_owned(),
        prompt: prompt_text(&chain[prompt]),
        rounds: turn.windows(2).filter(begins).count(),
    })
}

/// The records from the first to the tip, which is the last one, or the message that was named.
fn chain(records: &[Value], config: &Config, session_id: &str) -> Result<Vec<Value>, LoadFailure> {
    let main = |record: &&Value| record["isSidechain"] != true && uuid(record).is_some();
    let by_uuid: HashMap<&str, &Value> = records
        .iter()
        .filter(main)
        .filter_map(|record| Some((uuid(record)?, record)))
        .collect();
    let named = |uuid: &str| by_uuid.get(uuid).copied();
    let up_to = |tip: Option<&Value>| {
        let mut chain = Vec::new();
        let mut walked = HashSet::new();
        let mut next = tip;
        while let Some(record) = next {
            if !walked.insert(uuid(record)) {
                break;
            }
            chain.push(record.clone());
            next = record["parentUuid"].as_str().and_then(named);
        }
        chain.reverse();
        chain
    };
    let whole = || {
        // What came behind the last `last-prompt` counts too.
        let leaf = records.iter().rposition(|record| record["type"] == "last-prompt");
        let behind = records[leaf.map_or(0, |leaf| leaf + 1)..].iter().rfind(main);
        up_to(behind.or_else(|| named(records[leaf?]["leafUuid"].as_str()?)))
    };
    let Some(at) = config.resume_at.as_deref() else {
        return Ok(whole());
    };
    let failed = |text| LoadFailure::new(text, Some(session_id));
    let is_message = |record: &&Value| record["type"] == "assistant" || record["type"] == "user";
    let tip = named(at).filter(is_message);
    let tip = tip.ok_or_else(|| failed(format!("No message found with message.uuid of: {at}")))?;
    let kept = up_to(Some(tip));
    if let Some(turn) = config.resume_drops.as_deref()
        && let Err(why) = drops_only(turn, &kept, &whole())
    {
        return Err(failed(format!(
            "Resume rejected by --resume-drops-turn: resuming at {at} would discard entries not attributable to turn \
             {turn}: {why}"
        )));
    }
    Ok(kept)
}

/// Whether what is not kept of a conversation is at most the turn that begins with this prompt.
fn drops_only(turn: &str, kept: &[Value], whole: &[Value]) -> Result<(), String> {
    if uuid::Uuid::parse_str(turn).is_err() {
        return Err(format!("declared turn id is not a UUID: {turn}"));
    }
    let kept: HashSet<_> = kept.iter().filter_map(uuid).collect();
    let dropped = whole
        .iter()
        .filter(|record| uuid(record).is_some_and(|uuid| !kept.contains(uuid)));
    let mut declared = &Value::Null;
    for (number, record) in (1..).zip(dropped) {
        let shown = || {
            let text = |key: &str| record[key].as_str().unwrap_or_default();
            format!("entry {number} [type={}, uuid={}]", text("type"), text("uuid"))
        };
        if number == 1 {
            if uuid(record) != Some(turn) {
                let why = "range does not start with the declared turn prompt";
                return Err(format!("{why}; first discarded {}", shown()));
            }
            declared = &record["promptId"];
        } else if is_prompt(record) && record["promptId"] != *declared {
            let why = "range contains a user entry not attributable to the declared turn";
            return Err(format!("{why}; {}", shown()));
        }
    }
    Ok(())
}
