//! Plays a script: what the API answers to a request.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::sync::{Arc, Mutex, PoisonError};

use super::obey;
use super::reply::{self, ApiFault, Part, Reply, Wait};
use super::request::{ApiRequest, ended, folded, notes, own_words, user_texts};
use crate::directive::Block;
use crate::flaw::Flaw;
use crate::script::course::{Engine, Found, Next, Request, Who};
use crate::script::{self, ApiError, Ask, Call, Progress, Script, ScriptError, Step, judge};

/// A script, and how far everybody is in it.
#[derive(Debug)]
pub(super) struct Player(Mutex<Playing>);

#[derive(Debug)]
struct Playing {
    engine: Engine,
    home: String,
    heard: HashMap<Who, Heard>,
    /// What the script did not like about requests.
    flaws: Vec<Flaw>,
}

/// What the last request of somebody had.
#[derive(Debug, Default)]
struct Heard {
    /// How many messages came before the user's last ones, and the texts in those.
    before: usize,
    texts: Vec<String>,
    /// Whether the reply to it broke off, so that it is sent again.
    failed: bool,
    /// Whether the CLI goes on by itself after the reply to it, with words of its own.
    goes_on: bool,
}

/// What a request gets.
pub(super) enum Answer {
    /// This reply of this rule.
    Reply(Box<Reply>, Arc<str>),
    /// No rule is for it, and why.
    Unmatched(String),
    /// It is one request too many, and why.
    Refused(String),
}

impl Player {
    /// # Errors
    ///
    /// What the API cannot play.
    pub(super) fn new(
        script: Script,
        progress: Option<Progress>,
        home: Option<String>,
    ) -> Result<Self, ScriptError> {
        script.check(script::Player::Api)?;
        let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        Ok(Self(Mutex::new(Playing {
            engine: match progress {
                Some(progress) => Engine::among_others(script, progress),
                None => Engine::new(script),
            },
            home: home.or_else(|| env::var(variable).ok()).unwrap_or_default(),
            heard: HashMap::new(),
            flaws: Vec::new(),
        })))
    }

    /// Looks at the script, and at how far everybody is in it.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Engine, &[Flaw]) -> T) -> T {
        let playing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&playing.engine, &playing.flaws)
    }

    /// Notes something that the script did not like.
    pub(super) fn flaw(&self, flaw: Flaw) {
        let mut playing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        playing.flaws.push(flaw);
    }

    /// The answer to this request.
    pub(super) fn answer(&self, asked: &ApiRequest) -> Answer {
        let mut playing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let request = playing.hear(asked);
        match playing.engine.take(&request) {
            Found::Steps => {}
            Found::Unmatched(why) => {
                playing.note(&request.who, true, false);
                return Answer::Unmatched(why);
            }
            Found::Refused(why) => {
                playing.note(&request.who, true, false);
                return Answer::Refused(why);
            }
        }
        let reply = playing.reply(&request, asked);
        let name = format!("prompts[{}]", playing.engine.rule(&request.who));
        Answer::Reply(Box::new(reply), name.into())
    }
}

impl Playing {
    /// The request as the engine wants it.
    fn hear(&mut self, asked: &ApiRequest) -> Request {
        let who = Who {
            session: asked.session_id().map(str::to_owned),
            agent: asked.agent_id().map(str::to_owned),
        };
        let heard = self.heard.entry(who.clone()).or_default();
        let tail = Tail::of(asked);
        let known = heard.before == tail.before
            && tail.texts.len() >= heard.texts.len()
            && tail.texts.iter().zip(&heard.texts).all(|(now, then)| now == then);
        let again = known && tail.texts.len() == heard.texts.len() && heard.failed;
        let mut new: Vec<String> = match known && !again && tail.texts.len() > heard.texts.len() {
            true => tail.texts[heard.texts.len()..].to_vec(),
            false => tail.texts.clone(),
        };
        new.retain(|text| !own_words(text));
        if again || heard.goes_on {
            new.clear();
        }
        let begins = !new.is_empty() || (!again && tail.woken_by.is_some());
        heard.before = tail.before;
        heard.texts = tail.texts;
        let woken_by = tail.woken_by.filter(|_| !again).flatten();
        if !again {
            new.extend(tail.folded);
        }
        let variables = [
            ("cwd", asked.working_directory()),
            ("plan", asked.plan_file()),
            ("home", Some(self.home.clone())),
        ];
        let results = asked.new_tool_results();
        let mut request = Request {
            who,
            begins,
            continued: false,
            prompts: Vec::new(),
            woken_by,
            tag: None,
            model: asked.model().unwrap_or_default().to_owned(),
            tools: asked.tools().map(str::to_owned).collect(),
            results: match again {
                // The rule for a result is used up by its first request.
                true => Vec::new(),
                false => results.into_iter().map(|result| result.text).collect(),
            },
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.unwrap_or_default()))
                .collect(),
        };
        // Blocks of text are several prompts, or one that has several.
        if new.len() > 1 && !self.engine.knows(&request, &new) {
            new = vec![new.join("\n")];
        }
        request.prompts = new;
        request
    }

    fn note(&mut self, who: &Who, failed: bool, goes_on: bool) {
        if let Some(heard) = self.heard.get_mut(who) {
            heard.failed = failed;
            heard.goes_on = goes_on;
        }
    }

    /// The reply with the next steps.
    fn reply(&mut self, request: &Request, asked: &ApiRequest) -> Reply {
        let mut steps = self.engine.next(request);
        let failing = steps
            .iter()
            .position(|next| matches!(next.step, Step::ApiError(_)));
        if let Some(at) = failing {
            let mut before = Reply::new();
            let waits = steps.iter().take(at).filter_map(|next| self.wait(next));
            before.before.extend(waits);
            // The steps around it come with the request that succeeds, but what was waited for has been waited for.
            let mut n = 0;
            steps.retain(|next| {
                n += 1;
                n > at || !matches!(next.step, Step::Wait(_))
            });
            return self.fail(before, steps, request);
        }
        let pacing = self.engine.script().pacing;
        let mut reply = Reply::new();
        if !pacing.turn.is_zero() {
            reply = reply.delay(pacing.turn);
        }
        if !pacing.every.is_zero() {
            reply = reply.pace(reply::Pace {
                chunk: Some(pacing.chunk.unwrap_or(8).max(1)),
                pause: pacing.every,
            });
        }
        let (mut content, mut visible, mut failed, mut cut_short) = (false, false, false, false);
        for next in steps {
            let blocks = self.blocks(&next, request);
            if !blocks.is_empty() {
                content = true;
                visible |= !blocks
                    .iter()
                    .all(|(_, block)| matches!(block, Block::Thinking(_) | Block::Redacted(_)));
                for (id, block) in blocks {
                    reply = obey::parts_of(&block, id).into_iter().fold(reply, Reply::part);
                }
                continue;
            }
            if let Some(wait) = self.wait(&next) {
                match content {
                    true => reply = reply.part(Part::Wait(wait)),
                    false => reply.before.push(wait),
                }
                continue;
            }
            failed |= script::course::breaks_off(&next.step);
            reply = match next.step {
                Step::Assert(assert) => {
                    let results = asked.new_tool_results();
                    let result = results
                        .last()
                        .map(|result| (result.text.as_str(), result.is_error));
                    if let Some(what) = judge::result(&assert, result) {
                        self.flaws.push(Flaw::new(next.place, what));
                    }
                    reply
                }
                Step::Usage(usage) => reply.usage(reply::Usage {
                    input_tokens: usage.input,
                    output_tokens: usage.output,
                    cache_creation_input_tokens: usage.cache_creation,
                    cache_read_input_tokens: usage.cache_read,
                }),
                Step::Pace(pace) => reply.pace(reply::Pace {
                    chunk: Some(pace.chunk.max(1)),
                    pause: pace.every,
                }),
                Step::StopReason(reason) => {
                    cut_short = reason == "max_tokens";
                    reply.stop_reason(reason)
                }
                Step::StopSequence(sequence) => reply.stop_sequence(sequence),
                Step::Headers(headers) => headers
                    .into_iter()
                    .fold(reply, |reply, (name, value)| reply.header(name, value)),
                Step::ContentType(kind) => reply.content_type(kind),
                Step::Drop => {
                    let mut dropped = Reply::dropped();
                    dropped.before = reply.before;
                    dropped
                }
                Step::Cut => reply.cut(),
                Step::Stall => reply.stall(),
                Step::Truncated => reply.truncated(),
                Step::MalformedEvent => reply
                    .raw("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"ind\n\n")
                    .truncated(),
                Step::ErrorEvent(kind) => reply.stream_error(kind, "by the script"),
                // The others are content, or waits, or `Script::check` rejects them.
                _ => reply,
            };
        }
        if !content && !failed && !cut_short {
            reply = reply.text("ok");
            visible = true;
        }
        self.note(&request.who, failed, cut_short || (!visible && !failed));
        reply
    }

    /// The failure at the first step that is one; the other steps wait for the next request.
    fn fail(&mut self, before: Reply, mut steps: Vec<Next>, request: &Request) -> Reply {
        let mut fault = ApiFault::new(500);
        if let Some(at) = steps
            .iter()
            .position(|next| matches!(next.step, Step::ApiError(_)))
            && let Step::ApiError(error) = &mut steps[at].step
        {
            fault = fault_of(error);
            match &mut error.times {
                Some(times) if *times > 1 => *times -= 1,
                Some(_) => {
                    steps.remove(at);
                }
                None => {}
            }
        }
        self.engine.put_back(&request.who, steps);
        self.note(&request.who, true, false);
        let mut reply = Reply::from(fault);
        reply.before = before.before;
        reply
    }

    /// The wait of a step, if it is one.
    fn wait(&self, next: &Next) -> Option<Wait> {
        let Step::Wait(wait) = &next.step else { return None };
        Some(match wait {
            script::Wait::Time(time) => Wait::Pause(*time),
            script::Wait::Gate(name) => Wait::Gate(name.clone()),
            script::Wait::Interrupt => Wait::HangUp {
                patience: self.engine.script().patience,
                place: next.place.clone(),
            },
            // `Script::check` rejects these.
            script::Wait::Prompt | script::Wait::Request(_) => return None,
        })
    }

    /// The blocks of a step that is content, with the ids of calls that must be known later.
    fn blocks(&mut self, next: &Next, request: &Request) -> Vec<(Option<String>, Block)> {
        let call = |call: Call| {
            let block = Block::ToolUse {
                name: call.tool,
                input: call.input.into(),
            };
            vec![(None, block)]
        };
        match next.step.clone() {
            Step::Say(text) => vec![(None, Block::Text(text))],
            Step::Think(text) => vec![(None, Block::Thinking(text))],
            Step::Redacted(data) => vec![(None, Block::Redacted(data))],
            Step::Block(block) => vec![(None, Block::Raw(block.into()))],
            Step::Call(made) => call(made),
            Step::Parallel(calls) => calls.into_iter().flat_map(call).collect(),
            Step::Plan(plan) => call(script::plan_call(plan)),
            Step::Ask(Ask::Question(question)) => call(script::questions(&[question])),
            Step::Ask(Ask::Questions(questions)) => call(script::questions(&questions)),
            Step::Subagent(subagent) => {
                let tag = self.engine.hand(&request.who, &subagent, next);
                vec![(Some(tool_id(tag)), script::agent_call(&subagent))]
            }
            Step::Background(background) => {
                let tag = self.engine.set_off(&background, next);
                vec![(Some(tool_id(tag)), script::command_call(&background))]
            }
            _ => Vec::new(),
        }
    }
}

/// The id of the call that a step with this tag makes.
fn tool_id(tag: u64) -> String {
    format!("toolu_script_{tag:06}")
}

fn fault_of(error: &ApiError) -> ApiFault {
    let mut fault = ApiFault::new(error.status);
    if let Some(kind) = &error.kind {
        fault = fault.kind(kind);
    }
    if let Some(message) = &error.message {
        fault = fault.message(message);
    }
    if let Some(seconds) = error.retry_after {
        fault = fault.retry_after(seconds);
    }
    let headers = error.headers.iter();
    headers.fold(fault, |fault, (name, value)| fault.header(name, value))
}

/// What came since the model's last answer.
struct Tail {
    before: usize,
    /// The texts of the user.
    texts: Vec<String>,
    /// Prompts that came while the turn ran.
    folded: Vec<String>,
    /// Whether background work has ended, and the tag of its step.
    woken_by: Option<Option<u64>>,
}

impl Tail {
    fn of(asked: &ApiRequest) -> Self {
        let messages = asked.messages();
        let role = |message: &serde_json::Value| message["role"].as_str().map(str::to_owned);
        let last = messages
            .iter()
            .rposition(|message| role(message).as_deref() == Some("assistant"));
        let before = last.map_or(0, |last| last + 1);
        let mut tail = Self {
            before,
            texts: Vec::new(),
            folded: Vec::new(),
            woken_by: None,
        };
        for message in &messages[before..] {
            let texts = user_texts(message).into_iter();
            tail.texts.extend(texts.map(|text| text.trim_end().to_owned()));
            for text in notes(message) {
                tail.folded.extend(folded(text));
                if let Some(tag) = ended(text) {
                    let tag = tag.strip_prefix("toolu_script_").and_then(|tag| tag.parse().ok());
                    tail.woken_by = Some(tag.or(tail.woken_by.flatten()));
                }
            }
        }
        tail
    }
}

/// The calls of tools in these requests, each once, with their inputs and whether they failed.
pub(super) fn calls(requests: &[ApiRequest]) -> Vec<judge::Called> {
    let mut calls: Vec<judge::Called> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let messages = requests.iter().flat_map(|request| request.messages());
    let blocks = messages
        .filter_map(|message| message["content"].as_array())
        .flatten();
    for block in blocks {
        let id = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("tool_use") if !known.contains_key(&id("id")) => {
                known.insert(id("id"), calls.len());
                calls.push(judge::Called {
                    tool: id("name"),
                    input: block["input"].clone(),
                    failed: None,
                });
            }
            Some("tool_result") => {
                if let Some(n) = known.get(&id("tool_use_id")) {
                    calls[*n].failed = Some(block["is_error"] == true);
                }
            }
            _ => {}
        }
    }
    calls
}
