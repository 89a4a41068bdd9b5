//! How values are written: durations, and types that have a short form.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// Lets a type be written as one plain value, or as the mapping that `#[serde(remote = "Self")]` reads.
///
/// The conversion of a plain value may fail with a message. [`or_text`] and similar functions fix the
/// schema.
macro_rules! short_form {
    ($type:ident, $expecting:literal, $($visit:ident($from:ty) => |$value:ident| $make:expr),+ $(,)?) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Short(Result<$type, String>);
                struct Visitor;
                impl<'de> serde::Deserialize<'de> for Short {
                    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        deserializer.deserialize_any(Visitor)
                    }
                }
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = Short;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    $(fn $visit<E: serde::de::Error>(self, $value: $from) -> Result<Short, E> {
                        Ok(Short($make))
                    })+
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Short, A::Error> {
                        $type::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(|value| Short(Ok(value)))
                    }
                }
                let short = $crate::script::place::Placed::<Short>::deserialize(deserializer)?;
                short.value.0.map_err(|what| $crate::script::error::at(short.at, &what))
            }
        }
    };
}
pub(crate) use short_form;

/// A schema that also takes a text.
pub(crate) fn or_text(schema: &mut Schema) {
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
pub(crate) struct Span;

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

/// Reads a duration in the format of [`Span`].
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
pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Ok(<Length as Deserialize>::deserialize(deserializer)?.time)
}

/// For `#[serde(deserialize_with)]`: an amount of money, which is not negative.
pub(crate) fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let dollars = f64::deserialize(deserializer)?;
    if dollars.is_finite() && dollars >= 0.0 {
        Ok(dollars)
    } else {
        Err(serde::de::Error::custom(
            "a cost is a number of US dollars, and not negative",
        ))
    }
}

/// A duration, as a type of its own.
#[derive(Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
struct Length {
    #[serde(skip)]
    time: Duration,
}

short_form!(Length, "a length of time such as 250ms, 2s or 3m",
visit_str(&str) => |text| parse_duration(text)
    .map(|time| Length { time })
    .ok_or_else(|| format!("`{text}` is no length of time: write 250ms, 2s or 3m")),
visit_u64(u64) => |ms| Ok(Length { time: Duration::from_millis(ms) }),
visit_i64(i64) => |ms| match u64::try_from(ms) {
    Ok(ms) => Ok(Length { time: Duration::from_millis(ms) }),
    Err(_) => Err(format!("`{ms}` is no length of time: it cannot be less than none")),
});
