//! The player of a cassette at work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::arguments;
use super::divergence::{Divergence, Received};
use super::file::{Event, LineEnd, Said, What};
use super::lines;
use super::matching::{IdPairs, LineComparison};
use super::redact::Redactor;
use super::replay::{CassetteReplay, Pace};
use super::strings;
use crate::peer::{NoLine, Pipes};
use crate::running::{Exit, Log, Mismatch, Reins, Signal};

pub(super) struct CassettePlayer<I, O, E> {
    replay: CassetteReplay,
    redactor: Redactor,
    ids: IdPairs,
    /// Which events have happened already, ahead of those before them.
    done: Vec<bool>,
    pipes: Pipes<I, O, E>,
    /// Lines of the client for later steps.
    aside: Vec<(usize, Said)>,
    /// Requests of the client that were made then and were not yet made now.
    deferred: Vec<usize>,
    /// Notified when the client sends a recorded signal.
    told: Arc<Notify>,
    /// The line of the client that is waited for.
    expected: Option<usize>,
    /// A time of now, and the same of then.
    anchor: (Instant, Duration),
    diverged: Arc<Mutex<Option<Divergence>>>,
}

/// How the order of the client's lines matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Prompts, and requests that change something: their order counts.
    Ordered,
    /// A reply to the CLI: any time after its request.
    Answer,
    /// A request that only reads: any time.
    Free,
}

fn lane(frame: &Value) -> Lane {
    match frame["type"].as_str() {
        Some("control_response") => Lane::Answer,
        Some("control_request") => {
            let subtype = frame["request"]["subtype"].as_str().unwrap_or_default();
            let asks =
                subtype.starts_with("get_") || subtype.starts_with("list_") || subtype.ends_with("_status");
            if asks { Lane::Free } else { Lane::Ordered }
        }
        _ => Lane::Ordered,
    }
}

impl<I, O, E> CassettePlayer<I, O, E>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    E: AsyncWrite + Unpin,
{
    pub(super) fn new(
        replay: CassetteReplay,
        stdin: I,
        stdout: O,
        stderr: E,
        diverged: Arc<Mutex<Option<Divergence>>>,
    ) -> Self {
        let mut ids = IdPairs::of(&replay.cassette);
        ids.learn_argv(&replay.cassette.header.argv, &replay.argv);
        Self {
            redactor: Redactor::new(&replay.places, replay.rules.clone()),
            done: vec![false; replay.cassette.events.len()],
            ids,
            replay,
            pipes: Pipes::new(stdin, stdout, stderr),
            aside: Vec::new(),
            deferred: Vec::new(),
            told: Arc::default(),
            expected: None,
            anchor: (Instant::now(), Duration::ZERO),
            diverged,
        }
    }

    pub(super) async fn run(mut self, mut reins: Reins) {
        let log = Arc::clone(&reins.log);
        let told = Arc::clone(&self.told);
        let events = &self.replay.cassette.events;
        let is_signal = |event: &&Event| matches!(event.what, What::Signal(_));
        let mut recorded = events.iter().filter(is_signal).count();
        let mut killed = false;
        let exit = {
            let mut playing = std::pin::pin!(self.play(&log));
            loop {
                let signal = tokio::select! {
                    exit = &mut playing => break exit,
                    Some(signal) = reins.signals.recv() => signal,
                };
                break match signal {
                    // What follows was recorded.
                    Signal::Term | Signal::Int | Signal::Hup if recorded > 0 => {
                        recorded -= 1;
                        told.notify_one();
                        continue;
                    }
                    signal => {
                        killed = true;
                        signal.exit()
                    }
                };
            }
        };
        if killed {
            self.broken_off();
        }
        drop(self);
        let _ = reins.exit.send(Some(exit));
    }

    /// The replay was killed, which was not recorded. What the client was still to send is missing.
    fn broken_off(&self) {
        let is_missing = |at: &usize| match &self.replay.cassette.events[*at].what {
            What::In(said) => !is_keep_alive(said) && (!self.done[*at] || self.expected == Some(*at)),
            _ => false,
        };
        if let Some(at) = (0..self.done.len()).find(is_missing) {
            let mut diverged = self.diverged.lock().unwrap_or_else(PoisonError::into_inner);
            diverged.get_or_insert_with(|| *self.diverge(at, Received::End));
        }
    }

    async fn play(&mut self, log: &Log) -> Exit {
        match self.events(log).await {
            Ok(exit) => exit,
            Err(divergence) => {
                let text = format!("{divergence}\n");
                log.disagree(Mismatch {
                    step: divergence.line,
                    expected: divergence.expected.clone(),
                    received: text.clone(),
                });
                *self.diverged.lock().unwrap_or_else(PoisonError::into_inner) = Some(*divergence);
                self.pipes.complain(text.as_bytes()).await;
                Exit::Code(CassetteReplay::DIVERGED)
            }
        }
    }

    /// Checks that the command line has the meaning of the recorded one.
    fn command_line(&self) -> Result<(), Box<Divergence>> {
        // Redacted in the same way as the recording.
        let now = super::recorder::redacted(&self.replay.argv, &self.redactor);
        let cassette = &self.replay.cassette;
        let (then, now) = (
            arguments::meaning(&cassette.header.argv),
            arguments::meaning(&now),
        );
        let (Some(then), Some(now)) = (then, now) else {
            return Ok(());
        };
        match LineComparison::of(&self.ids, &self.replay.ignored, &then, &now) {
            Ok(_) => Ok(()),
            Err(differences) => Err(Box::new(Divergence::of_command_line(
                &self.replay.name,
                cassette,
                &then,
                &now,
                differences,
            ))),
        }
    }

    async fn events(&mut self, log: &Log) -> Result<Exit, Box<Divergence>> {
        self.command_line()?;
        for at in 0..self.done.len() {
            if self.done[at] {
                continue;
            }
            self.done[at] = true;
            let event = self.replay.cassette.events[at].clone();
            match event.what {
                What::Out(..) | What::Err(_) => {
                    self.wait(event.at).await;
                    self.say(log, at).await;
                }
                What::In(said) if is_keep_alive(&said) => {}
                What::In(_) => {
                    self.expected = Some(at);
                    self.expect(log, at).await?;
                    self.expected = None;
                    self.anchor = (Instant::now(), event.at);
                }
                What::StdinClosed => {
                    self.expect_end(log, at).await?;
                    self.anchor = (Instant::now(), event.at);
                }
                What::StdoutClosed => {
                    self.wait(event.at).await;
                    if let Some(exit) = self.death(at) {
                        for rest in at + 1..self.done.len() {
                            if matches!(self.replay.cassette.events[rest].what, What::Err(_)) {
                                self.say(log, rest).await;
                            }
                        }
                        return Ok(exit);
                    }
                    self.pipes.stdout = None;
                }
                What::Signal(_) => {
                    self.expect_signal(at).await?;
                    self.anchor = (Instant::now(), event.at);
                }
                What::Exit { .. } | What::Note(_) => {}
            }
        }
        let end = self.done.len();
        let Some((code, signal)) = self.replay.cassette.exit() else {
            // The recording has no more lines, so the client may not send any.
            self.expect_end(log, end).await?;
            return Ok(Exit::Code(0));
        };
        let ended = self.replay.cassette.events.last().map(|event| event.at);
        self.wait(ended.unwrap_or_default()).await;
        match self.deferred.first() {
            Some(missing) if self.pipes.ended => Err(self.diverge(*missing, Received::End)),
            _ => Ok(exit_of(code, signal)),
        }
    }

    /// How the CLI ended, if it did so when it closed its output at `at`: by itself, with its input still open. The client's
    /// reaction is recorded after it.
    fn death(&self, at: usize) -> Option<Exit> {
        let rest = &self.replay.cassette.events[at + 1..];
        let is_end = |event: &Event| {
            matches!(
                event.what,
                What::StdinClosed | What::Err(_) | What::Exit { .. } | What::Note(_)
            )
        };
        let is_open = rest.iter().any(|event| event.what == What::StdinClosed);
        let (code, signal) = self.replay.cassette.exit()?;
        (is_open && rest.iter().all(is_end)).then(|| exit_of(code, signal))
    }

    /// Takes the client's next line, which must be the one of this event.
    async fn expect(&mut self, log: &Log, at: usize) -> Result<(), Box<Divergence>> {
        if let Some(found) = self.aside.iter().position(|(of, _)| *of == at) {
            let (_, said) = self.aside.remove(found);
            return match self.compare(at, &said) {
                Ok(ids) => {
                    self.ids = ids;
                    Ok(())
                }
                Err(_) => Err(self.diverge(at, Received::Line(said))),
            };
        }
        loop {
            let said = match self.take(log).await {
                Ok(said) => said,
                Err(received) => return Err(self.diverge(at, received)),
            };
            if let Ok(ids) = self.compare(at, &said) {
                self.ids = ids;
                return Ok(());
            }
            if self.take_deferred(log, &said).await {
                continue;
            }
            let own = lane(&said.value());
            let Some((of, skipped)) = self.later(at, &said) else {
                return Err(self.diverge(at, Received::Line(said)));
            };
            match own {
                Lane::Free => {
                    self.done[of] = true;
                    self.answer_at_once(log, of, &said).await;
                }
                // The one that is waited for may come at any time, so that the session need not wait for it.
                _ if skipped.iter().all(|skipped| self.lane_of(*skipped) == Lane::Free) => {
                    for skipped in skipped {
                        self.done[skipped] = true;
                        if let Some(reply) = self.reply_to(skipped) {
                            self.done[reply] = true;
                        }
                        self.deferred.push(skipped);
                    }
                    self.aside.push((of, said));
                    return Ok(());
                }
                _ if skipped.iter().all(|skipped| self.lane_of(*skipped) != own) || own == Lane::Answer => {
                    self.aside.push((of, said));
                }
                _ => return Err(self.diverge(at, Received::Line(said))),
            }
        }
    }

    /// The later event that a line belongs to, and those of the client that come before it and have not come.
    fn later(&self, at: usize, said: &Said) -> Option<(usize, Vec<usize>)> {
        let mut skipped = vec![at];
        for of in at + 1..self.done.len() {
            let taken = self.done[of] || self.aside.iter().any(|(taken, _)| *taken == of);
            if taken || !matches!(self.replay.cassette.events[of].what, What::In(_)) {
                continue;
            }
            if self.compare(of, said).is_ok() {
                return Some((of, skipped));
            }
            skipped.push(of);
        }
        None
    }

    /// Whether the line is a request that was made earlier then; it is answered.
    async fn take_deferred(&mut self, log: &Log, said: &Said) -> bool {
        let found = self
            .deferred
            .iter()
            .position(|of| self.compare(*of, said).is_ok());
        let Some(found) = found else { return false };
        let of = self.deferred.remove(found);
        self.answer_at_once(log, of, said).await;
        true
    }

    /// Takes a request and sends its reply, wherever the recording has it.
    async fn answer_at_once(&mut self, log: &Log, of: usize, said: &Said) {
        if let Ok(ids) = self.compare(of, said) {
            self.ids = ids;
        }
        if let Some(reply) = self.reply_to(of) {
            self.done[reply] = true;
            self.say(log, reply).await;
        }
    }

    /// Where the recording has the reply to a request of the client.
    fn reply_to(&self, request: usize) -> Option<usize> {
        let id = self.value_of(request)["request_id"].clone();
        (request + 1..self.done.len()).find(|at| {
            matches!(self.replay.cassette.events[*at].what, What::Out(..)) && {
                let frame = self.value_of(*at);
                frame["type"] == "control_response" && frame["response"]["request_id"] == id
            }
        })
    }

    fn value_of(&self, at: usize) -> Value {
        match &self.replay.cassette.events[at].what {
            What::In(said) | What::Out(said, _) => said.value(),
            _ => Value::Null,
        }
    }

    fn lane_of(&self, at: usize) -> Lane {
        lane(&self.value_of(at))
    }

    fn compare(&self, at: usize, said: &Said) -> Result<IdPairs, Vec<super::FrameDifference>> {
        let What::In(recorded) = &self.replay.cassette.events[at].what else {
            return Err(Vec::new());
        };
        let ignored = &self.replay.ignored;
        let redacted = said.map(|line| self.redactor.line(line));
        LineComparison::of(&self.ids, ignored, recorded, &redacted)
            // A recording that was not redacted, or was edited, may have it as it is.
            .or_else(|differences| {
                LineComparison::of(&self.ids, ignored, recorded, said).map_err(|_| differences)
            })
    }

    async fn expect_end(&mut self, log: &Log, at: usize) -> Result<(), Box<Divergence>> {
        if let Some((_, said)) = self.aside.pop() {
            return Err(self.diverge(at, Received::Line(said)));
        }
        loop {
            match self.take(log).await {
                Ok(said) => {
                    if !self.take_deferred(log, &said).await {
                        return Err(self.diverge(at, Received::Line(said)));
                    }
                }
                Err(Received::End) => break,
                Err(received) => return Err(self.diverge(at, received)),
            }
        }
        match self.deferred.first() {
            Some(missing) => Err(self.diverge(*missing, Received::End)),
            None => Ok(()),
        }
    }

    async fn expect_signal(&mut self, at: usize) -> Result<(), Box<Divergence>> {
        let told = Arc::clone(&self.told);
        let patience = self.replay.patience;
        let signalled = tokio::time::timeout(patience, told.notified());
        match self.pipes.meanwhile(signalled).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.diverge(at, Received::Nothing(patience))),
        }
    }

    /// The client's next line, or why there is none.
    async fn take(&mut self, log: &Log) -> Result<Said, Received> {
        loop {
            let patience = self.replay.patience;
            let line = self.pipes.take(patience).await.map_err(|missing| match missing {
                NoLine::End => Received::End,
                NoLine::Late => Received::Nothing(patience),
            })?;
            let said = Said::of(&line);
            log.add(true, said.value());
            if !is_keep_alive(&said) {
                return Ok(said);
            }
        }
    }

    fn diverge(&self, at: usize, received: Received) -> Box<Divergence> {
        let differences = match &received {
            Received::Line(said) => self.compare(at, said).err().unwrap_or_default(),
            _ => Vec::new(),
        };
        Box::new(Divergence::new(
            &self.replay.name,
            &self.replay.cassette,
            at,
            received,
            differences,
        ))
    }

    /// Waits until the recorded moment `at`, and keeps the client's lines meanwhile.
    async fn wait(&mut self, at: Duration) {
        let scale = match self.replay.pace {
            Pace::None => return,
            Pace::Original => 1.0,
            Pace::Scaled(scale) => scale,
        };
        let after = at.saturating_sub(self.anchor.1).as_secs_f64() * scale;
        let after = Duration::try_from_secs_f64(after).unwrap_or_default();
        let until = self.anchor.0 + after;
        self.pipes.meanwhile(tokio::time::sleep_until(until)).await;
    }

    /// Sends the CLI's line, with the current directories and ids.
    async fn say(&mut self, log: &Log, at: usize) {
        let change = |line: &str| {
            let places = &self.replay.places;
            let now = |key: Option<&str>, text: &str| {
                let filled = places.fill(text);
                self.ids.to_now(key, filled.as_deref().unwrap_or(text)).or(filled)
            };
            match Said::of(line) {
                Said::Frame(_) => strings::rewrite(line, |place, text| {
                    now(if place.is_key { None } else { place.key() }, text)
                }),
                Said::Text(_) => now(None, line),
            }
        };
        match &self.replay.cassette.events[at].what {
            What::Out(said, end) => {
                let said = said.map(change);
                let mut bytes = lines::to_bytes(said.text());
                if *end == LineEnd::There {
                    bytes.push(b'\n');
                }
                log.add(false, said.value());
                self.pipes.write(&bytes).await;
            }
            What::Err(text) => {
                let line = change(text).unwrap_or_else(|| text.clone());
                let mut line = lines::to_bytes(&line);
                line.push(b'\n');
                self.pipes.complain(&line).await;
            }
            _ => {}
        }
    }
}

fn is_keep_alive(said: &Said) -> bool {
    said.text().len() < 200 && said.text().contains("\"keep_alive\"") && said.value()["type"] == "keep_alive"
}

fn exit_of(code: Option<i32>, signal: Option<i32>) -> Exit {
    match (code, signal) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(0),
    }
}
