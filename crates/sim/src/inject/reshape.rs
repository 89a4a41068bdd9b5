//! Frames of another shape than they had: what another version of a peer may write.

use serde_json::Value;

/// All frames that differ from this one by one change of its shape: a key is missing, or its value is null, a number, or an unknown
/// tag. As lines; every key down to this depth is changed, the frame's own keys being at 1.
///
/// Texts do not change. The result is empty if the frame is no object.
///
/// ```
/// let lines = outrigger_sim::fault::reshaped(br#"{"type":"system","a":{"b":1}}"#, 1);
/// assert!(lines.contains(&br#"{"a":{"b":1}}"#.to_vec()));
/// assert!(lines.contains(&br#"{"type":"system","a":null}"#.to_vec()));
/// ```
pub fn reshaped(frame: &[u8], depth: usize) -> Vec<Vec<u8>> {
    let Ok(whole) = serde_json::from_slice::<Value>(frame) else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    collect(&whole, String::new(), depth, &mut paths);
    let mut lines = Vec::new();
    for (parent, key) in paths {
        let mut changes = vec![None, Some(Value::Null), Some(7.into())];
        if matches!(key.as_str(), "type" | "subtype") {
            changes.push(Some("never_seen".into()));
        }
        for change in changes {
            let mut frame = whole.clone();
            let Some(Value::Object(object)) = frame.pointer_mut(&parent) else {
                continue;
            };
            match change {
                // Where it stood, the order of the others stays.
                None => drop(object.shift_remove(&key)),
                // Another number, or the same, is no other shape.
                Some(value)
                    if object
                        .get(&key)
                        .is_some_and(|old| *old == value || old.is_number() && value.is_number()) =>
                {
                    continue;
                }
                Some(value) => drop(object.insert(key.clone(), value)),
            }
            lines.push(frame.to_string().into_bytes());
        }
    }
    lines
}

/// Each key with the pointer to the object that it is in.
fn collect(value: &Value, at: String, depth: usize, paths: &mut Vec<(String, String)>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                paths.push((at.clone(), key.clone()));
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{at}/{key}"), depth - 1, paths);
            }
        }
        // A list is no level of its own.
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, format!("{at}/{index}"), depth, paths);
            }
        }
        _ => {}
    }
}
