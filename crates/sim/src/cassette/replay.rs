//! Plays the CLI's side of a cassette to a client.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::divergence::Divergence;
use super::file::Cassette;
use super::places::Places;
use super::player::Player;
use super::redact::Rules;
use crate::running::{ClientIo, Exit, Running, pipes, reins};

/// How fast a cassette is played.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Pace {
    /// As fast as it goes.
    #[default]
    None,
    /// As it was recorded: what the CLI says comes as long after what the client said as it did then.
    Original,
    /// The same, with each time multiplied: 0.5 is twice as fast.
    Scaled(f64),
}

/// Plays the CLI's side of a cassette to a client that says what was said then.
///
/// The client's lines are compared by meaning: ids that the client makes up, times, the order of keys, and directories may differ
/// from what was recorded. Its new ids are put into what the CLI says, whose own ids stay. Requests that only ask for something may
/// come at another time than they did; answers to the CLI may come in another order. Anything else is a [`Divergence`]: it is
/// written to stderr, and the played CLI ends with [`DIVERGED`](Self::DIVERGED). So does a command line that says something else
/// than the recorded one, if both are known.
///
/// ```
/// use outrigger_sim::cassette::{Cassette, Replay};
/// use tokio::io::AsyncWriteExt as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cassette = Cassette::parse(concat!(
///     r#"{"t":0,"dir":"meta","msg":{"cassette":1}}"#, "\n",
///     r#"{"t":0,"dir":"in","msg":{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}}"#, "\n",
///     r#"{"t":1,"dir":"out","msg":{"type":"result","user_message_uuid":"u1"}}"#, "\n",
/// ))?;
/// let (mut client, played) = Replay::new(cassette).spawn_in_memory();
/// client.stdin.write_all(b"{\"message\":{\"content\":\"hi\",\"role\":\"user\"},\"type\":\"user\",\"uuid\":\"new\"}\n").await?;
/// drop(client.stdin);
/// played.exit().await;
/// assert!(played.divergence().is_none());
/// assert_eq!(played.running().report().sent().next().unwrap()["user_message_uuid"], "new");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Replay {
    pub(super) cassette: Cassette,
    pub(super) name: String,
    pub(super) pace: Pace,
    pub(super) patience: Duration,
    pub(super) places: Places,
    pub(super) rules: Rules,
    pub(super) argv: Vec<String>,
    pub(super) ignored: Vec<Vec<String>>,
}

impl Replay {
    /// The exit code when the client said something else than was recorded.
    pub const DIVERGED: i32 = 97;

    /// Plays this cassette, as fast as it goes.
    pub fn new(cassette: Cassette) -> Self {
        Self {
            cassette,
            name: "the cassette".to_owned(),
            pace: Pace::None,
            patience: Duration::from_secs(30),
            places: Places::default(),
            rules: Rules::new(),
            argv: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// How the cassette is called when something is said about it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How fast it is played; as fast as it goes unless set. Times are tokio's.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// How long it waits for what the client said next, until that counts as a divergence; 30 s unless set.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Plays it as a process with this command line and environment in this directory: its directories and names are filled in for
    /// the placeholders, and its secrets are known when they are said. The command line, with the program or without, is compared with
    /// the recorded one by what it says: the order of flags, ids and directories may differ, and flags for debugging do not matter.
    /// Either of the two without a flag is taken for unknown, and not compared.
    pub fn surroundings(
        mut self,
        argv: impl IntoIterator<Item = impl Into<String>>,
        env: impl IntoIterator<Item = (String, String)>,
        cwd: impl AsRef<Path>,
    ) -> Self {
        let env: Vec<_> = env.into_iter().collect();
        let pairs = || env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.places = Places::of(cwd, pairs());
        self.rules = self.rules.secrets_of(pairs());
        self.argv = argv.into_iter().map(Into::into).collect();
        self
    }

    /// Changes the places that are filled in.
    pub fn places(mut self, change: impl FnOnce(&mut Places)) -> Self {
        change(&mut self.places);
        self
    }

    /// Changes the rules for redaction: those that the recording was made with have to hold for what the client says now, too.
    pub fn rules(mut self, change: impl FnOnce(Rules) -> Rules) -> Self {
        self.rules = change(self.rules);
        self
    }

    /// Leaves this place of the client's lines out of the comparison, by its JSON pointer, of which a part `*` stands for any:
    /// `/request/appendSystemPrompt`. The command line is `/argv`, and `/argv/--model` what it says of one flag.
    pub fn ignore(mut self, pointer: &str) -> Self {
        let parts = pointer.trim_start_matches('/').split('/');
        let parts = parts.map(|part| part.replace("~1", "/").replace("~0", "~"));
        self.ignored.push(parts.collect());
        self
    }

    /// Plays it in a task of its own, over pipes in memory. Must be called inside a tokio runtime.
    pub fn spawn_in_memory(self) -> (ClientIo, Playing) {
        let (client, peer) = pipes();
        (client, self.spawn(peer.stdin, peer.stdout, peer.stderr))
    }

    /// Plays it in a task of its own. Must be called inside a tokio runtime.
    pub fn spawn<I, O, E>(self, stdin: I, stdout: O, stderr: E) -> Playing
    where
        I: AsyncRead + Unpin + Send + 'static,
        O: AsyncWrite + Unpin + Send + 'static,
        E: AsyncWrite + Unpin + Send + 'static,
    {
        let (running, reins) = reins();
        let diverged = Arc::new(Mutex::new(None));
        let playing = Playing {
            running,
            diverged: Arc::clone(&diverged),
        };
        let player = Player::new(self, stdin, stdout, stderr, diverged);
        tokio::spawn(player.run(reins));
        playing
    }
}

/// A cassette that is played. A handle; dropping it changes nothing.
#[derive(Debug, Clone)]
pub struct Playing {
    running: Running,
    diverged: Arc<Mutex<Option<Divergence>>>,
}

impl Playing {
    /// What is played, as a peer like any other: its report, its signals.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Waits for the end.
    pub async fn exit(&self) -> Exit {
        self.running.exit().await
    }

    /// Where the client said something else than was recorded, if it did so far.
    pub fn divergence(&self) -> Option<Divergence> {
        self.diverged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
