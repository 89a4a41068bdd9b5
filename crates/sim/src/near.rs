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

/// The message for a name that is a slip of a known one, where other unknown names may be right: a later CLI knows more.
pub(crate) fn misspelt(what: &str, name: &str, known: &[&str]) -> Option<String> {
    let lower = name.to_lowercase();
    let slips = match name.chars().count() {
        0..3 => 0,
        3..8 => 1,
        _ => 2,
    };
    // Names that begin with another letter, such as `get_model` and `set_model`, are two names.
    let likely = known.iter().map(|near| (near, near.to_lowercase()));
    let likely = likely.filter(|(_, near)| near.chars().next() == lower.chars().next());
    let rated = likely.map(|(near, folded)| (strsim::damerau_levenshtein(&lower, &folded), near));
    let (distance, near) = rated.min_by_key(|(distance, _)| *distance)?;
    (distance <= slips && !known.contains(&name))
        .then(|| format!("unknown {what} `{name}`, did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_and_a_new_name_is_not() {
        let known = ["set_model", "interrupt", "Bash", "LSP", "end_turn"];
        let slips = [
            ("set_modle", "set_model"),
            ("interupt", "interrupt"),
            ("bash", "Bash"),
            ("Bsh", "Bash"),
            ("lsp", "LSP"),
            ("EndTurn", "end_turn"),
        ];
        for (name, near) in slips {
            let told = format!("unknown word `{name}`, did you mean `{near}`?");
            assert_eq!(misspelt("word", name, &known), Some(told));
        }
        for name in known
            .into_iter()
            .chain(["get_model", "set_mood_x", "LS", "Hash", "", "é", "{{x}}"])
        {
            assert_eq!(misspelt("word", name, &known), None, "{name}");
        }
        assert_eq!(misspelt("word", "x", &[]), None);
    }

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
