//! Values as they are written, before it is known what they are for.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::place::{Placed, Position};

/// A value as it is written. What a mapping becomes is up to `M`.
pub(crate) enum YamlValue<M = YamlFields> {
    Nothing,
    Bool(bool),
    Whole(i128),
    Fraction(f64),
    Text(String),
    List(Vec<Placed<YamlValue>>),
    Mapping(M),
}

/// What a mapping becomes.
pub(crate) trait FromMapping: Sized {
    fn from_mapping<'de, A: MapAccess<'de>>(mapping: A) -> Result<Self, A::Error>;
}

/// The fields of a mapping, in their order.
pub(crate) struct YamlFields(pub(crate) Vec<(YamlValue, Placed<YamlValue>)>);

impl FromMapping for YamlFields {
    fn from_mapping<'de, A: MapAccess<'de>>(mut mapping: A) -> Result<Self, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = mapping.next_entry()? {
            fields.push(field);
        }
        Ok(Self(fields))
    }
}

impl<M> YamlValue<M> {
    /// The name of this key.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Text(key) => Some(key),
            _ => None,
        }
    }
}

/// Where the value at this path stands, or the deepest one on the way there.
pub(super) fn place_of(whole: &Placed<YamlValue>, path: &[&str]) -> Option<Position> {
    let mut here = whole;
    for name in path {
        let next = match &here.value {
            YamlValue::List(items) => name.parse().ok().and_then(|n: usize| items.get(n)),
            YamlValue::Mapping(YamlFields(fields)) => {
                let field = fields.iter().find(|(key, _)| key.key() == Some(name));
                field.map(|(_, value)| value)
            }
            _ => None,
        };
        let Some(next) = next else { break };
        here = next;
    }
    here.at
}

/// What was found.
impl<M> fmt::Display for YamlValue<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More of a text is not shown.
        const SHOWN: usize = 40;
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Bool(value) => write!(f, "`{value}`"),
            Self::Whole(number) => write!(f, "the number `{number}`"),
            Self::Fraction(number) => write!(f, "the number `{number}`"),
            Self::Text(text) => {
                let line = text.lines().next().unwrap_or_default();
                let shown: String = line.chars().take(SHOWN).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                write!(f, "the text `{shown}{more}`")
            }
            Self::List(_) => f.write_str("a list"),
            Self::Mapping(_) => f.write_str("a mapping"),
        }
    }
}

impl<'de, M: FromMapping> Deserialize<'de> for YamlValue<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(std::marker::PhantomData))
    }
}

struct Reader<M>(std::marker::PhantomData<M>);

impl<'de, M: FromMapping> Visitor<'de> for Reader<M> {
    type Value = YamlValue<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(YamlValue::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(YamlValue::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(YamlValue::Whole(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(YamlValue::Whole(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Self::Value, E> {
        Ok(YamlValue::Whole(number))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Self::Value, E> {
        Ok(YamlValue::Whole(i128::try_from(number).unwrap_or(i128::MAX)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(YamlValue::Fraction(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(YamlValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(YamlValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mapping: A) -> Result<Self::Value, A::Error> {
        M::from_mapping(mapping).map(YamlValue::Mapping)
    }
}
