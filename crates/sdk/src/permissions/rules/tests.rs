use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn raw(input: Value) -> RawJson {
    RawJson::encode(&input).unwrap()
}

fn bash(command: &str) -> RawJson {
    raw(json!({ "command": command }))
}

fn place() -> Place {
    Place::new("/nowhere/project").home("/nowhere/home")
}

fn allows(rules: &[&str], tool: &str, input: &RawJson) -> bool {
    Rules::parse(rules)
        .unwrap()
        .covers(&Call::new(tool, input, place()))
        .is_ok()
}

fn refuses(rules: &[&str], tool: &str, input: &RawJson) -> bool {
    Rules::parse(rules)
        .unwrap()
        .touches(&Call::new(tool, input, place()))
        .is_some()
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
        "Bash(git*)",
    ] {
        assert_eq!(rule(text).check_allow(), Ok(()), "{text}");
    }
}

#[test]
fn commands_that_are_allowed() {
    for (rules, command, expected) in [
        (&["Bash(git *)"][..], "git", true),
        (&["Bash(git *)"], "git status", true),
        (&["Bash(git *)"], "  git \t status ", true),
        (&["Bash(git *)"], "gitx", false),
        (&["Bash(git *)"], "GIT status", false),
        (&["Bash(git:*)"], "git status", true),
        (&["Bash(git:*)"], "git:x", false),
        (&["Bash(git*)"], "gitx y", true),
        (&["Bash(git)"], "git", true),
        (&["Bash(git)"], "git status", false),
        (&["Bash(git * main)"], "git push origin main", true),
        (&["Bash(git * main)"], "git main", false),
        (&["Bash(git log *)"], "git \"log --output=x\"", false),
        (
            &["Bash(git *)", "Bash(npm test)"],
            "git status && npm test | git x; npm test\ngit y",
            true,
        ),
        (&["Bash(git *)"], "git status && npm test", false),
        (&["Bash(git *)"], "git status; rm -rf /", false),
        (&["Bash(git *)"], "git status | sh", false),
        (&["Bash(git *)"], "git status\nrm x", false),
        (&["Bash(git *)"], "git status & git x", false),
        (&["Bash(git *)"], "git $(git x)", false),
        (&["Bash(git *)"], "git `git x`", false),
        (&["Bash(git *)"], "git <(git x)", false),
        (&["Bash(git *)"], "git \"$(rm x)\"", false),
        (&["Bash(git *)"], "git '$(rm x)'", true),
        (&["Bash(git *)"], "git 'a; b'", true),
        (&["Bash(git *)"], "git > x", false),
        (&["Bash(git *)"], "git x 2>&1 >/dev/null", true),
        (&["Bash(git *)"], "git $HOME", false),
        (&["Bash(git *)"], "X=1 git x", false),
        (&["Bash(git *)"], "(git x)", false),
        (&["Bash(git *)"], "git {a,b}", false),
        (&["Bash(git *)"], "git a\u{a0}b", false),
        (&["Bash(git *)"], "'git' x", false),
        (&["Bash(git *)"], "g\\it x", false),
        (&["Bash(git *)"], "git x &&", false),
        (&["Bash(git *)"], "git 'x", false),
        (&["Bash(git *)"], "", false),
        (&["Bash(git *)"], "/usr/bin/git x", false),
        (&["Bash(npm test *)"], "timeout 30 npm test", true),
        (&["Bash(npm test *)"], "time nice -n 5 nohup npm test x", true),
        (&["Bash(npm test *)"], "timeout -s KILL 30 npm test", false),
        (&["Bash(npm test *)"], "env npm test", false),
        (&["Bash(npm test *)"], "sudo npm test", false),
        (&["Bash(npm test *)"], "xargs npm test", false),
        (&["Bash(find *)"], "find . -name x", true),
        (&["Bash(find *)"], "find . -name x -delete", false),
        (&["Bash(find *)"], "find . -exec rm {} +", false),
        (&["Bash(find *)"], "find . *", false),
        (&["Bash(find . -name x -delete)"], "find . -name x -delete", true),
        (&["Bash(eval *)", "Bash(watch *)"], "eval x", false),
        (&["Bash(eval *)", "Bash(watch *)"], "timeout 5 watch x", false),
        (&["Bash(watch x)"], "watch x", true),
        (&["Bash"], "git status; rm -rf / $(x) > y", true),
        (&["Bash(*)"], "a `b`", true),
        (&["Read", "Edit"], "git status", false),
    ] {
        assert_eq!(
            allows(rules, "Bash", &bash(command)),
            expected,
            "{rules:?} {command:?}"
        );
    }
}

#[test]
fn commands_that_are_refused() {
    for command in [
        "rm",
        "rm x",
        "  rm   -rf x",
        "RM x",
        "/bin/rm x",
        "../../bin/rm x",
        "rm.exe x",
        "r\\m x",
        "'rm' x",
        "r''m x",
        "r\u{200b}m x",
        "ls && rm x",
        "ls & rm x",
        "ls | rm x",
        "ls\nrm x",
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "echo \"${A:-$(rm x)}\"",
        "echo <(rm x)",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "if true; then rm x; fi",
        "for i in 1; do rm $i; done",
        "case x in x) rm y;; esac",
        "f() { rm x; }; f",
        "A=1 rm x",
        "PATH=. rm x",
        "rm x > out",
        "> out rm x",
        "timeout 5 rm x",
        "timeout -s KILL 5 rm x",
        "time rm x",
        "nice -n 5 rm x",
        "env rm x",
        "env A=1 -i rm x",
        "env -S 'rm x'",
        "xargs rm",
        "xargs -n1 rm",
        "ls | xargs -I{} rm {}",
        "sudo rm x",
        "sudo -u root rm x",
        "exec rm x",
        "eval rm x",
        "eval 'rm x'",
        "eval \"$X\"",
        "sh -c 'rm x'",
        "bash -c \"ls; rm x\"",
        "bash -c \"sh -c 'rm x'\"",
        "bash -lc 'cd /; rm x'",
        "sh -c \"$X\"",
        "$X y",
        "X=rm; $X y",
        "r? x",
        "/bin/r[m] x",
        "{rm,x}",
        "$'\\x72m' x",
        "find . -exec rm {} +",
        "find . -name x -execdir rm {} \\;",
        "watch rm x",
        "setsid rm x",
        "ssh host rm x",
        "ssh host 'rm x'",
        "docker exec -it c rm x",
        "python3 -c 'import os; os.system(\"rm x\")'",
        "perl -e '`rm x`'",
        "sh <<E\nrm x\nE",
        "cat <<'E' | bash\nrm x\nE",
        "echo 'not closed; rm x",
        "alias ll='rm x'",
        "trap 'rm x' EXIT",
        "coproc rm x",
        "echo x |& rm y",
        "rm x # really",
        "# rm\nrm x",
    ] {
        assert!(refuses(&["Bash(rm *)"], "Bash", &bash(command)), "{command:?}");
        assert!(refuses(&["Bash(rm *)"], "Monitor", &bash(command)), "{command:?}");
    }
    assert!(refuses(
        &["Bash(rm *)"],
        "Bash",
        &bash(&format!("echo {}", "x".repeat(10_000)))
    ));
    for command in [
        "echo rm x",
        "git rm-x",
        "rmdir x",
        "ls rm",
        "grep 'rm x' file",
        "git commit -m 'rm x'",
        "git commit -m \"$(cat <<'E'\nrm x\nE\n)\"",
        "echo $HOME > out",
        "for f in *.rs; do wc -l \"$f\"; done",
        "timeout 5 grep $X file",
        "FOO=\"$X\" npm test",
        "env FOO=\"$X\" npm test",
        "awk '{print $1}' file",
        "sed -e 's/rm/x/' file",
        "find . -name '*.rs' -print",
        "docker logs $C",
        "docker run --rm image",
        "cat > x <<'E'\nrm y\nE",
        "python3 script.py --name $X",
        "test -f x && echo y",
        "ls *",
    ] {
        assert!(!refuses(&["Bash(rm *)"], "Bash", &bash(command)), "{command:?}");
    }
    for (rules, command, expected) in [
        (&["Bash(git push *)"][..], "git  push x", true),
        (&["Bash(git push *)"], "git 'push' x", true),
        (&["Bash(git push *)"], "git -C . push x", true),
        (&["Bash(git push *)"], "git -c a=b --no-pager push x", true),
        (&["Bash(git push *)"], "sudo -E git -C . push x", true),
        (&["Bash(git push *)"], "git $X", true),
        (&["Bash(git push *)"], "git add *.rs", false),
        (&["Bash(git push *)"], "git log push", false),
        (&["Bash(rm -rf *)"], "rm $FLAGS x", true),
        (&["Bash(rm -rf *)"], "rm x", false),
        (&["Bash(frob)"], "frob", true),
        (&["Bash(frob)"], "frob x", false),
        (&["Bash(git commit -m \"x\")"], "git commit -m x", true),
        (&["Bash(curl * | sh)"], "ls", false),
        (&["Bash(timeout *)"], "timeout 5 x", true),
        (&["Bash(* --force)"], "git push --force", true),
        (&["Bash(run_in_background:true)"], "ls", false),
    ] {
        assert_eq!(
            refuses(rules, "Bash", &bash(command)),
            expected,
            "{rules:?} {command:?}"
        );
    }
}

#[test]
fn fields_of_the_input() {
    let background = raw(json!({"command": "x", "run_in_background": true}));
    assert!(refuses(&["Bash(run_in_background:true)"], "Bash", &background));
    assert!(!allows(&["Bash(run_in_background:*)"], "Bash", &background));
    let agent = raw(
        json!({"prompt": "x", "model": "opus", "subagent_type": "plugin:Explore", "n": {"a": 1}, "k": 5}),
    );
    for (rule, expected) in [
        ("Agent(model:opus)", true),
        ("Agent(model : o*)", true),
        ("Agent(model:sonnet)", false),
        ("Agent(isolation:*)", false),
        ("Agent(n:*)", false),
        ("Agent(k:5)", true),
        ("Agent(Explore)", true),
        ("Task(explore)", true),
        ("Agent(plugin:Explore)", true),
        ("Agent(Plan)", false),
    ] {
        assert_eq!(refuses(&[rule], "Agent", &agent), expected, "{rule}");
        assert_eq!(refuses(&[rule], "Task", &agent), expected, "{rule}");
    }
    assert!(allows(&["Agent(plugin:Explore)"], "Task", &agent));
    assert!(!allows(&["Agent(Explore)"], "Agent", &agent));
    assert!(refuses(
        &["Agent(general-purpose)"],
        "Agent",
        &raw(json!({"prompt": "x"}))
    ));
}

#[test]
fn tools_by_name() {
    let input = raw(json!({}));
    for (rule, tool, expected) in [
        ("mcp__a", "mcp__a__x", true),
        ("mcp__a", "mcp__ab__x", false),
        ("mcp__a__*", "mcp__a__x", true),
        ("mcp__a__get_*", "mcp__a__get_x", true),
        ("mcp__a__get_*", "mcp__a__set_x", false),
        ("mcp__a__x", "mcp__a__x", true),
        ("mcp__a__x", "mcp__a__y", false),
        ("mcp__my_server__*", "mcp__my_server__x", true),
        ("WebSearch", "WebSearch", true),
        ("WebSearch", "websearch", false),
        ("KillShell", "TaskStop", true),
    ] {
        assert_eq!(allows(&[rule], tool, &input), expected, "{rule} {tool}");
        assert_eq!(refuses(&[rule], tool, &input), expected, "{rule} {tool}");
    }
    for (rule, tool) in [
        ("*", "Anything"),
        ("mcp__*", "mcp__a__b"),
        ("Web*", "WebSearch"),
        ("mcp__my__server", "mcp__my__server__x"),
    ] {
        assert!(
            refuses(&[rule], tool, &input) && !allows(&[rule], tool, &input),
            "{rule} {tool}"
        );
    }
    for (rule, skill, allowed, refused) in [
        ("Skill(pdf)", "pdf", true, true),
        ("Skill(pdf)", "/pdf", false, true),
        ("Skill(pdf)", "PDF", false, true),
        ("Skill(pdf)", "plugin:pdf", false, true),
        ("Skill(pdf)", "pdfs", false, false),
        ("Skill(pdf *)", "pdf", true, true),
        ("Skill(pdf *)", "pdfs", false, true),
    ] {
        let input = raw(json!({ "skill": skill }));
        assert_eq!(allows(&[rule], "Skill", &input), allowed, "{rule} {skill}");
        assert_eq!(refuses(&[rule], "Skill", &input), refused, "{rule} {skill}");
    }
}

/// What has not the form that a tool takes is never allowed, and refused by any rule for the tool.
#[test]
fn bad_inputs() {
    for (tool, allow, deny, input) in [
        ("Bash", "Bash", "Bash(x)", json!(null)),
        ("Bash", "Bash", "Bash(x)", json!({})),
        ("Bash", "Bash(x *)", "Bash(x)", json!({"command": 5})),
        ("Bash", "Bash(x *)", "Bash(x)", json!({"command": ["x"]})),
        ("Bash", "Bash(x *)", "Bash(x)", json!("x")),
        ("Read", "Read(**)", "Read(.env)", json!({})),
        ("Read", "Read(**)", "Read(.env)", json!({"file_path": null})),
        ("Read", "Read", "Read(.env)", json!([])),
        ("Write", "Edit(**)", "Edit(.env)", json!({"path": "x"})),
        (
            "Grep",
            "Read(**)",
            "Read(.env)",
            json!({"pattern": "x", "path": 7}),
        ),
        ("Glob", "Read(**)", "Read(.env)", json!({"pattern": "/etc/*"})),
        ("Glob", "Read(**)", "Read(.env)", json!({"pattern": "../*"})),
        (
            "WebFetch",
            "WebFetch(domain:*)",
            "WebFetch(domain:a.b)",
            json!({"url": 1}),
        ),
        ("WebFetch", "WebFetch", "WebFetch(domain:a.b)", json!({})),
        ("Skill", "Skill(a)", "Skill(b)", json!({"skill": {}})),
        ("Agent", "Agent(a)", "Agent(b)", json!({"subagent_type": 1})),
    ] {
        let input = raw(input);
        assert!(!allows(&[allow], tool, &input), "{allow} {input:?}");
        assert!(refuses(&[deny], tool, &input), "{deny} {input:?}");
    }
    let open = raw(json!({"command": "x", "dangerouslyDisableSandbox": true}));
    assert!(!allows(&["Bash", "Bash(x)"], "Bash", &open));
    let lone: RawJson = RawJson::from_text(r#"{"command": "x \ud800"}"#).unwrap();
    assert!(refuses(&["Bash(y)"], "Bash", &lone) || !allows(&["Bash(z)"], "Bash", &lone));
}

struct Files {
    root: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let files = Self { root };
        for directory in ["project/src/deep", "project/sub/src", "home/notes", "out"] {
            fs::create_dir_all(files.path(directory)).unwrap();
        }
        fs::write(files.path("out/secret"), "x").unwrap();
        fs::write(files.path("project/.env"), "x").unwrap();
        files
    }

    fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.root.path().canonicalize().unwrap().display())
    }

    fn call(&self, rule: &str, tool: &str, path: &str) -> (bool, bool) {
        let rules = Rules::parse([rule.replace("@", &self.path(""))]).unwrap();
        let path = path
            .strip_prefix('@')
            .map_or_else(|| path.to_owned(), |path| self.path(path));
        let field = match tool {
            "Grep" | "Glob" => "path",
            "NotebookEdit" => "notebook_path",
            _ => "file_path",
        };
        let input = raw(json!({ field: path, "pattern": "x" }));
        let place = Place::new(self.path("project")).home(self.path("home"));
        let call = Call::new(tool, &input, place);
        (rules.covers(&call).is_ok(), rules.touches(&call).is_some())
    }
}

#[test]
fn files() {
    let files = Files::new();
    for (rule, tool, path, allowed, refused) in [
        ("Edit(src/**)", "Write", "@project/src/x", true, true),
        ("Edit(src/**)", "Edit", "src/deep/x", true, true),
        ("Edit(src/**)", "NotebookEdit", "@project/src/x", true, true),
        ("Edit(src/**)", "Write", "@project/src/../x", false, false),
        ("Edit(src/**)", "Write", "@project/src/../../etc", false, false),
        ("Edit(src/**)", "Write", "@project/./a/../src/x", true, true),
        // Rules that refuse go for any depth, and for any case.
        ("Edit(src/**)", "Write", "@project/sub/src/x", false, true),
        ("Edit(src/**)", "Write", "@project/SRC/x", false, true),
        ("Edit(src/**)", "Write", "@project/src", false, true),
        ("Edit(src/**)", "Write", "@out/src/x", false, false),
        ("Edit(/src/**)", "Write", "@project/src/x", true, true),
        ("Edit(/src/**)", "Write", "@project/sub/src/x", false, false),
        ("Edit(**/src/**)", "Write", "@project/sub/src/x", true, true),
        ("Edit(top.txt)", "Write", "@project/sub/top.txt", true, true),
        ("Edit(./top.txt)", "Write", "@project/top.txt", true, true),
        ("Edit(./top.txt)", "Write", "@project/sub/top.txt", false, true),
        ("Edit(/top.txt)", "Write", "@project/sub/top.txt", false, false),
        ("Edit(sub)", "Write", "@project/a/sub/x", true, true),
        ("Edit(sub/)", "Write", "@project/sub/x", true, true),
        ("Edit(sub/)", "Write", "@project/a/sub", false, true),
        ("Edit(st/*)", "Write", "@project/st/a/b", true, true),
        ("Edit(mid/x.txt)", "Write", "@project/z/mid/x.txt", false, false),
        ("Edit(*.md)", "Write", "@project/a/b.md", true, true),
        ("Edit(a?[bc].md)", "Write", "@project/axb.md", true, true),
        ("Edit(a[!b].md)", "Write", "@project/ab.md", false, false),
        ("Edit(a*/x)", "Write", "@project/a/b/x", false, false),
        ("Edit(~/notes/*.md)", "Write", "@home/notes/x.md", true, true),
        ("Edit(~/notes/*.md)", "Write", "~/notes/x.md", true, true),
        ("Edit(/@out/**)", "Write", "@out/x", true, true),
        ("Edit(/@out/*)", "Write", "@out/a/b", true, true),
        ("Edit(/@out/secret)", "Read", "@out/secret", true, false),
        ("Read(/@out/secret)", "Read", "@out/secret", true, true),
        ("Read(/@out/secret)", "Read", "@out/secret2", false, false),
        ("Read(/@out/secret)", "Edit", "@out/secret", false, true),
        ("Read(.env)", "Read", "@project/.env", true, true),
        ("Read(.env)", "Read", "@project/.EN\u{200b}V", false, true),
        ("Read(.env)", "Read", "@out/.env", false, false),
        ("Read(//**/.env)", "Read", "@out/.env", true, true),
        // A search could find what is in the directory.
        ("Read(src/**)", "Grep", "@project/src", true, true),
        ("Read(/src/**)", "Grep", "@project", false, true),
        ("Read(/src/**)", "Grep", "@project/sub", false, false),
        ("Read(/src/**)", "Grep", "@", false, true),
        ("Read(.env)", "Grep", "@project/sub", false, true),
        ("Read(.env)", "Grep", "@project/.env", true, true),
        ("Read(.envrc)", "Grep", "@project/.env", false, false),
        ("Read(.env)", "Grep", "@out", false, false),
        ("Read(*.rs)", "Grep", "@project", false, true),
        ("Read(**)", "Glob", ".", true, true),
    ] {
        if cfg!(windows) && (path.contains('~') || rule.contains('@')) {
            continue;
        }
        assert_eq!(
            files.call(rule, tool, path),
            (allowed, refused),
            "{rule} {tool} {path}"
        );
    }
}

#[test]
fn files_of_another_machine() {
    let place = || Place::new("/srv").remote();
    let input = raw(json!({"file_path": "/srv/src/x"}));
    let call = Call::new("Write", &input, place());
    assert!(!rule("Edit(src/**)").covers(&call));
    assert!(rule("Edit(src/**)").touches(&call));
    assert!(rule("Edit").covers(&Call::new("Edit", &input, place())));
}

/// Who gives no working directory is allowed nothing below it, and refused what could be there.
#[test]
fn files_of_an_unknown_place() {
    let place = || Place::default();
    for (text, path, refused) in [
        ("Read(.env)", "/a/b/.env", true),
        ("Read(.env)", "b/.env", true),
        ("Read(src/x)", "/a/src/x", true),
        ("Read(src/x)", "/a/src/y", false),
        ("Read(~/x)", "/a/x", true),
    ] {
        let input = raw(json!({ "file_path": path }));
        let call = Call::new("Read", &input, place());
        assert!(!rule(text).covers(&call), "{text} {path}");
        assert_eq!(rule(text).touches(&call), refused, "{text} {path}");
    }
}

#[cfg(unix)]
#[test]
fn links_are_looked_through() {
    use std::os::unix::fs::symlink;

    let files = Files::new();
    for (target, link) in [
        ("../out", "project/src/link"),
        ("../../out/secret", "project/src/file"),
        ("../../project/src/deep", "home/notes/in"),
        ("/nowhere/else", "project/src/dangling"),
        ("loop2", "project/src/loop"),
        ("loop", "project/src/loop2"),
        ("../../out", "project/sub/two"),
        ("sub/two", "project/chain"),
        ("out", "linked-out"),
    ] {
        symlink(target, files.path(link)).unwrap();
    }
    fs::remove_file(files.path("project/src/link")).unwrap();
    symlink("../../out", files.path("project/src/link")).unwrap();
    for (rule, path, allowed, refused) in [
        ("Read(src/**)", "@project/src/file", false, true),
        ("Read(src/**)", "@project/src/link/secret", false, true),
        ("Read(/@out/**)", "@project/src/file", false, true),
        ("Read(/@out/**)", "@project/src/link/secret", false, true),
        ("Read(/@out/**)", "@project/chain/secret", false, true),
        ("Read(/sub/**)", "@project/chain/secret", false, true),
        ("Read(/@home/notes/**)", "@home/notes/in/x", false, true),
        ("Read(src/**)", "@home/notes/in/x", false, true),
        ("Read(src/**)", "@project/src/dangling", false, true),
        ("Read(//nowhere/**)", "@project/src/dangling", false, true),
        ("Read(src/**)", "@project/src/loop", false, true),
        // A rule that refuses by a link goes for what the link leads to.
        ("Read(/@linked-out/**)", "@out/secret", false, true),
        ("Read(/@linked-out/secret)", "@out/secret", false, true),
    ] {
        assert_eq!(
            files.call(rule, "Read", path),
            (allowed, refused),
            "{rule} {path}"
        );
    }
    // The working directory may be reached by a link.
    symlink("project", files.path("to-project")).unwrap();
    let input = raw(json!({ "file_path": files.path("to-project/src/x") }));
    let call = Call::new("Write", &input, Place::new(files.path("to-project")));
    assert!(rule("Edit(src/**)").covers(&call));
}

#[test]
fn commands_that_name_files() {
    let files = Files::new();
    let place = || Place::new(files.path("project")).home(files.path("home"));
    for (rule, command, expected) in [
        ("Read(.env)", "cat .env", true),
        ("Read(.env)", "cat ./sub/../.env", true),
        ("Read(.env)", "cat < .env", true),
        ("Read(.env)", "cp --from=.env x", true),
        ("Read(.env)", "sh -c 'cat .env'", true),
        ("Read(.env)", "cat README.md", false),
        ("Edit(src/**)", "touch src/x", true),
        ("Edit(src/**)", "cat src/x", false),
        ("Edit(src/**)", "cat x > src/y", true),
        ("Edit(src/**)", "tee src/y", true),
        ("Edit(~/notes/**)", "rm ~/notes/x", true),
        ("Edit(src/**)", "ls; echo 'not closed src/y", true),
        ("Edit(src/**)", "ls; echo 'closed src/y'", false),
    ] {
        let input = bash(command);
        let call = Call::new("Bash", &input, place());
        assert_eq!(
            rule.parse::<Rule>().unwrap().touches(&call),
            expected,
            "{rule} {command}"
        );
    }
}

#[test]
fn why_a_command_is_not_covered() {
    let rules = Rules::parse(["Bash(git *)"]).unwrap();
    let why = |command: &str| {
        let input = bash(command);
        rules.covers(&Call::new("Bash", &input, place())).unwrap_err()
    };
    assert_eq!(why("git x && rm y"), "no rule covers `rm y`");
    assert_eq!(why("git $(x)"), "with `$` in it no rule covers the command");
    let input = raw(json!({}));
    assert_eq!(
        rules
            .covers(&Call::new("WebSearch", &input, place()))
            .unwrap_err(),
        "no rule covers this call of WebSearch"
    );
}

fn command() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("git".to_owned()),
        Just("rm".to_owned()),
        Just("-rf".to_owned()),
        Just("'a b'".to_owned()),
        Just("\"$X\"".to_owned()),
        Just("env".to_owned()),
        Just("A=1".to_owned()),
        Just("sh".to_owned()),
        Just("-c".to_owned()),
        "[a-z./*$\\\\'\"]{1,5}",
    ];
    proptest::collection::vec(word, 1..5).prop_map(|words| words.join(" "))
}

fn joint() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(" && "),
        Just("; "),
        Just(" | "),
        Just("\n"),
        Just(" & "),
        Just(" || "),
        Just("&"),
        Just(";"),
        Just("\n\n"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What is not allowed alone is not allowed with anything before or behind it.
    #[test]
    fn nothing_is_allowed_for_being_part_of_more(first in command(), joint in joint(), second in command()) {
        let rules = &["Bash(git *)"];
        let both = format!("{first}{joint}{second}");
        if allows(rules, "Bash", &bash(&both)) {
            // Quotation marks that are open in one half and closed in the other make another command of both.
            let whole = |text: &str| !shell::read(text).murky;
            if whole(&first) && whole(&second) {
                prop_assert!(allows(rules, "Bash", &bash(&first)), "{both:?}");
                prop_assert!(allows(rules, "Bash", &bash(&second)), "{both:?}");
            }
        }
    }

    /// What is allowed runs no program but the one that the rule names.
    #[test]
    fn what_is_allowed_is_what_the_rule_names(text in "[a-c git$`'\"\\\\;&|<>(){}\n*=#!~-]{0,30}") {
        if allows(&["Bash(git *)"], "Bash", &bash(&text)) {
            let script = shell::read(&text);
            prop_assert_eq!(script.odd, None);
            for part in script.parts {
                prop_assert_eq!(part.words[0].raw.as_str(), "git");
            }
        }
    }

    /// What is refused alone is refused with anything around it.
    #[test]
    fn a_refused_command_is_refused_in_every_composition(
        before in command(),
        joint in joint(),
        how in 0usize..10,
        behind in command(),
    ) {
        let whole = |text: &str| !shell::read(text).murky;
        prop_assume!(whole(&before) && whole(&behind));
        let bad = "rm -rf x";
        let line = match how {
            0 => format!("{before}{joint}{bad}"),
            1 => format!("{bad}{joint}{behind}"),
            2 => format!("{before}{joint}{bad}{joint}{behind}"),
            3 => format!("echo $({bad})"),
            4 => format!("echo \"`{bad}`\""),
            5 => format!("sh -c '{bad}'"),
            6 => format!("sudo -u x env A=1 {bad}"),
            7 => format!("({before}{joint}{bad})"),
            8 => format!("if {before}{joint} {bad}; then x; fi"),
            _ => format!("{before}{joint}timeout 5 /bin/{bad}"),
        };
        prop_assert!(refuses(&["Bash(rm *)"], "Bash", &bash(&line)), "{line:?}");
    }

    /// Whatever a rule surely means it could mean.
    #[test]
    fn who_is_covered_is_touched(
        pattern in "(git|git log|rm -rf|npm run [ab]|x)( \\*|:\\*|\\*)?",
        command in command(),
        path in "(/nowhere/project/|\\./|)(src|SRC|\\.env|a\\.md|\\.\\.)(/(src|\\.env|a\\.md|\\.\\.))?",
        files in "(\\./|/|)(src/\\*\\*|\\.env|\\*\\.md|src/|a\\.md|\\*\\*/src/\\*\\*|\\*\\*)",
    ) {
        for (text, tool, input) in [
            (format!("Bash({pattern})"), "Bash", bash(&command)),
            (format!("Read({files})"), "Read", raw(json!({ "file_path": path }))),
            (format!("Edit({files})"), "Write", raw(json!({ "file_path": path }))),
            (format!("Read({files})"), "Grep", raw(json!({ "path": path, "pattern": "x" }))),
        ] {
            if allows(&[&text], tool, &input) {
                prop_assert!(refuses(&[&text], tool, &input), "{text} {input:?}");
            }
        }
    }

    /// Whatever is called a rule, or a call, nothing brings the matching down.
    #[test]
    fn nothing_brings_it_down(text in "\\PC{0,30}", spec in "\\PC{0,20}", value in "\\PC{0,40}") {
        let rules = [text.clone(), format!("Bash({spec})"), format!("Read({spec})"), format!("WebFetch(domain:{spec})")];
        for rule in rules.iter().filter_map(|rule| rule.parse::<Rule>().ok()) {
            for (tool, field) in [("Bash", "command"), ("Read", "file_path"), ("WebFetch", "url"), ("Grep", "path")] {
                let input = raw(json!({ field: value }));
                let call = Call::new(tool, &input, place());
                rule.covers(&call);
                rule.touches(&call);
            }
        }
    }
}
