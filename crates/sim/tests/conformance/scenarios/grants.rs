//! What flags, answers and hooks grant: rules of all forms, updates that are none, tools that come and go, agents of agents.

use serde_json::{Value, json};

use super::{TOUCH, allow, calc};
use crate::scenario::{Reply, Scenario};

/// Calls of a tool of each kind.
const ALL: &str = "%tool Bash {\"command\": \"touch x\"}\n%tool Write {\"file_path\": \"a.md\", \"content\": \"x\"}\n\
                   %tool Read {\"file_path\": \"/etc/hostname\"}\n%tool mcp__calc__add {\"a\": 1, \"b\": 2}\n%say done";

/// A host with a server of its own that allows what it is asked about.
fn host(name: &str) -> Scenario {
    Scenario::with_initialize(name, json!({"hooks": null, "sdkMcpServers": ["calc"]}))
        .answer("mcp_message", calc)
        .answer("can_use_tool", allow)
}

fn agent(prompt: &str, kind: &str, more: Value) -> String {
    let mut input = json!({"description": "look", "prompt": prompt, "subagent_type": kind});
    for (key, value) in more.as_object().into_iter().flatten() {
        input[key] = value.clone();
    }
    format!("%tool Agent {input}")
}

/// A host that gives this answer to the first permission request, and then allows.
fn answering(name: &str, more: &Value) -> Scenario {
    let mut answer = json!({"behavior": "allow"});
    for (key, value) in more.as_object().into_iter().flatten() {
        answer[key] = value.clone();
    }
    let answer = move |request: &Value| {
        let is_first = request["tool_name"] == "Bash" && request["input"]["command"] == "touch 1";
        let answer = if is_first {
            answer.clone()
        } else {
            json!({"behavior": "allow"})
        };
        Some(Reply::Payload(answer))
    };
    let write = "%tool Write {\"file_path\": \"a.md\", \"content\": \"x\"}";
    let turn = format!(
        "%tool Bash {{\"command\": \"touch 1\"}}\n%tool Bash {{\"command\": \"touch 2\"}}\n%tool Bash {{\"command\": \"ls\"}}\n\
         {write}\n%say done"
    );
    Scenario::new(name)
        .answer("can_use_tool", answer)
        .turn(&turn)
        .turn(TOUCH)
}

/// A hook that decides so about permission requests.
fn deciding(name: &str, decision: &Value) -> Scenario {
    let output = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    let hooks = json!({"hooks": {"PermissionRequest": [{"hookCallbackIds": ["hook_0"]}]}});
    Scenario::with_initialize(name, hooks)
        .answer("hook_callback", move |_| Some(Reply::Payload(output.clone())))
        .answer("can_use_tool", |_| None)
        .prompt(TOUCH)
        .until(if name.ends_with("_in_vain") {
            "control_request/can_use_tool"
        } else {
            "result"
        })
}

pub(super) fn grants() -> Vec<Scenario> {
    let mut all = Vec::new();
    let allowed = [
        ("whole", "Bash() Edit(*) Read(*) mcp__calc__*"),
        ("by_patterns", "Ba* * mcp__*"),
        ("torn", "Bash(git"),
        ("search", "Grep(src/**)"),
    ];
    let disallowed = [
        ("whole", "Bash(*) Edit() mcp__calc__*"),
        ("by_patterns", "Ba* mcp__*"),
        ("everything", "*"),
        ("read", "Read(*)"),
        ("below", "Read(/**)"),
        ("agents", "Task(*)"),
        ("torn", "Bash(git"),
    ];
    for (name, rules) in allowed {
        all.push(
            host(&format!("allowed_{name}"))
                .variable("CLAUDE_CODE_ENTRYPOINT", "sdk-ts")
                .variable("CLAUDE_AGENT_SDK_VERSION", "0.3.332")
                .flag("--allowedTools", rules)
                .turn(ALL),
        );
    }
    for (name, rules) in disallowed {
        all.push(
            host(&format!("disallowed_{name}"))
                .flag("--disallowedTools", rules)
                .turn(ALL),
        );
    }
    let rule = |rule: Value| json!({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"});
    let mode = |mode: &str| json!({"type": "setMode", "mode": mode, "destination": "session"});
    for (name, updates) in [
        ("plan", json!([mode("plan")])),
        (
            "bypass",
            json!([mode("bypassPermissions"), rule(json!({"toolName": "Write"}))]),
        ),
        ("no_mode", json!([rule(json!({"toolName": "Bash"})), mode("x")])),
        (
            "no_destination",
            json!([{"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow"}]),
        ),
        ("no_tool", json!([rule(json!({"toolName": "Bash(touch:*)"}))])),
        (
            "no_pattern",
            json!([rule(json!({"toolName": "Bash", "ruleContent": ""}))]),
        ),
        ("wide", json!([rule(json!({"toolName": "Ba*"}))])),
        (
            "denial",
            json!([{"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "deny", "destination": "session"}]),
        ),
    ] {
        all.push(answering(
            &format!("answered_with_{name}"),
            &json!({"updatedPermissions": updates}),
        ));
    }
    all.extend([
        deciding("hook_denies_a_request", &json!({"behavior": "deny"})),
        deciding(
            "hook_denies_a_request_in_vain",
            &json!({"behavior": "deny", "message": 4}),
        ),
        deciding(
            "hook_allows_a_request_in_vain",
            &json!({"behavior": "allow", "updatedPermissions": [mode("x")]}),
        ),
        deciding(
            "hook_allows_a_request",
            &json!({"behavior": "allow", "message": 4}),
        ),
    ]);
    all.extend(agents());
    all.extend(places());
    all.extend(beyond_hooks());
    all.extend(stopped());
    all.extend(behind_links());
    all.push(batches("batches").answer("can_use_tool", |_| {
        Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})))
    }));
    all.push(batches("batches_of_nobody").unprompted());
    let sleeps = [
        ("sleep 25", false),
        ("sleep 30; echo x", false),
        ("sleep 60 > f", false),
        ("sleep 30", true),
    ];
    let sleeps = sleeps.map(|(command, behind)| {
        format!(
            "%tool Bash {}\n",
            json!({"command": command, "run_in_background": behind})
        )
    });
    let ended = Scenario::new("commands_that_only_sleep").flag("--allowedTools", "Bash");
    all.push(ended.turn(&(sleeps.concat() + "%say done")));
    all
}

/// Hooks that hear of calls that are denied, unfit, or of no tool, and that decide where nobody else does.
fn batches(name: &str) -> Scenario {
    let hook = json!([{"hookCallbackIds": ["hook_0"]}]);
    let hooks = json!({"hooks": {"PostToolBatch": hook, "PermissionRequest": hook}});
    let answer = |request: &Value| {
        let decision = match request["input"]["tool_input"]["command"].as_str() {
            Some("touch yes") => json!({"behavior": "allow"}),
            Some("touch no") => json!({"behavior": "deny"}),
            _ => return Some(Reply::Payload(json!({}))),
        };
        let output = json!({"hookEventName": "PermissionRequest", "decision": decision});
        Some(Reply::Payload(json!({ "hookSpecificOutput": output })))
    };
    let calls = [
        "Bash {\"command\": \"touch yes\"}",
        "Bash {\"command\": \"touch no\"}",
        "Bash {\"command\": \"touch undecided\"}",
        "Nope {\"a\": 1}",
        "Bash {\"cmd\": 1}",
        "Edit {\"file_path\": \"none.md\", \"old_string\": \"a\", \"new_string\": \"b\"}",
    ];
    let calls = calls.map(|call| format!("%tool {call}\n"));
    Scenario::with_initialize(name, hooks)
        .answer("hook_callback", answer)
        .turn(&(calls.concat() + "%say done"))
}

/// Rules with relative paths, where the shell goes to another directory: from flags, from a file and for the session.
fn places() -> Vec<Scenario> {
    let settings =
        r#"{"permissions": {"allow": ["Edit(src/**)", "Read"], "deny": ["Read(./.env)", "Read(/secret)"]}}"#;
    let rules = json!([{"toolName": "Edit", "ruleContent": "src/**"}, {"toolName": "Read"}]);
    let session =
        json!([{"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}]);
    let calls = [
        "Read {\"file_path\": \"src/kept.md\"}",
        "Write {\"file_path\": \"src/a.md\", \"content\": \"x\"}",
        "Bash {\"command\": \"cd src\"}",
        "Write {\"file_path\": \"b.md\", \"content\": \"x\"}",
        "Write {\"file_path\": \"src/c.md\", \"content\": \"x\"}",
        "Read {\"file_path\": \"../.env\"}",
        "Read {\"file_path\": \".env\"}",
        "Read {\"file_path\": \"../secret\"}",
        "Read {\"file_path\": \"secret\"}",
        "Bash {\"command\": \"cat .env\"}",
        "Bash {\"command\": \"cat ../.env\"}",
    ];
    let calls = calls.map(|call| format!("%tool {call}\n")).concat();
    let begun = |name: &str| {
        let session = session.clone();
        let files = [".env", "secret", "src/.env", "src/secret", "src/kept.md"];
        let host = Scenario::new(name).answer("can_use_tool", move |request: &Value| {
            let is_first = request["input"]["command"] == "touch 1";
            let updates = if is_first { session.clone() } else { json!([]) };
            Some(Reply::Payload(
                json!({"behavior": "allow", "updatedPermissions": updates}),
            ))
        });
        files
            .into_iter()
            .fold(host, |host, file| host.file(file, "one\n"))
    };
    vec![
        begun("rules_of_flags_and_a_moving_shell")
            .flag("--allowedTools", "Edit(src/**) Read")
            .flag("--disallowedTools", "Read(./.env) Read(/secret)")
            .turn(&format!("{calls}%say done")),
        begun("rules_of_a_file_and_a_moving_shell")
            .file(".claude/settings.json", settings)
            .turn(&format!("{calls}%say done")),
        begun("rules_for_the_session_and_a_moving_shell").turn(&format!(
            "%tool Bash {{\"command\": \"touch 1\"}}\n{calls}%say done"
        )),
        begun("reads_where_edits_are_accepted")
            .flag("--permission-mode", "acceptEdits")
            .flag("--allowedTools", "Read Edit(src/**)")
            .turn(&format!("{calls}%say done")),
        begun("reads_where_a_plan_is_made")
            .flags("--permission-mode plan --allowedTools Read")
            .turn("%tool Read {\"file_path\": \"src/kept.md\"}\n%say done"),
    ]
}

/// Files that rules deny, by links to them.
fn behind_links() -> Vec<Scenario> {
    let mut calls = String::new();
    for path in ["out.txt", "{project}/out.txt", "outdir/e.txt", "../outside.txt"] {
        for (tool, input) in [
            ("Read", json!({"file_path": path})),
            (
                "Edit",
                json!({"file_path": path, "old_string": "one", "new_string": "two"}),
            ),
            ("Write", json!({"file_path": path, "content": "x"})),
        ] {
            calls += &format!("%tool {tool} {input}\n");
        }
        calls += &format!("%tool Bash {}\n", json!({"command": format!("cat {path}")}));
    }
    let rules = [
        ("reading", "Read(//**/outside.txt),Read(//**/e.txt)"),
        ("editing", "Edit(//**/outside.txt),Edit(//**/e.txt)"),
        ("the_directory", "Read(//**/extra/**)"),
        ("the_link", "Read(out.txt),Edit(outdir/**)"),
    ];
    let scene = |name: &str| {
        Scenario::new(name)
            .link("out.txt", "../outside.txt")
            .link("outdir", "../extra")
            .file("../outside.txt", "one\n")
            .file("../extra/e.txt", "one\n")
            .answer("can_use_tool", |_| {
                Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})))
            })
            .turn(&format!("{calls}%say done"))
    };
    let mut all = Vec::new();
    for (name, rules) in rules {
        let denied = scene(&format!("denied_behind_links_{name}"));
        all.push(
            denied
                .flag("--allowedTools", "Read,Edit,Write,Bash")
                .flag("--disallowedTools", rules),
        );
    }
    let allowed =
        scene("allowed_behind_links").flag("--allowedTools", "Read(out.txt),Read(outdir/**),Edit(outdir/**)");
    all.push(allowed);
    all
}

/// Hooks that stop the turn before a call that does not run.
fn stopped() -> Vec<Scenario> {
    let hook = json!({"hooks": {"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}});
    let begun = |name: &str, output: Value| {
        let mut stop = json!({"continue": false, "stopReason": "enough"});
        if !output.is_null() {
            stop["hookSpecificOutput"] = output;
        }
        Scenario::with_initialize(&format!("stopped_before_{name}"), hook.clone())
            .answer("hook_callback", move |_| Some(Reply::Payload(stop.clone())))
    };
    let turn = format!("{TOUCH}\n%say done");
    let decides = |decision: &str| json!({"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": "so"});
    let denies = |_: &Value| Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})));
    vec![
        begun("it_runs", Value::Null)
            .answer("can_use_tool", allow)
            .turn(&turn),
        begun("a_person_denies", Value::Null)
            .answer("can_use_tool", denies)
            .turn(&turn),
        begun("a_rule_denies", Value::Null)
            .flag("--disallowedTools", "Bash(touch:*)")
            .turn(&turn),
        begun("nobody_is_asked", Value::Null)
            .flag("--permission-mode", "dontAsk")
            .turn(&turn),
        begun("it_is_planned", Value::Null)
            .flag("--permission-mode", "plan")
            .turn(&turn),
        begun("it_denies", decides("deny")).turn(&turn),
        begun("it_asks", decides("ask"))
            .answer("can_use_tool", denies)
            .turn(&turn),
        begun("it_allows", decides("allow")).turn(&turn),
        begun("it_fails", Value::Null)
            .flag("--allowedTools", "Bash")
            .turn("%tool Bash {\"command\": \"false\"}\n%say done"),
    ]
}

/// What a hook cannot allow: it allows all, and whoever is asked denies it.
fn beyond_hooks() -> Vec<Scenario> {
    let commands = [
        "echo $(echo a)",
        "echo \"$HOME\"",
        "echo \"$VAR\"",
        "sleep 0 &",
        "{ echo a; }",
        "((1 + 1))",
        "(echo a)",
        "cat <<E\n$X\nE",
        "cat <<E\na\nE",
        "cat <(echo a)",
        "echo 'unclosed",
        "for i in 1; do echo $i; done",
        "cd src && cat kept.md",
        "cd src && touch b",
        "touch a && touch b",
        "find . -exec ls {} ;",
        "cat ../outside.txt",
        "touch ../made.txt",
        "echo x > ../made.txt",
        "echo x > .claude/settings.json",
        "nosuchprogram",
        "rm -rf ~",
        "env X=1 touch c",
        "eval echo a",
        "sudo ls",
        "git -c a=b status",
        "sed -i s/a/b/ .git/config",
    ];
    let wrapped = [
        "timeout 5 touch c",
        "timeout 5 cat ../outside.txt",
        "nohup touch c",
        "time touch c",
        "nice touch c",
        "nice -n 5 touch c",
        "stdbuf -o0 touch c",
        "X=1 touch c",
        "X=1 cat ../outside.txt",
        "env touch c",
        "env X=1 cat ../outside.txt",
        "command touch c",
        "bash -c ls",
        "sh x.txt",
        "xargs touch",
        "exec ls",
        "source x.txt",
        ". x.txt",
        "trap ls EXIT",
        "python3 -c 1",
        "npm test",
        "make all",
        "git push",
        "git push origin main",
        "env ls",
        "sudo touch c",
        "doas ls",
        "ssh host ls",
        "cargo build",
        "docker ps",
        "kill 99999999",
        "./x.txt",
        "alias a=b",
        "export X=1",
        "X=1",
        "let x=1",
        "read x",
        "cat x.txt | bash",
        "echo a | xargs rm",
        "tar cf a.tar x.txt",
        "curl localhost",
    ];
    let files = [
        ("Read", json!({"file_path": "../outside.txt"})),
        ("Read", json!({"file_path": "out.txt"})),
        ("Write", json!({"file_path": "../made.txt", "content": ""})),
        ("Write", json!({"file_path": "{project}/b.md", "content": ""})),
        ("Write", json!({"file_path": "outdir/e.txt", "content": ""})),
        ("Write", json!({"file_path": "outdir/new.txt", "content": ""})),
        (
            "Write",
            json!({"file_path": ".claude/settings.json", "content": "{}"}),
        ),
        ("Write", json!({"file_path": ".git/config", "content": ""})),
        (
            "Edit",
            json!({"file_path": "x.txt", "old_string": "one", "new_string": "two"}),
        ),
        ("mcp__calc__add", json!({"a": 1, "b": 2})),
    ];
    let calls = |calls: &mut dyn Iterator<Item = (&'static str, Value)>| -> String {
        let lines: Vec<String> = calls
            .map(|(tool, input)| format!("%tool {tool} {input}\n"))
            .collect();
        lines.concat() + "%say done"
    };
    let bash = |command: &str| ("Bash", json!({"command": command}));
    let turns = [
        ("commands", calls(&mut commands.into_iter().map(bash))),
        ("wrapped_commands", calls(&mut wrapped.into_iter().map(bash))),
        ("files", calls(&mut files.into_iter())),
    ];
    let hook = json!({"hooks": {"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}, "sdkMcpServers": ["calc"]});
    let mut all = Vec::new();
    for (name, turn) in turns {
        for (by, mode) in [
            ("a_hook", "default"),
            ("a_hook", "plan"),
            ("a_hook", "acceptEdits"),
            ("a_hook", "dontAsk"),
            ("a_hook_that_asks", "default"),
            ("a_hook_that_asks", "acceptEdits"),
            ("a_rule", "default"),
            ("a_rule", "plan"),
            ("a_rule", "acceptEdits"),
            ("nobody", "default"),
            ("nobody", "acceptEdits"),
            ("nobody", "bypassPermissions"),
            // A model for which nothing is checked in plan mode.
            ("a_hook", "unchecked_plan"),
            ("a_rule", "unchecked_plan"),
            ("nobody", "unchecked_plan"),
        ] {
            // What wraps another command is only judged here. A plan ends behind ten refusals of the check that no scripted API has.
            let left_out = (name == "wrapped_commands" && (by != "nobody" || mode == "bypassPermissions"))
                || (name == "commands" && mode == "plan");
            if left_out {
                continue;
            }
            let name = format!("{name}_allowed_by_{by}_in_{mode}");
            let begun = match by {
                "a_hook" | "a_hook_that_asks" => {
                    let decision = if by == "a_hook" { "allow" } else { "ask" };
                    let output = json!({"hookEventName": "PreToolUse", "permissionDecision": decision});
                    let reply = json!({ "hookSpecificOutput": output });
                    Scenario::with_initialize(&name, hook.clone())
                        .answer("hook_callback", move |_| Some(Reply::Payload(reply.clone())))
                }
                "a_rule" => host(&name).flag("--allowedTools", "Bash Read Write Edit mcp__calc"),
                _ => host(&name),
            };
            let begun = match mode {
                "unchecked_plan" => begun
                    .flag("--permission-mode", "plan")
                    .flag("--model", "claude-sonnet-4-5"),
                mode => begun.flag("--permission-mode", mode),
            };
            let begun = begun
                .flag("--disallowedTools", "Read(./.env)")
                .variable("IS_SANDBOX", "1")
                .link("out.txt", "../outside.txt")
                .link("outdir", "../extra")
                .answer("mcp_message", calc)
                .answer("can_use_tool", |_| {
                    Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})))
                });
            let files = [
                "x.txt",
                ".env",
                "src/kept.md",
                ".git/config",
                "../outside.txt",
                "../extra/e.txt",
            ];
            let begun = files
                .into_iter()
                .fold(begun, |begun, file| begun.file(file, "one\n"));
            all.push(begun.turn(&turn));
        }
    }
    all
}

fn agents() -> Vec<Scenario> {
    let own = json!({"hooks": null, "agents": {
        "code-reviewer": {"description": "d", "prompt": "p", "tools": ["Bash", "Glob"]},
        "asker": {"description": "d", "prompt": "p"},
    }});
    let host = |name: &str| Scenario::with_initialize(name, own.clone()).flag("--allowedTools", "Bash");
    let foreground = json!({"run_in_background": false});
    let inner = |more: Value| {
        agent(
            "%tool Bash {\"command\": \"echo deep\"}\n%say inner",
            "code-reviewer",
            more,
        )
    };
    let outer = |call: String| {
        let outer = agent(&format!("{call}\n%say outer"), "asker", foreground.clone());
        format!("{outer}\n%say done")
    };
    let fails = agent(
        "%error 400 n=9\n%say never",
        "general-purpose",
        foreground.clone(),
    );
    let slow = agent(
        "%delay 6000\n%say hi",
        "asker",
        json!({"run_in_background": true}),
    );
    vec![
        host("agent_by_another_name").turn(&format!(
            "{}\n%say done",
            agent("%say hi", "Code_Reviewer", foreground.clone())
        )),
        host("agent_of_an_agent").turn(&outer(inner(json!({})))),
        host("agent_of_an_agent_in_the_foreground").turn(&outer(inner(foreground.clone()))),
        host("agent_that_the_api_fails").turn(&format!("{fails}\n%say done")),
        host("agent_behind_the_end_of_input")
            .prompt(&format!("{slow}\n%say done\n%say woken"))
            .eof(),
    ]
}

/// Calls of `sed`, of which the CLI knows two kinds.
pub(super) fn seds() -> Vec<Scenario> {
    let commands = [
        "echo a > f.txt",
        "sed -i s/a/b/ f.txt",
        "sed -i 's/a/b/gI' f.txt",
        "sed -i.bak 's/a/b/' f.txt",
        "sed --in-place 's/a/b/' f.txt",
        "sed -i -e 's/a/b/' f.txt",
        "sed -i '1d' f.txt",
        "sed -i 's|a|b|' f.txt",
        "sed -i 's/a/b/e' f.txt",
        "sed -i 's/a/b/w out' f.txt",
        "sed -Ei 's/a+/b/' f.txt",
        "sed -i 's/a/b/; s/c/d/' f.txt",
        "sed -i 's/a\\/b/c/' f.txt",
        "sed -i 's/a/b/' f.txt g.txt",
        "sed -i 's/a/b/'",
        "sed -i '' 's/a/b/' f.txt",
        "sed 's/a/b/' f.txt",
        "sed 's/a/b/' f.txt > g.txt",
        "sed -e 's/a/b/' f.txt",
        "sed -n 's/a/b/p' f.txt",
        "sed -n '/x/p' f.txt",
        "sed '1,5p' f.txt",
        "sed -n '1,5p;7p' f.txt",
        "sed -nE p f.txt g.txt",
        "sed -n -e '1p' f.txt",
        "sed -f s.sed f.txt",
        "sed --version",
        "cat f.txt | sed 's/a/b/'",
        "cat f.txt | sed '1d'",
        "cat f.txt | sed -e 's/a/b/'",
        "sed 's/a/b/' f.txt | head -1",
        "sed -n 1p f.txt | cat",
    ];
    let asked = |scenario: Scenario| {
        commands
            .iter()
            .fold(scenario.answer("can_use_tool", allow), |scenario, command| {
                let input = json!({"command": command, "description": "work on a text"});
                scenario.turn(&format!("%tool Bash {input}\n%say done"))
            })
    };
    let in_mode =
        |mode: &str| asked(Scenario::new(&format!("seds_in_{mode}")).flag("--permission-mode", mode));
    let allowed = |mode: &str| {
        let scenario = Scenario::new(&format!("seds_allowed_in_{mode}")).flag("--permission-mode", mode);
        asked(scenario.flag("--allowedTools", "Bash(sed *)"))
    };
    let mut all: Vec<Scenario> = ["default", "acceptEdits", "auto", "plan"].map(in_mode).into();
    all.extend(["default", "acceptEdits", "auto"].map(allowed));
    all
}

/// Commands that the CLI knows to read, and such as look like them; one command in many lines, under rules about it; and uses of files,
/// under rules about those. Of a section's first line the flags follow the name.
pub(super) fn lines() -> Vec<Scenario> {
    let deny = |_: &Value| Some(Reply::Payload(json!({"behavior": "deny", "message": "no"})));
    let mut all: Vec<Scenario> = Vec::new();
    let (mut name, mut flags) = ("", Vec::new());
    let mut count = 0;
    for line in [
        include_str!("reading.txt"),
        include_str!("ruled.txt"),
        include_str!("files.txt"),
    ]
    .iter()
    .flat_map(|text| text.lines())
    {
        if let Some(begun) = line.strip_prefix("# ") {
            let mut parts = begun.split(" | ");
            name = parts.next().unwrap_or_default();
            flags = parts.filter_map(|flag| flag.split_once(' ')).collect();
            count = 0;
            continue;
        }
        if count % 24 == 0 {
            let scenario = Scenario::new(&format!("{name}_{}", count / 24)).answer("can_use_tool", deny);
            let is_about_files =
                |(_, value): &(&str, &str)| value.contains("Read(") || value.contains("Edit(");
            let scenario = if flags.iter().any(is_about_files) {
                let scenario = scenario.file("secret/key.txt", "x\n");
                scenario.file("src/a.rs", "x\n").file(".env", "X=1\n")
            } else {
                scenario
            };
            let with_flags = flags
                .iter()
                .fold(scenario, |scenario, (flag, value)| scenario.flag(flag, value));
            all.push(with_flags);
        }
        count += 1;
        let call = if line.starts_with('%') {
            line.to_owned()
        } else {
            format!("%tool Bash {}", json!({"command": line, "description": "look"}))
        };
        let prompt = format!("{call}\n%say done");
        let scenario = all.pop().expect("a scenario for the line");
        all.push(scenario.turn(&prompt));
    }
    all
}
