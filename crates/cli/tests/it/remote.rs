//! The clients of a host: a real host with the real CLI, behind a scripted API.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use outrigger::options::{Auth, Secret};
use outrigger::{Agent, Event, EventLine, Options};
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, SessionHost};
use outrigger_host_http::{Front, Scope, Tokens};
use rexpect::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::display::Display;
use crate::rig::{PATIENCE, Ran, Rig};
use crate::terminal::blocking;

/// A host, and what a client of it has in its environment.
struct Hosted {
    rig: Rig,
    host: SessionHost,
    front: JoinHandle<()>,
    url: String,
    token: String,
    _place: TempDir,
}

impl Hosted {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With more in its policy.
    async fn start_with(change: impl FnOnce(&mut HostPolicy)) -> Self {
        let rig = Rig::start().await;
        let place = tempfile::tempdir().unwrap();
        let mut policy = HostPolicy::new(options(&rig), [rig.sandbox.project()]);
        change(&mut policy);
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
        Self {
            rig,
            host,
            front,
            url,
            token: token.reveal().to_owned(),
            _place: place,
        }
    }

    /// Ends the host, and with it its processes.
    async fn end(self) {
        self.host.shutdown().await;
        self.front.abort();
        self.rig.nothing_left().await;
    }

    fn variables(&self) -> [(&str, &str); 2] {
        [("OUTRIGGER_HOST", &self.url), ("OUTRIGGER_TOKEN", &self.token)]
    }

    fn command(&self, args: &[&str]) -> Command {
        let program = self.rig.std_command("", &[]);
        let mut command = Command::new(program.get_program());
        command.args(args).env_clear().stdin(Stdio::null());
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap());
        }
        command.envs(self.variables()).env("TZ", "UTC");
        command
    }

    /// Runs a command of a client to its end.
    async fn ran(&self, args: &[&str]) -> Ran {
        ran(self.command(args)).await
    }

    /// Makes a session, and sends it this prompt; returns its id.
    async fn begun(&self, prompt: &str) -> String {
        let project = self.rig.sandbox.project().to_str().unwrap().to_owned();
        let sent = self.ran(&["send", "--new", &project, prompt]).await;
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert!(sent.stderr.contains("outrigger attach"), "{sent:?}");
        sent.stdout.trim().to_owned()
    }

    /// Waits until so many events of this kind, and with this status or state if one is named, are in the log of a session.
    async fn until(&self, session: &str, kind: &str, status: &str, count: usize) {
        let id = session.parse().unwrap();
        let mut events = self.host.subscribe(&id, 0).await.unwrap();
        let mut seen = 0;
        let found = async {
            while seen < count {
                if let Delivered::Event(event) = events.next().await.unwrap()
                    && event.kind == kind
                    && (status.is_empty() || event.payload.to_value().unwrap()["status"] == status)
                {
                    seen += 1;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect(kind);
    }

    /// The approvals that `outrigger approve` lists.
    async fn approvals(&self, args: &[&str]) -> Vec<Value> {
        let listed = self.ran(&[&["approve", "--json"], args].concat()).await;
        assert_eq!(listed.code, Some(0), "{listed:?}");
        lines(&listed)
    }
}

/// The options of a session in the place of the rig.
fn options(rig: &Rig) -> Options {
    let mut options = Agent::builder()
        .auth(Auth::ApiKey(Secret::new("sk-none")))
        .cli_path(rig.cli());
    for (name, value) in rig.sandbox.env(&rig.api.base_url()) {
        if name != "ANTHROPIC_API_KEY" {
            options = options.env(name, value);
        }
    }
    options
}

async fn ran(mut command: Command) -> Ran {
    let output = blocking(move || command.output().unwrap());
    tokio::time::timeout(PATIENCE, output)
        .await
        .expect("it ends")
        .into()
}

fn lines(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

const TOUCH: &str = "%tool Bash {\"command\":\"touch made\"}\n%say Done.";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_made_listed_read_and_stopped() {
    let hosted = Hosted::start().await;
    let id = hosted.begun("%say Hello from afar.").await;
    hosted.until(&id, "delivery_update", "processed", 1).await;

    let listed = hosted.ran(&["ps", "--json"]).await;
    let sessions = lines(&listed);
    assert_eq!(sessions.len(), 1, "{listed:?}");
    assert_eq!(
        (&sessions[0]["id"], &sessions[0]["state"]),
        (&json!(id), &json!("idle"))
    );
    let table = hosted.ran(&["ps"]).await;
    assert!(
        table.stdout.contains("idle") && table.stdout.contains(&id[..4]),
        "{table:?}"
    );

    // By the beginning of its id.
    let all = hosted.ran(&["logs", &id[..8], "--json"]).await;
    let events = lines(&all);
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["sequence_num"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{all:?}");
    assert!(all.stdout.contains("Hello from afar."), "{all:?}");
    let last = hosted.ran(&["logs", &id, "--last", "2"]).await;
    assert_eq!(last.stdout.lines().count(), 2, "{last:?}");
    let head = events.len().to_string();
    let none = hosted.ran(&["logs", &id, "--after", &head]).await;
    assert_eq!((none.code, &*none.stdout), (Some(0), ""), "{none:?}");

    // As a session would have emitted it.
    let read = hosted.ran(&["logs", &id, "--json=events"]).await;
    assert_eq!(read.code, Some(0), "{read:?}");
    let told = read.stdout.lines().map(|line| {
        let place: Value = serde_json::from_str(line).unwrap();
        (
            place["sequence_num"].as_u64().unwrap(),
            serde_json::from_str::<EventLine>(line).unwrap(),
        )
    });
    let told: Vec<_> = told.collect();
    assert!(told.iter().map(|(number, _)| number).is_sorted(), "{read:?}");
    let text = told.iter().find_map(|(number, line)| match line {
        EventLine::Event(Event::Text(text)) => Some((*number, text.clone())),
        _ => None,
    });
    let (number, text) = text.expect("a text");
    assert_eq!(text, "Hello from afar.");
    let outcome = told.iter().find_map(|(_, line)| match line {
        EventLine::TurnEnded(outcome) => Some(outcome.clone()),
        _ => None,
    });
    let outcome = outcome.expect("an outcome");
    assert!(outcome.is_success() && outcome.cost() > 0.0, "{outcome:?}");
    assert_eq!(outcome.prompts().len(), 1);
    // From a position on.
    let rest = hosted
        .ran(&["logs", &id, "--json=events", "--after", &number.to_string()])
        .await;
    let rest = lines(&rest);
    assert!(
        rest.iter()
            .all(|line| line["sequence_num"].as_u64().unwrap() > number),
        "{rest:?}"
    );
    assert!(rest.iter().any(|line| line["type"] == "turn_ended"), "{rest:?}");

    // A host without a place for worktrees makes none.
    let project = hosted.rig.sandbox.project().to_str().unwrap().to_owned();
    let tree = hosted
        .ran(&["send", "--new", &project, "--worktree=topic", "Hi."])
        .await;
    assert!(tree.code == Some(6) && tree.stdout.is_empty(), "{tree:?}");

    // The same prompt counts once.
    let uuid = "11111111-2222-4333-8444-555555555555";
    for effect in ["stored", "repeated"] {
        let sent = hosted
            .ran(&["send", &id, "%say Again.", "--id", uuid, "--json"])
            .await;
        assert_eq!(lines(&sent)[0]["effect"], effect, "{sent:?}");
    }
    hosted.until(&id, "delivery_update", "processed", 2).await;

    let stopped = hosted.ran(&["stop", &id]).await;
    assert!(
        stopped.code == Some(0) && stopped.stderr.contains("stopped"),
        "{stopped:?}"
    );
    hosted.rig.nothing_left().await;
    let archived = hosted.ran(&["stop", &id, "--archive"]).await;
    assert_eq!(archived.code, Some(0), "{archived:?}");
    let refused = hosted.ran(&["send", &id, "more"]).await;
    assert!(
        refused.code == Some(1) && refused.stderr.contains("archived"),
        "{refused:?}"
    );
    assert_eq!(hosted.ran(&["ps"]).await.stdout, "");
    assert!(hosted.ran(&["ps", "--all"]).await.stdout.contains("ended"));
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_are_listed_and_the_first_answer_counts() {
    let hosted = Hosted::start().await;
    let id = hosted.begun(TOUCH).await;
    hosted.until(&id, "approval_opened", "", 1).await;
    let waiting = hosted.approvals(&["--session", &id]).await;
    assert_eq!(waiting.len(), 1);
    let approval = waiting[0]["id"].as_str().unwrap();
    let table = hosted.ran(&["approve"]).await;
    assert!(table.stdout.contains("Bash: touch made"), "{table:?}");

    // Without a terminal nobody is asked.
    let nobody = hosted.ran(&["approve", &approval[..8]]).await;
    assert!(
        nobody.code == Some(2) && nobody.stderr.contains("--allow"),
        "{nobody:?}"
    );
    let wrong = hosted.ran(&["approve", approval, "--answer", "1"]).await;
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("no question"),
        "{wrong:?}"
    );
    let denied = hosted
        .ran(&["approve", &approval[..8], "--deny", "Not on a Friday."])
        .await;
    assert!(
        denied.code == Some(0) && denied.stderr.contains("denied: Bash: touch made"),
        "{denied:?}"
    );
    let late = hosted.ran(&["approve", approval, "--allow"]).await;
    assert!(
        late.code == Some(1) && late.stderr.contains("denied already, by ada"),
        "{late:?}"
    );
    hosted.until(&id, "delivery_update", "processed", 1).await;
    assert!(!hosted.rig.sandbox.project().join("made").exists());
    let told = format!("{:?}", hosted.rig.api.message_requests().last().unwrap());
    assert!(told.contains("Not on a Friday."), "{told}");

    assert!(hosted.approvals(&[]).await.is_empty());
    assert_eq!(hosted.approvals(&["--all"]).await.len(), 1);

    hosted.ran(&["send", &id, TOUCH]).await;
    hosted.until(&id, "approval_opened", "", 2).await;
    let approval = hosted.approvals(&[]).await[0]["id"].as_str().unwrap().to_owned();
    let allowed = hosted.ran(&["approve", &approval, "--allow", "--json"]).await;
    assert_eq!(lines(&allowed)[0]["state"], "allowed", "{allowed:?}");
    hosted.until(&id, "delivery_update", "processed", 2).await;
    assert!(hosted.rig.sandbox.project().join("made").exists());
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_the_model_is_answered_from_the_command_line() {
    let hosted = Hosted::start().await;
    let input = json!({"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
            {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"},
        ],
    }]});
    let id = hosted
        .begun(&format!("%tool AskUserQuestion {input}\n%say Done: {{{{last}}}}"))
        .await;
    hosted.until(&id, "approval_opened", "", 1).await;
    let approval = hosted.approvals(&[]).await[0]["id"].as_str().unwrap().to_owned();
    let table = hosted.ran(&["approve"]).await;
    assert!(table.stdout.contains("question: Which colour?"), "{table:?}");
    // A bare yes would read like an answer.
    let yes = hosted.ran(&["approve", &approval, "--allow"]).await;
    assert_eq!(yes.code, Some(2), "{yes:?}");
    let wrong = hosted.ran(&["approve", &approval, "--answer", "3"]).await;
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("choices"),
        "{wrong:?}"
    );
    let answered = hosted.ran(&["approve", &approval, "--answer", "2"]).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    hosted.until(&id, "delivery_update", "processed", 1).await;
    let told = hosted
        .rig
        .api
        .message_requests()
        .last()
        .unwrap()
        .last_tool_result()
        .unwrap();
    assert!(told.contains("Blue") && !told.contains("Red"), "{told}");
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_attaches_talks_answers_and_leaves() {
    let hosted = Hosted::start().await;
    let id = hosted.begun("%say Said before.").await;
    hosted.until(&id, "delivery_update", "processed", 1).await;
    let mut display = Display::alone_with(&hosted.rig, 100, &["attach", &id], &hosted.variables());
    let hosted = blocking(move || {
        display.shows("> (ada) %say Said before.");
        display.shows("\nSaid before.");
        display.at("> ");
        display.enter("%say Said now.");
        display.shows("\nSaid now.");
        display.at("> ");
        display.enter("%tool Bash {\"command\":\"touch made\"}\\");
        display.enter("%say Made.");
        display.asks("do instead: ");
        display.enter("y");
        display.shows("\nMade.");
        display.at("> ");
        display.enter("/help");
        display.shows("/interrupt");
        display.at("> ");
        display.press("\x03");
        let screen = display.ends_with(130);
        assert!(screen.contains("the session goes on"), "{screen}");
        assert_eq!(
            screen.matches("Said now.").count(),
            2,
            "as typed, and as said: {screen}"
        );
        hosted
    })
    .await;
    assert!(hosted.rig.sandbox.project().join("made").exists());
    // It goes on.
    let sent = hosted.ran(&["send", &id, "%say Alone."]).await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    hosted.until(&id, "delivery_update", "processed", 4).await;
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_somebody_else_answers_is_taken_back() {
    let hosted = Hosted::start().await;
    let id = hosted.begun(TOUCH).await;
    hosted.until(&id, "approval_opened", "", 1).await;
    let display = Display::alone_with(&hosted.rig, 100, &["attach", &id], &hosted.variables());
    let display = blocking(move || {
        // It was open before somebody came.
        display.asks("do instead: ");
        display
    })
    .await;
    let approval = hosted.approvals(&[]).await[0]["id"].as_str().unwrap().to_owned();
    let allowed = hosted.ran(&["approve", &approval, "--allow"]).await;
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    blocking(move || {
        let mut display = display;
        display.shows("withdrawn");
        display.shows("allowed by ada");
        display.shows("\nDone.");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_a_question_leaves_it_open() {
    let hosted = Hosted::start().await;
    let id = hosted.begun(TOUCH).await;
    hosted.until(&id, "approval_opened", "", 1).await;
    // Ctrl-D and Ctrl-C.
    for (key, code) in [("\x04", None), ("\x03", Some(130))] {
        let mut display = Display::alone_with(&hosted.rig, 100, &["attach", &id], &hosted.variables());
        blocking(move || {
            display.asks("do instead: ");
            display.press(key);
            match code {
                Some(code) => {
                    let screen = display.ends_with(code);
                    assert!(!screen.contains("withdrawn"), "{screen}");
                }
                None => {
                    display.shows("outrigger approve");
                    display.at("> ");
                    display.press("\x04");
                    display.ends_with(0);
                }
            }
        })
        .await;
        assert_eq!(hosted.approvals(&[]).await.len(), 1, "{key:?}");
    }
    hosted.ran(&["stop", &id]).await;
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_interrupted_from_where_it_is_seen() {
    let hosted = Hosted::start().await;
    let gate = hosted.rig.api.gate("slow");
    let id = hosted.begun("%say {{gate:slow}}Never.").await;
    let mut display = Display::alone_with(&hosted.rig, 100, &["attach", &id], &hosted.variables());
    hosted.until(&id, "delivery_update", "processing", 1).await;
    blocking(move || {
        display.at("> ");
        display.enter("/interrupt");
        display.shows("the turn is over, interrupted");
        display.signal(Signal::SIGINT);
        display.ends_with(130);
    })
    .await;
    drop(gate);
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_token_or_a_wrong_one_is_told_what_to_do() {
    let hosted = Hosted::start().await;
    let place = tempfile::tempdir().unwrap();
    let without = |variables: &[(&str, &str)]| {
        let mut command = hosted.command(&["ps"]);
        command
            .env_remove("OUTRIGGER_TOKEN")
            .env("XDG_CONFIG_HOME", place.path())
            .envs(variables.iter().copied());
        command
    };
    let none = ran(without(&[])).await;
    assert!(
        none.code == Some(2) && none.stderr.contains("OUTRIGGER_TOKEN"),
        "{none:?}"
    );
    let wrong = ran(without(&[("OUTRIGGER_TOKEN", "wrong")])).await;
    assert!(
        wrong.code == Some(6) && wrong.stderr.contains("the token is not valid"),
        "{wrong:?}"
    );

    // A token is kept for the host that issued it.
    let directory = place.path().join("outrigger/tokens");
    std::fs::create_dir_all(&directory).unwrap();
    let address = hosted.url.strip_prefix("http://").unwrap();
    let file = directory.join(format!("http_{}", address.replace(':', "%3A")));
    std::fs::write(&file, format!("{}\n", hosted.token)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = ran(without(&[])).await;
    assert!(
        open.code == Some(2) && open.stderr.contains("chmod 600"),
        "{open:?}"
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let private = ran(without(&[])).await;
    assert_eq!(private.code, Some(0), "{private:?}");

    // Another host does not get it: this one listens, and nobody connects.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    let untold = ran(without(&[("OUTRIGGER_HOST", &url)])).await;
    assert!(
        untold.code == Some(2) && untold.stderr.contains(&format!("there is no token for {url}")),
        "{untold:?}"
    );
    assert!(futures_util::FutureExt::now_or_never(other.accept()).is_none());

    let away = ran(without(&[
        ("OUTRIGGER_HOST", "http://127.0.0.1:1"),
        ("OUTRIGGER_TOKEN", "outrigger_x"),
    ]))
    .await;
    assert!(
        away.code == Some(4) && away.stderr.contains("is the host running"),
        "{away:?}"
    );
    let exposed = ran(without(&[("OUTRIGGER_HOST", "http://192.0.2.1:7070")])).await;
    assert!(
        exposed.code == Some(2) && exposed.stderr.contains("without TLS"),
        "{exposed:?}"
    );
    let nowhere = ran(without(&[("OUTRIGGER_HOST", "")])).await;
    assert!(
        nowhere.code == Some(2) && nowhere.stderr.contains("--host"),
        "{nowhere:?}"
    );
    let missing = ran({
        let mut command = hosted.command(&["logs", "abcd"]);
        command.env("XDG_CONFIG_HOME", place.path());
        command
    })
    .await;
    assert!(
        missing.code == Some(1) && missing.stderr.contains("outrigger ps --all"),
        "{missing:?}"
    );
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_attach_only_shows() {
    let hosted = Hosted::start().await;
    let id = hosted.begun(TOUCH).await;
    let mut command = hosted.command(&["attach", &id, "--plain"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    hosted.until(&id, "approval_opened", "", 1).await;
    let approval = hosted.approvals(&[]).await[0]["id"].as_str().unwrap().to_owned();
    let allowed = hosted.ran(&["approve", &approval, "--allow"]).await;
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    crate::rig::read_until(&mut child, "Done.").await;
    // Its end ends the command.
    let archived = hosted.ran(&["stop", &id, "--archive"]).await;
    assert_eq!(archived.code, Some(0), "{archived:?}");
    let left = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let told = String::from_utf8(left.stderr).unwrap();
    assert!(
        left.status.success() && told.contains("outrigger approve") && told.contains("archived"),
        "{told}"
    );
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nobody_waits_for_ever_for_a_host_that_is_away() {
    let hosted = Hosted::start().await;
    let id = hosted.begun("%say Before it left.").await;
    hosted.until(&id, "delivery_update", "processed", 1).await;
    let mut followers = Vec::new();
    for args in [&["attach", &id, "--plain"][..], &["logs", &id, "--follow"]] {
        let mut command = hosted.command(&[args, &["--give-up", "2s"]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        crate::rig::read_until(&mut child, "Before it left.").await;
        followers.push(child);
    }
    hosted.host.shutdown().await;
    hosted.front.abort();
    for child in followers {
        let left = tokio::time::timeout(PATIENCE, child.wait_with_output())
            .await
            .expect("it ends")
            .unwrap();
        let told = String::from_utf8(left.stderr).unwrap();
        assert_eq!(left.status.code(), Some(4), "{told}");
        assert!(told.contains("the host has been away"), "{told}");
    }
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_outlives_its_process_is_answered_from_the_command_line() {
    let hosted = Hosted::start_with(|policy| policy.deferred = Some("Bash".to_owned())).await;
    let made = hosted.rig.sandbox.project().join("made");
    for (answer, state, is_made) in [
        (&["--deny", "Not on a Friday."][..], "denied", false),
        (&["--allow"], "allowed", true),
    ] {
        let id = hosted.begun(TOUCH).await;
        hosted.until(&id, "process_exited", "", 1).await;
        let waiting = hosted.approvals(&["--session", &id]).await;
        assert_eq!(waiting[0]["deferred"], true, "{waiting:?}");
        let approval = waiting[0]["id"].as_str().unwrap();
        let table = hosted.ran(&["ps"]).await;
        assert!(table.stdout.contains("requires_action"), "{table:?}");
        // Without `--json` it is shown as any other.
        let told = hosted.ran(&[&["approve", &approval[..8]], answer].concat()).await;
        assert!(
            told.code == Some(0) && told.stderr.contains(&format!("{state}: Bash: touch made")),
            "{told:?}"
        );
        let late = hosted.ran(&["approve", approval, "--allow"]).await;
        assert!(
            late.code == Some(if is_made { 0 } else { 1 }),
            "the same answer of the same person may be repeated: {late:?}"
        );
        hosted.until(&id, "delivery_update", "processed", 1).await;
        assert_eq!(made.exists(), is_made, "{state}");
        let log = hosted.ran(&["logs", &id, "--json"]).await;
        let carried_out = log.stdout.contains("Not on a Friday.");
        assert_eq!(carried_out, !is_made, "the model is told: {log:?}");
        assert!(!log.stdout.contains("decision_not_applied"), "{log:?}");
    }
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_send_does_so_by_the_id() {
    let hosted = Hosted::start().await;
    let id = hosted.begun("%say one").await;
    hosted.until(&id, "delivery_update", "processed", 1).await;
    let issued = hosted
        .ran(&["host", "token", "new", "sender", "--scope", "send"])
        .await;
    assert_eq!(issued.code, Some(0), "{issued:?}");
    let blind = |args: &[&str]| {
        let mut command = hosted.command(args);
        command.env("OUTRIGGER_TOKEN", issued.stdout.lines().last().unwrap().trim());
        ran(command)
    };
    let sent = blind(&["send", &id, "%say two"]).await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    hosted.until(&id, "delivery_update", "processed", 2).await;
    let stopped = blind(&["stop", &id]).await;
    assert!(
        stopped.code == Some(0) && stopped.stderr.contains(&id),
        "{stopped:?}"
    );
    let project = hosted.rig.sandbox.project().to_str().unwrap().to_owned();
    let made = blind(&["send", "--new", &project, "%say three"]).await;
    assert!(made.code == Some(0) && made.stdout.trim().len() == 36, "{made:?}");
    // Looking it up takes more.
    let named = blind(&["send", &id[..8], "%say four"]).await;
    assert_eq!(named.code, Some(6), "{named:?}");
    hosted.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_has_its_sessions_on_the_host() {
    use std::io::{BufRead as _, BufReader, Write as _};

    let hosted = Hosted::start().await;
    let cwd = hosted.rig.sandbox.project();
    let mut command = hosted.command(&["acp", "--host", &hosted.url]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let session = blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stdin = child.stdin.take().unwrap();
        let mut ask = |id: u64, method: &str, params: Value| {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            writeln!(stdin, "{request}").unwrap();
            loop {
                let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
                if line["id"] == id {
                    return line["result"].clone();
                }
            }
        };
        ask(
            1,
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        let opened = ask(2, "session/new", json!({"cwd": cwd, "mcpServers": []}));
        let session = opened["sessionId"].as_str().unwrap().to_owned();
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "%say hello"}]});
        assert_eq!(ask(3, "session/prompt", prompt)["stopReason"], "end_turn");
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        session
    })
    .await;
    let listed = hosted.ran(&["ps"]).await;
    assert!(listed.stdout.contains(&session[..4]), "{listed:?}");
    hosted.end().await;
}
