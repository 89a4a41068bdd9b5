//! Unions that no string field tells apart: by the shape of the JSON, or by a key that only one kind has.
//!
//! Both macros expect an enum with a last variant `Unknown(RawJson)`, which takes what fits nowhere, as it came.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use crate::RawJson;

/// What kind of JSON value a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Array,
    String,
    Bool,
    Number,
    Null,
}

impl Shape {
    pub(crate) fn of(raw: &RawJson) -> Self {
        // A raw value has no space in front of it.
        match raw.get().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Bool => "bool",
            Self::Number => "number",
            Self::Null => "null",
        }
    }
}

/// The keys of an object; none for anything else.
pub(crate) fn keys(raw: &RawJson) -> BTreeMap<String, IgnoredAny> {
    match Shape::of(raw) {
        Shape::Object => raw.read().unwrap_or_default(),
        _ => BTreeMap::new(),
    }
}

/// Implements `Deserialize` and `Serialize` for a union that is told apart by the kind of JSON value.
macro_rules! by_shape {
    ($name:ident { $( $shape:ident => $var:ident ),+ $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = $crate::RawJson::deserialize(deserializer)?;
                let shape = $crate::shape::Shape::of(&raw);
                let fitted = match shape {
                    $( $crate::shape::Shape::$shape => Some(raw.read().map(Self::$var)), )+
                    #[allow(unreachable_patterns, reason = "a union may list every shape")]
                    _ => None,
                };
                Ok(match $crate::shape::judge(stringify!($name), shape.name(), fitted) {
                    Some(fitted) => fitted,
                    None => Self::Unknown(raw),
                })
            }
        }

        $crate::shape::serialize_as_is!($name { $( $var ),+ });
    };
}
pub(crate) use by_shape;

/// Implements `Deserialize` and `Serialize` for a union of objects: the first of the listed keys that is there decides.
macro_rules! by_key {
    ($name:ident { $( $key:literal => $var:ident ),+ $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = $crate::RawJson::deserialize(deserializer)?;
                let keys = $crate::shape::keys(&raw);
                let found = [$( $key ),+].into_iter().find(|key| keys.contains_key(*key));
                let fitted = match found {
                    $( Some($key) => Some(raw.read().map(Self::$var)), )+
                    _ => None,
                };
                let tag = found.unwrap_or_else(|| $crate::shape::Shape::of(&raw).name());
                Ok(match $crate::shape::judge(stringify!($name), tag, fitted) {
                    Some(fitted) => fitted,
                    None => Self::Unknown(raw),
                })
            }
        }

        $crate::shape::serialize_as_is!($name { $( $var ),+ });
    };
}
pub(crate) use by_key;

/// Implements `Serialize` by that of the one value that each variant has.
macro_rules! serialize_as_is {
    ($name:ident { $( $var:ident ),+ }) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$var(value) => value.serialize(serializer), )+
                    Self::Unknown(raw) => raw.serialize(serializer),
                }
            }
        }
    };
}
pub(crate) use serialize_as_is;

/// Notes as drift what has no variant, or does not fit its variant.
pub(crate) fn judge<T>(
    place: &'static str,
    tag: &str,
    fitted: Option<Result<T, serde_json::Error>>,
) -> Option<T> {
    use crate::drift::{DriftKind, note};
    match fitted {
        Some(Ok(value)) => Some(value),
        Some(Err(error)) => {
            note(place, tag, DriftKind::Misfit(error.to_string()));
            None
        }
        None => {
            note(place, tag, DriftKind::UnknownTag);
            None
        }
    }
}
