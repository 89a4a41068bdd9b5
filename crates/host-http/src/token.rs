//! Who may what.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use uuid::Uuid;

/// What a token allows. No scope includes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Read events.
    Read,
    /// Send prompts and control requests.
    Send,
    /// Decide about permission requests and what else the CLI asks.
    Approve,
}

impl Scope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Approve => "approve",
        }
    }
}

/// A token as its holder has it: 256 random bits. It is shown once, and kept nowhere.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The text for `Authorization: Bearer`.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What is kept of a token. A program that wants its tokens to survive stores these, and gives them to [`Tokens::restore`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The id of the token. It is no secret.
    pub id: Uuid,
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// What the token is for, or whose it is. It ends up in the [`Actor`] of what is sent with it.
    pub label: String,
    /// What the token allows.
    pub scopes: BTreeSet<Scope>,
    /// When it stops being valid. `None` is never.
    pub expires: Option<SystemTime>,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// Who sent something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Actor {
    /// The id of the token.
    pub token: Uuid,
    /// The label of the token.
    pub label: String,
}

/// Why a token is not valid. Clients are not told which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// No token has this text.
    #[error("no such token was issued")]
    Unknown,
    /// The token was revoked.
    #[error("the token was revoked")]
    Revoked,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
}

/// The tokens of a front. Clones share them.
#[derive(Debug, Clone)]
pub struct Tokens(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    records: RwLock<HashMap<[u8; 32], TokenRecord>>,
    /// Tells the open streams that a token was revoked.
    revoked: watch::Sender<()>,
}

impl Default for Tokens {
    fn default() -> Self {
        Self::restore([])
    }
}

impl Tokens {
    /// The tokens that were stored earlier.
    pub fn restore(records: impl IntoIterator<Item = TokenRecord>) -> Self {
        let records = records.into_iter().map(|record| (record.hash, record)).collect();
        Self(Arc::new(Inner {
            records: RwLock::new(records),
            revoked: watch::channel(()).0,
        }))
    }

    /// Issues a token. The text is in the result and nowhere else; the record is what to store.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn issue(
        &self,
        label: impl Into<String>,
        scopes: impl IntoIterator<Item = Scope>,
        expires: Option<SystemTime>,
    ) -> Result<(Token, TokenRecord), std::io::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = Token(format!("outrigger_{hex}"));
        let record = TokenRecord {
            id: Uuid::new_v4(),
            hash: hash(token.reveal()),
            label: label.into(),
            scopes: scopes.into_iter().collect(),
            expires,
            revoked: false,
        };
        let mut records = self.0.records.write().unwrap_or_else(PoisonError::into_inner);
        records.insert(record.hash, record.clone());
        Ok((token, record))
    }

    /// Revokes a token and ends its streams. `false` when no token has this id.
    pub fn revoke(&self, id: Uuid) -> bool {
        let mut records = self.0.records.write().unwrap_or_else(PoisonError::into_inner);
        let found = records
            .values_mut()
            .find(|record| record.id == id)
            .map(|record| record.revoked = true);
        drop(records);
        self.0.revoked.send_replace(());
        found.is_some()
    }

    /// What is kept of all tokens, in no order.
    pub fn records(&self) -> Vec<TokenRecord> {
        let records = self.0.records.read().unwrap_or_else(PoisonError::into_inner);
        records.values().cloned().collect()
    }

    /// The record of a token that is valid at `now`.
    ///
    /// # Errors
    /// When no such token was issued, or it is no longer valid.
    pub fn verify(&self, token: &str, now: SystemTime) -> Result<TokenRecord, InvalidToken> {
        self.valid(&hash(token), now)
    }

    /// Like [`verify`](Self::verify), for a token that was valid earlier.
    pub(crate) fn valid(&self, hash: &[u8; 32], now: SystemTime) -> Result<TokenRecord, InvalidToken> {
        let records = self.0.records.read().unwrap_or_else(PoisonError::into_inner);
        let record = records.get(hash).ok_or(InvalidToken::Unknown)?;
        if record.revoked {
            return Err(InvalidToken::Revoked);
        }
        if record.expires.is_some_and(|expires| expires <= now) {
            return Err(InvalidToken::Expired);
        }
        Ok(record.clone())
    }

    pub(crate) fn revocations(&self) -> watch::Receiver<()> {
        self.0.revoked.subscribe()
    }
}

impl TokenRecord {
    pub(crate) fn actor(&self) -> Actor {
        Actor {
            token: self.id,
            label: self.label.clone(),
        }
    }
}

/// A lookup by the hash takes no time that depends on a secret: who does not know the token cannot choose its hash.
fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
