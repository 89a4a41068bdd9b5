//! A host that is killed by SIGKILL at random moments.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::sessions::lease::cli_runs_in;
use outrigger::testing::{RealCli, Simulated};
use outrigger_host::log::SqliteLog;
use outrigger_host::{Approval, ApprovalState, Delivered, HostError, HostPolicy, NewSession, SessionHost};
use serde_json::json;
use uuid::Uuid;

use crate::clock;
use crate::spares::counted;

/// Names the directory of the host, in the process that is one.
const PLACE: &str = "OUTRIGGER_HOST_KILLS_PLACE";

/// The cursor from which that process emits events.
const CURSOR: &str = "OUTRIGGER_HOST_KILLS_CURSOR";

/// Names the session, if it is known by now.
const SESSION: &str = "OUTRIGGER_HOST_KILLS_SESSION";

/// Is set if the CLI is the real one.
const REAL: &str = "OUTRIGGER_HOST_KILLS_WITH_REAL_CLI";

/// Is set if new sessions take spare processes.
const SPARES: &str = "OUTRIGGER_HOST_KILLS_WITH_SPARES";

/// Is set to how many hours the clock is behind.
const CLOCK: &str = "OUTRIGGER_HOST_KILLS_CLOCK";

/// After how many kills the next session begins. A session that gets longer and longer takes the CLI longer to resume.
const KILLS_OF_A_SESSION: u64 = 50;

/// The same with spares, which only the first process of a session can be.
const KILLS_WITH_A_SPARE: u64 = 3;

/// How many of the newest prompts are sent again although they were acknowledged, now and then.
const RECENT: usize = 20;

/// Longer than a CLI takes to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than a host waits for anything.
const STUCK: Duration = Duration::from_secs(300);

/// Lines of a process that is a host begin with this; libtest writes others.
const MARK: &str = "@@";

/// The host, and what has to live as long.
async fn host(place: &Path) -> (SessionHost, Option<RealCli>) {
    let real = match std::env::var_os(REAL) {
        Some(_) => Some(RealCli::directives().await.unwrap()),
        None => None,
    };
    let options = match &real {
        Some(real) => real.options(),
        None => {
            let cli = Simulated::agent(|agent| agent.directives().real_tools(true));
            // The SDK does not know the version of a CLI in memory.
            cli.options().await_initialize(true)
        }
    };
    // Sessions are stored where the next process finds them.
    let options = options.env("CLAUDE_CONFIG_DIR", place.join("claude").display().to_string());
    let mut policy = HostPolicy::new(options, [place]);
    policy.spares = usize::from(std::env::var_os(SPARES).is_some());
    policy.lease = real.is_some();
    policy.deferred = Some("Bash".to_owned());
    // Longer than anything waits, and shorter than what the clock is set back.
    policy.approvals_expire = Some(Duration::from_secs(1800));
    let log = SqliteLog::open(place.join("host.db")).unwrap();
    (SessionHost::open(policy, log).await.unwrap(), real)
}

/// Is the host that the test kills; nothing, if it is run as a test.
#[test]
fn process() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let after = std::env::var(CURSOR).unwrap().parse().unwrap();
    let hours: Option<u64> = set(CLOCK);
    clock::set_back(Duration::from_secs(3600 * hours.unwrap_or_default()));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let (host, _real) = host(&place).await;
        let say: fn(String) = |text: String| {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{MARK}{text}").unwrap();
            out.flush().unwrap();
        };
        let key = SessionId::new(&std::env::var(SESSION).unwrap()).unwrap();
        let mut new = NewSession::new(&place);
        match std::env::var_os(SPARES) {
            Some(_) => {
                // The first host finds a spare, and later ones the session.
                counted(&host, |counts| counts.ready == 1).await;
                new.key = Some(key);
            }
            None => new.id = Some(key),
        }
        let id = host.create(new, "test").await.unwrap().id;
        say(format!("session {id}"));
        let mut events = host.subscribe(&id, after).await.unwrap();
        let pending = host
            .approvals(Some(&id), Some(ApprovalState::Pending), None, 1000)
            .await
            .unwrap();
        for approval in pending {
            tokio::spawn(decide(host.clone(), approval.id, say));
        }
        let decider = host.clone();
        tokio::spawn(async move {
            loop {
                if let Delivered::Event(event) = events.next().await.unwrap() {
                    let payload = event.payload.to_value().unwrap();
                    let status = payload["status"].as_str().unwrap_or_default();
                    let about = payload["event_id"].as_str().or(payload["uuid"].as_str()).unwrap_or_default();
                    say(format!("event {} {} {about} {status}", event.seq, event.kind));
                    if event.kind == "approval_opened" {
                        let approval = payload["approval_id"].as_str().unwrap().parse().unwrap();
                        tokio::spawn(decide(decider.clone(), approval, say));
                    }
                }
            }
        });
        let (line, mut lines) = tokio::sync::mpsc::channel(64);
        std::thread::spawn(move || {
            for text in std::io::stdin().lock().lines().map_while(Result::ok) {
                if line.blocking_send(text).is_err() {
                    return;
                }
            }
        });
        while let Some(text) = lines.recv().await {
            let (uuid, prompt) = text.split_once(' ').unwrap();
            let frame: RawJson =
                json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": prompt.replace("\\n", "\n")}}).into();
            let accepted = host.send(&id, frame, "test").await.unwrap();
            if hours.is_some() {
                // While turns run and questions wait, too.
                clock::set_back(Duration::from_secs(60));
            }
            say(format!("accepted {uuid} {}", accepted.seq));
        }
    });
}

/// Decides, and tells when the decision was acknowledged.
async fn decide(host: SessionHost, id: Uuid, say: fn(String)) {
    let answer = match id.as_bytes()[0] % 4 {
        0 => json!({"behavior": "deny", "message": "no"}),
        _ => json!({"behavior": "allow"}),
    };
    match host.decide(id, answer.into(), "test").await {
        Ok(approval) => say(format!("decided {id} {}", approval.state.as_str())),
        Err(HostError::TooLate(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// A third of the prompts asks before it leaves its name in a file.
fn text_of(uuid: &str) -> String {
    match Uuid::parse_str(uuid).unwrap().as_bytes()[0] % 3 {
        0 => {
            let call = json!({"command": format!("echo {uuid} >> made"), "description": "Leave a name"});
            format!("%tool Bash {call}\\n%say {uuid}")
        }
        _ => format!("%delay 5\\n%say {uuid}"),
    }
}

/// What the hosts have.
#[derive(Clone, Copy, Default)]
struct With {
    real_cli: bool,
    spares: bool,
    /// Whether the clock of each host is an hour behind that of the one before.
    clock: bool,
}

fn start(place: &Path, session: &SessionId, life: u64, cursor: u64, with: With) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "kills::process", "--nocapture"])
        .env(PLACE, place)
        .env(SESSION, session.as_str())
        .env(CURSOR, cursor.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    if with.real_cli {
        command.env(REAL, "1");
    }
    if with.spares {
        command.env(SPARES, "1");
    }
    if with.clock {
        command.env(CLOCK, life.to_string());
    }
    command.spawn().unwrap()
}

/// What clients have seen, over all processes.
#[derive(Default)]
struct Seen {
    /// The session.
    session: Option<SessionId>,
    /// Events by number: kind, what they are about, status.
    events: BTreeMap<u64, String>,
    /// Prompts that were acknowledged, with their numbers.
    accepted: BTreeMap<String, u64>,
    /// Prompts of which it is known how they ended, and how.
    ended: BTreeMap<String, String>,
    /// Decisions that were acknowledged.
    decided: BTreeMap<Uuid, String>,
}

impl Seen {
    fn cursor(&self) -> u64 {
        self.events.keys().next_back().copied().unwrap_or_default()
    }

    fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["event", seq, kind, about, status] => {
                let seq: u64 = seq.parse().unwrap();
                assert_eq!(seq, self.cursor() + 1, "each event once and in order");
                self.events.insert(seq, format!("{kind} {about} {status}"));
                if kind == "delivery_update" && ["processed", "interrupted"].contains(&status) {
                    let before = self.ended.insert(about.to_owned(), status.to_owned());
                    assert_eq!(before, None, "{about} ended twice");
                }
            }
            ["session", id] => {
                let id = SessionId::new(id).unwrap();
                let before = self.session.replace(id.clone());
                assert!(before.is_none_or(|before| before == id), "one key, one session");
            }
            ["accepted", uuid, seq] => {
                let seq = seq.parse().unwrap();
                let before = self.accepted.insert(uuid.to_owned(), seq);
                assert!(before.is_none_or(|before| before == seq), "one prompt, one event");
            }
            ["decided", id, state] => {
                let before = self.decided.insert(id.parse().unwrap(), state.to_owned());
                assert!(
                    before.is_none_or(|before| before == state),
                    "one approval, one decision"
                );
            }
            _ => panic!("{line}"),
        }
    }
}

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Kills hosts while they work on a session, and lets the last one end the work.
fn kill_in_session(
    place: &Path,
    session: &SessionId,
    kills: u64,
    random: &mut fastrand::Rng,
    with: With,
) -> Seen {
    let mut seen = Seen::default();
    let mut sent: Vec<String> = Vec::new();
    for life in 0..=kills {
        let mut child = start(place, session, life, seen.cursor(), with);
        let (mut input, output) = (
            child.stdin.take().unwrap(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        if life < kills {
            sent.extend((0..random.usize(1..5)).map(|_| Uuid::new_v4().to_string()));
        }
        // What was not acknowledged is sent again; what was may be.
        for (at, uuid) in sent.iter().enumerate() {
            let is_recent = sent.len() - at <= RECENT;
            if !seen.accepted.contains_key(uuid) || is_recent && random.u8(..4) == 0 {
                writeln!(input, "{uuid} {}", text_of(uuid)).unwrap();
            }
        }
        // It is killed behind some line, or when all is done.
        let mut left = if life < kills { random.u64(1..40) } else { u64::MAX };
        let all: BTreeSet<String> = sent.iter().cloned().collect();
        let (line, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for text in output.lines() {
                if line.send(text.unwrap()).is_err() {
                    return;
                }
            }
        });
        loop {
            let line = match lines.recv_timeout(STUCK) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    child.kill().unwrap();
                    let (ended, sent) = (seen.ended.len(), all.len());
                    panic!("the host does nothing any more, and {ended} of {sent} prompts have ended");
                }
            };
            let Some((_, line)) = line.split_once(MARK) else {
                continue;
            };
            seen.note(line);
            left -= 1;
            let is_done = seen.ended.keys().eq(&all) && seen.accepted.len() == all.len();
            if left == 0 || is_done {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    seen
}

/// What is on disk is what clients were told. Returns how many processes were spares.
async fn compare(host: &SessionHost, id: &SessionId, seen: &Seen, made: &str) -> u64 {
    let mut lost = BTreeSet::new();
    let (mut after, mut users) = (0, BTreeMap::<String, u64>::new());
    let (mut epochs, mut spares, mut started_at) = (0, 0, 0);
    loop {
        let page = host.events(id, after, 500).await.unwrap();
        for event in &page.events {
            assert_eq!(event.seq, after + 1, "the numbers have no gap");
            after = event.seq;
            let payload = event.payload.to_value().unwrap();
            if event.kind == "user" && event.actor.as_deref() == Some("test") {
                let uuid = payload["uuid"].as_str().unwrap().to_owned();
                assert!(
                    users.insert(uuid, event.seq).is_none(),
                    "a prompt is in the log once"
                );
            }
            if event.kind == "decision_not_applied" {
                lost.insert(payload["approval_id"].as_str().unwrap().to_owned());
                let waited = event.at.saturating_sub(started_at);
                assert!(
                    waited < 60_000,
                    "the host can know it at once, and waited {waited} ms"
                );
            }
            if event.kind == "process_started" {
                assert!(event.epoch > epochs, "one process after the other");
                (epochs, started_at) = (event.epoch, event.at);
                spares += u64::from(payload["spare"] == true);
            }
            if let Some(told) = seen.events.get(&event.seq) {
                assert!(
                    told.starts_with(&format!("{} ", event.kind)),
                    "{} is {told}",
                    event.seq
                );
            }
        }
        if page.events.is_empty() {
            break;
        }
    }
    assert!(after >= seen.cursor(), "nothing that a client saw is gone");
    assert_eq!(users, seen.accepted, "each acknowledged prompt, and no other");
    compare_approvals(host, id, seen, made, &lost).await;
    spares
}

/// Each decision that was acknowledged is there, and none was applied twice.
async fn compare_approvals(
    host: &SessionHost,
    id: &SessionId,
    seen: &Seen,
    made: &str,
    lost: &BTreeSet<String>,
) {
    let mut approvals = Vec::new();
    loop {
        let after = approvals.last().map(|approval: &Approval| approval.number);
        let page = host.approvals(Some(id), None, after, 500).await.unwrap();
        if page.is_empty() {
            break;
        }
        approvals.extend(page);
    }
    for approval in &approvals {
        assert_ne!(approval.state, ApprovalState::Pending, "no turn is left open");
        assert_ne!(approval.state, ApprovalState::Expired, "somebody decided in time");
        let told = seen.decided.get(&approval.id);
        assert!(
            told.is_none_or(|told| told == approval.state.as_str()),
            "{approval:?} was {told:?}"
        );
    }
    for told in seen.decided.keys() {
        assert!(approvals.iter().any(|approval| approval.id == *told));
    }
    for (prompt, how) in &seen.ended {
        let about: Vec<_> = approvals
            .iter()
            .filter(|approval| approval.request.get().contains(prompt))
            .collect();
        let allowed = about
            .iter()
            .filter(|approval| approval.state == ApprovalState::Allowed)
            .count();
        let ran = made.lines().filter(|line| line == prompt).count();
        assert!(
            ran <= allowed,
            "{prompt} ran {ran} times, and was allowed {allowed} times"
        );
        let is_lost = about
            .iter()
            .any(|approval| lost.contains(&approval.id.to_string()));
        if how == "processed" && about.len() == 1 && allowed == 1 && !is_lost {
            assert_eq!(ran, 1, "{prompt} was allowed, and its turn ended");
        }
    }
}

fn kill(kills: u64, with: With) {
    let mut random = fastrand::Rng::with_seed(set("OUTRIGGER_SEED").unwrap_or(1));
    let place = tempfile::tempdir().unwrap();
    let mut sessions = Vec::new();
    let mut left = kills;
    while left > 0 {
        let now = left.min(if with.spares {
            KILLS_WITH_A_SPARE
        } else {
            KILLS_OF_A_SESSION
        });
        let session = SessionId::random();
        let seen = kill_in_session(place.path(), &session, now, &mut random, with);
        sessions.push(seen);
        left -= now;
    }
    // A CLI whose host was killed ends by itself.
    let began = Instant::now();
    while cli_runs_in(place.path().join("claude")) {
        assert!(began.elapsed() < PATIENCE, "a CLI is left");
        std::thread::yield_now();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let log = SqliteLog::open(place.path().join("host.db")).unwrap();
        assert_eq!(log.check().await.unwrap().problems, Vec::<String>::new());
        let cli = Simulated::agent(|agent| agent);
        let host = SessionHost::open(HostPolicy::new(cli.options(), [place.path()]), log)
            .await
            .unwrap();
        let made = std::fs::read_to_string(place.path().join("made")).unwrap_or_default();
        let mut spares = 0;
        for seen in &sessions {
            spares += compare(&host, seen.session.as_ref().unwrap(), seen, &made).await;
        }
        assert_eq!(spares > 0, with.spares, "{spares} sessions took spares");
        let decided = sessions.iter().map(|seen| seen.decided.len()).sum::<usize>();
        assert!(decided > 0 || kills < 10, "somebody was asked");
        host.shutdown().await;
    });
}

/// `OUTRIGGER_HOST_KILLS` asks for another number of kills, `OUTRIGGER_SEED` for other moments.
#[test]
fn a_host_that_is_killed_loses_nothing_that_it_acknowledged() {
    kill(set("OUTRIGGER_HOST_KILLS").unwrap_or(25), With::default());
}

#[test]
fn a_host_with_spares_that_is_killed_loses_nothing_that_it_acknowledged() {
    let spares = true;
    kill(
        set("OUTRIGGER_HOST_KILLS").unwrap_or(25),
        With {
            spares,
            ..With::default()
        },
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_host_whose_clock_is_set_back_loses_nothing_that_it_acknowledged() {
    let clock = true;
    kill(
        set("OUTRIGGER_HOST_KILLS").unwrap_or(25),
        With {
            clock,
            ..With::default()
        },
    );
}

/// `OUTRIGGER_HOST_REAL_KILLS` asks for another number of kills.
#[test]
fn a_host_with_the_real_cli_that_is_killed_loses_nothing_that_it_acknowledged() {
    let real_cli = true;
    kill(
        set("OUTRIGGER_HOST_REAL_KILLS").unwrap_or(2),
        With {
            real_cli,
            ..With::default()
        },
    );
}

#[test]
fn a_host_with_spares_of_the_real_cli_that_is_killed_loses_nothing_that_it_acknowledged() {
    let (real_cli, spares) = (true, true);
    kill(
        set("OUTRIGGER_HOST_REAL_KILLS").unwrap_or(2),
        With {
            real_cli,
            spares,
            ..With::default()
        },
    );
}
