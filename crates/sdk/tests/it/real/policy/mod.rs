//! What a policy allows the real CLI runs by itself with the same rules; what the CLI refuses by a rule, or asks about, no rule of
//! a policy allows.

mod diff;
mod place;
mod unasked;

use std::fs;

use outrigger::hooks::{self, HookOutput, PreToolUseOutput};
use outrigger::options::{OptionsError, Tools};
use outrigger::permissions::{
    Opinion, PermissionAllow, PermissionDecision, PermissionRequest, PermissionResult, PolicyDefault, chain,
    layer, one_at_a_time,
};
use outrigger::protocol::settings::Settings;
use outrigger::protocol::shared::PermissionMode;
use outrigger::{Claim, Policy};
use serde_json::{Value, json};

use self::place::{Did, Place, bash, edit, made, read, write};

/// In each case the CLI, given the rules as its own, asks: it does not take them for leave to do this.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_cli_asks_about_in_spite_of_a_rule_is_refused() {
    let place = Place::new().await;
    let at = |path: &str| place.at(path);
    let fsmonitor = [
        write(&at("project/src/r/HEAD"), "ref: refs/heads/x\n"),
        write(
            &at("project/src/r/config"),
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch ../../../out/PWNED; false\"\n",
        ),
        write(&at("project/src/r/objects/x"), ""),
        write(&at("project/src/r/refs/heads/x"), ""),
        bash("cd src/r && git status"),
    ];
    let rules_and_calls: Vec<(Policy, Vec<(&str, Value)>)> = vec![
        (
            Policy::read_only(),
            vec![
                read(&at("home/.ssh/id_test")),
                read(&at("out/secret")),
                read("~/.ssh/id_test"),
                read(&at("project/src/link/secret")),
                bash(&format!("cat {}", at("out/secret"))),
            ],
        ),
        (
            Policy::allow_list(["Edit(./**)"]),
            [
                ".claude/settings.json",
                ".claude/skills/x/SKILL.md",
                ".git/hooks/pre-commit",
                ".git/config",
                ".mcp.json",
                ".vscode/tasks.json",
                ".bashrc",
            ]
            .iter()
            .map(|path| write(&at(&format!("project/{path}")), "{}"))
            .chain([write(&at("project/src/link/new"), "x")])
            .collect(),
        ),
        (
            Policy::allow_list([
                "Bash(cat *)",
                "Bash(rm *)",
                "Bash(cp *)",
                "Bash(touch *)",
                "Bash(sed *)",
            ]),
            vec![
                bash(&format!("cat {}", at("out/secret"))),
                bash(&format!("rm -rf {}", at("out/secret"))),
                bash(&format!("cp top.txt {}", at("out/copy"))),
                bash(&format!("touch {}", at("out/touched"))),
                bash("cp top.txt .git/hooks/pre-commit"),
                bash("touch .claude/settings.json"),
            ],
        ),
        (
            Policy::allow_list(["Bash(awk *)"]),
            vec![bash("awk 'BEGIN{system(\"touch AWKPWN\")}'")],
        ),
        (
            Policy::allow_list(["Edit(src/**)", "Bash(cd *)", "Bash(git status *)"]),
            fsmonitor.to_vec(),
        ),
        // The CLI trims these paths, and hands them on as the model wrote them.
        (
            Policy::allow_list(["Read(./**)"]),
            vec![
                (
                    "Grep",
                    json!({"pattern": "SECRET", "path": format!(" {}", at("out"))}),
                ),
                (
                    "Grep",
                    json!({"pattern": "SECRET", "path": format!("\t{}", at("out"))}),
                ),
                ("Glob", json!({"pattern": "*", "path": format!(" {}", at("out"))})),
            ],
        ),
    ];
    for (policy, calls) in rules_and_calls {
        let options = place
            .rig
            .options()
            .tools(Tools::only(["Bash", "Read", "Edit", "Write", "Glob", "Grep"]));
        let before = place.outside();
        let did = made(options.permissions(policy.clone()), &calls).await;
        for ((tool, input), (did, text)) in calls.iter().zip(&did) {
            // The chain of calls that leads to code of the model's choice begins with harmless ones.
            let harmless = input["file_path"]
                .as_str()
                .is_some_and(|path| path.contains("/src/r/"));
            assert!(
                harmless || *did != Did::Ran,
                "{policy:?}: {tool} {input} ran: {text}"
            );
            assert!(!text.contains("TOPSECRET"), "{policy:?}: {tool} {input} leaked");
        }
        assert_eq!(place.outside(), before, "{policy:?}");
        let project = place.rig.sandbox().project();
        assert!(!project.join("AWKPWN").exists() && !project.join(".mcp.json").exists());
    }
}

/// And what rules are written for runs.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_allows_runs() {
    let place = Place::new().await;
    let policy = Policy::read_only().allow([
        "Edit(src/**)",
        "Bash(touch *)",
        "Bash(mkdir *)",
        "Read(~/notes/**)",
    ]);
    let calls = [
        read(&place.at("project/top.txt")),
        read("top.txt"),
        read(&place.at("home/notes/a")),
        write(&place.at("project/src/new"), "x"),
        edit(&place.at("project/src/new"), "x", "y"),
        bash("touch made && mkdir dir"),
        bash("cat top.txt | grep x"),
    ];
    for (did, text) in made(place.rig.options().permissions(policy), &calls).await {
        assert_eq!(did, Did::Ran, "{text}");
    }
    assert!(place.rig.sandbox().project().join("made").exists());
}

/// Also for calls about which the CLI asks nobody, wherever the policy is.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_refuses_is_refused_wherever_the_policy_is() {
    let place = Place::new().await;
    let out = format!("Read(/{})", place.at("out/**"));
    let deny = ["Read(.env)", "Bash(touch *)", out.as_str()];
    let allows = || layer(|_| async { Opinion::Decided(PermissionDecision::allow()) });
    let all = || Policy::allow_all().deny(deny);
    let passes = || Policy::ask_all().deny(deny);
    let options = || {
        place
            .rig
            .options()
            .tools(Tools::only(["Bash", "Read", "Grep", "Glob"]))
    };
    let handled = [
        options().permissions(all()),
        options().permissions(Policy::read_only().deny(deny)),
        options().permissions(chain().layer("yes", allows()).last("policy", all())),
        options().permissions(chain().layer("yes", allows()).layer("policy", passes()).or_deny()),
        options().permissions(chain().layer("yes", allows()).last(
            "inner",
            chain().layer("policy", passes()).last("yes", Policy::allow_all()),
        )),
        options().permissions(one_at_a_time(
            chain().layer("yes", allows()).last("policy", all()),
        )),
    ];
    let calls = [
        read(".env"),
        read(&place.at("project/.env")),
        read(&place.at("out/secret")),
        bash("cat .env"),
        bash("touch made"),
        bash("true && touch made"),
        ("Grep", json!({"pattern": "SECRET", "path": ".env"})),
        (
            "Grep",
            json!({"pattern": "SECRET", "path": format!(" {}", place.at("out"))}),
        ),
        (
            "Grep",
            json!({"pattern": "SECRET", "path": format!("\t{}", place.at("out"))}),
        ),
    ];
    for (index, options) in handled.into_iter().enumerate() {
        for ((tool, input), (_, text)) in calls.iter().zip(made(options, &calls).await) {
            assert!(
                !text.contains("TOPSECRET"),
                "{index}: {tool} {input} leaked: {text}"
            );
        }
        assert!(!place.rig.sandbox().project().join("made").exists(), "{index}");
    }
}

/// A rule that asks has somebody asked, and only what it means.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_wants_asked_is_asked() {
    let place = Place::new().await;
    let rules = || Policy::new(PolicyDefault::Ask).allow(["Bash(touch *)"]);
    let policy = rules().ask(["Bash(touch a *)", "Read(./top.txt)"]);
    let person = || async |_| PermissionResult::deny("it was asked");
    let calls = [
        bash("touch b"),
        bash("touch a c"),
        bash("touch b && touch a c"),
        read("top.txt"),
    ];
    let expected = [Did::Ran, Did::Asked, Did::Asked, Did::Asked];
    let options = place
        .rig
        .options()
        .permissions(chain().layer("rules", policy.clone()).last("person", person()));
    let did = made(options, &calls).await;
    assert_eq!(
        did.iter().map(|(did, _)| *did).collect::<Vec<_>>(),
        expected,
        "{did:?}"
    );

    // By itself, whatever its default: nobody is there to be asked. What no rule is about goes by the default.
    for (default, other) in [(PolicyDefault::Deny, false), (PolicyDefault::Allow, true)] {
        let policy =
            Policy::new(default).and(Policy::allow_all().ask(["Bash(touch a *)", "Read(./top.txt)"]));
        let calls = [bash("touch a c"), read("top.txt"), bash("mkdir d")];
        let did = made(place.rig.options().permissions(policy), &calls).await;
        assert!(did[0].0 != Did::Ran && did[1].0 != Did::Ran, "{did:?}");
        assert_eq!(did[2].0 == Did::Ran, other, "{did:?}");
    }
}

/// A rule for a path of the session's directory, however the rules that ask get to the CLI.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_asks_holds_where_the_session_is() {
    let place = Place::new().await;
    let odd = "o[d](d)";
    fs::create_dir_all(place.rig.sandbox().project().join(odd)).unwrap();
    let settings = |json| serde_json::from_value::<Settings>(json).unwrap();
    for (directory, with) in [
        ("", json!(null)),
        (odd, json!({"cleanupPeriodDays": 5})),
        // Behind initialize, since variables may be secrets.
        ("", json!({"env": {"A": "b"}})),
    ] {
        let directory = place.rig.sandbox().project().join(directory);
        let write = |path: &str| {
            let input = json!({"file_path": directory.join(path), "content": "x"});
            ("Write", input)
        };
        let policy = Policy::allow_all().ask(["Edit(/asked)"]);
        let mut options = place.rig.options().cwd(&directory).permissions(policy);
        if with.is_object() {
            options = options.settings(settings(with.clone()));
        }
        let did = made(options, &[write("asked"), write("sub/asked")]).await;
        assert_eq!(
            did.iter().map(|(did, _)| *did).collect::<Vec<_>>(),
            [Did::Asked, Did::Ran],
            "{with}: {did:?}"
        );
    }
}

/// The rules of inline settings, and of a claim's, begin there as well.
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_settings_hold_where_the_session_is() {
    let place = Place::new().await;
    let denies: Settings =
        serde_json::from_value(json!({"permissions": {"deny": ["Edit(/denied)"]}})).unwrap();
    let policy = Policy::allow_all().ask(["Edit(/asked)"]);
    let options = place.rig.options().permissions(policy);
    let at = |path: &str| write(&place.at(&format!("project/{path}")), "x");
    let writes = [at("denied"), at("asked"), at("sub/denied")];
    let expected = [Did::Refused, Did::Asked, Did::Ran];

    let did = made(options.clone().settings(denies.clone()), &writes).await;
    assert_eq!(
        did.iter().map(|(did, _)| *did).collect::<Vec<_>>(),
        expected,
        "{did:?}"
    );
    // A spare asks about the name wherever it is.
    fs::remove_file(place.at("project/sub/denied")).unwrap();
    let claim = Claim::new(place.rig.sandbox().project()).settings(denies);
    let session = options.prewarm().await.unwrap().claim(claim).await.unwrap();
    let did = place::calls(&session, &writes).await;
    assert_eq!(
        did.iter().map(|(did, _)| *did).collect::<Vec<_>>(),
        expected,
        "{did:?}"
    );
    session.close().await.unwrap();
}

/// What the CLI can't read it does not hold against the rules: a policy that allows the rest does not allow that.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_cli_cannot_read_gets_past_no_rule_that_asks() {
    let place = Place::new().await;
    let calls = [
        "$(echo touch) made",
        "{touch,made}",
        "touch${IFS}made",
        "coproc touch made",
        "a=(touch made); \"${a[@]}\"",
        "$'touch' made",
        "tou\\\nch made",
        "echo $((`touch made`1))",
        "mapfile -C 'touch made #' -c 1 <<< a",
    ];
    let calls: Vec<_> = calls.iter().map(|line| bash(line)).collect();
    let policy = Policy::allow_all().ask(["Bash(touch *)"]);
    let did = made(place.rig.options().permissions(policy), &calls).await;
    assert!(!place.rig.sandbox().project().join("made").exists(), "{did:?}");
}

/// Settings of the session, and a claim's or later changes of them, take no rule of a policy away.
#[tokio::test(flavor = "multi_thread")]
async fn settings_leave_the_rules_of_a_policy_alone() {
    let place = Place::new().await;
    let settings: Settings = serde_json::from_value(
        json!({"permissions": {"ask": ["Bash(mkdir *)"], "allow": ["Bash(touch *)"]}}),
    )
    .unwrap();
    let policy = Policy::allow_all().ask(["Bash(touch a *)"]).deny(["Read(.env)"]);
    let session = place
        .rig
        .options()
        .settings(settings)
        .permissions(policy)
        .start()
        .await
        .unwrap();
    let change = json!({"permissions": {"allow": ["Bash", "Read"]}});
    session
        .apply_flag_settings(serde_json::from_value(change).unwrap())
        .await
        .unwrap();
    let did = place::calls(&session, &[bash("touch a c"), read(".env"), bash("touch b")]).await;
    assert_eq!(
        did.iter().map(|(did, _)| *did).collect::<Vec<_>>(),
        [Did::Asked, Did::Refused, Did::Ran],
        "{did:?}"
    );
    // Nor does what is changed while it runs.
    session
        .set_permission_mode(PermissionMode::AcceptEdits)
        .await
        .unwrap();
    session.reinitialize().await.unwrap();
    let did = place::calls(&session, &[bash("touch a c"), read(".env")]).await;
    assert_eq!((did[0].0, did[1].0), (Did::Asked, Did::Refused), "{did:?}");
    session.close().await.unwrap();

    let policy = Policy::allow_all().ask(["Bash(touch a *)"]).deny(["Read(.env)"]);
    let spare = place.rig.options().permissions(policy).prewarm().await.unwrap();
    let change = json!({"permissions": {"ask": [], "allow": ["Bash", "Read"]}});
    let claim = Claim::new(place.rig.sandbox().project()).settings(serde_json::from_value(change).unwrap());
    let session = spare.claim(claim).await.unwrap();
    let did = place::calls(&session, &[bash("touch a c"), read(".env"), bash("touch b")]).await;
    assert_eq!(
        did.iter().map(|(did, _)| *did).collect::<Vec<_>>(),
        [Did::Asked, Did::Refused, Did::Ran],
        "{did:?}"
    );
    session.close().await.unwrap();

    let file = place.rig.sandbox().write("settings.json", "{}").unwrap();
    let error = place
        .rig
        .options()
        .settings(file)
        .permissions(Policy::ask_all().ask(["Bash(x)"]))
        .check()
        .unwrap_err();
    assert!(matches!(error, OptionsError::Conflict { .. }), "{error}");
}

/// The CLI applies no rule to an input that comes with an answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_brings_in_no_input_that_a_rule_refuses() {
    let place = Place::new().await;
    let call = [bash("touch made")];
    let changes = |command: &str| {
        let input = json!({ "command": command });
        move |_: PermissionRequest| {
            let allow = PermissionAllow::default().updated_input(&input).unwrap();
            async move { PermissionResult::Allow(allow) }
        }
    };
    let rules = || chain().layer("rules", Policy::ask_all().deny(["Bash(rm *)"]));
    let top = place.at("project/top.txt");
    for options in [
        place
            .rig
            .options()
            .permissions(rules().last("me", changes("rm top.txt"))),
        place
            .rig
            .options()
            .disallowed_tools(["Bash(rm *)"])
            .can_use_tool(changes("rm top.txt")),
    ] {
        let did = made(options, &call).await;
        assert!(did[0].1.contains("PreToolUse"), "{did:?}");
        assert!(fs::exists(&top).unwrap(), "{did:?}");
    }
    // As it was, it is the input that the CLI has judged. So is one that a hook has changed.
    let did = made(
        place
            .rig
            .options()
            .permissions(rules().last("me", changes("touch made"))),
        &call,
    )
    .await;
    assert!(fs::exists(place.at("project/made")).unwrap(), "{did:?}");
    let hook = hooks::pre_tool_use(async |_, _| {
        let input = json!({"command": "rm top.txt"});
        HookOutput::specific(PreToolUseOutput::default().updated_input(&input).unwrap())
    });
    let yes = async |_| PermissionResult::allow();
    let did = made(
        place
            .rig
            .options()
            .hook(hook)
            .permissions(rules().last("me", yes)),
        &call,
    )
    .await;
    assert_eq!(did[0].0, Did::Refused, "{did:?}");
    assert!(fs::exists(&top).unwrap(), "{did:?}");
    // Where no rule is about the tool, an answer may change what it likes.
    let did = made(place.rig.options().can_use_tool(changes("rm top.txt")), &call).await;
    assert!(!fs::exists(&top).unwrap(), "{did:?}");
}

/// The documentation says that rules do not reach so far: the CLI asks about these, and runs them if it is told to.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_that_refuses_does_not_see_is_asked_about() {
    let place = Place::new().await;
    let seen = [
        "froba",
        "echo 1 && froba 2",
        "echo $(froba 2)",
        "FOO=1 froba x",
        "env A=1 froba x",
        "sudo froba x",
        "xargs froba",
        "fro\\ba x",
        "/usr/bin/froba x",
    ];
    let unseen = [
        "sh -c 'froba x'",
        "eval froba x",
        "find . -maxdepth 0 -exec froba {} +",
        "git -C . push x",
        "xargs -I{} froba x",
        "$'froba' x",
        "froba${IFS}x",
        "$(echo froba) x",
    ];
    let person = async |_| PermissionResult::deny("it was asked");
    let policy = Policy::ask_all().deny(["Bash(froba *)", "Bash(git push *)"]);
    let options = place
        .rig
        .options()
        .permissions(chain().layer("rules", policy).last("person", person));
    let calls: Vec<_> = seen.iter().chain(&unseen).map(|line| bash(line)).collect();
    let did = made(options, &calls).await;
    for (index, ((_, input), (did, text))) in calls.iter().zip(&did).enumerate() {
        let expected = if index < seen.len() {
            Did::Refused
        } else {
            Did::Asked
        };
        assert_eq!(*did, expected, "{input}: {text}");
    }
}

/// The documentation says for which other ways to read a rule about reading holds.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_about_reading_does_not_see() {
    let place = Place::new().await;
    let file = place.at("project/secret.txt");
    std::fs::write(&file, "ZEBRA\n").unwrap();
    let grep = |more: Value| {
        let mut input = json!({"pattern": "Z.BRA", "output_mode": "content"});
        let fields = input.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        ("Grep", input)
    };
    let read = [read("secret.txt")];
    let searched = [grep(json!({"path": "secret.txt"})), grep(json!({"path": file}))];
    let named_by_command = [bash("cat secret.txt"), bash("grep Z.BRA secret.txt")];
    let found = [
        grep(json!({})),
        grep(json!({"path": "."})),
        grep(json!({"glob": "secret*"})),
        ("Glob", json!({"pattern": "secret.*"})),
    ];
    let found_by_command = [bash("grep -r Z.BRA ."), bash("cat *.txt")];
    // Commands that the CLI does not know, or cannot check: it asks.
    let asked = [
        bash("less secret.txt"),
        bash("dd if=secret.txt"),
        bash("{ cat secret.txt; }"),
        bash("echo \"$(cat secret.txt)\""),
    ];
    let options = || {
        let tools = Tools::only(["Bash", "Read", "Grep", "Glob"]);
        place.rig.options().tools(tools)
    };
    let person = || async |_| PermissionResult::deny("it was asked");
    let rule = ["Read(./secret.txt)"];
    let mut wrong = Vec::new();
    for (policy, runs) in [
        (Policy::ask_all().deny(rule), [false, false, false, false, true]),
        (Policy::ask_all().ask(rule), [false, false, true, true, true]),
        (Policy::ask_all().deny(["Read"]), [false, true, true, true, true]),
        (Policy::ask_all().ask(["Read"]), [false, true, true, true, true]),
    ] {
        let calls = [
            &read[..],
            &searched[..],
            &named_by_command[..],
            &found[..],
            &found_by_command[..],
        ];
        let expected = calls
            .iter()
            .zip(runs)
            .flat_map(|(calls, runs)| calls.iter().map(move |_| runs));
        let calls = calls.concat();
        let layers = chain().layer("rules", policy.clone()).last("person", person());
        let did = made(options().permissions(layers), &calls).await;
        for (((tool, input), (did, text)), expected) in calls.iter().zip(&did).zip(expected) {
            let is_told = text.contains("ZEBRA") || text.contains("secret.txt") && *did == Did::Ran;
            if is_told != expected {
                wrong.push(format!("{policy:?}: {tool} {input}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let layers = chain()
        .layer("rules", Policy::ask_all().deny(rule))
        .last("person", person());
    for (did, text) in made(options().permissions(layers), &asked).await {
        assert_eq!(did, Did::Asked, "{text}");
    }
    let did = made(options().permissions(Policy::deny_list(rule)), &asked[1..]).await;
    assert!(did.iter().all(|(_, text)| text.contains("ZEBRA")), "{did:?}");
}
