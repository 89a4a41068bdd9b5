//! Money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// An amount of US dollars, in billionths, so that sums are exact. Not negative; sums stop at the largest amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd(u64);

/// A number is no amount of money: it is negative, infinite, too large, or not a number.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is not an amount of US dollars between 0 and 18 billion")]
pub struct InvalidUsd(f64);

const BILLION: f64 = 1e9;

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Whole cents.
    pub const fn from_cents(cents: u32) -> Self {
        Self(cents as u64 * 10_000_000)
    }

    /// Dollars, rounded to the nearest billionth.
    ///
    /// # Errors
    /// When the number is negative, infinite, not a number, or more than 18 billion.
    pub fn from_dollars(dollars: f64) -> Result<Self, InvalidUsd> {
        let nanos = (dollars * BILLION).round();
        // The largest `u64` has no exact `f64`; 18 billion dollars are below it.
        if dollars >= 0.0 && nanos <= 18e18 {
            Ok(Self(nanos as u64))
        } else {
            Err(InvalidUsd(dollars))
        }
    }

    /// Dollars that the CLI reports: what is no amount counts as nothing.
    pub(crate) fn reported(dollars: f64) -> Self {
        Self::from_dollars(dollars).unwrap_or_default()
    }

    /// The dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / BILLION
    }

    pub(super) fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.dollars())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_and_what_is_no_amount_is_refused() {
        let tenth = Usd::from_dollars(0.1).unwrap();
        assert_eq!(std::iter::repeat_n(tenth, 30).sum::<Usd>(), Usd::from_cents(300));
        assert_eq!(tenth.to_string(), "$0.1000");
        for bad in [-0.01, f64::NAN, f64::INFINITY, 1e11] {
            assert!(Usd::from_dollars(bad).is_err(), "{bad}");
        }
        assert_eq!(Usd::from_dollars(-0.0), Ok(Usd::ZERO));
    }
}
