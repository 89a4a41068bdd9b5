//! Mistyped words.

/// The known word that was meant: the nearest one, if it is at most one slip in three characters away.
pub(crate) fn nearest<'w>(typed: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let slips = (typed.chars().count() / 3).max(1);
    let known = known.map(|word| (strsim::damerau_levenshtein(typed, word), word));
    let (distance, word) = known.min_by_key(|(distance, _)| *distance)?;
    (distance <= slips).then_some(word)
}
