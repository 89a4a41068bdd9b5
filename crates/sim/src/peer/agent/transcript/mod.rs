//! Stored sessions, as the CLI writes them: one file of JSON lines a session, linked by `parentUuid`.
//!
//! The records are the conversation, the queue, the last prompt, the title, the tools and the cost.
//! Further records of the CLI (its system prompt, its requests to the API, its latches) are not simulated.

mod load;
mod projects;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::payload;
use super::subagent::RunningSubagent;
use crate::fields::JsonFields as _;

pub(super) use load::{Deferred, LoadFailure, Resume, StoredSession, is_prompt, load};
pub(super) use projects::{project, project_name};

/// The files of a session.
#[derive(Debug, Default)]
pub(super) struct SessionTranscript {
    directory: PathBuf,
    /// The session's own file.
    path: PathBuf,
    session_id: String,
    open: HashMap<PathBuf, File>,
    /// The uuid of the last record, by the agent that wrote it; none is the main one.
    tips: HashMap<Option<String>, String>,
    envelope: Value,
    /// What waits for the first record of the conversation; a file without one would be worth nothing.
    waiting: Vec<Value>,
    begun: bool,
    mirrored: bool,
    unmirrored: Vec<(PathBuf, Vec<Value>)>,
    last_prompt: Option<String>,
    tools_used: Vec<String>,
    /// Why nothing is written any more.
    broken: Option<String>,
}

/// One record of the conversation.
pub(super) struct Record<'a> {
    pub(super) agent: Option<&'a RunningSubagent>,
    pub(super) kind: &'static str,
    pub(super) uuid: &'a str,
    pub(super) timestamp: String,
    /// `message`, and whatever else is particular to it.
    pub(super) fields: Value,
}

/// What surrounds a session.
pub(super) struct SessionSurroundings<'a> {
    pub(super) config_dir: &'a Path,
    pub(super) cwd: &'a Path,
    pub(super) session_id: &'a str,
    pub(super) entrypoint: &'a str,
    pub(super) mirrored: bool,
}

impl SessionTranscript {
    /// The files of a session that begins, which are created once there is something to keep.
    pub(super) fn new(around: &SessionSurroundings<'_>) -> Self {
        let directory = projects::project(around.config_dir, around.cwd);
        Self {
            path: directory.join(format!("{}.jsonl", around.session_id)),
            directory,
            session_id: around.session_id.to_owned(),
            envelope: json!({
                "userType": "external", "entrypoint": around.entrypoint, "cwd": around.cwd.to_string_lossy(),
                "version": payload::VERSION, "gitBranch": projects::git_branch(around.cwd),
            }),
            mirrored: around.mirrored,
            ..Self::default()
        }
    }

    /// Resumes a stored session: in its file, or (forked) in a new one that begins with a copy.
    pub(super) fn resume(&mut self, kept: &StoredSession, forked: bool) {
        let tip = kept.chain.last().and_then(|record| record["uuid"].as_str());
        self.tips.extend(tip.map(|tip| (None, tip.to_owned())));
        self.tools_used.clone_from(&kept.tools_used);
        if forked {
            for record in &kept.chain {
                let mut record = record.clone();
                record["sessionId"] = json!(self.session_id);
                self.waiting.push(record);
            }
        } else {
            self.path.clone_from(&kept.path);
            if let Some(parent) = kept.path.parent() {
                self.directory = parent.to_owned();
            }
            self.begun = true;
        }
    }

    /// Whether a session of this id is kept already.
    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Begins another session in the same place, as `/clear` does.
    pub(super) fn reset(&mut self, session_id: &str) {
        self.session_id = session_id.to_owned();
        self.path = self.directory.join(format!("{session_id}.jsonl"));
        self.open.clear();
        self.tips.clear();
        self.waiting.clear();
        self.tools_used.clear();
        self.last_prompt = None;
        self.begun = false;
    }

    /// The session will be kept with another project. Nothing of it is yet.
    pub(super) fn relocate(&mut self, config_dir: &Path, cwd: &Path) {
        self.directory = projects::project(config_dir, cwd);
        self.path = self.directory.join(format!("{}.jsonl", self.session_id));
        self.envelope["cwd"] = json!(cwd.to_string_lossy());
        self.envelope["gitBranch"] = json!(projects::git_branch(cwd));
    }

    /// The session's own file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a subagent's conversation.
    pub(super) fn subagent_path(&self, id: &str) -> PathBuf {
        self.beside().join("subagents").join(format!("agent-{id}.jsonl"))
    }

    /// The directory for what belongs to the session.
    fn beside(&self) -> PathBuf {
        self.directory.join(&self.session_id)
    }

    /// Why no more records are written, returned once.
    pub(super) fn complaint(&mut self) -> Option<String> {
        self.broken.take()
    }

    /// Keeps a record of the conversation.
    pub(super) fn record(&mut self, record: Record<'_>) {
        let key = record.agent.map(|agent| agent.id.clone());
        let mut line = json!({
            "parentUuid": self.tips.get(&key),
            "isSidechain": key.is_some(),
            "type": record.kind,
            "uuid": record.uuid,
            "timestamp": record.timestamp,
            "sessionId": self.session_id,
        });
        line.put("agentId", key.as_ref());
        line.merge(record.fields);
        line.merge(self.envelope.clone());
        self.tips.insert(key, record.uuid.to_owned());
        let path = match record.agent {
            Some(agent) => self.subagent_path(&agent.id),
            None => {
                if !self.begun {
                    self.begun = true;
                    let waiting = std::mem::take(&mut self.waiting);
                    self.append(self.path.clone(), waiting);
                }
                self.path.clone()
            }
        };
        self.append(path, vec![line]);
    }

    /// Goes back to the record of this uuid, which is the parent of the next one.
    pub(super) fn go_back(&mut self, uuid: &str) {
        self.tips.insert(None, uuid.to_owned());
    }

    /// Keeps something that is no part of the conversation.
    pub(super) fn note(&mut self, kind: &str, fields: Value) {
        let mut line = json!({"type": kind, "sessionId": self.session_id});
        line.merge(fields);
        if self.begun {
            self.append(self.path.clone(), vec![line]);
        } else {
            self.waiting.push(line);
        }
    }

    /// A prompt came.
    pub(super) fn enqueue(&mut self, content: &str, timestamp: String) {
        let fields = json!({"operation": "enqueue", "timestamp": timestamp, "content": content});
        self.note("queue-operation", fields);
    }

    /// A prompt is about to get its turn.
    pub(super) fn dequeue(&mut self, timestamp: String) {
        self.note(
            "queue-operation",
            json!({"operation": "dequeue", "timestamp": timestamp}),
        );
    }

    /// Records the text of the last prompt.
    pub(super) fn prompted(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut shown: String = words.join(" ");
        if shown.chars().count() > 200 {
            shown = shown.chars().take(200).chain(['…']).collect();
        }
        self.last_prompt = Some(shown);
    }

    /// A tool was called.
    pub(super) fn used_tool(&mut self, name: &str) {
        if !self.tools_used.iter().any(|tool| tool == name) {
            self.tools_used.push(name.to_owned());
            self.note("tools-used", json!({"tools": self.tools_used}));
        }
    }

    /// Records the end of the conversation.
    pub(super) fn mark_tip(&mut self) {
        if let Some(tip) = self.tips.get(&None).cloned() {
            let mut fields = json!({"leafUuid": tip});
            fields.put("lastPrompt", self.last_prompt.as_ref());
            self.note("last-prompt", fields);
        }
    }

    /// Names the session.
    pub(super) fn title(&mut self, title: &str) {
        self.note("custom-title", json!({"customTitle": title}));
        let text = json!({"customTitle": title}).to_string();
        self.write_beside("custom-title.json", &text);
    }

    /// Records the metadata of a subagent.
    pub(super) fn describe(&mut self, agent: &RunningSubagent, finished: bool) {
        let mut meta = json!({
            "agentType": agent.kind, "isBuiltIn": agent.is_built_in, "description": agent.description,
            "toolUseId": agent.tool_use_id, "spawnDepth": agent.depth,
            "requestShape": if agent.background { "background" } else { "foreground" },
            "requestNonInteractive": true, "model": agent.model, "pickedEffortModel": agent.model,
        });
        meta.put("parentAgentId", agent.parent.as_ref());
        meta.put("modelNotNamed", (!agent.is_model_named).then_some(true));
        meta.put("finished", finished.then_some(true));
        let name = format!("subagents/agent-{}.meta.json", agent.id);
        self.write_beside(&name, &meta.to_string());
        // The host has no other way to it, and keeps it as a record.
        let mut entry = json!({"type": "agent_metadata"});
        entry.merge(meta);
        self.mirror(self.subagent_path(&agent.id), vec![entry]);
    }

    /// The records since the last time, file by file, for the host.
    pub(super) fn take_mirror(&mut self) -> Vec<Value> {
        let frame = |(path, entries): (PathBuf, Vec<Value>)| json!({"type": "transcript_mirror", "filePath": path.to_string_lossy(), "entries": entries});
        self.unmirrored.drain(..).map(frame).collect()
    }

    fn write_beside(&mut self, name: &str, text: &str) {
        if self.begun {
            let path = self.beside().join(name);
            let write = || {
                std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
                std::fs::write(&path, text)
            };
            if let Err(error) = write() {
                self.broken
                    .get_or_insert(format!("cannot write {}: {error}", path.display()));
            }
        }
    }

    fn append(&mut self, path: PathBuf, lines: Vec<Value>) {
        if lines.is_empty() {
            return;
        }
        let mut text = String::new();
        for line in &lines {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        if let Err(error) = self.write(&path, text.as_bytes()) {
            self.broken
                .get_or_insert(format!("cannot write {}: {error}", path.display()));
        }
        self.mirror(path, lines);
    }

    fn mirror(&mut self, path: PathBuf, lines: Vec<Value>) {
        if self.mirrored {
            match self.unmirrored.last_mut() {
                Some((last, entries)) if *last == path => entries.extend(lines),
                _ => self.unmirrored.push((path, lines)),
            }
        }
    }

    fn write(&mut self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(file) = self.open.get_mut(path) {
            return file.write_all(bytes);
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        file.write_all(bytes)?;
        self.open.insert(path.to_owned(), file);
        Ok(())
    }
}
