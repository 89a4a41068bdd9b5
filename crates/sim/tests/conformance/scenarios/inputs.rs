//! What hooks and permission requests are shown of a tool's input, and whether there is a request at all.

use serde_json::{Value, json};

use super::{allow, calc, nothing};
use crate::scenario::{Reply, Scenario};

/// Paths inside and outside of the project, in all spellings.
const READS: &str = r#"
%tool Read {"file_path": "x.txt"}
%tool Read {"file_path": "./src/../x.txt"}
%tool Read {"file_path": " x.txt "}
%tool Read {"file_path": "../outside.txt"}
%tool Read {"file_path": "{root}/outside.txt"}
%tool Read {"file_path": "../extra/e.txt"}
%tool Read {"file_path": "~/h.txt"}
%tool Read {"file_path": "~x"}
%tool Read {"file_path": "/etc/../etc/hostname"}
%tool Read {"file_path": "none.txt"}
%tool Read {"file_path": "src"}
%tool Read {"file_path": ""}
%tool Read {"file_path": "out.txt"}
%tool Read {"file_path": "outdir/e.txt"}
%tool Read {"file_path": ".git/config"}
"#;

const WRITES: &str = r#"
%tool Write {"file_path": "notes.md", "content": "x  "}
%tool Write {"file_path": "./a/../b.txt", "content": "x  \ny"}
%tool Write {"file_path": "~/w.txt", "content": "x"}
%tool Write {"file_path": "../w.txt", "content": "x"}
%tool Write {"file_path": "../extra/w.txt", "content": "x"}
%tool Write {"file_path": "outdir/w.txt", "content": "x"}
%tool Write {"file_path": "src", "content": "x"}
%tool Write {"file_path": ".git/x", "content": "x"}
%tool Write {"file_path": ".claude/settings.json", "content": "{}"}
%tool Write {"file_path": "src/.bashrc", "content": "x"}
%tool Edit {"file_path": "src/lib.rs", "old_string": "a", "new_string": "b"}
%tool Edit {"file_path": "x.txt", "old_string": "one", "new_string": "1", "replace_all": "true"}
%tool Edit {"file_path": "x.txt", "old_string": "none", "new_string": "1"}
%tool Edit {"file_path": "x.txt", "old_string": "n", "new_string": "n"}
%tool Edit {"file_path": "none.txt", "old_string": "n", "new_string": "m"}
%tool Edit {"file_path": "new.txt", "old_string": "", "new_string": "m"}
"#;

/// Types, defaults, and fields that there are not.
const TYPES: &str = r#"
%tool Read {"file_path": "x.txt", "limit": "1", "offset": "2"}
%tool Read {"file_path": "x.txt", "limit": 0, "offset": -1}
%tool Read {"file_path": "x.txt", "limit": "1", "extra": 1}
%tool Read {"file_path": "x.txt", "limit": "abc"}
%tool Read {"file_path": "x.txt", "limit": 1.5}
%tool Read {"file_path": 5}
%tool Read {}
%tool Write {"file_path": "a.txt"}
%tool Write {"content": 5, "extra": 1}
%tool Edit {"file_path": "x.txt", "old_string": "one", "new_string": "1", "replace_all": "no"}
%tool Bash {"command": "echo hi", "timeout": "5000", "run_in_background": "false"}
%tool Bash {"command": "echo hi", "timeout": "5000", "extra": 1}
%tool Bash {"command": "cd {project} && echo hi"}
%tool Bash {"command": "echo hi", "description": null}
%tool Bash {}
%tool Agent {"description": "look", "prompt": "%say hi", "run_in_background": "false", "extra": 1}
%tool Agent {"description": "look", "prompt": "%say hi", "model": "none"}
%tool Agent {"prompt": "%say hi"}
%tool NotebookEdit {"notebook_path": "x.ipynb"}
%tool WebFetch {"url": "https://EXAMPLE.com/a ", "prompt": "x"}
%tool WebFetch {"url": "example.com", "prompt": "x"}
%tool WebSearch {"query": "hello", "allowed_domains": "[\"a.com\"]"}
%tool WebSearch {"query": "x"}
%tool AskUserQuestion {"questions": [{"question": "Tea?", "header": "D", "options": [{"label": "a", "description": "b"}, {"label": "c", "description": "d"}]}]}
%tool AskUserQuestion {"questions": [{"question": "Tea?"}]}
%tool AskUserQuestion {"questions": []}
%tool AskUserQuestion {"answers": {"x": "y"}, "questions": [{"question": "Tea?", "header": "D", "multiSelect": true, "options": [{"label": "a", "description": "b", "extra": 1}, {"label": "c", "description": "d"}]}]}
%tool ExitPlanMode {"plan": "do it"}
%tool TaskStop {"task_id": 5}
%tool Skill {"command": "debug"}
"#;

const COMMANDS: &[&str] = &[
    "touch a",
    "touch a.txt",
    "touch ../b",
    "touch $HOME/c",
    "touch 'a b'",
    "mkdir -p a/b",
    "rm -rf src",
    "rm -rf ~",
    "mv x.txt ../z",
    "cp ../extra/e.txt here",
    "sed -n p x.txt",
    "sed -i s/a/b/ src/lib.rs",
    "cat x.txt",
    "cat ../outside.txt",
    "cat ../extra/e.txt",
    "cat out.txt",
    "cat < ../outside.txt",
    "head -n 1 ../outside.txt x.txt",
    "grep one ../outside.txt",
    "ls ..",
    "ls ~",
    "find . -name x",
    "find . -delete",
    "echo hi",
    "echo $VAR",
    "echo 'a $b'",
    "echo $(date)",
    "echo `date`",
    "echo $HOME",
    "echo x > y",
    "echo x >> ../y",
    "cat x.txt > /dev/null",
    "echo hi 2>&1",
    "echo hi &",
    "(echo hi)",
    "{ echo hi; }",
    "curl x",
    "curl http://x",
    "git commit -m x",
    "git log",
    "npm run build",
    "make",
    "./run.sh",
    "env",
    "X=1 echo hi",
    "touch .git/x",
    "touch a && curl x",
    "curl x && curl y",
    "echo hi && curl x",
    "touch a && touch b",
    "touch a | cat",
    "cat x.txt | grep one | wc -l",
    "tee out",
    "if true; then echo a; fi",
    "cd src && touch a",
    "cd /tmp && ls",
    "cd {project}/src && touch a",
    "chmod +x x.txt",
];

fn commands() -> String {
    let lines = COMMANDS
        .iter()
        .map(|command| format!("%tool Bash {}\n", json!({"command": command})));
    lines.collect()
}

fn refuse(_: &Value) -> Option<Reply> {
    Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})))
}

/// A project with a neighbour, and a directory that was added.
fn project(name: &'static str, events: &[&str]) -> Scenario {
    let hooks: serde_json::Map<String, Value> = events
        .iter()
        .map(|event| ((*event).to_owned(), json!([{"hookCallbackIds": [event]}])))
        .collect();
    Scenario::with_initialize(name, json!({"hooks": hooks}))
        .flags("--add-dir {root}/extra")
        .file("x.txt", "one\ntwo\n")
        .file("src/lib.rs", "fn a(){}\n")
        .file(".git/config", "x\n")
        .file("../outside.txt", "out\n")
        .file("../extra/e.txt", "e\n")
        .link("out.txt", "../outside.txt")
        .link("outdir", "../extra")
}

const ALL: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
];

pub(super) fn inputs() -> Vec<Scenario> {
    let done = |calls: &str| format!("{calls}%say done");
    let in_mode = |name, mode: &str, calls: &str| {
        project(name, &[])
            .flags(&format!("--permission-mode {mode}"))
            .answer("can_use_tool", refuse)
            .turn(&done(calls))
    };
    let write = "%tool Write {\"file_path\": \"a.md\", \"content\": \"x\"}\n%say done";
    vec![
        project("shown_reads", ALL).answer("hook_callback", nothing).answer("can_use_tool", refuse).turn(&done(READS)),
        project("shown_reads_allowed", ALL).answer("hook_callback", nothing).answer("can_use_tool", allow).turn(&done(READS)),
        project("shown_writes", ALL).answer("hook_callback", nothing).answer("can_use_tool", refuse).turn(&done(WRITES)),
        project("shown_writes_allowed", ALL).answer("hook_callback", nothing).answer("can_use_tool", allow).turn(&done(WRITES)),
        project("shown_types", ALL).answer("hook_callback", nothing).answer("can_use_tool", refuse).turn(&done(TYPES)),
        project("shown_commands", &["PreToolUse"])
            .answer("hook_callback", nothing)
            .answer("can_use_tool", refuse)
            .turn(&done(&commands())),
        in_mode("files_in_accept_edits", "acceptEdits", &[READS, WRITES].concat()),
        in_mode("files_in_plan", "plan", &[READS, WRITES].concat()),
        in_mode("files_in_do_not_ask", "dontAsk", &[READS, WRITES].concat()),
        in_mode("files_in_bypass", "bypassPermissions", &[READS, WRITES].concat()).variable("IS_SANDBOX", "1"),
        in_mode(
            "commands_in_bypass",
            "bypassPermissions",
            "%tool Bash {\"command\": \"rm -rf ~\"}\n%tool Bash {\"command\": \"echo $VAR\"}\n%tool Bash {\"command\": \"touch .git/x\"}\n",
        )
        .variable("IS_SANDBOX", "1"),
        in_mode("commands_in_accept_edits", "acceptEdits", &commands()),
        project("searches_outside", ALL).answer("hook_callback", nothing)
            .flags("--tools Glob,Grep")
            .answer("can_use_tool", refuse)
            .turn(concat!(
                "%tool Glob {\"pattern\": \"*.txt\", \"path\": \"..\"}\n%tool Glob {\"pattern\": \"/etc/host*\"}\n",
                "%tool Grep {\"pattern\": \"one\", \"path\": \"~\", \"head_limit\": \"3\"}\n%say done",
            )),
        project("rules_of_paths", ALL).answer("hook_callback", nothing)
            .flag("--allowedTools", "Edit(src/**),Read(//{root}/outside.txt),Bash(cat:*),Bash(echo:*)")
            .flag("--disallowedTools", "Read(x.txt),Bash(rm *),WebFetch(domain:a.example)")
            .answer("can_use_tool", refuse)
            .turn(&done(concat!(
                "%tool Read {\"file_path\": \"x.txt\"}\n%tool Edit {\"file_path\": \"x.txt\", \"old_string\": \"one\", \"new_string\": \"1\"}\n",
                "%tool Write {\"file_path\": \"src/n\", \"content\": \"x\"}\n%tool Read {\"file_path\": \"../outside.txt\"}\n",
                "%tool Write {\"file_path\": \"../w\", \"content\": \"x\"}\n%tool Bash {\"command\": \"cat x.txt\"}\n",
                "%tool Bash {\"command\": \"cat ../outside.txt\"}\n%tool Bash {\"command\": \"echo x > y\"}\n",
                "%tool Bash {\"command\": \"rm -rf a\"}\n%tool WebFetch {\"url\": \"https://a.example\", \"prompt\": \"x\"}\n",
            ))),
        project("rules_of_whole_tools", &[])
            .flag("--allowedTools", "Read,Write,Bash")
            .answer("can_use_tool", refuse)
            .turn(&done(concat!(
                "%tool Read {\"file_path\": \"../outside.txt\"}\n%tool Write {\"file_path\": \".git/w\", \"content\": \"x\"}\n",
                "%tool Bash {\"command\": \"cat ../outside.txt\"}\n%tool Bash {\"command\": \"echo $VAR\"}\n",
                "%tool Bash {\"command\": \"touch .git/x\"}\n%tool Bash {\"command\": \"rm -rf ~\"}\n",
            ))),
        project("input_updated_by_the_callback", ALL).answer("hook_callback", nothing)
            .answer("can_use_tool", |_| {
                let input = json!({"file_path": "sub/b.md", "content": "y", "extra": 1});
                Some(Reply::Payload(json!({"behavior": "allow", "updatedInput": input})))
            })
            .turn(write),
        project("input_updated_to_none", ALL).answer("hook_callback", nothing)
            .answer("can_use_tool", |_| {
                Some(Reply::Payload(json!({"behavior": "allow", "updatedInput": {"file_path": 5}})))
            })
            .turn(write),
        project("input_given_back", ALL).answer("hook_callback", nothing)
            .answer("can_use_tool", |request| {
                Some(Reply::Payload(json!({"behavior": "allow", "updatedInput": request["input"]})))
            })
            .turn(write),
        project("input_updated_by_a_hook", &["PreToolUse"])
            .answer("hook_callback", |_| {
                let input = json!({"file_path": "./sub/../../c.md", "content": "z"});
                let output = json!({"hookEventName": "PreToolUse", "updatedInput": input});
                Some(Reply::Payload(json!({"hookSpecificOutput": output})))
            })
            .answer("can_use_tool", allow)
            .turn(write),
        project("hook_allows_what_it_may", &["PreToolUse"])
            .answer("hook_callback", |_| {
                let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow"});
                Some(Reply::Payload(json!({"hookSpecificOutput": output})))
            })
            .answer("can_use_tool", refuse)
            .turn(&done(concat!(
                "%tool Read {\"file_path\": \"../outside.txt\"}\n%tool Write {\"file_path\": \".git/a\", \"content\": \"x\"}\n",
                "%tool Bash {\"command\": \"rm -rf ~\"}\n",
            ))),
        mcp_inputs(),
    ]
}

fn mcp_inputs() -> Scenario {
    let hooks = json!({
        "PreToolUse": [{"hookCallbackIds": ["PreToolUse"]}], "PostToolUse": [{"hookCallbackIds": ["PostToolUse"]}],
        "PostToolUseFailure": [{"hookCallbackIds": ["PostToolUseFailure"]}],
        "PermissionRequest": [{"hookCallbackIds": ["PermissionRequest"]}],
    });
    Scenario::with_initialize("mcp_inputs", json!({"hooks": hooks, "sdkMcpServers": ["calc"]}))
        .flags("--allowedTools mcp__calc__fail")
        .answer("hook_callback", nothing)
        .answer("mcp_message", calc)
        .answer("can_use_tool", allow)
        .turn("%tool mcp__calc__add {\"a\": \"2\", \"b\": 3, \"c\": 1}\n%tool mcp__calc__fail {}\n%say done")
}
