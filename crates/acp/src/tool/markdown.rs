//! Output of programs inside Markdown.

/// A fenced block. Its fence is longer than any in the text, so that the text can't end it.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// The text as one line of limited length.
pub(crate) fn line(text: &str) -> String {
    const MOST: usize = 200;
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count == MOST {
                line.push('…');
                return line;
            }
            line.push(c);
            count += 1;
        }
    }
    line
}

/// A command as one line. If it is long, the middle is left out: what it does may stand at its end.
pub(crate) fn both_ends(text: &str) -> String {
    const BEGIN: usize = 600;
    const END: usize = 400;
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let left = text.chars().count().saturating_sub(BEGIN + END);
    if left == 0 {
        return text;
    }
    let begin: String = text.chars().take(BEGIN).collect();
    let end: String = text.chars().skip(BEGIN + left).collect();
    format!("{begin} […{left} characters are not shown…] {end}")
}

/// The tag around the CLI's reminders to the model.
pub(crate) fn without_reminders(text: &str) -> String {
    const BEGIN: &str = "<system-reminder>";
    const END: &str = "</system-reminder>";
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let Some((_, after)) = after.split_once(END) else {
            break;
        };
        kept.push_str(before.trim_end_matches('\n'));
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Removes hints about keys of the CLI's terminal: ` · ctrl+o to see`, ` (ctrl+o to expand)`.
pub(crate) fn without_keys(text: &str) -> String {
    let mut kept = text.to_owned();
    for (begin, end) in [(" · ctrl+", None), (" (ctrl+", Some(')'))] {
        while let Some(from) = kept.find(begin) {
            let rest = &kept[from + begin.len()..];
            let over = match end {
                Some(end) => rest.find(end).map(|at| at + end.len_utf8()),
                None => Some(
                    rest.find(['\n', '·'])
                        .map_or(rest.len(), |at| rest[..at].trim_end_matches(' ').len()),
                ),
            };
            let Some(over) = over else { break };
            kept.replace_range(from..from + begin.len() + over, "");
        }
    }
    kept
}

/// Unwraps the notice about output that the CLI stored in a file because of its length. The notice names the file.
pub(crate) fn unwrapped(text: String) -> String {
    let inner = text.trim().strip_prefix("<persisted-output>");
    match inner {
        Some(inner) => {
            let inner = inner.strip_suffix("</persisted-output>").unwrap_or(inner);
            inner.trim_matches('\n').to_owned()
        }
        None => text,
    }
}

/// Numbers the lines of a file, without an empty last line behind the final line end.
pub(crate) fn without_last_number(text: &str) -> &str {
    match text.trim_end_matches('\n').rsplit_once('\n') {
        Some((lines, last)) => {
            let number = last.trim_start().strip_suffix(['\t', '→']);
            let is_number = number
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
            if is_number { lines } else { text }
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_fence() {
        assert_eq!(fenced("console", "hi"), "```console\nhi\n```");
        assert_eq!(fenced("", "a\n````\nb\n"), "`````\na\n````\nb\n`````");
        assert_eq!(fenced("", ""), "```\n\n```");
    }

    #[test]
    fn a_title_is_a_short_line() {
        assert_eq!(line("  a\n\tb  "), "a b");
        let long = line(&"é".repeat(500));
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn the_end_of_a_long_command_is_shown() {
        assert_eq!(both_ends("  a\n\tb  "), "a b");
        let long = both_ends(&format!("echo {}; rm important", "é".repeat(5000)));
        assert!(
            long.starts_with("echo é") && long.ends_with("é; rm important"),
            "{long}"
        );
        assert!(long.contains("[…4019 characters are not shown…]"), "{long}");
    }

    #[test]
    fn the_last_number_is_no_line_of_the_file() {
        for (text, shown) in [
            ("1\tone\n2\ttwo\n3\t", "1\tone\n2\ttwo"),
            ("     1→one\n     2→\n", "     1→one"),
            ("1\tone\n2\t\n3\t", "1\tone\n2\t"),
            ("1\tone\n2\t \n", "1\tone\n2\t \n"),
            ("1\t", "1\t"),
            ("one\n\t", "one\n\t"),
            ("one\ntwo\t", "one\ntwo\t"),
            ("", ""),
        ] {
            assert_eq!(without_last_number(text), shown, "{text:?}");
        }
    }

    #[test]
    fn what_is_kept_in_a_file_is_told_without_its_wrapper() {
        let kept = "<persisted-output>\nOutput too large (2.9MB). Full output saved to: /t/b.txt\n\nPreview (first 2KB):\n01\n...\n</persisted-output>";
        let told = unwrapped(kept.to_owned());
        assert!(
            told.starts_with("Output too large (2.9MB). Full output saved to: /t/b.txt\n"),
            "{told}"
        );
        assert!(told.ends_with("01\n..."), "{told}");
        assert_eq!(
            unwrapped("a <persisted-output>".to_owned()),
            "a <persisted-output>"
        );
    }

    #[test]
    fn reminders_are_not_shown() {
        assert_eq!(
            without_reminders("a\n\n<system-reminder>\nx\n</system-reminder>\n"),
            "a\n"
        );
        assert_eq!(
            without_reminders("a <system-reminder> b"),
            "a <system-reminder> b"
        );
        assert_eq!(without_reminders("<b>"), "<b>");
    }

    #[test]
    fn keys_of_the_terminal_are_not_named() {
        for (text, told) in [
            ("stop hook problem · ctrl+o to see", "stop hook problem"),
            ("a · ctrl+o to see\nb", "a\nb"),
            ("a · ctrl+o to see · b", "a · b"),
            ("Read 1 file (ctrl+o to expand)", "Read 1 file"),
            ("press ctrl+c", "press ctrl+c"),
            ("one (ctrl+o", "one (ctrl+o"),
        ] {
            assert_eq!(without_keys(text), told);
        }
    }
}
