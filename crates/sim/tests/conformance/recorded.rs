//! Recorded conversations of the real CLI: the client says the same to the simulated one.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_protocol::repair;
use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{ClaudeProcess, Launch, Sandbox, Seen};
use outrigger_sim::conform::{self, Difference, Kinds, Spoken, placeless};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::play::signal;

/// Fields that the pinned CLI has and the recorded one had not.
const NEWER: &[&str] = &[
    "sandbox_enabled: bool",
    "response.response.sandbox_enabled: bool",
    "refusal_retry: bool",
];

/// What paths end with whose values are those of the recorded CLI's version, or were counted by the API behind it.
const OF_ITS_OWN: &[&str] = &[
    "claude_code_version",
    "clientInfo.version",
    "capabilities[]",
    "okens",
    "costUSD",
    "total_cost_usd",
    "costBasis",
];

/// Whether this is what a newer CLI does, or one with another API.
pub(crate) fn is_newer(difference: &Difference) -> bool {
    let conform::DifferenceKind::Field { field, .. } = &difference.what else {
        return false;
    };
    let path = field.split_once(" = ").map(|(path, _)| path);
    NEWER.contains(&field.as_str())
        || path.is_some_and(|path| OF_ITS_OWN.iter().any(|end| path.ends_with(end)))
}

/// Why recordings differ: `recordings.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reasons {
    reasons: Vec<Reason>,
}

/// Why some recordings differ.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reason {
    recordings: Vec<String>,
    pub(crate) kind: Kind,
    reason: String,
}

/// What kind of reason it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Something that is not simulated, which the simulator says.
    Outside,
    /// Who is faster.
    Time,
    /// Something that the recording does not have.
    Unrecorded,
    /// The API behind the recorded CLI, or its account, was another one.
    Api,
    /// A value that the simulator does not tell right.
    Wrong,
}

impl Reasons {
    pub(crate) fn read() -> Self {
        let reasons: Self =
            toml::from_str(include_str!("recordings.toml")).expect("recordings.toml is well-formed");
        for reason in &reasons.reasons {
            assert!(
                reason.reason.len() > 20,
                "a reason that gives none: {:?}",
                reason.reason
            );
        }
        reasons
    }

    /// The reason for which this recording may differ.
    pub(crate) fn of(&self, name: &str) -> Option<&Reason> {
        self.reasons
            .iter()
            .find(|reason| reason.recordings.iter().any(|recording| recording == name))
    }
}

impl Reason {
    /// What is wrong with the reason, if anything is.
    pub(crate) fn complaint(&self, differs: bool, is_loud: bool) -> Option<&'static str> {
        match self.kind {
            Kind::Time => None,
            _ if !differs => Some("recordings.toml has a reason, and nothing differs"),
            Kind::Outside if !is_loud => Some("it is not simulated, and the simulator does not say so"),
            _ => None,
        }
    }
}

/// How much longer than then a frame may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same, once one has not come: the rest is late, too.
const IMPATIENCE: Duration = Duration::from_millis(300);

/// A pause of the client that was recorded is a pause only if it is longer.
const PAUSE: f64 = 0.05;

/// One recorded process.
pub(crate) struct Recording {
    pub(crate) name: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    /// The working directory, and the home.
    cwd: String,
    home: String,
    events: Vec<Event>,
    exit: String,
}

#[derive(Clone)]
struct Event {
    at: f64,
    what: DifferenceKind,
}

#[derive(Clone)]
enum DifferenceKind {
    In(Value),
    Out(String, Value),
    Eof,
    Signal(String),
}

/// What the recordings in a directory say; a name of one ends with its process, as in `resume.2_resume`.
pub(crate) fn read_all(directory: &Path) -> Vec<Recording> {
    let entries = std::fs::read_dir(directory).expect("a directory with recordings");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    paths.iter().filter_map(|path| Recording::read(path)).collect()
}

impl Recording {
    fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).expect("a recording");
        let entries: Vec<Value> = text
            .lines()
            .map(|line| {
                let mended = repair::lone_surrogates(line);
                serde_json::from_str(mended.as_deref().unwrap_or(line)).expect("a line of a recording")
            })
            .collect();
        let start = &entries.first()?["msg"];
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let kept = |name: &str| {
            // Those of the place are of this one.
            !["HOME", "TMPDIR", "CLAUDE_CODE_TMPDIR", "ANTHROPIC_API_KEY"].contains(&name)
        };
        let variables = start["env"].as_object()?.iter();
        let variables = variables.filter(|(name, _)| kept(name));
        let variables =
            variables.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
        let mut recording = Self {
            name: path.file_stem()?.to_string_lossy().into_owned(),
            arguments: texts(&start["argv"]).into_iter().skip(1).collect(),
            variables: variables.collect(),
            cwd: start["cwd"].as_str()?.to_owned(),
            home: start["env"]["HOME"].as_str()?.to_owned(),
            events: Vec::new(),
            exit: "signal".to_owned(),
        };
        let mut kinds = Kinds::default();
        for entry in &entries[1..] {
            let message = &entry["msg"];
            let what = match entry["dir"].as_str()? {
                "in" => {
                    kinds.of_client(message);
                    DifferenceKind::In(message.clone())
                }
                "out" => DifferenceKind::Out(kinds.of_cli(message), message.clone()),
                "meta" if message["stdin"] == "closed" => DifferenceKind::Eof,
                "meta" if message["signal"].is_string() => {
                    DifferenceKind::Signal(message["signal"].as_str()?.trim_start_matches("SIG").to_owned())
                }
                "meta"
                    if message["driver"]
                        .as_str()
                        .is_some_and(|text| text.contains("SIGTERM")) =>
                {
                    DifferenceKind::Signal("TERM".to_owned())
                }
                "meta" => {
                    if let Some(code) = message["exit_code"].as_i64() {
                        recording.exit = code.to_string();
                    }
                    continue;
                }
                _ => continue,
            };
            let at = entry["t"].as_f64()?;
            recording.events.push(Event { at, what });
        }
        Some(recording)
    }

    /// What the project is in.
    fn root(&self) -> &str {
        self.cwd.rsplit_once('/').map_or("", |(root, _)| root)
    }

    /// What the recorded CLI said.
    pub(crate) fn spoken(&self) -> Spoken {
        let name = name_of(&self.cwd);
        let places = [
            (name.as_str(), "{name}"),
            (&self.home, "{home}"),
            (self.root(), "{root}"),
            ("/tmp", "{temp}"),
        ];
        let frames = self.events.iter().filter_map(|event| match &event.what {
            DifferenceKind::Out(kind, frame) => Some((kind.clone(), placeless(frame, &places))),
            _ => None,
        });
        Spoken::new(frames.chain([(format!("exit/{}", self.exit), Value::Null)]))
    }

    fn session(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match &event.what {
            DifferenceKind::Out(_, frame) => frame["session_id"].as_str(),
            _ => None,
        })
    }

    /// The session that it goes on with.
    fn resumed(&self) -> Option<&str> {
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--resume" {
                return arguments.next().map(String::as_str);
            }
            if let Some(id) = argument.strip_prefix("--resume=") {
                return Some(id);
            }
        }
        None
    }

    /// The files that its tools found, as they were before it changed them.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::<String, Option<String>>::new();
        for event in &self.events {
            let DifferenceKind::Out(_, frame) = &event.what else {
                continue;
            };
            let result = &frame["tool_use_result"];
            let (path, content) = match (&result["file"]["filePath"], &result["filePath"]) {
                (Value::String(path), _) => (path, &result["file"]["content"]),
                (_, Value::String(path)) => (path, &result["originalFile"]),
                _ => continue,
            };
            let content = content.as_str().map(str::to_owned);
            files.entry(path.clone()).or_insert(content);
        }
        let files = files.into_iter();
        files
            .filter_map(|(path, content)| Some((path, content?)))
            .collect()
    }

    /// The recordings that came before it in the same place.
    fn before<'a>(&self, all: &'a [Recording]) -> Option<&'a Recording> {
        let group = self.name.split('.').next();
        let continued = self.arguments.iter().any(|argument| argument == "--continue");
        let mut others = all
            .iter()
            .filter(|other| other.resumed().is_none() && other.name != self.name);
        others.find(|other| {
            let same = self.resumed().is_some() && other.session() == self.resumed();
            let first = continued && other.name.split('.').next() == group && other.name.contains("first");
            same || (first && !self.name.contains("nothing"))
        })
    }
}

/// Plays a recording to a CLI in a new place, what was said before in that place first.
pub(crate) async fn play(
    recording: &Recording,
    all: &[Recording],
    cli: &Path,
    keep: &Path,
) -> Result<Spoken, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let api = MessagesApi::builder()
        .start()
        .await
        .map_err(|error| text(&error))?;
    let sandbox = Sandbox::new().map_err(|error| text(&error))?;
    let mut player = Player {
        places: [
            (recording.root().to_owned(), sandbox.path().to_owned()),
            (recording.home.clone(), sandbox.home()),
        ]
        .map(|(then, now)| (format!("{then}/"), format!("{}/", now.display()))),
        ids: HashMap::new(),
        recorded: HashMap::new(),
        seen: Vec::new(),
        counts: BTreeMap::new(),
        kinds: Kinds::default(),
        late: false,
    };
    for (path, content) in recording.files() {
        if let Some(path) = path.strip_prefix(&recording.cwd) {
            sandbox
                .write(path.trim_start_matches('/'), &content)
                .map_err(|error| text(&error))?;
        }
    }
    if let Some(before) = recording.before(all) {
        player.process(before, cli, &sandbox, &api).await?;
    } else if let (Some(id), false) = (recording.resumed(), recording.exit == "1") {
        let claude = Launch::new(cli, &sandbox, &api.base_url())
            .arg("--session-id")
            .arg(id);
        let mut claude = claude.spawn().map_err(|error| text(&error))?;
        claude
            .prompt("%say earlier")
            .await
            .map_err(|error| text(&error))?;
        claude
            .until("a result", |seen| seen.value["type"] == "result")
            .await
            .map_err(|error| text(&error))?;
        claude.close_stdin();
        claude.finish().await.map_err(|error| text(&error))?;
    }
    let (claude, exit) = player.process(recording, cli, &sandbox, &api).await?;
    let said: String = claude.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(keep, said).map_err(|error| text(&error))?;
    api.shutdown().await;
    let [root, home, temp] =
        [sandbox.path().to_owned(), sandbox.home(), sandbox.temp()].map(|path| path.display().to_string());
    let name = name_of(&sandbox.project().to_string_lossy());
    let places = [
        (name.as_str(), "{name}"),
        (&home, "{home}"),
        (&temp, "{temp}"),
        (&root, "{root}"),
        ("/tmp", "{temp}"),
    ];
    let frames = player.seen.drain(..);
    let frames: Vec<_> = frames
        .map(|(kind, frame)| (kind, placeless(&frame, &places)))
        .collect();
    Ok(Spoken::new(
        frames.into_iter().chain([(format!("exit/{exit}"), Value::Null)]),
    ))
}

/// What the CLI calls the project of a directory.
fn name_of(directory: &str) -> String {
    directory.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

struct Player {
    /// Places of then and of now.
    places: [(String, String); 2],
    /// Ids that were recorded, and what they are now.
    ids: HashMap<String, String>,
    /// The recorded frames of each kind that have no counterpart yet, the last first.
    recorded: HashMap<String, Vec<Value>>,
    seen: Vec<(String, Value)>,
    counts: BTreeMap<String, usize>,
    kinds: Kinds,
    late: bool,
}

/// What says nothing about how far the conversation is.
fn is_noise(kind: &str) -> bool {
    [
        "keep_alive",
        "transcript_mirror",
        "stream_event/content_block_delta",
        "system/thinking_tokens",
    ]
    .contains(&kind)
}

impl Player {
    async fn process(
        &mut self,
        recording: &Recording,
        cli: &Path,
        sandbox: &Sandbox,
        api: &MessagesApi,
    ) -> Result<(Vec<String>, String), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        self.kinds = Kinds::default();
        self.recorded.clear();
        self.seen.clear();
        self.counts.clear();
        self.late = false;
        for event in recording.events.iter().rev() {
            if let DifferenceKind::Out(kind, frame) = &event.what {
                self.recorded.entry(kind.clone()).or_default().push(frame.clone());
            }
        }
        let mut launch = Launch::new(cli, sandbox, &api.base_url())
            .args(recording.arguments.iter().map(|argument| self.now(argument)))
            .env("OUTRIGGER_SIM_REAL_TOOLS", "1")
            .patience(Duration::from_secs(400));
        for (name, value) in &recording.variables {
            if name != "ANTHROPIC_BASE_URL" || value.ends_with(":9") {
                launch = launch.env(name, self.now(value));
            }
        }
        let mut claude = launch.spawn().map_err(|error| text(&error))?;
        let transcript = claude.transcript().clone();
        let mut needed = BTreeMap::<&str, usize>::new();
        let mut last = 0.0;
        for event in &recording.events {
            if let DifferenceKind::Out(kind, _) = &event.what {
                if !is_noise(kind) {
                    *needed.entry(kind).or_default() += 1;
                }
                last = event.at;
                continue;
            }
            let gap = (event.at - last).max(0.0);
            last = event.at;
            self.reach(&mut claude, &needed, Duration::from_secs_f64(event.at))
                .await?;
            if gap > PAUSE {
                self.listen(&mut claude, Instant::now() + Duration::from_secs_f64(gap), |_| {
                    false
                })
                .await?;
            }
            match &event.what {
                DifferenceKind::In(frame) => match frame["raw"].as_str() {
                    Some(line) => drop(claude.send_line(&self.now(line)).await),
                    None => {
                        self.kinds.of_client(&self.translated(frame));
                        // One that has ended does not read.
                        drop(claude.send(&self.translated(frame)).await);
                    }
                },
                DifferenceKind::Eof => claude.close_stdin(),
                DifferenceKind::Signal(name) => drop(signal(&claude, name)),
                DifferenceKind::Out(..) => (),
            }
        }
        let end = recording.events.last().map_or(0.0, |event| event.at);
        self.listen(
            &mut claude,
            Instant::now() + Duration::from_secs_f64(end + 15.0),
            |_| false,
        )
        .await?;
        let (status, _) = claude
            .finish()
            .await
            .map_err(|error| text(&error).lines().next().unwrap_or_default().to_owned())?;
        let entries = transcript.entries();
        let said = entries.iter().map(|entry| json!(entry).to_string()).collect();
        Ok((
            said,
            status
                .code()
                .map_or_else(|| "signal".to_owned(), |code| code.to_string()),
        ))
    }

    /// Listens until as many frames of each kind have come.
    async fn reach(
        &mut self,
        claude: &mut ClaudeProcess,
        needed: &BTreeMap<&str, usize>,
        took: Duration,
    ) -> Result<(), String> {
        let patience = if self.late { IMPATIENCE } else { took + PATIENCE };
        let has = |counts: &BTreeMap<String, usize>| {
            needed
                .iter()
                .all(|(kind, count)| counts.get(*kind) >= Some(count))
        };
        if !has(&self.counts) {
            self.listen(claude, Instant::now() + patience, has).await?;
        }
        self.late |= !has(&self.counts);
        Ok(())
    }

    async fn listen(
        &mut self,
        claude: &mut ClaudeProcess,
        until: Instant,
        done: impl Fn(&BTreeMap<String, usize>) -> bool,
    ) -> Result<(), String> {
        while !done(&self.counts) {
            match timeout_at(until, claude.next()).await {
                Ok(Ok(Some(seen))) => self.take(seen),
                Ok(Ok(None)) => {
                    break;
                }
                Ok(Err(error)) => return Err(error.what),
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn take(&mut self, seen: Seen) {
        let kind = self.kinds.of_cli(&seen.value);
        if let Some(then) = self.recorded.get_mut(&kind).and_then(Vec::pop) {
            learn(&then, &seen.value, &mut self.ids);
        }
        *self.counts.entry(kind.clone()).or_default() += 1;
        self.seen.push((kind, seen.value));
    }

    /// A text of then with the places and ids of now.
    fn now(&self, text: &str) -> String {
        let text = match text.split_once("\u{2026}<cut by the lab: ") {
            Some((begin, rest)) => {
                let length = rest
                    .split(' ')
                    .next()
                    .and_then(|number| number.parse().ok())
                    .unwrap_or(0);
                let missing = usize::saturating_sub(length, begin.chars().count());
                let last = begin.chars().last().unwrap_or('x').to_string();
                format!("{begin}{}", last.repeat(missing))
            }
            None => text.to_owned(),
        };
        let places = self.places.iter().map(|(then, now)| (then, now));
        let mut text = text;
        for (then, now) in places.chain(&self.ids) {
            if text.contains(then.as_str()) {
                text = text.replace(then.as_str(), now);
            }
        }
        text
    }

    fn translated(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.now(text)),
            Value::Array(items) => items.iter().map(|item| self.translated(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.translated(value)))
                .collect(),
            other => other.clone(),
        }
    }
}

/// What the ids of a recorded frame are now.
fn learn(then: &Value, now: &Value, ids: &mut HashMap<String, String>) {
    match (then, now) {
        (Value::Array(then), Value::Array(now)) => {
            then.iter().zip(now).for_each(|(then, now)| learn(then, now, ids));
        }
        (Value::Object(then), Value::Object(now)) => {
            for (key, then) in then {
                let Some(now) = now.get(key) else { continue };
                match (then, now) {
                    (Value::String(then), Value::String(now))
                        if then != now && then.len() > 7 && (key.ends_with("id") || key.ends_with("Id")) =>
                    {
                        ids.entry(then.clone()).or_insert_with(|| now.clone());
                    }
                    _ => learn(then, now, ids),
                }
            }
        }
        _ => (),
    }
}
