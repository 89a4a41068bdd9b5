//! The server: takes requests in, decides, answers.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::answer::answer;
use super::connection::{BreakableListener, Breakers, RequestConnection};
use super::conversation::Conversations;
use super::log::{self, RequestLog};
use super::message::{ApiAnswer, ApiFault, MessageWait};
use super::obey::obey;
use super::play::{ApiPlayer, Frames, RequestVerdict, compose_alone};
use super::request::{AnsweredBy, ApiRequest, Route};
use super::verdict::judge;
#[cfg(feature = "api-record")]
use super::{record::ApiRecorder, upstream::Upstream};
use crate::flaw::Flaw;
use crate::script::{
    self, Expect, Flaws, Gate, GateFiles, Gates, Progress, Reply, Script, ScriptError, WaitError,
};

/// The server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot listen on 127.0.0.1:{port} for the scripted Messages API")]
pub struct StartError {
    /// The port; 0 stands for any that is free.
    pub port: u16,
    /// The error of the operating system.
    #[source]
    pub cause: io::Error,
}

/// A running scripted Messages API.
///
/// Dropping it stops the server and breaks every connection at once. See the [module](super) for how it decides what to answer.
#[derive(Debug)]
#[must_use = "the server stops when this is dropped"]
pub struct MessagesApi {
    shared: Arc<ApiShared>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Settings of a [`MessagesApi`].
#[derive(Debug)]
#[must_use]
pub struct MessagesApiBuilder {
    settings: ApiSettings,
}

#[derive(Debug, Default)]
pub(super) struct ApiSettings {
    rules: Vec<ReplyRule>,
    replies: VecDeque<Reply>,
    default_reply: Reply,
    directives: bool,
    refuse_unmatched: bool,
    log_limit: usize,
    log_file: Option<File>,
    pub(super) input_tokens: Option<u64>,
    pub(super) models: Vec<String>,
    port: u16,
    player: Option<ApiPlayer>,
    home: Option<String>,
    gate_files: Option<GateFiles>,
    frames: Option<Frames>,
    #[cfg(feature = "api-record")]
    pub(super) upstream: Option<Upstream>,
    #[cfg(feature = "api-record")]
    pub(super) recorder: Option<ApiRecorder>,
}

#[derive(Debug)]
pub(super) struct ApiShared {
    pub(super) settings: ApiSettings,
    pub(super) log: RequestLog,
    gates: Gates,
    rules: Mutex<Vec<ReplyRule>>,
    replies: Mutex<VecDeque<Reply>>,
    pub(super) conversations: Mutex<Conversations>,
    /// The home directory, for scripts.
    pub(super) home: String,
    pub(super) answered: AtomicU64,
    pub(super) started: Instant,
    breakers: Breakers,
}

/// What a test replies to some requests.
struct ReplyRule(Box<Replies>);

type Replies = dyn FnMut(&ApiRequest) -> Option<Reply> + Send + Sync;

impl fmt::Debug for ReplyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}

/// The reply to a request.
#[derive(Debug)]
pub(super) enum ApiDecision {
    Answer(Box<ApiAnswer>),
    /// The request is passed on.
    #[cfg(feature = "api-record")]
    Upstream,
}

impl MessagesApiBuilder {
    /// Plays a script for requests that neither rules nor replies match. Its settings replace those of this builder that were set
    /// before.
    ///
    /// # Errors
    /// When there is something in it that the API cannot play, with the place and the way on; see [`Script::check`].
    pub fn script(self, script: Script) -> Result<Self, ScriptError> {
        self.playing(script, None)
    }

    /// The same for the sessions of one run of a program: a rule that one of them used up is used up for all, as with the simulated
    /// CLI in a run.
    ///
    /// # Errors
    /// See [`script`](Self::script).
    pub fn script_of_one_run(self, script: Script) -> Result<Self, ScriptError> {
        self.playing(script, Some(Progress::new()))
    }

    fn playing(mut self, script: Script, progress: Option<Progress>) -> Result<Self, ScriptError> {
        if !script.models.is_empty() {
            self.settings.models.clone_from(&script.models);
        }
        self.settings.input_tokens = script.input_tokens.or(self.settings.input_tokens);
        self.settings.player = Some(ApiPlayer::new(script, progress, self.settings.frames.clone())?);
        Ok(self)
    }

    /// Sets who sees the frames of the process that has a session, for a script that is added after this.
    #[cfg(feature = "players")]
    pub(crate) fn frames(
        mut self,
        frames: impl Fn(&str) -> Vec<crate::peer::Line> + Send + Sync + 'static,
    ) -> Self {
        self.settings.frames = Some(Frames(Arc::new(frames)));
        self
    }

    /// Starts the server on a port of 127.0.0.1, on the current tokio runtime.
    ///
    /// # Errors
    /// When the port cannot be had.
    ///
    /// # Panics
    /// Outside a tokio runtime, as everything of tokio does.
    pub async fn start(self) -> Result<MessagesApi, StartError> {
        let port = self.settings.port;
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let with_address = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = with_address.map_err(|cause| StartError { port, cause })?;
        let mut settings = self.settings;
        let home = settings.home.take().unwrap_or_else(home);
        let shared = Arc::new(ApiShared {
            log: RequestLog::new(settings.log_limit, settings.log_file.take(), &home),
            gates: Gates::default(),
            rules: Mutex::new(std::mem::take(&mut settings.rules)),
            replies: Mutex::new(std::mem::take(&mut settings.replies)),
            conversations: Mutex::default(),
            home,
            settings,
            answered: AtomicU64::new(0),
            started: Instant::now(),
            breakers: Breakers::default(),
        });
        let listener = BreakableListener {
            inner: listener,
            breakers: shared.breakers.clone(),
        };
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let service = router.into_make_service_with_connect_info::<RequestConnection>();
            let serving = axum::serve(listener, service).with_graceful_shutdown(async {
                let _ = stopped.await;
            });
            if let Err(error) = serving.await {
                tracing::error!(%error, "the scripted Messages API stopped serving");
            }
        });
        Ok(MessagesApi {
            shared,
            address,
            stop: Some(stop),
            task,
        })
    }
}

setters! { MessagesApiBuilder.settings:
    /// Adds a rule, behind those that are there: it replies to a request for a message, or leaves it to what comes behind.
    rule(rule: impl FnMut(&ApiRequest) -> Option<Reply> + Send + Sync + 'static) => rules.push(ReplyRule(Box::new(rule)));
    /// Adds a reply for the next request that no rule is for, whatever session it comes from.
    reply(reply: impl Into<Reply>) => replies.push_back(reply.into());
    /// Passes on what neither rules nor replies nor a recording are for, and the answer back as it comes. Directives and the
    /// default reply are not used then.
    #[cfg(feature = "api-record")]
    upstream(upstream: Upstream) = Some(upstream);
    /// Records the requests that are passed on.
    #[cfg(feature = "api-record")]
    record(recorder: ApiRecorder) => recorder = Some(recorder);
    /// Sets the reply when nothing else applies; by default the text `ok`.
    default_reply(reply: impl Into<Reply>) = reply.into();

    /// Whether [directives](crate::directive) in prompts are obeyed; by default they are.
    directives(obey: bool) = obey;

    /// Rejects message requests that nothing matches, in place of the default reply: with a 400 that has the reason, and with
    /// [`AnsweredBy::Nothing`] in the log.
    refuse_unmatched() = true;

    /// Sets the home directory of the CLI, for `{{home}}` in a script; that of this process unless set.
    home(directory: impl Into<String>) = Some(directory.into());

    /// Lets another program open the gates, by files in this directory: see [`GateFiles`].
    gate_files(directory: impl Into<PathBuf>) = Some(GateFiles::new(directory));

    /// Appends a line of JSON to this file for each request, when its reply has ended, as a
    /// [`LogLine`](super::LogLine). Keys and tokens are not in it, nor are the CLI's own prompts.
    log_file(file: File) = Some(file);

    /// Sets the models for `GET /v1/models`; by default the list is empty, and each model exists when requested by name.
    models(ids: impl IntoIterator<Item = impl Into<String>>) = ids.into_iter().map(Into::into).collect();

    /// Sets the port of 127.0.0.1; by default, and with 0, a free one.
    port(port: u16) = port;

    /// Sets how many requests are kept, at least one; by default 512. Beyond that the oldest is forgotten.
    log_limit(requests: usize) = requests;

    /// Sets what `count_tokens` answers; by default a quarter of the request's length in bytes.
    input_tokens(tokens: u64) = Some(tokens);
}

impl MessagesApi {
    /// A server to be set up.
    pub fn builder() -> MessagesApiBuilder {
        let settings = ApiSettings {
            default_reply: Reply::say("ok"),
            directives: true,
            log_limit: log::DEFAULT_LIMIT,
            ..ApiSettings::default()
        };
        MessagesApiBuilder { settings }
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The gate of this name; it is created on first use, here or by a reply.
    pub fn gate(&self, name: &str) -> Gate {
        self.shared.gates.gate(name)
    }

    /// All gates.
    pub fn gates(&self) -> &Gates {
        &self.shared.gates
    }

    /// Adds a reply for the next request that no rule is for, behind those that wait.
    pub fn push(&self, reply: impl Into<Reply>) {
        lock(&self.shared.replies).push_back(reply.into());
    }

    /// Adds a rule behind those that are there. Not to be called from inside a rule.
    pub fn add_rule(&self, rule: impl FnMut(&ApiRequest) -> Option<Reply> + Send + Sync + 'static) {
        lock(&self.shared.rules).push(ReplyRule(Box::new(rule)));
    }

    /// The kept requests, oldest first, each with its current outcome.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.shared.log.requests()
    }

    /// The kept requests for a message.
    pub fn message_requests(&self) -> Vec<ApiRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.route() == Route::Messages);
        requests
    }

    /// The kept requests that nothing matched.
    pub fn unmatched(&self) -> Vec<ApiRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.answered_by.unmatched().is_some());
        requests
    }

    /// Whether all requests were as the script expects them; without a script, whether something matched every message request.
    ///
    /// # Errors
    /// All expectations that do not hold.
    pub fn verdict(&self) -> Result<(), Flaws> {
        match &self.shared.settings.player {
            Some(player) => self.check(&player.with(|engine, _| engine.script().expect.clone())),
            None => self.check(&Expect::default()),
        }
    }

    /// Whether all requests were as expected.
    ///
    /// # Errors
    /// All expectations that do not hold.
    pub fn check(&self, expect: &Expect) -> Result<(), Flaws> {
        let (tally, kept) = (self.shared.log.tally(), self.requests());
        match judge(expect, &tally, &kept, self.shared.settings.player.as_ref()) {
            flaws if flaws.is_empty() => Ok(()),
            flaws => Err(Flaws(flaws)),
        }
    }

    /// Why lines are missing in the log file or in the recording, if any are.
    pub fn write_failure(&self) -> Option<String> {
        let log = self.shared.log.write_failure();
        #[cfg(feature = "api-record")]
        let log = log.or_else(|| {
            self.shared
                .settings
                .recorder
                .as_ref()
                .and_then(ApiRecorder::failed)
        });
        log
    }

    /// How many requests came in all.
    pub fn request_count(&self) -> u64 {
        self.shared.log.counts().0
    }

    /// How many of them were forgotten because the log was full.
    pub fn forgotten_requests(&self) -> u64 {
        self.shared.log.counts().1
    }

    /// Waits until in all `count` requests for a message have come, and returns those that are kept.
    ///
    /// # Errors
    /// When that does not happen `within` the given time.
    pub async fn wait_for_requests(
        &self,
        count: u64,
        within: Duration,
    ) -> Result<Vec<ApiRequest>, WaitError> {
        let what = format!("{count} requests for a message");
        let mut requests = self
            .shared
            .log
            .wait_until(&what, within, |_, messages| messages >= count)
            .await?;
        requests.retain(|request| request.route() == Route::Messages);
        Ok(requests)
    }

    /// Waits until the condition holds for the kept requests; it is checked whenever a request arrives or ends.
    ///
    /// `what` describes the condition in the error.
    ///
    /// # Errors
    /// When that does not happen `within` the given time.
    pub async fn wait_until(
        &self,
        what: &str,
        within: Duration,
        mut condition: impl FnMut(&[ApiRequest]) -> bool,
    ) -> Result<Vec<ApiRequest>, WaitError> {
        self.shared
            .log
            .wait_until(what, within, |requests, _| condition(requests))
            .await
    }

    /// Stops the server and waits until its port and all connections are closed; replies in progress are cut.
    pub async fn shutdown(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        loop {
            self.shared.breakers.trip_all();
            // A connection may have been accepted just before the listener closed; the next round breaks it.
            if tokio::time::timeout(Duration::from_millis(20), &mut self.task)
                .await
                .is_ok()
            {
                return;
            }
        }
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.breakers.trip_all();
    }
}

impl ApiShared {
    /// The reply to a request, and its source; `None` if only the server itself can know.
    pub(super) fn decide(&self, request: &ApiRequest) -> Option<(ApiDecision, AnsweredBy)> {
        let answer = |answer: ApiAnswer, by| Some((ApiDecision::Answer(Box::new(answer)), by));
        let refused = |why: String| {
            let mut fault = ApiFault::new(400).message(&why);
            fault
                .headers
                .push(("x-should-retry".to_owned(), "false".to_owned()));
            answer(fault.into(), AnsweredBy::Nothing(why.into()))
        };
        let reply = |reply: Reply, by| match reply.unfit(script::ScriptPlayer::Api) {
            Some(why) => refused(why),
            None => answer(compose_alone(reply.into(), 0, request, &self.home).answer, by),
        };
        let message = request.route() == Route::Messages;
        if message {
            if let Some(found) = lock(&self.rules).iter_mut().find_map(|rule| (rule.0)(request)) {
                return reply(found, AnsweredBy::Rule);
            }
            if let Some(next) = lock(&self.replies).pop_front() {
                return reply(next, AnsweredBy::Queue);
            }
        }
        let mut unmatched = None;
        let player = self.settings.player.as_ref().filter(|_| message);
        match player.map(|player| player.answer(request, &self.home)) {
            Some(RequestVerdict::Answer(found, name)) => return answer(*found, AnsweredBy::Script(name)),
            Some(RequestVerdict::Refused(why)) => return refused(why),
            Some(RequestVerdict::Unmatched(why)) => unmatched = Some(why).filter(|why| !why.is_empty()),
            None => {}
        }
        #[cfg(feature = "api-record")]
        if self.settings.upstream.is_some() {
            return Some((ApiDecision::Upstream, AnsweredBy::Upstream));
        }
        if !message {
            return None;
        }
        // A line of a prompt that begins with `%` is no directive where a script has the rules.
        if let Some(why) = unmatched {
            return refused(why);
        }
        if self.settings.directives {
            match obey(request, &mut lock(&self.conversations), &self.home) {
                Some(Ok(found)) => return answer(found, AnsweredBy::Directives),
                Some(Err(error)) => {
                    let fault = ApiFault::new(400).message(error.to_string());
                    return answer(fault.into(), AnsweredBy::Directives);
                }
                None => {}
            }
        }
        if self.settings.refuse_unmatched {
            let text = request.last_user_text().unwrap_or_default();
            let text: String = text.chars().take(80).collect();
            return refused(format!("nothing is for this request, whose prompt is {text:?}"));
        }
        reply(self.settings.default_reply.clone(), AnsweredBy::Default)
    }

    pub(super) async fn wait(&self, wait: &MessageWait) {
        match wait {
            MessageWait::Gate(name) => {
                let gate = self.gates.gate(name);
                let Some(files) = &self.settings.gate_files else {
                    return gate.pass().await;
                };
                if let Err(error) = files.reached(name) {
                    tracing::error!(%error, name, "cannot say that a gate is reached");
                }
                tokio::select! {
                    () = gate.pass() => {}
                    () = files.opened(name) => {}
                }
            }
            MessageWait::Pause(time) => tokio::time::sleep(*time).await,
            MessageWait::Forever => pending().await,
            MessageWait::Judge(due) => {
                if let Some(player) = &self.settings.player {
                    player.judge(due);
                }
            }
            MessageWait::HangUp { patience, place } => {
                tokio::time::sleep(*patience).await;
                if let Some(player) = &self.settings.player {
                    let what = format!("waited {patience:?} for the client to hang up in vain");
                    player.flaw(Flaw::new(place, what));
                }
            }
        }
    }
}

/// The home directory of whoever runs the server.
fn home() -> String {
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var(variable).unwrap_or_default()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in a test's closure must not turn into one of the server.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
