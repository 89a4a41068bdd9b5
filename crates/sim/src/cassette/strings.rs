//! Iterates over the strings of a JSON text and changes some of them; the rest keeps its bytes.
//!
//! It works on the text because a typed value would lose parts of frames: lone surrogates, deep nesting, numbers
//! that no float can hold, the order of keys.

use std::borrow::Cow;

/// One step from a container to an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
}

/// Where a string stands.
#[derive(Debug)]
pub(super) struct StringPlace<'a> {
    /// The way from the root to it; for a key, to its object.
    pub(super) path: &'a [PathStep],
    /// Whether the string is a key.
    pub(super) is_key: bool,
    /// What it may be called by: the string before it in its list, or the `name` of its object.
    pub(super) name: Option<&'a str>,
}

impl StringPlace<'_> {
    /// The key of the object that this is a value of, or whose list it is in.
    pub(super) fn key(&self) -> Option<&str> {
        self.path.iter().rev().find_map(|step| match step {
            PathStep::Key(key) => Some(key.as_str()),
            PathStep::Index(_) => None,
        })
    }

    /// Whether the string is below this JSON pointer, or there. Of the pointer's parts `*` stands for any.
    pub(super) fn is_in(&self, pointer: &[String]) -> bool {
        self.path.len() >= pointer.len()
            && pointer.iter().zip(self.path).all(|(part, step)| match step {
                _ if part == "*" => true,
                PathStep::Key(key) => key == part,
                PathStep::Index(index) => part.parse() == Ok(*index),
            })
    }
}

enum Container {
    /// The key that was read last, and whether a key comes next.
    Object(bool),
    List,
}

/// The text with the strings for which `change` returns a new one; `None` if there are none.
///
/// `json` must be JSON. For other texts the result is unspecified, but there is no panic.
pub(super) fn rewrite(
    json: &str,
    mut change: impl FnMut(&StringPlace<'_>, &str) -> Option<String>,
) -> Option<String> {
    let bytes = json.as_bytes();
    let mut containers: Vec<Container> = Vec::new();
    let mut path: Vec<PathStep> = Vec::new();
    let mut names: Vec<Option<String>> = Vec::new();
    let mut changed: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at);
                let is_key = matches!(containers.last(), Some(Container::Object(true)));
                let decoded = decode(&json[at + 1..end]);
                let place = StringPlace {
                    path: if is_key {
                        &path[..path.len().saturating_sub(1)]
                    } else {
                        &path
                    },
                    is_key,
                    name: names.last().and_then(Option::as_deref),
                };
                if let Some(replacement) = change(&place, &decoded)
                    && replacement != decoded
                {
                    let text = changed.get_or_insert_with(|| String::with_capacity(json.len()));
                    text.push_str(&json[copied..at]);
                    text.push_str(&encode(&replacement));
                    copied = (end + 1).min(bytes.len());
                }
                match (path.last_mut(), names.last_mut()) {
                    (Some(last), _) if is_key => *last = PathStep::Key(decoded.into_owned()),
                    (Some(PathStep::Key(key)), Some(name)) if key == "name" => {
                        *name = Some(decoded.into_owned())
                    }
                    (Some(PathStep::Index(_)), Some(name)) => *name = Some(decoded.into_owned()),
                    _ => {}
                }
                at = end + 1;
                continue;
            }
            b'{' => {
                containers.push(Container::Object(true));
                path.push(PathStep::Key(String::new()));
                names.push(None);
            }
            b'[' => {
                containers.push(Container::List);
                path.push(PathStep::Index(0));
                names.push(None);
            }
            b'}' | b']' => {
                containers.pop();
                path.pop();
                names.pop();
            }
            b':' => {
                if let Some(Container::Object(key)) = containers.last_mut() {
                    *key = false;
                }
            }
            b',' => match (containers.last_mut(), path.last_mut()) {
                (Some(Container::Object(key)), _) => *key = true,
                (_, Some(PathStep::Index(index))) => *index += 1,
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
    changed.map(|mut text| {
        text.push_str(&json[copied..]);
        text
    })
}

/// Where the string that begins at `at` has its closing quote.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Where lone surrogates are kept while a string is looked at: as many code points of private use as there are surrogates.
const REFUGE: u32 = 0x10_F800;

/// The text between the quotes, decoded. A lone surrogate becomes a code point of private use, which [`encode`] turns
/// back.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    // A text that has such code points of its own would get surrogates back that it never had.
    let taken = raw.chars().any(|c| u32::from(c) >= REFUGE);
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (decoded, length) = escape(&rest[at..]);
        text.push(match decoded {
            Ok(char) => char,
            Err(_) if taken => char::REPLACEMENT_CHARACTER,
            Err(unit) => {
                char::from_u32(REFUGE + u32::from(unit - 0xD800)).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
        });
        rest = rest.get(at + length..).unwrap_or_default();
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character or the lone surrogate of an escape, and the escape's length. An invalid escape is a backslash.
pub(super) fn escape(text: &str) -> (Result<char, u16>, usize) {
    let unit = |text: &str| -> Option<u16> {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let simple = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'"') => '"',
        Some(b'/') => '/',
        Some(b'\\') => '\\',
        _ => {
            let Some(first) = unit(text) else {
                return (Ok('\\'), 1);
            };
            if let Some(char) = char::from_u32(u32::from(first)) {
                return (Ok(char), 6);
            }
            let second = text.get(6..).and_then(unit);
            let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
            return match pair {
                Some(char) => (Ok(char), 12),
                None => (Err(first), 6),
            };
        }
    };
    (Ok(simple), 2)
}

/// The text as a JSON string, with its quotes.
pub(super) fn encode(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    if !quoted.chars().any(|c| u32::from(c) >= REFUGE) {
        return quoted;
    }
    let mut encoded = String::with_capacity(quoted.len());
    for char in quoted.chars() {
        match u32::from(char).checked_sub(REFUGE) {
            Some(unit) => encoded.push_str(&format!("\\u{:04x}", 0xD800 + unit)),
            None => encoded.push(char),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_is_shown_with_its_place_and_the_rest_stays_as_it_was() {
        let json = r#" {"a" : ["x",{"b":"y\u002d\n"} , 1.50],"c":{}, "d\t":"z"} "#;
        let mut seen = Vec::new();
        let changed = rewrite(json, |place, text| {
            seen.push((place.key().map(str::to_owned), place.is_key, text.to_owned()));
            (text == "y-\n").then(|| "\"new\"".to_owned())
        });
        assert_eq!(
            changed.unwrap(),
            r#" {"a" : ["x",{"b":"\"new\""} , 1.50],"c":{}, "d\t":"z"} "#
        );
        let texts: Vec<_> = seen.iter().map(|(_, _, text)| text.as_str()).collect();
        assert_eq!(texts, ["a", "x", "b", "y-\n", "c", "d\t", "z"]);
        assert_eq!(seen[1].0.as_deref(), Some("a"));
        assert_eq!(seen[3].0.as_deref(), Some("b"));
        assert!(seen[4].1 && !seen[6].1);
        assert_eq!(rewrite(json, |_, _| None), None);
    }

    #[test]
    fn places_are_known_by_pointers() {
        let pointer = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        let mut at = Vec::new();
        rewrite(r#"{"a":[{"b":"one"},{"b":"two"}],"c":"three"}"#, |place, text| {
            if place.is_in(&pointer("a/1/b")) || place.is_in(&pointer("c")) && !place.is_key {
                at.push(text.to_owned());
            }
            None
        });
        assert_eq!(at, ["two", "three"]);
    }

    #[test]
    fn surrogates_and_depth_survive() {
        let deep = format!("{}\"\\ud83d and x\"{}", "[".repeat(5000), "]".repeat(5000));
        let changed = rewrite(&deep, |_, text| Some(text.replace('x', "y"))).unwrap();
        assert_eq!(changed, deep.replace('x', "y"));
        assert_eq!(decode(r"\ud83d\ude00 \q"), "\u{1f600} \\q");
        // Nothing is invented for a text that has the code points itself.
        let own = "[\"\u{10f83d} \\ud83d\"]";
        let changed = rewrite(own, |_, text| Some(text.to_owned() + "!")).unwrap();
        assert!(
            changed.contains('\u{fffd}') || changed.contains("\\ud83d"),
            "{changed}"
        );
    }
}
