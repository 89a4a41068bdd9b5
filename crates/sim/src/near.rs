//! Names that are not known, and those that were probably meant.

/// The message for an unknown name: the nearest known name, and all known ones.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let mut text = format!("unknown {what} `{name}`");
    if known.is_empty() {
        text.push_str("; nothing is known here");
        return text;
    }
    let separator = match nearest(name, known.iter().copied()) {
        Some(near) => {
            text.push_str(&format!(", did you mean `{near}`?"));
            " Known here: "
        }
        None => "; known here: ",
    };
    text.push_str(separator);
    text.push_str(&known.join(", "));
    text
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let rated = known.map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate));
    let best = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.5).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_proposed_and_a_far_one_is_not() {
        let known = ["steps", "prompt"];
        assert_eq!(
            unknown("field", "stps", &known),
            "unknown field `stps`, did you mean `steps`? Known here: steps, prompt"
        );
        assert_eq!(
            unknown("field", "zzz", &known),
            "unknown field `zzz`; known here: steps, prompt"
        );
        assert_eq!(
            unknown("field", "x?", &[]),
            "unknown field `x?`; nothing is known here"
        );
    }
}
