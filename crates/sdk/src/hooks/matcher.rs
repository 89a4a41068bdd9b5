//! Checks matchers by the CLI's rules for them, as far as they are known.
//!
//! Names match as a whole; `|` or `,` separates several. `*`, an empty matcher and none match everything. Anything else is a
//! JavaScript regular expression that may match anywhere in the name. An invalid expression silently never matches: a guard with
//! such a matcher guards nothing.

use outrigger_protocol::shared::HookEvent;

use super::events::{Subject, row};
use crate::rule::in_its_letters;

/// Rejects a matcher that can never match.
pub(crate) fn check(event: &HookEvent, matcher: &str) -> Result<(), &'static str> {
    let subject = row(event).matcher;
    match subject {
        Subject::Nothing => {
            return Err("is for an event that has no matchers: the hook would be called every time");
        }
        Subject::Tool => check_for_rule(matcher)?,
        Subject::Text => {}
    }
    if matcher.contains('\0') || matcher.contains('\n') {
        return Err("holds a control character, which no name has");
    }
    if matcher.is_empty() || matcher == "*" {
        return Ok(());
    }
    if is_list(matcher) {
        return check_names(matcher, subject);
    }
    if matcher.contains(' ')
        && matcher
            .chars()
            .all(|c| is_plain(c) || matches!(c, ' ' | '|' | ','))
    {
        return Err("holds a space inside of a name, so it never matches: separate names by `|`");
    }
    check_expression(matcher)
}

/// A permission rule is not a matcher: `Bash(git *)` would be an expression that matches nothing.
fn check_for_rule(matcher: &str) -> Result<(), &'static str> {
    let Some((name, rest)) = matcher.split_once('(') else {
        return Ok(());
    };
    let looks_like_rule = !name.is_empty() && name.chars().all(is_plain) && rest.ends_with(')');
    let inside = rest.strip_suffix(')').unwrap_or(rest);
    // A choice, such as `mcp__a__(read|write)`, is an expression; what has a space, a colon, a slash or a star is a rule.
    if looks_like_rule && inside.contains([' ', ':', '/', '~', '*']) && !inside.starts_with('?') {
        return Err(
            "is a permission rule, and a matcher only takes the tool's name: look at the tool's input in the hook",
        );
    }
    Ok(())
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn is_list(matcher: &str) -> bool {
    matcher
        .split(['|', ','])
        .all(|name| name.trim().chars().all(is_plain))
}

/// The CLI compares each name of a list with the whole name of the tool.
fn check_names(list: &str, subject: Subject) -> Result<(), &'static str> {
    let mut names = list
        .split(['|', ','])
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .peekable();
    if names.peek().is_none() {
        return Err("holds no name, so it never matches; for everything write `*`");
    }
    for name in names.filter(|_| subject == Subject::Tool) {
        let of_server = name.strip_prefix("mcp__");
        if of_server.is_some_and(|rest| rest.split_once("__").is_none_or(|(_, tool)| tool.is_empty())) {
            return Err(
                "names an MCP server and none of its tools, so it never matches: write `mcp__server__.*`",
            );
        }
        if in_its_letters(name).is_some() {
            return Err("names a tool in other letters than its own, so it never matches");
        }
    }
    Ok(())
}

/// Finds common syntax errors of JavaScript expressions: unpaired brackets, and repetition of nothing.
fn check_expression(expression: &str) -> Result<(), &'static str> {
    let mut open = 0_usize;
    let mut in_class = false;
    // Whether there is something that could be repeated.
    let mut repeatable = false;
    let mut chars = expression.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                if chars.next().is_none() {
                    return Err("ends with a backslash, so it is no regular expression and never matches");
                }
                repeatable = true;
            }
            ']' if in_class => {
                in_class = false;
                repeatable = true;
            }
            _ if in_class => {}
            '[' => in_class = true,
            '(' => {
                open += 1;
                repeatable = false;
                if chars.peek() == Some(&'?') {
                    chars.next();
                }
            }
            ')' => {
                open = open.checked_sub(1).ok_or(
                    "closes a parenthesis that is not open, so it is no regular expression and never matches",
                )?;
                repeatable = true;
            }
            '*' | '+' | '?' => {
                if !repeatable {
                    return Err(
                        "repeats nothing, so it is no regular expression and never matches; for everything write `*` alone",
                    );
                }
                repeatable = false;
                // The lazy form.
                if chars.peek() == Some(&'?') {
                    chars.next();
                }
            }
            '|' | '^' | '$' => repeatable = false,
            _ => repeatable = true,
        }
    }
    if in_class {
        return Err("has a `[` without `]`, so it is no regular expression and never matches");
    }
    if open > 0 {
        return Err("has a `(` without `)`, so it is no regular expression and never matches");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cli_understands_is_taken() {
        for matcher in [
            "Bash",
            "*",
            "",
            "Bash|Read",
            "Read, Bash",
            "Bash|",
            "^Bash$",
            "Ba.*",
            "Bash*",
            "mcp__.*",
            "mcp__server__.*",
            "mcp__a__(read|write)",
            "^(?!Read).*$",
            "[A-Z]+",
            "a{2}",
            "\\w+?",
            "mcp__my-server__x",
            "(a|b)*",
            " Bash",
        ] {
            assert_eq!(check(&HookEvent::PreToolUse, matcher), Ok(()), "{matcher}");
        }
        assert_eq!(check(&HookEvent::FileChanged, ".envrc|.env"), Ok(()));
        assert_eq!(check(&HookEvent::UserPromptExpansion, "read"), Ok(()));
        assert_eq!(check(&HookEvent::PreModelSwitch, "claude-opus-5"), Ok(()));
    }

    #[test]
    fn what_never_matches_is_refused() {
        for matcher in [
            "[",
            "(",
            "*Bash",
            "a)",
            "a\\",
            "Bash(git *)",
            "Bash(git:*)",
            "Read(./src/**)",
            "Read Bash",
            "+",
            "a**",
            "a\nb",
            "bash",
            "Bash|write",
            "WEBFETCH",
            "task",
            "mcp__github",
            "Bash,mcp__github__",
            "|",
            " , ",
        ] {
            assert!(check(&HookEvent::PreToolUse, matcher).is_err(), "{matcher}");
        }
        assert!(check(&HookEvent::Stop, "Bash").is_err());
        assert!(check(&HookEvent::UserPromptSubmit, "*").is_err());
        assert!(
            check(&HookEvent::Notification, "Bash(git *)").is_ok(),
            "only tools have rules"
        );
    }
}
