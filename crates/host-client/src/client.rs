//! The client: what a program asks a host for.

mod hooks;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderValue;
use outrigger_json::RawJson;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use uuid::Uuid;

use crate::address::{Address, Token, segment};
use crate::backoff::Backoff;
use crate::document::{
    Accepted, AdoptableSession, Approval, ApprovalPage, Diff, EventPage, IssuedToken, Session, SessionPage,
    TokenRecord,
};
use crate::error::{Error, Result};
use crate::exchange::{Bounds, Exchange, Failed, HostRequest, Repeat};
use crate::overview::OverviewStream;
use crate::request::{ApprovalFilter, DiffFrom, Fork, NewSession, NewToken, Prompt, query};
use crate::stream::SessionStream;
use crate::transcript::Transcript;

/// What a client is made with.
#[derive(Debug, Clone)]
#[must_use = "it is no client before `build`"]
pub struct ClientBuilder {
    address: String,
    token: Option<Token>,
    plain_http: bool,
    authorities: Vec<CertificateDer<'static>>,
    bounds: Bounds,
}

impl ClientBuilder {
    /// Sets the token. Without one, only [`exchange_code`](HostClient::exchange_code) is of use.
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Allows plain HTTP to addresses that are not of the loopback, for networks that are private all the way. The token goes over them in plain text.
    pub fn plain_http(mut self, allowed: bool) -> Self {
        self.plain_http = allowed;
        self
    }

    /// Trusts these authorities beside those of the system, such as one of a company: certificates in PEM.
    ///
    /// # Errors
    /// When the text has no certificate, or one that cannot be read.
    pub fn authorities(mut self, pem: &[u8]) -> Result<Self> {
        let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let read = read.map_err(|error| Error::Invalid(format!("certificates in PEM: {error}")))?;
        if read.is_empty() {
            return Err(Error::Invalid("there is no certificate in PEM".to_owned()));
        }
        self.authorities.extend(read);
        Ok(self)
    }

    /// The scheme, the host and the port of the address, in one form: `https://agents.example.com:443`. What a token is stored under, so that it goes
    /// to the host that issued it and to no other.
    ///
    /// # Errors
    /// When the address is none of a host.
    pub fn origin(&self) -> Result<String> {
        Ok(Address::read(&self.address, self.plain_http)?.origin().to_owned())
    }

    /// How long one try of a request may take. 30 s by default. Of a stream and a transcript, how long their heads may take.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.bounds.deadline = deadline;
        self
    }

    /// How long a request is tried again while the host is away or busy, from its beginning. 30 s by default; 0 tries once. No new try begins later.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.bounds.patience = patience;
        self
    }

    /// The delay before the second try, and the longest one; it doubles in between. 250 ms and 15 s by default. The host may ask for more
    /// (`Retry-After`), up to 10 minutes.
    pub fn backoff(mut self, least: Duration, most: Duration) -> Self {
        self.bounds.backoff = Backoff {
            least,
            most: most.max(least),
        };
        self
    }

    /// How long a stream may be silent before its connection counts as broken. 60 s by default; a host writes a comment every 15 s.
    pub fn silence(mut self, silence: Duration) -> Self {
        self.bounds.silence = silence;
        self
    }

    /// The most bytes of an answer, 64 MiB by default, and of an event of a stream, 257 MiB by default: a frame of the CLI has up to 256 MiB.
    pub fn limits(mut self, answer_bytes: usize, event_bytes: usize) -> Self {
        self.bounds.answer_bytes = answer_bytes;
        self.bounds.event_bytes = event_bytes;
        self
    }

    /// The client. It connects on its first request.
    ///
    /// # Errors
    /// When the address is none, or no certificates of authorities are found.
    pub fn build(self) -> Result<HostClient> {
        let address = Address::read(&self.address, self.plain_http)?;
        let exchange = Exchange::new(address, self.token.as_ref(), &self.authorities, self.bounds)?;
        Ok(HostClient(Arc::new(exchange)))
    }
}

/// A client of a host. Cheap to clone; the clones share their connections. It needs a tokio runtime with time and I/O.
///
/// # Tries
/// A request that changes nothing, or whose repetition the host knows, is sent again when the host is busy or away, or the answer is lost, for as long
/// as the [`patience`](ClientBuilder::patience) lasts. Other requests are sent again only when they were surely not carried out. A host that was never
/// reached is an error at once.
///
/// # Cancel safety
/// Each method may be dropped. What it sent may have been carried out; where the docs speak of a repetition, that tells.
#[derive(Debug, Clone)]
pub struct HostClient(Arc<Exchange>);

impl HostClient {
    /// A client of the host at this address, such as `https://agents.example.com`. A path in it is put before the routes.
    pub fn builder(address: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            address: address.into(),
            token: None,
            plain_http: false,
            authorities: Vec::new(),
            bounds: Bounds {
                deadline: Duration::from_secs(30),
                patience: Duration::from_secs(30),
                answer_bytes: 64 << 20,
                event_bytes: 257 << 20,
                silence: Duration::from_secs(60),
                backoff: Backoff::default(),
            },
        }
    }

    /// The address of the host.
    pub fn address(&self) -> &str {
        self.0.host()
    }

    async fn fetch<T: DeserializeOwned>(&self, request: HostRequest) -> Result<T> {
        self.try_fetch(request).await.map_err(Error::from)
    }

    async fn try_fetch<T: DeserializeOwned>(&self, request: HostRequest) -> Result<T, Failed> {
        let answer = self.0.send(&request).await?;
        serde_json::from_slice(&answer.body).map_err(|error| Failed {
            error: Error::Unexpected(error.to_string()),
            may_be_done: true,
        })
    }

    async fn execute(&self, request: HostRequest) -> Result<()> {
        self.0.send(&request).await.map(drop).map_err(Error::from)
    }

    /// Creates a session. The host knows a repetition by a random `Idempotency-Key`, or by [`NewSession::id`], which a program sets that wants to be sure
    /// over its own end.
    ///
    /// # Errors
    /// When the operator's policy does not allow it, or the id is that of another session.
    pub async fn create_session(&self, new: &NewSession) -> Result<Session> {
        let key = HeaderValue::try_from(Uuid::new_v4().to_string());
        let key = key.map_err(|error| Error::Invalid(error.to_string()))?;
        let mut request =
            HostRequest::new(Method::POST, "/v1/sessions".to_owned(), Repeat::Safe).body(encoded(new)?);
        // A host takes only one of both.
        request.key = new.id.is_none().then_some(key);
        self.fetch(request).await
    }

    /// A page of sessions, in the order of their ids: those after an id, up to `limit`, or as many as the host gives at once.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn sessions(&self, after: Option<&str>, limit: Option<usize>) -> Result<SessionPage> {
        let limit = limit.map(|limit| limit.to_string());
        let query = query([("after", after), ("limit", limit.as_deref())]);
        self.fetch(HostRequest::get(format!("/v1/sessions{query}"))).await
    }

    /// All sessions, by pages.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn all_sessions(&self) -> Result<Vec<Session>> {
        let mut all = Vec::new();
        let mut asked = HashSet::new();
        let mut after = None;
        loop {
            let page = self.sessions(after.as_deref(), None).await?;
            all.extend(page.sessions);
            match page.next {
                // A host that names the same pages for ever must not be asked for ever.
                Some(next) if asked.insert(next.clone()) => after = Some(next),
                _ => return Ok(all),
            }
        }
    }

    /// A session.
    ///
    /// # Errors
    /// When there is none, or the host refuses or is away.
    pub async fn session(&self, id: &str) -> Result<Session> {
        self.fetch(HostRequest::get(session_path(id, "")?)).await
    }

    /// Sets the title of a session, or removes it.
    ///
    /// # Errors
    /// When there is no such session, or the host refuses or is away.
    pub async fn set_title(&self, id: &str, title: Option<&str>) -> Result<Session> {
        self.change(id, "title", title).await
    }

    /// Sets the model of a session, also of its process; without one, the policy's holds from the next process on.
    ///
    /// # Errors
    /// When the operator does not let clients choose it, there is no such session, or the host refuses or is away.
    pub async fn set_model(&self, id: &str, model: Option<&str>) -> Result<Session> {
        self.change(id, "model", model).await
    }

    /// Sets the permission mode of a session, also of its process; without one, the policy's holds from the next process on.
    ///
    /// # Errors
    /// When the operator does not let clients choose it, there is no such session, or the host refuses or is away.
    pub async fn set_permission_mode(&self, id: &str, mode: Option<&str>) -> Result<Session> {
        self.change(id, "permission_mode", mode).await
    }

    async fn change(&self, id: &str, name: &str, value: Option<&str>) -> Result<Session> {
        let request = HostRequest::new(Method::PATCH, session_path(id, "")?, Repeat::Safe);
        self.fetch(request.body(encoded(&BTreeMap::from([(name, value)]))?))
            .await
    }

    /// Removes a session with its events, and ends its process. The CLI's transcript stays.
    ///
    /// # Errors
    /// When there is no such session, or the host refuses or is away.
    pub async fn delete_session(&self, id: &str) -> Result<()> {
        self.deleted(session_path(id, "")?).await
    }

    /// What is not there after a lost answer is what this removed.
    async fn deleted(&self, path: String) -> Result<()> {
        let request = HostRequest::new(Method::DELETE, path, Repeat::Safe);
        match self.0.send(&request).await {
            Ok(_) => Ok(()),
            Err(Failed { error, may_be_done })
                if may_be_done && error.problem().is_some_and(|problem| problem.status == 404) =>
            {
                Ok(())
            }
            Err(failed) => Err(failed.error),
        }
    }

    /// Sends a prompt. When this returns, it is durable. The same prompt may be sent again at any time; it is stored once.
    ///
    /// # Errors
    /// When the session takes no prompts, or the host refuses or is away. If the answer is lost for good ([`Error::may_be_done`]), send the same prompt
    /// again to know.
    pub async fn send_prompt(&self, session: &str, prompt: &Prompt) -> Result<Accepted> {
        let frame = prompt
            .frame()
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let mut accepted = self.send(session, &[frame]).await?;
        accepted
            .pop()
            .ok_or_else(|| Error::Unexpected("it does not say what became of the prompt".to_owned()))
    }

    /// Sends frames, all or nothing: `user` with a `uuid`, `control_request`, `control_response`, `control_cancel_request`. When this returns,
    /// they are durable. Frames without an id, by which the host knows a repetition, are rejected by it.
    ///
    /// # Errors
    /// As [`send_prompt`](Self::send_prompt).
    pub async fn send(&self, session: &str, frames: &[RawJson]) -> Result<Vec<Accepted>> {
        #[derive(Serialize)]
        struct Events<'a> {
            events: Vec<Event<'a>>,
        }
        #[derive(Serialize)]
        struct Event<'a> {
            payload: &'a RawJson,
        }
        #[derive(Deserialize)]
        struct AcceptedEvents {
            events: Vec<Accepted>,
        }
        let events = frames.iter().map(|payload| Event { payload }).collect();
        let request = HostRequest::new(Method::POST, session_path(session, "/events")?, Repeat::Safe);
        let answer: AcceptedEvents = self.fetch(request.body(encoded(&Events { events })?)).await?;
        if answer.events.len() != frames.len() {
            return Err(Error::Unexpected(
                "it does not say what became of each frame".to_owned(),
            ));
        }
        Ok(answer.events)
    }

    /// A page of the durable events of a session: those after a sequence number, up to `limit`, or as many as the host gives at once.
    ///
    /// # Errors
    /// When there is no such session, the cursor is beyond its newest event, the page is larger than the [limit](ClientBuilder::limits), or the host
    /// refuses or is away.
    pub async fn events(&self, session: &str, after: u64, limit: Option<usize>) -> Result<EventPage> {
        let (after, limit) = (after.to_string(), limit.map(|limit| limit.to_string()));
        let query = query([("after", Some(&*after)), ("limit", limit.as_deref())]);
        let path = session_path(session, "/events")?;
        self.fetch(HostRequest::get(path + &query)).await
    }

    /// A page of the events of some types, such as `user` and `result`, after a sequence number. It may be empty although more follow: the next page begins
    /// after [`EventPage::cursor`], until that is [`EventPage::head_seq`].
    ///
    /// # Errors
    /// As [`events`](Self::events), and when no type is named, or more than the host takes.
    pub async fn events_of(
        &self,
        session: &str,
        types: &[&str],
        after: u64,
        limit: Option<usize>,
    ) -> Result<EventPage> {
        let (after, limit) = (after.to_string(), limit.map(|limit| limit.to_string()));
        let types = types.join(",");
        let query = query([
            ("after", Some(&*after)),
            ("limit", limit.as_deref()),
            ("types", Some(&*types)),
        ]);
        let path = session_path(session, "/events")?;
        self.fetch(HostRequest::get(path + &query)).await
    }

    /// The events of a session after a sequence number, as they come. It connects on its first [`next`](SessionStream::next).
    ///
    /// # Errors
    /// When the id is none that a session could have.
    pub fn stream(&self, session: &str, after: u64) -> Result<SessionStream> {
        let path = session_path(session, "/events/stream")?;
        Ok(SessionStream::new(Arc::clone(&self.0), path, after))
    }

    /// What all sessions do, as it changes.
    pub fn overview(&self) -> OverviewStream {
        OverviewStream::new(Arc::clone(&self.0))
    }

    async fn act(&self, session: &str, action: &str, repeat: Repeat) -> Result<Session> {
        let request = HostRequest::new(Method::POST, session_path(session, action)?, repeat);
        self.fetch(request.body("{}")).await
    }

    /// Interrupts the turn that runs. It is not sent again when its answer is lost: it could hit the next turn.
    ///
    /// # Errors
    /// When there is no such session, or the host refuses or is away.
    pub async fn interrupt(&self, session: &str) -> Result<Session> {
        self.act(session, "/interrupt", Repeat::Unsafe).await
    }

    /// Ends the process of a session. Its turn is interrupted; the next prompt starts another process. It is not sent again when its answer
    /// is lost.
    ///
    /// # Errors
    /// When there is no such session, or the host refuses or is away.
    pub async fn stop(&self, session: &str) -> Result<Session> {
        self.act(session, "/stop", Repeat::Unsafe).await
    }

    /// Starts a process for a session that has none, so that the next prompt does not wait for it.
    ///
    /// # Errors
    /// When there is no such session, it was archived, or the host refuses or is away.
    pub async fn resume(&self, session: &str) -> Result<Session> {
        self.act(session, "/resume", Repeat::Safe).await
    }

    /// Ends a session for good: it takes no prompts any more, and can be read.
    ///
    /// # Errors
    /// When there is no such session, or the host refuses or is away.
    pub async fn archive(&self, session: &str) -> Result<Session> {
        self.act(session, "/archive", Repeat::Safe).await
    }

    /// Makes a new session that begins with the conversation of this one. The host knows a repetition by the id of the new session.
    ///
    /// # Errors
    /// When there is no such session, the CLI has stored nothing of it yet, a turn runs in it, or the host refuses or is away.
    pub async fn fork(&self, session: &str, fork: &Fork) -> Result<Session> {
        let mut fork = fork.clone();
        fork.id.get_or_insert_with(|| Uuid::new_v4().to_string());
        let request = HostRequest::new(Method::POST, session_path(session, "/fork")?, Repeat::Safe);
        self.fetch(request.body(encoded(&fork)?)).await
    }

    /// Takes files back to what they were before a prompt. Returns the CLI's answer; with `dry_run` nothing is changed. It is not sent again when its
    /// answer is lost.
    ///
    /// # Errors
    /// When there is no such session or prompt, or the host refuses or is away.
    pub async fn rewind(&self, session: &str, prompt: &str, dry_run: bool) -> Result<RawJson> {
        #[derive(Serialize)]
        struct Rewind<'a> {
            event_id: &'a str,
            dry_run: bool,
        }
        let rewind = Rewind {
            event_id: prompt,
            dry_run,
        };
        let request = HostRequest::new(Method::POST, session_path(session, "/rewind")?, Repeat::Unsafe);
        self.fetch(request.body(encoded(&rewind)?)).await
    }

    /// The stored session behind a session. Tried once.
    ///
    /// # Errors
    /// When there is no such session, the CLI has stored nothing yet, or the host refuses or is away.
    pub async fn transcript(&self, session: &str) -> Result<Transcript> {
        let request = HostRequest::get(session_path(session, "/transcript")?);
        let accept = HeaderValue::from_static("application/x-ndjson, application/problem+json");
        let deadline = self.0.bounds.deadline;
        let response = timeout(deadline, self.0.open(&request, accept)).await;
        let response = response.map_err(|_| Error::TimedOut(deadline))??;
        Ok(Transcript::new(response.into_body(), self.0.bounds.silence))
    }

    /// What has changed in the working directory of a session.
    ///
    /// # Errors
    /// When there is no such session, the directory is in no git repository, or the host refuses or is away.
    pub async fn diff(&self, session: &str, from: DiffFrom) -> Result<Diff> {
        let path = session_path(session, "/diff")?;
        self.fetch(HostRequest::get(format!("{path}?from={}", from.as_str())))
            .await
    }

    /// Removes the git worktree that the host has made for a session, which has to be archived. With `force` its changes and commits are lost; a branch with commits stays.
    ///
    /// # Errors
    /// When there is no such session, it is not archived, the worktree is kept for what is in it (`workspace-kept`), or the host refuses or is away.
    pub async fn remove_workspace(&self, session: &str, force: bool) -> Result<()> {
        let path = session_path(session, "/workspace")?;
        self.deleted(format!("{path}?force={force}")).await
    }

    /// What a session used, as the host counts it; without a session, what all of them used.
    ///
    /// # Errors
    /// When there is no such session, or the host refuses or is away.
    pub async fn usage(&self, session: Option<&str>) -> Result<RawJson> {
        let path = match session {
            Some(session) => session_path(session, "/usage")?,
            None => "/v1/usage".to_owned(),
        };
        self.fetch(HostRequest::get(path)).await
    }

    /// Who did what with the host, the newest first, from before the number `before` on; a page, as the host has it. Needs the scope `admin`.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn audit(&self, before: Option<u64>) -> Result<RawJson> {
        let query = before.map_or_else(String::new, |before| format!("?before={before}"));
        self.fetch(HostRequest::get(format!("/v1/audit{query}"))).await
    }

    /// A page of approvals, the oldest first.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn approvals(&self, filter: &ApprovalFilter) -> Result<ApprovalPage> {
        self.fetch(HostRequest::get(format!("/v1/approvals{}", filter.query())))
            .await
    }

    /// All approvals of a filter, by pages.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn all_approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>> {
        let mut filter = filter.clone();
        let mut all = Vec::new();
        let mut asked = HashSet::new();
        loop {
            let page = self.approvals(&filter).await?;
            all.extend(page.approvals);
            match page.next {
                Some(next) if asked.insert(next) => filter.after = Some(next),
                _ => return Ok(all),
            }
        }
    }

    /// An approval.
    ///
    /// # Errors
    /// When there is none, or the host refuses or is away.
    pub async fn approval(&self, id: &str) -> Result<Approval> {
        self.fetch(HostRequest::get(approval_path(id, "")?)).await
    }

    /// Decides about an approval; the first decision counts. `answer` is what the CLI gets: for tools, questions and plans
    /// `{"behavior": "allow" | "deny", …}`, for forms `{"action": …}`.
    ///
    /// When the answer of the host is lost, the decision is sent again. If the host then says that it came too late, and what was decided is this very
    /// answer, it counts as this client's.
    ///
    /// # Errors
    /// When somebody else decided first ([`Error::decided_before`]), when the answer is none to such a question, or the host refuses or is away.
    pub async fn decide(&self, id: &str, answer: &RawJson) -> Result<Approval> {
        let request = HostRequest::new(Method::POST, approval_path(id, "/decision")?, Repeat::Safe);
        let decided = self.try_fetch(request.body(answer.get().to_owned())).await;
        decided.or_else(|Failed { error, may_be_done }| {
            let before = if may_be_done { error.decided_before() } else { None };
            let is_ours = |approval: &Approval| {
                let decision = approval.decision.as_ref();
                decision.is_some_and(|decision| is_same(decision, answer))
            };
            before.filter(is_ours).ok_or(error)
        })
    }

    /// The sessions that the CLI left on the machine of the host, in a directory or in all.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn adoptable(&self, cwd: Option<&str>) -> Result<Vec<AdoptableSession>> {
        #[derive(Deserialize)]
        struct AdoptableSessions {
            sessions: Vec<AdoptableSession>,
        }
        let path = format!("/v1/adoptable{}", query([("cwd", cwd)]));
        let answer: AdoptableSessions = self.fetch(HostRequest::get(path)).await?;
        Ok(answer.sessions)
    }

    /// Makes a session that the CLI left a session of the host. It is not sent again when its answer is lost.
    ///
    /// # Errors
    /// When there is none, somebody else drives it, or the host refuses or is away.
    pub async fn adopt(&self, session: &str, cwd: Option<&str>) -> Result<Session> {
        #[derive(Serialize)]
        struct Adoption<'a> {
            session_id: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            cwd: Option<&'a str>,
        }
        let adoption = Adoption {
            session_id: session,
            cwd,
        };
        let request = HostRequest::new(Method::POST, "/v1/adoptions".to_owned(), Repeat::Unsafe);
        self.fetch(request.body(encoded(&adoption)?)).await
    }

    /// The tokens that were issued.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        #[derive(Deserialize)]
        struct TokenList {
            tokens: Vec<TokenRecord>,
        }
        let answer: TokenList = self.fetch(HostRequest::get("/v1/tokens".to_owned())).await?;
        Ok(answer.tokens)
    }

    /// Issues a token. It is not sent again when its answer is lost.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn issue_token(&self, new: &NewToken) -> Result<IssuedToken> {
        let request = HostRequest::new(Method::POST, "/v1/tokens".to_owned(), Repeat::Unsafe);
        self.fetch(request.body(encoded(new)?)).await
    }

    /// Revokes a token, and ends its streams.
    ///
    /// # Errors
    /// When there is none, or the host refuses or is away.
    pub async fn revoke_token(&self, id: &str) -> Result<()> {
        self.deleted(format!("/v1/tokens/{}", segment(id)?)).await
    }

    /// Exchanges the code that a host prints at its first start for a token with all scopes. It needs no token, and works once.
    ///
    /// # Errors
    /// When the code is not valid any more, or the host is away. When the answer is lost, so is the token: the host has to print another code.
    pub async fn exchange_code(&self, code: &str) -> Result<IssuedToken> {
        #[derive(Serialize)]
        struct Code<'a> {
            code: &'a str,
        }
        let request =
            HostRequest::new(Method::POST, "/v1/tokens/exchange".to_owned(), Repeat::Unsafe).anonymous();
        self.fetch(request.body(encoded(&Code { code })?)).await
    }

    /// Whether the host accepts connections (`/healthz`). It needs no token.
    ///
    /// # Errors
    /// When it does not, within the patience.
    pub async fn health(&self) -> Result<()> {
        self.execute(HostRequest::open("/healthz")).await
    }

    /// Whether the host can read its log (`/readyz`). It needs no token.
    ///
    /// # Errors
    /// When it cannot, within the patience.
    pub async fn ready(&self) -> Result<()> {
        self.execute(HostRequest::open("/readyz")).await
    }

    /// The metrics of the host, as Prometheus reads them.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn metrics(&self) -> Result<String> {
        let answer = self.0.send(&HostRequest::get("/metrics".to_owned())).await?;
        let text = String::from_utf8(answer.body.into());
        text.map_err(|_| Error::Unexpected("metrics that are not UTF-8".to_owned()))
    }

    /// What the host serves, as an OpenAPI document. It needs no token.
    ///
    /// # Errors
    /// When the host is away.
    pub async fn openapi(&self) -> Result<RawJson> {
        self.fetch(HostRequest::open("/openapi.json")).await
    }
}

fn session_path(id: &str, rest: &str) -> Result<String> {
    Ok(format!("/v1/sessions/{}{rest}", segment(id)?))
}

fn approval_path(id: &str, rest: &str) -> Result<String> {
    Ok(format!("/v1/approvals/{}{rest}", segment(id)?))
}

fn encoded(value: &impl Serialize) -> Result<Bytes> {
    let bytes = serde_json::to_vec(value);
    bytes
        .map(Bytes::from)
        .map_err(|error| Error::Invalid(error.to_string()))
}

/// Whether two texts are of the same value. What cannot be compared is not the same.
fn is_same(one: &RawJson, other: &RawJson) -> bool {
    match (one.to_value(), other.to_value()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
