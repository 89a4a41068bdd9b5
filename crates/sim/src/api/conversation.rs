//! How far each conversation has come.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::heard::who;
use super::request::ApiRequest;
use crate::script::course::ModelCaller;

/// Counters per conversation, the oldest forgotten when there are too many.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    turns: Counters<ModelCaller>,
    spent: Counters<DirectivePlace>,
}

/// The place of a directive script: in which conversation the script is used, where in it, and which script.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DirectivePlace {
    who: ModelCaller,
    anchor: usize,
    script: u64,
    /// The kind of counter at this place.
    what: Spent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Spent {
    /// Replies without content, which leave no trace in the conversation.
    Empty,
    /// Attempts at this response that failed.
    Attempts(usize),
}

impl Conversations {
    /// Counts this request, and returns its number in the conversation.
    pub(super) fn next_turn(&mut self, request: &ApiRequest) -> u64 {
        let count = self.turns.get_mut(who(request));
        *count += 1;
        *count
    }

    pub(super) fn spent(&mut self, place: DirectivePlace) -> &mut u64 {
        self.spent.get_mut(place)
    }
}

impl DirectivePlace {
    pub(super) fn new(request: &ApiRequest, anchor: usize, script: &str, what: Spent) -> Self {
        let mut hasher = DefaultHasher::new();
        script.hash(&mut hasher);
        Self {
            who: who(request),
            anchor,
            script: hasher.finish(),
            what,
        }
    }
}

/// How many places are remembered; far more than one run of tests has.
const REMEMBERED: usize = 16_384;

#[derive(Debug)]
struct Counters<K> {
    counts: HashMap<K, u64>,
    order: VecDeque<K>,
}

impl<K> Default for Counters<K> {
    fn default() -> Self {
        Self {
            counts: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Counters<K> {
    fn get_mut(&mut self, key: K) -> &mut u64 {
        if !self.counts.contains_key(&key) {
            if self.order.len() == REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.counts.remove(&oldest);
            }
            self.order.push_back(key.clone());
        }
        self.counts.entry(key).or_default()
    }
}
