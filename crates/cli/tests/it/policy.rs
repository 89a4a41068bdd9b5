//! `--policy`, and what `--verbose` shows of decisions, hooks and MCP servers.

use serde_json::json;

use crate::rig::{Ran, Rig};

const TOML: &str = "default = \"deny\"\nallow = [\"Bash(touch *)\", \"Bash(rm *)\"]\ndeny = [\"Bash(rm *)\", \"Read(./secret.txt)\"]\n";

/// Makes a file, removes another, and reads a third.
fn prompt(rig: &Rig) -> String {
    let read = json!({"file_path": rig.sandbox.write("secret.txt", "the secret").unwrap()});
    rig.sandbox.write("kept.txt", "").unwrap();
    format!(
        "%tool Bash {{\"command\":\"touch made.txt\"}}\n%tool Bash {{\"command\":\"rm kept.txt\"}}\n%tool Read {read}\n%say {{{{last}}}}"
    )
}

fn held(rig: &Rig, ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let project = rig.sandbox.project();
    assert!(project.join("made.txt").exists(), "{ran:?}");
    assert!(project.join("kept.txt").exists(), "{ran:?}");
    // The CLI would read in its working directory without asking anybody.
    assert!(!ran.stdout.contains("the secret"), "{ran:?}");
}

#[tokio::test]
async fn a_policy_allows_and_refuses_and_refusing_wins() {
    let rig = Rig::start().await;
    rig.sandbox.write("policy.toml", TOML).unwrap();
    let ran = rig
        .run(&["--policy", "policy.toml", "--allow", "Bash", &prompt(&rig)])
        .await;
    held(&rig, &ran);
}

#[tokio::test]
async fn json_says_the_same_whatever_the_file_is_called() {
    let rig = Rig::start().await;
    let json =
        json!({"default": "deny", "allow": ["Bash(touch *)"], "deny": ["Bash(rm *)", "Read(./secret.txt)"]});
    rig.sandbox.write("policy", format!("\n{json}")).unwrap();
    let ran = rig.run(&["--policy", "policy", &prompt(&rig)]).await;
    held(&rig, &ran);
}

#[tokio::test]
async fn a_policy_that_is_half_understood_is_none() {
    let rig = Rig::start().await;
    rig.sandbox
        .write("policy.toml", "default = \"deny\"\nallowed = [\"Bash\"]\n")
        .unwrap();
    rig.sandbox
        .write("policy.json", "{\"allow\": [\n\"Bash(\"]}")
        .unwrap();
    for (file, says) in [
        ("policy.toml", "line 2: in `allowed`: unknown field `allowed`"),
        ("policy.json", "line 2: in `allow` the rule `Bash(`"),
        ("none.toml", "because: "),
    ] {
        let ran = rig.run(&["--policy", file, "%say never"]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(&format!("--policy: {file}")), "{ran:?}");
        assert!(ran.stderr.contains(says), "{ran:?}");
    }
    assert!(rig.api.requests().is_empty(), "nothing was started");
}

#[tokio::test]
async fn what_the_policy_leaves_open_is_refused_where_nobody_is() {
    let rig = Rig::start().await;
    rig.sandbox.write("policy.toml", "default = \"ask\"\n").unwrap();
    let touch = "%tool Bash {\"command\":\"touch made.txt\"}\n%say Done.";
    let ran = rig.run(&["--policy", "policy.toml", touch]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("--no-ask"), "{ran:?}");
    assert!(!rig.sandbox.project().join("made.txt").exists());
}

/// Also what the CLI by itself would ask nobody about.
#[tokio::test]
async fn what_the_policy_wants_asked_is_asked() {
    for (policy, is_read) in [
        ("default = \"ask\"", true),
        ("ask = [\"Read(./secret.txt)\"]", false),
    ] {
        let rig = Rig::start().await;
        rig.sandbox.write("policy.toml", policy).unwrap();
        let read = json!({"file_path": rig.sandbox.write("secret.txt", "the secret").unwrap()});
        let prompt = format!("%tool Read {read}\n%say {{{{last}}}}");
        let ran = rig.run(&["--policy", "policy.toml", &prompt]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.stdout.contains("the secret"), is_read, "{policy}: {ran:?}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_policy_leaves_open_is_asked_and_the_decision_is_shown() {
    use crate::terminal::{at_terminal, blocking, ends_with};

    let rig = Rig::start().await;
    rig.sandbox
        .write("policy.toml", "default = \"ask\"\nallow = [\"Bash(touch *)\"]\n")
        .unwrap();
    let prompt =
        "%tool Bash {\"command\":\"touch made.txt\"}\n%tool Bash {\"command\":\"mkdir dir\"}\n%say Done.";
    let mut session = at_terminal(&rig, "run", &["--verbose", "--policy", "policy.toml", prompt]);
    blocking(move || {
        // The CLI itself judges the rule, and asks nobody about what it allows.
        let before = session.exp_string("Allow?").unwrap();
        assert!(!before.contains("permission:"), "{before}");
        session.send_line("n").unwrap();
        session
            .exp_string("permission: Bash denied by the person at the terminal")
            .unwrap();
        session.exp_string("Done.").unwrap();
        ends_with(&mut session, 0);
    })
    .await;
    assert!(rig.sandbox.project().join("made.txt").exists());
    assert!(!rig.sandbox.project().join("dir").exists());
}

/// A tool that a rule takes away is not there for the model.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_may_refuse_plans() {
    use crate::terminal::{at_terminal, blocking, ends_with};

    let rig = Rig::start().await;
    rig.sandbox
        .write("policy.toml", "default = \"ask\"\ndeny = [\"ExitPlanMode\"]\n")
        .unwrap();
    let args = [
        "--permission-mode",
        "plan",
        "--policy",
        "policy.toml",
        "%tool ExitPlanMode {}\n%say Done.",
    ];
    let mut session = at_terminal(&rig, "run", &args);
    blocking(move || {
        let before = session.exp_string("Done.").unwrap();
        assert!(!before.contains("Carry it out?"), "{before}");
        ends_with(&mut session, 0);
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn verbose_shows_hooks_and_mcp_servers() {
    let rig = Rig::start().await;
    let hook = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "echo looked >&2; exit 2"},
    ]}]}});
    rig.sandbox
        .write(".claude/settings.json", hook.to_string())
        .unwrap();
    let config = crate::asking::server(
        &rig,
        &json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}),
    );
    let prompt = "%tool Bash {\"command\":\"touch made.txt\"}\n%tool mcp__desk__ask {}\n%say Done.";
    let args = [
        "--verbose",
        "--isolation",
        "project",
        "--mcp-config",
        &config,
        "--allow",
        "mcp__desk__ask",
        prompt,
    ];
    let ran = rig.run(&args).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for says in [
        "MCP server desk: connected",
        "hook PreToolUse:Bash: error, exit 2: looked",
        "MCP call mcp__desk__ask returned in 0.",
    ] {
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
    assert!(!rig.sandbox.project().join("made.txt").exists());
    // Without it none of that is shown.
    let ran = rig.run(&args[1..]).await;
    assert!(
        !ran.stderr.contains("MCP server") && !ran.stderr.contains("hook Pre"),
        "{ran:?}"
    );
}

#[test]
fn who_would_decide_is_explained() {
    let temp = tempfile::TempDir::new().unwrap();
    let policy = temp.path().join("policy.toml");
    let rules = "default = \"ask\"\nallow = [\"Bash(touch *)\"]\ndeny = [\"Bash(rm *)\"]\n";
    std::fs::write(&policy, rules).unwrap();
    let explain = |call: &[&str]| {
        let mut args = vec!["explain", "--no-ask", "--policy", policy.to_str().unwrap()];
        args.extend(call);
        crate::tool::ran(&mut crate::tool::outrigger(&args))
    };
    let input = json!({"command": "touch x"}).to_string();
    let (text, code) = explain(&["Bash", &input]);
    assert_eq!(code, 0, "{text}");
    for says in [
        "perhaps refused by the rules of the permission handler",
        "(`Bash(rm *)`)",
        "perhaps allowed by the rules of the permission handler",
        "(`Bash(touch *)`)",
        "refused by the permission handler: layer nobody",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    // In the words of the command line.
    let flags = ["Bash", &input, "--deny", "Bash(touch *)"];
    assert!(
        explain(&flags).0.contains("refused by --deny: "),
        "{:?}",
        explain(&flags)
    );
    assert!(text.contains("perhaps decided by --permission-mode: "), "{text}");
    let (_, code) = explain(&["Bash", "rm x"]);
    assert_eq!(code, 2);
    // With such a rule no session starts.
    let (text, code) = explain(&["Bash", &input, "--allow", "Bash(touch"]);
    assert_eq!((text.as_str(), code), ("", 2));
}
