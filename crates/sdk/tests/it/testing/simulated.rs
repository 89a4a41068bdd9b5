//! Sessions with simulated CLIs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outrigger::mcp::{SdkMcpServer, Tool};
use outrigger::options::{Auth, Launch};
use outrigger::sessions::ListOptions;
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Exit, Match, Reply, Steps};
use outrigger::transport::{BoxFuture, Connection, Transport};
use outrigger::{Agent, Options, Policy, SessionId};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Notify;

#[tokio::test(start_paused = true)]
async fn it_obeys_the_options_and_says_what_it_is_told_to() {
    let cli = Simulated::agent(|agent| {
        agent.replies([
            Reply::tool(
                "Bash",
                json!({"command": "touch a.txt", "description": "touch a file"}),
            ),
            Reply::say("done"),
        ])
    });
    let options = cli
        .options()
        .model("opus")
        .include_partial_messages(true)
        .permissions(Policy::read_only());
    let session = options.start().await.unwrap();
    let outcome = session.prompt("go on").await.unwrap().outcome().await.unwrap();
    assert_eq!(outcome.result_text(), "done");
    session.close().await.unwrap();

    let report = cli.report().unwrap();
    assert_eq!(report.exit, Some(Exit::Code(0)));
    let init = report.sent().find(|line| line["subtype"] == "init").unwrap();
    assert!(init["model"].as_str().unwrap().contains("opus"), "{init}");
    assert!(
        report
            .sent_kinds()
            .contains(&"stream_event/message_start".to_owned())
    );
    let answer = report
        .received()
        .find(|line| line["type"] == "control_response")
        .unwrap();
    assert_eq!(answer["response"]["response"]["behavior"], "deny", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn each_session_gets_one_of_its_own() {
    let cli = Simulated::agent(|agent| agent);
    let (one, other) = (
        cli.options().start().await.unwrap(),
        cli.options().start().await.unwrap(),
    );
    for (session, text) in [(&one, "one"), (&other, "other")] {
        let outcome = session
            .prompt(format!("%say {text}"))
            .await
            .unwrap()
            .outcome()
            .await
            .unwrap();
        assert_eq!(outcome.result_text(), text);
    }
    assert_ne!(one.ids(), other.ids());
    drop(one);
    assert_eq!(other.close().await.unwrap().code, Some(0));
    let started = cli.started();
    assert_eq!(started.len(), 2);
    // The one that nobody holds any more ends, too.
    started[0].exit().await;
}

#[tokio::test(start_paused = true)]
async fn it_refuses_what_the_cli_refuses() {
    let cli = Simulated::agent(|agent| agent);
    let error = cli
        .options()
        .extra_arg("no-such-flag", None)
        .start()
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("unknown option '--no-such-flag'"),
        "{error}"
    );
    assert_eq!(cli.report().unwrap().exit, Some(Exit::Code(1)));
}

#[tokio::test(start_paused = true)]
async fn a_script_says_where_its_client_left_it() {
    let cli = Simulated::steps(|| Steps::new().initialize().expect(Match::prompt("this")).exit(0));
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("that").await.unwrap();
    assert!(turn.outcome().await.is_err());
    let mismatch = cli.report().unwrap().verdict.unwrap_err();
    assert!(mismatch.received.contains("that"), "{mismatch}");
}

/// Passes nothing on but the start.
struct Around(Simulated);

impl Transport for Around {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        self.0.open(launch)
    }
}

/// The ids of the stored sessions in the config directory of these options.
fn stored(options: &Options) -> Vec<SessionId> {
    let list = options.sessions().unwrap().list(&ListOptions::new()).unwrap();
    list.into_iter().map(|session| session.session_id).collect()
}

#[tokio::test(start_paused = true)]
async fn its_sessions_are_stored_in_a_home_of_its_own() {
    // A number of its own, so that no earlier run has stored a session with the same id.
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let cli = Simulated::agent(move |agent| agent.seed(seed));
    let place = tempfile::tempdir().unwrap();
    let options = cli.options().cwd(place.path());
    let session = options.clone().start().await.unwrap();
    session.prompt("%say one").await.unwrap().answer().await.unwrap();
    let id = session.id().expect("a turn was played");
    session.close().await.unwrap();
    assert_eq!(stored(&options), std::slice::from_ref(&id));
    let users = Agent::builder().cwd(place.path());
    assert!(!stored(&users).contains(&id), "in the user's own home");

    // Another process of the same CLI takes the session up.
    let session = options.clone().resume(id.as_str()).start().await.unwrap();
    session.prompt("%say two").await.unwrap().answer().await.unwrap();
    session.close().await.unwrap();
    assert_eq!(stored(&options), [id]);

    // A transport around it that does not know of its home.
    let around = Agent::builder()
        .auth(Auth::Unchecked)
        .cwd(place.path())
        .transport(Around(cli.clone()));
    let session = around.start().await.unwrap();
    session
        .prompt("%say three")
        .await
        .unwrap()
        .answer()
        .await
        .unwrap();
    let id = session.id().expect("a turn was played");
    session.close().await.unwrap();
    assert!(!stored(&users).contains(&id), "in the user's own home");
    assert!(stored(&options).contains(&id));
}

/// It waits for an answer of a tool in this program, which nobody gives any more.
#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_one_that_is_killed_during_a_call() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct NoInput {}

    let called = Arc::new(Notify::new());
    let calls = Arc::clone(&called);
    let tool = Tool::new("t", "", move |_: NoInput, _| {
        calls.notify_one();
        std::future::pending::<String>()
    });
    let cli = Simulated::agent(|agent| agent.allowed_tools(["mcp__s__t"]));
    let options = cli
        .options()
        .sdk_mcp_server("s", SdkMcpServer::new("s").tool(tool));
    let session = options.start().await.unwrap();
    drop(session.prompt("%tool mcp__s__t {}").await.unwrap());
    called.notified().await;
    session.kill().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}
