//! Which reply of a script a request gets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::reply::Reply;
use super::super::request::ApiRequest;
use super::{ApiScript, Asker, Conversation, Times};
use crate::script::{Flaw, Unmatched};

/// A script, and how far everybody is in it.
#[derive(Debug)]
pub(in crate::api) struct Player {
    script: ApiScript,
    given: Mutex<HashMap<Place, u64>>,
}

/// A conversation as one asker has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Place {
    conversation: usize,
    session: Option<String>,
    agent: Option<String>,
}

impl Player {
    pub(in crate::api) fn new(script: ApiScript) -> Self {
        Self {
            script,
            given: Mutex::default(),
        }
    }

    pub(in crate::api) fn script(&self) -> &ApiScript {
        &self.script
    }

    pub(in crate::api) fn refuses_unmatched(&self) -> bool {
        self.script.unmatched == Unmatched::Error
    }

    /// The next reply for this request, and the name of the conversation that has it.
    pub(in crate::api) fn answer(&self, request: &ApiRequest) -> Option<(Reply, Arc<str>)> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let conversations = self.script.conversations.iter().enumerate();
        conversations.into_iter().find_map(|(index, conversation)| {
            let conversation = &conversation.value;
            if !conversation.fits(request) {
                return None;
            }
            let place = Place {
                conversation: index,
                session: request.session_id().map(str::to_owned),
                agent: request.agent_id().map(str::to_owned),
            };
            let round = conversation.round();
            let given = given.entry(place).or_default();
            if round == 0
                || matches!(conversation.times, Times::Exactly(times) if *given >= round * u64::from(times))
            {
                return None;
            }
            let mut at = *given % round;
            *given += 1;
            let reply = conversation.replies.iter().find(|reply| {
                let count = reply.value.count();
                let here = at < count;
                at = at.saturating_sub(count);
                here
            })?;
            Some((reply.value.reply(request), self.script.name(index)))
        })
    }

    /// Conversations of which replies are left that nobody got.
    pub(super) fn left(&self) -> Vec<Flaw> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let conversations = self.script.conversations.iter().enumerate();
        let left = conversations.filter_map(|(index, conversation)| {
            let conversation = &conversation.value;
            let Times::Exactly(times) = conversation.times else {
                return None;
            };
            let wanted = conversation.round() * u64::from(times);
            let places = given.iter().filter(|(place, _)| place.conversation == index);
            let most = places.map(|(_, given)| *given).max().unwrap_or_default();
            (most < wanted).then(|| {
                let what = match most {
                    0 => format!("no request got a reply of this conversation, which has {wanted}"),
                    _ => format!("only {most} of the {wanted} replies of this conversation were given"),
                };
                Flaw::new(self.script.place(index), what)
            })
        });
        left.collect()
    }
}

impl Conversation {
    /// How many requests it takes to get through the replies.
    fn round(&self) -> u64 {
        self.replies.iter().map(|reply| reply.value.count()).sum()
    }

    fn fits(&self, request: &ApiRequest) -> bool {
        let prompt = |wanted: &_| {
            let text = request.last_user_text().unwrap_or_default();
            crate::script::TextMatch::fits(wanted, &text)
        };
        let asker = |asker: Asker| (asker == Asker::Subagent) == request.agent_id().is_some();
        self.prompt.as_ref().is_none_or(prompt)
            && self
                .model
                .as_ref()
                .is_none_or(|wanted| wanted.fits(request.model().unwrap_or_default()))
            && self
                .has_tool
                .as_ref()
                .is_none_or(|name| request.tools().any(|tool| tool == name))
            && self.from.is_none_or(asker)
            && self.request.is_none_or(|turn| turn == request.turn)
            && self.tool_result.as_ref().is_none_or(|wanted| {
                let results = request.new_tool_results();
                results.iter().any(|result| wanted.fits(&result.text))
            })
    }
}
