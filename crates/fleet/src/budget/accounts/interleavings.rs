//! All interleavings of a few turns with small numbers, over the arithmetic of budgets.
//!
//! Each call of a [`Budget`](crate::budget::Budget) or a [`Reservation`](crate::budget::Reservation) changes the accounts under one lock, once. So what
//! threads can do to them is an order of these calls, and all orders are tried here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;

use super::*;

/// What a turn does. It begins with a reservation, makes requests, and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Turn {
    /// The turn has not begun.
    Waits,
    /// The turn has `reserved`, and `used` some of it. Once `stopped`, it knows of an exceeded cap, and makes no request any more.
    Runs {
        reserved: u64,
        used: u64,
        requests: u8,
        stopped: bool,
    },
    /// The turn was refused, or has ended.
    Over,
}

/// The accounts with what is known of them by counting.
#[derive(Debug)]
struct World {
    accounts: Accounts,
    turns: Vec<Turn>,
    spent: u64,
    day: u64,
}

/// What a run tries.
#[derive(Debug, Clone, Copy)]
struct InterleavingCase {
    /// The caps of the root and of the leaf.
    caps: (u64, u64),
    /// Whether the leaf's cap is for each day.
    daily: bool,
    turns: usize,
    /// What a turn may reserve, from 0.
    most_reserved: u64,
    /// What a request may cost, from 1, and how many a turn makes.
    request: u64,
    requests: u8,
}

/// What is reserved of an account, and what each day has spent.
type Book = (u64, Vec<(u64, u64)>);

const DAY: u64 = 20_000;

fn tokens(tokens: u64) -> Amount {
    Amount {
        usd: Usd::ZERO,
        tokens,
    }
}

impl InterleavingCase {
    fn accounts(&self) -> (Accounts, AccountId) {
        let (mut accounts, root) = Accounts::new("root".to_owned(), Cap::tokens(self.caps.0));
        let cap = Cap::tokens(self.caps.1);
        let leaf = accounts.child(
            root,
            "leaf".to_owned(),
            if self.daily { cap.per_day() } else { cap },
        );
        (accounts, leaf)
    }

    /// The last turn is charged to the root alone.
    fn account(&self, turn: usize) -> AccountId {
        AccountId(usize::from(turn + 1 != self.turns))
    }

    /// Tries every order of every choice, and returns how many states there are.
    fn run(&self) -> usize {
        let (accounts, _) = self.accounts();
        let first = World {
            accounts,
            turns: vec![Turn::Waits; self.turns],
            spent: 0,
            day: DAY,
        };
        let mut seen = HashSet::from([first.key()]);
        let mut open = vec![first];
        while let Some(world) = open.pop() {
            self.check(&world);
            for next in self.steps(&world) {
                if seen.insert(next.key()) {
                    open.push(next);
                }
            }
        }
        seen.len()
    }

    /// What holds at any time.
    fn check(&self, world: &World) {
        let (root, leaf) = (AccountId(0), AccountId(1));
        let reserved = |of: AccountId| {
            let turns = world.turns.iter().enumerate();
            let below = turns.filter(|(turn, _)| of == root || self.account(*turn) == of);
            below
                .map(|(_, turn)| match turn {
                    Turn::Runs { reserved, .. } => *reserved,
                    _ => 0,
                })
                .sum::<u64>()
        };
        // Nothing leaks, and nothing is counted twice. When all turns are over, nothing is reserved.
        for of in [root, leaf] {
            assert_eq!(world.accounts.reserved(of), tokens(reserved(of)), "{world:?}");
        }
        assert_eq!(world.accounts.spent(root), tokens(world.spent), "{world:?}");
        // Above the cap are only the last requests of turns: a turn that exceeds a cap is told, and makes no other.
        let beyond = self.turns as u64 * self.request;
        assert!(world.spent + reserved(root) <= self.caps.0 + beyond, "{world:?}");
        // Where no turn uses more than its reservation, no cap is exceeded at all.
        if self.requests == 0 {
            assert!(world.spent + reserved(root) <= self.caps.0, "{world:?}");
            let today = world.accounts.0[leaf.0].spent_in_window(UtcDay(world.day));
            if !self.daily {
                assert!(today.tokens + reserved(leaf) <= self.caps.1, "{world:?}");
            }
        }
    }

    fn steps(&self, world: &World) -> Vec<World> {
        let mut next = Vec::new();
        for (number, turn) in world.turns.iter().enumerate() {
            let (id, today) = (self.account(number), UtcDay(world.day));
            let mut step = |change: &mut dyn FnMut(&mut World) -> Turn| {
                let mut world = world.copy();
                world.turns[number] = change(&mut world);
                next.push(world);
            };
            match *turn {
                Turn::Over => {}
                Turn::Waits => {
                    for amount in 0..=self.most_reserved {
                        step(&mut |world| {
                            let left = world.accounts.left(id, today).tokens.unwrap();
                            let begins = world.accounts.reserve(id, tokens(amount), today);
                            assert_eq!(begins.is_ok(), left > 0 && left >= amount, "{world:?}");
                            match begins {
                                Ok(()) => Turn::Runs {
                                    reserved: amount,
                                    used: 0,
                                    requests: 0,
                                    stopped: false,
                                },
                                Err(_) => Turn::Over,
                            }
                        });
                    }
                }
                Turn::Runs {
                    reserved,
                    used,
                    requests,
                    stopped,
                } => {
                    let most = if stopped || requests == self.requests {
                        0
                    } else {
                        self.request
                    };
                    for cost in 1..=most {
                        step(&mut |world| {
                            let used = used + cost;
                            let more = used.saturating_sub(reserved);
                            let left = world.accounts.left(id, today).tokens.unwrap();
                            let grown = world.accounts.grow(id, tokens(more), today);
                            assert!(left >= more || grown.is_err(), "{world:?}");
                            Turn::Runs {
                                reserved: reserved + more,
                                used,
                                requests: requests + 1,
                                stopped: grown.is_err(),
                            }
                        });
                    }
                    // It ends with what it used, or is dropped and charged in full.
                    for spent in HashSet::from([used, reserved]) {
                        step(&mut |world| {
                            world.spent += spent;
                            let spent = Spent {
                                amount: tokens(spent),
                                turns: 1,
                            };
                            world.accounts.settle(id, tokens(reserved), spent, today);
                            Turn::Over
                        });
                    }
                    if requests == 0 {
                        step(&mut |world| {
                            world.accounts.release(id, tokens(reserved));
                            Turn::Over
                        });
                    }
                }
            }
        }
        if self.daily && world.day == DAY {
            let mut later = world.copy();
            later.day += 1;
            next.push(later);
        }
        next
    }
}

impl World {
    fn copy(&self) -> Self {
        let accounts = self.accounts.0.iter().map(|account| Account {
            name: account.name.clone(),
            parent: account.parent,
            cap: account.cap,
            reserved: account.reserved,
            spent: account.spent.clone(),
        });
        Self {
            accounts: Accounts(accounts.collect()),
            turns: self.turns.clone(),
            spent: self.spent,
            day: self.day,
        }
    }

    /// All that tells it from another one.
    fn key(&self) -> (Vec<Turn>, Vec<Book>, u64) {
        let accounts = self.accounts.0.iter().map(|account| {
            let spent = account.spent.iter();
            let spent = spent.map(|(day, spent)| (day.0, spent.amount.tokens));
            (account.reserved.tokens, spent.collect())
        });
        (self.turns.clone(), accounts.collect(), self.day)
    }
}

#[test]
fn no_order_of_turns_exceeds_a_cap_or_leaks() {
    let mut states = 0;
    for root in 0..=4 {
        for leaf in 0..=3 {
            for daily in [false, true] {
                for (turns, request, requests) in [(3, 0, 0), (2, 2, 3), (3, 1, 2)] {
                    let case = InterleavingCase {
                        caps: (root, leaf),
                        daily,
                        turns,
                        most_reserved: 2,
                        request,
                        requests,
                    };
                    states += case.run();
                }
            }
        }
    }
    // A change of the steps must not try less unnoticed.
    assert!(states > 50_000, "{states}");
}
