//! Which commands only read: whatever they are given, or with certain options.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// An option stands for itself, or has a mark behind it: `=` for one with a value, `#` for a number, `?` for a character.
static READS: LazyLock<Reads> =
    LazyLock::new(|| serde_json::from_str(include_str!("reads.json")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reads {
    /// The options with which a command only reads.
    options: BTreeMap<String, Vec<String>>,
    /// Commands that only read, whatever is behind them.
    plain: Vec<String>,
    /// Commands that only read when nothing is behind them.
    exact: Vec<String>,
}

/// What `xargs` may run.
const BEHIND_XARGS: &[&str] = &["echo", "printf", "wc", "grep", "egrep", "fgrep", "head", "tail"];

/// Whether a command of these words only reads, and the CLI knows that it does.
pub(super) fn only_reads(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let begins = |name: &&String| {
        let mut names = name.split(' ').enumerate();
        names.all(|(index, name)| words.get(index) == Some(&name))
    };
    let reads = &*READS;
    let is_exact = reads.exact.iter().any(|exact| *exact == words.join(" "));
    if is_exact || reads.plain.iter().find(begins).is_some() {
        return true;
    }
    let rest = words.get(1..).unwrap_or_default();
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    match words.first().copied().unwrap_or_default() {
        "cd" => return rest.len() <= 1,
        "history" => return matches!(rest, [number] if is_number(number)),
        "help" => return rest.iter().all(|word| is_word(word) && !word.starts_with('-')),
        "man" => return rest.iter().all(is_word) && fits("man", rest),
        "printf" => return is_plain_printf(rest),
        "uniq" => return is_plain_uniq(rest),
        "jq" => return !reads_a_script(words.as_slice()) && !rest.iter().any(|word| names_variables(word)),
        "egrep" | "fgrep" => return fits("grep", rest),
        _ => {}
    }
    // What `xargs` runs begins behind its options.
    if words.first() == Some(&"xargs") {
        let at = rest.iter().position(|word| BEHIND_XARGS.contains(word));
        return at.is_some_and(|at| {
            let options = rest.get(..at).unwrap_or_default();
            fits("xargs", options)
                && positional(options, &["-n", "-P", "-L", "-s", "-E", "-d"])
                    .next()
                    .is_none()
        });
    }
    let named = reads.options.keys().filter(begins).max_by_key(|name| name.len());
    let Some(name) = named else { return false };
    let rest = words.get(name.split(' ').count()..).unwrap_or_default();
    fits(name, rest) && !does_more(name, rest)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

fn is_option(word: &str) -> bool {
    let first = word.strip_prefix('-').and_then(|rest| rest.chars().next());
    first.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Of `uniq` only its options are known: a second file is written to.
fn is_plain_uniq(words: &[&str]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let takes = matches!(*word, "-f" | "-s" | "-w");
        if !is_option(word) || (takes && !words.next().is_some_and(|value| is_number(value))) {
            return false;
        }
    }
    true
}

/// Whether `jq` gets its program, or variables of it, from files.
pub(super) fn reads_a_script(words: &[&str]) -> bool {
    const LONG: &[&str] = &[
        "--from-file",
        "--rawfile",
        "--slurpfile",
        "--argfile",
        "--run-tests",
        "--library-path",
    ];
    words.iter().any(|word| {
        let short = word.starts_with('-') && !word.starts_with("--") && word.contains(['f', 'L']);
        short || LONG.iter().any(|long| word.starts_with(long))
    })
}

/// Whether a program of `jq` names the variables of the process, or what is elsewhere.
fn names_variables(program: &str) -> bool {
    let mut names = program.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    names.any(|name| matches!(name, "env" | "include" | "import" | "system" | "ENV"))
}

/// Whether `printf` gets numbers where its format wants some.
fn is_plain_printf(words: &[&str]) -> bool {
    let [format, arguments @ ..] = words else {
        return true;
    };
    let mut conversions = format
        .split('%')
        .skip(1)
        .filter(|conversion| !conversion.is_empty());
    let wants_numbers = conversions.any(|conversion| {
        let kind = conversion.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ 0#'.".contains(c));
        !kind.starts_with(['s', 'b', 'c', 'q'])
    });
    let is_decimal = |word: &&str| word.parse::<f64>().is_ok();
    !format.starts_with('-') && (!wants_numbers || arguments.iter().all(is_decimal))
}

/// Whether all options are known, and have the values that they want.
fn fits(name: &str, words: &[&str]) -> bool {
    let known = READS.options.get(name);
    let kind = |option: &str| -> Option<Option<char>> {
        let mut known = known?.iter().flat_map(|line| line.split(' '));
        known.find_map(|known| match known.strip_prefix(option)? {
            "" => Some(None),
            mark @ ("=" | "#" | "?") => Some(mark.chars().next()),
            _ => None,
        })
    };
    let takes = |kind: char, option: &str, value: &str| match kind {
        '#' => is_number(value),
        '?' => value.chars().count() == 1,
        _ => !value.starts_with('-') || (name.starts_with("git ") && option == "--sort"),
    };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        // A variable, or braces that stand for several words.
        if word.contains('$') || (word.contains('{') && (word.contains(',') || word.contains(".."))) {
            return false;
        }
        if word == "--" || !is_option(word) {
            continue;
        }
        let (option, given) = word
            .split_once('=')
            .map_or((word, None), |(option, value)| (option, Some(value)));
        let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let fine = match (kind(option), letters) {
            (Some(None), _) => given.is_none(),
            (Some(Some(kind)), _) => {
                let value = given.or_else(|| words.next().filter(|value| !is_option(value)));
                value.is_some_and(|value| takes(kind, option, value))
            }
            (None, Some(number)) if name.starts_with("git ") && is_number(number) => true,
            (None, Some(letters)) if letters.len() > 1 => {
                let first = letters.chars().next().map(|letter| format!("-{letter}"));
                let has_count = matches!(name, "grep" | "rg")
                    && first.is_some_and(|first| matches!(kind(&first), Some(Some('#' | '='))))
                    && letters.get(1..).is_some_and(is_number);
                has_count
                    || letters
                        .chars()
                        .all(|letter| kind(&format!("-{letter}")) == Some(None))
            }
            _ => false,
        };
        if !fine {
            return false;
        }
    }
    true
}

/// Whether a command with these words does more than read, although its options are known.
fn does_more(name: &str, words: &[&str]) -> bool {
    let has = |option: &str| words.contains(&option);
    let mut plain = words.iter().filter(|word| !is_option(word));
    match name {
        "date" => {
            let values = ["-d", "--date", "-r", "--reference", "--rfc-3339"];
            positional(words, &values).any(|(_, word)| !word.starts_with('+'))
        }
        "hostname" | "ss" | "git remote" | "git ls-remote" => plain.next().is_some(),
        "lsof" => words
            .iter()
            .any(|word| word.starts_with('+') || word.contains('@')),
        "docker logs" | "docker inspect" => words.iter().any(|word| elsewhere(word)),
        "ps" => shows_variables(words),
        "git remote show" => !has("-n") || plain.count() != 1,
        "git reflog" => plain.any(|word| !matches!(*word, "show" | "list")),
        "git diff" => words.iter().any(|word| {
            let is_of_modules = word.starts_with("--submodule") || word.starts_with("--ignore-submodules");
            is_of_modules && !matches!(*word, "--submodule=short" | "--ignore-submodules=all")
        }),
        "git branch" => {
            let values = ["--contains", "--no-contains", "--points-at", "--sort"];
            let makes = |(before, _): (&str, &str)| !matches!(before, "--merged" | "--no-merged");
            (!lists(words) && positional(words, &values).any(makes)) || is_formatted(words)
        }
        "git tag" => {
            let values = [
                "--contains",
                "--no-contains",
                "--merged",
                "--no-merged",
                "--points-at",
                "--sort",
                "--format",
                "-n",
            ];
            (!lists(words) && positional(words, &values).next().is_some()) || is_formatted(words)
        }
        _ => name.starts_with("git ") && is_formatted(words),
    }
}

/// The words that are no options and no values of these ones, each behind the option before it.
fn positional<'a>(words: &'a [&'a str], values: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut before = "";
    let mut is_value = false;
    words.iter().filter_map(move |word| {
        let was_value = std::mem::replace(&mut is_value, values.contains(word));
        if is_option(word) {
            before = word;
        }
        (!was_value && !is_option(word)).then_some((before, *word))
    })
}

/// Whether an option of `docker` leads to another host.
fn elsewhere(word: &str) -> bool {
    let is_short = word.starts_with('-') && !word.starts_with("--");
    (is_short && word.contains(['H', 'c', 'r']))
        || word.starts_with("--host")
        || word.starts_with("--context")
}

fn lists(words: &[&str]) -> bool {
    words.iter().any(|word| {
        let is_short = word.starts_with('-') && !word.starts_with("--") && !word.contains('=');
        *word == "--list" || (is_short && word.contains('l'))
    })
}

/// Whether a format of `git` may run something, as that of a signature does.
fn is_formatted(words: &[&str]) -> bool {
    const NAMED: &[&str] = &["oneline", "short", "medium", "full", "fuller", "email", "raw"];
    let mut before = "";
    words.iter().any(|word| {
        let (option, value) = word.split_once('=').unwrap_or((before, word));
        before = word;
        let is_format = matches!(option, "--format" | "--pretty");
        let shows = value.contains("%G") || value.contains("signature");
        let is_free = value.contains('%') || value.starts_with("format:") || value.starts_with("tformat:");
        let is_alias = is_format && !is_free && !value.is_empty() && !NAMED.contains(&value);
        is_alias || (shows && (is_format || matches!(option, "--sort" | "--group")))
    })
}

/// Whether `ps` shows the variables of processes.
fn shows_variables(words: &[&str]) -> bool {
    let is_plain = |word: &&&str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        **word == "--forest" || (!letters.is_empty() && letters.chars().all(|c| "AacdeFfjlwHLTm".contains(c)))
    };
    let bare = words
        .iter()
        .any(|word| !is_option(word) && word.contains(['e', 'E']));
    let asks = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('e');
    bare || (words.iter().any(asks) && !words.iter().all(|word| is_plain(&word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(line: &str) -> bool {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        only_reads(&words)
    }

    #[test]
    fn what_only_reads_is_known() {
        for line in [
            "cat -n x",
            "sort -u x",
            "uniq -c -f 1",
            "git log -5 --oneline",
            "git log --format=%H",
            "git branch -a",
            "git branch --merged main",
            "git tag -l v1",
            "git remote -v",
            "git remote show -n origin",
            "git reflog",
            "date +%s",
            "date -d yesterday +%F",
            "hostname -f",
            "grep -A3 -rn x .",
            "rg -g *.rs x",
            "ps -ef",
            "jq .a x",
            "tree -L 2",
            "xargs wc",
            "git config --get user.name",
            "pwd",
            "history 5",
            "man ls",
            "egrep -c x y",
        ] {
            assert!(reads(line), "{line}");
        }
    }

    #[test]
    fn what_does_more_is_not() {
        for line in [
            "sort -o y x",
            "sort --output=y x",
            "uniq x y",
            "uniq x",
            "git log --output=x",
            "git log --format=%G?",
            "git log --format=mine",
            "git branch new",
            "git branch -D x",
            "git tag v1",
            "git remote add o x",
            "git remote show origin",
            "git reflog expire",
            "git status -uno",
            "git -c a=b log",
            "git diff --ext-diff",
            "date -s 2020-01-01",
            "date 010100002020",
            "hostname other",
            "rg --pre cat x",
            "ps e",
            "ps auxe",
            "jq -n env",
            "jq -f x y",
            "tree -o x",
            "xargs rm",
            "xargs cat",
            "pwd x",
            "python3 -c 1",
            "node -e 1",
            "made-up",
        ] {
            assert!(!reads(line), "{line}");
        }
    }
}
