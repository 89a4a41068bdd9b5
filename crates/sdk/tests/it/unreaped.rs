//! A process that cannot be reaped, stuck in the kernel for one, holds nobody up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outrigger::options::{Auth, Secret};
use outrigger::transport::{BoxFuture, Exit, Pipes, Process, Signal};
use outrigger::{Agent, Cause};
use outrigger_sim::peer;
use tokio::time::Instant;

/// Takes every signal and never ends.
struct Stuck {
    kills: Arc<AtomicU32>,
}

impl Process for Stuck {
    fn id(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(std::future::pending())
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.kills
            .fetch_add(u32::from(signal == Signal::Kill), Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_cannot_be_reaped_is_given_up() {
    for kill in [false, true] {
        let (io, _running) = peer::Agent::builder().directives().spawn_in_memory();
        let kills = Arc::new(AtomicU32::new(0));
        let stuck = Stuck {
            kills: Arc::clone(&kills),
        };
        let pipes = Pipes::with_process(io.stdin, io.stdout, Some(Box::new(io.stderr)), stuck);
        let session = Agent::builder()
            .auth(Auth::ApiKey(Secret::new("simulated")))
            .transport(pipes)
            .start()
            .await
            .unwrap();
        let mut waiting = session.prompt("%hang").await.unwrap();
        let watcher = session.clone();
        let since = Instant::now();
        let error = if kill {
            session.kill().await.unwrap_err()
        } else {
            session.close().await.unwrap_err()
        };
        // Closing has three waits of 5 s, a kill only the last; then the pipes have 2 s to be read empty.
        let bound = Duration::from_secs(if kill { 8 } else { 18 });
        assert!(since.elapsed() < bound, "{:?}", since.elapsed());
        assert_eq!(kills.load(Ordering::Relaxed), 1);
        assert!(
            error.to_string().contains("it did not end when killed"),
            "{error}"
        );
        assert_eq!((error.exit(), error.cause()), (None, Some(Cause::EndedByUs)));
        assert!(waiting.outcome().await.unwrap_err().is_closed());
        assert!(watcher.prompt("late").await.unwrap_err().is_closed());
    }
}
