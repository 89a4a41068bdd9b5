//! Tasks of the runtime.
//!
//! A runtime has code of its own for each type of task, once for each of its schedulers. Here all of ours have one type.

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::{Instrument as _, Span};

type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Spawns a task.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    boxed(Box::pin(work))
}

/// Spawns a task on a runtime that may not be the current one.
pub(crate) fn spawn_on(runtime: &Handle, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let work: BoxedTask = Box::pin(work);
    runtime.spawn(work)
}

/// Spawns a task that runs in the span.
pub(crate) fn spawn_in(span: Span, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    boxed_in(span, Box::pin(work))
}

#[inline(never)]
fn boxed(work: BoxedTask) -> JoinHandle<()> {
    tokio::spawn(work)
}

#[inline(never)]
fn boxed_in(span: Span, work: BoxedTask) -> JoinHandle<()> {
    tokio::spawn(work.instrument(span))
}
