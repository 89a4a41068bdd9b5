//! What is asked at the terminal besides permissions: questions of the model, plans, forms of MCP servers.

use serde_json::{Value, json};

use crate::display::Display;
use crate::rig::Rig;
use crate::terminal::{at_terminal, blocking, ends_with, reply};

/// Two questions; of the second several choices may be taken.
fn questions() -> String {
    let input = json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
            {"label": "Red", "description": "warm"},
            {"label": "Blue", "description": "cold"},
        ]},
        {"question": "Which rooms?", "header": "Rooms", "multiSelect": true, "options": [
            {"label": "Hall", "description": "big"},
            {"label": "Attic", "description": "small"},
            {"label": "Cellar", "description": "dark"},
        ]},
    ]});
    format!("%tool AskUserQuestion {input}\n%say Done: {{{{last}}}}")
}

/// What the model got back.
fn told(rig: &Rig) -> String {
    let requests = rig.api.message_requests();
    requests.last().unwrap().last_tool_result().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn choices_are_taken_by_number() {
    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "run", &[&questions()]);
    blocking(move || {
        session.exp_string("Which colour?").unwrap();
        session.exp_string("2. Blue - cold").unwrap();
        reply(&mut session, "skip): ", "7");
        reply(&mut session, "There is no choice 7", "2");
        session.exp_string("Which rooms?").unwrap();
        reply(&mut session, "Numbers separated by commas", "1, 3");
        session.exp_string("Done:").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    let told = told(&rig);
    assert!(told.contains("Blue") && told.contains("Hall, Cellar"), "{told}");
    assert!(!told.contains("Red") && !told.contains("Attic"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_takes_own_words_and_may_be_skipped() {
    let rig = Rig::start().await;
    let mut display = Display::start(&rig, "chat", 80, &[]);
    blocking(move || {
        display.at("> ");
        display.enter(&questions().replace('\n', "\\\r"));
        display.asks("skip): ");
        display.enter("");
        display.shows("3. Cellar - dark");
        display.asks("skip): ");
        display.enter("the shed, rather");
        display.shows("\nDone:");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    let told = told(&rig);
    assert!(
        told.contains("the shed, rather") && !told.contains("Blue"),
        "{told}"
    );
}

/// An answer of nothing reads like consent, so it is a refusal.
#[tokio::test(flavor = "multi_thread")]
async fn questions_that_are_all_skipped_are_refused() {
    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "run", &[&questions()]);
    blocking(move || {
        for _ in 0..2 {
            reply(&mut session, "skip): ", "");
        }
        session.exp_string("Done:").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    let told = told(&rig);
    assert!(told.contains("the user did not answer"), "{told}");
}

/// The tools that the model was offered.
fn offered(rig: &Rig) -> Vec<String> {
    let requests = rig.api.message_requests();
    requests[0].tools().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_can_ask_only_where_somebody_is_there() {
    let rig = Rig::start().await;
    let ran = rig.run(&["%say Hello."]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let tools = offered(&rig);
    assert!(tools.contains(&"Bash".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"AskUserQuestion".to_owned()), "{tools:?}");

    let rig = Rig::start().await;
    let mut session = at_terminal(&rig, "run", &["%say Hello."]);
    blocking(move || ends_with(&mut session, 0)).await;
    let tools = offered(&rig);
    assert!(tools.contains(&"AskUserQuestion".to_owned()), "{tools:?}");
}

/// A plan, and what is done once it is approved: a file is written.
fn plan(rig: &Rig, then: &str) -> String {
    let plan = json!({"file_path": "{{plan}}", "content": "# The plan\n1. Paint the roof.\n"});
    let write = json!({"file_path": rig.sandbox.project().join("roof.txt"), "content": "red"});
    format!("Plan it.\n%tool Write {plan}\n%tool ExitPlanMode {{}}\n{then}%tool Write {write}\n%say Done.")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_approved_with_its_edits() {
    let rig = Rig::start().await;
    let prompt = plan(&rig, "");
    let mut session = at_terminal(&rig, "run", &["--permission-mode", "plan", &prompt]);
    blocking(move || {
        session.exp_string("1. Paint the roof.").unwrap();
        reply(&mut session, "Carry it out?", "e");
        // The edit is not asked about any more.
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(rig.sandbox.project().join("roof.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_sent_back_with_words_and_then_approved() {
    let rig = Rig::start().await;
    let prompt = plan(&rig, "%tool ExitPlanMode {}\n");
    let mut session = at_terminal(&rig, "run", &["--permission-mode", "plan", &prompt]);
    blocking(move || {
        reply(&mut session, "Carry it out?", "paint it twice");
        reply(&mut session, "Carry it out?", "y");
        session.exp_string("roof.txt").unwrap();
        reply(&mut session, "Allow?", "n");
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(!rig.sandbox.project().join("roof.txt").exists());
    let requests = rig.api.message_requests();
    let said: Vec<_> = requests
        .iter()
        .filter_map(|request| request.last_tool_result())
        .collect();
    assert!(
        said.iter()
            .any(|result| result.contains("wants the plan changed: paint it twice")),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_plan_that_nobody_can_approve_is_refused() {
    let rig = Rig::start().await;
    let prompt = plan(&rig, "");
    let ran = rig.run(&["--permission-mode", "plan", &prompt]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!rig.sandbox.project().join("roof.txt").exists());
    let requests = rig.api.message_requests();
    let refused = requests.iter().filter_map(|request| request.last_tool_result());
    assert!(refused.into_iter().any(|result| result.contains("--no-ask")));
}

/// An MCP server with one tool, `ask`, that asks the user: `asked` is what it asks. It gives back what it was told.
pub(crate) fn server(rig: &Rig, asked: &Value) -> String {
    let script = format!(
        r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"desk","version":"1"}}}}}}\n' "$id" ;;
    *'"method":"tools/list"'*)
      printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[{{"name":"ask","inputSchema":{{"type":"object"}}}}]}}}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      printf '%s\n' '{{"jsonrpc":"2.0","id":"asked","method":"elicitation/create","params":{asked}}}'
      read -r answer
      text=$(printf '%s' "$answer" | sed 's/[\\"]/\\&/g')
      printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"%s"}}]}}}}\n' "$id" "$text" ;;
    *'"id"'*)
      printf '{{"jsonrpc":"2.0","id":%s,"result":{{}}}}\n' "$id" ;;
  esac
done
"#
    );
    rig.sandbox.write("server.sh", script).unwrap();
    let path = |name: &str| rig.sandbox.project().join(name).to_str().unwrap().to_owned();
    let config =
        json!({"mcpServers": {"desk": {"type": "stdio", "command": "sh", "args": [path("server.sh")]}}});
    rig.sandbox.write("mcp.json", config.to_string()).unwrap();
    path("mcp.json")
}

const CALL: &str = "%tool mcp__desk__ask {}\n%say Done.";

fn form() -> Value {
    json!({"mode": "form", "message": "Which roof?", "requestedSchema": {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "tiles": {"type": "integer", "minimum": 1},
            "steep": {"type": "boolean"},
            "owner": {"type": "string"},
        },
        "required": ["colour", "tiles"],
    }})
}

fn args(config: &str) -> [&str; 5] {
    ["--mcp-config", config, "--allow", "mcp__desk__ask", CALL]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_an_mcp_server_is_filled_in() {
    let rig = Rig::start().await;
    let config = server(&rig, &form());
    let mut session = at_terminal(&rig, "run", &args(&config));
    blocking(move || {
        session.exp_string("The MCP server desk asks").unwrap();
        session.exp_string("Which roof?").unwrap();
        reply(&mut session, "2. blue", "2");
        reply(&mut session, "tiles [whole number]", "0");
        reply(&mut session, "It should be at least 1.", "12");
        reply(&mut session, "steep [y/n]", "y");
        reply(&mut session, "owner (nothing: leave out)", "");
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    let told = told(&rig);
    let answer: Value = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(
        answer["result"],
        json!({"action": "accept", "content": {"colour": "blue", "tiles": 12, "steep": true}})
    );
    rig.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_declined_by_a_dot_and_where_nobody_is() {
    let rig = Rig::start().await;
    let config = server(&rig, &form());
    let mut session = at_terminal(&rig, "run", &args(&config));
    blocking(move || {
        reply(&mut session, "a number: ", ".");
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(told(&rig).contains(r#""action":"decline""#), "{}", told(&rig));

    let ran = rig.run(&args(&config)).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(told(&rig).contains(r#""action":"decline""#), "{}", told(&rig));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_shown_and_never_opened() {
    let rig = Rig::start().await;
    let asked = json!({"mode": "url", "message": "Sign in.", "url": "https://example.com/in?x=1", "elicitationId": "e1"});
    let config = server(&rig, &asked);
    let mut session = at_terminal(&rig, "run", &args(&config));
    blocking(move || {
        session.exp_string("https://example.com/in?x=1").unwrap();
        reply(&mut session, "Open it, then", "d");
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(told(&rig).contains(r#""action":"accept""#), "{}", told(&rig));
}

/// What was typed for a question that is gone answers nothing else; the next line is the conversation's.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_withdrawn_takes_no_line_with_it() {
    let rig = Rig::start().await;
    let mut display = Display::start(&rig, "chat", 80, &[]);
    blocking(move || {
        display.at("> ");
        display.enter(&questions().replace('\n', "\\\r"));
        display.asks("skip): ");
        display.press("\x03");
        display.shows("withdrawn");
        display.at("> ");
        display.enter("%say Next.");
        display.shows("\nNext.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    rig.nothing_left().await;
}

/// Half an answer, too: it must not become the beginning of something else.
#[tokio::test(flavor = "multi_thread")]
async fn half_an_answer_goes_with_its_question() {
    use rexpect::process::Signal;

    let rig = Rig::start().await;
    let mut display = Display::start(&rig, "chat", 80, &[]);
    blocking(move || {
        display.at("> ");
        display.enter(&questions().replace('\n', "\\\r"));
        display.asks("skip): ");
        display.press("the half of it ");
        display.asks("skip): the half of it ");
        // By the signal alone: Ctrl-C at a terminal takes what was typed with it.
        display.signal(Signal::SIGINT);
        display.shows("withdrawn");
        display.at("> ");
        display.enter("%say Next.");
        display.shows("\nNext.\n");
        display.at("> ");
        display.press("\x04");
        display.ends_with(0);
    })
    .await;
    let requests = rig.api.message_requests();
    let last = requests.last().unwrap().last_user_text().unwrap();
    assert!(last.ends_with("\n%say Next."), "{last}");
}
