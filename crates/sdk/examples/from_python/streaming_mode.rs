//! Sessions of many prompts: `streaming_mode.py`.

use std::time::Duration;

use futures_util::future::try_join_all;
use outrigger::options::PermissionMode;
use outrigger::{Cause, Event};

use crate::support::{Result, Stage, show};

pub(crate) async fn run(stage: &Stage) -> Result {
    multi_turn_conversation(stage).await?;
    concurrent_responses(stage).await?;
    with_interrupt(stage).await?;
    manual_message_handling(stage).await?;
    many_prompts(stage).await?;
    bash_command(stage).await?;
    control_protocol(stage).await?;
    error_handling(stage).await
}

async fn multi_turn_conversation(stage: &Stage) -> Result {
    println!("--- many turns");
    let session = stage.agent().start().await?;
    show(
        &session,
        stage.prompt("What is the capital of France?", "%say Paris."),
    )
    .await?;
    show(
        &session,
        stage.prompt("How many people live in that city?", "%say Two million."),
    )
    .await?;
    session.close().await?;
    Ok(())
}

/// A prompt can be sent while another one runs. Each turn is the answer to its own prompt.
async fn concurrent_responses(stage: &Stage) -> Result {
    println!("--- prompts at once");
    let session = stage.agent().start().await?;
    let asked = [
        ("What is 2 + 2?", "4"),
        ("The square root of 144?", "12"),
        ("10 % of 80?", "8"),
    ];
    let answers = asked.map(|(question, answer)| {
        let prompt = stage.prompt(question, &format!("%say {answer}"));
        let session = session.clone();
        async move {
            let answer = session.prompt(prompt).await?.answer().await?;
            Ok::<_, outrigger::Error>(format!("{question} {answer}"))
        }
    });
    for line in try_join_all(answers).await? {
        println!("{line}");
    }
    session.close().await?;
    Ok(())
}

async fn with_interrupt(stage: &Stage) -> Result {
    println!("--- interrupt");
    let session = stage.agent().include_partial_messages(true).start().await?;
    let counting =
        "%slow 100 chunk=3\n%say 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25";
    let mut turn = session
        .prompt(stage.prompt("Count slowly to 100.", counting))
        .await?;
    while let Some(event) = turn.next().await {
        if matches!(event?, Event::Text(_)) {
            break;
        }
    }
    session.interrupt().await?;
    println!("ended: {}", turn.outcome().await?.verdict());
    show(
        &session,
        stage.prompt("Never mind. Tell me a joke.", "%say Knock, knock."),
    )
    .await?;
    session.close().await?;
    Ok(())
}

async fn manual_message_handling(stage: &Stage) -> Result {
    println!("--- events by hand");
    let session = stage.agent().start().await?;
    let mut turn = session
        .prompt(stage.prompt("List some languages.", "%say Rust, Python and Go."))
        .await?;
    let mut found = Vec::new();
    while let Some(event) = turn.next().await {
        if let Event::Text(text) = event? {
            found.extend(
                ["Python", "Rust", "Go"]
                    .into_iter()
                    .filter(|name| text.contains(name)),
            );
        }
    }
    println!("found {}", found.join(", "));
    turn.answer().await?;
    session.close().await?;
    Ok(())
}

/// What an async iterable of prompts is in Python. `queue` hands each to the CLI's own queue.
async fn many_prompts(stage: &Stage) -> Result {
    println!("--- queued prompts");
    let session = stage.agent().start().await?;
    let mut turns = Vec::new();
    for (prompt, script) in [
        ("I have two questions.", "%say Ask."),
        ("The capital of Japan?", "%say Tokyo."),
        ("15 % of 200?", "%say 30."),
    ] {
        turns.push(session.prompt(stage.prompt(prompt, script)).await?);
    }
    for mut turn in turns {
        println!("Claude: {}", turn.answer().await?);
    }
    session.close().await?;
    Ok(())
}

async fn bash_command(stage: &Stage) -> Result {
    println!("--- a command");
    let session = stage.agent().start().await?;
    let script = "%tool Bash {\"command\": \"echo Hello from bash!\"}\n%say It says: {{last}}";
    show(&session, stage.prompt("Have bash say hello.", script)).await?;
    session.close().await?;
    Ok(())
}

async fn control_protocol(stage: &Stage) -> Result {
    println!("--- control");
    let session = stage.agent().start().await?;
    println!("commands: {}", !session.command_names().is_empty());
    session.set_permission_mode(PermissionMode::AcceptEdits).await?;
    session.set_model(Some("opus")).await?;
    show(&session, stage.prompt("Go on.", "%say With another model.")).await?;
    session.close().await?;
    Ok(())
}

async fn error_handling(stage: &Stage) -> Result {
    println!("--- errors");
    match stage.agent().cli_path("/nowhere/claude").start().await {
        Err(error) if error.cause() == Some(Cause::BinaryMissing) => println!("not installed: {error}"),
        Err(error) => return Err(error.into()),
        Ok(session) => drop(session.close().await?),
    }
    let session = stage.agent().start().await?;
    let mut turn = session
        .prompt(stage.prompt("Take your time.", "%delay 60000\n%say At last."))
        .await?;
    // A deadline of the program's own. The turn goes on until it is cancelled.
    if tokio::time::timeout(Duration::from_millis(500), turn.answer())
        .await
        .is_err()
    {
        println!("too slow: cancelled");
        turn.cancel().await?;
    }
    session.close().await?;
    Ok(())
}
