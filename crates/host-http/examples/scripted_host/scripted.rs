//! A host in memory, whose agent follows the words of the prompt. Its log is not durable: it is for trying and testing clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use outrigger_host_http::{
    Accepted, Actor, DeliveryStatus, Effect, Ephemeral, Event, Host, HostError, Page, Payload, PayloadKind,
    Source, Subscription,
};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

/// Any session whose id begins with `session` exists.
#[derive(Clone, Default)]
pub struct ScriptedHost(Arc<Mutex<HashMap<String, Session>>>);

pub struct Session {
    pub log: Vec<Event>,
    pub first: u64,
    pub head: watch::Sender<u64>,
    pub ephemeral: broadcast::Sender<Ephemeral>,
    keys: HashMap<(PayloadKind, String), u64>,
    /// The open requests, with the prompt of each.
    asked: HashMap<String, Value>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            log: Vec::new(),
            first: 1,
            head: watch::channel(0).0,
            ephemeral: broadcast::channel(64).0,
            keys: HashMap::new(),
            asked: HashMap::new(),
        }
    }
}

impl ScriptedHost {
    pub fn with<R>(&self, session: &str, f: impl FnOnce(&mut Session) -> R) -> Result<R, HostError> {
        if !session.starts_with("session") {
            return Err(HostError::UnknownSession);
        }
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(f(sessions.entry(session.to_owned()).or_default()))
    }
}

impl Host for ScriptedHost {
    async fn subscribe(&self, session: &str) -> Result<Subscription, HostError> {
        self.with(session, |session| {
            Subscription::new(session.head.subscribe(), session.ephemeral.subscribe())
        })
    }

    async fn events(&self, session: &str, after: u64, limit: usize) -> Result<Page, HostError> {
        self.with(session, |session| {
            let after = after.max(session.first - 1);
            let events = session.log.iter().filter(|event| event.seq > after).take(limit);
            Page::new(events.cloned().collect(), session.first, session.log.len() as u64)
        })
    }

    async fn accept(
        &self,
        session: &str,
        actor: &Actor,
        payloads: Vec<Payload>,
    ) -> Result<Vec<Accepted>, HostError> {
        self.with(session, |session| {
            payloads
                .into_iter()
                .map(|payload| session.accept(actor, &payload))
                .collect()
        })
    }
}

impl Session {
    /// Appends an event; its sequence number.
    pub fn append(
        &mut self,
        source: Source,
        actor: Option<&Actor>,
        payload: &outrigger_json::RawJson,
    ) -> u64 {
        let seq = self.log.len() as u64 + 1;
        let mut event = Event::new(
            seq,
            format!("evt_{seq}"),
            SystemTime::now(),
            source,
            payload.clone(),
        );
        event.actor = actor.map(|actor| actor.label.clone());
        self.log.push(event);
        self.head.send_replace(seq);
        seq
    }

    pub fn worker(&mut self, payload: Value) {
        self.append(Source::Worker, None, &payload.into());
    }

    fn accept(&mut self, actor: &Actor, payload: &Payload) -> Accepted {
        let (kind, id) = payload.key();
        let id = id.to_owned();
        if let Some(seq) = self.keys.get(&(kind, id.clone())).copied() {
            let first = &self.log[seq as usize - 1];
            let effect = match kind {
                PayloadKind::Decision if first.payload != *payload.json() => Effect::Decided {
                    by: first.actor.clone(),
                },
                _ => Effect::Repeated,
            };
            return Accepted::new(first.id.clone(), seq, effect);
        }
        let seq = self.append(Source::Client, Some(actor), payload.json());
        self.keys.insert((kind, id.clone()), seq);
        let json = payload.json().to_value().unwrap_or_default();
        match kind {
            PayloadKind::Prompt => self.prompt(seq, &id, &json),
            PayloadKind::Request => self.request(&id, &json),
            PayloadKind::Decision => self.decision(&id, &json),
            _ => {}
        }
        Accepted::new(format!("evt_{seq}"), seq, Effect::Stored)
    }

    fn prompt(&mut self, seq: u64, id: &str, prompt: &Value) {
        let content = &prompt["message"]["content"];
        let text = content
            .as_str()
            .or(content[0]["text"].as_str())
            .unwrap_or_default()
            .to_owned();
        self.delivery(seq, DeliveryStatus::Received);
        self.worker(json!({"type": "system", "subtype": "init", "session_id": "s", "uuid": uuid(), "model": "m", "cwd": "/",
            "tools": [], "mcp_servers": [], "permissionMode": "default", "slash_commands": [], "apiKeySource": "user",
            "output_style": "default", "skills": [], "plugins": [], "claude_code_version": "0"}));
        self.delivery(seq, DeliveryStatus::Processing);
        let delta = json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": "h"}}, "parent_tool_use_id": null, "uuid": uuid(), "session_id": "s"});
        let _ = self.ephemeral.send(Ephemeral::Frame(delta.into()));
        let (tool, input) = match &*text {
            "permission" => ("Bash", json!({"command": "ls"})),
            "question" => (
                "AskUserQuestion",
                json!({"questions": [{"question": "Which?", "header": "Which", "multiSelect": false,
                "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]}]}),
            ),
            "wait" => return,
            _ => return self.end(seq, &format!("echo: {text}")),
        };
        let request = format!("ask-{id}");
        self.worker(
            json!({"type": "control_request", "request_id": request, "request": {"subtype": "can_use_tool",
            "tool_name": tool, "input": input, "tool_use_id": format!("toolu_{id}")}}),
        );
        self.asked.insert(request, seq.into());
    }

    fn request(&mut self, id: &str, request: &Value) {
        let response = match request["request"]["subtype"].as_str() {
            Some("initialize") => json!({"commands": [], "models": [], "account": {}}),
            _ => json!({}),
        };
        self.worker(json!({"type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": response}}));
        if request["request"]["subtype"] == "interrupt" {
            self.end(0, "interrupted");
        }
    }

    fn decision(&mut self, id: &str, decision: &Value) {
        if let Some(seq) = self.asked.remove(id) {
            let reply = &decision["response"]["response"];
            let text = match reply["updatedInput"]["answers"].as_object() {
                Some(answers) => format!("answered {}", json!(answers)),
                None => format!("permission: {}", reply["behavior"].as_str().unwrap_or("?")),
            };
            self.end(seq.as_u64().unwrap_or_default(), &text);
        }
    }

    fn end(&mut self, seq: u64, text: &str) {
        self.worker(json!({"type": "assistant", "message": {"id": "msg", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}}, "parent_tool_use_id": null, "uuid": uuid(), "session_id": "s"}));
        self.worker(json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "duration_ms": 1,
            "duration_api_ms": 1, "num_turns": 1, "total_cost_usd": 0, "usage": {}, "modelUsage": {},
            "permission_denials": [], "uuid": uuid(), "session_id": "s"}));
        self.delivery(seq, DeliveryStatus::Processed);
    }

    fn delivery(&self, seq: u64, status: DeliveryStatus) {
        let _ = self.ephemeral.send(Ephemeral::Delivery {
            event_id: format!("evt_{seq}"),
            status,
        });
    }
}

fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
