//! Options reach the CLI by the ways that they name, and what should not reach it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::Stdio;

use outrigger::env::PASSED;
use outrigger::options::{Auth, Delivery, Isolation, Launch, Secret, Settings, Tools};
use outrigger::protocol::shared::{
    AgentDefinition, Effort, McpServerConfig, McpStdioServerConfig, SystemPrompt, ThinkingConfig,
};
use outrigger::transport::{BoxFuture, Connection, Exit, Process, Signal, Transport};
use outrigger::{Agent, Cause, Event, Options, Policy, Session, Verdict};
use outrigger_sim::api::{ApiError, ApiRequest};
use serde_json::json;
use tokio::time::timeout;

use super::rig::{PATIENCE, Rig, turn};

/// Runs one turn and returns what the model was asked for it.
async fn asked(rig: &Rig, options: Options) -> ApiRequest {
    let session = options.start().await.unwrap();
    let (_, outcome) = turn(&session, "%say yes").await;
    assert_eq!(outcome.result_text(), "yes", "{outcome:?}");
    session.close().await.unwrap();
    rig.api().message_requests().pop().unwrap()
}

fn system(request: &ApiRequest) -> String {
    request.body["system"].to_string()
}

/// What the kernel shows everybody of the CLI: its arguments, and what it shows its owner: its environment.
fn proc_file(session: &Session, name: &str) -> Vec<String> {
    let path = format!("/proc/{}/{name}", session.pid().unwrap());
    let bytes = std::fs::read(path).unwrap();
    bytes
        .split(|byte| *byte == 0)
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_prompt() {
    let rig = Rig::start().await;
    let preset = system(&asked(&rig, rig.options()).await);
    assert!(preset.contains("Claude"), "{preset}");
    let appended = rig
        .options()
        .system_prompt(SystemPrompt::preset_and("Speak Latin."));
    let appended = system(&asked(&rig, appended).await);
    assert!(
        appended.contains("Speak Latin.") && appended.len() > 2000,
        "{appended}"
    );
    let text = rig
        .options()
        .system_prompt(SystemPrompt::Text("You are a gate.".into()));
    let text = system(&asked(&rig, text).await);
    assert!(text.contains("You are a gate.") && text.len() < 2000, "{text}");
    let list = rig.options().system_prompt(SystemPrompt::List(vec![
        "First part.".into(),
        "Second part.".into(),
    ]));
    let list = asked(&rig, list).await;
    let said = system(&list);
    assert!(
        said.contains("First part.") && said.contains("Second part."),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools() {
    let rig = Rig::start().await;
    // The CLI adds a tool that stands for those that it would load later.
    let names = |request: &ApiRequest| {
        let tools = request.tools().filter(|name| *name != "DeferredToolPlaceholder");
        tools.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let only = asked(&rig, rig.options().tools(Tools::only(["Bash", "Read"]))).await;
    assert_eq!(names(&only), BTreeSet::from(["Bash".into(), "Read".into()]));
    assert!(names(&asked(&rig, rig.options().tools(Tools::NONE)).await).is_empty());
    let without = asked(&rig, rig.options().disallowed_tools(["Bash"])).await;
    assert!(!names(&without).contains("Bash") && names(&without).contains("Read"));

    let session = rig
        .options()
        .allowed_tools(["Bash(touch:*)"])
        .disallowed_tools(["Bash(touch secret)"])
        .disallowed_tools_delivery(Delivery::CommandLine)
        .permissions(Policy::deny_all())
        .start()
        .await
        .unwrap();
    let results = async |command: &str| {
        let call = json!({ "command": command });
        turn(&session, &format!("%tool Bash {call}\n%say done"))
            .await
            .0
            .swap_remove(1)
    };
    assert_eq!(results("touch open").await, "result ok");
    assert_eq!(results("touch secret").await, "result error");
    assert_eq!(results("mkdir other").await, "result error");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_and_how_it_thinks() {
    let rig = Rig::start().await;
    let options = rig
        .options()
        .model("claude-sonnet-4-5")
        .thinking(ThinkingConfig::Enabled {
            budget_tokens: Some(3000),
            display: None,
        });
    let request = asked(&rig, options).await;
    assert_eq!(request.model(), Some("claude-sonnet-4-5"));
    assert_eq!(request.body["thinking"]["budget_tokens"], 3000);

    let request = asked(&rig, rig.options().effort(Effort::Low)).await;
    assert_eq!(
        request.body["output_config"]["effort"],
        "low",
        "{:?}",
        request.body.get("output_config")
    );

    rig.api()
        .add_rule(|request| (request.model() == Some("claude-opus-4-5")).then(|| ApiError::new(529).into()));
    let options = rig
        .options()
        .model("claude-opus-4-5")
        .fallback_model("claude-haiku-4-5");
    let request = asked(&rig, options).await;
    assert_eq!(request.model(), Some("claude-haiku-4-5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_agents_and_secrets_stay_off_the_command_line() {
    let rig = Rig::start().await;
    let long = "Mind the gap. ".repeat(1500);
    let server = McpStdioServerConfig::new("no-such-program", [""; 0]).env("API_TOKEN", "hunter22");
    let session = rig
        .options()
        .agents("reader", AgentDefinition::new("reads", long.clone()))
        .mcp_servers("vault", McpServerConfig::Stdio(server))
        .start()
        .await
        .unwrap();
    for part in proc_file(&session, "cmdline")
        .into_iter()
        .chain(proc_file(&session, "environ"))
    {
        assert!(
            part.len() < 8 * 1024 && !part.contains("Mind the gap") && !part.contains("hunter22"),
            "{part}"
        );
    }
    let names: Vec<_> = session
        .initialized()
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    assert!(names.contains(&"reader"), "{names:?}");
    let servers = session.mcp_status().await.unwrap().mcp_servers;
    assert_eq!(servers[0].name, "vault");

    let call = json!({
        "subagent_type": "reader", "description": "read", "prompt": "%say found", "run_in_background": false,
    });
    let (_, outcome) = turn(&session, &format!("%tool Agent {call}\n%say back")).await;
    assert_eq!(outcome.result_text(), "back");
    let requests = rig.api().message_requests();
    let sub = requests
        .iter()
        .find(|request| request.agent_id().is_some())
        .expect("the agent asked");
    assert!(system(sub).contains(long.trim_end()), "its prompt came whole");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_session() {
    let rig = Rig::start().await;
    let settings = json!({"permissions": {"deny": ["Bash(touch:*)"]}, "sandbox": {"enabled": false}});
    let settings: Settings = serde_json::from_value(settings).unwrap();
    let session = rig.options().settings(settings).start().await.unwrap();
    let in_force = session
        .get_settings()
        .await
        .unwrap()
        .effective
        .to_value()
        .unwrap();
    assert_eq!(in_force["permissions"]["deny"], json!(["Bash(touch:*)"]));
    assert_eq!(in_force["sandbox"]["enabled"], false);
    assert!(!session.get_sandbox_dialog().await.unwrap().enabled);
    session.close().await.unwrap();
}

/// The rig's options without its home.
fn homeless(rig: &Rig) -> Options {
    let mut options = Agent::builder()
        .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
        .cli_path(rig.executable())
        .cwd(rig.sandbox().project());
    for (name, value) in rig.sandbox().env(&rig.api().base_url()) {
        if name.starts_with("DISABLE_") || name.contains("TRAFFIC") || name == "ANTHROPIC_BASE_URL" {
            options = options.env(name, value);
        }
    }
    options
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hermetic_session_sees_nothing_of_the_project_and_leaves_nothing() {
    let rig = Rig::start().await;
    let rules = json!({"permissions": {"deny": ["Bash(touch:*)"]}}).to_string();
    rig.sandbox().write(".claude/settings.json", rules).unwrap();
    rig.sandbox().write("CLAUDE.md", "Always say XYZZY.").unwrap();
    rig.sandbox()
        .write(".mcp.json", r#"{"mcpServers":{"evil":{"command":"evil"}}}"#)
        .unwrap();

    let session = homeless(&rig)
        .isolation(Isolation::Hermetic)
        .start()
        .await
        .unwrap();
    turn(&session, "%say one").await;
    let request = rig.api().message_requests().pop().unwrap();
    assert!(!request.body.to_string().contains("XYZZY"));
    // The project's, besides the one of our own.
    let has_rule = async |session: &outrigger::Session| {
        let rules = session.list_permission_rules().await.unwrap().state.rules;
        serde_json::to_string(&rules).unwrap().contains("touch")
    };
    assert!(!has_rule(&session).await);
    assert!(session.mcp_status().await.unwrap().mcp_servers.is_empty());
    let home = proc_file(&session, "environ")
        .into_iter()
        .find_map(|line| Some(line.strip_prefix("HOME=")?.to_owned()))
        .unwrap();
    assert!(std::path::Path::new(&home).is_dir());
    assert_ne!(Some(home.as_str()), std::env::var("HOME").ok().as_deref());
    session.close().await.unwrap();
    assert!(!std::path::Path::new(&home).exists(), "{home}");

    // The same checkout, trusted.
    let session = rig.options().isolation(Isolation::Project).start().await.unwrap();
    turn(&session, "%say one").await;
    let request = rig.api().message_requests().pop().unwrap();
    assert!(request.body.to_string().contains("XYZZY"));
    assert!(has_rule(&session).await);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_passes_by_name() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let given = rig.sandbox().env(&rig.api().base_url());
    let passes = |name: &str| {
        given.contains_key(name)
            || PASSED.iter().any(|listed| match listed.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => *listed == name,
            })
    };
    let variables = proc_file(&session, "environ");
    let names: BTreeSet<_> = variables
        .iter()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    let ours: Vec<_> = names.iter().filter(|name| !passes(name)).collect();
    // What the SDK says of itself to the CLI, what goes with the working directory, and that the CLI's runtime sends no crash reports.
    let others = [
        "PWD",
        "NoDefaultCurrentDirectoryInExePath",
        "BUN_ENABLE_CRASH_REPORTING",
    ];
    let own = |name: &str| name.starts_with("CLAUDE_") || others.contains(&name);
    assert!(ours.iter().all(|name| own(name)), "{ours:?}");
    assert!(
        !names.contains("CLAUDECODE") && !names.contains("NODE_OPTIONS"),
        "{names:?}"
    );
    // The program that runs this test sets this, and it is nobody else's business.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_wallet_is_refused_before_the_first_prompt() {
    let rig = Rig::start().await;
    // No helper is configured, so nothing would pay, or the wrong thing.
    let error = rig.options().auth(Auth::ApiKeyHelper).start().await.unwrap_err();
    let cause = std::error::Error::source(&error)
        .expect("the evidence")
        .to_string();
    assert!(error.to_string().contains("another account"), "{error}");
    assert!(
        cause.contains("apiKeyHelper") && cause.contains("none"),
        "{cause}"
    );
    assert!(rig.api().message_requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn verbatim_prompts_are_not_expanded() {
    let rig = Rig::start().await;
    rig.sandbox().write("note.md", "the word is XYZZY").unwrap();
    for (verbatim, expanded) in [(false, true), (true, false)] {
        let session = rig.options().verbatim_prompts(verbatim).start().await.unwrap();
        turn(&session, "%say seen\nlook at @note.md").await;
        let request = rig.api().message_requests().pop().unwrap();
        assert_eq!(
            request.body.to_string().contains("XYZZY"),
            expanded,
            "verbatim: {verbatim}"
        );
        session.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_too_long_is_reported_and_survived() {
    let rig = Rig::start().await;
    let session = rig.options().max_line_bytes(100_000_usize).start().await.unwrap();
    let mut long = session.prompt("%big 150000").await.unwrap();
    let mut kinds = Vec::new();
    let run = async {
        while let Some(event) = long.next().await {
            if let Event::Undecodable(frame, misfit) = event.expect("the session lives") {
                kinds.push(frame.kind().to_owned());
                assert!(misfit.to_string().contains("over the cap"), "{misfit}");
            }
        }
        long.outcome().await.expect("the turn ends all the same")
    };
    let outcome = timeout(PATIENCE, run).await.unwrap();
    // The CLI writes the type of a result last, where it was cut off.
    assert_eq!(kinds, ["assistant", ""]);
    assert_eq!(
        outcome.verdict(),
        &Verdict::Failed(Cause::TurnFailed("unreadable_result".into()))
    );
    assert!(outcome.errors()[0].contains("over the cap"), "{outcome:?}");
    let (_, outcome) = turn(&session, "%say short").await;
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "short")
    );
    session.close().await.unwrap();
}

/// A transport of one's own: the CLI by way of another program, as ssh or a container's would be.
struct Through;

struct Wrapped(tokio::process::Child);

impl Transport for Through {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let mut child = tokio::process::Command::new("/bin/sh")
                .args(["-c", "exec \"$@\"", "sh"])
                .arg(&launch.program)
                .args(&launch.args)
                .env_clear()
                .envs(&launch.env)
                .current_dir(&launch.cwd)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            Ok(Connection {
                stdin: Box::new(child.stdin.take().expect("piped")),
                stdout: Box::new(child.stdout.take().expect("piped")),
                stderr: None,
                process: Box::new(Wrapped(child)),
            })
        })
    }
}

impl Process for Wrapped {
    fn id(&self) -> Option<u32> {
        self.0.id()
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async { self.0.wait().await.map(Exit::from) })
    }

    fn signal(&mut self, _: Signal) -> io::Result<()> {
        self.0.start_kill()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transport_of_ones_own() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .transport(Through)
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let (seen, outcome) = turn(&session, "%tool Bash {\"command\":\"touch there\"}\n%say done").await;
    assert_eq!((seen[1].as_str(), outcome.result_text()), ("result ok", "done"));
    assert!(rig.sandbox().project().join("there").exists());
    assert_eq!(session.close().await.unwrap(), Exit::with_code(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_directories_are_in_reach() {
    let rig = Rig::start().await;
    let other = rig.sandbox().path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("file.txt"), "x").unwrap();
    let read = format!(
        "%tool Read {}\n%say done",
        json!({"file_path": other.join("file.txt")})
    );
    let mut results = BTreeMap::new();
    for reach in [false, true] {
        let mut options = rig.options().permissions(Policy::deny_all());
        if reach {
            options = options.additional_directories([&other]);
        }
        let session = options.start().await.unwrap();
        results.insert(reach, turn(&session, &read).await.0.swap_remove(1));
        session.close().await.unwrap();
    }
    assert_eq!(
        (results[&false].as_str(), results[&true].as_str()),
        ("result error", "result ok")
    );
}
