//! Flaws of a client.

use std::fmt;

/// Something that a script did not expect of its client, or expected in vain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Flaw {
    /// The place in the script: `script.yaml:12:7`, or a path such as `prompts[0].steps[2]`.
    pub place: String,
    /// The problem.
    pub what: String,
}

impl Flaw {
    /// A flaw at this place.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// All that was wrong, one a line.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Flaws(pub Vec<Flaw>);

impl Flaws {
    /// An error if there are flaws.
    ///
    /// # Errors
    /// With all flaws.
    pub fn none_in(flaws: impl IntoIterator<Item = Flaw>) -> Result<(), Self> {
        let flaws: Vec<Flaw> = flaws.into_iter().collect();
        match flaws.is_empty() {
            true => Ok(()),
            false => Err(Self(flaws)),
        }
    }
}

impl fmt::Display for Flaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, flaw) in self.0.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{flaw}")?;
        }
        Ok(())
    }
}

/// Reads well in the output of `unwrap`.
impl fmt::Debug for Flaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
