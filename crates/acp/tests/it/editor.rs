//! A test editor: reads and writes lines of the protocol, and validates each.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use outrigger::Options;
use outrigger::testing::Simulated;
use outrigger_acp::{Config, serve};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::schema::{self, Version};

/// Longer than any step takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Answers the agent's requests: a result, or `None` to leave the request open.
pub(crate) type Answer = Box<dyn FnMut(&Value) -> Option<Value> + Send>;

pub(crate) struct Editor {
    out: Option<WriteHalf<DuplexStream>>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// The methods of open requests, of either side.
    asked: HashMap<i64, String>,
    open: HashMap<String, String>,
    /// Answers that no test has read.
    answered: HashMap<i64, Value>,
    next: i64,
    /// Lines that no test has read.
    come: VecDeque<Value>,
    pub(crate) answer: Answer,
    pub(crate) version: Version,
    pub(crate) stop: CancellationToken,
    agent: JoinHandle<std::io::Result<()>>,
}

impl Editor {
    pub(crate) fn with(config: Config) -> Self {
        let (here, there) = duplex(64 * 1024);
        let (read, write) = split(there);
        let stop = CancellationToken::new();
        let agent = tokio::spawn(serve(config, read, write, stop.clone()));
        let (read, write) = split(here);
        Self {
            out: Some(write),
            lines: BufReader::new(read).lines(),
            asked: HashMap::new(),
            open: HashMap::new(),
            answered: HashMap::new(),
            next: 0,
            come: VecDeque::new(),
            answer: Box::new(|_| None),
            version: Version::V1,
            stop,
            agent,
        }
    }

    /// An editor with an agent and a simulated CLI, which follows the directives in prompts.
    pub(crate) fn simulated() -> (Self, Simulated) {
        let cli = Simulated::agent(|agent| agent.directives());
        (Self::of(&cli), cli)
    }

    pub(crate) fn of(cli: &Simulated) -> Self {
        Self::with(
            Config::new()
                .options(cli.options())
                .spare(false)
                .cancel_floor(Duration::from_secs(5)),
        )
    }

    pub(crate) fn of_options(options: Options) -> Self {
        Self::with(Config::new().options(options).spare(false))
    }

    // ---- Lines ----------------------------------------------------------------------------------------------------

    pub(crate) async fn send_raw(&mut self, line: &str) {
        let out = self.out.as_mut().expect("the editor still speaks");
        out.write_all(line.as_bytes()).await.expect("the agent reads");
        out.write_all(b"\n").await.expect("the agent reads");
    }

    async fn send(&mut self, line: Value) {
        let asked = &self.open;
        schema::judge(self.version, &line, |id| asked.get(&id.to_string()).cloned());
        self.send_raw(&line.to_string()).await;
    }

    /// Sends a request, and returns its id.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.asked.insert(id, method.to_owned());
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a request that the schema rejects.
    pub(crate) async fn ask_badly(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.asked.insert(id, method.to_owned());
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_raw(&line.to_string()).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    pub(crate) async fn fail(&mut self, request: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
    }

    /// The next line. Requests of the agent are answered by `answer`. `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        if let Some(line) = self.come.pop_front() {
            return Some(line);
        }
        self.read().await
    }

    async fn read(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line());
        let line = line
            .await
            .unwrap_or_else(|_| panic!("nothing comes behind {:#?}", self.come))
            .expect("the agent writes text")?;
        let line: Value = serde_json::from_str(&line).expect("the agent writes JSON");
        let asked = &mut self.asked;
        schema::judge(self.version, &line, |id| asked.get(&id.as_i64()?).cloned());
        if line.get("method").is_none()
            && let Some(id) = line["id"].as_i64()
        {
            assert!(asked.remove(&id).is_some(), "answered twice: {line}");
        }
        if line.get("method").is_some() && line.get("id").is_some() {
            let method = line["method"].as_str().unwrap_or_default().to_owned();
            self.open.insert(line["id"].to_string(), method);
            if let Some(result) = (self.answer)(&line) {
                self.reply(&line, result).await;
            }
        }
        Some(line)
    }

    /// All lines up to the answer to a request, and the answer. Answers to other requests are kept.
    pub(crate) async fn until(&mut self, id: i64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        if let Some(answer) = self.answered.remove(&id) {
            return (before, answer);
        }
        while let Some(line) = self.next().await {
            match line["id"].as_i64().filter(|_| line.get("method").is_none()) {
                Some(answered) if answered == id => return (before, line),
                Some(answered) => drop(self.answered.insert(answered, line)),
                None => before.push(line),
            }
        }
        panic!("the agent went away without an answer to {id}; it said {before:#?}");
    }

    /// Reads until a line matches, and keeps all lines.
    pub(crate) async fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(found) = self.come.iter().find(|line| wanted(line)) {
            return found.clone();
        }
        loop {
            let line = self.read().await.expect("the agent is there");
            self.come.push_back(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }

    /// The successful answer to a request.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        let (_, answer) = self.until(id).await;
        assert!(answer.get("error").is_none(), "{method}: {answer:#}");
        answer["result"].clone()
    }

    /// The error for a request.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask_badly(method, params).await;
        let (_, answer) = self.until(id).await;
        assert!(answer.get("result").is_none(), "{method}: {answer:#}");
        answer["error"].clone()
    }

    // ---- What editors do ------------------------------------------------------------------------------------------

    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}});
        self.call("initialize", params).await
    }

    /// Opens a session, and returns its id and its lines.
    pub(crate) async fn open(&mut self, cwd: &Path) -> (String, Value) {
        let opened = self
            .call("session/new", json!({"cwd": cwd, "mcpServers": []}))
            .await;
        let id = opened["sessionId"].as_str().expect("an id").to_owned();
        (id, opened)
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> i64 {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.ask("session/prompt", params).await
    }

    /// A whole turn: its lines, and the answer to the prompt.
    pub(crate) async fn turn(&mut self, session: &str, text: &str) -> (Vec<Value>, Value) {
        let id = self.prompt(session, text).await;
        let (before, answer) = self.until(id).await;
        assert!(answer.get("error").is_none(), "{answer:#}");
        (before, answer["result"].clone())
    }

    /// A whole turn, and further lines until a late one matches.
    pub(crate) async fn turn_until(
        &mut self,
        session: &str,
        text: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let (lines, _) = self.turn(session, text).await;
        match lines.into_iter().find(&wanted) {
            Some(found) => found,
            None => self.wait_for(wanted).await,
        }
    }

    /// Closes the input, and waits for the end of the agent.
    pub(crate) async fn leave(mut self) -> Vec<Value> {
        // Dropping half of a duplex stream does not close it.
        let mut out = self.out.take().expect("the editor still speaks");
        out.shutdown().await.expect("the agent reads");
        self.out = Some(out);
        self.gone().await
    }

    /// Waits for the end of the agent.
    pub(crate) async fn gone(mut self) -> Vec<Value> {
        let mut last = Vec::new();
        while let Some(line) = self.next().await {
            last.push(line);
        }
        // Drops the other end only now.
        self.out.take();
        let ended = tokio::time::timeout(PATIENCE, &mut self.agent).await;
        ended
            .expect("the agent ends")
            .expect("it does not panic")
            .expect("it ends well");
        last
    }
}

/// The updates of a kind.
pub(crate) fn updates<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let updates = lines.iter().filter(|line| line["method"] == "session/update");
    let updates = updates.map(|line| &line["params"]["update"]);
    updates.filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The text of the answer.
pub(crate) fn said(lines: &[Value]) -> String {
    let chunks = updates(lines, "agent_message_chunk").into_iter();
    chunks
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect()
}
