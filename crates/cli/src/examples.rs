//! Examples for `--help`, by the command that they are of.

use clap::Command;

/// The words behind `outrigger` that name a command, and examples of it: what it is for, and what is typed.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "",
        &[
            ("See what it does, without a key", "outrigger demo"),
            ("Ask one thing", "outrigger run \"Why does the build fail?\""),
            ("Talk", "outrigger chat --model opus"),
            ("Find out why sessions do not start", "outrigger doctor"),
        ],
    ),
    (
        "run",
        &[
            ("Ask one thing", "outrigger run \"Why does the build fail?\""),
            (
                "Attach what another command wrote",
                "git diff | outrigger run --output text \"Write a commit message for this.\"",
            ),
            (
                "Let it change files and run the tests",
                "outrigger run --permission-mode acceptEdits --allow 'Bash(cargo test:*)' \"Fix the failing test.\"",
            ),
            (
                "Show it a picture",
                "outrigger run --image screen.png \"What is wrong here?\"",
            ),
            (
                "For scripts: one JSON object, ten minutes at most, nobody is asked",
                "outrigger run --output json --timeout 10m --no-ask \"List the public API.\"",
            ),
            (
                "Go on with an earlier session, by its title or its id",
                "outrigger run --resume \"Portable paths\" \"And on Windows?\"",
            ),
        ],
    ),
    (
        "chat",
        &[
            ("Talk in this directory", "outrigger chat"),
            (
                "Go on where the last conversation ended",
                "outrigger chat --continue",
            ),
            (
                "With a profile of the configuration file",
                "outrigger chat --profile work",
            ),
        ],
    ),
    (
        "batch",
        &[
            (
                "A result for each prompt, eight at once, five dollars at most",
                "outrigger batch prompts.jsonl --out results.jsonl --jobs 8 --max-cost 5",
            ),
            (
                "Go on after it was ended or killed",
                "outrigger batch prompts.jsonl --out results.jsonl --jobs 8 --max-cost 5 --resume",
            ),
            (
                "Answers of a shape, from prompts that another command writes",
                "make-prompts | outrigger batch - --out - --schema answer.json --ordered",
            ),
        ],
    ),
    (
        "top",
        &[
            ("Watch the sessions of this machine", "outrigger top"),
            ("Those that run, for a program", "outrigger top --json --stored 0"),
        ],
    ),
    (
        "ps",
        &[
            (
                "What the sessions of a host do",
                "outrigger ps --host https://agents.example.com",
            ),
            (
                "With the host in the environment, for a program",
                "OUTRIGGER_HOST=http://127.0.0.1:7070 outrigger ps --json",
            ),
        ],
    ),
    (
        "serve",
        &[
            ("See it, without a key", "outrigger serve --demo"),
            (
                "For sessions in a directory",
                "outrigger serve --root /srv/projects",
            ),
            (
                "As an operator allows",
                "outrigger serve --policy /etc/outrigger/policy.toml",
            ),
        ],
    ),
    (
        "host backup",
        &[(
            "Copy the log while the host runs",
            "outrigger host backup host-copy.db",
        )],
    ),
    ("host check", &[("Look for damage", "outrigger host check")]),
    (
        "host audit",
        &[("The last hundred entries", "outrigger host audit --last 100")],
    ),
    (
        "host login",
        &[("Keep the token of the first start", "outrigger host login")],
    ),
    (
        "host token list",
        &[("Who has a token", "outrigger host token list")],
    ),
    (
        "host token new",
        &[(
            "One that may only read",
            "outrigger host token new dashboard --scope read",
        )],
    ),
    (
        "host token revoke",
        &[(
            "Take one back",
            "outrigger host token revoke 1f0c2a34-8d1b-4c6e-9a57-3f5b9d7c2e10",
        )],
    ),
    (
        "attach",
        &[
            ("Talk in a session", "outrigger attach 4f3a"),
            ("In a new one", "outrigger attach --new /srv/projects/shop"),
            ("From where you left", "outrigger attach 4f3a --after 120"),
        ],
    ),
    (
        "send",
        &[
            ("Send a prompt", "outrigger send 4f3a \"Run the tests.\""),
            (
                "To a new session, whose id is printed",
                "git diff | outrigger send --new /srv/projects/shop",
            ),
        ],
    ),
    (
        "approve",
        &[
            ("What waits for an answer", "outrigger approve"),
            ("Look at it, and answer at the terminal", "outrigger approve 9c1d"),
            (
                "Answer at once",
                "outrigger approve 9c1d --deny \"Not on the main branch.\"",
            ),
            (
                "Answer two questions of the model",
                "outrigger approve 9c1d --answer 2 --answer \"the old one\"",
            ),
        ],
    ),
    (
        "logs",
        &[
            (
                "The last events, and those to come",
                "outrigger logs 4f3a --last 20 --follow",
            ),
            ("All of them, for a program", "outrigger logs 4f3a --json"),
        ],
    ),
    (
        "stop",
        &[
            (
                "End the process; the next prompt starts another one",
                "outrigger stop 4f3a",
            ),
            ("Interrupt the turn", "outrigger stop 4f3a --interrupt"),
        ],
    ),
    (
        "demo",
        &[
            ("Run it", "outrigger demo"),
            ("Fetch nothing", "outrigger demo --simulated"),
        ],
    ),
    (
        "doctor",
        &[
            ("Look", "outrigger doctor"),
            (
                "Which CLI a session would use, for a script",
                "outrigger doctor --json | jq -r .chosen",
            ),
        ],
    ),
    (
        "explain",
        &[
            (
                "Who would decide about a command",
                "outrigger explain Bash '{\"command\": \"git push\"}'",
            ),
            (
                "With the rules of a file",
                "outrigger explain --policy rules.toml Edit '{\"file_path\": \"src/lib.rs\"}'",
            ),
        ],
    ),
    (
        "mock-api",
        &[
            (
                "The real CLI with a model that says what the prompt says",
                "outrigger mock-api --sandbox -- claude -p '%say hello'",
            ),
            (
                "With a script",
                "outrigger mock-api --script answers.yaml -- claude -p hello",
            ),
        ],
    ),
    (
        "settings show",
        &[
            ("What holds here", "outrigger settings show"),
            (
                "The permissions of another checkout, for a script",
                "outrigger settings show --dir ../other --json | jq .effective.permissions",
            ),
        ],
    ),
    ("settings keys", &[("List them", "outrigger settings keys")]),
    (
        "sessions",
        &[
            ("Those of this project", "outrigger sessions list"),
            ("Read one", "outrigger sessions show 4f3a"),
        ],
    ),
    (
        "sessions list",
        &[
            ("Those of this project", "outrigger sessions list"),
            (
                "The twenty newest of all projects",
                "outrigger sessions list --all --limit 20",
            ),
            (
                "Those of the last two days on a branch",
                "outrigger sessions list --since 2d --branch main",
            ),
            (
                "Their ids, for a script",
                "outrigger sessions list --json | jq -r .sessionId",
            ),
        ],
    ),
    (
        "sessions show",
        &[
            ("By the beginning of its id", "outrigger sessions show 4f3a"),
            (
                "By its title, as Markdown",
                "outrigger sessions show \"fix the login\" --markdown",
            ),
            (
                "What a subagent said",
                "outrigger sessions show 4f3a --agent a1b2",
            ),
        ],
    ),
    (
        "sessions agents",
        &[("Which subagents it had", "outrigger sessions agents 4f3a")],
    ),
    (
        "sessions search",
        &[
            (
                "In this project",
                "outrigger sessions search \"connection refused\"",
            ),
            (
                "Who touched a file last week",
                "outrigger sessions search \"\" --file src/lib.rs --since 1w",
            ),
        ],
    ),
    (
        "sessions follow",
        &[(
            "From the last five messages on",
            "outrigger sessions follow 4f3a --last 5",
        )],
    ),
    (
        "sessions export",
        &[
            (
                "To a file that `import` takes",
                "outrigger sessions export 4f3a login.session",
            ),
            ("To be read", "outrigger sessions export 4f3a login.md --markdown"),
        ],
    ),
    (
        "sessions import",
        &[(
            "Into this directory's project",
            "outrigger sessions import login.session",
        )],
    ),
    (
        "sessions fork",
        &[(
            "Try something else from here on",
            "outrigger sessions fork 4f3a --title \"another way\"",
        )],
    ),
    (
        "sessions rename",
        &[(
            "Give it a title",
            "outrigger sessions rename 4f3a \"fix the login\"",
        )],
    ),
    (
        "sessions tag",
        &[
            ("Give it a tag", "outrigger sessions tag 4f3a release"),
            ("Take the tag off", "outrigger sessions tag 4f3a --none"),
        ],
    ),
    (
        "sessions archive",
        &[("Two at once", "outrigger sessions archive 4f3a 9bc1")],
    ),
    (
        "sessions unarchive",
        &[("Take one back", "outrigger sessions unarchive 4f3a")],
    ),
    (
        "sessions move",
        &[(
            "The directory was renamed",
            "outrigger sessions move 4f3a ~/src/new-name",
        )],
    ),
    (
        "sessions repair",
        &[
            ("Look", "outrigger sessions repair 4f3a"),
            (
                "Mend it, with a backup",
                "outrigger sessions repair 4f3a --in-place",
            ),
        ],
    ),
    (
        "sessions delete",
        &[("Without a question", "outrigger sessions delete 4f3a --yes")],
    ),
    (
        "sessions status",
        &[(
            "What a store lacks",
            "outrigger sessions status --store sqlite:sessions.db",
        )],
    ),
    (
        "sessions push",
        &[(
            "All of this project",
            "outrigger sessions push --all --store dir:/mnt/sessions",
        )],
    ),
    (
        "sessions pull",
        &[(
            "All that the store has of this project",
            "outrigger sessions pull --all --store dir:/mnt/sessions",
        )],
    ),
    (
        "protocol check",
        &[(
            "All recordings below a directory",
            "outrigger protocol check recordings",
        )],
    ),
    (
        "record",
        &[
            (
                "In the place of the CLI",
                "outrigger record -o session.ndjson -- claude -p hello",
            ),
            ("As the client", "outrigger record --prompt \"Say hello.\""),
        ],
    ),
    (
        "replay",
        &[("In the place of the CLI", "outrigger replay session.ndjson")],
    ),
    (
        "cassette show",
        &[(
            "What was said, line by line",
            "outrigger cassette show session.ndjson",
        )],
    ),
    (
        "cassette check",
        &[(
            "Whether it can be played, and has no secrets",
            "outrigger cassette check session.ndjson",
        )],
    ),
    (
        "cassette trim",
        &[(
            "The first turn alone",
            "outrigger cassette trim session.ndjson --turns 1 --output first.ndjson",
        )],
    ),
    (
        "cassette edit-ids",
        &[("In its place", "outrigger cassette edit-ids session.ndjson")],
    ),
    ("acp", &[]),
    (
        "config check",
        &[
            ("Find what is wrong with it", "outrigger config check"),
            ("Before it is used", "outrigger config check work.toml"),
        ],
    ),
    (
        "config show",
        &[
            ("What holds without a profile", "outrigger config show"),
            ("What a profile says", "outrigger config show --profile work"),
        ],
    ),
    (
        "config path",
        &[("Edit it", "$EDITOR \"$(outrigger config path)\"")],
    ),
    (
        "completions",
        &[
            ("In ~/.bashrc", "source <(outrigger completions bash)"),
            (
                "In ~/.config/fish/config.fish",
                "outrigger completions fish | source",
            ),
        ],
    ),
    (
        "man",
        &[
            ("Read it", "outrigger man | man -l -"),
            ("For `man outrigger-run`", "outrigger man ~/.local/share/man/man1"),
        ],
    ),
];

/// Adds its examples to each command.
pub(crate) fn added(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let path: Vec<&str> = path.split_whitespace().collect();
        at(command, &path, examples)
    })
}

fn at(command: Command, path: &[&str], examples: &[(&str, &str)]) -> Command {
    let Some((name, rest)) = path.split_first() else {
        return with(command, examples);
    };
    // A name that is none would make a new command; a test says so.
    command.mut_subcommand(name, |command| at(command, rest, examples))
}

fn with(command: Command, examples: &[(&str, &str)]) -> Command {
    if examples.is_empty() {
        return command;
    }
    let mut text = String::from("Examples:\n");
    for (what, typed) in examples {
        text.push_str(&format!("  {what}:\n    {typed}\n"));
    }
    if let Some(after) = command.get_after_help() {
        text.push_str(&format!("\n{after}"));
    }
    command.after_long_help(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        for command in command.get_subcommands() {
            let path = format!("{path} {}", command.get_name());
            if command.has_subcommands() {
                leaves(command, &path, found);
            } else {
                found.push(path.trim_start().to_owned());
            }
        }
    }

    #[test]
    fn every_command_has_examples_and_every_example_has_a_command() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        for command in &commands {
            assert!(
                EXAMPLES.iter().any(|(path, _)| path == command),
                "{command} has none"
            );
        }
        for (path, _) in EXAMPLES {
            let mut at = &Cli::command();
            for name in path.split_whitespace() {
                at = at
                    .find_subcommand(name)
                    .unwrap_or_else(|| panic!("there is no {path}"));
            }
        }
    }

    /// Splits as a shell does what examples have: quotes of both kinds, without escapes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match quote {
                Some(open) if c == open => quote = None,
                None if c == '"' || c == '\'' => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                None if c.is_whitespace() => words.extend(word.take()),
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn every_example_is_understood() {
        for (_, examples) in EXAMPLES {
            for (_, typed) in *examples {
                let (_, ours) = typed.split_once("outrigger").expect(typed);
                let ours = ours.split([')', '|', '>']).next().unwrap();
                // Rules have parentheses, too.
                let ours = match typed.split_once("outrigger run") {
                    Some((_, rest)) => format!(" run{rest}"),
                    None => ours.to_owned(),
                };
                let words = words(&format!("outrigger{ours}"));
                if let Err(error) = Cli::command().try_get_matches_from(&words) {
                    panic!("{typed}: {error}");
                }
            }
        }
    }
}
