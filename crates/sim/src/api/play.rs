//! Plays a script: what the API answers to a request.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::heard::{Heard, New, Tail, who};
use super::message::{ApiAnswer, ApiFault, ApiMessage, Body, DueAssert, MessagePart, MessageWait};
use super::request::ApiRequest;
use crate::flaw::Flaw;
use crate::peer::Line;
use crate::script::course::{Engine, Found, ModelCaller, NextStep, Request, Taken, breaks_off};
use crate::script::fill::Variables;
use crate::script::response::Block;
use crate::script::{self, ApiError, Progress, Raw, ResponsePace, Script, ScriptError, Step, judge};

/// A script, and how far everybody is in it.
#[derive(Debug)]
pub(super) struct ApiPlayer(Mutex<ScriptPlaying>);

/// The frames of the process that has this session, up to now, for whoever sees them.
#[derive(Clone)]
pub(super) struct Frames(pub(super) Arc<FramesOf>);

type FramesOf = dyn Fn(&str) -> Vec<Line> + Send + Sync;

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frames")
    }
}

#[derive(Debug)]
struct ScriptPlaying {
    engine: Engine,
    frames: Option<Frames>,
    heard: HashMap<ModelCaller, Heard>,
    /// What the script did not like about requests.
    flaws: Vec<Flaw>,
}

/// What a request gets.
pub(super) enum RequestVerdict {
    /// The request gets this answer of this rule.
    Answer(Box<ApiAnswer>, Arc<str>),
    /// No rule is for it, and why.
    Unmatched(String),
    /// The request is one too many, and why.
    Refused(String),
}

impl ApiPlayer {
    /// # Errors
    ///
    /// What the API cannot play.
    pub(super) fn new(
        script: Script,
        progress: Option<Progress>,
        frames: Option<Frames>,
    ) -> Result<Self, ScriptError> {
        script.check(match frames {
            Some(_) => script::ScriptPlayer::RealCli,
            None => script::ScriptPlayer::Api,
        })?;
        Ok(Self(Mutex::new(ScriptPlaying {
            engine: match progress {
                Some(progress) => Engine::among_others(script, progress),
                None => Engine::new(script),
            },
            frames,
            heard: HashMap::new(),
            flaws: Vec::new(),
        })))
    }

    /// Looks at the script, and at how far everybody is in it.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Engine, &[Flaw]) -> T) -> T {
        let playing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        look(&playing.engine, &playing.flaws)
    }

    /// Whether somebody sees the frames of the CLI, by which the prompts are counted then.
    pub(super) fn sees_frames(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .frames
            .is_some()
    }

    /// Notes something that the script did not like.
    pub(super) fn flaw(&self, flaw: Flaw) {
        let mut playing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        playing.flaws.push(flaw);
    }

    /// Judges an assertion that an answer has come to.
    pub(super) fn judge(&self, due: &DueAssert) {
        let mut playing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let frames = playing.frames.as_ref().map(|frames| frames.0(&due.session));
        let wrong = due.wrong.clone().into_iter();
        let wrong = wrong.chain(frames.and_then(|lines| judge::check(&due.assert, &lines)));
        let mut flaws: Vec<Flaw> = wrong.map(|what| Flaw::new(&due.place, what)).collect();
        let lost = playing.engine.due().settled(vec![due.place.clone()]).err();
        flaws.extend(lost.map(|error| playing.engine.script().lost(&error)));
        playing.flaws.extend(flaws);
    }

    /// The answer to this request.
    pub(super) fn answer(&self, asked: &ApiRequest, home: &str) -> RequestVerdict {
        let mut playing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let request = playing.hear(asked, home);
        match playing.engine.take(&request) {
            Found::Steps => {}
            Found::Unmatched(why) => {
                playing.note(&request.who, true, false);
                return RequestVerdict::Unmatched(why);
            }
            Found::Refused(why) => {
                playing.note(&request.who, true, false);
                return RequestVerdict::Refused(why);
            }
        }
        let answer = playing.reply(&request, asked);
        let name = format!("prompts[{}]", playing.engine.rule(&request.who));
        RequestVerdict::Answer(Box::new(answer), name.into())
    }
}

impl ScriptPlaying {
    /// The request as the engine wants it.
    fn hear(&mut self, asked: &ApiRequest, home: &str) -> Request {
        let who = who(asked);
        let heard = self.heard.entry(who.clone()).or_default();
        let New {
            prompts: mut new,
            begins,
            again,
            woken_by,
        } = heard.hear(Tail::of(asked));
        let results = asked.new_tool_results();
        let mut request = Request {
            who,
            begins,
            woken_by,
            model: asked.model().unwrap_or_default().to_owned(),
            tools: asked.tools().map(str::to_owned).collect(),
            results: match again {
                // The rule for a result is used up by its first request.
                true => Vec::new(),
                false => results.into_iter().map(|result| result.text).collect(),
            },
            variables: variables(asked, home),
            ..Request::default()
        };
        // Blocks of text are several prompts, or one that has several.
        if new.len() > 1 && !self.engine.knows(&request, &new) {
            new = vec![new.join("\n")];
        }
        request.prompts = new;
        request
    }

    fn note(&mut self, who: &ModelCaller, failed: bool, goes_on: bool) {
        if let Some(heard) = self.heard.get_mut(who) {
            heard.answered(failed, goes_on);
        }
    }

    /// The answer with the next steps.
    fn reply(&mut self, request: &Request, asked: &ApiRequest) -> ApiAnswer {
        let taken = self.engine.next(request);
        let composed = compose(&mut self.engine, &request.who, taken, asked);
        self.note(&request.who, composed.failed, composed.goes_on);
        composed.answer
    }
}

/// The answer of one response, and what is to be known of it.
#[derive(Default)]
pub(super) struct Composed {
    pub(super) answer: ApiAnswer,
    /// Whether the answer fails or breaks off, so that the CLI sends the request again.
    pub(super) failed: bool,
    /// Whether the CLI goes on by itself after it, with words of its own.
    goes_on: bool,
    /// Whether nothing more comes at some place.
    pub(super) stalls: bool,
    /// Whether a conversation shows it.
    pub(super) leaves_trace: bool,
}

/// The answer with these steps of one response. What is for another attempt goes back.
fn compose(engine: &mut Engine, who: &ModelCaller, taken: Taken, asked: &ApiRequest) -> Composed {
    let Taken { mut steps, exact } = taken;
    let mut composed = Composed {
        leaves_trace: true,
        ..Composed::default()
    };
    let answer = &mut composed.answer;
    let fails = |next: &NextStep| matches!(next.step, Step::ApiError(_));
    if let Some(at) = steps.iter().position(fails) {
        let waits = steps
            .iter()
            .take(at)
            .filter_map(|next| wait_of(engine, next, asked));
        answer.before.extend(waits);
        // The steps around it come with the request that succeeds, but what was waited for has been waited for, and what was judged has
        // been judged.
        let mut n = 0;
        steps.retain(|next| {
            n += 1;
            n > at || !matches!(next.step, Step::Wait(_) | Step::Assert(_))
        });
        answer.body = Body::Fault(fail(engine, who, steps));
        composed.failed = true;
        return composed;
    }
    let pacing = engine.script().pacing;
    let mut message = ApiMessage::default();
    if !pacing.turn.is_zero() {
        answer.before.push(MessageWait::Pause(pacing.turn));
    }
    if !pacing.every.is_zero() {
        message.pace = Some(ResponsePace::new(pacing.chunk.unwrap_or(8), pacing.every));
    }
    let (mut content, mut visible, mut dropped) = (false, false, false);
    for next in steps {
        let (blocks, tag) = engine.blocks(who, &next);
        if !blocks.is_empty() {
            content = true;
            visible |= blocks.iter().any(Block::is_seen);
            message
                .parts
                .extend(blocks.into_iter().map(|block| part_of(block, tag)));
            continue;
        }
        if let Some(wait) = wait_of(engine, &next, asked) {
            match content {
                true => message.parts.push(MessagePart::Wait(wait)),
                false => answer.before.push(wait),
            }
            continue;
        }
        composed.failed |= breaks_off(&next.step);
        match next.step {
            Step::More(text) => {
                (content, visible) = (true, true);
                message.parts.push(MessagePart::MoreText(text));
            }
            Step::Raw(Raw::Block(json)) => {
                (content, visible) = (true, true);
                message.parts.push(MessagePart::Block(json));
            }
            Step::Raw(Raw::Event(text)) => message.parts.push(MessagePart::Raw(text)),
            Step::Usage(usage) => message.usage = usage,
            Step::Pace(pace) => message.pace = Some(pace),
            Step::StopReason(reason) => message.stop_reason = Some(reason),
            Step::StopSequence(sequence) => message.stop_sequence = Some(sequence),
            Step::Headers(headers) => message.headers.extend(headers),
            Step::ContentType(kind) => message.content_type = Some(kind),
            Step::Drop => dropped = true,
            Step::Cut => message.parts.push(MessagePart::Cut),
            Step::Stall => {
                composed.stalls = true;
                message.parts.push(MessagePart::Wait(MessageWait::Forever));
            }
            Step::Truncated => message.parts.push(MessagePart::Truncated),
            Step::MalformedEvent => {
                let half = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"ind\n\n";
                message
                    .parts
                    .extend([MessagePart::Raw(half.to_owned()), MessagePart::Truncated]);
            }
            Step::ErrorEvent(kind) => message.parts.push(MessagePart::StreamError(kind)),
            // The others are content, or waits, or `Script::check` rejects them.
            _ => {}
        }
    }
    let cut_short = message.stop_reason.as_deref() == Some("max_tokens");
    if !content && !composed.failed && !cut_short && !exact {
        message.parts.push(MessagePart::Text("ok".to_owned()));
        visible = true;
    }
    composed.goes_on = cut_short || (!visible && !composed.failed);
    composed.leaves_trace = visible || composed.stalls;
    answer.body = match dropped {
        true => Body::Dropped,
        false => Body::Message(message),
    };
    composed
}

/// The failure at the first step that is one; the other steps wait for the next request.
fn fail(engine: &mut Engine, who: &ModelCaller, mut steps: Vec<NextStep>) -> ApiFault {
    let mut failure = ApiError::new(500);
    if let Some(at) = steps
        .iter()
        .position(|next| matches!(next.step, Step::ApiError(_)))
        && let Step::ApiError(error) = &mut steps[at].step
    {
        failure = error.clone();
        match &mut error.times {
            Some(times) if *times > 1 => *times -= 1,
            Some(_) => {
                steps.remove(at);
            }
            None => {}
        }
    }
    engine.put_back(who, steps);
    failure.into()
}

/// The wait of a step, if it is one. An assertion takes no time.
fn wait_of(engine: &Engine, next: &NextStep, asked: &ApiRequest) -> Option<MessageWait> {
    let wait = match &next.step {
        Step::Wait(wait) => wait,
        Step::Assert(assert) => {
            let read = asked.newest_tool_result();
            let read = read
                .as_ref()
                .map(|result| (result.text.as_str(), result.is_error));
            return Some(MessageWait::Judge(Arc::new(DueAssert {
                place: next.place.clone(),
                session: asked.session_id().unwrap_or_default().to_owned(),
                wrong: judge::result(assert, read).err(),
                assert: assert.clone(),
            })));
        }
        _ => return None,
    };
    Some(match wait {
        script::Wait::Time(time) => MessageWait::Pause(*time),
        script::Wait::Gate(name) => MessageWait::Gate(name.clone()),
        script::Wait::Interrupt => MessageWait::HangUp {
            patience: engine.script().patience,
            place: next.place.clone(),
        },
        // `Script::check` rejects these.
        script::Wait::Prompt | script::Wait::Request(_) => return None,
    })
}

/// The part of the message that a block is. The call of a step that started something has an id by which the end of that is known.
fn part_of(block: Block, tag: Option<u64>) -> MessagePart {
    match block {
        Block::Text(text) => MessagePart::Text(text),
        Block::Thinking(text) => MessagePart::Thinking(text),
        Block::Redacted(data) => {
            MessagePart::Block(json!({"type": "redacted_thinking", "data": data}).to_string())
        }
        Block::ToolUse { name, input } => MessagePart::ToolUse {
            id: tag.map(|tag| format!("toolu_script_{tag:06}")),
            name,
            input: input.to_string(),
        },
        Block::Raw(block) => MessagePart::Block(block.to_string()),
    }
}

/// The values of variables that depend on a request.
fn variables(asked: &ApiRequest, home: &str) -> Variables {
    let variables = [
        ("cwd", asked.working_directory()),
        ("plan", asked.plan_file()),
        ("home", Some(home.to_owned())),
    ];
    let variables = variables.into_iter();
    variables
        .map(|(name, value)| (name.to_owned(), value.unwrap_or_default()))
        .collect()
}

/// The answer with the steps of one response that stands in no script, after so many attempts at it.
pub(super) fn compose_alone(response: Step, attempts: u64, asked: &ApiRequest, home: &str) -> Composed {
    let mut engine = Engine::new(Script::new());
    let request = Request {
        who: who(asked),
        results: asked.last_tool_result().into_iter().collect(),
        variables: variables(asked, home),
        ..Request::default()
    };
    let prompt = asked.last_user_text().unwrap_or_default();
    engine.put(&request.who, &prompt, &[response.into()], Variables::new());
    let mut attempt = || {
        let taken = engine.next(&request);
        compose(&mut engine, &request.who, taken, asked)
    };
    for _ in 0..attempts {
        attempt();
    }
    attempt()
}
