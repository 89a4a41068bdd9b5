//! How values are written: durations, and types that have a short form.

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};

/// Lets a type be written as one plain value, or as the mapping that `#[serde(remote = "Self")]` reads.
///
/// The schema is mended by [`or_text`] and its like.
macro_rules! short_form {
    ($type:ident, $expecting:literal, $($visit:ident($from:ty) => |$value:ident| $make:expr),+ $(,)?) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Short;
                impl<'de> serde::de::Visitor<'de> for Short {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    $(fn $visit<E: serde::de::Error>(self, $value: $from) -> Result<$type, E> {
                        $make
                    })+
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        $type::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }
                }
                deserializer.deserialize_any(Short)
            }
        }
    };
}
pub(super) use short_form;

/// A schema that also takes a text.
pub(super) fn or_text(schema: &mut Schema) {
    or(schema, json_schema!({"type": "string"}));
}

/// A schema that also takes a whole number.
pub(super) fn or_number(schema: &mut Schema) {
    or(schema, json_schema!({"type": "integer"}));
}

fn or(schema: &mut Schema, other: Schema) {
    let description = schema.remove("description");
    let long = std::mem::take(schema);
    *schema = json_schema!({"anyOf": [other, long]});
    if let Some(description) = description {
        schema.insert("description".into(), description);
    }
}

/// How a duration is written: `250ms`, `2s`, `1.5s`, `3m`; a bare number counts milliseconds.
pub(super) struct Span;

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: `250ms`, `2s`, `1.5s`, `3m`; a bare number counts milliseconds.",
            "anyOf": [
                {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(ms|s|m)$"},
                {"type": "integer", "minimum": 0},
            ],
        })
    }
}

/// Reads a duration as [`Span`] says.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(unit);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// For `#[serde(deserialize_with)]`.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct Length;
    impl Visitor<'_> for Length {
        type Value = Duration;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a length of time such as 250ms, 2s or 3m")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
            parse_duration(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }
        fn visit_u64<E: de::Error>(self, ms: u64) -> Result<Duration, E> {
            Ok(Duration::from_millis(ms))
        }
        fn visit_i64<E: de::Error>(self, ms: i64) -> Result<Duration, E> {
            let ms = u64::try_from(ms).map_err(|_| E::invalid_value(de::Unexpected::Signed(ms), &self))?;
            Ok(Duration::from_millis(ms))
        }
    }
    deserializer.deserialize_any(Length)
}
