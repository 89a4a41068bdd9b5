//! The official SDKs and this crate, asked the same.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outrigger_sessions::{ListOptions, MessageOptions, Messages, SessionId, Sessions};
use serde_json::{Map, Value, json};

/// What this crate reads.
fn ours(config: &Path, ids: &[SessionId], dirs: &[PathBuf]) -> Value {
    let sessions = Sessions::at(config);
    let list = |options: ListOptions| json!(sessions.list(&options).unwrap());
    let told = |messages: Messages| -> Value { messages.map(|message| json!(message.unwrap())).collect() };
    let messages = |id: &SessionId, options: MessageOptions| told(sessions.messages(id, &options).unwrap());
    let of_dirs = dirs
        .iter()
        .map(|dir| (dir.display().to_string(), list(ListOptions::new().dir(dir))));
    let of_sessions = ids.iter().map(|id| {
        let agents = sessions.subagents(id, None).unwrap().into_iter().map(|agent| {
            let said = told(agent.messages(&MessageOptions::new()).unwrap());
            (agent.agent_id.to_string(), said)
        });
        let read = json!({
            "info": sessions.info(id, None).unwrap(),
            "messages": messages(id, MessageOptions::new()),
            "page": messages(id, MessageOptions::new().limit(2).offset(1)),
            "system": messages(id, MessageOptions::new().include_system_messages(true)),
            "subagents": agents.collect::<Map<String, Value>>(),
        });
        (id.to_string(), read)
    });
    json!({
        "list": list(ListOptions::new()),
        "page": list(ListOptions::new().limit(3).offset(2)),
        "people": list(ListOptions::new().include_programmatic(false)),
        "dirs": of_dirs.collect::<Map<String, Value>>(),
        "sessions": of_sessions.collect::<Map<String, Value>>(),
    })
}

/// What a program with an official SDK reads.
fn theirs(mut program: Command, config: &Path, ids: &[SessionId], dirs: &[PathBuf]) -> Value {
    let mut child = program
        .args(dirs)
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", config)
        .env("CLAUDE_CONFIG_DIR", config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().unwrap();
    let asked = json!(ids).to_string();
    let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{program:?}: {}", output.status);
    // Half of a pair of surrogates is something that JavaScript and Python can say.
    let text = String::from_utf8(output.stdout).unwrap();
    outrigger_protocol::RawJson::from_text(text)
        .unwrap()
        .to_value()
        .unwrap()
}

fn variable(name: &str) -> PathBuf {
    env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set; `cargo xtask sessions-diff` sets it"))
        .into()
}

pub(crate) fn all(config: &Path, ids: &[SessionId], dirs: &[PathBuf]) {
    typescript(config, ids, dirs);
    python(config, ids, dirs);
}

pub(crate) fn typescript(config: &Path, ids: &[SessionId], dirs: &[PathBuf]) {
    let mut program = Command::new("node");
    program.arg(variable("OUTRIGGER_TYPESCRIPT").join("read-sessions.mjs"));
    let mut theirs = theirs(program, config, ids, dirs);
    // A mark of what was typed into the terminal, which its types do not declare.
    without("isCompletedLocalCommand", &mut theirs);
    same("TypeScript", &ours(config, ids, dirs), &theirs);
}

pub(crate) fn python(config: &Path, ids: &[SessionId], dirs: &[PathBuf]) {
    let mut program = Command::new(variable("OUTRIGGER_PYTHON"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python/read_sessions.py");
    program.arg("-B").arg(script);
    let mut theirs = theirs(program, config, ids, dirs);
    let mut ours = ours(config, ids, dirs);
    without_what_python_does_not_know(config, &mut ours, &mut theirs);
    same("Python", &ours, &theirs);
}

/// Takes out what the Python SDK does not tell, or tells otherwise; each with the reason.
fn without_what_python_does_not_know(config: &Path, ours: &mut Value, theirs: &mut Value) {
    let remove = |value: &mut Value, names: &[&str]| {
        let fields = value.as_object_mut().unwrap();
        names.iter().for_each(|name| drop(fields.remove(*name)));
    };
    // It knows neither notes of the CLI nor whose a session is.
    remove(ours, &["people"]);
    let sessions = Sessions::at(config);
    for (id, session) in ours["sessions"].as_object_mut().unwrap() {
        remove(session, &["system"]);
        let text = std::fs::read_to_string(sessions.find(&id.parse().unwrap()).unwrap().path).unwrap();
        // It reads neither what compactions kept nor prompts that had queued up.
        let untold = [
            "\"preservedSegment\"",
            "\"preservedMessages\"",
            "\"queued_command\"",
        ];
        if untold.iter().any(|part| text.contains(part)) {
            for part in ["messages", "page"] {
                session[part] = theirs["sessions"][id][part].clone();
            }
        }
        let of_agents = session["subagents"]
            .as_object_mut()
            .unwrap()
            .values_mut()
            .collect::<Vec<_>>();
        for messages in of_agents {
            plain(messages);
        }
        plain(&mut session["messages"]);
        plain(&mut session["page"]);
    }
    fn plain(messages: &mut Value) {
        let more = [
            "timestamp",
            "origin",
            "is_meta",
            "isCompactSummary",
            "interruptedByShutdown",
        ];
        for message in messages.as_array_mut().unwrap() {
            let fields = message.as_object_mut().unwrap();
            more.iter().for_each(|name| drop(fields.remove(*name)));
        }
    }
    // It lists no session whose only prompts are pictures.
    let is_told = |info: &Value| {
        info["firstPrompt"].is_string() || !["Image", "Document"].map(Value::from).contains(&info["summary"])
    };
    for session in ours["sessions"].as_object_mut().unwrap().values_mut() {
        if !is_told(&session["info"]) {
            session["info"] = Value::Null;
        }
    }
    ours["list"].as_array_mut().unwrap().retain(is_told);
    for list in ours["dirs"].as_object_mut().unwrap().values_mut() {
        list.as_array_mut().unwrap().retain(is_told);
    }
    // It leaves sessions of the same millisecond in the order in which the directory has them.
    for read in [&mut *ours, theirs] {
        let mut lists = vec![read["list"].take()];
        lists.extend(
            read["dirs"]
                .as_object_mut()
                .unwrap()
                .values_mut()
                .map(Value::take),
        );
        for list in &mut lists {
            let key = |info: &Value| (info["lastModified"].as_i64(), info["sessionId"].to_string());
            list.as_array_mut()
                .unwrap()
                .sort_by_key(|info| std::cmp::Reverse(key(info)));
        }
        let mut lists = lists.into_iter();
        read["list"] = lists.next().unwrap();
        for list in read["dirs"].as_object_mut().unwrap().values_mut() {
            *list = lists.next().unwrap();
        }
    }
    // And so pages begin in the midst of such.
    remove(ours, &["page"]);
    remove(theirs, &["page"]);
}

/// Takes a field out wherever it is.
fn without(name: &str, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove(name);
            fields.values_mut().for_each(|value| without(name, value));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| without(name, value)),
        _ => {}
    }
}

/// Fails where two values differ, and says where.
fn same(sdk: &str, ours: &Value, theirs: &Value) {
    let mut differences = Vec::new();
    differ("", ours, theirs, &mut differences);
    let count = differences.len();
    differences.truncate(20);
    assert!(
        count == 0,
        "{count} differences to the {sdk} SDK:\n{}",
        differences.join("\n")
    );
    let many = ours["sessions"].as_object().unwrap().values();
    let messages: usize = many
        .map(|session| session["messages"].as_array().unwrap().len())
        .sum();
    assert!(messages > 0, "there was nothing to compare");
    #[expect(
        clippy::print_stdout,
        reason = "whoever runs it wants to know how much was compared"
    )]
    let () = println!(
        "{sdk}: the same of {} sessions with {messages} messages",
        ours["list"].as_array().unwrap().len()
    );
}

fn differ(path: &str, ours: &Value, theirs: &Value, into: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let (a, b) = (a.get(name), b.get(name));
                match (a, b) {
                    (Some(a), Some(b)) => differ(&format!("{path}/{name}"), a, b, into),
                    (a, b) => into.push(format!("{path}/{name}: ours {}, theirs {}", short(a), short(b))),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (nth, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}/{nth}"), a, b, into);
            }
        }
        // Milliseconds by way of seconds as a float are one too few at times.
        (Value::Number(a), Value::Number(b))
            if a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| {
                let is_time = path.ends_with("/lastModified") || path.ends_with("/createdAt");
                a == b || is_time && (a - b).abs() <= 1.0
            }) => {}
        (a, b) if a == b => {}
        (a, b) => into.push(format!(
            "{path}: ours {}, theirs {}",
            short(Some(a)),
            short(Some(b))
        )),
    }
}

fn short(value: Option<&Value>) -> String {
    let uuids = |list: &Vec<Value>| {
        list.iter()
            .map(|it| it["uuid"].as_str().map(|it| it[..8.min(it.len())].to_owned()))
            .collect::<Option<Vec<_>>>()
    };
    let ids = |list: &Vec<Value>| {
        list.iter()
            .map(|it| it["sessionId"].as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
    };
    let list = value.and_then(Value::as_array);
    if let Some(uuids) = list.and_then(|list| ids(list).or_else(|| uuids(list))) {
        return format!("{uuids:?}");
    }
    value.map_or("nothing".to_owned(), |value| {
        value.to_string().chars().take(200).collect()
    })
}
