//! The two macros behind every union and every string set of the protocol.
//!
//! They replace `#[serde(tag)]`, `#[serde(untagged)]` and `#[serde(other)]`, which buffer, lose what they do not
//! know, and let one unknown element fail its whole container.

use crate::json::RawJson;

/// A value with a known tag whose body did not have the expected shape.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MisfitValue {
    /// The tag, as the CLI wrote it.
    pub tag: String,
    /// What did not fit, with line and column inside `raw`.
    pub reason: String,
    /// The whole value as it came.
    pub raw: RawJson,
}

/// A string that is none of those a set lists. Made only by the set's own `From<&str>`, so that a listed value can
/// never hide in here.
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

/// A union told apart by one string field; closed by tag, open by default.
///
/// `wire_enum! { /// docs  pub enum Name by "type" { "text" => Text(TextBlock), … } }` generates the enum with two more
/// variants, `Unknown(RawJson)` for a tag that is not listed and `Misfit(Box<MisfitValue>)` for a listed tag whose body does
/// not fit, `Name::KNOWN`, `tag()`, `Deserialize` and `Serialize`. Deserializing fails only if the value is no object or
/// has no tag.
///
/// `by "type" in one pass` makes it quick to decode and slow to compile: for the unions that most frames have.
#[macro_export]
macro_rules! wire_enum {
    ($(#[$m:meta])* $vis:vis enum $name:ident by $tag:literal in one pass
     { $( $(#[$vm:meta])* $wire:literal => $var:ident($ty:ty) ),+ $(,)? }) => {
        $crate::wire_enum! {
            @ $(#[$m])* $vis enum $name by $tag { $( $(#[$vm])* $wire => $var($ty) ),+ }
        }

        impl<'de> $crate::direct::Union<'de> for $name {
            const TAG: &'static str = $tag;

            fn read<A: serde::de::MapAccess<'de>>(
                tag: &str,
                body: $crate::direct::Body<'de, A>,
            ) -> Result<Self, A::Error> {
                match tag {
                    $( $wire => <$ty as serde::Deserialize<'de>>::deserialize(body).map(Self::$var), )+
                    _ => Err(serde::de::Error::custom("an unknown tag")),
                }
            }

            fn straight<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Result<Self, D::Error>, D> {
                if $crate::direct::is_on() {
                    Ok($crate::direct::read(deserializer))
                } else {
                    Err(deserializer)
                }
            }
        }
    };
    ($(#[$m:meta])* $vis:vis enum $name:ident by $tag:literal
     { $( $(#[$vm:meta])* $wire:literal => $var:ident($ty:ty) ),+ $(,)? }) => {
        $crate::wire_enum! {
            @ $(#[$m])* $vis enum $name by $tag { $( $(#[$vm])* $wire => $var($ty) ),+ }
        }

        impl $crate::direct::Union<'_> for $name {}
    };
    (@ $(#[$m:meta])* $vis:vis enum $name:ident by $tag:literal
     { $( $(#[$vm:meta])* $wire:literal => $var:ident($ty:ty) ),+ }) => {
        $(#[$m])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        $vis enum $name {
            $( $(#[$vm])* $var($ty), )+
            /// A tag that this build does not know, with the whole value as it came.
            Unknown($crate::json::RawJson),
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
                        $crate::wire_enum::peek_tag(raw.get(), $tag).unwrap_or_default(),
                    ),
                    Self::Misfit(misfit) => std::borrow::Cow::Borrowed(misfit.tag.as_str()),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let deserializer = match <Self as $crate::direct::Union<'de>>::straight(deserializer) {
                    Ok(read) => return read,
                    Err(deserializer) => deserializer,
                };
                let raw = $crate::json::RawJson::deserialize(deserializer)?;
                let Some(tag) = $crate::wire_enum::peek_tag(raw.get(), $tag) else {
                    return Err(serde::de::Error::custom(concat!(
                        stringify!($name), " without a string `", $tag, "`"
                    )));
                };
                let fitted = match tag.as_str() {
                    $( $wire => raw.decode::<$ty>().map(Self::$var), )+
                    _ => {
                        $crate::drift::note(stringify!($name), tag, || $crate::drift::DriftKind::UnknownTag);
                        return Ok(Self::Unknown(raw));
                    }
                };
                Ok(fitted.unwrap_or_else(|error| {
                    let reason = error.to_string();
                    $crate::drift::note(stringify!($name), tag.clone(), || {
                        $crate::drift::DriftKind::Misfit(reason.clone())
                    });
                    Self::Misfit(Box::new($crate::wire_enum::MisfitValue::__new(tag, reason, raw)))
                }))
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
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                let value = Self::from(&*text);
                if matches!(value, Self::Other(_)) {
                    $crate::drift::note(stringify!($name), text, || $crate::drift::DriftKind::UnknownValue);
                }
                Ok(value)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

impl MisfitValue {
    #[doc(hidden)]
    pub fn __new(tag: String, reason: String, raw: RawJson) -> Self {
        Self { tag, reason, raw }
    }
}

/// The string at key `key` of the object in `text`; the last one if there are several.
#[doc(hidden)]
pub fn peek_tag(text: &str, key: &str) -> Option<String> {
    use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

    struct Key<'k>(&'k str);
    impl<'de> Visitor<'de> for Key<'_> {
        type Value = Option<String>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                if key == self.0 {
                    found = map.next_value_seed(crate::lenient::Text)?;
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    impl<'de> DeserializeSeed<'de> for Key<'_> {
        type Value = Option<String>;
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_map(self)
        }
    }
    Key(key)
        .deserialize(&mut serde_json::Deserializer::from_str(text))
        .ok()
        .flatten()
}
