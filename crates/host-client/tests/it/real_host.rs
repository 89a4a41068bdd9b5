//! The client with a real host and its front, over proxies that cut streams and lose answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger_host::log::SqliteLog;
use outrigger_host::{HostPolicy, SessionHost, WorkspacePolicy};
use outrigger_host_client::{
    ApprovalFilter, ApprovalState, DiffFrom, Effect, Envelope, Error, Fork, HostClient, NewSchedule,
    NewSession, NewToken, NewWebhook, NewWorktree, OverviewItem, Prompt, SessionState, SessionStream,
    StreamItem, Token,
};
use outrigger_host_http::{Front, Scope, Tokens};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::rig::{PATIENCE, soon};

/// A host of simulated CLIs that do what their prompts say.
struct Real {
    host: SessionHost,
    url: String,
    token: String,
    front: JoinHandle<()>,
    place: tempfile::TempDir,
    _trees: tempfile::TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        self.front.abort();
    }
}

impl Real {
    async fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let cli = Simulated::agent(|agent| agent.directives());
        let config = place.path().join("claude").display().to_string();
        let options = cli.options().env("CLAUDE_CONFIG_DIR", config);
        let mut policy = HostPolicy::new(options, [place.path()]);
        policy.lease = false;
        let trees = tempfile::tempdir().unwrap();
        policy.workspaces = Some(WorkspacePolicy::new(trees.path()));
        let log = SqliteLog::open(place.path().join("host.db")).unwrap();
        let host = SessionHost::open(policy, log).await.unwrap();
        let tokens = Tokens::open(host.event_log()).await.unwrap();
        let (token, _) = tokens.issue("ada", Scope::ALL, None).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Front::new(host.clone(), tokens);
        let front = tokio::spawn(async move {
            served.serve(listener, std::future::pending()).await.unwrap();
        });
        let token = token.reveal().to_owned();
        Self {
            host,
            url,
            token,
            front,
            place,
            _trees: trees,
        }
    }

    fn client(&self, url: &str) -> HostClient {
        client(url, &self.token)
    }

    fn new_session(&self) -> NewSession {
        NewSession::new(self.place.path().to_str().unwrap())
    }

    /// A session with so many turns.
    async fn talked(&self, client: &HostClient, turns: usize) -> String {
        let session = client.create_session(&self.new_session()).await.unwrap().id;
        for turn in 0..turns {
            let prompt = Prompt::text(format!("%say Number {turn}."));
            client.send_prompt(&session, &prompt).await.unwrap();
        }
        self.until(client, &session, turns).await;
        session
    }

    /// Waits for the results of so many turns.
    async fn until(&self, client: &HostClient, session: &str, turns: usize) {
        let mut stream = client.stream(session, 0).unwrap();
        let mut seen = 0;
        while seen < turns {
            if let StreamItem::Event(event) = soon(stream.next()).await.unwrap()
                && event.kind() == "result"
            {
                seen += 1;
            }
        }
    }
}

fn client(url: &str, token: &str) -> HostClient {
    let builder = HostClient::builder(url).token(Token::new(token).unwrap());
    let builder = builder.backoff(Duration::from_millis(1), Duration::from_millis(1));
    builder.patience(PATIENCE).build().unwrap()
}

/// What a proxy does to what the host writes.
#[derive(Debug, Clone, Copy)]
enum Harm {
    /// Passes on the head, one durable event more, and so many bytes behind it, and cuts the connection.
    CutBehindEvent(usize),
    /// Does not pass on the first answer: its connection ends when the host has answered.
    LoseFirstAnswer,
}

/// A proxy in front of a host; returns its address, and how often it did harm.
async fn proxy(url: &str, harm: Harm) -> (String, Arc<AtomicUsize>) {
    let target = url.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let harmed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&harmed);
    let mut is_first = true;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&target).await.unwrap();
            let is_first = std::mem::take(&mut is_first);
            tokio::spawn(passed(client, server, harm, is_first, Arc::clone(&count)));
        }
    });
    (url, harmed)
}

/// Where the first durable event of these bytes ends.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    let find = |from: usize, what: &[u8]| {
        let found = bytes[from..]
            .windows(what.len())
            .position(|window| window == what)?;
        Some(from + found + what.len())
    };
    find(find(0, b"event: client_event")?, b"\n\n")
}

async fn passed(client: TcpStream, server: TcpStream, harm: Harm, is_first: bool, harmed: Arc<AtomicUsize>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asked = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut seen = Vec::new();
    let mut written = 0;
    while let Ok(1..) = from_server.read_buf(&mut seen).await {
        let cut = match harm {
            Harm::CutBehindEvent(more) => end_of_event(&seen).map(|end| end + more),
            Harm::LoseFirstAnswer => is_first.then_some(0),
        };
        let until = cut.unwrap_or(seen.len()).min(seen.len());
        if to_client.write_all(&seen[written..until]).await.is_err() {
            break;
        }
        written = until;
        if cut.is_some_and(|cut| cut <= seen.len()) {
            harmed.fetch_add(1, Ordering::SeqCst);
            break;
        }
    }
    asked.abort();
}

#[tokio::test]
async fn each_event_of_a_host_comes_once_although_a_proxy_cuts_behind_each() {
    let real = Real::start().await;
    let direct = real.client(&real.url);
    let session = soon(real.talked(&direct, 2)).await;
    // Exactly behind an event, and in the midst of the next one.
    for more in [0, 1, 30] {
        let (url, cuts) = proxy(&real.url, Harm::CutBehindEvent(more)).await;
        let cut = real.client(&url);
        let mut stream = cut.stream(&session, 0).unwrap();
        let head = direct.session(&session).await.unwrap().head_seq;
        // The log grows while it is read.
        direct
            .send_prompt(&session, &Prompt::text("%say Once more."))
            .await
            .unwrap();
        let mut seen = Vec::new();
        let mut has_ended = false;
        while !(has_ended && seen.len() as u64 >= direct.session(&session).await.unwrap().head_seq) {
            if let StreamItem::Event(event) = soon(stream.next()).await.unwrap() {
                has_ended |= event.sequence_num > head && event.kind() == "result";
                seen.push((event.sequence_num, event.event_id, event.payload.get().to_owned()));
            }
        }
        assert!(
            cuts.load(Ordering::SeqCst) as u64 >= head,
            "{cuts:?} cuts for {head} events"
        );
        // What pages say.
        let mut pages = Vec::new();
        loop {
            let page = direct
                .events(&session, pages.len() as u64, Some(3))
                .await
                .unwrap();
            let is_last = page.events.is_empty();
            pages.extend(
                page.events
                    .into_iter()
                    .map(|event| (event.sequence_num, event.event_id, event.payload.get().to_owned())),
            );
            if is_last {
                break;
            }
        }
        assert_eq!(seen, pages[..seen.len()], "{more} bytes more");
    }
    real.host.shutdown().await;
}

/// A client whose first answer is lost.
async fn unlucky(real: &Real) -> HostClient {
    let (url, _) = proxy(&real.url, Harm::LoseFirstAnswer).await;
    real.client(&url)
}

#[tokio::test]
async fn what_was_sent_counts_once_although_a_proxy_loses_answers() {
    let real = Real::start().await;
    let direct = real.client(&real.url);
    let created = unlucky(&real).await.create_session(&real.new_session()).await;
    let session = created.unwrap().id;
    assert_eq!(direct.all_sessions().await.unwrap().len(), 1, "created once");

    let mut sent = Vec::new();
    for number in 0..3 {
        let prompt = Prompt::text(format!("%say Number {number}."));
        let accepted = soon(unlucky(&real).await.send_prompt(&session, &prompt))
            .await
            .unwrap();
        assert_eq!(accepted.effect, Effect::Repeated);
        sent.push(prompt.uuid().to_string());
    }
    let page = direct.events(&session, 0, None).await.unwrap();
    let stored = page.events.into_iter();
    let stored = stored.filter(|event| event.kind() == "user" && event.actor.is_some());
    let stored: Vec<String> = stored.map(|event| event.event_id).collect();
    assert_eq!(stored, sent, "each once, in the order of the sends");

    // A decision whose answer is lost is ours all the same.
    soon(real.until(&direct, &session, 3)).await;
    let call = Prompt::text("%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}");
    direct.send_prompt(&session, &call).await.unwrap();
    let mut events = direct.stream(&session, 0).unwrap();
    until(&mut events, |event| event.kind() == "approval_opened").await;
    let open = direct.all_approvals(&ApprovalFilter::pending()).await.unwrap();
    let deny = json!({"behavior": "deny", "message": "no"}).into();
    let decided = soon(unlucky(&real).await.decide(&open[0].id, &deny))
        .await
        .unwrap();
    assert_eq!((&decided.id, decided.state), (&open[0].id, ApprovalState::Denied));
    until(&mut events, |event| {
        event.payload.get().contains("\"is_error\":true")
    })
    .await;
    // Somebody else's other decision is not.
    let allow = json!({"behavior": "allow"}).into();
    let late = soon(unlucky(&real).await.decide(&open[0].id, &allow))
        .await
        .unwrap_err();
    assert_eq!(late.decided_before().unwrap().decided_by.as_deref(), Some("ada"));
    let copy = soon(unlucky(&real).await.fork(&session, &Fork::default()))
        .await
        .unwrap();
    assert_eq!(direct.all_sessions().await.unwrap().len(), 2, "forked once");
    assert_ne!(copy.id, session);
    // What is gone was removed, by whatever try.
    direct.archive(&session).await.unwrap();
    soon(unlucky(&real).await.delete_session(&session)).await.unwrap();
    real.host.shutdown().await;
}

/// Waits for a durable event.
async fn until(events: &mut SessionStream, wanted: impl Fn(&Envelope) -> bool) {
    loop {
        if let StreamItem::Event(event) = soon(events.next()).await.unwrap()
            && wanted(&event)
        {
            return;
        }
    }
}

#[tokio::test]
async fn a_host_answers_what_the_client_asks() {
    let real = Real::start().await;
    let client_of_all = real.client(&real.url);
    let all = &client_of_all;
    all.health().await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(
            all.create_session(&real.new_session().title("one of three"))
                .await
                .unwrap()
                .id,
        );
    }
    ids.sort();
    let page = all.sessions(None, Some(2)).await.unwrap();
    assert_eq!((page.sessions.len(), page.next.as_ref()), (2, Some(&ids[1])));
    let page = all.sessions(page.next.as_deref(), Some(2)).await.unwrap();
    assert_eq!(
        (page.sessions[0].id.as_str(), page.next.as_ref()),
        (ids[2].as_str(), None)
    );
    let named = all.set_title(&ids[0], Some("the first")).await.unwrap();
    assert_eq!(
        (named.title.as_deref(), named.state),
        (Some("the first"), SessionState::Idle)
    );
    assert_eq!(all.set_title(&ids[0], None).await.unwrap().title, None);

    // The same id and the same values are the same session; others are refused.
    let mut again = real.new_session().title("named");
    again.id = Some("5e551011-0000-4000-8000-000000000001".to_owned());
    for _ in 0..2 {
        assert_eq!(Some(all.create_session(&again).await.unwrap().id), again.id);
    }
    let other = all
        .create_session(&again.clone().title("another"))
        .await
        .unwrap_err();
    assert_eq!(other.problem().unwrap().status, 409, "{other}");
    let outside = all.create_session(&NewSession::new("/")).await.unwrap_err();
    assert_eq!(outside.problem().unwrap().status, 403, "{outside}");

    let mut overview = all.overview();
    let mut told = 0;
    loop {
        match soon(overview.next()).await.unwrap() {
            OverviewItem::Session(_) => told += 1,
            OverviewItem::Synced => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(told, 4);
    all.send_prompt(&ids[1], &Prompt::text("%say Hi.")).await.unwrap();
    let changed = loop {
        if let OverviewItem::Session(hint) = soon(overview.next()).await.unwrap() {
            break hint.session_id;
        }
    };
    assert_eq!(changed, ids[1]);
    all.interrupt(&ids[1]).await.unwrap();
    all.stop(&ids[1]).await.unwrap();

    // A token that may only read, until it is revoked.
    let issued = all.issue_token(&NewToken::new("reader", ["read"])).await.unwrap();
    let reader = client(&real.url, &issued.token);
    let refused = reader
        .send_prompt(&ids[0], &Prompt::text("Hi."))
        .await
        .unwrap_err();
    assert!(refused.problem().unwrap().is("forbidden"), "{refused}");
    let mut stream = reader.stream(&ids[0], 0).unwrap();
    while !matches!(soon(stream.next()).await.unwrap(), StreamItem::Synced { .. }) {}
    let known = all.tokens().await.unwrap();
    assert!(
        known
            .iter()
            .any(|token| token.id == issued.id && token.scopes == ["read"] && !token.revoked)
    );
    all.revoke_token(&issued.id).await.unwrap();
    let ended = loop {
        match soon(stream.next()).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(ended.problem().unwrap().is("unauthorized"), "{ended}");

    // What the CLI stored.
    let none = all.transcript(&ids[0]).await.unwrap_err();
    assert!(none.problem().unwrap().is("not-found"), "{none}");
    let talked = soon(real.talked(all, 1)).await;
    let mut transcript = all.transcript(&talked).await.unwrap();
    let mut stored = Vec::new();
    while let Some(bytes) = soon(transcript.next()).await.unwrap() {
        stored.extend(bytes);
    }
    assert!(String::from_utf8(stored).unwrap().contains("%say Number 0."));
    let used = all.usage(Some(&talked)).await.unwrap().to_value().unwrap();
    assert_eq!(used["results"], 1, "{used}");
    assert!(all.usage(None).await.unwrap().to_value().unwrap()["results"].as_u64() >= Some(1));
    assert!(
        all.adoptable(None)
            .await
            .unwrap()
            .iter()
            .all(|left| left.id != talked)
    );
    let nothing = all
        .adopt("5e551011-0000-4000-8000-00000000000f", None)
        .await
        .unwrap_err();
    assert!(nothing.problem().unwrap().is("not-found"), "{nothing}");
    let rewound = all
        .rewind(&talked, "5e551011-0000-4000-8000-00000000000f", false)
        .await;
    assert!(rewound.unwrap_err().problem().is_some());
    std::fs::write(real.place.path().join("note.txt"), "text\n").unwrap();
    for from in [DiffFrom::Turn, DiffFrom::Start] {
        let diff = all.diff(&talked, from).await.unwrap();
        assert!(diff.diff.contains("+text") && !diff.truncated, "{diff:?}");
    }

    let ahead = all.events(&ids[0], 1000, None).await.unwrap_err();
    assert!(ahead.problem().unwrap().is("cursor-ahead"), "{ahead}");
    let mut stream = all.stream(&ids[0], 1000).unwrap();
    assert!(
        soon(stream.next())
            .await
            .unwrap_err()
            .problem()
            .unwrap()
            .is("cursor-ahead")
    );
    assert_eq!(all.archive(&ids[0]).await.unwrap().state, SessionState::Ended);
    let refused = all.send_prompt(&ids[0], &Prompt::text("Hi.")).await.unwrap_err();
    assert!(refused.problem().unwrap().is("archived"), "{refused}");
    all.delete_session(&ids[0]).await.unwrap();
    let gone = all.session(&ids[0]).await.unwrap_err();
    assert!(
        matches!(&gone, Error::Refused(problem) if problem.is("unknown-session")),
        "{gone}"
    );
    real.host.shutdown().await;
}

#[tokio::test]
async fn webhooks_schedules_and_what_is_said_of_the_host_itself() {
    let real = Real::start().await;
    let client = real.client(&real.url);
    soon(client.ready()).await.unwrap();
    assert!(soon(client.metrics()).await.unwrap().contains("outrigger"));
    let document = soon(client.openapi()).await.unwrap().to_value().unwrap();
    assert_eq!(document["openapi"], "3.1.0");

    let session = soon(client.create_session(&real.new_session())).await.unwrap();
    let new = NewSchedule::new(&session.id, "@daily", "Europe/Berlin", "Look around.");
    let added = soon(client.add_schedule(&new)).await.unwrap();
    assert_eq!(
        (&*added.time_zone, &*added.missed, added.enabled),
        ("Europe/Berlin", "skip", true)
    );
    let listed = soon(client.schedules()).await.unwrap();
    assert_eq!(
        listed.iter().map(|schedule| &*schedule.id).collect::<Vec<_>>(),
        [&*added.id]
    );
    soon(client.remove_schedule(&added.id)).await.unwrap();
    assert!(soon(client.schedules()).await.unwrap().is_empty());
    let wrong = NewSchedule::new(&session.id, "now and then", "UTC", "x");
    let error = soon(client.add_schedule(&wrong)).await.unwrap_err();
    assert!(
        error
            .problem()
            .is_some_and(|problem| problem.is("invalid-request")),
        "{error}"
    );

    // A front calls public addresses alone unless the operator says otherwise; nothing is sent to this one.
    let hook = NewWebhook::new("https://hooks.example.com/x", ["approval_opened"]);
    let added = soon(client.add_webhook(&hook)).await.unwrap();
    assert!(
        added.secret.starts_with("whsec_"),
        "a secret of Standard Webhooks"
    );
    let listed = soon(client.webhooks()).await.unwrap();
    assert_eq!(
        (listed.len(), &*listed[0].id, listed[0].content),
        (1, &*added.id, false)
    );
    assert_eq!(listed[0].events, ["approval_opened"]);
    soon(client.enable_webhook(&added.id)).await.unwrap();
    soon(client.remove_webhook(&added.id)).await.unwrap();
    assert!(soon(client.webhooks()).await.unwrap().is_empty());
    let error = soon(client.enable_webhook(&added.id)).await.unwrap_err();
    assert!(
        error.problem().is_some_and(|problem| problem.is("not-found")),
        "{error}"
    );

    // A process is there before the first prompt.
    soon(client.resume(&session.id)).await.unwrap();
    let mut events = client.stream(&session.id, 0).unwrap();
    loop {
        if let StreamItem::Event(event) = soon(events.next()).await.unwrap()
            && event.kind() == "process_started"
        {
            break;
        }
    }
    let error = soon(client.set_model(&session.id, Some("opus")))
        .await
        .unwrap_err();
    assert!(
        error.problem().is_some_and(|problem| problem.is("forbidden")),
        "{error}"
    );
    soon(client.set_permission_mode(&session.id, None)).await.unwrap();
}

#[tokio::test]
async fn the_worktree_of_an_archived_session_is_removed() {
    let real = Real::start().await;
    let client = real.client(&real.url);
    let repository = real.place.path().join("shop");
    std::fs::create_dir(&repository).unwrap();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(args);
        assert!(
            git.current_dir(&repository).output().unwrap().status.success(),
            "{args:?}"
        );
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message=one"]);
    let mut new = NewSession::new(repository.to_str().unwrap());
    new.worktree = Some(NewWorktree::default());
    let session = soon(client.create_session(&new)).await.unwrap();
    let refused = soon(client.remove_workspace(&session.id, false))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("archived"), "{refused}");

    soon(client.resume(&session.id)).await.unwrap();
    let mut events = client.stream(&session.id, 0).unwrap();
    loop {
        if let StreamItem::Event(event) = soon(events.next()).await.unwrap()
            && event.kind() == "process_started"
        {
            break;
        }
    }
    std::fs::write(std::path::Path::new(&session.cwd).join("made"), "x").unwrap();
    soon(client.archive(&session.id)).await.unwrap();
    let kept = soon(client.remove_workspace(&session.id, false))
        .await
        .unwrap_err();
    assert!(
        kept.problem().is_some_and(|problem| problem.is("workspace-kept")),
        "{kept}"
    );
    assert!(std::path::Path::new(&session.cwd).exists());
    soon(client.remove_workspace(&session.id, true)).await.unwrap();
    assert!(!std::path::Path::new(&session.cwd).exists());
}

#[tokio::test]
async fn a_token_that_may_not_read_sends_and_decides_all_the_same() {
    let real = Real::start().await;
    let reader = real.client(&real.url);
    let mut blind = Vec::new();
    for scope in ["send", "approve"] {
        let new = NewToken::new(scope, [scope]);
        let issued = reader.issue_token(&new).await.unwrap();
        blind.push(client(&real.url, &issued.token));
    }
    let [sender, approver] = &blind[..] else {
        panic!("two clients")
    };
    let mut new = real.new_session();
    new.title = Some("Roof".to_owned());
    let session = sender.create_session(&new).await.unwrap();
    assert_eq!((&*session.cwd, session.state.as_str()), ("", ""));
    assert_eq!(session.title, None);
    let asks = Prompt::text("%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}");
    sender.send_prompt(&session.id, &asks).await.unwrap();
    let refused = sender.events(&session.id, 0, None).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().status, 403);
    let mut stream = reader.stream(&session.id, 0).unwrap();
    let approval = loop {
        if let StreamItem::Event(event) = soon(stream.next()).await.unwrap()
            && event.kind() == "approval_opened"
        {
            break event.payload.to_value().unwrap()["approval_id"]
                .as_str()
                .unwrap()
                .to_owned();
        }
    };
    let deny = json!({"behavior": "deny", "message": "no"}).into();
    let decided = approver.decide(&approval, &deny).await.unwrap();
    assert_eq!(decided.state, ApprovalState::Denied);
    assert_eq!(
        (decided.tool_name.as_deref(), decided.request.get()),
        (None, "null")
    );
    let late = approver
        .decide(&approval, &json!({"behavior": "allow"}).into())
        .await;
    let before = late.unwrap_err().decided_before().unwrap();
    assert_eq!(
        (before.state, before.decided_by.as_deref()),
        (ApprovalState::Denied, Some("approve"))
    );
    let stopped = sender.stop(&session.id).await.unwrap();
    assert_eq!(stopped.id, session.id);
}
