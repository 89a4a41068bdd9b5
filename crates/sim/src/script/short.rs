//! How values are written: durations, and types that have a short form.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::inject::{SIGNALS, is_signal};

use super::error::at;
use super::place::Placed;

/// Lets a type be written as one plain value, or as the mapping that `#[serde(remote = "Self")]` reads.
///
/// The first literal is what may stand there. The conversion of a plain value may fail with a message. [`or_text`] and similar
/// functions fix the schema.
macro_rules! short_form {
    ($type:ident, $due:literal, $($plain:pat => $make:expr),+ $(,)?) => {
        impl $crate::script::yaml_value::FromMapping for $type {
            fn from_mapping<'de, A: serde::de::MapAccess<'de>>(mapping: A) -> Result<Self, A::Error> {
                $type::deserialize(serde::de::value::MapAccessDeserializer::new(mapping))
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use $crate::script::yaml_value::YamlValue;
                let written = $crate::script::place::Placed::<YamlValue<Self>>::deserialize(deserializer)?;
                let value = match written.value {
                    YamlValue::Mapping(value) => Ok(value),
                    $($plain => $make,)+
                    other => Err(format!("here goes {}, not {other}", $due)),
                };
                value.map_err(|what: String| $crate::script::error::at(written.at, &what))
            }
        }
    };
}
pub(crate) use short_form;

/// A value that is given. A field that is left blank is none: it would count as one that is not there, and demand nothing.
pub(super) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let written = Placed::<Option<T>>::deserialize(deserializer)?;
    match written.value {
        Some(value) => Ok(Some(value)),
        None => Err(at(written.at, BLANK)),
    }
}

/// What stands where nothing may.
const BLANK: &str = "here goes a value, not nothing: an empty text is `''`, and one that begins with `#` or `!` goes in quotes";

/// Takes `null` out of a schema, for fields that are read by [`given`].
pub(super) fn without_null(schema: &mut Value) {
    if let Some(kinds) = schema.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &kinds[..] {
            schema["type"] = kind.clone();
        }
    }
    if let Some(any) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        any.retain(|one| one["type"] != "null");
        if let [one] = &any[..]
            && let Some(fields) = one.as_object().cloned()
            && let Some(schema) = schema.as_object_mut()
        {
            schema.remove("anyOf");
            schema.extend(fields);
        }
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(without_null),
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

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
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    // As with a bare number: any clock can add it.
    (time <= Duration::from_millis(u64::MAX)).then_some(time)
}

/// For `#[serde(deserialize_with)]`.
pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Ok(<Length as Deserialize>::deserialize(deserializer)?.time)
}

/// For `#[serde(deserialize_with)]`: an amount of money, which is not negative.
pub(crate) fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    checked(deserializer, |dollars: f64| match dollars {
        0.0..=f64::MAX => Ok(dollars),
        _ => Err("a cost is a number of US dollars, and not negative".to_owned()),
    })
}

/// For `#[serde(deserialize_with)]`: how many requests a prompt may take.
pub(super) fn requests<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    checked(deserializer, |requests| match requests {
        0 => Err("a prompt takes at least 1 request".to_owned()),
        requests => Ok(requests),
    })
}

/// For `#[serde(deserialize_with)]`: a number of tokens. Sums of them are no number too large.
pub(super) fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    checked(deserializer, |tokens: u64| match u32::try_from(tokens) {
        Ok(known) => Ok(known.into()),
        Err(_) => Err(format!("`{tokens}` tokens are more than a response has")),
    })
}

/// For `#[serde(deserialize_with)]`: a part of a whole, if it is given.
pub(super) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    checked(deserializer, |share: Option<f64>| match share {
        None => Err(BLANK.to_owned()),
        Some(0.0..=1.0) => Ok(share),
        Some(more) => Err(format!("`{more}` is no part of a whole: it goes from 0 to 1")),
    })
}

/// A duration, as a type of its own.
#[derive(Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
struct Length {
    #[serde(skip)]
    time: Duration,
}

short_form!(Length, "a length of time such as 250ms, 2s or 3m",
YamlValue::Text(text) => parse_duration(&text)
    .map(|time| Length { time })
    .ok_or_else(|| format!("`{text}` is no length of time: write 250ms, 2s or 3m")),
YamlValue::Whole(ms) => milliseconds(ms).map(|time| Length { time }));

/// A bare number as a length of time.
pub(super) fn milliseconds(ms: i128) -> Result<Duration, String> {
    let known = u64::try_from(ms).map_err(|_| match ms {
        ..0 => format!("`{ms}` is no length of time: it cannot be less than none"),
        _ => format!("`{ms}` milliseconds are too long"),
    })?;
    Ok(Duration::from_millis(known))
}

/// For `#[serde(deserialize_with)]`: the status of an error.
pub(super) fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    checked(deserializer, |status: i64| error_status(status.into()))
}

/// The HTTP status of an error.
pub(super) fn error_status(status: i128) -> Result<u16, String> {
    match u16::try_from(status) {
        Ok(status @ 400..600) => Ok(status),
        _ => Err(format!(
            "`{status}` is no HTTP status of an error: they go from 400 to 599"
        )),
    }
}

/// For `#[serde(deserialize_with)]`: an exit code.
pub(super) fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    checked(deserializer, |code: i64| exit_code(code.into()))
}

/// A code with which a process can end.
pub(super) fn exit_code(code: i128) -> Result<i32, String> {
    let known = u8::try_from(code);
    known
        .map(i32::from)
        .map_err(|_| format!("`{code}` is no exit code: they go from 0 to 255"))
}

/// For `#[serde(deserialize_with)]`: a signal, if one is given.
pub(super) fn signal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    checked(deserializer, |signal: Option<i32>| match signal {
        None => Err(BLANK.to_owned()),
        Some(number) if !is_signal(number) => Err(format!("`{number}` is no signal: {SIGNALS}")),
        signal => Ok(signal),
    })
}

/// For `#[serde(deserialize_with)]`: how many characters a piece of a text has.
pub(super) fn chunk<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    checked(deserializer, |chunk| match chunk {
        0 => Err(NO_PIECE.to_owned()),
        chunk => Ok(chunk),
    })
}

/// For `#[serde(deserialize_with)]`: the same, if it is given.
pub(super) fn chunk_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    checked(deserializer, |chunk| match chunk {
        None => Err(BLANK.to_owned()),
        Some(0) => Err(NO_PIECE.to_owned()),
        chunk => Ok(chunk),
    })
}

const NO_PIECE: &str = "a piece of a text has at least 1 character";

/// Reads a value, and checks it; a mistake has the value's place.
fn checked<'de, D: Deserializer<'de>, R: Deserialize<'de>, T>(
    deserializer: D,
    check: impl FnOnce(R) -> Result<T, String>,
) -> Result<T, D::Error> {
    let read = Placed::<R>::deserialize(deserializer)?;
    check(read.value).map_err(|what| at(read.at, &what))
}

/// What is told where a text is due, but this is something else without quotes.
pub(super) fn unquoted(written: &impl std::fmt::Display) -> String {
    format!("here goes a text, and {written} is one only in quotes")
}
