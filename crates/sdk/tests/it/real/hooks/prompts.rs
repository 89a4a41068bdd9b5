//! Hooks around prompts, and around what the model says.

use std::sync::Arc;

use outrigger::hooks::{
    self, ContextOutput, HookOutput, MessageDisplayOutput, OnFailure, PreSkillShellCommandOutput,
    UserPromptExpansionOutput, UserPromptSubmitOutput, event,
};
use outrigger::options::Isolation;
use outrigger::protocol::inbound::system::SystemMessage;
use outrigger::{Cause, Event, Policy, Verdict};

use super::super::flow::{events, system};
use super::super::rig::{Rig, turn};
use super::{Desk, command};

fn requests(rig: &Rig) -> usize {
    rig.api().message_requests().len()
}

/// What the model was told last.
fn heard(rig: &Rig) -> String {
    serde_json::to_string(rig.api().message_requests().last().unwrap().messages()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_kept_from_the_model() {
    let rig = Rig::start().await;
    let desk = Desk::<event::UserPromptSubmit>::new();
    let told = Arc::clone(&desk);
    let session = rig
        .options()
        .hook(hooks::user_prompt_submit(move |input, _| {
            let answer = told.take(input.prompt);
            async move { answer }
        }))
        .start()
        .await
        .unwrap();
    for answer in [HookOutput::block("not this"), HookOutput::stop("not this")] {
        desk.next(answer);
        let (seen, outcome) = turn(&session, "%say secret").await;
        assert!(seen.is_empty(), "{seen:?}");
        assert_eq!(outcome.verdict(), &Verdict::NotRun);
        assert!(
            outcome.result_text().contains("not this"),
            "{}",
            outcome.result_text()
        );
        assert_eq!(desk.noted(), ["%say secret"]);
    }
    assert_eq!(requests(&rig), 0);

    let more = UserPromptSubmitOutput::default()
        .additional_context("by the way")
        .session_title("A talk");
    desk.next(HookOutput::specific(more));
    let (seen, _) = events(&session, "%say hello").await;
    assert!(heard(&rig).contains("by the way"));
    let titled = system(&seen).any(|message| matches!(message, SystemMessage::SessionTitleChanged(_)));
    assert!(titled, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_whose_guard_fails_is_kept_from_the_model() {
    let rig = Rig::start().await;
    let hook = hooks::user_prompt_submit(|_, _| async { panic!("a bug") as HookOutput<_> });
    let session = rig.options().hook(hook.clone()).start().await.unwrap();
    let (_, outcome) = turn(&session, "%say secret").await;
    assert_eq!(outcome.verdict(), &Verdict::NotRun);
    assert!(
        outcome
            .result_text()
            .contains("the UserPromptSubmit hook failed: it panicked"),
        "{}",
        outcome.result_text()
    );
    assert_eq!(requests(&rig), 0);
    let session = rig
        .options()
        .hook(hook.on_failure(OnFailure::Continue))
        .start()
        .await
        .unwrap();
    assert_eq!(turn(&session, "%say secret").await.1.result_text(), "secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_command_is_kept_from_the_model() {
    let rig = Rig::start().await;
    rig.sandbox()
        .write(".claude/commands/greet.md", "%say hello $ARGUMENTS")
        .unwrap();
    let desk = Desk::<event::UserPromptExpansion>::new();
    let told = Arc::clone(&desk);
    let options = rig.options().isolation(Isolation::Project);
    let session = options
        .clone()
        .hook(
            hooks::user_prompt_expansion(move |input, _| {
                let answer = told.take(format!(
                    "{} {} {}",
                    input.command_name, input.command_args, input.prompt
                ));
                async move { answer }
            })
            .matcher("greet"),
        )
        .start()
        .await
        .unwrap();
    let more = UserPromptExpansionOutput::default().additional_context("by the way");
    desk.next(HookOutput::specific(more));
    command(&session, "greet", "you").await;
    let said = heard(&rig);
    assert!(
        said.contains("%say hello you") && said.contains("by the way"),
        "{said}"
    );
    let asked = requests(&rig);
    desk.next(HookOutput::block("nobody is to be greeted"));
    let outcome = command(&session, "greet", "you").await;
    assert_eq!(requests(&rig), asked);
    assert!(
        outcome.result_text().contains("nobody is to be greeted"),
        "{}",
        outcome.result_text()
    );
    assert_eq!(desk.noted(), ["greet you /greet you", "greet you /greet you"]);

    let fails = hooks::user_prompt_expansion(|_, _| async { Err::<HookOutput<_>, _>("the list is lost") });
    let session = options.hook(fails).start().await.unwrap();
    let asked = requests(&rig);
    let outcome = command(&session, "greet", "you").await;
    assert!(
        outcome.result_text().contains("the list is lost"),
        "{}",
        outcome.result_text()
    );
    assert_eq!(requests(&rig), asked);
}

/// No permission is requested for a shell command in the text of a slash command: this hook alone sees it.
#[tokio::test(flavor = "multi_thread")]
async fn a_shell_command_in_a_slash_command_runs_only_if_the_hook_allows_it() {
    let rig = Rig::start().await;
    let touched = rig.sandbox().project().join("touched");
    rig.sandbox()
        .write(
            ".claude/commands/touch.md",
            "---\nallowed-tools: Bash(touch *)\n---\n%say !`touch $ARGUMENTS`",
        )
        .unwrap();
    let desk = Desk::<event::PreSkillShellCommand>::new();
    let told = Arc::clone(&desk);
    let options = rig.options().isolation(Isolation::Project);
    let hook = hooks::pre_skill_shell_command(move |input, _| {
        let answer = told.take(format!(
            "{} {} {} {:?}",
            input.tool_name, input.tool_input.command, input.command_name, input.invoked_by
        ));
        async move { answer }
    });
    let session = options.clone().hook(hook.matcher("Bash")).start().await.unwrap();
    desk.next(HookOutput::specific(PreSkillShellCommandOutput::deny(
        "touch nothing",
    )));
    command(&session, "touch", "touched").await;
    assert!(!touched.exists());
    assert_eq!(desk.noted(), ["Bash touch touched touch User"]);
    desk.next(HookOutput::none());
    command(&session, "touch", "touched").await;
    assert!(touched.exists());
    std::fs::remove_file(&touched).unwrap();

    let fails = hooks::pre_skill_shell_command(|_, _| async { Err::<HookOutput<_>, _>("the list is lost") });
    let session = options.hook(fails).start().await.unwrap();
    command(&session, "touch", "touched").await;
    assert!(!touched.exists());
}

/// The file of a slash command may allow its own shell commands, in addition to a policy. Rules that deny and ask hold.
#[tokio::test(flavor = "multi_thread")]
async fn rules_that_deny_and_ask_hold_for_the_shell_commands_of_a_slash_command() {
    let rig = Rig::start().await;
    let project = rig.sandbox().project();
    for (name, allowed) in [
        ("granted", "---\nallowed-tools: Bash(touch *)\n---\n"),
        ("plain", ""),
    ] {
        let text = format!("{allowed}%say !`touch $ARGUMENTS`");
        rig.sandbox()
            .write(format!(".claude/commands/{name}.md"), text)
            .unwrap();
    }
    let options = rig.options().isolation(Isolation::Project);
    let touch = ["Bash(touch *)"];
    let policies = [
        ("read_only", Policy::read_only(), [true, false]),
        ("allow", Policy::ask_all().allow(touch), [true, true]),
        ("deny", Policy::allow_all().deny(touch), [false, false]),
        ("deny_tool", Policy::allow_all().deny(["Bash"]), [false, false]),
        ("ask", Policy::allow_all().ask(touch), [false, false]),
    ];
    for (name, policy, expected) in policies {
        let session = options.clone().permissions(policy).start().await.unwrap();
        let mut made = Vec::new();
        for file in ["granted", "plain"] {
            let path = format!("{name}-{file}");
            command(&session, file, &path).await;
            made.push(project.join(path).exists());
        }
        assert_eq!(made, expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_when_a_hook_wants_it_to() {
    let rig = Rig::start().await;
    let desk = Desk::<event::Stop>::new();
    let told = Arc::clone(&desk);
    let session = rig
        .options()
        .hook(hooks::stop(move |input, _| {
            let answer = told.take(format!(
                "{:?} {}",
                input.last_assistant_message, input.stop_hook_active
            ));
            async move {
                if input.stop_hook_active {
                    HookOutput::none()
                } else {
                    answer
                }
            }
        }))
        .start()
        .await
        .unwrap();
    desk.next(HookOutput::block("%say two"));
    let (seen, outcome) = turn(&session, "%say one").await;
    assert_eq!(seen.first().map(String::as_str), Some("text one"));
    assert_eq!(desk.noted()[0], "Some(\"one\") false");
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    let more = heard(&rig);
    assert!(
        more.contains("Stop hook feedback") && more.contains("%say two"),
        "{more}"
    );
    let asked = requests(&rig);
    desk.next(HookOutput::specific(ContextOutput::new("by the way")));
    turn(&session, "%say three").await;
    assert!(requests(&rig) > asked);

    // One that always fails does not keep it going for ever, even if told to.
    let fails = hooks::stop(|_, _| async { panic!("a bug") as HookOutput<_> });
    let session = rig
        .options()
        .hook(fails.on_failure(OnFailure::Block))
        .start()
        .await
        .unwrap();
    let (_, outcome) = turn(&session, "%say four").await;
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    assert!(heard(&rig).contains("the Stop hook failed: it panicked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_the_api_ends_is_told() {
    let rig = Rig::start().await;
    let desk = Desk::<event::StopFailure>::new();
    let told = Arc::clone(&desk);
    let session = rig
        .options()
        .hook(hooks::stop_failure(move |input, _| {
            let answer = told.take(input.error.as_str());
            async move { answer }
        }))
        .start()
        .await
        .unwrap();
    let (_, outcome) = turn(&session, "%error 400 n=99 msg=\"no\"\n%say never").await;
    assert!(matches!(outcome.cause(), Some(Cause::Api { .. })), "{outcome:?}");
    super::until("the hook", || !desk.notes().is_empty()).await;
    assert_eq!(desk.noted(), ["unknown"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_is_not_what_was_said() {
    let rig = Rig::start().await;
    let hook = hooks::message_display(|input, _| async move {
        HookOutput::specific(
            MessageDisplayOutput::default().display_content(input.delta.replace("secret", "***")),
        )
    });
    let session = rig.options().hook(hook).start().await.unwrap();
    let (seen, outcome) = turn(&session, "%say a secret word").await;
    assert_eq!(seen, ["text a *** word"]);
    assert_eq!(outcome.result_text(), "a *** word");

    let fails = hooks::message_display(|_, _| async { panic!("a bug") as HookOutput<_> });
    let session = rig
        .options()
        .hook(fails.on_failure(OnFailure::Block))
        .start()
        .await
        .unwrap();
    let (seen, _) = events(&session, "%say a secret word").await;
    let shown: Vec<_> = seen
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, ["[withheld: the MessageDisplay hook failed: it panicked]"]);
}
