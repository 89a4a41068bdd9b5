//! Who makes the calls of a turn, and what they have in common.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::brain::{CallPlan, CallResult};
use super::context::{Abort, Context, ConversationLine, StopTurn};
use super::hooks::PendingCallbacks;
use super::subagent::{Definition, RunningSubagent, is_agent_tool};
use super::{disk, inputs, mcp, shell, structured, tools};
use crate::fields::JsonFields as _;
use crate::word_list::WordList;

/// An agent in a turn, for all that goes on in the turn at the same time.
pub(super) struct Caller {
    pub(super) ctx: Arc<Context>,
    /// Whose turn it is; none is the main agent's.
    pub(super) agent: Option<Arc<RunningSubagent>>,
    /// Why the turn must stop.
    pub(super) abort: StopTurn,
    /// The tools that there are, and those that there are not, for a subagent.
    pub(super) only_tools: Option<Vec<String>>,
    pub(super) no_tools: Vec<String>,
    /// Whether a result is being written: what is asked about other calls comes behind it.
    pub(super) telling: watch::Sender<bool>,
    tally: Mutex<TurnTally>,
}

/// What the calls of a turn add to.
#[derive(Default)]
pub(super) struct TurnTally {
    /// Missing while a call is taken up that was deferred.
    pub(super) prompt_id: Option<String>,
    /// Structured output that was given, and how often it was wrong.
    pub(super) structured: Option<Value>,
    pub(super) unstructured: u64,
    /// The last problem of its structured output.
    pub(super) last_flaw: String,
    /// The tool results of this response, for hooks.
    pub(super) batch: Vec<Value>,
    /// The uuid of the last `assistant` line.
    pub(super) last_assistant: String,
    /// `user` lines so far; `num_turns` counts them.
    pub(super) user_lines: u64,
    pub(super) denials: Vec<Value>,
    /// A hook ended the turn.
    pub(super) stopped_by_hook: bool,
    /// The events at the end of a message that are still to come.
    pub(super) unstopped: VecDeque<(Value, Value)>,
}

/// A tool call of the model.
#[derive(Default)]
pub(super) struct ModelCall {
    pub(super) id: String,
    pub(super) name: String,
    /// Whether the model has called it by the name that it had once.
    pub(super) by_old_name: bool,
    /// As the assistant message has it.
    pub(super) input: Value,
    /// As hooks and permission requests have it.
    pub(super) shown: Value,
    /// As the tool gets it.
    pub(super) used: Value,
    /// Whether the answer to its permission request has changed it.
    pub(super) by_user: bool,
    /// The handling of the call.
    pub(super) plan: CallPlan,
    /// The callbacks before the tool, if they were called when the call was written.
    pub(super) asked: Option<PendingCallbacks>,
}

impl ModelCall {
    pub(super) fn new(id: &str, name: &str, input: Value) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            shown: input.clone(),
            used: input.clone(),
            input,
            ..Self::default()
        }
    }

    /// Whether the model has named a file by a path that was not absolute.
    pub(super) fn is_placed(&self) -> bool {
        let mut keys = ["file_path", "notebook_path"].iter();
        keys.any(|key| self.shown[*key] != self.input[*key])
    }
}

/// A call that was made, or refused.
pub(super) struct Made {
    pub(super) result: CallResult,
    /// What is written of it.
    pub(super) lines: Vec<CallLine>,
}

/// A line that is written when a call is over.
pub(super) enum CallLine {
    /// What a hook says.
    Message(String),
    /// The result.
    Result { content: Value, extra: Value },
}

impl CallLine {
    pub(super) fn result(block: Value, extra: Value) -> Self {
        Self::Result {
            content: json!([block]),
            extra,
        }
    }
}

/// Why a call has no result.
pub(super) enum Halt {
    /// The turn is to stop. What the model reads of the call ends with this.
    Abort(Abort, &'static str),
    /// A hook has put the call off.
    Deferred(Value),
    /// The answer to the call's permission request stops the turn.
    Interrupts,
}

impl From<Abort> for Halt {
    fn from(why: Abort) -> Self {
        Self::Abort(why, "")
    }
}

/// While what else a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// There is no such tool: the answer comes at once.
    Any,
    /// Others that change nothing.
    Alike,
    Nobody,
}

/// Tools that leave room for others. Of commands and of the tools of servers it depends on the call.
const SOCIABLE: WordList = WordList(
    "AskUserQuestion EnterPlanMode ExitPlanMode Read TaskCreate TaskGet TaskList TaskUpdate WebFetch WebSearch",
);

impl Caller {
    pub(super) fn new(ctx: Arc<Context>, abort: StopTurn, prompt_id: String) -> Self {
        Self {
            ctx,
            agent: None,
            abort,
            only_tools: None,
            no_tools: Vec::new(),
            telling: watch::Sender::new(false),
            tally: Mutex::new(TurnTally {
                prompt_id: Some(prompt_id),
                ..TurnTally::default()
            }),
        }
    }

    /// The tally. Never held over an await.
    pub(super) fn tally(&self) -> MutexGuard<'_, TurnTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn prompt_id(&self) -> Option<String> {
        self.tally().prompt_id.clone()
    }

    /// While what else a call may run.
    pub(super) fn company(&self, call: &ModelCall) -> Company {
        let alias = self.ctx.state().tool_aliases.get(&call.name).cloned();
        let name = tools::present_name(alias.as_deref().unwrap_or(&call.name));
        if self.is_structured(name) {
            return Company::Alike;
        }
        if self.missing(name).is_some() {
            return Company::Any;
        }
        let sociable = match (inputs::read(name, &call.input), name) {
            (Err(_), _) => false,
            (Ok(input), "Bash") => {
                let command = input["command"].as_str().unwrap_or_default();
                shell::parse(command, Path::new(&self.ctx.config.home)).changes_nothing()
            }
            (Ok(_), name) => {
                SOCIABLE.has(name) || is_agent_tool(name) || mcp::only_reads(&self.ctx.state().servers, name)
            }
        };
        if sociable { Company::Alike } else { Company::Nobody }
    }

    /// Whether this is the tool that takes the answer in the shape of a schema.
    pub(super) fn is_structured(&self, name: &str) -> bool {
        name == structured::TOOL && self.agent.is_none() && self.ctx.state().schema.is_some()
    }

    /// The schema of the answer, if this tool takes it.
    pub(super) fn schema_of_answer(&self, name: &str) -> Option<Value> {
        let is_it = self.is_structured(name);
        let state = self.ctx.state();
        state
            .schema
            .as_ref()
            .filter(|_| is_it)
            .map(structured::Schema::to_json)
    }

    /// Waits for something, unless the turn is to stop.
    pub(super) async fn or_abort<T>(&self, work: impl Future<Output = T>) -> Result<T, Abort> {
        self.or_aborted_by(|_| true, work).await
    }

    /// The same, unless it is stopped by something else.
    pub(super) async fn or_aborted_by<T>(
        &self,
        counts: impl Fn(Abort) -> bool,
        work: impl Future<Output = T>,
    ) -> Result<T, Abort> {
        let mut abort = self.abort.subscribe();
        let stopped = async move {
            let why = abort.wait_for(|why| why.is_some_and(&counts)).await;
            let why = why.ok().and_then(|why| *why);
            match why {
                Some(why) => why,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            why = stopped => Err(why),
            done = work => Ok(done),
        }
    }

    /// As whom its tools read and change files.
    pub(super) fn reader(&self) -> disk::Viewer {
        self.agent.as_ref().map(|agent| agent.id.clone())
    }

    /// Whether the test runs a tool itself.
    pub(super) fn is_handled(&self, name: &str) -> bool {
        self.ctx.config.handlers.iter().any(|(tool, _)| tool == name)
    }

    /// Whether the turn of the parent agent reports its stop.
    pub(super) fn stops_silently(&self) -> bool {
        self.agent
            .as_ref()
            .is_some_and(|agent| !agent.shows_text() || !agent.background)
    }

    /// Writes what there is to say of a call.
    pub(super) async fn write(&self, lines: Vec<CallLine>) {
        for line in lines {
            match line {
                // What hooks of agents have to say is shown to nobody.
                CallLine::Message(_) if self.agent.is_some() => {}
                CallLine::Message(text) => self.send_hook_messages(&[text]).await,
                CallLine::Result { content, extra } => self.send_user(content, extra).await,
            }
        }
    }

    /// A `user` line that the CLI writes itself.
    pub(super) async fn send_user(&self, content: Value, extra: Value) {
        let message = json!({"role": "user", "content": content});
        let mut kept = json!({"message": message});
        let last_assistant = {
            let mut tally = self.tally();
            tally.user_lines += 1;
            kept.put("promptId", tally.prompt_id.as_ref());
            tally.last_assistant.clone()
        };
        kept.put("isMeta", (extra["isSynthetic"] == true).then_some(true));
        if let Some(details) = extra.get("tool_use_result") {
            kept["toolUseResult"] = details.clone();
            kept["sourceToolAssistantUUID"] = json!(last_assistant);
            self.ctx.send_mirror().await;
        }
        let decision = extra["tool_result_meta"][0].get("permission_decision");
        kept.put("permissionDecision", decision);
        let mut extra = extra;
        if let (Some(_), Some(extra)) = (&self.agent, extra.as_object_mut()) {
            // What came out of a subagent's tools is only for its own model; why there is nothing is not.
            extra.retain(|key, value| key != "tool_use_result" || value.is_string());
        }
        self.ctx
            .say(ConversationLine {
                agent: self.agent.as_deref(),
                kind: "user",
                message,
                extra,
                shown: true,
                kept: Some(kept),
            })
            .await;
    }

    /// Whether stream events are sent; subagents have none.
    pub(super) fn streams(&self) -> bool {
        self.ctx.config.partial && self.agent.is_none()
    }

    pub(super) async fn send_raw_event(&self, event: Value, mut extra: Value) {
        if self.streams() {
            extra["type"] = json!("stream_event");
            extra["event"] = event;
            extra["parent_tool_use_id"] = Value::Null;
            self.ctx.send_stamped(extra).await;
        }
    }

    /// Ends the stream of a message whose tools have gone to work.
    pub(super) async fn send_stop(&self) {
        while self.send_next_stop().await {}
    }

    /// Sends the next of the events that are still to come, if there is one.
    pub(super) async fn send_next_stop(&self) -> bool {
        let next = self.tally().unstopped.pop_front();
        let Some((event, extra)) = next else { return false };
        self.send_raw_event(event, extra).await;
        true
    }

    /// For a subagent: with the tools of its kind.
    pub(super) fn of_agent(self, agent: Arc<RunningSubagent>, definition: &Definition) -> Self {
        Self {
            agent: Some(agent),
            only_tools: definition.tools.clone(),
            no_tools: definition.disallowed.clone(),
            ..self
        }
    }
}
