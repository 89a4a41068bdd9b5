//! The CLI asks, and the program takes its time.

use std::sync::{Arc, Mutex};

use outrigger::Policy;
use outrigger::permissions::{PermissionRequest, PermissionResult};
use outrigger_sim::peer::faulty::{FaultyScript, frames};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::stand::{Stand, on_both_runtimes, read, tell, turn};

fn begun() -> FaultyScript {
    FaultyScript::new().initialize().prompt()
}

async fn the_handler_sees_the_input_and_is_answered_once() {
    let seen: Arc<Mutex<Vec<PermissionRequest>>> = Arc::default();
    let stand = Stand::new(&begun().ask("q", "Bash").answer_to("q").result("fine"));
    let keep = Arc::clone(&seen);
    let session = stand
        .options()
        .can_use_tool(move |request| {
            keep.lock().unwrap().push(request);
            async { PermissionResult::allow() }
        })
        .start()
        .await
        .unwrap();
    let (_, outcome) = turn(&session, "go").await;
    assert_eq!(outcome.result_text(), "fine");
    session.close().await.unwrap();
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let [request] = seen.as_slice() else {
        panic!("asked {} times", seen.len())
    };
    let input: Value = request.input.decode().unwrap();
    assert_eq!(
        input,
        json!({"command": "touch a.txt", "description": "touch a file"})
    );
    assert_eq!(
        (request.tool_name.as_str(), request.tool_use_id.as_deref()),
        ("Bash", Some("toolu_q"))
    );
    // Older CLIs run nothing without an `updatedInput`.
    let allowed = json!({"behavior": "allow", "updatedInput": input, "toolUseID": "toolu_q"});
    assert_eq!(stand.answers(), [(json!("q"), allowed)]);
    stand.gone().await;
}

async fn a_question_that_is_withdrawn_is_never_answered() {
    let (heard, mut hear) = mpsc::unbounded_channel();
    let stand = Stand::new(
        &begun()
            .ask("q", "Bash")
            .request("asked")
            .reply(json!({}))
            .line(frames::withdraw("q"))
            // One that it never asked, and one that it withdraws a second time.
            .line(frames::withdraw("unheard"))
            .line(frames::withdraw("q"))
            .say("changed my mind")
            .request("withdrawn")
            .reply(json!({}))
            .result("fine"),
    );
    struct Dropped(mpsc::UnboundedSender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let answer = Arc::new(Notify::new());
    let release = Arc::clone(&answer);
    let session = stand
        .options()
        .can_use_tool(move |_| {
            let dropped = Dropped(heard.clone());
            let answer = Arc::clone(&answer);
            async move {
                let _ = dropped.0.send("asked");
                answer.notified().await;
                PermissionResult::allow()
            }
        })
        .start()
        .await
        .unwrap();
    let mut running = session.prompt("go").await.unwrap();
    assert_eq!(hear.recv().await, Some("asked"));
    session.raw_request("asked", json!({})).await.unwrap();
    assert_eq!(hear.recv().await, Some("dropped"));
    release.notify_waiters();
    session.raw_request("withdrawn", json!({})).await.unwrap();
    let (_, outcome) = read(&mut running).await;
    assert_eq!(outcome.result_text(), "fine");
    assert_eq!(session.stats().unanswered_by_us, 0);
    session.close().await.unwrap();
    assert_eq!(stand.answers(), []);
    stand.gone().await;
}

/// The turn goes on while the handler thinks, and other requests are answered.
async fn messages_pass_while_a_handler_thinks() {
    let thought = Arc::new(Notify::new());
    let stand = Stand::new(
        &begun()
            .ask("q", "Bash")
            .repeat(5, FaultyScript::new().say("meanwhile $i"))
            .request("mcp_status")
            .reply(json!({"mcpServers": []}))
            .answer_to("q")
            .result("fine"),
    );
    let think = Arc::clone(&thought);
    let session = stand
        .options()
        .can_use_tool(move |_| {
            let think = Arc::clone(&think);
            async move {
                think.notified().await;
                PermissionResult::deny("after long thought")
            }
        })
        .start()
        .await
        .unwrap();
    let mut running = session.prompt("go").await.unwrap();
    let mut told = Vec::new();
    while told.len() < 5 {
        told.extend(tell(&running.next().await.unwrap().unwrap()));
    }
    session.raw_request("mcp_status", json!({})).await.unwrap();
    assert_eq!(session.stats().unanswered_by_us, 1);
    // A permit is kept, should the handler not be there yet.
    thought.notify_one();
    let (_, outcome) = read(&mut running).await;
    assert_eq!(outcome.result_text(), "fine");
    session.close().await.unwrap();
    assert_eq!(stand.answers()[0].1["message"], "after long thought");
    stand.gone().await;
}

/// Nobody reads the turn or the frames; the question behind 3000 messages is answered all the same, and nothing is lost.
async fn a_question_is_answered_while_3000_messages_wait_unread() {
    let stand = Stand::new(
        &begun()
            .repeat(3000, FaultyScript::new().say("$i"))
            .ask("q", "Bash")
            .answer_to("q")
            .result("fine"),
    );
    let session = stand
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let mut frames = session.frames();
    let mut running = session.prompt("go").await.unwrap();
    assert_eq!(running.watch().outcome().await.unwrap().result_text(), "fine");
    let (told, _) = read(&mut running).await;
    let expected = (0..3000).map(|number| format!("text {number}"));
    assert!(told.iter().cloned().eq(expected), "{} lines", told.len());
    session.close().await.unwrap();
    let mut seen = 0;
    while let Some(frame) = frames.next().await {
        seen += usize::from(frame.expect("nothing is missed").kind() == "assistant");
    }
    assert_eq!(seen, 3000);
    stand.gone().await;
}

async fn of_150_questions_at_once_each_is_answered_once() {
    let mut asked = begun();
    for number in 0..150 {
        asked = asked.ask(&format!("q{number}"), "Bash");
    }
    let mut script = asked;
    for number in 0..150 {
        script = script.answer_to(&format!("q{number}"));
    }
    let stand = Stand::new(&script.result("fine"));
    let session = stand
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let (_, outcome) = turn(&session, "go").await;
    assert_eq!(outcome.result_text(), "fine");
    session.close().await.unwrap();
    let mut ids: Vec<_> = stand
        .answers()
        .iter()
        .map(|(id, _)| id.as_str().unwrap().to_owned())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), stand.answers().len()), (150, 150));
    stand.gone().await;
}

/// An id that comes again while it is open is the same question; one that comes after the answer is a new one.
async fn an_id_that_comes_again_is_answered_once_for_each_question() {
    let stand = Stand::new(
        &begun()
            .ask("q", "Bash")
            .ask("q", "Bash")
            .request("both")
            .reply(json!({}))
            .answer_to("q")
            .ask("q", "Bash")
            .answer_to("q")
            .result("fine"),
    );
    let thought = Arc::new(Notify::new());
    let think = Arc::clone(&thought);
    let session = stand
        .options()
        .can_use_tool(move |_| {
            let think = Arc::clone(&think);
            async move {
                think.notified().await;
                PermissionResult::allow()
            }
        })
        .start()
        .await
        .unwrap();
    let mut running = session.prompt("go").await.unwrap();
    session.raw_request("both", json!({})).await.unwrap();
    assert_eq!(session.stats().duplicate_requests, 1);
    thought.notify_one();
    // The second question needs a word of its own.
    stand
        .noted(|note| {
            matches!(note, outrigger_sim::peer::faulty::Note::Received(line) if line["type"] == "control_response")
        })
        .await;
    thought.notify_one();
    let (_, outcome) = read(&mut running).await;
    assert_eq!(outcome.result_text(), "fine");
    session.close().await.unwrap();
    assert_eq!(stand.answers().len(), 2);
    stand.gone().await;
}

async fn a_question_without_its_parts_is_refused() {
    let mut nameless = frames::ask("a", "Bash");
    nameless["request"].as_object_mut().unwrap().remove("tool_name");
    let mut odd = frames::ask("b", "Bash");
    odd["request"]["input"] = json!("not an object");
    let unknown = json!({"type": "control_request", "request_id": "c", "request": {"subtype": "never_seen"}});
    let bare = json!({"type": "control_request", "request_id": "d"});
    let nobodys = json!({"type": "control_request", "request": {"subtype": "can_use_tool"}});
    let stand = Stand::new(
        &begun()
            .line(nameless)
            .answer_to("a")
            .line(odd)
            .answer_to("b")
            .line(unknown)
            .answer_to("c")
            .line(bare)
            .answer_to("d")
            .line(nobodys)
            .say("after")
            .result("fine"),
    );
    let session = stand.session().await;
    let (told, outcome) = turn(&session, "go").await;
    assert_eq!(
        (told.last().unwrap().as_str(), outcome.result_text()),
        ("text after", "fine")
    );
    session.close().await.unwrap();
    let answers = stand.answers();
    assert_eq!(answers[0].1["behavior"], "deny");
    assert_eq!(answers.len(), 4);
    stand.gone().await;
}

on_both_runtimes!(
    the_handler_sees_the_input_and_is_answered_once,
    a_question_that_is_withdrawn_is_never_answered,
    messages_pass_while_a_handler_thinks,
    a_question_is_answered_while_3000_messages_wait_unread,
    of_150_questions_at_once_each_is_answered_once,
    an_id_that_comes_again_is_answered_once_for_each_question,
    a_question_without_its_parts_is_refused,
);

/// A handler that blocks its thread can't be dropped. When it comes back after the question was withdrawn, nobody wants to know.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_can_not_be_dropped_answers_nothing_that_was_withdrawn() {
    let stand = Stand::new(
        &begun()
            .ask("q", "Bash")
            .request("asked")
            .line(frames::withdraw("q"))
            .reply(json!({}))
            .request("over")
            .reply(json!({}))
            .result("fine"),
    );
    let (heard, mut hear) = mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (returns, mut returned) = mpsc::unbounded_channel();
    let released = Mutex::new(released);
    let session = stand
        .options()
        .can_use_tool(move |_| {
            heard.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
            returns.send(()).unwrap();
            std::future::ready(PermissionResult::allow())
        })
        .start()
        .await
        .unwrap();
    super::stand::within_reason(async {
        let mut running = session.prompt("go").await.unwrap();
        hear.recv().await.unwrap();
        session.raw_request("asked", json!({})).await.unwrap();
        release.send(()).unwrap();
        returned.recv().await.unwrap();
        // An answer would be written before this.
        while session.stats().unanswered_by_us > 0 {
            tokio::task::yield_now().await;
        }
        session.raw_request("over", json!({})).await.unwrap();
        assert_eq!(running.outcome().await.unwrap().result_text(), "fine");
        session.close().await.unwrap();
        assert_eq!(stand.answers(), []);
        stand.gone().await;
    })
    .await;
}
