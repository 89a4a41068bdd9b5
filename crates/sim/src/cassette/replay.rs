//! Plays the CLI's side of a cassette to a client.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::divergence::Divergence;
use super::file::Cassette;
use super::places::Places;
use super::player::CassettePlayer;
use super::redact::RedactionRules;
use crate::running::{ClientIo, Exit, Running, pipes, reins};

/// How fast a cassette is played.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Pace {
    /// As fast as the client reads.
    #[default]
    None,
    /// The recorded pace: the CLI's lines come after the same delays as then.
    Original,
    /// The same, with each time multiplied: 0.5 is twice as fast.
    Scaled(f64),
}

/// Plays the CLI's side of a cassette to a client that repeats its recorded side.
///
/// The client's lines are compared by meaning: ids that the client makes, times, the order of keys, and directories may differ
/// from the recording. Its new ids replace the recorded ones in the CLI's lines; the CLI's own ids stay. Requests that only read may
/// come at another time; replies to the CLI may come in another order. Anything else is a [`Divergence`]: it is
/// written to stderr, and the played CLI ends with [`DIVERGED`](Self::DIVERGED). So it does for a command line that differs
/// from the recorded one, if both are known.
///
/// ```
/// use outrigger_sim::cassette::{Cassette, CassetteReplay};
/// use tokio::io::AsyncWriteExt as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cassette = Cassette::parse(concat!(
///     r#"{"t":0,"dir":"meta","msg":{"cassette":2}}"#, "\n",
///     r#"{"t":0,"dir":"in","msg":{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}}"#, "\n",
///     r#"{"t":1,"dir":"out","msg":{"type":"result","user_message_uuid":"u1"}}"#, "\n",
/// ))?;
/// let (mut client, played) = CassetteReplay::new(cassette).spawn_in_memory();
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
pub struct CassetteReplay {
    pub(super) cassette: Cassette,
    pub(super) name: String,
    pub(super) pace: Pace,
    pub(super) patience: Duration,
    pub(super) places: Places,
    pub(super) rules: RedactionRules,
    pub(super) argv: Vec<String>,
    pub(super) ignored: Vec<Vec<String>>,
}

impl CassetteReplay {
    /// The exit code when the client differed from the recording.
    pub const DIVERGED: i32 = 97;

    /// Plays this cassette, as fast as it goes.
    pub fn new(cassette: Cassette) -> Self {
        Self {
            cassette,
            name: "the cassette".to_owned(),
            pace: Pace::None,
            patience: Duration::from_secs(30),
            places: Places::default(),
            rules: RedactionRules::new(),
            argv: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Replays it as a process with this command line and environment in this directory: its directories and names fill in
    /// the placeholders, and its secrets are redacted from the client's lines. The command line, with the program or without, is compared with
    /// the recorded one by meaning: the order of flags, ids and directories may differ, and flags for debugging do not matter.
    /// A command line without a flag counts as unknown, and is not compared.
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

    /// Changes the rules for redaction: the recording's own rules have to be applied to the client's current lines, too.
    pub fn rules(mut self, change: impl FnOnce(RedactionRules) -> RedactionRules) -> Self {
        self.rules = change(self.rules);
        self
    }

    /// Changes the places that are filled in.
    pub fn places(mut self, change: impl FnOnce(&mut Places)) -> Self {
        change(&mut self.places);
        self
    }

    /// Ignores this place of the client's lines in the comparison. It is a JSON pointer, in which a part `*` stands for any key:
    /// `/request/appendSystemPrompt`. The command line is `/argv`, and `/argv/--model` one of its flags.
    pub fn ignore(mut self, pointer: &str) -> Self {
        let parts = pointer.trim_start_matches('/').split('/');
        let parts = parts.map(|part| part.replace("~1", "/").replace("~0", "~"));
        self.ignored.push(parts.collect());
        self
    }

    /// Plays the cassette in a task of its own, over pipes in memory. Must be called inside a tokio runtime.
    pub fn spawn_in_memory(self) -> (ClientIo, Playing) {
        let (client, peer) = pipes();
        (client, self.spawn(peer.stdin, peer.stdout, peer.stderr))
    }

    /// Plays the cassette in a task of its own. Must be called inside a tokio runtime.
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
        let player = CassettePlayer::new(self, stdin, stdout, stderr, diverged);
        tokio::spawn(player.run(reins));
        playing
    }
}

setters! { CassetteReplay:
    /// The name of the cassette in messages.
    name(name: impl Into<String>) = name.into();

    /// How fast the cassette is played; as fast as it goes unless set. Times are tokio's.
    pace(pace: Pace) = pace;

    /// How long the replay waits for the client's next line, until that counts as a divergence; 30 s unless set.
    patience(patience: Duration) = patience;
}

/// A cassette that is played. A handle; dropping it changes nothing.
#[derive(Debug, Clone)]
pub struct Playing {
    running: Running,
    diverged: Arc<Mutex<Option<Divergence>>>,
}

impl Playing {
    /// The replay as a peer like any other: its report, its signals.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Waits for the end.
    pub async fn exit(&self) -> Exit {
        self.running.exit().await
    }

    /// The place where the client differed from the recording, if there is one so far.
    pub fn divergence(&self) -> Option<Divergence> {
        self.diverged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
