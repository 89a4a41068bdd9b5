//! The arithmetic of budgets, without clocks and locks: a tree of accounts.

use std::collections::BTreeMap;

use super::usd::Usd;
use super::{Amount, Cap, Exhausted, UtcDay, Window};

/// The place of an account in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccountId(usize);

#[derive(Debug)]
struct Account {
    name: String,
    parent: Option<usize>,
    cap: Cap,
    reserved: Amount,
    spent: BTreeMap<UtcDay, Spent>,
}

/// What was spent on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spent {
    pub(super) amount: Amount,
    pub(super) turns: u64,
}

#[derive(Debug)]
pub(super) struct Accounts(Vec<Account>);

impl Accounts {
    pub(super) fn new(name: String, cap: Cap) -> (Self, AccountId) {
        let mut accounts = Self(Vec::new());
        let root = accounts.add(name, cap, None);
        (accounts, root)
    }

    /// The account of this name below `parent`. If it exists already, the cap is its cap from now on.
    pub(super) fn child(&mut self, parent: AccountId, name: String, cap: Cap) -> AccountId {
        let known = self
            .0
            .iter()
            .position(|account| account.parent == Some(parent.0) && account.name == name);
        match known {
            Some(index) => {
                self.0[index].cap = cap;
                AccountId(index)
            }
            None => self.add(name, cap, Some(parent.0)),
        }
    }

    fn add(&mut self, name: String, cap: Cap, parent: Option<usize>) -> AccountId {
        self.0.push(Account {
            name,
            parent,
            cap,
            reserved: Amount::default(),
            spent: BTreeMap::new(),
        });
        AccountId(self.0.len() - 1)
    }

    /// Reserves an amount in this account and in all above it, or in none.
    pub(super) fn reserve(&mut self, id: AccountId, amount: Amount, today: UtcDay) -> Result<(), Exhausted> {
        for index in self.upwards(id) {
            let account = &self.0[index];
            let left = account.left(today);
            if !left.covers(amount) {
                return Err(Exhausted {
                    budget: self.path(AccountId(index)),
                    cap: account.cap,
                    spent: account.spent_in_window(today),
                    reserved: account.reserved,
                    wanted: amount,
                });
            }
        }
        for index in self.upwards(id) {
            self.0[index].reserved += amount;
        }
        Ok(())
    }

    /// A turn used more than was reserved for it. This is a fact, so it counts in any case; the error says which cap it exceeds.
    pub(super) fn grow(&mut self, id: AccountId, more: Amount, today: UtcDay) -> Result<(), Exhausted> {
        let mut exceeded = Ok(());
        for index in self.upwards(id) {
            let account = &mut self.0[index];
            account.reserved += more;
            let spent = account.spent_in_window(today);
            if exceeded.is_ok() && account.cap.is_exceeded_by(spent + account.reserved) {
                let (cap, reserved) = (account.cap, account.reserved);
                exceeded = Err(Exhausted {
                    budget: self.path(AccountId(index)),
                    cap,
                    spent,
                    reserved,
                    wanted: more,
                });
            }
        }
        exceeded
    }

    /// Ends a reservation: `used` is spent.
    pub(super) fn settle(&mut self, id: AccountId, reserved: Amount, used: Spent, today: UtcDay) {
        for index in self.upwards(id) {
            let account = &mut self.0[index];
            account.reserved = account.reserved.saturating_sub(reserved);
            let spent = account.spent.entry(today).or_default();
            spent.amount += used.amount;
            spent.turns += used.turns;
        }
    }

    /// Ends a reservation of which nothing was spent.
    pub(super) fn release(&mut self, id: AccountId, reserved: Amount) {
        for index in self.upwards(id) {
            let account = &mut self.0[index];
            account.reserved = account.reserved.saturating_sub(reserved);
        }
    }

    pub(super) fn reserved(&self, id: AccountId) -> Amount {
        self.0[id.0].reserved
    }

    pub(super) fn spent(&self, id: AccountId) -> Amount {
        self.0[id.0].spent_in(Window::Whole, UtcDay(0))
    }

    pub(super) fn left(&self, id: AccountId, today: UtcDay) -> Left {
        let lefts = self
            .upwards(id)
            .into_iter()
            .map(|index| self.0[index].left(today));
        lefts.reduce(Left::min).unwrap_or_default()
    }

    /// Each account with what it spent each day.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Vec<String>, UtcDay, Spent)> {
        self.0.iter().enumerate().flat_map(|(index, account)| {
            let path = self.path(AccountId(index));
            account
                .spent
                .iter()
                .map(move |(day, spent)| (path.clone(), *day, *spent))
        })
    }

    /// Adds what an account alone spent on a day. The accounts above it are not touched: they have rows of their own.
    pub(super) fn restore(&mut self, path: &[String], day: UtcDay, spent: Spent) -> bool {
        let mut names = path.iter();
        if names.next() != self.0.first().map(|root| &root.name) {
            return false;
        }
        let mut index = 0;
        for name in names {
            index = self.child_or_uncapped(index, name);
        }
        let entry = self.0[index].spent.entry(day).or_default();
        entry.amount += spent.amount;
        entry.turns += spent.turns;
        true
    }

    fn child_or_uncapped(&mut self, parent: usize, name: &str) -> usize {
        let known = self
            .0
            .iter()
            .position(|account| account.parent == Some(parent) && account.name == name);
        known.unwrap_or_else(|| self.add(name.to_owned(), Cap::none(), Some(parent)).0)
    }

    /// The account, and all above it.
    fn upwards(&self, id: AccountId) -> Vec<usize> {
        std::iter::successors(Some(id.0), |index| self.0[*index].parent).collect()
    }

    fn path(&self, id: AccountId) -> Vec<String> {
        let mut path: Vec<String> = self
            .upwards(id)
            .into_iter()
            .map(|index| self.0[index].name.clone())
            .collect();
        path.reverse();
        path
    }
}

impl Account {
    fn spent_in_window(&self, today: UtcDay) -> Amount {
        self.spent_in(self.cap.window, today)
    }

    fn spent_in(&self, window: Window, today: UtcDay) -> Amount {
        match window {
            Window::Whole => self
                .spent
                .values()
                .fold(Amount::default(), |sum, spent| sum + spent.amount),
            Window::UtcDay => self.spent.get(&today).copied().unwrap_or_default().amount,
        }
    }

    fn left(&self, today: UtcDay) -> Left {
        let taken = self.spent_in_window(today) + self.reserved;
        Left {
            usd: self.cap.usd.map(|cap| cap.saturating_sub(taken.usd)),
            tokens: self.cap.tokens.map(|cap| cap.saturating_sub(taken.tokens)),
        }
    }
}

/// What is left; `None` where there is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Left {
    /// The dollars.
    pub usd: Option<Usd>,
    /// The tokens.
    pub tokens: Option<u64>,
}

impl Left {
    fn min(self, other: Self) -> Self {
        fn lesser<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            usd: lesser(self.usd, other.usd),
            tokens: lesser(self.tokens, other.tokens),
        }
    }

    /// Where nothing is left, not even nothing can be reserved: a turn of unknown cost must not begin.
    fn covers(self, amount: Amount) -> bool {
        self.usd.is_none_or(|left| left > Usd::ZERO && left >= amount.usd)
            && self.tokens.is_none_or(|left| left > 0 && left >= amount.tokens)
    }
}

#[cfg(test)]
mod interleavings;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum AccountAction {
        Reserves { leaf: bool, amount: u64 },
        Grows { which: usize, more: u64 },
        Settles { which: usize, used: u64 },
        Releases(usize),
        ADayPasses,
    }

    fn happens() -> impl Strategy<Value = AccountAction> {
        prop_oneof![
            4 => (any::<bool>(), 0u64..40).prop_map(|(leaf, amount)| AccountAction::Reserves { leaf, amount }),
            1 => (0usize..6, 1u64..20).prop_map(|(which, more)| AccountAction::Grows { which, more }),
            3 => (0usize..6, 0u64..40).prop_map(|(which, used)| AccountAction::Settles { which, used }),
            1 => (0usize..6).prop_map(AccountAction::Releases),
            1 => Just(AccountAction::ADayPasses),
        ]
    }

    fn tokens(tokens: u64) -> Amount {
        Amount {
            usd: Usd::ZERO,
            tokens,
        }
    }

    proptest! {
        /// What is spent and reserved exceeds a cap only by what turns used beyond their reservations; nothing stays reserved; and
        /// the account above has the sum.
        #[test]
        fn caps_hold(script in proptest::collection::vec(happens(), 0..100)) {
            let (mut accounts, root) = Accounts::new("root".to_owned(), Cap::tokens(200));
            let leaf = accounts.child(root, "leaf".to_owned(), Cap::tokens(60).per_day());
            let mut day = UtcDay(20_000);
            let mut open: Vec<(AccountId, u64)> = Vec::new();
            let (mut beyond, mut spent) = (0, 0);
            for step in script {
                match step {
                    AccountAction::Reserves { leaf: true, amount }
                        if accounts.reserve(leaf, tokens(amount), day).is_ok() =>
                    {
                        open.push((leaf, amount));
                    }
                    AccountAction::Reserves { leaf: false, amount } => {
                        let before = accounts.left(root, day).tokens.unwrap();
                        let result = accounts.reserve(root, tokens(amount), day);
                        prop_assert_eq!(result.is_ok(), before > 0 && before >= amount);
                        if result.is_ok() {
                            open.push((root, amount));
                        }
                    }
                    AccountAction::Grows { which, more } if which < open.len() => {
                        let (id, reserved) = &mut open[which];
                        *reserved += more;
                        beyond += more;
                        let left = accounts.left(root, day).tokens.unwrap();
                        let result = accounts.grow(*id, tokens(more), day);
                        prop_assert!(left >= more || result.is_err());
                    }
                    AccountAction::Settles { which, used } if which < open.len() => {
                        let (id, reserved) = open.remove(which);
                        beyond += used.saturating_sub(reserved);
                        spent += used;
                        let used = Spent { amount: tokens(used), turns: 1 };
                        accounts.settle(id, tokens(reserved), used, day);
                    }
                    AccountAction::Releases(which) if which < open.len() => {
                        let (id, reserved) = open.remove(which);
                        accounts.release(id, tokens(reserved));
                    }
                    AccountAction::ADayPasses => day = UtcDay(day.0 + 1),
                    _ => {}
                }
                let reserved: u64 = open.iter().map(|(_, reserved)| reserved).sum();
                prop_assert_eq!(accounts.reserved(root), tokens(reserved));
                prop_assert_eq!(accounts.spent(root), tokens(spent));
                prop_assert!(spent + reserved <= 200 + beyond);
            }
        }
    }
}
