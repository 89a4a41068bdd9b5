//! Rules as they stand in settings that are passed to the CLI as text.

use std::path::{Component, Path, Prefix};

use super::GOES_BY;

/// The rule for settings that are passed as text. There, the CLI takes a path that begins with one `/` for one in the directory of
/// its own temporary file, so that the rule would match no file of the project. With the session's directory it begins at the root.
///
/// Where the directory is not known, a rule that `restricts` matches more than it says, and any other rule matches nothing.
pub(crate) fn in_settings(rule: &str, directory: Option<&Path>, restricts: bool) -> String {
    if !begins_beside_settings(rule) {
        return rule.to_owned();
    }
    let Some((tool, path)) = rule.split_once("(/") else {
        return rule.to_owned();
    };
    match directory.and_then(pattern) {
        Some(directory) => format!("{tool}(/{directory}/{path}"),
        None if restricts => format!("{tool}({path}"),
        None => rule.to_owned(),
    }
}

/// Whether the CLI looks for the files of this rule beside the settings that the rule is in.
fn begins_beside_settings(rule: &str) -> bool {
    let is_about_files = |tool: &str| {
        matches!(tool, "Read" | "Edit")
            || GOES_BY
                .iter()
                .any(|(goes_by_another, _)| *goes_by_another == tool)
    };
    rule.split_once('(')
        .is_some_and(|(tool, path)| is_about_files(tool) && path.starts_with('/') && !path.starts_with("//"))
}

/// An absolute directory as a pattern that matches it alone, with what a rule reads in another way escaped.
fn pattern(directory: &Path) -> Option<String> {
    if !directory.is_absolute() {
        return None;
    }
    let mut pattern = String::new();
    for component in directory.components() {
        let name = match component {
            Component::Prefix(prefix) => match prefix.kind() {
                Prefix::Disk(drive) | Prefix::VerbatimDisk(drive) => {
                    char::from(drive.to_ascii_lowercase()).to_string()
                }
                _ => return None,
            },
            Component::Normal(name) => name.to_str()?.to_owned(),
            Component::RootDir | Component::CurDir => continue,
            Component::ParentDir => return None,
        };
        pattern.push('/');
        for c in name.chars() {
            match c {
                // The rule reads `\\` as one backslash, which escapes in the pattern.
                '[' | ']' | '*' | '?' | '!' | '#' => pattern.extend(["\\\\", c.encode_utf8(&mut [0; 4])]),
                '\\' => pattern.push_str("\\\\\\\\"),
                '(' | ')' => pattern.extend(['\\', c]),
                c => pattern.push(c),
            }
        }
    }
    Some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_at_the_directory_of_the_session_has_it() {
        let here = |rule: &str, directory: &str| in_settings(rule, Some(Path::new(directory)), true);
        for (rule, directory, expected) in [
            ("Edit(/docs/**)", "/a b/c", "Edit(//a b/c/docs/**)"),
            ("Read(/x.txt)", "/", "Read(//x.txt)"),
            ("Write(/x)", "/a(b)", r"Write(//a\(b\)/x)"),
            ("Read(/x)", r"/a[b]*\c", r"Read(//a\\[b\\]\\*\\\\c/x)"),
            ("Edit(//a/b)", "/c", "Edit(//a/b)"),
            ("Edit(./a)", "/c", "Edit(./a)"),
            ("Edit(~/a)", "/c", "Edit(~/a)"),
            ("Edit", "/c", "Edit"),
            ("Bash(/bin/ls *)", "/c", "Bash(/bin/ls *)"),
            ("mcp__files__read(/x)", "/c", "mcp__files__read(/x)"),
        ] {
            assert_eq!(here(rule, directory), expected);
        }
    }

    #[test]
    fn without_a_directory_a_rule_never_allows_more() {
        for directory in [None, Some(Path::new("")), Some(Path::new("a/b"))] {
            assert_eq!(in_settings("Edit(/a/b)", directory, true), "Edit(a/b)");
            assert_eq!(in_settings("Edit(/a/b)", directory, false), "Edit(/a/b)");
        }
    }
}
