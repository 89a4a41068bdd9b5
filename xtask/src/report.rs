//! What a run of `cargo test` says of each test program, put together for its end.

use std::collections::BTreeMap;
use std::fmt;

use outrigger_needs::LeftOut;

/// What failed and what was counted, read from the output line by line.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// How the tests were chosen, to choose them again.
    chosen: Vec<String>,
    /// The list of failed tests that is being read, or was read last.
    list: Vec<String>,
    is_list: bool,
    /// What each test wrote that failed in the program that runs: its name and its lines.
    outputs: Vec<(String, Vec<String>)>,
    /// What failed in the program that runs.
    failing: Vec<Test>,
    failed: Vec<Failed>,
    counts: [u64; 3],
    pub(crate) left_out: Vec<LeftOut>,
}

/// A test program that failed.
#[derive(Debug)]
struct Failed {
    /// How cargo is told to run it: `-p outrigger --test it`.
    program: String,
    /// Its failed tests. None, if it ended before it could tell.
    tests: Vec<Test>,
    /// How it ended, if that was not as usual.
    ended: Option<String>,
}

/// A test that failed.
#[derive(Debug)]
struct Test {
    name: String,
    /// The last lines that it wrote, without the backtrace.
    said: Vec<String>,
}

/// How many lines of a failed test are repeated at the end.
const LINES: usize = 40;

/// How much of such a line is repeated, in characters.
const WIDTH: usize = 400;

impl Report {
    /// For a run with these arguments.
    pub(crate) fn new(arguments: &[String]) -> Self {
        let own = arguments.iter().take_while(|argument| *argument != "--");
        Self {
            chosen: own.cloned().collect(),
            ..Self::default()
        }
    }

    /// Takes a line of what cargo or a test program wrote.
    pub(crate) fn line(&mut self, line: &str) {
        let line = plain(line);
        let line = line.trim_end();
        if self.is_list {
            match line.strip_prefix("    ") {
                Some(name) => self.list.push(name.to_owned()),
                // What the tests wrote comes under the same title, and begins otherwise.
                None => self.is_list = line.is_empty() && self.list.is_empty(),
            }
        }
        let title = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = title {
            self.outputs.push((name.to_owned(), Vec::new()));
        } else if let Some((_, lines)) = self.outputs.last_mut() {
            lines.push(line.to_owned());
        }
        if line == "failures:" {
            self.list.clear();
            self.is_list = true;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.count(result);
        } else if let Some((_, hint)) = line.split_once("failed, to rerun pass `") {
            self.failed.push(Failed {
                program: hint.trim_end_matches('`').to_owned(),
                tests: std::mem::take(&mut self.failing),
                ended: None,
            });
        } else if line
            .trim_start()
            .starts_with("process didn't exit successfully: ")
            && let (Some(failed), Some((_, how))) = (self.failed.last_mut(), line.rsplit_once("` ("))
        {
            failed.ended = Some(how.trim_end_matches(')').to_owned());
        }
    }

    /// `FAILED. 3 passed; 1 failed; 0 ignored; …`
    fn count(&mut self, result: &str) {
        let (verdict, counts) = result.split_once(". ").unwrap_or_default();
        for (total, count) in self.counts.iter_mut().zip(counts.split("; ")) {
            let number = count
                .split(' ')
                .next()
                .and_then(|number| number.parse::<u64>().ok());
            *total += number.unwrap_or_default();
        }
        let list = std::mem::take(&mut self.list);
        let outputs = std::mem::take(&mut self.outputs);
        if verdict == "FAILED" {
            self.failing.extend(list.into_iter().map(|name| {
                let said = outputs.iter().rfind(|(of, _)| *of == name);
                Test {
                    said: said.map(|(_, lines)| said_last(lines)).unwrap_or_default(),
                    name,
                }
            }));
        }
    }

    /// A command that runs this test again, or the whole program.
    fn again(&self, program: &str, test: Option<&str>) -> String {
        let mut words: Vec<String> = ["cargo", "xtask", "test"].map(str::to_owned).into();
        words.extend(self.chosen.iter().map(|word| quoted(word)));
        let targets = ["--lib", "--bin", "--test", "--doc", "--example", "--bench"];
        let is_target = |word: &str| targets.contains(&word.split('=').next().unwrap_or_default());
        if !self.chosen.iter().any(|word| is_target(word)) {
            // Without the package: the whole workspace is built already, and may have been built with other features.
            let hint: Vec<&str> = program.split(' ').collect();
            let target = hint.iter().position(|word| is_target(word));
            words.extend(
                hint[target.unwrap_or(hint.len())..]
                    .iter()
                    .map(|word| (*word).to_owned()),
            );
        }
        if let Some(test) = test {
            words.extend(["--".to_owned(), "--exact".to_owned(), quoted(test)]);
        }
        words.join(" ")
    }
}

/// What was left out, what failed with how to run it again and what it wrote last, and what it comes to.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for left in &self.left_out {
            let name = format!("{}: {}", left.program, left.test);
            reasons.entry(&left.why).or_default().push(name);
        }
        for (why, tests) in reasons {
            writeln!(f, "\nLEFT OUT, {}: {why}", tests_of(tests.len()))?;
            tests.iter().try_for_each(|test| writeln!(f, "    {test}"))?;
        }
        for failed in &self.failed {
            let Failed {
                program,
                tests,
                ended,
            } = failed;
            if tests.is_empty() {
                let ended = ended.as_deref().unwrap_or("it did not say which test");
                writeln!(
                    f,
                    "\nFAILED, all of `{program}`: {ended}\n        {}",
                    self.again(program, None)
                )?;
                continue;
            }
            writeln!(f, "\nFAILED, {} of `{program}`", tests_of(tests.len()))?;
            for Test { name, said } in tests {
                writeln!(f, "    {name}\n        {}", self.again(program, Some(name)))?;
                said.iter().try_for_each(|line| writeln!(f, "        | {line}"))?;
            }
        }
        let [passed, failed, ignored] = self.counts;
        let left_out = self.left_out.len();
        // Those that were left out returned, and so count as passed elsewhere.
        let passed = passed.saturating_sub(left_out as u64);
        write!(
            f,
            "\nall results: {passed} passed; {failed} failed; {ignored} ignored; {left_out} left out; {} programs failed",
            self.failed.len(),
        )
    }
}

/// What is repeated of the lines that a test wrote.
fn said_last(lines: &[String]) -> Vec<String> {
    let is_end = |line: &String| {
        line == "stack backtrace:"
            || line == "failures:"
            || line.starts_with("note: run with `RUST_BACKTRACE")
    };
    // A test may have written such a line too, so its last panic comes first.
    let panic = lines
        .iter()
        .rposition(|line| line.contains("' panicked at ") || line.contains(") panicked at "));
    let from = panic.unwrap_or_default();
    let end = lines[from..]
        .iter()
        .position(is_end)
        .map_or(lines.len(), |end| from + end);
    let said = &lines[..end];
    let last = said
        .iter()
        .rposition(|line| !line.is_empty())
        .map_or(0, |last| last + 1);
    said[last.saturating_sub(LINES)..last]
        .iter()
        .skip_while(|line| line.is_empty())
        .map(|line| line.chars().take(WIDTH).collect())
        .collect()
}

fn tests_of(count: usize) -> String {
    format!("{count} test{}", if count == 1 { "" } else { "s" })
}

/// For a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=:./,".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A line as it is seen: without colours, and without what was written over.
fn plain(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit('\r').next().unwrap_or_default();
    let mut parts = line.split('\x1b');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(arguments: &[&str], output: &str) -> Report {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut report = Report::new(&arguments);
        output.lines().for_each(|line| report.line(line));
        report
    }

    const OUTPUT: &str = "     Running unittests src/lib.rs (target/debug/deps/a-1)
test ok ... \x1b[32mok\x1b[m
test result: \x1b[32mok\x1b[m. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s
  Building [====>   ] 1/2\r     Running tests/it/main.rs (target/debug/deps/it-2)
test a::b ... FAILED

failures:

---- a::b stdout ----
failures:
    not this one

---- c d stdout ----

thread 'c d' (7) panicked at crates/first/tests/it/main.rs:3:5:
assertion failed
stack backtrace:
   0: __rustc::rust_begin_unwind

failures:
    a::b
    c d

test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

\x1b[1m\x1b[91merror\x1b[0m: test failed, to rerun pass `-p first --test it`
     Running tests/killed.rs (target/debug/deps/killed-3)
error: test failed, to rerun pass `-p first --test killed`

Caused by:
  process didn't exit successfully: `/x/killed-3` (signal: 6, SIGABRT: process abort signal)
   Doc-tests first
failures:
    src/lib.rs - f (line 3)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s

error: doctest failed, to rerun pass `-p first --doc`
error: 3 targets failed:
    `-p first --test it`
";

    #[test]
    fn all_failures_are_told_at_the_end() {
        let mut report = report(&[], OUTPUT);
        report.left_out = vec![LeftOut {
            why: "no server".to_owned(),
            program: "redis".to_owned(),
            test: "x::y".to_owned(),
        }];
        assert_eq!(
            report.to_string(),
            "
LEFT OUT, 1 test: no server
    redis: x::y

FAILED, 2 tests of `-p first --test it`
    a::b
        cargo xtask test --test it -- --exact a::b
    c d
        cargo xtask test --test it -- --exact 'c d'
        | thread 'c d' (7) panicked at crates/first/tests/it/main.rs:3:5:
        | assertion failed

FAILED, all of `-p first --test killed`: signal: 6, SIGABRT: process abort signal
        cargo xtask test --test killed

FAILED, 1 test of `-p first --doc`
    src/lib.rs - f (line 3)
        cargo xtask test --doc -- --exact 'src/lib.rs - f (line 3)'

all results: 3 passed; 3 failed; 2 ignored; 1 left out; 3 programs failed"
        );
    }

    #[test]
    fn what_was_chosen_is_chosen_again() {
        let report = report(
            &["-p", "first", "--features", "a b", "--test", "it", "--", "x"],
            "",
        );
        assert_eq!(
            report.again("-p first --test it", Some("c")),
            "cargo xtask test -p first --features 'a b' --test it -- --exact c"
        );
    }
}
