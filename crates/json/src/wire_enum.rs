//! Two macros: unions and sets of strings that keep what they do not know.
//!
//! They replace `#[serde(tag)]`, `#[serde(untagged)]` and `#[serde(other)]`, which buffer, lose what they do not
//! know, and let one unknown element fail its whole container.

use std::fmt;

use serde::de::{Deserializer, Visitor};

#[doc(inline)]
pub use crate::decode::MisfitValue;

/// A string that its set does not list. Only the set's own `From<&str>` makes one, so that a listed value is never in here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unlisted(Box<str>);

impl Unlisted {
    #[doc(hidden)]
    pub fn __new(value: &str) -> Self {
        Self(value.into())
    }

    /// The string as it came.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A union whose variants differ by one string field, the tag.
///
/// `wire_enum! { /// docs  pub enum Name by "type" { "text" => Text(TextBlock), … } }` generates the enum with two more
/// variants, `Unknown(RawJson)` for a tag that is not listed and `Misfit(Box<MisfitValue>)` for a listed tag whose body does
/// not fit, `Name::KNOWN`, `tag()`, `Deserialize` and `Serialize`. Deserializing fails only if the value is no object or
/// has no tag.
#[macro_export]
macro_rules! wire_enum {
    ($(#[$m:meta])* $vis:vis enum $name:ident by $tag:literal
     { $( $(#[$vm:meta])* $wire:literal => $var:ident($ty:ty) ),+ $(,)? }) => {
        $(#[$m])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        $vis enum $name {
            $( $(#[$vm])* $var($ty), )+
            /// A tag that this build does not know, with the whole value as it came.
            Unknown($crate::RawJson),
            /// A tag that this build knows, on a value that does not fit.
            Misfit(Box<$crate::wire_enum::MisfitValue>),
        }

        impl $name {
            /// The tags that this build has types for.
            pub const KNOWN: &'static [&'static str] = &[$($wire),+];

            /// The tag as it is on the wire; empty for a value that has none.
            pub fn tag(&self) -> std::borrow::Cow<'_, str> {
                match self {
                    $( Self::$var(_) => std::borrow::Cow::Borrowed($wire), )+
                    Self::Unknown(raw) => std::borrow::Cow::Owned(
                        $crate::walk::string_at(raw.get(), $tag).unwrap_or_default(),
                    ),
                    Self::Misfit(misfit) => std::borrow::Cow::Borrowed(misfit.tag.as_str()),
                }
            }
        }

        impl $crate::decode::Union for $name {
            const NAME: &'static str = stringify!($name);
            const TAG: &'static str = $tag;

            fn fit(
                tag: &str,
                reader: &mut $crate::decode::Reader<'_>,
            ) -> Option<Result<Self, $crate::decode::Failed>> {
                Some(match tag {
                    $( $wire => serde::Deserialize::deserialize(reader).map(Self::$var), )+
                    _ => return None,
                })
            }

            fn unknown(raw: $crate::RawJson) -> Self {
                Self::Unknown(raw)
            }

            fn misfit(misfit: Box<$crate::wire_enum::MisfitValue>) -> Self {
                Self::Misfit(misfit)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::decode::union(deserializer)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(serde::Serialize)]
                struct Tagged<'a, T> {
                    #[serde(rename = $tag)]
                    tag: &'static str,
                    #[serde(flatten)]
                    body: &'a T,
                }
                match self {
                    $( Self::$var(body) => Tagged { tag: $wire, body }.serialize(serializer), )+
                    Self::Unknown(raw) => raw.serialize(serializer),
                    Self::Misfit(misfit) => misfit.raw.serialize(serializer),
                }
            }
        }
    };
}

/// A set of strings that upstream may extend.
///
/// `open_enum! { /// docs  pub enum Name { /// docs  Idle = "idle", … } }` generates the enum with one more variant,
/// `Other(Unlisted)`, plus `KNOWN`, `as_str`, `From<&str>`, `Display`, `Deserialize` and `Serialize`.
#[macro_export]
macro_rules! open_enum {
    ($(#[$m:meta])* $vis:vis enum $name:ident { $( $(#[$vm:meta])* $var:ident = $wire:literal ),+ $(,)? }) => {
        $(#[$m])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $name {
            $( $(#[$vm])* $var, )+
            /// A value that this build does not know, as it came.
            Other($crate::wire_enum::Unlisted),
        }

        impl $name {
            /// The values that this build knows.
            pub const KNOWN: &'static [&'static str] = &[$($wire),+];

            /// The value as it is on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$var => $wire, )+
                    Self::Other(other) => other.as_str(),
                }
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                match value {
                    $( $wire => Self::$var, )+
                    other => Self::Other($crate::wire_enum::Unlisted::__new(other)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::wire_enum::text(deserializer, |text| {
                    let value = Self::from(text);
                    if matches!(value, Self::Other(_)) {
                        $crate::drift::note(stringify!($name), text, $crate::drift::DriftKind::UnknownValue);
                    }
                    value
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

/// Reads a string by `read`.
#[doc(hidden)]
pub fn text<'de, T, D: Deserializer<'de>>(deserializer: D, read: fn(&str) -> T) -> Result<T, D::Error> {
    struct Text<T>(fn(&str) -> T);
    impl<T> Visitor<'_> for Text<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E>(self, text: &str) -> Result<T, E> {
            Ok((self.0)(text))
        }
    }
    deserializer.deserialize_str(Text(read))
}
