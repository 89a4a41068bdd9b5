//! Texts with `*` in them, and texts of which parts are not known.

/// A piece of a pattern, or of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// This character.
    Char(char),
    /// Any text, also none. In a pattern a `*`; in a text what only the shell will know, such as `$X`.
    Any,
}

/// A text as it is matched: its pieces, and before which of them a match may begin.
pub(super) type Text = Vec<(Piece, bool)>;

/// A pattern in which every `*` stands for any text.
pub(super) fn wildcards(pattern: &str) -> Vec<Piece> {
    pattern
        .chars()
        .map(|c| if c == '*' { Piece::Any } else { Piece::Char(c) })
        .collect()
}

/// A text without unknown parts, matched from its beginning.
pub(super) fn known(text: &str) -> Text {
    text.chars()
        .enumerate()
        .map(|(at, c)| (Piece::Char(c), at == 0))
        .collect()
}

/// Whether the pattern can match the text, from one of its beginnings to its end.
///
/// Where a part of the text is unknown this says whether there is a text for it such that the pattern matches.
pub(super) fn matches(pattern: &[Piece], text: &Text) -> bool {
    // Which beginnings of the pattern match what was read so far.
    let mut reached = vec![false; pattern.len() + 1];
    let mut next = reached.clone();
    if text.is_empty() {
        reach(pattern, &mut reached, 0);
    }
    for (piece, begins) in text {
        if *begins {
            reach(pattern, &mut reached, 0);
        }
        next.fill(false);
        match piece {
            Piece::Char(c) => {
                for at in (0..pattern.len()).filter(|at| reached[*at]) {
                    match pattern[at] {
                        Piece::Any => reach(pattern, &mut next, at),
                        Piece::Char(wanted) if wanted == *c => reach(pattern, &mut next, at + 1),
                        Piece::Char(_) => {}
                    }
                }
            }
            Piece::Any => {
                if let Some(first) = reached.iter().position(|reached| *reached) {
                    next[first..].fill(true);
                }
            }
        }
        std::mem::swap(&mut reached, &mut next);
    }
    reached[pattern.len()]
}

/// Marks a position, and those behind it that need no further text.
fn reach(pattern: &[Piece], reached: &mut [bool], mut at: usize) {
    while !reached[at] {
        reached[at] = true;
        if pattern.get(at) == Some(&Piece::Any) {
            at += 1;
        }
    }
}

/// Maps what some file system or shell takes for the same: upper and lower case, characters that nobody sees.
pub(super) fn folded(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase()
        .flat_map(char::to_lowercase)
        .filter(|c| !is_unseen(*c))
}

/// [`folded`], for a whole text.
pub(super) fn fold(text: &str) -> String {
    text.chars().flat_map(folded).collect()
}

/// [`folded`], for pieces.
pub(super) fn fold_pieces(pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Char(c) => out.extend(folded(c).map(Piece::Char)),
            Piece::Any => out.push(Piece::Any),
        }
    }
    out
}

/// Characters that show nothing, or change the order of what is shown.
pub(super) fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wildcards_match_any_text() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a b", true),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("a*b*c", "a b c", true),
            ("a", "ab", false),
        ] {
            assert_eq!(
                matches(&wildcards(pattern), &known(text)),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn an_unknown_part_can_be_anything() {
        let text = |text: &str| -> Text {
            text.chars()
                .enumerate()
                .map(|(at, c)| (if c == '$' { Piece::Any } else { Piece::Char(c) }, at == 0))
                .collect()
        };
        for (pattern, unknown, expected) in [
            ("rm", "$", true),
            ("rm *", "$ -rf x", true),
            ("rm -rf *", "rm $ x", true),
            ("rm -rf *", "git $ x", false),
            ("git push *", "git add $", false),
            ("abc", "a$", true),
            ("abc", "a$d", false),
        ] {
            assert_eq!(
                matches(&wildcards(pattern), &text(unknown)),
                expected,
                "{pattern} {unknown}"
            );
        }
    }

    #[test]
    fn case_and_the_unseen_are_folded() {
        assert_eq!(fold("R\u{200b}M \u{17f}h \u{212a}"), "rm sh k");
    }

    proptest! {
        /// The automaton agrees with the definition of a wildcard.
        #[test]
        fn agrees_with_backtracking(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
            fn slow(pattern: &[u8], text: &[u8]) -> bool {
                match pattern.split_first() {
                    None => text.is_empty(),
                    Some((b'*', rest)) => (0..=text.len()).any(|at| slow(rest, &text[at..])),
                    Some((c, rest)) => text.first() == Some(c) && slow(rest, &text[1..]),
                }
            }
            prop_assert_eq!(matches(&wildcards(&pattern), &known(&text)), slow(pattern.as_bytes(), text.as_bytes()));
        }

        /// If a pattern matches a text, it matches it with any part unknown, too.
        #[test]
        fn what_is_unknown_matches_more(pattern in "[ab*]{0,6}", text in "[ab]{0,8}", from in 0usize..9, to in 0usize..9) {
            let mut unknown = known(&text);
            let (from, to) = (from.min(to).min(text.len()), from.max(to).min(text.len()));
            unknown.splice(from..to, [(Piece::Any, from == 0)]);
            if matches(&wildcards(&pattern), &known(&text)) {
                prop_assert!(matches(&wildcards(&pattern), &unknown));
            }
        }
    }
}
