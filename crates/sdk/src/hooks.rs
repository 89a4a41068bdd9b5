//! Hooks: callbacks for events of the CLI, which can block or change what happens.
//!
//! ```
//! use std::time::Duration;
//! use outrigger::{Agent, hooks::{self, HookOutput, PreToolUseOutput}};
//!
//! let options = Agent::builder()
//!     .hook(
//!         hooks::pre_tool_use(|input, _| async move {
//!             if input.tool_input.get().contains("rm -rf") {
//!                 HookOutput::specific(PreToolUseOutput::deny("not that"))
//!             } else {
//!                 HookOutput::none()
//!             }
//!         })
//!         .matcher("Bash")
//!         .timeout(Duration::from_secs(5)),
//!     )
//!     .hook(hooks::post_tool_use(|input, _| async move {
//!         println!("{} is done", input.tool_name);
//!         HookOutput::none()
//!     }));
//! # let _ = options;
//! ```
//!
//! There is a function for each event, which says when the CLI calls the hook and what the hook may return; only that fits into a
//! [`HookOutput`]. [`Hook::new`] does the same with the event as a type, [`Hook::of`] takes an object that is a [`Handler`],
//! [`Hook::in_background`] lets the CLI go on at once, and [`Hook::raw`] is for events that this build does not know.
//! The CLI calls all hooks of one event at once; the strictest output counts.
//!
//! # When a hook fails
//!
//! A hook fails when it panics, returns an error, exceeds its [time](Hook::timeout), or gets an input that does not decode. The CLI
//! would ignore a failure, and go on as if there were no hook. So the SDK never reports one to it: the hook's [`OnFailure`] decides
//! which output the CLI gets instead. [Its table](OnFailure) has the default of each event.
//!
//! A call with an unknown hook id, or beyond the limit of open requests, counts as a failed hook of its event.
//!
//! The CLI has a switch of its own for the case that the output never gets there (`onFailure`). The SDK sets it wherever a failure
//! blocks. If you set [`OnFailure::Block`], the SDK rejects a CLI that does not confirm the switch. At `Stop`, `SubagentStop`,
//! `TaskCompleted` and `TeammateIdle` the CLI has no such switch: there only the SDK blocks, and the CLI confirms nothing.
//!
//! # What never gets here
//!
//! The hooks of the CLI's own settings files run in the CLI;
//! [`Options::include_hook_events`](crate::Options::include_hook_events) reports them. A CLI started with `--bare` or with
//! `CLAUDE_CODE_SIMPLE` set accepts hooks, confirms them and calls none, so that combination is rejected, also where
//! settings set the variable, at the start or later. The user's own files can set it, too: the settings that a session with hooks gets outrank
//! them, unless [`Options::settings`](crate::Options::settings) is a file. Hooks are no
//! sandbox: treat what they report as advice, and what they deny as one of several locks. In some versions the CLI does not call
//! them for everything that its subagents do.

mod dispatch;
mod events;
mod failure;
mod handler;
pub(crate) mod matcher;
mod withheld;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use outrigger_protocol::RawJson;
#[doc(inline)]
pub use outrigger_protocol::shared::JsonObject;
#[doc(inline)]
pub use outrigger_protocol::shared::hook::*;

pub(crate) use self::dispatch::{Hooks, matchers};
use self::events::row;
pub use self::events::*;
use self::failure::Failure;
use self::handler::HookCall;
pub use self::handler::{Handler, HandlerError, IntoHookOutput};
pub use crate::conn::Context;

/// The default time of a hook.
const TIMEOUT: Duration = Duration::from_secs(585);

/// How much longer the CLI waits, so that a refusal arrives in time. With the default this is the CLI's own default, ten minutes.
const MARGIN: Duration = Duration::from_secs(15);

/// A hook for event `E`, one of [`event`]'s types, for [`Options::hook`](crate::Options::hook).
#[must_use = "a hook is called only if it is given to `Options::hook`"]
pub struct Hook<E> {
    pub(crate) registration: Registration,
    kind: PhantomData<fn() -> E>,
}

/// The event of [`Hook::raw`], which has only a name.
#[derive(Debug, Clone, Copy)]
pub enum Raw {}

impl<E: HookKind> Hook<E> {
    /// A hook from an async closure. It gets the input of the event, and returns a [`HookOutput`], or a `Result` of one with an
    /// error that implements `Display`. The functions of the [module](self) do the same for one event each.
    ///
    /// # Cancel safety
    /// The SDK drops the closure's future when the CLI withdraws its call, when the [time](Self::timeout) is up, and when the
    /// session ends. It only replies when the time is up.
    pub fn new<F, R>(answer: F) -> Self
    where
        F: Fn(E::Input, Context) -> R + Send + Sync + 'static,
        R: Future<Output: IntoHookOutput<E>> + Send + 'static,
    {
        Self::calling(HookCall::closure::<E, F, R>(answer))
    }

    /// A hook from an object.
    pub fn of(handler: impl Handler<E>) -> Self {
        Self::calling(HookCall::handler(handler))
    }

    /// A hook for which the CLI does not wait: the SDK replies at once that it runs in the background (`async`), so it decides nothing.
    ///
    /// The closure's future runs until it is done, until its [time](Self::timeout) is up if one is set, or until the session ends:
    /// then it is dropped, and [`Context::cancelled`] fires. At most 256 run at once; a call beyond that is dropped, with a
    /// warning in the log. A failure is logged.
    pub fn in_background<F, R>(run: F) -> Self
    where
        F: Fn(E::Input, Context) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self::calling(HookCall::background::<E, F, R>(run))
    }

    fn calling(call: HookCall) -> Self {
        Self {
            registration: Registration::new(E::EVENT, call),
            kind: PhantomData,
        }
    }
}

impl Hook<Raw> {
    /// A hook for an event by its name, with input and output as raw JSON: for events that this build does not know. The CLI
    /// accepts any name, and never calls a hook for an event that it does not know.
    ///
    /// The output has to be an object; `{}` decides nothing. If this build does not know the event, a failure blocks by `decision:
    /// block`; else see [`OnFailure`].
    pub fn raw<F, R, D>(event: &str, answer: F) -> Self
    where
        F: Fn(RawJson, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RawJson, D>> + Send + 'static,
        D: fmt::Display,
    {
        Self {
            registration: Registration::new(HookEvent::from(event), HookCall::raw(answer)),
            kind: PhantomData,
        }
    }
}

impl<E> Hook<E> {
    /// Limits the hook to some occurrences. A matcher matches the tool's name, or the text that the event's function names; for an
    /// event without matchers it is an error.
    ///
    /// Names match as a whole, `Edit|Write` matches either, `*` matches all. Anything else is a JavaScript regular expression that
    /// may match anywhere in the name: `^mcp__` matches a prefix. Options with a matcher that could never match are rejected.
    pub fn matcher(mut self, matcher: impl Into<String>) -> Self {
        self.registration.matcher = Some(matcher.into());
        self
    }

    /// How long the hook may take; 585 s unless set, at most a year. After that it has failed. The CLI waits 15 s longer, so that
    /// the reply arrives before it gives up; if a call has less time, that counts.
    ///
    /// If a closure blocks its thread, the reply may be late, but an output after the time never counts. Blocking work belongs
    /// into `tokio::task::spawn_blocking`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.registration.timeout = Some(timeout);
        self
    }

    /// What a failure of the hook means. The default depends on the event: see [`OnFailure`].
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.registration.on_failure = Some(on_failure);
        self
    }
}

impl<E> Clone for Hook<E> {
    fn clone(&self) -> Self {
        Self {
            registration: self.registration.clone(),
            kind: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Hook<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.registration.fmt(f)
    }
}

/// A hook of any event.
#[derive(Clone)]
pub(crate) struct Registration {
    pub(crate) event: HookEvent,
    pub(crate) matcher: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_failure: Option<OnFailure>,
    call: HookCall,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("event", &self.event.as_str())
            .field("matcher", &self.matcher)
            .field("timeout", &self.timeout)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

impl Registration {
    /// The event.
    pub(crate) fn event(&self) -> &HookEvent {
        &self.event
    }

    /// The matcher.
    pub(crate) fn matcher(&self) -> Option<&str> {
        self.matcher.as_deref()
    }

    fn new(event: HookEvent, call: HookCall) -> Self {
        Self {
            event,
            matcher: None,
            timeout: None,
            on_failure: None,
            call,
        }
    }

    pub(crate) fn is_background(&self) -> bool {
        matches!(self.call, HookCall::Background(_))
    }

    /// What a failure means.
    fn on_failure(&self) -> OnFailure {
        if self.is_background() {
            return OnFailure::Continue;
        }
        self.on_failure
            .unwrap_or_else(|| row(&self.event).failure.by_default())
    }

    /// Whether no hook can block this event.
    pub(crate) fn observes(&self) -> bool {
        matches!(row(&self.event).failure, Failure::Observes)
    }

    /// Whether the CLI has to confirm its own `onFailure`.
    pub(crate) fn is_promise(&self) -> bool {
        self.on_failure == Some(OnFailure::Block) && row(&self.event).failure.has_switch()
    }
}

#[cfg(test)]
mod tests;
