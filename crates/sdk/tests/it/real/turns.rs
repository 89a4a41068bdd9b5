//! What a turn may consist of.

use outrigger::{Assembler, Cause, Event, PartialContent, Policy, Prompt, Verdict};
use outrigger_sim::api::{ApiRequest, Reply};
use outrigger_sim::script::Raw;

use super::flow::{bash, end, events, rest, soon, until};
use super::rig::{PATIENCE, Rig, turn};

/// A picture of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// The content blocks of the last user message.
fn last_content(request: &ApiRequest) -> Vec<serde_json::Value> {
    let user = request
        .messages()
        .iter()
        .rfind(|message| message["role"] == "user");
    let content = user.map(|message| message["content"].clone()).unwrap_or_default();
    content.as_array().cloned().unwrap_or_else(|| vec![content])
}

#[tokio::test]
async fn usage_is_per_turn_and_sums_up() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let (_, first) = turn(&session, "%usage in=100 out=30\n%say one").await;
    let (_, second) = turn(&session, "%usage in=7 out=5\n%say two").await;
    assert_eq!(
        (first.usage().total().input, first.usage().total().output),
        (100, 30)
    );
    assert_eq!(
        (second.usage().total().input, second.usage().total().output),
        (7, 5)
    );
    let told = second.result().unwrap().unwrap();
    let sums = told.total_cost_usd;
    let told: f64 = serde_json::to_value(sums).unwrap().as_f64().unwrap();
    assert!((first.cost() + second.cost() - told).abs() < 1e-9 && second.cost() < first.cost());
    assert!((session.usage().cost_usd - told).abs() < 1e-9);
    assert_eq!((session.usage().results, session.usage().total().output), (2, 35));
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_messages_are_said_once_and_grow_to_the_final_text() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .include_partial_messages(true)
        .start()
        .await
        .unwrap();
    let mut frames = session.frames();
    let mut running = session
        .prompt("%think let me see\n%+say half {{gate:middle}}whole\n%+tool Bash {\"command\":\"echo hi\"}\n%say done")
        .await
        .unwrap();
    rig.api().gate("middle").reached(1, PATIENCE).await.unwrap();
    // What was written before the pause is here during the pause.
    let (mut thinking, mut text, mut parts) = (String::new(), String::new(), 0);
    let mut input = String::new();
    let mut after = String::new();
    soon(async {
        while let Some(event) = running.next().await {
            match event.unwrap() {
                Event::Thinking(part) => thinking += &part,
                Event::Text(part) => {
                    parts += 1;
                    text += &part;
                    if text == "half " {
                        rig.api().gate("middle").open();
                    }
                }
                Event::ToolInput { partial_json, .. } => input += &partial_json,
                Event::ToolUse(tool) => after = tool.input.get().to_owned(),
                _ => {}
            }
        }
    })
    .await;
    assert_eq!(
        (thinking.as_str(), text.as_str()),
        ("let me see", "half wholedone")
    );
    assert!(parts > 2, "{parts}");
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(json(&input), json(&after));
    assert_eq!(end(&mut running).await.result_text(), "done");

    let mut assembler = Assembler::new();
    let (mut grown, mut before) = (Vec::new(), String::new());
    soon(async {
        loop {
            let frame = frames.next().await.unwrap().unwrap();
            if frame.kind() == "result" {
                break;
            }
            let Some(block) = assembler.push(&frame) else {
                continue;
            };
            if let PartialContent::Text(text) = &block.content {
                assert!(text.starts_with(&before), "{before} then {text}");
                before = if block.done { String::new() } else { text.clone() };
                if block.done && grown.last() != Some(text) {
                    grown.push(text.clone());
                }
            }
        }
    })
    .await;
    assert_eq!(grown, ["half whole", "done"]);
}

#[tokio::test]
async fn all_kinds_of_blocks_come_in_order() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let (seen, outcome) = turn(
        &session,
        "%think first\n%+say then\n%+tool Bash {\"command\":\"echo hi\"}\n%+tool Bash {\"command\":\"cat nothing.txt\"}\n%redacted c2VjcmV0\n%+say done {{last}}",
    )
    .await;
    assert_eq!(seen[..4], ["thinking first", "text then", "use Bash", "use Bash"]);
    let mut results = seen[4..6].to_vec();
    results.sort();
    assert_eq!(results, ["result error", "result ok"]);
    assert!(seen[6].starts_with("text done "), "{seen:?}");
    assert_eq!(outcome.result_text(), seen[6].trim_start_matches("text "));
    assert_eq!(session.stats().misfits, 0);
}

#[tokio::test]
async fn images_documents_and_files_reach_the_model() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let file = rig.sandbox().write("notes.txt", "the notes").unwrap();
    let picture = rig.sandbox().write("dot.png", PNG).unwrap();
    let prompt = Prompt::text("%say seen")
        .image("image/png", PNG)
        .document("a document")
        .file(&file)
        .await
        .unwrap()
        .file(&picture)
        .await
        .unwrap();
    let mut running = session.prompt(prompt).await.unwrap();
    assert_eq!(end(&mut running).await.result_text(), "seen");
    let requests = rig.api().message_requests();
    let content = last_content(&requests[0]);
    let kinds: Vec<_> = content
        .iter()
        .map(|block| block["type"].as_str().unwrap_or_default())
        .filter(|kind| *kind != "text")
        .collect();
    assert_eq!(kinds, ["image", "document", "document", "image"], "{content:?}");
    let of = |kind: &'static str| content.iter().filter(move |block| block["type"] == kind);
    assert!(of("image").all(|image| image["source"]["media_type"] == "image/png"));
    let documents: Vec<_> = of("document")
        .map(|block| (&block["title"], &block["source"]["data"]))
        .collect();
    assert_eq!(documents[1], (&"notes.txt".into(), &"the notes".into()));
    assert!(
        Prompt::text("x")
            .file(rig.sandbox().project())
            .await
            .unwrap_err()
            .is_invalid()
    );
}

#[tokio::test]
async fn a_prompt_beyond_the_window_is_refused_without_asking_the_model() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let huge = "word and ".repeat(3_000_000 / 9);
    let mut running = session.prompt(huge).await.unwrap();
    let (_, outcome) = rest(&mut running).await;
    assert_eq!(
        outcome.verdict(),
        &Verdict::Failed(Cause::TooLong),
        "{:?}",
        outcome.terminal_reason()
    );
    assert!(outcome.answer().unwrap_err().outcome().is_some());
    assert_eq!(rig.api().message_requests().len(), 0);
    assert_eq!(
        session.close().await.unwrap().code,
        Some(1),
        "the exit code repeats the last result"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_outputs_and_answers_come_whole() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let (seen, outcome) = turn(
        &session,
        &format!(
            "{}\n%say done",
            bash("head -c 3000000 /dev/zero | tr '\\0' x; echo")
        ),
    )
    .await;
    assert_eq!(
        (seen.len(), outcome.verdict()),
        (3, &Verdict::Completed),
        "{seen:?}"
    );
    let (seen, outcome) = turn(&session, "%big 2000000").await;
    assert_eq!((seen.len(), outcome.result_text().len()), (1, 2_000_000));
    assert_eq!(session.stats().misfits, 0);
}

#[tokio::test]
async fn what_no_string_can_hold_does_not_end_the_session() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .include_partial_messages(true)
        .start()
        .await
        .unwrap();
    rig.api().push(Reply::new().step(Raw::Block(
        r#"{"type":"text","text":"cut \ud83d end \u2028 \u0000 \ud83d\ude00"}"#.into(),
    )));
    let (seen, outcome) = events(&session, "go").await;
    let text: String = seen
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(outcome.result_text(), "cut \u{fffd} end \u{2028} \0 😀");
    assert_eq!(text, outcome.result_text());
    assert_eq!(session.stats().misfits, 0, "{:?}", session.stats());
    assert_eq!(turn(&session, "%say 🦀 ok").await.1.result_text(), "🦀 ok");
}

#[tokio::test]
async fn text_stays_text_and_commands_are_commands() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let asked = || rig.api().message_requests().len();
    for empty in ["", " \n"] {
        assert!(session.prompt(empty).await.unwrap_err().is_invalid());
    }
    let (seen, outcome) = turn(&session, "/context is a path\n%say plain").await;
    assert_eq!(
        (seen, outcome.verdict()),
        (vec!["text plain".to_owned()], &Verdict::Completed)
    );
    assert_eq!(asked(), 1);
    let mut command = session.prompt(Prompt::command("/context", "")).await.unwrap();
    let (_, outcome) = rest(&mut command).await;
    assert_eq!(outcome.verdict(), &Verdict::LocalCommand(Some("context".into())));
    assert!(!outcome.result_text().is_empty() && outcome.cost() == 0.0);
    assert_eq!(asked(), 1, "no model was asked");
    let error = session
        .prompt(Prompt::command("frobnicate", ""))
        .await
        .unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().contains("/frobnicate"),
        "{error}"
    );
    assert_eq!(turn(&session, "%say on").await.0, ["text on"]);
}

#[tokio::test]
async fn a_verbatim_prompt_is_not_expanded() {
    let rig = Rig::start().await;
    rig.sandbox()
        .write("secret.txt", "the contents of the file")
        .unwrap();
    let session = rig.session().await;
    let mut asked = Vec::new();
    for prompt in [
        Prompt::text("see @secret.txt\n%say a").verbatim(),
        "see @secret.txt\n%say b".into(),
    ] {
        let mut running = session.prompt(prompt).await.unwrap();
        assert!(end(&mut running).await.is_success());
        asked.push(
            rig.api()
                .message_requests()
                .pop()
                .unwrap()
                .body
                .to_string()
                .contains("the contents of the file"),
        );
    }
    assert_eq!(asked, [false, true]);
}

#[tokio::test]
async fn a_prompt_without_query_waits_in_the_conversation() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut noted = session
        .prompt(Prompt::text("remember the milk").without_query())
        .await
        .unwrap();
    assert_eq!(end(&mut noted).await.verdict(), &Verdict::Appended);
    assert_eq!(rig.api().message_requests().len(), 0);
    assert_eq!(turn(&session, "%say yes").await.0, ["text yes"]);
    let requests = rig.api().message_requests();
    assert!(
        requests[0].body["messages"]
            .to_string()
            .contains("remember the milk")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_misses_nothing_of_a_turn() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session
        .prompt("%say one\n%+tool Bash {\"command\":\"echo hi\"}\n%say two")
        .await
        .unwrap();
    // The second turn is over before anybody looks at the first one's events.
    assert_eq!(turn(&session, "%say three").await.0, ["text three"]);
    assert_eq!(
        until(&mut first, "text two").await,
        ["text one", "use Bash", "result ok", "text two"]
    );
}
