//! Runs user code with a deadline.

use std::any::Any;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout_at};
use tracing::Span;

use crate::spawn::spawn_in;

/// Longer than any session. A sum of a point in time and a time that is no longer does not overflow.
pub(crate) const AGES: Duration = Duration::from_secs(365 * 24 * 3600);

/// The point in time after this time, or after [`AGES`] if it is longer: a time may mean for ever.
pub(crate) fn after(time: Duration) -> Instant {
    Instant::now() + time.min(AGES)
}

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    /// The deadline passed. A later result does not count.
    Late(Duration),
    /// The code panicked, with this.
    Panicked(Box<dyn Any + Send>),
    /// The runtime stopped the task.
    Stopped,
}

impl NoResult {
    /// Goes on with the panic, if it was one, for those above whom somebody makes a refusal of panics.
    pub(crate) fn unwind(self) -> Self {
        match self {
            Self::Panicked(panic) => std::panic::resume_unwind(panic),
            other => other,
        }
    }

    fn of(error: JoinError) -> Self {
        match error.try_into_panic() {
            Ok(panic) => Self::Panicked(panic),
            Err(_) => Self::Stopped,
        }
    }
}

/// Runs user code in its own task, so that its deadline passes even while it blocks its thread; dropping the future ends the task.
///
/// All that code has to be in the future: what runs before the future is made is on the caller's task.
pub(crate) async fn in_time<T: Send + 'static>(
    time: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, NoResult> {
    let start = Instant::now();
    let (told, mut value) = oneshot::channel();
    let work = async move {
        // Whoever waits no more needs no value.
        let _ = told.send(work.await);
    };
    let running = AbortOnDrop(spawn_in(Span::current(), work));
    wait(start, time, running).await?;
    value.try_recv().map_err(|_| NoResult::Stopped)
}

async fn wait(start: Instant, time: Duration, mut running: AbortOnDrop<()>) -> Result<(), NoResult> {
    // So long that it can't be told as a point in time is for ever.
    let Some(deadline) = start.checked_add(time) else {
        return (&mut running.0).await.map_err(NoResult::of);
    };
    match timeout_at(deadline, &mut running.0).await {
        // Nobody is woken in time while the runtime's threads are blocked, so being woken is not being in time.
        Ok(_) if Instant::now() > deadline => Err(NoResult::Late(time)),
        Ok(done) => done.map_err(NoResult::of),
        Err(_) => Err(NoResult::Late(time)),
    }
}

/// A task that is aborted when this is dropped.
pub(crate) struct AbortOnDrop<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(20);
    const LONGER: Duration = Duration::from_millis(60);

    #[tokio::test]
    async fn what_blocks_the_only_thread_is_late() {
        let blocked = in_time(TIME, async { std::thread::sleep(LONGER) }).await;
        assert!(matches!(blocked, Err(NoResult::Late(TIME))), "{blocked:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nobody_waits_for_what_blocks_another_thread() {
        let (unblock, blocked) = std::sync::mpsc::channel::<()>();
        let waited = in_time(TIME, async move {
            let _ = blocked.recv_timeout(Duration::from_secs(60));
        });
        let start = Instant::now();
        assert!(matches!(waited.await, Err(NoResult::Late(TIME))));
        assert!(start.elapsed() < Duration::from_secs(30));
        drop(unblock);
    }

    #[tokio::test]
    async fn what_is_in_time_counts_and_a_panic_is_told() {
        assert_eq!(in_time(LONGER * 1000, async { 7 }).await.ok(), Some(7));
        assert_eq!(in_time(Duration::MAX, async { 7 }).await.ok(), Some(7));
        let panicked = in_time(LONGER * 1000, async { panic!("of the test") }).await;
        let Err(NoResult::Panicked(panic)) = panicked.map(|(): ()| ()) else {
            panic!("no panic")
        };
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the test"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_work_ends_with_who_waits() {
        let (guard, dropped) = tokio::sync::oneshot::channel::<()>();
        let work = async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        };
        let waiting = tokio::spawn(in_time(Duration::from_secs(1000), work));
        tokio::task::yield_now().await;
        waiting.abort();
        assert!(dropped.await.is_err());
    }
}
