//! The example programs, each as a person would run it: in a process of its own, behind a scripted API, and killed where it matters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{Sandbox, executable};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where cargo puts an example: beside the directory of the tests.
fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().and_then(Path::parent).unwrap();
    let path = target
        .join("examples")
        .join(format!("{example}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.exists(),
        "{} is not built: run `cargo build -p outrigger-fleet --examples`",
        path.display()
    );
    path
}

/// A home, a scripted API, and a CLI.
struct Place {
    sandbox: Sandbox,
    api: MessagesApi,
    cli: PathBuf,
}

impl Place {
    async fn with(cli: PathBuf) -> Self {
        Self {
            sandbox: Sandbox::new().unwrap(),
            api: MessagesApi::builder().start().await.unwrap(),
            cli,
        }
    }

    async fn real() -> Self {
        Self::with(executable().await.unwrap()).await
    }

    fn start(&self, example: &str, arguments: &[&str]) -> Ran {
        let mut child = Command::new(program(example))
            .args(arguments)
            .env_clear()
            .envs(self.sandbox.env(&self.api.base_url()))
            .env("OUTRIGGER_CLAUDE", &self.cli)
            .current_dir(self.sandbox.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Ran {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
            stderr: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.sandbox.project().join(name)
    }
}

/// An example that runs.
struct Ran {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Ran {
    async fn type_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn shown(&mut self) -> String {
        let line = timeout(PATIENCE, self.stdout.next_line())
            .await
            .expect("a line in time");
        line.unwrap().expect("not the end of the output")
    }

    /// The first line of stderr that has this.
    async fn told(&mut self, words: &str) -> String {
        let line = timeout(PATIENCE, async {
            loop {
                let line = self.stderr.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("no line with {words:?}"));
                if line.contains(words) {
                    return line;
                }
            }
        });
        line.await
            .unwrap_or_else(|_| panic!("no line with {words:?} in time"))
    }

    /// Lets it run to its end: the exit status, and the rest of both outputs.
    async fn end(mut self) -> (i32, String) {
        drop(self.stdin.take());
        let mut rest = String::new();
        let ending = async {
            loop {
                tokio::select! {
                    Ok(Some(line)) = self.stdout.next_line() => rest += &(line + "\n"),
                    Ok(Some(line)) = self.stderr.next_line() => rest += &(line + "\n"),
                    else => break,
                }
            }
            self.child.wait().await.unwrap()
        };
        let status = timeout(PATIENCE, ending).await.expect("the program ends");
        (status.code().unwrap_or(-1), rest)
    }

    /// SIGKILL.
    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// The lines without comments and blank ones that programs of the same purpose had, before there was a library for it.
const BY_HAND: [(&str, &str, usize); 4] = [
    ("web_service", include_str!("../../examples/web_service.rs"), 271),
    ("ci_bot", include_str!("../../examples/ci_bot.rs"), 89),
    ("supervisor", include_str!("../../examples/supervisor.rs"), 142),
    ("prompts", include_str!("../../examples/prompts.rs"), 174),
];

#[test]
fn the_programs_are_half_as_long_as_by_hand() {
    for (name, source, by_hand) in BY_HAND {
        let lines = source.lines().map(str::trim);
        let lines = lines
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
        assert!(2 * lines <= by_hand, "{name}: {lines} of {by_hand} lines");
    }
}

#[tokio::test]
async fn the_ci_bot_tells_by_its_status_what_became_of_the_review() {
    let place = Place::real().await;
    let answer = |findings: Value| {
        let review = json!({"summary": "A comma.", "findings": findings});
        format!("%tool StructuredOutput {review}\n%say done")
    };
    let read = "%tool Read {\"file_path\": \"a\"}\n".repeat(3);
    for (diff, arguments, expected, shown) in [
        (answer(json!([])), &[][..], 0, "A comma. ($"),
        (answer(json!(["a.rs:1: no"])), &[], 10, "a.rs:1: no"),
        (read + "%say done", &["0.000001"], 5, "budget"),
        ("%hang".to_owned(), &["1", "3"], 124, "no review"),
        ("%say Fine.".to_owned(), &[], 6, "no review"),
        (
            "%error 400 n=9 msg=\"no such model\"".to_owned(),
            &[],
            4,
            "no such model",
        ),
    ] {
        let mut ran = place.start("ci_bot", arguments);
        ran.type_line(&diff).await;
        let (status, output) = ran.end().await;
        assert_eq!(status, expected, "{diff}: {output}");
        assert!(output.contains(shown), "{diff}: {output}");
    }
    let nowhere = Place::with("/no/such/claude".into()).await;
    let (status, output) = nowhere.start("ci_bot", &[]).end().await;
    assert_eq!(status, 3, "{output}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_supervisor_goes_on_when_the_cli_is_killed_and_when_it_is_itself() {
    let place = Place::real().await;
    let mark = place.file("mark");
    let mut ran = place.start("supervisor", &["ids", "1"]);
    let call = json!({"command": format!("touch {}; sleep 1000", mark.display()), "description": "Wait"});
    ran.type_line(&format!("%tool Bash {call}")).await;
    let health = ran.told("process Some(").await;
    let (_, pid) = health.split_once("process Some(").unwrap();
    let pid = pid.split_once(')').unwrap().0.to_owned();
    timeout(PATIENCE, async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the tool runs");
    let killed = Command::new("kill").args(["-KILL", &pid]).status().await.unwrap();
    assert!(killed.success());
    // The answer of a model that has no directive to follow.
    assert_eq!(ran.shown().await, "ok");
    ran.told("1 deaths").await;
    ran.type_line("%say again").await;
    assert_eq!(ran.shown().await, "again");
    ran.told("1 rotations").await;
    ran.kill().await;

    let mut ran = place.start("supervisor", &["ids"]);
    ran.type_line("%say {{turn}}").await;
    let answer = ran.shown().await;
    let (status, output) = ran.end().await;
    assert_eq!(status, 0, "{output}");
    let last = place.api.requests().pop().unwrap().body.to_string();
    assert!(
        last.contains("again"),
        "{answer}: the conversation goes on: {last}"
    );
}

/// The results by their ids; no id comes twice.
fn results(path: &Path) -> BTreeMap<String, Value> {
    let mut results = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let id = line["id"].as_str().unwrap().to_owned();
        assert!(results.insert(id.clone(), line).is_none(), "{id} came twice");
    }
    results
}

#[cfg(unix)]
#[tokio::test]
async fn a_batch_that_is_killed_again_and_again_has_each_result_once() {
    let count = std::env::var("OUTRIGGER_BATCH_JOBS").map_or(100, |jobs| jobs.parse().unwrap());
    let place = Place::with(program("simulated_claude")).await;
    let prompts: String = (0..count)
        .map(|number| {
            let fault = match number % 10 {
                3 => "%error 429 n=1\n",
                5 => "%error 529 n=1\n",
                7 => "%error 400 n=99 msg=\"never\"\n",
                _ => "",
            };
            let prompt = format!("{fault}%say answer {number}");
            format!("{}\n", json!({"id": format!("job {number}"), "prompt": prompt}))
        })
        .collect();
    std::fs::write(place.file("prompts"), prompts).unwrap();
    let mut kills = 0;
    loop {
        let mut ran = place.start("prompts", &["prompts", "results"]);
        // Each run emits what is done already, and gets a bit further.
        let ended = (kills + 1) * (count / 6).min(50);
        let killed = timeout(PATIENCE, async {
            while let Some(line) = ran.stderr.next_line().await.unwrap() {
                let done = line
                    .split_once(" done")
                    .and_then(|(number, _)| number.parse().ok());
                // Not each number comes: several jobs may end at once.
                if done.is_some_and(|done: usize| done >= ended) {
                    return true;
                }
            }
            false
        });
        if killed.await.expect("it goes on") {
            ran.kill().await;
            kills += 1;
            continue;
        }
        let (status, output) = ran.end().await;
        assert_eq!(status, 0, "{output}");
        break;
    }
    assert!(kills >= 5, "{kills}");
    let results = results(&place.file("results"));
    assert_eq!(results.len(), count);
    for number in 0..count {
        let result = &results[&format!("job {number}")];
        match number % 10 {
            7 => assert!(result["error"].to_string().contains("never"), "{result}"),
            _ => assert_eq!(result["text"], format!("answer {number}"), "{result}"),
        }
    }
}

/// A client of the web service, which speaks HTTP/1.0: what comes back ends with the connection.
struct Client(String);

impl Client {
    /// A service in this place, over the approvals of earlier ones.
    async fn of(ran: &mut Ran) -> Self {
        let line = ran.told("http://").await;
        Self(line.split_once("http://").unwrap().1.to_owned())
    }

    async fn send(&self, head: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.0).await.unwrap();
        let length = body.len();
        let kind = match body.starts_with('{') {
            true => "application/json",
            false => "text/plain",
        };
        let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
        let request = format!(
            "{line} HTTP/1.0\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    async fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let mut reply = String::new();
        let mut stream = self.send(head, body).await;
        let read = timeout(PATIENCE, stream.read_to_string(&mut reply)).await;
        read.expect("a reply").unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    async fn post(&self, path: &str, body: &str) -> u16 {
        self.ask(&format!("POST {path}"), body).await.0
    }

    async fn events(&self, session: &str, last: Option<&str>) -> Events {
        let last = last.map_or(String::new(), |last| format!("last-event-id: {last}\r\n"));
        let head = format!("GET /sessions/{session}/events\n{last}");
        Events(self.send(&head, "").await.lines())
    }

    async fn approvals(&self) -> Vec<Value> {
        let (status, body) = self.ask("GET /approvals", "").await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// A stream of server-sent events.
struct Events(Lines<BufReader<TcpStream>>);

impl Events {
    /// The next event: its id, its kind and its data.
    async fn next(&mut self) -> (String, String, Value) {
        let (mut id, mut kind, mut data) = (String::new(), String::new(), None);
        let next = async {
            loop {
                let line = self.0.next_line().await.unwrap().expect("not the end");
                if let Some(value) = line.strip_prefix("id: ") {
                    id = value.to_owned();
                } else if let Some(value) = line.strip_prefix("event: ") {
                    kind = value.to_owned();
                } else if let Some(value) = line.strip_prefix("data: ") {
                    data = Some(serde_json::from_str(value).unwrap_or_else(|_| value.into()));
                } else if let (true, Some(data)) = (line.is_empty(), data.take()) {
                    return (id, kind, data);
                }
            }
        };
        timeout(PATIENCE, next).await.expect("an event in time")
    }

    /// All up to the end of a turn with this verdict.
    async fn until(&mut self, verdict: &str) -> Vec<(String, String, Value)> {
        let mut all = Vec::new();
        loop {
            let next = self.next().await;
            let is_last = next.1 == "turn_ended" && next.2["verdict"]["name"] == verdict;
            all.push(next);
            if is_last {
                return all;
            }
        }
    }
}

#[tokio::test]
async fn the_web_service_is_killed_and_its_sessions_and_approvals_go_on() {
    let place = Place::real().await;
    let mut ran = place.start("web_service", &["approvals", "127.0.0.1:0"]);
    let client = Client::of(&mut ran).await;
    let (status, session) = client.ask("POST /sessions", "").await;
    assert_eq!(status, 201, "{session}");
    let (mut one, mut two) = (
        client.events(&session, None).await,
        client.events(&session, None).await,
    );
    let call = r#"%tool Bash {"command": "touch made", "description": "Make"}"#;
    let prompts = format!("/sessions/{session}/prompts");
    assert_eq!(client.post(&prompts, &format!("{call}\n%say made")).await, 202);
    let (seen, also) = tokio::join!(one.until("deferred"), two.until("deferred"));
    assert_eq!(seen, also, "two readers see the same");
    let [approval] = &client.approvals().await[..] else {
        panic!("one approval waits")
    };
    assert_eq!(approval["tool_input"]["command"], "touch made");
    let path = format!("/approvals/{}", approval["id"].as_str().unwrap());
    ran.kill().await;

    let mut ran = place.start("web_service", &["approvals", "127.0.0.1:0"]);
    let client = Client::of(&mut ran).await;
    let mut goes_on = client.events(&session, Some(&seen.last().unwrap().0)).await;
    assert_eq!(client.approvals().await.len(), 1);
    assert!(!place.file("made").exists());
    let allow = r#"{"allow": {}}"#;
    let unknown = "/approvals/00000000-0000-4000-8000-000000000000";
    assert_eq!(client.post(unknown, allow).await, 404);
    assert_eq!(client.post(&path, "{\"maybe\": {}}").await, 422);
    assert_eq!(client.post(&path, allow).await, 204);
    assert_eq!(
        client.post(&path, r#"{"deny": {"message": "no"}}"#).await,
        410,
        "somebody was first"
    );
    let rest = goes_on.until("completed").await;
    assert!(place.file("made").exists(), "{rest:#?}");
    assert!(
        rest.iter()
            .any(|(_, _, data)| data.to_string().contains("\"made\"")),
        "{rest:?}"
    );
    let calls = |events: &[(String, String, Value)]| {
        let events = events
            .iter()
            .flat_map(|(_, _, data)| data.as_array().cloned().unwrap_or_default());
        events.filter(|event| event["type"] == "tool_use").count()
    };
    assert_eq!(
        (calls(&seen), calls(&rest)),
        (1, 0),
        "what was read is not told again"
    );

    // A prompt goes on without the call that waits, and whoever decides then is late.
    assert_eq!(client.post(&prompts, call).await, 202);
    goes_on.until("deferred").await;
    let late = client.approvals().await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(client.post(&prompts, "%say without").await, 202);
    goes_on.until("completed").await;
    assert_eq!(client.post(&format!("/approvals/{late}"), allow).await, 410);

    let mut whole = client.events(&session, None).await;
    let mut texts = String::new();
    while !texts.contains("without") {
        texts += &whole.next().await.2.to_string();
    }
    assert!(
        texts.contains("\"made\""),
        "the conversation from its start: {texts}"
    );
    ran.kill().await;
}
