//! Replies that are chosen by properties of the request.

use std::fmt;
use std::sync::Arc;

use super::request::ApiRequest;
use crate::script::Reply;

type Predicate = Arc<dyn Fn(&ApiRequest) -> bool + Send + Sync>;
type Answer = Arc<dyn Fn(&ApiRequest) -> Reply + Send + Sync>;

/// Which requests a [`Rule`] is for: those to which every condition applies. A [script](crate::script) says most of it shorter.
#[derive(Clone)]
pub struct When {
    conditions: Vec<Predicate>,
}

/// A reply for the requests that a [`When`] describes.
#[derive(Clone)]
pub struct Rule {
    when: When,
    answer: Answer,
    left: Option<u32>,
}

impl When {
    /// Every request for a message.
    pub fn any() -> Self {
        Self {
            conditions: Vec::new(),
        }
    }

    /// Any condition on the request.
    #[must_use]
    pub fn holds(mut self, condition: impl Fn(&ApiRequest) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// The user's last text contains this.
    #[must_use]
    pub fn prompt_contains(self, part: impl Into<String>) -> Self {
        let part = part.into();
        self.holds(move |request| request.last_user_text().is_some_and(|text| text.contains(&part)))
    }

    /// The request is for this model.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        let model = model.into();
        self.holds(move |request| request.model() == Some(&model))
    }

    /// The request is from a subagent.
    #[must_use]
    pub fn from_subagent(self) -> Self {
        self.holds(|request| request.agent_id().is_some())
    }

    /// The request is from the main loop, not from a subagent.
    #[must_use]
    pub fn from_main_loop(self) -> Self {
        self.holds(|request| request.agent_id().is_none())
    }

    /// Answers them all with this.
    pub fn reply(self, reply: impl Into<Reply>) -> Rule {
        let reply = reply.into();
        self.reply_with(move |_| reply.clone())
    }

    /// Replies with the result of this function.
    pub fn reply_with(self, answer: impl Fn(&ApiRequest) -> Reply + Send + Sync + 'static) -> Rule {
        Rule {
            when: self,
            answer: Arc::new(answer),
            left: None,
        }
    }
}

impl Rule {
    /// Applies only so many times; after that the request goes to the rules behind it.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.left = Some(times);
        self
    }

    /// The answer to this request, if the rule is for it; that uses up one of its times.
    pub(super) fn answer(&mut self, request: &ApiRequest) -> Option<Reply> {
        if self.left == Some(0) || !self.when.conditions.iter().all(|holds| holds(request)) {
            return None;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        Some((self.answer)(request))
    }
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("When")
            .field("conditions", &self.conditions.len())
            .finish()
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("when", &self.when)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
