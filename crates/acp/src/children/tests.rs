use std::collections::HashMap;

use super::*;
use crate::event::{AgentDetails, CallChange, Chunk, Content, Kind, NewToolCall};

fn children() -> Children {
    Children::new(&acp::SessionId::new("root"))
}

fn call(id: &str, parent: Option<&str>) -> Event {
    Event::Call(Box::new(NewToolCall {
        id: id.into(),
        tool: "Agent".into(),
        parent: parent.map(Arc::from),
        title: "Look".into(),
        kind: Kind::Think,
        status: Status::Pending,
        content: Vec::new(),
        locations: Vec::new(),
        input: None,
    }))
}

fn change(id: &str, parent: Option<&str>, status: Status) -> Event {
    Event::CallChanged(Box::new(CallChange {
        id: id.into(),
        parent: parent.map(Arc::from),
        status: Some(status),
        ..CallChange::default()
    }))
}

fn text(parent: Option<&str>, text: &str) -> Event {
    Event::Text(Chunk {
        message_id: None,
        parent: parent.map(Arc::from),
        content: Content::Text(text.to_owned()),
    })
}

fn agent(call: &str, agent: Option<&str>, status: Status) -> Event {
    let begins = status == Status::InProgress;
    Event::Subagent(Box::new(Subagent {
        call: call.into(),
        task: agent.map(Arc::from),
        title: format!("task of {call}"),
        status,
        more: AgentDetails {
            kind: begins.then(|| "explorer".to_owned()),
            prompt: begins.then(|| format!("prompt of {call}")),
            failure: (status == Status::Failed).then(|| "it broke".to_owned()),
        },
    }))
}

/// An agent of the stored session.
fn recorded(agent: &str, call: &str, parent: Option<&str>) -> RecordedAgent {
    RecordedAgent {
        agent: agent.into(),
        call: call.into(),
        parent: parent.map(Arc::from),
        title: Some(format!("task of {call}")),
        kind: None,
    }
}

/// The events of sessions, a line each.
fn told(addressed: Vec<Addressed>) -> String {
    let lines = addressed.into_iter().map(|Addressed { child, event }| {
        let session = child.map_or_else(|| "root".to_owned(), |child| child.0.to_string());
        let said = match event {
            Event::Child(child) => format!(
                "has {} {:?} {:?} {:?}",
                child.id,
                child.title.unwrap_or_default(),
                child.description.unwrap_or_default(),
                child.can_cancel
            ),
            Event::ChildState(state) => format!("{} is {:?}", state.id, state.work),
            Event::Told(message) => format!("{} -> {} {:?}", message.from, message.to, message.text),
            Event::Text(chunk) => format!("text {:?} {:?}", chunk.parent, chunk.content),
            Event::Call(call) => format!("call {} {:?}", call.id, call.parent),
            Event::CallChanged(change) => {
                format!("change {} {:?} {:?}", change.id, change.parent, change.status)
            }
            Event::Subagent(agent) => format!("subagent {} {:?}", agent.call, agent.status),
            other => format!("{other:?}"),
        };
        format!("{session}: {said}\n")
    });
    lines.collect()
}

fn all(children: &mut Children, events: Vec<Event>) -> String {
    events
        .into_iter()
        .map(|event| told(children.route(event)))
        .collect()
}

#[test]
fn a_subagent_is_announced_before_all_that_it_does() {
    let mut children = children();
    let said = all(
        &mut children,
        vec![
            call("a", None),
            agent("a", Some("one"), Status::InProgress),
            text(Some("a"), "hello"),
            call("b", Some("a")),
            change("b", Some("a"), Status::Completed),
            text(None, "the main one"),
            agent("a", Some("one"), Status::Completed),
            change("a", None, Status::Completed),
        ],
    );
    assert_eq!(
        said,
        "root: call a None\n\
         root: has root.one \"task of a\" \"explorer\" Some(true)\n\
         root.one: root -> root.one \"prompt of a\"\n\
         root: root.one is Running\n\
         root.one: text None Text(\"hello\")\n\
         root.one: call b None\n\
         root.one: change b None Some(Completed)\n\
         root: text None Text(\"the main one\")\n\
         root: root.one is Idle(Some(Completed), None)\n\
         root: change a None Some(Completed)\n"
    );
}

#[test]
fn a_subagent_of_a_subagent_belongs_to_it() {
    let mut children = children();
    let said = all(
        &mut children,
        vec![
            call("a", None),
            agent("a", Some("one"), Status::InProgress),
            call("b", Some("a")),
            agent("b", Some("two"), Status::InProgress),
            text(Some("b"), "deep"),
            agent("b", Some("two"), Status::Failed),
        ],
    );
    let deep = "root.one: has root.two \"task of b\" \"explorer\" Some(true)\n\
         root.two: root.one -> root.two \"prompt of b\"\n\
         root.one: root.two is Running\n\
         root.two: text None Text(\"deep\")\n\
         root.one: root.two is Idle(Some(Failed), Some(\"it broke\"))\n";
    assert!(said.ends_with(deep), "{said}");
}

#[test]
fn what_cannot_be_placed_stays_where_it_was() {
    let mut children = children();
    let said = all(
        &mut children,
        vec![
            // A call that was lost, an id that is none, an agent without one.
            agent("lost", Some("one"), Status::InProgress),
            text(Some("lost"), "hello"),
            call("a", None),
            agent("a", Some("../one"), Status::InProgress),
            agent("a", None, Status::InProgress),
            // The parent of this call has no session.
            call("b", Some("lost")),
            agent("b", Some("two"), Status::InProgress),
        ],
    );
    assert_eq!(
        said,
        "root: subagent lost InProgress\n\
         root: text Some(\"lost\") Text(\"hello\")\n\
         root: call a None\n\
         root: subagent a InProgress\n\
         root: subagent a InProgress\n\
         root: call b Some(\"lost\")\n\
         root: subagent b InProgress\n"
    );
    assert_eq!(children.stop(None), Vec::<Arc<str>>::new());
}

#[test]
fn a_cancel_reaches_what_works_below_and_nothing_else() {
    let mut children = children();
    all(
        &mut children,
        vec![
            call("a", None),
            agent("a", Some("one"), Status::InProgress),
            call("b", Some("a")),
            agent("b", Some("two"), Status::InProgress),
            call("c", Some("b")),
            agent("c", Some("three"), Status::InProgress),
            agent("b", Some("two"), Status::Completed),
            call("d", None),
            agent("d", Some("four"), Status::InProgress),
        ],
    );
    let stop = |children: &mut Children, agent: Option<&str>| {
        let stopped = children.stop(agent);
        stopped.iter().map(|id| id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(stop(&mut children, Some("one")), ["one", "three"]);
    assert_eq!(stop(&mut children, Some("two")), ["three"]);
    assert_eq!(stop(&mut children, Some("nobody")), Vec::<String>::new());
    assert_eq!(stop(&mut children, None), ["four", "one", "three"]);
    // The stop is no end. The process is one, of which nobody knows what it means.
    assert_eq!(
        told(children.over()),
        "root: root.four is Idle(None, None)\nroot: root.one is Idle(None, None)\nroot.two: root.three is Idle(None, None)\n"
    );
    assert_eq!(told(children.over()), "");
}

#[test]
fn a_question_is_waited_for_but_nothing_runs_again_that_is_cancelled() {
    let mut children = children();
    all(
        &mut children,
        vec![call("a", None), agent("a", Some("one"), Status::InProgress)],
    );
    let asks = HashMap::from([(Arc::from("one"), 1)]);
    assert_eq!(told(children.wait(&asks)), "root: root.one is RequiresAction\n");
    assert_eq!(told(children.wait(&asks)), "");
    assert_eq!(
        told(children.wait(&HashMap::new())),
        "root: root.one is Running\n"
    );
    assert_eq!(told(children.wait(&asks)), "root: root.one is RequiresAction\n");
    children.stop(Some("one"));
    assert_eq!(told(children.wait(&HashMap::new())), "");
}

#[test]
fn a_subagent_that_works_again_keeps_its_session() {
    let mut children = children();
    all(
        &mut children,
        vec![
            call("a", None),
            agent("a", Some("one"), Status::InProgress),
            agent("a", Some("one"), Status::Completed),
            change("a", None, Status::Completed),
            call("again", None),
        ],
    );
    let said = all(
        &mut children,
        vec![
            agent("again", Some("one"), Status::InProgress),
            text(Some("a"), "more"),
            agent("again", Some("one"), Status::Cancelled),
        ],
    );
    assert_eq!(
        said,
        "root: has root.one \"task of a\" \"explorer\" Some(true)\n\
         root.one: root -> root.one \"prompt of again\"\n\
         root: root.one is Running\n\
         root.one: text None Text(\"more\")\n\
         root: root.one is Idle(Some(Cancelled), None)\n"
    );
}

#[test]
fn a_stored_subagent_that_works_again_is_announced_behind_those_that_it_belongs_to() {
    let mut children = children();
    children.knows(vec![
        recorded("one", "a", None),
        recorded("two", "b", Some("one")),
        // Nobody knows where this one belongs.
        recorded("five", "e", Some("gone")),
    ]);
    let said = all(
        &mut children,
        vec![
            call("again", None),
            agent("again", Some("two"), Status::InProgress),
            text(Some("b"), "more"),
            text(Some("e"), "whose?"),
        ],
    );
    assert_eq!(
        said,
        "root: call again None\n\
         root: has root.one \"task of a\" \"\" None\n\
         root.one: has root.two \"task of b\" \"\" Some(true)\n\
         root.two: root.one -> root.two \"prompt of again\"\n\
         root.one: root.two is Running\n\
         root.two: text None Text(\"more\")\n\
         root: text Some(\"e\") Text(\"whose?\")\n"
    );
    // For an editor that opens the session again.
    assert_eq!(
        told(children.again()),
        "root: has root.one \"task of a\" \"\" None\n\
         root.one: has root.two \"task of b\" \"\" Some(true)\n\
         root.one: root.two is Running\n"
    );
}

#[test]
fn a_replay_announces_without_a_state_and_cannot_be_cancelled() {
    let mut children = children();
    let prompt = Event::AgentPrompt(Box::new(crate::event::AgentPrompt {
        call: "a".into(),
        message_id: "m".into(),
        text: "look".to_owned(),
    }));
    let said = all(
        &mut children,
        vec![
            call("a", None),
            Event::RecordedAgent(Box::new(recorded("one", "a", None))),
            prompt,
            text(Some("a"), "seen"),
        ],
    );
    assert_eq!(
        said,
        "root: call a None\n\
         root: has root.one \"task of a\" \"\" None\n\
         root.one: root -> root.one \"look\"\n\
         root.one: text None Text(\"seen\")\n"
    );
}

#[test]
fn ids_are_read_as_they_are_written() {
    assert_eq!(split(&id("0f-1", "a1")), Some(("0f-1", "a1")));
    assert_eq!(split(&id("a.b", "a1")), Some(("a.b", "a1")));
    for other in ["", "x", ".a", "x.", "x./a"] {
        assert_eq!(split(other), None, "{other}");
    }
}
