//! Prompts that look like slash commands.

use outrigger::{Prompt, PromptWarning, Session};
use outrigger_sim::peer::Agent;

use crate::support::session;

async fn warnings(session: &Session, prompt: Prompt) -> Vec<PromptWarning> {
    let mut turn = session.prompt(prompt).await.unwrap();
    turn.outcome().await.unwrap();
    turn.warnings().to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_text_that_looks_like_a_known_command_warns_and_is_sent_as_text() {
    let (session, _running) = session(Agent::builder()).await;
    let known = session.command_names().first().cloned().expect("a command");
    let expected = PromptWarning::CommandAsText {
        command: known.clone(),
    };
    for text in [
        format!("/{known}"),
        format!(" /{known} keep this"),
        format!("/{known}\nx"),
    ] {
        assert_eq!(
            warnings(&session, text.as_str().into()).await,
            std::slice::from_ref(&expected),
            "{text}"
        );
    }
    assert!(
        expected
            .to_string()
            .contains(&format!("Prompt::command(\"{known}\"")),
        "{expected}"
    );

    for prompt in [
        Prompt::text(format!("/{known}x")),
        Prompt::text(format!("/ {known}")),
        Prompt::text(format!("say /{known}")),
        Prompt::text("/usr/bin/env is a path"),
        Prompt::text(format!("/{known}")).verbatim(),
        Prompt::command(&known, ""),
    ] {
        let shown = format!("{prompt:?}");
        assert_eq!(warnings(&session, prompt).await, [], "{shown}");
    }
}
