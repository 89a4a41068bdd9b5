//! Where in a script something stands.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

/// A line and a column of a script file, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl Position {
    pub(super) fn of(location: serde_saphyr::Location) -> Option<Self> {
        // The parser uses 0 for unknown places.
        (location.line() > 0).then(|| Self {
            line: location.line(),
            column: location.column(),
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value and where it was written, if it was read from a file. Two are equal if their values are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// The place in the file; `None` if the value was built in Rust.
    pub at: Option<Position>,
}

impl<T> From<T> for Placed<T> {
    fn from(value: T) -> Self {
        Self { value, at: None }
    }
}

impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            at: Position::of(spanned.referenced),
            value: spanned.value,
        })
    }
}

impl<T: JsonSchema> JsonSchema for Placed<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
