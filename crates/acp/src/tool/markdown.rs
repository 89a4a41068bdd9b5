//! Output of programs within text that is shown as Markdown.

/// A fenced block. The fence is longer than any in the text, so that the text can't leave it.
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

/// One line, and no longer than a title should be.
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

/// What the CLI says to the model in passing, and to nobody else.
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
}
