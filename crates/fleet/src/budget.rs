//! Budgets for turns: of a session, a tenant, a project, a day.
//!
//! A [`Budget`] has a [`Cap`] in dollars, in tokens, or both, for good or for each day. Budgets form a tree: what a turn spends counts
//! in its budget and in all above it. A turn begins with a [`Reservation`], which is refused when a cap would be exceeded; so many
//! turns that begin at once cannot spend the same money. While a [guarded](crate::GuardedTurn) turn runs, what its requests cost is
//! estimated and added up, and when a cap is exceeded, the turn is interrupted. In the end the turn is charged with what the CLI reports.
//!
//! A turn can exceed its reservation by one request, since the price of a request is known when it ends. So the spending exceeds a cap by
//! the requests that run when the cap is reached, and by what the estimate left out: the CLI tells the output of a request when the turn
//! ends, so until then it is taken from the length of what the model wrote.

mod accounts;
mod prices;
mod usd;

use std::fmt;
use std::ops::{Add, AddAssign};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use outrigger::{Event, Outcome, SessionUsage, Tokens, TurnUsage};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

pub use self::accounts::Left;
use self::accounts::{AccountId, Accounts, Spent};
use self::prices::{Estimate, Prices};
pub use self::usd::{InvalidUsd, Usd};

/// Dollars and tokens.
///
/// Tokens are all that the API counts: input, output, and what is read from and written to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// The dollars.
    pub usd: Usd,
    /// The tokens.
    pub tokens: u64,
}

impl Amount {
    /// An amount of dollars, without tokens.
    pub fn usd(usd: Usd) -> Self {
        Self { usd, tokens: 0 }
    }

    fn reported(cost_usd: f64, total: Tokens) -> Self {
        let tokens = [total.input, total.output, total.cache_read, total.cache_creation];
        Self {
            usd: Usd::reported(cost_usd),
            tokens: tokens.into_iter().fold(0, u64::saturating_add),
        }
    }

    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        Self {
            usd: self.usd.saturating_sub(other.usd),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            usd: self.usd.max(other.usd),
            tokens: self.tokens.max(other.tokens),
        }
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            usd: self.usd + other.usd,
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl From<&TurnUsage> for Amount {
    fn from(usage: &TurnUsage) -> Self {
        Self::reported(usage.cost_usd, usage.total())
    }
}

impl From<&SessionUsage> for Amount {
    fn from(usage: &SessionUsage) -> Self {
        Self::reported(usage.cost_usd, usage.total())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} tokens", self.usd, self.tokens)
    }
}

/// The most that a budget may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    usd: Option<Usd>,
    tokens: Option<u64>,
    window: Window,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    Whole,
    UtcDay,
}

impl Cap {
    /// No cap: what is spent is counted, and never refused.
    pub const fn none() -> Self {
        Self {
            usd: None,
            tokens: None,
            window: Window::Whole,
        }
    }

    /// At most these dollars.
    pub const fn usd(usd: Usd) -> Self {
        Self {
            usd: Some(usd),
            ..Self::none()
        }
    }

    /// At most these tokens, of all kinds; see [`Amount`].
    pub const fn tokens(tokens: u64) -> Self {
        Self {
            tokens: Some(tokens),
            ..Self::none()
        }
    }

    /// At most these tokens, too.
    pub const fn and_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The cap is for each day, in UTC. What a turn spends counts on the day on which the turn ends.
    pub const fn per_day(mut self) -> Self {
        self.window = Window::UtcDay;
        self
    }

    fn is_exceeded_by(&self, amount: Amount) -> bool {
        self.usd.is_some_and(|cap| amount.usd > cap) || self.tokens.is_some_and(|cap| amount.tokens > cap)
    }
}

/// A budget does not have what a turn needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exhausted {
    /// The names of the budget whose cap is in the way, and of those above it, the topmost first.
    pub budget: Vec<String>,
    /// The cap of the budget.
    pub cap: Cap,
    /// What the budget has spent; today, if the cap is for each day.
    pub spent: Amount,
    /// What is reserved for turns that run.
    pub reserved: Amount,
    /// What was to be reserved.
    pub wanted: Amount,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the budget {:?} is exhausted: ", self.budget.join("/"))?;
        let day = match self.cap.window {
            Window::Whole => "",
            Window::UtcDay => " for the day",
        };
        if let Some(usd) = self.cap.usd {
            write!(
                f,
                "of {usd}{day}, {} are spent and {} reserved, and {} are needed",
                self.spent.usd, self.reserved.usd, self.wanted.usd
            )?;
        }
        if let Some(tokens) = self.cap.tokens {
            let and = if self.cap.usd.is_some() { "; " } else { "" };
            write!(
                f,
                "{and}of {tokens} tokens{day}, {} are spent and {} reserved, and {} are needed",
                self.spent.tokens, self.reserved.tokens, self.wanted.tokens
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Exhausted {}

impl Exhausted {
    /// Whether the amount would be there if no turn that runs needed what is reserved for it.
    pub fn is_for_now(&self) -> bool {
        let left = Amount {
            usd: self
                .cap
                .usd
                .map_or(self.wanted.usd, |cap| cap.saturating_sub(self.spent.usd)),
            tokens: self
                .cap
                .tokens
                .map_or(self.wanted.tokens, |cap| cap.saturating_sub(self.spent.tokens)),
        };
        let is_spent =
            self.cap.usd.is_some() && left.usd == Usd::ZERO || self.cap.tokens.is_some() && left.tokens == 0;
        self.reserved != Amount::default() && !is_spent && left.max(self.wanted) == left
    }
}

/// A day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UtcDay(u64);

impl UtcDay {
    /// The day of a time. Times before 1970 count as the first day.
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(since.as_secs() / (24 * 60 * 60))
    }

    /// The days since 1970-01-01.
    pub fn days_since_epoch(self) -> u64 {
        self.0
    }

    /// The first moment of the day.
    pub fn start(self) -> SystemTime {
        let since = Duration::from_secs(self.0.saturating_mul(24 * 60 * 60));
        SystemTime::UNIX_EPOCH
            .checked_add(since)
            .unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// What one budget spent on one day, with all budgets below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// The names of the budget and of those above it, the topmost first.
    pub budget: Vec<String>,
    /// The day, in days since 1970-01-01 (UTC).
    pub day: UtcDay,
    /// What was spent.
    #[serde(flatten)]
    pub amount: Amount,
    /// The number of turns.
    pub turns: u64,
}

/// A budget. Cloning is cheap; all clones are the same budget.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Mutex<BudgetInner>>,
    /// Something may be left again, of any budget of the tree.
    freed: Arc<Notify>,
    id: AccountId,
}

#[derive(Debug)]
struct BudgetInner {
    accounts: Accounts,
    prices: Prices,
}

impl Budget {
    /// A budget with budgets of its own below it, perhaps.
    pub fn new(name: impl Into<String>, cap: Cap) -> Self {
        let (accounts, id) = Accounts::new(name.into(), cap);
        let prices = Prices::default();
        Self {
            shared: Arc::new(Mutex::new(BudgetInner { accounts, prices })),
            freed: Arc::default(),
            id,
        }
    }

    /// The budget of this name below this one; a new one, unless there is one already. In both cases the cap is its cap from now on.
    pub fn child(&self, name: impl Into<String>, cap: Cap) -> Self {
        let id = self.lock().accounts.child(self.id, name.into(), cap);
        // The cap may be higher than the old one.
        self.freed.notify_waiters();
        Self { id, ..self.clone() }
    }

    /// Waits until something may be left again. What is freed after this call counts, even before the first poll.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Frees what is reserved, and charges what was used instead.
    fn settle(&self, reserved: Amount, used: Spent) {
        self.lock().accounts.settle(self.id, reserved, used, today());
        self.freed.notify_waiters();
    }

    /// Reserves an amount for a turn, in this budget and in all above it.
    ///
    /// Reserve what a turn costs at most, as far as you can tell. With an amount of nothing the turn begins as long as anything is
    /// left.
    ///
    /// # Errors
    /// When the amount exceeds what is [`left`](Self::left), or nothing is left. Nothing is reserved then.
    pub fn reserve(&self, amount: Amount) -> Result<Reservation, Exhausted> {
        self.lock().accounts.reserve(self.id, amount, today())?;
        Ok(Reservation {
            budget: self.clone(),
            reserved: amount,
            estimate: Estimate::default(),
            open: true,
        })
    }

    /// Charges what was spent outside of turns with a reservation, today. It is charged even if that exceeds a cap.
    pub fn charge(&self, amount: Amount) {
        self.settle(Amount::default(), Spent { amount, turns: 1 });
    }

    /// What turns have spent, of all days.
    pub fn spent(&self) -> Amount {
        self.lock().accounts.spent(self.id)
    }

    /// What is reserved for turns that run.
    pub fn reserved(&self) -> Amount {
        self.lock().accounts.reserved(self.id)
    }

    /// What can be reserved now: the least that is left here and in the budgets above.
    pub fn left(&self) -> Left {
        self.lock().accounts.left(self.id, today())
    }

    /// What each budget of the whole tree spent, by day. With [`restore`](Self::restore) the next process goes on from there.
    pub fn ledger(&self) -> Vec<LedgerRow> {
        let shared = self.lock();
        let rows = shared.accounts.rows();
        rows.map(|(budget, day, Spent { amount, turns })| LedgerRow {
            budget,
            day,
            amount,
            turns,
        })
        .collect()
    }

    /// Adds what an earlier process spent. Budgets that do not exist yet have no cap until [`child`](Self::child) gives them one.
    ///
    /// Returns the rows of other trees, which are not added.
    pub fn restore(&self, rows: impl IntoIterator<Item = LedgerRow>) -> Vec<LedgerRow> {
        let mut shared = self.lock();
        rows.into_iter()
            .filter(|row| {
                let spent = Spent {
                    amount: row.amount,
                    turns: row.turns,
                };
                !shared.accounts.restore(&row.budget, row.day, spent)
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BudgetInner> {
        // Nothing panics halfway through a change.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn today() -> UtcDay {
    UtcDay::of(SystemTime::now())
}

/// What is reserved for one turn.
///
/// [`settle`](Self::settle) charges what the turn has used. If this is dropped instead, the turn may still run, so all that is reserved
/// is charged. [`release`](Self::release) is for a turn that did not begin.
#[derive(Debug)]
#[must_use = "all that is reserved is charged when this is dropped"]
pub struct Reservation {
    budget: Budget,
    reserved: Amount,
    estimate: Estimate,
    open: bool,
}

impl Reservation {
    /// What is reserved by now.
    pub fn amount(&self) -> Amount {
        self.reserved
    }

    /// Adds up what the turn has used, by its events; reserves more if that is more than is reserved.
    ///
    /// Events show the tokens of a request when it calls a tool: its input, and for its output what the model wrote, at four bytes for a
    /// token. What they cost is known from the first turn on that the CLI charged for the same model in this tree of budgets. A model
    /// that was not charged for yet counts at the highest price that is known; before any turn was charged for, only tokens are limited
    /// while a turn runs.
    ///
    /// # Errors
    /// When a cap is exceeded. The turn should be interrupted then; what it has used counts in any case.
    pub fn observe(&mut self, event: &Event) -> Result<(), Exhausted> {
        if !self.estimate.observe(event) {
            return Ok(());
        }
        let mut shared = self.budget.lock();
        let used = self.estimate.amount(&shared.prices);
        let more = used.saturating_sub(self.reserved);
        self.reserved = self.reserved.max(used);
        shared.accounts.grow(self.budget.id, more, today())
    }

    /// The turn has ended: charges what the CLI reports, and frees the rest.
    pub fn settle(mut self, outcome: &Outcome) {
        self.open = false;
        let usage = outcome.usage();
        let mut amount = Amount::from(usage);
        if outcome.frame().is_none() {
            // The CLI reported nothing, so the turn is charged with what the events showed.
            amount = amount.max(self.estimate.amount(&self.budget.lock().prices));
        }
        self.budget.lock().prices.learn(usage);
        self.budget.settle(self.reserved, Spent { amount, turns: 1 });
    }

    /// The turn did not begin: frees all.
    pub fn release(mut self) {
        self.open = false;
        self.budget.lock().accounts.release(self.budget.id, self.reserved);
        self.budget.freed.notify_waiters();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.open {
            let used = Spent {
                amount: self.reserved,
                turns: 1,
            };
            self.budget.settle(self.reserved, used);
        }
    }
}
