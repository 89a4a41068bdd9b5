//! Compares what came with the typed value, written again.

use std::collections::BTreeMap;

use super::FrameFinding;
use crate::RawJson;
use crate::shape::Shape;

/// What of `original` is missing or different in `typed`. Keys that only `typed` has are fields that the frame did not set. The
/// keys in `ignored` are left out at the top.
///
/// Works level by level on the text and not by recursion, because payloads may be nested as deep as they like; equal texts
/// are not looked into.
pub fn compare(original: &str, typed: &str, ignored: &[&str]) -> Vec<FrameFinding> {
    let mut findings = Vec::new();
    let (Ok(original), Ok(typed)) = (RawJson::from_text(original), RawJson::from_text(typed)) else {
        return vec![FrameFinding::Altered("not JSON".to_owned())];
    };
    let mut open = vec![(String::new(), original, typed)];
    while let Some((path, original, typed)) = open.pop() {
        if original == typed {
            continue;
        }
        match (Shape::of(&original), Shape::of(&typed)) {
            (Shape::Object, Shape::Object) => {
                let (Some(fields), Some(mut written)) = (object(&original), object(&typed)) else {
                    findings.push(FrameFinding::Altered(path));
                    continue;
                };
                for (key, value) in fields {
                    if path.is_empty() && ignored.contains(&key.as_str()) {
                        continue;
                    }
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    match written.remove(&key) {
                        Some(again) => open.push((path, value, again)),
                        None => findings.push(FrameFinding::Unmodelled(path)),
                    }
                }
            }
            (Shape::Array, Shape::Array) => {
                let (Some(items), Some(written)) = (array(&original), array(&typed)) else {
                    findings.push(FrameFinding::Altered(path));
                    continue;
                };
                if items.len() != written.len() {
                    let (was, is) = (items.len(), written.len());
                    findings.push(FrameFinding::Altered(format!(
                        "{path} had {was} elements and has {is}"
                    )));
                    continue;
                }
                let path = format!("{path}[]");
                open.extend(
                    items
                        .into_iter()
                        .zip(written)
                        .map(|(item, again)| (path.clone(), item, again)),
                );
            }
            (Shape::Number, Shape::Number) if same_number(original.get(), typed.get()) => {}
            (Shape::String, Shape::String) if same_string(&original, &typed) => {}
            _ => findings.push(FrameFinding::Altered(path)),
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// The fields; of a key that is there more than once the last, as JavaScript has it.
fn object(raw: &RawJson) -> Option<BTreeMap<String, RawJson>> {
    raw.read().ok()
}

fn array(raw: &RawJson) -> Option<Vec<RawJson>> {
    raw.read().ok()
}

/// Numbers are equal by value: `5` and `5.0` are, whole numbers beyond 2^53 only if all digits are.
fn same_number(a: &str, b: &str) -> bool {
    match (a.parse::<i128>(), b.parse::<i128>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b),
    }
}

/// Strings are equal by what they say, lone surrogates being read as U+FFFD on both sides.
fn same_string(a: &RawJson, b: &RawJson) -> bool {
    matches!((a.read::<String>(), b.read::<String>()), (Ok(a), Ok(b)) if a == b)
}
