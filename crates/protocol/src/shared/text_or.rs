//! Fields that have one of two JSON shapes.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A string, or a list.
#[derive(Debug, Clone, PartialEq)]
pub enum TextOr<T> {
    /// The short form.
    Text(String),
    /// The long form.
    Blocks(Vec<T>),
}

impl<T> TextOr<T> {
    /// The list; empty for the short form.
    pub fn blocks(&self) -> &[T] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }

    /// The string; `None` for the long form.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Blocks(_) => None,
        }
    }
}

impl<T> From<&str> for TextOr<T> {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T> From<String> for TextOr<T> {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T> From<Vec<T>> for TextOr<T> {
    fn from(blocks: Vec<T>) -> Self {
        Self::Blocks(blocks)
    }
}

impl<T: Serialize> Serialize for TextOr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blocks(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = TextOr<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list")
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(TextOr::Text(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(TextOr::Blocks)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// A list, or one object of another kind.
#[derive(Debug, Clone, PartialEq)]
pub enum ListOr<T, O> {
    /// The list.
    List(Vec<T>),
    /// The object.
    One(O),
}

impl<T: Serialize, O: Serialize> Serialize for ListOr<T, O> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::List(list) => list.serialize(serializer),
            Self::One(one) => one.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>, O: Deserialize<'de>> Deserialize<'de> for ListOr<T, O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T, O>(PhantomData<(T, O)>);
        impl<'de, T: Deserialize<'de>, O: Deserialize<'de>> Visitor<'de> for Either<T, O> {
            type Value = ListOr<T, O>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list or an object")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(ListOr::List)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                O::deserialize(MapAccessDeserializer::new(map)).map(ListOr::One)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}
