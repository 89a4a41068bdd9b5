//! Peers that are not there, for the tests of programs that use this crate.
//!
//! Needs the cargo feature `testing`, which belongs into `[dev-dependencies]`:
//!
//! ```toml
//! [dev-dependencies]
//! outrigger = { version = "0.1", features = ["testing"] }
//! ```
//!
//! * [`Simulated`] is a transport to a simulated CLI in memory: turns, tools, permissions, hooks, and a model that says what
//!   the test tells it to. With a paused clock (`#[tokio::test(start_paused = true)]`) a test takes no time.
//! * [`Faulty`] is a transport around another on which things go wrong, as a schedule of faults says;
//!   [`chaos`](sim::fault::chaos) tries many schedules, and finds the shortest that breaks a test.
//!
//! What plays the CLI is the crate `outrigger-sim`, which knows nothing of this one; it is here as [`sim`].

mod faulty;
mod simulated;

pub use faulty::Faulty;
pub use outrigger_sim as sim;
pub use simulated::Simulated;
