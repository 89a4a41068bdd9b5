//! Which names of MCP servers Claude Code accepts.
//!
//! The CLI names a tool `mcp__SERVER__TOOL`, and permission rules use these names. It silently ignores a server with a reserved name,
//! and rules could not tell two servers apart whose tools have one name.

/// Names that the CLI reserves for its own servers.
const RESERVED: [&str; 6] = [
    "workspace",
    "computer-use",
    "claude-in-chrome",
    "Claude_in_Chrome",
    "Claude_Preview",
    "Claude_Browser",
];

/// The CLI takes a server of this name for its own editor integration, and hides its tools.
const EDITOR: &str = "ide";

/// The longest name of a server in the SDK's program.
const LONGEST: usize = 64;

/// A server's name as a part of its tools' names.
pub(super) fn in_tools(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // The CLI counts UTF-16 units.
    let marks = name.chars().flat_map(|c| {
        let (c, units) = if plain(c) { (c, 1) } else { ('_', c.len_utf16()) };
        std::iter::repeat_n(c, units)
    });
    let plain: String = marks.collect();
    if !name.starts_with("claude.ai ") {
        return plain;
    }
    let mut words = plain.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| format!("{all}_{word}"))
}

/// The name under which a server in the editor is registered with the CLI. The editor's own name is for people.
pub(super) fn registered(name: &str) -> Result<String, String> {
    let plain = in_tools(name);
    let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
    let registered = words.join("_");
    if registered.is_empty() || registered.len() > LONGEST {
        return Err(format!(
            "{name:?} has to have some of the characters A-Z a-z 0-9 -, and at most {LONGEST}, to be a name for Claude Code"
        ));
    }
    Ok(registered)
}

/// Checks a name against the reserved names, and those of the servers before it.
pub(super) fn check<'a>(name: &str, taken: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("the server has no name".to_owned());
    }
    let plain = in_tools(name);
    let is_own = RESERVED.contains(&plain.as_str()) || RESERVED.contains(&name.trim());
    let prefix = format!("{plain}__");
    if is_own || prefix.starts_with(&format!("{EDITOR}__")) {
        return Err(format!(
            "Claude Code keeps the name {name:?} for itself; give the server another one"
        ));
    }
    for other in taken {
        if other == name {
            return Err(format!("there is another server {name:?}"));
        }
        let others = format!("{}__", in_tools(other));
        if prefix.starts_with(&others) || others.starts_with(&prefix) {
            return Err(format!(
                "the tools of {name:?} and of {other:?} could have one name with Claude Code; give one of them another name"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_tools_as_the_cli_writes_them() {
        for (name, expected) in [
            ("files", "files"),
            ("my server", "my_server"),
            ("a.b:c/d", "a_b_c_d"),
            ("a__b", "a__b"),
            ("ünï", "_n_"),
            ("😀", "__"),
            ("claude.ai  My Server ", "claude_ai_My_Server"),
        ] {
            assert_eq!(in_tools(name), expected, "{name:?}");
        }
    }

    #[test]
    fn servers_of_the_editor_are_registered_by_what_is_left_of_their_names() {
        assert_eq!(registered("My Tools (beta)").as_deref(), Ok("My_Tools_beta"));
        assert_eq!(registered("__a__b_").as_deref(), Ok("a_b"));
        assert!(registered("\u{65e5}\u{672c}").is_err());
        assert_eq!(registered(&"a".repeat(64)), Ok("a".repeat(64)));
        assert!(registered(&"a".repeat(65)).is_err());
    }

    #[test]
    fn names_of_the_cli_are_refused() {
        for name in [
            "",
            "  ",
            "workspace",
            "workspace ",
            "computer-use",
            "claude-in-chrome",
            "Claude in Chrome",
            "Claude Preview",
            "Claude_Preview",
            "Claude Browser",
            "ide",
            "ide__x",
            "ide ",
        ] {
            assert!(check(name, []).is_err(), "{name:?}");
        }
        for name in [
            "files",
            "Workspace",
            "IDE",
            "identity",
            "claude",
            "claude preview",
            "my server",
        ] {
            assert_eq!(check(name, []), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn servers_whose_tools_could_have_one_name_are_refused() {
        for (one, other) in [
            ("a", "a"),
            ("a b", "a.b"),
            ("a", "a__b"),
            ("a__b", "a"),
            ("a", "a_"),
            ("a", "a "),
        ] {
            assert!(check(one, [other]).is_err(), "{one:?} beside {other:?}");
        }
        for (one, other) in [("a", "b"), ("a", "ab"), ("a", "a_b"), ("a-b", "a")] {
            assert_eq!(check(one, [other]), Ok(()), "{one:?} beside {other:?}");
        }
    }
}
