//! Text from outside, on its way to a terminal.

/// Text in which every character is seen. What a terminal would take for a command, what turns the direction of writing, and what has
/// no width becomes its escape: a person who allows a command has to see all of it. Line breaks and tabs stay.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => shown.push(char),
            char if char.is_control() || is_unseen(char) => shown.extend(char.escape_default()),
            char => shown.push(char),
        }
    }
    shown
}

/// Marks of direction, separators of lines, characters without width, and tags. The joiners of scripts and emoji are none of them.
const fn is_unseen(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_commands_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\r\u{9b}c\n\te"), "a\\u{1b}[2Jb\\r\\u{9b}c\n\te");
    }

    #[test]
    fn nothing_that_a_person_allows_is_hidden() {
        assert_eq!(plain("rm \u{202e}x# ok"), "rm \\u{202e}x# ok");
        assert_eq!(
            plain("l\u{200b}s\u{e0041}\u{2028}pwd"),
            "l\\u{200b}s\\u{e0041}\\u{2028}pwd"
        );
    }

    #[test]
    fn words_of_all_scripts_stay() {
        for text in ["naïve 日本語", "نص عربي", "👩‍💻 ❤️", "می‌خواهم"] {
            assert_eq!(plain(text), text);
        }
    }
}
