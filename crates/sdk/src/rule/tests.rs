use outrigger_protocol::RawJson;

use super::*;

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn rules_that_can_be_read() {
    for text in [
        "Bash",
        "Bash(*)",
        "Bash(git *)",
        "Bash(npm run test:*)",
        "Bash(git log * main)",
        "Bash(echo (x))",
        "Read(./src/**)",
        "Edit(//abs/**)",
        "Edit(~/x)",
        "Edit(/docs/*.md)",
        "Read(.env)",
        "Read([{]x[}])",
        "Read(a\\*b)",
        "WebFetch(domain:*.example.com)",
        "WebFetch(domain:example.*)",
        "WebFetch(domain:10.*.com)",
        "WebFetch(domain:10.1.2.3)",
        "WebFetch(domain:10.*.*.*)",
        "WebFetch(domain:*.2.3)",
        "WebFetch(domain:*)",
        "mcp__server",
        "mcp__server__*",
        "mcp__my_server__*",
        "mcp__server__get_*",
        "mcp__*",
        "*",
        "Agent(Explore)",
        "Task(plugin:reviewer)",
        "Agent(model:opus)",
        "Skill(pdf)",
        "Skill(review *)",
        "Bash(run_in_background:true)",
        "WebSearch",
        "SomethingNew",
    ] {
        let rule = rule(text);
        assert_eq!(rule.as_str(), text);
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
}

#[test]
fn rules_that_could_be_misread() {
    for (text, says) in [
        ("", "empty"),
        ("Bash(", "closing parenthesis"),
        ("Bash()", "write `Bash`"),
        ("Bash(a) b", "goes on"),
        ("Bash, Read", "comma"),
        ("bash", "write `Bash`"),
        ("webfetch(domain:a.b)", "write `WebFetch`"),
        ("B\u{e4}sh", "names no tool"),
        ("Bash( git)", "blank"),
        ("Bash(git \\*)", "backslash"),
        ("Bash(git:* push)", "before its end"),
        ("Bash(a *:*)", "before its"),
        ("Bash(* *)", "names no command"),
        ("Bash(command:rm *)", "Bash(git log *)"),
        ("Read(file_path:x)", "Read(./path)"),
        ("Write(src/**)", "write `Edit(src/**)`"),
        ("Grep(src/**)", "write `Read(src/**)`"),
        ("Read(*)", "in several ways"),
        ("Read(./)", "names no file"),
        ("Read(//)", "names no file"),
        ("Read(../x)", "write the path from the root"),
        ("Read(a/./b)", "write the path from the root"),
        ("Read(!.env)", "exception"),
        ("Read(#x)", "comment"),
        ("Read(~user/x)", "begins with `~`"),
        ("Read(C:/x)", "drive"),
        ("Read(src\\x)", "slashes"),
        ("Read({a,b}.js)", "brace"),
        ("Read(a[b)", "bracket"),
        ("Read(a//b)", "two slashes"),
        ("Read(a**)", "stands between slashes"),
        ("WebFetch(example.com)", "domain:example.com"),
        ("WebFetch(domain:)", "names no domain"),
        ("WebFetch(url:https)", "domain:example.com"),
        ("PowerShell(rm *)", "write `PowerShell`"),
        ("WebSearch(rust)", "write `WebSearch`"),
        ("mcp__", "names no MCP server"),
        ("mcp__server__", "none of its tools"),
        ("mcp__server__tool(*)", "more than is known"),
        ("mcp__server(x)", "leave them out"),
        ("mcp__*(x)", "leave them out"),
        ("Skill(*)x", "goes on"),
        ("Skill(a*b)", "name of a skill"),
        ("Agent(a*)", "more than is known"),
        ("WebFetch(domain:10.*)", "domain:10.*.*.*"),
        ("WebFetch(domain:10.1.*)", "domain:10.*.*.*"),
        ("WebFetch(domain:10.*.3)", "domain:10.*.*.*"),
        ("WebFetch(domain:010.1.2.3)", "domain:10.*.*.*"),
        ("WebFetch(domain:0x0a.1.2.3)", "domain:10.*.*.*"),
        ("WebFetch(domain:10.1.515)", "domain:10.*.*.*"),
        ("WebFetch(domain:167772161)", "domain:10.*.*.*"),
        ("WebFetch(domain:10*)", "matches no domain"),
        ("WebFetch(domain:ex*)", "matches no domain"),
        ("Bash(rm\u{a0}*)", "U+00A0"),
        ("Bash(rm\u{2003}-rf *)", "U+2003"),
        ("Bash(rm\u{200b} *)", "U+200B"),
        ("Bash(\u{feff}rm *)", "U+FEFF"),
        ("Read(my\u{202f}file)", "write a blank, or `?`"),
        ("Edit(a\u{2028}b)", "U+2028"),
        ("Skill(a\u{a0}b)", "U+00A0"),
        ("mcp__a.b__read", "write `mcp__a_b__read`"),
        ("mcp__a.b", "write `mcp__a_b__*`"),
        ("mcp__\u{fc}1__get_*", "write `mcp___1__get_*`"),
        ("mcp__a\u{1f4c1}b", "write `mcp__a__b__*`"),
        ("mcp__a\u{1f4c1}b__read", "write `mcp__a__b__read`"),
        ("mcp__s__get\u{1f4c1}", "letters and digits"),
        ("mcp__\u{1f4c1}", "letters and digits"),
        ("Skill(mcp__server__*)", "name of a skill"),
        ("Skill(/commit)", "without it"),
    ] {
        let error = text.parse::<Rule>().expect_err(text).to_string();
        assert!(error.contains(says), "{error}");
        assert!(
            error.starts_with(&format!("the rule `{}`", text.escape_debug())),
            "{error}"
        );
    }
}

#[test]
fn rules_that_only_refuse() {
    for text in [
        "*",
        "B*",
        "mcp__*",
        "mcp__*__read",
        "Bash(* --version)",
        "Bash(*sh *)",
        "Bash(e* a*)",
        "Bash(git*)",
        "Bash(run_in_background:true)",
        "WebSearch(query:x)",
    ] {
        assert!(rule(text).check_allow().is_err(), "{text}");
    }
    for text in [
        "Bash(*)",
        "mcp__a__*",
        "mcp__a__get_*",
        "Agent(plugin:x)",
        "Bash(git * main)",
        "Bash(npm:*)",
    ] {
        assert_eq!(rule(text).check_allow(), Ok(()), "{text}");
    }
}

/// The CLI reads lone surrogates, and nests as deep as it likes.
#[test]
fn changes_of_an_answer_that_can_hardly_be_read() {
    let refused = |text: &str| {
        let update = RawJson::from_text(text).unwrap().decode().unwrap();
        refused_change(&update, &[])
    };
    let odd = r#""odd":"\ud800""#;
    for (kind, fields) in [
        (
            "replaceRules",
            r#""behavior":"deny","destination":"cliArg","rules":[]"#,
        ),
        (
            "removeRules",
            r#""behavior":"deny","destination":"cliArg","rules":[]"#,
        ),
        (
            "removeRules",
            r#""behavior":"deny","destination":"cliArg","rules":"\udc00""#,
        ),
        (
            "addRules",
            r#""behavior":"allow","destination":"session","rules":[{"toolName":"*"}]"#,
        ),
    ] {
        for more in [String::new(), format!(",{odd}")] {
            let text = format!(r#"{{"type":"{kind}",{fields}{more}}}"#);
            assert!(refused(&text).is_some(), "{text}");
        }
    }
    let fine = format!(r#"{{"type":"setMode","mode":"plan","destination":"session",{odd}}}"#);
    assert_eq!(refused(&fine), None);
    let deep = format!(
        r#"{{"type":"removeRules","behavior":"deny","destination":"cliArg","rules":{}{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    assert!(refused(&deep).is_some());
}

#[test]
fn tools_by_name() {
    for (text, tool, expected) in [
        ("Bash", "Bash", About::All),
        ("Bash(*)", "Bash", About::All),
        ("Bash(git *)", "Bash", About::Some),
        ("Bash(git *)", "Monitor", About::Some),
        ("Bash(git *)", "Read", About::None),
        ("Task", "Agent", About::All),
        ("Agent", "Task", About::All),
        ("Read(.env)", "Grep", About::Some),
        ("Read(.env)", "Bash", About::Some),
        ("Read(.env)", "Write", About::Some),
        ("Edit(src/**)", "NotebookEdit", About::Some),
        ("Edit(src/**)", "WebFetch", About::None),
        ("WebFetch(domain:a.b)", "WebFetch", About::Some),
        ("mcp__a", "mcp__a__b", About::All),
        ("mcp__a", "mcp__ab__c", About::None),
        ("mcp__a__*", "mcp__a__b", About::All),
        ("mcp__a__get_*", "mcp__a__get_x", About::All),
        ("mcp__a__get_*", "mcp__a__set_x", About::None),
        ("mcp__*", "mcp__a__b", About::All),
        ("*", "Bash", About::All),
        ("B*h", "Bash", About::All),
        ("B*h", "Batch2", About::None),
        ("*a*a*", "aa", About::All),
        ("*a*a*", "a", About::None),
    ] {
        assert_eq!(rule(text).about(tool), expected, "{text} {tool}");
    }
}
