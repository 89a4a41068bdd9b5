//! A whole session against a peer that does anything at all.
//!
//! The bytes are a list of steps: calls of the program (prompts, steering, cancelling, interrupts, requests, readers, drops) and
//! doings of the peer (lifecycles, results, questions, answers, nonsense, its end), in any order. Clock and pipes are simulated.
//! At the end the session is ended, and then:
//!
//! * every future has resolved, and no task is left;
//! * each question of the peer was answered at most once, and once if it was neither withdrawn nor repeated;
//! * a turn that ended by a result was named by the peer before, unless that had said nothing of any prompt yet: nobody gets a foreign
//!   result;
//! * the session holds nothing, and takes nothing more.

mod peer;
mod program;

use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::time::{sleep, timeout};

use self::peer::Peer;
use self::program::Program;

/// More steps than this tell nothing new.
const MAX_STEPS: usize = 400;

/// Longer than all deadlines of the session together, on its clock.
const ETERNITY: Duration = Duration::from_secs(100_000);

/// What an input is read by.
struct Input<'d>(&'d [u8]);

impl<'d> Input<'d> {
    fn byte(&mut self) -> u8 {
        self.up_to(1).first().copied().unwrap_or_default()
    }

    fn up_to(&mut self, length: usize) -> &'d [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Plays the input and panics when a law is broken.
pub fn run(data: &[u8]) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be made");
    runtime.block_on(play(Input(data)));
}

async fn play(mut input: Input<'_>) {
    let kind = input.byte();
    let (peer, options) = Peer::new(kind);
    let started = timeout(ETERNITY, options.start()).await.expect("starting ends");
    let mut program = Program::new(started.unwrap_or_else(|error| panic!("it does not start: {error}")));
    for _ in 0..MAX_STEPS {
        if input.0.is_empty() {
            break;
        }
        match input.byte() {
            0 => {
                // As long as anything happens.
                sleep(Duration::from_millis(1)).await;
                program.look();
            }
            step if step % 2 == 0 => program.step(step / 2, &mut input).await,
            step => peer.step(step / 2, &mut input).await,
        }
    }
    // Time for all that is not held up by anybody.
    peer.read_on();
    sleep(Duration::from_secs(1)).await;
    peer.in_order(peer.is_there().await && !program.is_closing());
    program.end(input.byte()).await;
    // With a CLI that does not report the life of prompts, results go by their order.
    program.everything_resolves(&peer, kind & 4 == 0).await;
    peer.hang_up().await;
    peer.in_order(false);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    for _ in 0..1000 {
        if tasks() == 0 {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("{} tasks are left", tasks());
}
