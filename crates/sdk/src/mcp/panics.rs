//! The program's own code in servers: a panic stays where it was.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

/// Makes and runs a future of the program's own; a panic is its error.
pub(super) async fn caught<F: Future>(make: impl FnOnce() -> F) -> Result<F::Output, String> {
    let future = caught_call(make)?;
    let mut future = pin!(future);
    poll_fn(|cx| {
        // Not polled again after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(message(&*panic))),
        }
    })
    .await
}

/// Calls a function of the program's own; a panic is its error.
pub(super) fn caught_call<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("(without a message)").to_owned()
}
