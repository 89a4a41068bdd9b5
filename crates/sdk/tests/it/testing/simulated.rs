//! Sessions with simulated CLIs.

use outrigger::Policy;
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Exit, Match, Reply, Script};
use serde_json::json;

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
    let cli = Simulated::script(|| Script::new().initialize().expect(Match::prompt("this")).exit(0));
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("that").await.unwrap();
    assert!(turn.outcome().await.is_err());
    let mismatch = cli.report().unwrap().verdict.unwrap_err();
    assert!(mismatch.received.contains("that"), "{mismatch}");
}
