//! A bounded set of recent values.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

/// The last values, up to a limit.
#[derive(Debug)]
pub(super) struct RecentSet<T> {
    known: HashSet<T>,
    order: VecDeque<T>,
    most: usize,
}

impl<T: Hash + Eq + Clone> RecentSet<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            known: HashSet::new(),
            order: VecDeque::new(),
            most,
        }
    }

    /// Inserts a value. Returns false if it is there already.
    pub(super) fn insert(&mut self, value: T) -> bool {
        if !self.known.insert(value.clone()) {
            return false;
        }
        self.order.push_back(value);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    pub(super) fn contains<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> bool
    where
        T: std::borrow::Borrow<Q>,
    {
        self.known.contains(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut seen = RecentSet::new(2);
        assert!(seen.insert(1) && seen.insert(2) && !seen.insert(1));
        assert!(seen.insert(3));
        assert!(!seen.contains(&1) && seen.contains(&2) && seen.contains(&3));
    }
}
