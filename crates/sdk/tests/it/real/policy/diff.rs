//! Random rules and calls, given to the real CLI as its own rules and as those of a policy.
//!
//! What the CLI with its own rules runs, asks about or refuses, it runs, asks about or refuses with the rules of the policy, whose
//! default then answers; and afterwards the same is on disk. `OUTRIGGER_POLICY_SEED` and `OUTRIGGER_POLICY_ROUNDS` choose the
//! rounds (`cargo xtask policy-diff`).

use std::env;

use outrigger::Policy;
use outrigger::options::Tools;
use outrigger::permissions::{PermissionRequest, PermissionResult, PolicyDefault, chain};
use outrigger::protocol::inbound::DecisionReasonType;
use outrigger::protocol::settings::{PermissionSettings, Settings};
use serde_json::{Value, json};

use super::place::{Call, Place, bash, made};

/// Rounds with these seeds are played in every run of the tests.
const SEED: u64 = 1;
const ROUNDS: u64 = 2;

const CALLS: usize = 24;

/// A small generator of numbers: the same seed, the same round.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound as u64).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn some(&mut self, of: &[&str], most: usize) -> Vec<String> {
        let count = self.below(most + 1);
        let mut some: Vec<String> = (0..count).map(|_| self.one(of).to_owned()).collect();
        some.sort();
        some.dedup();
        some
    }
}

const ALLOW: &[&str] = &[
    "Bash",
    "Bash(cat *)",
    "Bash(rm *)",
    "Bash(cp *)",
    "Bash(touch *)",
    "Bash(mkdir:*)",
    "Bash(echo *)",
    "Bash(awk *)",
    "Bash(sed *)",
    "Bash(cd *)",
    "Bash(git status *)",
    "Bash(git log *)",
    "Bash(env *)",
    "Bash(find *)",
    "Bash(sh *)",
    "Bash(touch a * c)",
    "Bash(npm run test)",
    "Read",
    "Read(./**)",
    "Read(src/**)",
    "Read(~/notes/**)",
    "Edit",
    "Edit(./**)",
    "Edit(src/**)",
    "Edit(*.md)",
    "Edit(/docs/**)",
    "Edit(~/notes/**)",
    "WebFetch(domain:example.com)",
    "Agent(Explore)",
];

const STRICT: &[&str] = &[
    "Bash(rm *)",
    "Bash(touch a *)",
    "Bash(cat:*)",
    "Bash(git status *)",
    "Bash(echo *)",
    "Bash(run_in_background:true)",
    "Read(.env)",
    "Read(./sub/**)",
    "Read(//**/secret)",
    "Edit(src/**)",
    "Edit(.git/**)",
    "Edit(*.md)",
    "WebFetch",
    "mcp__*",
];

/// Paths, `%` for the root of everything. Some begin or end with what the CLI trims.
const PATHS: &[&str] = &[
    "top.txt",
    "./top.txt",
    "src/new",
    "src/../top.txt",
    "src/link/secret",
    "src/link/new",
    "sub/f",
    ".env",
    "docs/a.md",
    "a.md",
    "../out/secret",
    "~/notes/a",
    "~/.ssh/id_test",
    "%/out/secret",
    "%/out/new",
    "%/project/.env",
    "%/project/src/x",
    "%/home/notes/b",
    ".claude/settings.json",
    ".git/hooks/pre-commit",
    ".git/config",
    ".mcp.json",
    ".bashrc",
    ".vscode/tasks.json",
    " %/out/secret",
    "\t%/out",
    "%/out ",
    "\u{a0}%/out",
    " .env",
    "cafe\u{301}.md",
    "/proc/self/root%/out/secret",
    "//%/out/secret",
    "TOP.TXT",
    ".ENV",
];

/// Commands, `@` for a path.
const COMMANDS: &[&str] = &[
    "cat @",
    "rm -f @",
    "rm -rf @",
    "cp top.txt @",
    "cp @ stolen",
    "touch @",
    "mkdir -p @",
    "echo hi > @",
    "echo hi >> @",
    "sed -i s/x/y/ @",
    "sed -n 1p @",
    "awk '{print}' @",
    "awk 'BEGIN{system(\"touch pwned\")}'",
    "git status",
    "git log -1",
    "git -C @ status",
    "find @ -name f",
    "find . -name f -delete",
    "find . -maxdepth 1 -exec touch pwned {} +",
    "env touch @",
    "sh -c 'touch pwned'",
    "eval touch pwned",
    "FOO=1 touch a",
    "touch a b c",
    "touch a x",
    "cat < @",
    "cat <<E\n@\nE",
    "echo $(cat @)",
    "echo `touch pwned`",
    "(touch pwned)",
    "touch a & touch b",
    "timeout 5 touch a",
    "nohup touch a",
    "xargs touch < top.txt",
    "X=touch; $X pwned",
    "to\\uch a",
    "'touch' a",
    "echo {a,b}",
    "echo a # touch b",
    "! touch a",
    "if true; then touch a; fi",
    "echo <(touch pwned)",
    "echo <(b<<E\n ",
    "echo\t<($'\\",
    "echo x >>& 1",
    "true",
    "ls @",
    "pwd",
    "echo 'a",
    "touch a\u{a0}b",
    "cd src && cat @",
    "cd %/out && touch x",
    "cd src/r && git status",
    "set -x",
    "echo ~/x",
];

const JOINTS: &[&str] = &[" && ", " || ", "; ", " | ", "\n", " & "];

fn path(dice: &mut Dice, place: &Place) -> String {
    dice.one(PATHS).replace('%', place.at("").trim_end_matches('/'))
}

fn command(dice: &mut Dice, place: &Place) -> String {
    let mut line = String::new();
    for part in 0..=[0, 0, 0, 1, 1, 2][dice.below(6)] {
        if part > 0 {
            line.push_str(dice.one(JOINTS));
        }
        let path = path(dice, place);
        let root = place.at("");
        let command = dice.one(COMMANDS).replace('@', path.trim());
        line.push_str(&command.replace('%', root.trim_end_matches('/')));
    }
    line
}

fn call(dice: &mut Dice, place: &Place) -> Call {
    let path = path(dice, place);
    match dice.below(10) {
        0 => ("Read", json!({ "file_path": path })),
        1 => ("Write", json!({"file_path": path, "content": "y"})),
        2 => (
            "Edit",
            json!({"file_path": path, "old_string": "x", "new_string": "y"}),
        ),
        3 => (
            "Grep",
            json!({"pattern": "x|SECRET", "path": path, "output_mode": "content"}),
        ),
        4 => ("Glob", json!({"pattern": "*", "path": path})),
        5 => {
            let mut input: Value = json!({"command": command(dice, place)});
            let (field, value) =
                [("timeout", json!(5000)), ("description", json!("touch"))][dice.below(2)].clone();
            input[field] = value;
            ("Bash", input)
        }
        _ => bash(&command(dice, place)),
    }
}

struct Round {
    default: PolicyDefault,
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

impl Round {
    fn new(dice: &mut Dice) -> Self {
        let defaults = [
            PolicyDefault::Deny,
            PolicyDefault::Deny,
            PolicyDefault::Ask,
            PolicyDefault::Allow,
        ];
        let asks = dice.below(2);
        Self {
            default: defaults[dice.below(4)],
            allow: dice.some(ALLOW, 6),
            ask: dice.some(STRICT, asks * 2),
            deny: dice.some(STRICT, 3),
        }
    }

    fn policy(&self) -> Policy {
        let policy = Policy::new(self.default).allow(&self.allow);
        policy.ask(&self.ask).deny(&self.deny)
    }

    fn settings(&self) -> Settings {
        let mut permissions = PermissionSettings::default();
        permissions.ask = Some(self.ask.clone());
        let mut settings = Settings::default();
        settings.permissions = Some(permissions);
        settings
    }
}

/// Plays a round, and returns what the law would not have.
async fn play(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let round = Round::new(&mut dice);
    // The same place twice, since what runs changes it.
    let (alone, with) = (Place::new().await, Place::new().await);
    let seed_of_calls = dice.roll();
    let calls = |place: &Place| -> Vec<Call> {
        let mut dice = Dice(seed_of_calls);
        (0..CALLS).map(|_| call(&mut dice, place)).collect()
    };
    let tools = ["Bash", "Read", "Edit", "Write", "Glob", "Grep"];

    // The CLI with its own rules. Somebody answers as the default does, so that the same comes to be on disk.
    let default = round.default;
    let has_ask = !round.ask.is_empty();
    let options = alone
        .rig
        .options()
        .tools(Tools::only(tools))
        .allowed_tools(round.allow.iter().cloned())
        .disallowed_tools(round.deny.iter().cloned())
        .settings(round.settings())
        .can_use_tool(move |request: PermissionRequest| async move {
            let reasons = [DecisionReasonType::Rule, DecisionReasonType::SubcommandResults];
            let by_rule = request.matched_ask_rule.is_some()
                || reasons
                    .iter()
                    .any(|reason| request.decision_reason_type.as_ref() == Some(reason));
            match default == PolicyDefault::Allow && !(has_ask && by_rule) {
                true => PermissionResult::allow(),
                false => PermissionResult::deny("it was asked"),
            }
        });
    let expected = made(options, &calls(&alone)).await;

    let person = async |_| PermissionResult::deny("it was asked");
    let options = with.rig.options().tools(Tools::only(tools));
    let options = match default {
        PolicyDefault::Ask => {
            options.permissions(chain().layer("policy", round.policy()).last("person", person))
        }
        _ => options.permissions(round.policy()),
    };
    let got = made(options, &calls(&with)).await;

    let mut wrong = Vec::new();
    let rules = format!(
        "seed {seed}, default {default:?}, allow {:?}, ask {:?}, deny {:?}",
        round.allow, round.ask, round.deny
    );
    for ((tool, input), ((did, said), (does, says))) in calls(&with).iter().zip(expected.iter().zip(&got)) {
        if did != does {
            wrong.push(format!(
                "{rules}: {tool} {input}: the CLI {did:?} ({said}), with the policy {does:?} ({says})"
            ));
        }
    }
    let relative = |place: &Place| -> Vec<(String, String)> {
        let root = place.at("");
        let of = |text: String| text.replace(root.trim_end_matches('/'), "%");
        place
            .everything()
            .into_iter()
            .map(|(name, text)| (of(name), of(text)))
            .collect()
    };
    if relative(&alone) != relative(&with) {
        wrong.push(format!(
            "{rules}: the files differ: {:?} and {:?}",
            relative(&alone),
            relative(&with)
        ));
    }
    wrong
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_does_as_the_cli_with_its_rules() {
    let first = number("OUTRIGGER_POLICY_SEED").unwrap_or(SEED);
    let rounds = number("OUTRIGGER_POLICY_ROUNDS").unwrap_or(ROUNDS);
    let mut wrong = Vec::new();
    let mut ran = 0;
    for seed in first..first.saturating_add(rounds) {
        wrong.extend(play(seed).await);
        ran += 1;
    }
    println!("{ran} rounds of {CALLS} calls from seed {first}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(ran, rounds);
}
