//! The last messages of a replay, from the beginning of a turn on.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::event::Event;
use crate::reduce::TaskPlan;

/// Keeps the events of the last messages. It begins with a prompt, so that no call lacks its beginning: it can have more messages than
/// the limit, by the rest of the first turn.
#[derive(Debug)]
pub(crate) struct Window {
    limit: usize,
    turns: VecDeque<Turn>,
    messages: usize,
    /// Whether earlier turns were dropped.
    has_earlier: bool,
}

/// The messages from one prompt to the next.
#[derive(Debug, Default)]
struct Turn {
    /// The uuid of the prompt. The first messages of a transcript may be no prompt.
    prompt: Option<String>,
    messages: usize,
    events: Vec<Event>,
}

/// The events of a window.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) events: Vec<Event>,
    /// The uuid of the first prompt, if there are earlier messages.
    pub(crate) before: Option<String>,
    /// The plan behind the last of all messages that were read.
    pub(crate) plan: TaskPlan,
}

impl Window {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            turns: VecDeque::new(),
            messages: 0,
            has_earlier: false,
        }
    }

    /// Adds a message with its events.
    pub(crate) fn message(&mut self, uuid: &str, events: Vec<Event>) {
        let is_prompt = events
            .iter()
            .any(|event| matches!(event, Event::User(chunk) if chunk.parent.is_none()));
        if is_prompt || self.turns.is_empty() {
            self.turns.push_back(Turn {
                prompt: is_prompt.then(|| uuid.to_owned()),
                ..Turn::default()
            });
        }
        if let Some(turn) = self.turns.back_mut() {
            turn.messages += 1;
            turn.events.extend(events);
            self.messages += 1;
        }
        while let Some(first) = self.turns.front()
            && self.turns.len() > 1
            && self.messages - first.messages >= self.limit
        {
            self.messages -= first.messages;
            self.turns.pop_front();
            self.has_earlier = true;
        }
    }

    /// Adds events that belong to no message.
    pub(crate) fn events(&mut self, events: Vec<Event>) {
        if let Some(turn) = self.turns.back_mut() {
            turn.events.extend(events);
        }
    }

    /// The events of the window, with those of the end of the replay.
    pub(crate) fn end(self, last: Vec<Event>) -> Page {
        let first = self.turns.front().filter(|_| self.has_earlier);
        let before = first.and_then(|first| first.prompt.clone());
        let mut known: HashSet<Arc<str>> = HashSet::new();
        let events = self.turns.into_iter().flat_map(|turn| turn.events).chain(last);
        // A call of an earlier turn can end here.
        let events = events.filter(|event| match event {
            Event::Call(call) => {
                known.insert(Arc::clone(&call.id));
                true
            }
            event => call_of(event).is_none_or(|call| known.contains(call)),
        });
        Page {
            events: events.collect(),
            before,
            plan: TaskPlan::default(),
        }
    }
}

/// The call that an event is about, if it is about one.
fn call_of(event: &Event) -> Option<&Arc<str>> {
    match event {
        Event::CallChanged(change) => Some(&change.id),
        Event::Terminal(terminal) => Some(&terminal.call),
        Event::Subagent(subagent) => Some(&subagent.call),
        Event::RecordedAgent(agent) => Some(&agent.call),
        Event::AgentPrompt(prompt) => Some(&prompt.call),
        Event::Extra(extra) => extra.call.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{CallChange, Chunk, Content, Kind, NewToolCall, Status};

    fn chunk(text: &str) -> Chunk {
        Chunk {
            message_id: Some(text.into()),
            parent: None,
            content: Content::Text(text.to_owned()),
        }
    }

    fn call(id: &str) -> Event {
        Event::Call(Box::new(NewToolCall {
            id: id.into(),
            tool: "Bash".into(),
            parent: None,
            title: String::new(),
            kind: Kind::Execute,
            status: Status::Pending,
            content: Vec::new(),
            locations: Vec::new(),
            input: None,
        }))
    }

    fn ends(id: &str) -> Event {
        Event::CallChanged(Box::new(CallChange {
            id: id.into(),
            status: Some(Status::Completed),
            ..CallChange::default()
        }))
    }

    #[test]
    fn what_ends_a_call_of_an_earlier_turn_is_not_in_it() {
        let mut window = Window::new(1);
        window.message("a", vec![Event::User(chunk("a"))]);
        window.message("b", vec![call("early")]);
        window.message("c", vec![Event::User(chunk("c"))]);
        window.message("d", vec![call("late"), ends("early"), ends("late")]);
        let page = window.end(vec![ends("early")]);
        assert_eq!(page.events, [Event::User(chunk("c")), call("late"), ends("late")]);
        assert_eq!(page.before.as_deref(), Some("c"));
    }

    proptest! {
        /// For any conversation: pages of any size, from the last to the first, have each message once and in order. Each but the first
        /// begins with a prompt, and has no turn too many.
        #[test]
        fn pages_are_the_whole(prompts in proptest::collection::vec(any::<bool>(), 0..40), limit in 1usize..12) {
            let all: Vec<(String, Event)> = prompts.iter().enumerate().map(|(number, is_prompt)| {
                let id = number.to_string();
                let event = match is_prompt {
                    true => Event::User(chunk(&id)),
                    false => Event::Text(chunk(&id)),
                };
                (id, event)
            }).collect();
            let mut end = all.len();
            let mut read = Vec::new();
            loop {
                let mut window = Window::new(limit);
                for (id, event) in &all[..end] {
                    window.message(id, vec![event.clone()]);
                }
                let page = window.end(Vec::new());
                let begin = end - page.events.len();
                let second = (begin + 1..end).find(|number| prompts[*number]);
                prop_assert!(second.is_none_or(|second| end - second < limit), "the first turn is too many");
                prop_assert!(page.before.is_none() || page.events.len() >= limit, "it has too few");
                read.splice(0..0, page.events);
                match page.before {
                    None => break,
                    Some(before) => {
                        end = before.parse().expect("a number");
                        prop_assert_eq!(end, begin);
                        prop_assert!(prompts[end]);
                    }
                }
            }
            let whole: Vec<Event> = all.into_iter().map(|(_, event)| event).collect();
            prop_assert_eq!(read, whole);
        }
    }
}
