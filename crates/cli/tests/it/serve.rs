//! `outrigger serve`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::Rig;
use crate::tool::{outrigger, ran};

/// A host that runs, and what it printed.
struct Served {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    said: String,
    address: String,
    token: String,
}

impl Served {
    /// Starts it, and reads up to a line with `last`.
    fn start(mut command: Command, last: &str) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut served = Self {
            child,
            out,
            said: String::new(),
            address: String::new(),
            token: String::new(),
        };
        served.read_until(last);
        let (_, rest) = served.said.split_once("http://").expect("its address");
        served.address = rest.split([' ', '/', '\n']).next().unwrap().to_owned();
        served
    }

    fn read_until(&mut self, words: &str) {
        loop {
            let mut line = String::new();
            assert!(
                self.out.read_line(&mut line).unwrap() > 0,
                "it ended: {}",
                self.said
            );
            self.said.push_str(&line);
            if line.contains(words) {
                return;
            }
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Gets a token by the link that it printed.
    fn exchange(&mut self) {
        let code = self.said.split_once("#code=").unwrap().1.trim().to_owned();
        let (status, issued) = self.ask("POST", "/v1/tokens/exchange", &json!({"code": code}));
        assert_eq!(status, 201, "{issued}");
        self.token = issued["token"].as_str().unwrap().to_owned();
    }

    /// Waits for an event after a cursor that `wanted` accepts.
    fn until(&self, session: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "GET /v1/sessions/{session}/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        )
        .unwrap();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            let event = line
                .strip_prefix("data: ")
                .and_then(|data| serde_json::from_str(data).ok());
            if let Some(event) = event.filter(|event: &Value| wanted(&event["payload"])) {
                return event["payload"].clone();
            }
        }
        panic!("the stream ended");
    }

    /// Ends it by Ctrl-C; its exit status.
    fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-INT", &pid]).status().unwrap();
        let status = self.child.wait().unwrap();
        status.code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(rig: &Rig, root: &Path, data: &Path) -> Served {
    let (root, data) = (root.display().to_string(), data.display().to_string());
    Served::start(command(rig, &root, &data), "serves http://")
}

fn command(rig: &Rig, root: &str, data: &str) -> Command {
    let mut command = outrigger(&["serve", "--root", root, "--data", data, "--listen", "127.0.0.1:0"]);
    command
        .arg("--cli")
        .arg(rig.cli())
        .env_clear()
        .envs(rig.sandbox.env(&rig.api.base_url()));
    command
}

fn prompt(text: &str) -> Value {
    json!({"events": [{"payload": {
        "type": "user", "uuid": uuid::Uuid::new_v4(), "message": {"role": "user", "content": text},
    }}]})
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_in_the_next_host() {
    let rig = Rig::start().await;
    let place = TempDir::new().unwrap();
    let data = place.path().join("state/host");
    let work = || {
        let mut served = serve(&rig, &rig.sandbox.project(), &data);
        // The link of the first start gives a token.
        served.read_until("welcome#code=");
        let link = served.said.lines().last().unwrap().trim().to_owned();
        let config = place.path().join("config");
        let login = |args: &[&str]| {
            let mut login = outrigger(&["host", "login"])
                .args(args)
                .env("XDG_CONFIG_HOME", &config)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            writeln!(login.stdin.take().unwrap(), "{link}").unwrap();
            login.wait_with_output().unwrap()
        };
        // A token that cannot be kept is not asked for: the link is good for one.
        for nowhere in ["/dev/null/token", place.path().to_str().unwrap()] {
            let output = login(&["--token-file", nowhere]);
            assert_eq!(output.status.code(), Some(1), "{nowhere}: {output:?}");
        }
        let output = login(&[]);
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains(&served.address));
        let kept = format!("outrigger/tokens/http_{}", served.address.replace(':', "%3A"));
        let kept = config.join(kept);
        let token = std::fs::read_to_string(&kept).unwrap();
        let token = token.strip_suffix('\n').unwrap().to_owned();
        served.token.clone_from(&token);
        // Other tokens are issued with this one.
        let host = format!("http://{}", served.address);
        let with_token = |args: &[&str]| {
            let mut command = outrigger(args);
            command.args(["--host", &host]).env("XDG_CONFIG_HOME", &config);
            ran(&mut command)
        };
        let (reader, code) = with_token(&["host", "token", "new", "bob", "--scope", "read"]);
        assert!(code == 0 && reader.starts_with("outrigger_"));
        let (listed, code) = with_token(&["host", "token", "list"]);
        assert!(code == 0 && listed.contains("read  bob"), "{listed}");
        let bob = listed.lines().find(|line| line.contains("bob")).unwrap();
        assert_eq!(
            with_token(&["host", "token", "revoke", bob.split(' ').next().unwrap()]).1,
            0
        );
        assert!(with_token(&["host", "token", "list"]).0.contains("revoked"));
        let (status, session) = served.ask("POST", "/v1/sessions", &json!({"cwd": rig.sandbox.project()}));
        assert_eq!(status, 201, "{session}");
        let id = session["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/sessions/{id}/events");
        assert_eq!(served.ask("POST", &path, &prompt("%say one")).0, 202);
        assert_eq!(
            served.until(&id, |event| event["type"] == "result")["result"],
            "one"
        );
        // Nobody else may have the log.
        let second = command(&rig, "/", &data.display().to_string()).output().unwrap();
        assert_eq!(second.status.code(), Some(1));
        assert!(
            String::from_utf8_lossy(&second.stderr).contains("another"),
            "{second:?}"
        );
        // A copy is made while it runs, and is sound.
        let copy = place.path().join("copy/host.db");
        std::fs::create_dir(copy.parent().unwrap()).unwrap();
        let (to, from) = (copy.display().to_string(), data.display().to_string());
        assert_eq!(
            ran(&mut outrigger(&["host", "backup", &to, "--data", &from])).1,
            0
        );
        let elsewhere = copy.parent().unwrap().display().to_string();
        let (checked, code) = ran(&mut outrigger(&["host", "check", "--data", &elsewhere]));
        assert!(
            code == 0 && checked.starts_with("sessions: 1; events: "),
            "{checked}"
        );
        assert_eq!(ran(&mut outrigger(&["host", "check", "--data", "/nowhere"])).1, 1);
        let (audit, code) = ran(&mut outrigger(&["host", "audit", "--data", &from]));
        assert!(
            code == 0 && audit.contains(" POST /v1/tokens/exchange "),
            "{audit}"
        );
        assert!(!audit.contains(&token), "{audit}");
        assert_eq!(served.interrupt(), Some(130));

        let mut served = serve(&rig, &rig.sandbox.project(), &data);
        served.token = token;
        assert_eq!(served.ask("POST", &path, &prompt("%say two")).0, 202);
        served.until(&id, |event| {
            event["type"] == "process_started" && event["resumed"] == true
        });
        served.until(&id, |event| event["type"] == "result" && event["result"] == "two");
        assert!(!served.said.contains("#code="), "{}", served.said);
        assert_eq!(served.interrupt(), Some(130));

        // Who lost the token asks for another link.
        let mut again = command(
            &rig,
            &rig.sandbox.project().display().to_string(),
            &data.display().to_string(),
        );
        again.arg("--link");
        let served = Served::start(again, "#code=");
        assert_eq!(served.interrupt(), Some(130));
    };
    tokio::task::block_in_place(work);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(&data).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "only this user reads it");
    rig.nothing_left().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_waits_for_an_approval_from_another_terminal() {
    let temp = TempDir::new().unwrap();
    let mut command = outrigger(&["serve", "--demo"]);
    command.env("TMPDIR", temp.path());
    let mut served = Served::start(command, "waits for an approval");
    let said = |name: &str| {
        let (_, rest) = served.said.split_once(name).unwrap();
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let (host, token) = (said("OUTRIGGER_HOST="), said("OUTRIGGER_TOKEN="));
    // Whoever started it by a path, as `cargo run` does, has no `outrigger` in the other terminal.
    let program = outrigger(&[]).get_program().to_owned();
    let listed = format!("{} approve\n", program.display());
    assert!(served.said.contains(&listed), "{}", served.said);
    let remote = |args: &[&str]| {
        let mut command = outrigger(args);
        command
            .env("OUTRIGGER_HOST", &host)
            .env("OUTRIGGER_TOKEN", &token);
        ran(&mut command)
    };
    let (listed, code) = remote(&["ps"]);
    assert!(code == 0 && listed.contains("demo"), "{listed}");
    let (pending, code) = remote(&["approve", "--json"]);
    assert_eq!(code, 0);
    let pending: Value = serde_json::from_str(pending.lines().next().unwrap()).unwrap();
    let (_, code) = remote(&["approve", pending["id"].as_str().unwrap(), "--allow"]);
    assert_eq!(code, 0);
    served.read_until("The file is there.");
    assert_eq!(served.interrupt(), Some(130));
    let left: Vec<_> = std::fs::read_dir(temp.path()).unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn what_it_needs_is_said() {
    let place = TempDir::new().unwrap();
    let policy = place.path().join("policy.toml");
    let path = policy.display().to_string();
    let fails = |args: &[&str], words: &str| {
        let output = outrigger(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    };
    fails(&["serve"], "--root");
    fails(&["serve", "--root", "/no/such/place"], "/no/such/place");
    std::fs::write(&policy, "[sessions]\nroots = [\".\"]\nroot = 1\n").unwrap();
    fails(&["serve", "--policy", &path, "--check"], "line 3");
    std::fs::write(&policy, "[sessions]\nroots = [\".\"]\n").unwrap();
    let (said, code) = ran(&mut outrigger(&["serve", "--policy", &path, "--check"]));
    assert!(code == 0 && said.contains("sound"), "{said}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_drained_lets_its_turns_end_and_begins_none() {
    let rig = Rig::start().await;
    let (root, data) = (rig.sandbox.project().to_owned(), tempfile::tempdir().unwrap());
    let ended = crate::terminal::blocking({
        let mut command = command(&rig, root.to_str().unwrap(), data.path().to_str().unwrap());
        command.args(["--drain", "10m"]);
        move || {
            let mut served = Served::start(command, "/welcome#code=");
            served.exchange();
            let (_, made) = served.ask("POST", "/v1/sessions", &json!({"cwd": root}));
            let id = made["id"].as_str().unwrap().to_owned();
            let events = format!("/v1/sessions/{id}/events");
            served.ask(
                "POST",
                &events,
                &prompt("%tool Bash {\"command\":\"touch made\"}\n%say Done."),
            );
            let opened = served.until(&id, |payload| payload["type"] == "approval_opened");
            let pid = served.child.id().to_string();
            Command::new("kill").args(["-TERM", &pid]).status().unwrap();
            // It is a host still, and takes what waits for the next one.
            let (status, _) = served.ask("POST", &events, &prompt("%say Later."));
            assert_eq!(status, 202);
            let approval = opened["approval_id"].as_str().unwrap();
            let path = format!("/v1/approvals/{approval}/decision");
            let (status, decided) = served.ask("POST", &path, &json!({"behavior": "allow"}));
            assert_eq!(status, 200, "{decided}");
            let code = served.child.wait().unwrap().code();
            assert_eq!(code, Some(143));
            id
        }
    })
    .await;
    assert!(rig.sandbox.project().join("made").exists());
    rig.nothing_left().await;
    // The next host goes on with what waited, and with nothing else.
    let log = outrigger_host::log::SqliteLog::open(data.path().join("host.db")).unwrap();
    let page = log.events(&ended.parse().unwrap(), 0, 1000).await.unwrap();
    let marks: Vec<_> = page
        .events
        .iter()
        .filter(|event| event.kind == "delivery_update")
        .map(|event| event.payload.to_value().unwrap()["status"].clone())
        .collect();
    assert_eq!(marks, ["received", "processing", "received", "processed"]);
}

#[cfg(unix)]
#[test]
fn a_request_that_waits_for_a_process_is_answered_when_the_host_ends() {
    let (home, root) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let cli = home.path().join("claude");
    // It never says that it has started.
    outrigger_needs::script(&cli, "#!/bin/sh\nexec sleep 600\n").unwrap();
    let mut command = outrigger(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--root").arg(root.path()).arg("--cli").arg(&cli);
    command.arg("--data").arg(home.path()).env("HOME", home.path());
    let mut served = Served::start(command, "/welcome#code=");
    served.exchange();
    let (_, made) = served.ask("POST", "/v1/sessions", &json!({"cwd": root.path()}));
    let id = made["id"].as_str().unwrap();
    let path = format!("/v1/sessions/{id}/rewind");
    let rewind = json!({"event_id": uuid::Uuid::new_v4(), "dry_run": true});
    let (status, answer) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| served.ask("POST", &path, &rewind));
        served.until(id, |event| event["state"] == "starting");
        let pid = served.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        asked.join().unwrap()
    });
    assert_eq!(status, 503, "{answer}");
    assert_eq!(served.child.wait().unwrap().code(), Some(143));
}

#[test]
fn what_fails_of_a_log_is_told_with_its_reason() {
    let (home, root) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (root, data) = (root.path().to_str().unwrap(), home.path().to_str().unwrap());
    let command = |args: &[&str]| {
        let mut command = outrigger(args);
        command.args(["--data", data]).env("HOME", home.path());
        command
    };
    let said = |args: &[&str]| {
        let output = command(args).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        println!("{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(!said.contains("has room"), "{said}");
        said
    };
    let serve = ["serve", "--root", root, "--listen", "127.0.0.1:0"];
    let served = Served::start(command(&serve), "/welcome#code=");
    let told = said(&serve);
    assert!(
        told.contains("has the log open") && told.contains("--data"),
        "{told}"
    );
    let told = said(&["host", "backup", "/no/such/directory/copy.db"]);
    assert!(
        told.contains("/no/such/directory/copy.db") && told.contains("No such file"),
        "{told}"
    );
    assert_eq!(served.interrupt(), Some(130));
    std::fs::write(
        home.path().join("host.db"),
        "no database, and as long as the head of one is: one hundred bytes, if I count what is here right.",
    )
    .unwrap();
    let told = said(&["host", "check"]);
    assert!(
        told.contains("is damaged") && !told.contains("host check"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_served_is_refused_before_anything_is_said() {
    let (home, root) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let root = root.path().to_str().unwrap();
    let serve = |args: &[&str]| {
        let mut command = outrigger(&["serve", "--root", root]);
        command
            .args(args)
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path());
        let output = command.output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        println!("{stdout}{stderr}");
        (stdout, stderr, output.status.code())
    };
    let (stdout, stderr, code) = serve(&["--listen", "0.0.0.0:0"]);
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    assert!(stderr.contains("0.0.0.0:0") && stderr.contains("TLS"), "{stderr}");
    let (_, stderr, code) = serve(&["--listen", "foo"]);
    assert_eq!(code, Some(2), "{stderr}");
    let (stdout, stderr, code) = serve(&["--listen", "127.0.0.1:0", "--cli", "/no/such/cli"]);
    assert_eq!((stdout.as_str(), code), ("", Some(3)), "{stderr}");
    assert!(
        stderr.contains("/no/such/cli") && stderr.contains("no such file"),
        "{stderr}"
    );
    // The same in a file, which a check finds, and where nothing is needed of this machine.
    let policy = home.path().join("policy.toml");
    let text = format!("[sessions]\nroots = [{root:?}]\n[server]\nlisten = \"0.0.0.0:0\"\n");
    std::fs::write(&policy, text).unwrap();
    for args in [
        &["serve", "--policy", policy.to_str().unwrap(), "--check"][..],
        &["serve", "--demo", "--listen", "0.0.0.0:0"],
    ] {
        let output = outrigger(args).env("HOME", home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(
            !stdout.contains("serves") && !stdout.contains("sound"),
            "{stdout}"
        );
    }
    assert!(!home.path().join("outrigger").exists(), "no log was made");
}
