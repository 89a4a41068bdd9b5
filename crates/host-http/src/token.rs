//! Who may what.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outrigger::protocol::RawJson;
use outrigger_host::log::SqliteLog;
use outrigger_host::{AuditEntry, HostError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use uuid::Uuid;

/// The kind of the records that tokens are.
const RECORDS: &str = "token";

/// How long the code of a first start can be exchanged.
const CODE: Duration = Duration::from_secs(3600);

/// What a token allows. No scope includes another one. An answer to a token without [`Read`](Self::Read) has nothing of what is in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Read sessions, events, approvals, schedules and metrics.
    Read,
    /// Send prompts and control requests; create, change and end sessions; add and remove schedules.
    Send,
    /// Decide about permission requests and what else the CLI asks.
    Approve,
    /// Issue and revoke tokens, delete sessions.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Send, Self::Approve, Self::Admin];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// A token as its holder has it: 256 random bits. The token is shown once, and kept nowhere.
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

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenRecord {
    /// The id of the token. It is no secret.
    pub id: Uuid,
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// What the token is for, or whose it is. It ends up as the `actor` of what is sent with it.
    pub label: String,
    /// What the token allows.
    pub scopes: BTreeSet<Scope>,
    /// When the token stops being valid, in milliseconds since 1970. `None` is never.
    pub expires_at: Option<u64>,
    /// Whether the token was revoked.
    pub revoked: bool,
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

/// The tokens of a front, which are kept in the log of the host. Clones share them.
#[derive(Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    log: Arc<SqliteLog>,
    records: RwLock<HashMap<[u8; 32], TokenRecord>>,
    /// The hash of the code of a first start, and until when it can be exchanged.
    code: Mutex<Option<Code>>,
    /// Tells the open streams that a token was revoked.
    revoked: watch::Sender<()>,
}

type Code = ([u8; 32], Instant);

/// A code while it is being exchanged: nobody else can exchange it. Dropped before it is spent, it can be exchanged again.
struct TakenCode<'a> {
    tokens: &'a Tokens,
    code: Option<Code>,
}

impl Drop for TakenCode<'_> {
    fn drop(&mut self) {
        if let Some(code) = self.code.take() {
            // A newer one stays.
            self.tokens.code_slot().get_or_insert(code);
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

/// 256 random bits in hexadecimal.
fn secret() -> Result<String, HostError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| HostError::Invalid(format!("the system has no random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Tokens {
    /// The tokens of a log, such as [`SessionHost::event_log`](outrigger_host::SessionHost::event_log).
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn open(log: Arc<SqliteLog>) -> Result<Self, HostError> {
        let mut records = HashMap::new();
        for (id, record) in log.records(RECORDS).await? {
            let record: TokenRecord = record
                .decode()
                .map_err(|error| HostError::Log(format!("the token {id}: {error}")))?;
            records.insert(record.hash, record);
        }
        Ok(Self(Arc::new(Inner {
            log,
            records: RwLock::new(records),
            code: Mutex::new(None),
            revoked: watch::channel(()).0,
        })))
    }

    /// Issues a token. The text is in the result and nowhere else. `expires_at` is in milliseconds since 1970.
    ///
    /// The label ends up in logs and on terminals, so that it has no control characters, and is no longer than 200 bytes. It is not that of a
    /// schedule (`schedule:…`), by which the host says who sent a prompt. Two tokens may have one label.
    ///
    /// # Cancel safety
    /// Dropped, the token may exist, and nobody has its text.
    ///
    /// # Errors
    /// When the label is none, the log fails, or the system has no random bytes. Then there is no token.
    pub async fn issue(
        &self,
        label: impl Into<String>,
        scopes: impl IntoIterator<Item = Scope>,
        expires_at: Option<u64>,
    ) -> Result<(Token, TokenRecord), HostError> {
        let label = label.into();
        check_label(&label)?;
        let (token, record) = new_token(label, scopes.into_iter().collect(), expires_at)?;
        self.keep(record.clone()).await?;
        Ok((token, record))
    }

    async fn keep(&self, record: TokenRecord) -> Result<(), HostError> {
        let value = serde_json::to_value(&record).map_err(|error| HostError::Invalid(error.to_string()))?;
        let id = record.id.to_string();
        self.0
            .log
            .put_record(RECORDS, &id, Some(RawJson::from(value)))
            .await?;
        let mut records = self.0.records.write().unwrap_or_else(PoisonError::into_inner);
        records.insert(record.hash, record);
        Ok(())
    }

    /// Revokes a token and ends its streams. `false` when no token has this id.
    ///
    /// # Errors
    /// When the log fails. The token is not valid in this process all the same.
    pub async fn revoke(&self, id: Uuid) -> Result<bool, HostError> {
        let found = {
            let mut records = self.0.records.write().unwrap_or_else(PoisonError::into_inner);
            records.values_mut().find(|record| record.id == id).map(|record| {
                record.revoked = true;
                record.clone()
            })
        };
        self.0.revoked.send_replace(());
        match found {
            Some(record) => self.keep(record).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// What is kept of all tokens, by label.
    pub fn records(&self) -> Vec<TokenRecord> {
        let records = self.0.records.read().unwrap_or_else(PoisonError::into_inner);
        let mut records: Vec<_> = records.values().cloned().collect();
        records.sort_by(|a, b| (&a.label, a.id).cmp(&(&b.label, b.id)));
        records
    }

    /// A code that can be exchanged for a token with all scopes, once, within an hour and in this process. It takes the place of an earlier
    /// one. For a first start, when there is no token yet.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn code(&self) -> Result<String, HostError> {
        let code = secret()?;
        *self.code_slot() = Some((hash(&code), Instant::now() + CODE));
        Ok(code)
    }

    /// Exchanges a code, and keeps who did so, in an entry that `entry` makes. `None` when the code is not valid.
    ///
    /// # Cancel safety
    /// Dropped, the code can be exchanged again.
    ///
    /// # Errors
    /// When the log fails, or the system has no random bytes. Then the code can be exchanged again.
    pub(crate) async fn exchange(
        &self,
        code: &str,
        entry: impl FnOnce(&TokenRecord) -> AuditEntry,
    ) -> Result<Option<(Token, TokenRecord)>, HostError> {
        let known = self.code_slot().take_if(|(known, _)| *known == hash(code));
        let Some(known) = known.filter(|(_, until)| Instant::now() < *until) else {
            return Ok(None);
        };
        let mut taken = TakenCode {
            tokens: self,
            code: Some(known),
        };
        let (token, record) = new_token("first start".to_owned(), Scope::ALL.into(), None)?;
        // Before the token: one that nobody has would keep the next start from printing a link.
        self.0.log.audit(entry(&record)).await?;
        self.keep(record.clone()).await?;
        taken.code = None;
        Ok(Some((token, record)))
    }

    fn code_slot(&self) -> MutexGuard<'_, Option<Code>> {
        self.0.code.lock().unwrap_or_else(PoisonError::into_inner)
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
        if record.expires().is_some_and(|expires| expires <= now) {
            return Err(InvalidToken::Expired);
        }
        Ok(record.clone())
    }

    pub(crate) fn revocations(&self) -> watch::Receiver<()> {
        self.0.revoked.subscribe()
    }
}

/// A token, and what is to be kept of it.
fn new_token(
    label: String,
    scopes: BTreeSet<Scope>,
    expires_at: Option<u64>,
) -> Result<(Token, TokenRecord), HostError> {
    let token = Token(format!("outrigger_{}", secret()?));
    let record = TokenRecord {
        id: Uuid::new_v4(),
        hash: hash(token.reveal()),
        label,
        scopes,
        expires_at,
        revoked: false,
    };
    Ok((token, record))
}

/// The longest label, in bytes.
const LABEL: usize = 200;

fn check_label(label: &str) -> Result<(), HostError> {
    let refused = |why: &str| Err(HostError::Invalid(format!("the label of the token {why}")));
    if label.trim().is_empty() {
        return refused("is empty");
    }
    if label.len() > LABEL {
        return refused(&format!("is longer than {LABEL} bytes"));
    }
    // Beside control characters, those that turn the direction of what follows.
    if label.contains(|char: char| {
        char.is_control()
            || matches!(char, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }) {
        return refused("has control characters");
    }
    if label.starts_with("schedule:") {
        return refused("is that of a schedule");
    }
    Ok(())
}

impl TokenRecord {
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        // One that is too far away for the clock never comes.
        UNIX_EPOCH.checked_add(Duration::from_millis(self.expires_at?))
    }
}

/// A lookup by the hash takes no time that depends on a secret: who does not know the token cannot choose its hash.
fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
