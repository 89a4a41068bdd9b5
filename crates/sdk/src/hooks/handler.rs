//! The callbacks of hooks, and their errors.

use std::fmt;
use std::sync::Arc;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::hook::{AnyHookOutput, HookKind, HookOutput};

use crate::conn::Context;
use crate::peer::BoxFuture;

/// The error of a [`Handler`]: `?` converts any error.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// An object that handles one event; closures do the same by [`Hook::new`](super::Hook::new). An object for several events
/// implements this once for each.
///
/// The future runs in its own task. It is dropped when the CLI withdraws its call (an interrupt, the end of the turn), when
/// the hook's time is up and when the session ends.
///
/// ```
/// use outrigger::hooks::{Context, Handler, HandlerError, Hook, HookOutput, PreToolUseInput, event};
///
/// struct Guard { root: String }
///
/// impl Handler<event::PreToolUse> for Guard {
///     async fn call(
///         &self,
///         input: PreToolUseInput,
///         _: Context,
///     ) -> Result<HookOutput<event::PreToolUse>, HandlerError> {
///         let path = tokio::fs::canonicalize(&self.root).await?;
///         let stays = input.tool_input.get().contains(&*path.to_string_lossy());
///         Ok(if stays { HookOutput::none() } else { HookOutput::block("stay where you are") })
///     }
/// }
///
/// let hook = Hook::of(Guard { root: "/srv".into() });
/// # let _ = hook;
/// ```
pub trait Handler<E: HookKind>: Send + Sync + 'static {
    /// Handles one call. It may be written as an `async fn`.
    fn call(
        &self,
        input: E::Input,
        context: Context,
    ) -> impl Future<Output = Result<HookOutput<E>, HandlerError>> + Send;
}

impl<E: HookKind, T: Handler<E>> Handler<E> for Arc<T> {
    fn call(
        &self,
        input: E::Input,
        context: Context,
    ) -> impl Future<Output = Result<HookOutput<E>, HandlerError>> + Send {
        (**self).call(input, context)
    }
}

/// The output of a hook's closure: a [`HookOutput`], or a `Result` of one with any error that implements `Display`.
pub trait IntoHookOutput<E: HookKind> {
    /// The output, or the text of the error.
    ///
    /// # Errors
    /// When the hook failed.
    fn into_hook_output(self) -> Result<HookOutput<E>, String>;
}

impl<E: HookKind> IntoHookOutput<E> for HookOutput<E> {
    fn into_hook_output(self) -> Result<HookOutput<E>, String> {
        Ok(self)
    }
}

impl<E: HookKind, D: fmt::Display> IntoHookOutput<E> for Result<HookOutput<E>, D> {
    fn into_hook_output(self) -> Result<HookOutput<E>, String> {
        self.map_err(|error| error.to_string())
    }
}

/// Why a hook failed. The model reads it as the reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookError {
    Unreadable(String),
    Failed(String),
    Unwritable(String),
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "its input could not be read: {why}"),
            Self::Failed(why) => f.write_str(why),
            Self::Unwritable(why) => write!(f, "its answer could not be written: {why}"),
        }
    }
}

/// Runs a hook. No user code runs before the first poll.
pub(super) type HookFn<T> =
    Arc<dyn Fn(RawJson, Context) -> BoxFuture<'static, Result<T, HookError>> + Send + Sync>;

/// How a call is answered.
#[derive(Clone)]
pub(super) enum HookCall {
    /// The hook answers with its output, for which the CLI waits.
    Answer(HookFn<RawJson>),
    /// The CLI is answered at once; the hook runs in the background.
    Background(HookFn<()>),
}

fn read<E: HookKind>(input: &RawJson) -> Result<E::Input, HookError> {
    input
        .read()
        .map_err(|error| HookError::Unreadable(error.to_string()))
}

fn write<E: HookKind>(output: HookOutput<E>) -> Result<RawJson, HookError> {
    RawJson::encode(&AnyHookOutput::from(output)).map_err(|error| HookError::Unwritable(error.to_string()))
}

impl HookCall {
    pub(super) fn closure<E, F, R>(answer: F) -> Self
    where
        E: HookKind,
        F: Fn(E::Input, Context) -> R + Send + Sync + 'static,
        R: Future<Output: IntoHookOutput<E>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        Self::Answer(Arc::new(move |input, context| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                let answered = answer(read::<E>(&input)?, context).await;
                write(answered.into_hook_output().map_err(HookError::Failed)?)
            })
        }))
    }

    pub(super) fn handler<E: HookKind>(handler: impl Handler<E>) -> Self {
        let handler = Arc::new(handler);
        Self::Answer(Arc::new(move |input, context| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let answered = handler.call(read::<E>(&input)?, context).await;
                write(answered.map_err(|error| HookError::Failed(error.to_string()))?)
            })
        }))
    }

    pub(super) fn background<E, F, R>(run: F) -> Self
    where
        E: HookKind,
        F: Fn(E::Input, Context) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let run = Arc::new(run);
        Self::Background(Arc::new(move |input, context| {
            let run = Arc::clone(&run);
            Box::pin(async move {
                run(read::<E>(&input)?, context).await;
                Ok(())
            })
        }))
    }

    pub(super) fn raw<F, R, D>(answer: F) -> Self
    where
        F: Fn(RawJson, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<RawJson, D>> + Send + 'static,
        D: fmt::Display,
    {
        let answer = Arc::new(answer);
        Self::Answer(Arc::new(move |input, context| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                let answered = answer(input, context).await;
                let output = answered.map_err(|error| HookError::Failed(error.to_string()))?;
                // The CLI takes anything else for a failure, which it lets pass.
                if output.get().starts_with('{') {
                    Ok(output)
                } else {
                    Err(HookError::Unwritable("it is not an object".to_owned()))
                }
            })
        }))
    }
}
