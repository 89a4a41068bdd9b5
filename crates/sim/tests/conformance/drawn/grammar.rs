//! What is drawn: prompts, calls, paths, rules, modes, hooks, permissions, interrupts and further processes, all of which are inside
//! the line of what the simulator plays.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::{Act, Drawn, HookAnswer, Moment, Permission};

const PATHS: &[&str] = &[
    "x.txt",
    "./src/../x.txt",
    "src/lib.rs",
    "src",
    "none.txt",
    "empty.txt",
    "a b.txt",
    "crlf.txt",
    ".env",
    "new/deep/file.md",
    "notes.md",
    "{project}/x.txt",
    "{project}/src/lib.rs",
    "{project}/made.txt",
    "{project}/../outside.txt",
    "../outside.txt",
    "{root}/outside.txt",
    "../extra/e.txt",
    "{root}/extra/new.txt",
    "~/h.txt",
    "~/none.txt",
    "out.txt",
    "outdir/e.txt",
    "ü.txt",
    "src/../../outside.txt",
    "{project}",
    ".claude/settings.json",
    ".mcp.json",
    "{root}/elsewhere/f.txt",
];

/// Commands that do the same at any time, and nothing outside of the place.
const COMMANDS: &[&str] = &[
    "echo hi",
    "echo one; echo two",
    "echo oops >&2; exit 3",
    "true",
    "false",
    "pwd",
    "ls",
    "ls src",
    "ls -a ..",
    "cat x.txt",
    "cat ../outside.txt",
    "cat none.txt",
    "cat .env",
    "head -n 1 x.txt",
    "tail -n 1 x.txt",
    "wc -l x.txt",
    "grep one x.txt",
    "grep -r fn src",
    "grep none x.txt",
    "find . -name '*.rs'",
    "touch made.txt",
    "touch src/made.rs",
    "touch ../made.txt",
    "mkdir -p a/b",
    "rm made.txt",
    "rm -f x.txt",
    "cp x.txt y.txt",
    "mv x.txt z.txt",
    "echo x > y.txt",
    "echo x >> ../y.txt",
    "echo $HOME",
    "echo \"$VAR\"",
    "echo $(echo a)",
    "X=1 env | grep X",
    "cd src && ls",
    "cd src",
    "cd ..",
    "cd /tmp && pwd",
    "sed -i s/one/1/ x.txt",
    "sed -n 1p x.txt",
    "sort x.txt | uniq | wc -l",
    "touch a && touch b",
    "touch a; rm b",
    "test -f x.txt",
    "test -f none.txt && echo yes",
    "printf 'a\\nb'",
    "date +%Y > /dev/null",
    "for i in 1 2; do echo $i; done",
    "if [ -f x.txt ]; then echo yes; fi",
    "(echo hi)",
    "echo hi | tee t.txt",
    "cat <<E\nhi\nE",
    "seq 3",
    "exit 0",
    "nosuchprogram",
    "echo 'unclosed",
    "git status",
    "git --version > /dev/null",
    "node -e 1 && curl x",
    "sleep 0",
    "chmod +x x.txt",
    "ln -s x.txt l.txt",
    "diff x.txt empty.txt",
    "basename a/b",
    "which sh > /dev/null",
    "echo a\necho b",
];

fn path() -> impl Strategy<Value = &'static str> {
    select(PATHS)
}

/// A line that makes the model call a tool.
fn call() -> impl Strategy<Value = String> {
    tool().prop_map(|(name, input)| format!("%tool {name} {input}"))
}

fn tool() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        4 => file_call(),
        4 => bash_call(),
        1 => other_call(),
        1 => agent_call(),
    ]
}

fn file_call() -> impl Strategy<Value = (&'static str, Value)> {
    let read = (path(), proptest::option::of((0..4_i64, 1..3_i64))).prop_map(|(path, part)| {
        let mut input = json!({"file_path": path});
        if let Some((offset, limit)) = part {
            input["offset"] = json!(offset);
            input["limit"] = json!(limit);
        }
        ("Read", input)
    });
    let write = (path(), select(&["made\n", "", "one\ntwo  \n", "ü"][..]))
        .prop_map(|(path, content)| ("Write", json!({"file_path": path, "content": content})));
    let edit = (
        path(),
        select(
            &[
                ("one", "1"),
                ("fn", "pub fn"),
                ("none", "x"),
                ("", "new"),
                ("two", "two"),
                ("o", "0"),
            ][..],
        ),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(|(path, (old, new), all)| {
            let mut input = json!({"file_path": path, "old_string": old, "new_string": new});
            if let Some(all) = all {
                input["replace_all"] = json!(all);
            }
            ("Edit", input)
        });
    prop_oneof![3 => read, 3 => write, 3 => edit]
}

fn bash_call() -> impl Strategy<Value = (&'static str, Value)> {
    (
        select(COMMANDS),
        any::<bool>(),
        proptest::option::weighted(0.1, Just(5000)),
    )
        .prop_map(|(command, described, timeout)| {
            let mut input = json!({"command": command});
            if described {
                input["description"] = json!("Do it");
            }
            if let Some(timeout) = timeout {
                input["timeout"] = json!(timeout);
            }
            ("Bash", input)
        })
}

fn other_call() -> impl Strategy<Value = (&'static str, Value)> {
    let question = json!({"questions": [{
        "question": "Tea or coffee?", "header": "Drink", "multiSelect": false,
        "options": [{"label": "Tea", "description": "hot"}, {"label": "Coffee", "description": "hot"}],
    }]});
    prop_oneof![
        Just(("mcp__calc__add", json!({"a": 2, "b": 3}))),
        Just(("mcp__calc__look", json!({}))),
        Just(("mcp__calc__fail", json!({}))),
        Just(("mcp__calc__none", json!({}))),
        Just(("mcp__none__add", json!({}))),
        Just(("Nonsense", json!({"a": 1}))),
        Just(("Read", json!({}))),
        Just(("Bash", json!({"command": 5}))),
        Just(("Write", json!({"file_path": "x.txt"}))),
        Just(("Edit", json!({"file_path": "x.txt", "old_string": "one"}))),
        Just(("TaskCreate", json!({"subject": "Do", "description": "Do it"}))),
        Just(("TaskUpdate", json!({"taskId": "1", "status": "completed"}))),
        Just(("TaskUpdate", json!({"taskId": "9", "status": "completed"}))),
        Just(("TaskGet", json!({"taskId": "1"}))),
        Just(("TaskList", json!({}))),
        Just((
            "TodoWrite",
            json!({"todos": [{"content": "a", "status": "pending", "activeForm": "doing a"}]})
        )),
        Just(("AskUserQuestion", question)),
        Just(("AskUserQuestion", json!({"questions": []}))),
        Just(("ExitPlanMode", json!({"plan": "do it"}))),
    ]
}

/// An agent that is waited for, and calls tools of its own.
fn agent_call() -> impl Strategy<Value = (&'static str, Value)> {
    let inner = vec(prop_oneof![file_call(), bash_call()], 0..3);
    let kind = select(&["general-purpose", "Explore", "Plan", "nobody"][..]);
    let name = select(&["Agent", "Task"][..]);
    (name, kind, inner).prop_map(|(name, kind, calls)| {
        let mut lines: Vec<String> = calls.iter().map(|(name, input)| format!("%tool {name} {input}")).collect();
        lines.push("%say from below".to_owned());
        (
            name,
            json!({"description": "look", "prompt": lines.join("\n"), "subagent_type": kind, "run_in_background": false}),
        )
    })
}

/// Calls of one response.
fn calls() -> impl Strategy<Value = Vec<String>> {
    let server = select(&["mcp__calc__look", "mcp__calc__add", "mcp__calc__fail", "Nonsense"][..])
        .prop_map(|name| (name, json!({"a": 2, "b": 3})));
    let call = prop_oneof![3 => file_call(), 3 => bash_call(), 3 => server, 1 => agent_call()];
    vec(call, 2..4).prop_map(|calls| {
        let lines = calls.iter().enumerate();
        lines
            .map(|(number, (name, input))| {
                format!("{} {name} {input}", if number == 0 { "%tool" } else { "%+tool" })
            })
            .collect()
    })
}

/// A turn: texts, thinking, calls, troubles of the API, and an answer.
fn turn() -> impl Strategy<Value = Vec<String>> {
    let said = prop_oneof![
        Just("%say I look.".to_owned()),
        Just("%think hm".to_owned()),
        Just("%redacted abc".to_owned()),
    ];
    let step = prop_oneof![
        8 => call().prop_map(|call| vec![call]),
        3 => calls(),
        2 => (said, call()).prop_map(|(said, call)| vec![said, call.replacen("%tool", "%+tool", 1)]),
        1 => (select(&["%error 529", "%error 500 n=2", "%error 429", "%drop", "%error 503"][..]), call())
            .prop_map(|(trouble, call)| vec![trouble.to_owned(), call]),
    ];
    let end = prop_oneof![
        8 => Just(vec!["%say done".to_owned()]),
        1 => Just(vec!["%think so".to_owned(), "%+say done".to_owned()]),
        1 => Just(vec!["%say one".to_owned(), "%+say two".to_owned()]),
        1 => Just(vec!["%error 400 n=99 msg=\"bad\"".to_owned(), "%say never".to_owned()]),
        1 => Just(vec!["%error 500 n=99".to_owned(), "%say never".to_owned()]),
    ];
    (vec(step, 0..6), end).prop_map(|(steps, end)| steps.into_iter().flatten().chain(end).collect())
}

fn act() -> impl Strategy<Value = Act> {
    let mode = select(&["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"][..]);
    prop_oneof![
        12 => turn().prop_map(Act::Turn),
        3 => turn().prop_map(Act::Named),
        3 => mode.prop_map(|mode| Act::Control(json!({"subtype": "set_permission_mode", "mode": mode}))),
        1 => Just(Act::Control(json!({"subtype": "set_model", "model": "claude-sonnet-4-5-20250929"}))),
        1 => Just(Act::Control(json!({"subtype": "interrupt"}))),
        1 => select(&[Moment::BeforeTheAnswer, Moment::Question, Moment::Command, Moment::Calls][..]).prop_map(Act::Interrupt),
        1 => resumed().prop_map(Act::Process),
    ]
}

fn resumed() -> impl Strategy<Value = Vec<String>> {
    let resume = || vec!["--resume".to_owned(), "{session}".to_owned()];
    prop_oneof![
        Just(resume()),
        Just(vec!["--continue".to_owned()]),
        Just([resume(), vec!["--fork-session".to_owned()]].concat()),
        Just(Vec::new()),
    ]
}

fn flags() -> impl Strategy<Value = Vec<String>> {
    let mode = proptest::option::of(select(
        &["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"][..],
    ));
    let allowed = subsequence(
        &[
            "Bash",
            "Bash(echo:*)",
            "Bash(touch *)",
            "Bash(ls:*)",
            "Read",
            "Read(src/**)",
            "Edit",
            "Edit(src/**)",
            "Write",
            "mcp__calc__add",
            "mcp__calc",
            "Read(//**/elsewhere/**)",
            "Edit(/notes.md)",
            "Bash(cat x.txt)",
            "Agent",
        ][..],
        0..5,
    );
    let denied = subsequence(
        &[
            "Bash(rm:*)",
            "Read(.env)",
            "Read(./.env)",
            "Edit(x.txt)",
            "Write",
            "Bash(cat:*)",
            "mcp__calc__fail",
            "Read(//**/outside.txt)",
            "Agent(Explore)",
        ][..],
        0..3,
    );
    let more = subsequence(
        &[
            "--include-partial-messages",
            "--replay-user-messages",
            "--include-hook-events",
            "--forward-subagent-text",
        ][..],
        0..3,
    );
    let extra = prop::bool::weighted(0.3);
    (mode, allowed, denied, more, extra).prop_map(|(mode, allowed, denied, more, extra)| {
        let mut flags: Vec<String> = more.into_iter().map(str::to_owned).collect();
        let mut flag = |name: &str, value: String| flags.extend([name.to_owned(), value]);
        if let Some(mode) = mode {
            flag("--permission-mode", mode.to_owned());
        }
        if !allowed.is_empty() {
            flag("--allowedTools", allowed.join(","));
        }
        if !denied.is_empty() {
            flag("--disallowedTools", denied.join(","));
        }
        if extra {
            flag("--add-dir", "{root}/extra".to_owned());
        }
        flags
    })
}

/// A whole scenario.
pub(super) fn drawn() -> impl Strategy<Value = Drawn> {
    use HookAnswer as H;
    use Permission as P;
    let events = subsequence(
        &[
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "UserPromptSubmit",
            "Stop",
            "SubagentStart",
            "SubagentStop",
        ][..],
        0..5,
    );
    let hook = prop_oneof![
        12 => Just(H::Nothing), 2 => Just(H::Allow), 2 => Just(H::Deny), 2 => Just(H::Ask), 2 => Just(H::ChangeInput),
        2 => Just(H::Context), 1 => Just(H::Block), 1 => Just(H::Stop), 1 => Just(H::SystemMessage), 1 => Just(H::Fail),
    ];
    let permission = prop_oneof![
        6 => Just(P::Allow), 3 => Just(P::GiveBack), 2 => Just(P::ChangeInput), 2 => Just(P::TakeSuggestions), 1 => Just(P::AddRule),
        1 => Just(P::AcceptEdits), 4 => Just(P::Deny), 1 => Just(P::Interrupt), 1 => Just(P::Fail),
    ];
    (
        flags(),
        events,
        vec(hook, 1..6),
        vec(permission, 1..6),
        vec(act(), 2..7),
    )
        .prop_map(|(flags, hooks, hook_answers, permissions, acts)| Drawn {
            flags,
            hooks: hooks.into_iter().map(str::to_owned).collect(),
            hook_answers,
            permissions,
            acts,
        })
}
