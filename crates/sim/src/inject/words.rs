//! What is wrong with a fault that cannot be read, with the word that was probably meant.

use crate::near::unknown;

/// Of an error whose unknown word is a `word`, in a place that takes `more` fields than it knows itself.
pub(super) fn explain(error: &serde_json::Error, word: &str, more: &[&str]) -> String {
    let text = error.to_string();
    let what = match text.split_once(" `") {
        Some(("unknown field", _)) => "field",
        Some(("unknown variant", _)) => word,
        Some(("missing field", name)) => return format!("the field `{name} is missing"),
        _ => return text,
    };
    // First the unknown one, then those that are expected.
    let mut names = text.split('`').skip(1).step_by(2);
    let name = names.next().unwrap_or_default();
    let more = more.iter().copied().filter(|_| what == "field");
    unknown(what, name, &names.chain(more).collect::<Vec<_>>())
}
