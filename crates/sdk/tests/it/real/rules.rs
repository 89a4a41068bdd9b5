//! Rules of policies agree with the CLI's own: where they differ, they allow less and refuse more.

use std::fmt::Write as _;
use std::fs;

use outrigger::permissions::rules::{Call, Place, Rules};
use outrigger::permissions::{Decider, Outlook, PermissionResult, ask};
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::PermissionMode;
use outrigger::{Event, Options, Policy};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::rig::{PATIENCE, Rig, turn};

/// What the CLI did about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Run,
    Ask,
    Refuse,
}

/// A call, and why the CLI and the rules of this library say different things about it; empty if they don't.
type Case = (&'static str, Value, &'static str);

/// Makes the calls in one turn and tells what became of each.
async fn calls(options: Options, cases: &[Case]) -> Vec<Did> {
    let session = options
        .permissions(ask(|_| async { PermissionResult::deny("it was asked") }))
        .start()
        .await
        .unwrap();
    let mut prompt = String::new();
    for (tool, input, _) in cases {
        writeln!(prompt, "%tool {tool} {input}").unwrap();
    }
    prompt.push_str("%say done\n");
    let mut turn = session.prompt(prompt).await.unwrap();
    let mut did = Vec::new();
    let read = async {
        while let Some(event) = turn.next().await {
            if let Event::ToolResult(result) = event.unwrap() {
                let text = serde_json::to_string(&result.content).unwrap();
                did.push(match () {
                    () if text.contains("it was asked") => Did::Ask,
                    () if text.contains("denied") || text.contains("deny rule") => Did::Refuse,
                    () => Did::Run,
                });
            }
        }
    };
    timeout(PATIENCE * 2, read).await.expect("the turn ends in time");
    session.close().await.unwrap();
    assert_eq!(did.len(), cases.len());
    did
}

fn place(rig: &Rig) -> Place {
    Place::new(rig.sandbox.project()).home(rig.sandbox.home())
}

/// What these rules allow the CLI runs without asking, and the other way round unless a reason is given.
async fn allow_alike(rig: &Rig, rules: &[&str], cases: &[Case]) {
    let options = rig.options().allowed_tools(rules.iter().copied());
    let own = Rules::parse(rules).unwrap();
    for ((tool, input, reason), did) in cases.iter().zip(calls(options, cases).await) {
        let raw = RawJson::encode(input).unwrap();
        let covered = own.covers(&Call::new(tool, &raw, place(rig))).is_ok();
        match (covered, did) {
            (true, Did::Run) | (false, Did::Ask) => {
                assert!(reason.is_empty(), "no difference: {tool} {input}")
            }
            // The safe direction.
            (false, Did::Run) => assert!(!reason.is_empty(), "the CLI runs {tool} {input}"),
            _ => panic!("{tool} {input}: covered {covered}, but the CLI did {did:?}"),
        }
    }
}

/// What the CLI refuses by these rules they refuse too, and the other way round unless a reason is given.
async fn refuse_alike(rig: &Rig, rules: &[&str], cases: &[Case]) {
    let options = rig
        .options()
        .disallowed_tools(rules.iter().copied())
        .allowed_tools(["Bash", "Edit", "WebFetch"]);
    let own = Rules::parse(rules).unwrap();
    for ((tool, input, reason), did) in cases.iter().zip(calls(options, cases).await) {
        let raw = RawJson::encode(input).unwrap();
        let touched = own.touches(&Call::new(tool, &raw, place(rig))).is_some();
        match (touched, did) {
            (true, Did::Refuse) | (false, Did::Run | Did::Ask) => {
                assert!(reason.is_empty(), "no difference: {tool} {input}");
            }
            // The safe direction.
            (true, Did::Run | Did::Ask) => {
                assert!(!reason.is_empty(), "the CLI does not refuse {tool} {input}")
            }
            (false, Did::Refuse) => panic!("only the CLI refuses {tool} {input}"),
        }
    }
}

fn bash(command: &str, reason: &'static str) -> Case {
    ("Bash", json!({ "command": command }), reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_allowed_alike() {
    let rig = Rig::start().await;
    let rules = [
        "Bash(froba *)",
        "Bash(frobb:*)",
        "Bash(frobc*)",
        "Bash(frobd)",
        "Bash(frobe * end)",
        "Bash(find *)",
        "Bash(watch *)",
        "Bash(eval *)",
        "Bash(sh *)",
    ];
    let same = "";
    let cases = [
        bash("froba", same),
        bash("froba x y", same),
        bash("frobax", same),
        bash("  froba \t x  ", same),
        bash("frobb x", same),
        bash("frobbx", same),
        bash("frobb:x", same),
        bash("frobcx y", same),
        bash("frobd", same),
        bash("frobd x", same),
        bash("frobe a b end", same),
        bash("frobe end", same),
        bash("FROBA x", same),
        bash("froba 1 && frobb 2 || frobd; froba | frobb", same),
        bash("froba 1\nfrobb 2", same),
        bash("froba 1 && touch z", same),
        bash("froba 1; touch z", same),
        bash("froba 1 | touch z", same),
        bash("froba 1 & frobb 2", same),
        bash("froba $(touch z)", same),
        bash("froba `touch z`", same),
        bash("froba \"$(touch z)\"", same),
        bash("froba '$(touch z)' 'a; touch z' \"b && c\" d\\;e", same),
        bash("froba <(frobb 2)", same),
        bash("froba > out", same),
        bash("froba > /dev/null 2>&1", same),
        bash("FOO=1 froba x", same),
        bash("timeout 5 froba x", same),
        bash("nice -n 5 nohup froba x", same),
        bash("env froba x", same),
        bash("sudo froba x", same),
        bash("(froba x)", same),
        bash("froba {a,b}", same),
        bash("froba a\u{a0}b", same),
        bash("./froba x", same),
        bash("find . -newer x", same),
        bash("find . -name x -delete", same),
        bash("find . -exec froba {} +", same),
        bash("watch froba", same),
        bash("eval froba", same),
        bash("sh -c 'froba x'", same),
        bash(
            "froba < in",
            "a file is redirected, and rules for commands say nothing of files",
        ),
        bash("froba <<'E'\n$(x)\nE", "here-documents are not told from scripts"),
        bash("LANG=C froba x", "no variable is known to be harmless"),
        bash("froba $HOME", "no variable is known to be harmless"),
        bash("xargs froba", "its input becomes arguments that nobody has seen"),
        bash("stdbuf -oL froba x", "options of wrappers are not read"),
        bash("! froba x", "only plain commands are covered"),
        bash("if froba x; then frobb y; fi", "only plain commands are covered"),
        bash("froba x # comment", "not every shell takes it for a comment"),
        bash("fro\\ba x", "a name that is quoted hides what it is"),
        bash("'froba' x", "a name that is quoted hides what it is"),
        bash("froba x && echo hi", "commands that only read are not known here"),
    ];
    allow_alike(&rig, &rules, &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_refused_alike() {
    let rig = Rig::start().await;
    let same = "";
    let hidden = "the CLI does not look for the command there";
    let cases = [
        bash("froba", same),
        bash("froba x", same),
        bash("frobax", same),
        bash("frobb", same),
        bash("frobb x", same),
        bash("echo 1 && froba 2", same),
        bash("echo 1 | froba 2", same),
        bash("echo 1 & froba 2", same),
        bash("echo $(froba 2)", same),
        bash("echo `froba 2`", same),
        bash("echo \"$(froba 2)\"", same),
        bash("echo <(froba 2)", same),
        bash("FOO=1 froba x", same),
        bash("timeout 5 froba x", same),
        bash("env A=1 froba x", same),
        bash("xargs froba", same),
        bash("sudo froba x", same),
        bash("exec froba x", same),
        bash("watch froba x", same),
        bash("setsid froba x", same),
        bash("(froba x)", same),
        bash("{ froba x; }", same),
        bash("fro\\ba x", same),
        bash("/usr/bin/froba x", same),
        bash("for i in 1; do froba $i; done", same),
        bash("froba() { :; }; froba x", same),
        bash("X=froba; $X 1", same),
        bash("git  push x", same),
        bash("froba x > out", same),
        bash("echo froba x", same),
        bash("echo 'froba x'", same),
        bash("xargs -n1 froba", hidden),
        bash("sh -c 'froba x'", hidden),
        bash("eval froba x", hidden),
        bash("find . -maxdepth 0 -exec froba {} +", hidden),
        bash("git -C . push x", hidden),
        bash("FROBA x", "some file systems take it for the same"),
        bash("frob? x", "the name may be that of a file"),
        bash(
            "echo 'not closed; froba x",
            "what can't be taken apart is refused for naming it",
        ),
        (
            "Bash",
            json!({"command": "frobc", "run_in_background": true}),
            same,
        ),
        (
            "WebFetch",
            json!({"url": "https://EXAMPLE.com./x", "prompt": "x"}),
            same,
        ),
    ];
    let rules = [
        "Bash(froba *)",
        "Bash(frobb)",
        "Bash(git push *)",
        "Bash(run_in_background:true)",
        "WebFetch(domain:example.com)",
    ];
    refuse_alike(&rig, &rules, &cases).await;
}

/// Somewhere to read and write.
fn furnish(rig: &Rig) -> impl Fn(&str) -> String + use<> {
    let root = rig.sandbox.path().to_owned();
    for directory in ["project/src/deep", "project/sub", "far", "out"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for file in [
        "project/sub/f",
        "project/.env",
        "far/a.txt",
        "far/b.md",
        "out/secret",
        "home/h",
    ] {
        fs::write(root.join(file), "x\n").unwrap();
    }
    std::os::unix::fs::symlink("../../out", root.join("project/src/link")).unwrap();
    std::os::unix::fs::symlink("../project/sub", root.join("far/sub")).unwrap();
    move |path| root.join(path).to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_allowed_alike() {
    let rig = Rig::start().await;
    let at = furnish(&rig);
    let write = |path: &str, reason| ("Write", json!({"file_path": at(path), "content": "y"}), reason);
    let read = |path: &str, reason| ("Read", json!({ "file_path": at(path) }), reason);
    let same = "";
    let cases = [
        write("project/src/n1", same),
        write("project/src/deep/n2", same),
        write("project/src/../n3", same),
        write("project/deep/src/n4", same),
        write("project/src/link/n5", same),
        write("project/docs/n6", same),
        write("project/sub/docs/n7", same),
        write("project/top.txt", same),
        write("project/sub/top.txt", same),
        write("project/a/b.md", same),
        write("project/mid/x.txt", same),
        write("project/z/mid/x.txt", same),
        write("project/st/k/n8", same),
        write("project/ba.txt", same),
        write("project/bc.txt", same),
        write("project/anchored.txt", same),
        write("project/sub/anchored.txt", "the CLI takes `./x` for any `x`"),
        write("project/TOP.TXT", "another file, where case counts"),
        write("project/other", same),
        ("Write", json!({"file_path": "src/n9", "content": "y"}), same),
        read("far/a.txt", same),
        read("far/b.md", same),
        read("home/h", same),
    ];
    let far = format!("Read(/{})", at("far/*.txt"));
    let rules = [
        "Edit(src/**)",
        "Edit(/docs/**)",
        "Edit(top.txt)",
        "Edit(*.md)",
        "Edit(mid/x.txt)",
        "Edit(st/*)",
        "Edit(b[ab].txt)",
        "Edit(./anchored.txt)",
        "Read(~/h)",
        &far,
    ];
    allow_alike(&rig, &rules, &cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_refused_alike() {
    let rig = Rig::start().await;
    let at = furnish(&rig);
    let write = |path: &str, reason| ("Write", json!({"file_path": at(path), "content": "y"}), reason);
    let read = |path: &str, reason| ("Read", json!({ "file_path": at(path) }), reason);
    let same = "";
    let cases = [
        read("project/sub/f", same),
        read("project/x/../sub/f", same),
        read("project/sub", same),
        read("project/SUB/f", same),
        read("project/.env", same),
        read("far/sub/f", same),
        read("far/a.txt", same),
        write("project/sub/new", same),
        write("project/b/src/x", same),
        write("project/src/link/n1", same),
        write("project/other", same),
        bash("cat sub/f", same),
        bash("cat .env", same),
        bash("touch src/y", same),
        bash("echo x > src/y", same),
        bash("echo .env", "any mention of a file counts"),
    ];
    let out = format!("Edit(/{})", at("out/**"));
    refuse_alike(
        &rig,
        &["Read(./sub/**)", "Read(.env)", "Edit(src/**)", &out],
        &cases,
    )
    .await;
}

/// A policy knows where its session is, and says beforehand what it does.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_goes_by_the_place_of_its_session() {
    let rig = Rig::start().await;
    let at = furnish(&rig);
    let policy = Policy::allow_list(["Edit(src/**)", "Edit(~/notes/*)"]).unwrap();
    let session = rig
        .options()
        .permission_mode(PermissionMode::Default)
        .permissions(policy)
        .start()
        .await
        .unwrap();
    for (path, runs) in [
        ("project/src/n1", true),
        ("project/n2", false),
        ("project/src/link/n3", false),
        ("home/notes/n4", true),
    ] {
        let input = json!({"file_path": at(path), "content": "y"});
        let (events, _) = turn(&session, &format!("%tool Write {input}\n%say done")).await;
        let result = if runs { "result ok" } else { "result error" };
        assert_eq!(events[1], result, "{path}: {events:?}");
        let explanation = session.explain("Write", &RawJson::encode(&input).unwrap());
        let decisive = explanation.decisive().unwrap();
        let outlook = if runs { Outlook::Allowed } else { Outlook::Refused };
        assert_eq!(
            (decisive.who, decisive.outlook),
            (Decider::Handler, outlook),
            "{explanation}"
        );
    }
    session.close().await.unwrap();
}
