//! Command lines, as far as the permission check understands them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

use super::paths;
use super::reads;
use super::sed::{self, Sed};
use crate::word_list::WordList;

static WORDS: LazyLock<Words> =
    LazyLock::new(|| serde_json::from_str(include_str!("shell.json")).unwrap_or_default());

/// Words by which commands and variables are known.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    /// Commands that only read the paths that they are given.
    readers: Vec<String>,
    /// Commands that change the paths that they are given, and that `acceptEdits` allows.
    writers: Vec<String>,
    /// Commands of the shell's own that run something, or change what later words mean.
    unchecked: Vec<String>,
    /// Programs that run the command behind them in another way.
    starters: Vec<String>,
    /// Commands that run the command behind them, which no rule for their first words allows, as `starters`.
    wrappers: Vec<String>,
    /// Variables of shells, in small letters, by which other commands are found or run, or say something else.
    altering: Vec<String>,
    /// Variables whose values the shell calculates, unless they are numbers.
    calculating: Vec<String>,
    /// Variables that commands may be given unasked.
    harmless: Vec<String>,
}

fn knows(list: &[String], word: &str) -> bool {
    list.iter().any(|known| known == word)
}

/// A command line.
#[derive(Debug, Default)]
pub(super) struct ShellLine {
    pub(super) commands: Vec<ShellCommand>,
    pub(super) doubt: Option<Doubt>,
    /// Whether some of the line's commands are parted by `|`, and whether some are by anything else.
    pub(super) has_pipes: bool,
    pub(super) has_lists: bool,
    /// Whether `&` leaves some of the line's commands running.
    pub(super) in_background: bool,
}

impl ShellLine {
    /// The commands and the text of the line, without those that go where the shell is already.
    pub(super) fn without_standing<'a>(&self, text: &'a str, cwd: &Path) -> (Vec<&ShellCommand>, &'a str) {
        let stands = |command: &&ShellCommand| {
            command.name() == "cd" && command.words.get(1).is_some_and(|to| Path::new(to) == cwd)
        };
        let commands: Vec<&ShellCommand> = self.commands.iter().filter(|command| !stands(command)).collect();
        let cd = self.commands.first().filter(stands);
        let rest = cd.zip(commands.first()).and_then(|(cd, first)| {
            let behind = text.get(text.find(&cd.text)? + cd.text.len()..)?;
            behind.get(behind.find(&first.text)?..)
        });
        (commands, rest.unwrap_or(text))
    }

    /// Whether the line cannot be taken apart.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Whether all of it only looks, wherever that is.
    pub(super) fn changes_nothing(&self) -> bool {
        let looks = |command: &ShellCommand| {
            command.only_reads() && command.name() != "cd" && command.writes.is_empty()
        };
        self.doubt.is_none() && self.commands.iter().all(looks)
    }
}

/// A simple command of a line.
#[derive(Debug, Default, Clone)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<String>,
    /// The command as it was written, without redirections to `/dev/null` at its end.
    pub(super) text: String,
    /// The same without redirections.
    plain: String,
    /// Whether the command is a part of another one, of a group in parentheses or of a function.
    pub(super) nested: bool,
    /// Whether the command has a variable in front that does not matter.
    has_variable: bool,
    /// The files that the command's output is redirected to.
    pub(super) writes: Vec<String>,
    /// The files that the command's input is redirected from.
    reads: Vec<String>,
}

/// Why a line cannot be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    Nested,
    Variable,
    Group,
    Subshell,
    /// A text behind `<<` in which variables are replaced.
    Text,
    /// A command goes elsewhere and reads there, while rules keep files from being read.
    ReadElsewhere,
    /// The line goes to several directories.
    Directories,
    /// One command gives several variables a value.
    Assignments,
    /// A variable gets a value that changes what later commands do.
    Assignment,
    /// A variable gets a value with `~` in it.
    Tilde,
    /// The words of the command are up to the shell.
    Spelling,
}

impl Doubt {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Nested => "A nested command in this command can't be checked before it runs",
            Self::Variable => "A variable in this command can't be checked before it runs",
            Self::Group => {
                "A group in braces or double parentheses in this command can't be checked before it runs"
            }
            Self::Subshell => "This command uses shell operators that require approval for safety",
            Self::Text => "A text behind `<<` without quotes around its mark is expanded by the shell",
            Self::ReadElsewhere => {
                "The line goes to another directory and reads a file there, and a Read() deny rule exists"
            }
            Self::Directories => "A line that goes to several directories takes the approval of a person",
            Self::Assignments => "Several assignments in one command can't be checked before they run",
            Self::Assignment => "This variable changes what the commands behind it are or do",
            Self::Tilde => "The shell may expand the `~` in the value of a variable",
            Self::Spelling => "A word of this command may be another one to the shell",
        }
    }
}

/// What a command does to paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) read: Vec<PathBuf>,
    pub(super) written: Vec<PathBuf>,
    /// The files of redirections.
    pub(super) redirected: Vec<PathBuf>,
    /// A written one that may stand for several files, as it is in the line.
    pub(super) pattern: Option<PathBuf>,
    /// A read one that goes up again behind a directory, as it is in the line.
    pub(super) winding: Option<PathBuf>,
    /// Files that are read as well, or only read where a rule is about writing.
    pub(super) also_read: Vec<PathBuf>,
}

impl ShellCommand {
    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The command's text without redirections.
    pub(super) fn plain(&self) -> &str {
        &self.plain
    }

    fn has(&self, options: &[&str]) -> bool {
        self.words.iter().any(|word| options.contains(&word.as_str()))
    }

    /// Whether the command takes its shell to another directory.
    pub(super) fn goes(&self) -> bool {
        let inner = self.inner();
        let name = inner.words.iter().find(|word| *word != "builtin");
        name.is_some_and(|name| matches!(name.as_str(), "cd" | "chdir" | "popd" | "pushd"))
    }

    /// Whether the command only gives variables a value.
    pub(super) fn is_assignment(&self) -> bool {
        !self.words.is_empty() && self.words.iter().all(|word| is_assignment(word))
    }

    /// Whether the command changes nothing but the file that its output is redirected to.
    pub(super) fn only_reads(&self) -> bool {
        match self.name() {
            name if is_assignment(name) => self.is_assignment(),
            "find" => !self.is_find_that_acts(),
            "sed" => self.sed().only_reads(),
            // An option in front of the time may take the next word.
            "timeout" if self.words.get(1).is_some_and(|time| time.starts_with('-')) => false,
            "timeout" => self.words.get(2..).is_some_and(reads::only_reads),
            _ => reads::only_reads(&self.words),
        }
    }

    /// The command that is run behind assignments and by commands that only run another one.
    fn inner(&self) -> Self {
        let mut words = self.words.as_slice();
        while let [first, rest @ ..] = words {
            let options = || rest.iter().take_while(|word| word.starts_with('-')).count();
            let skipped = match first.rsplit('/').next().unwrap_or_default() {
                "command" | "nohup" | "time" => 0,
                "env" => options(),
                "nice" if rest.first().is_some_and(|word| word == "-n") => 2,
                "nice" | "stdbuf" => options(),
                "timeout" => 1,
                _ if is_assignment(first) => 0,
                _ => break,
            };
            words = rest.get(skipped..).unwrap_or_default();
        }
        Self {
            words: words.to_vec(),
            ..self.clone()
        }
    }

    pub(super) fn is_find_that_acts(&self) -> bool {
        const ACTING: WordList =
            WordList("-delete -rm -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls -files0-from");
        self.name() == "find" && self.words.iter().any(|word| ACTING.has(word))
    }

    /// Whether the command prints the files that it names, and then whether it prints all of them.
    pub(super) fn shows(&self) -> Option<bool> {
        let shows = matches!(self.name(), "cat" | "grep" | "head" | "sed" | "tail") && self.writes.is_empty();
        let edits = self.name() == "sed" && self.sed().in_place;
        (shows && !edits).then(|| self.name() == "cat")
    }

    /// Whether the command reads files, at least one of them by a relative path.
    pub(super) fn reads_here(&self) -> bool {
        let skipped = usize::from(matches!(self.name(), "grep" | "rg" | "jq"));
        let mut paths = self.arguments().skip(skipped).peekable();
        let looks_around = paths.peek().is_none() && matches!(self.name(), "du" | "find" | "ls");
        let reads = self.name() == "du" || (knows(&WORDS.readers, self.name()) && self.name() != "cd");
        reads && (looks_around || paths.any(|path| !path.starts_with('/')))
    }

    /// The command as a call of `sed`.
    fn sed(&self) -> Sed {
        Sed::read(self.words.get(1..).unwrap_or_default())
    }

    /// The content of a rule that allows commands like it, wherever their output goes.
    pub(super) fn pattern(&self) -> String {
        let stays = self.is_assignment() || (self.writes.is_empty() && self.reads.is_empty());
        pattern(if stays { &self.text } else { &self.plain })
    }

    /// Whether the command only changes the files that it names, and is written as `acceptEdits` wants it.
    pub(super) fn only_changes_files(&self) -> bool {
        !self.has_variable && self.changes_files()
    }

    /// Whether the command only changes the files that it names.
    fn changes_files(&self) -> bool {
        match self.name() {
            "sed" => self.sed().kind == sed::SedKind::Substitutes,
            name => knows(&WORDS.writers, name),
        }
    }

    /// Whether the command may do more than its name says: no rule for it is suggested.
    pub(super) fn acts(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match self.name() {
            "sed" => !self.sed().only_reads(),
            "jq" => reads::reads_a_script(&words),
            "awk" => words.iter().any(|word| word.contains("system(")),
            _ => self.is_find_that_acts(),
        }
    }

    /// Whether it is a `cp` or `mv` with options.
    pub(super) fn copies_by_options(&self) -> bool {
        let inner = self.inner();
        let mut arguments = inner.words.iter().skip(1);
        matches!(inner.name(), "cp" | "mv") && arguments.any(|word| word.starts_with('-'))
    }

    /// The command's arguments that are no options.
    fn arguments(&self) -> impl Iterator<Item = &String> {
        self.words.iter().skip(1).filter(|word| !word.starts_with('-'))
    }

    /// The paths it names.
    pub(super) fn paths(&self, cwd: &Path, home: &Path) -> Paths {
        let path = |word: &String| paths::absolute(word, cwd, home);
        let mut found = Paths {
            read: self.reads.iter().map(path).collect(),
            redirected: self.writes.iter().map(path).collect(),
            ..Paths::default()
        };
        found.written.clone_from(&found.redirected);
        let inner = self.inner();
        // The first argument of these is no path.
        let skipped = usize::from(matches!(inner.name(), "awk" | "grep" | "rg" | "jq"));
        let words: Vec<&String> = inner.arguments().skip(skipped).collect();
        let arguments = words.iter().copied().map(path);
        match inner.name() {
            "awk" => found.also_read.extend(arguments.clone()),
            "cp" => found
                .also_read
                .extend(arguments.clone().take(words.len().saturating_sub(1))),
            "sed" => found.also_read.extend(inner.sed().files.iter().map(path)),
            _ => {}
        }
        if inner.name() == "sed" {
            let sed = inner.sed();
            let used = match sed.kind {
                sed::SedKind::Prints => &mut found.read,
                _ => &mut found.written,
            };
            used.extend(sed.files.iter().map(path));
        } else if inner.changes_files() || inner.name() == "tee" {
            let mut patterns = inner.arguments().filter(|word| word.contains(['*', '?', '[']));
            found.pattern = patterns.next().map(PathBuf::from);
            found.written.extend(arguments);
        } else if inner.name() == "find" {
            found.read.extend(inner.arguments().take(1).map(path));
        } else if knows(&WORDS.readers, inner.name()) {
            let winds = |word: &&&String| word.find("/../").is_some_and(|at| !word[..at].ends_with(".."));
            found.winding = words.iter().find(winds).map(PathBuf::from);
            // Of a pattern only the directory in front of it is known.
            let known = |word: &String| match word.find(['*', '?', '[']) {
                Some(at) => path(&word[..word[..at].rfind('/').map_or(0, |slash| slash + 1)].to_owned()),
                None => path(word),
            };
            found.read.extend(words.iter().copied().map(known));
        }
        found
    }

    /// A path that the command would remove and that nobody may remove: the root, a directory in it, the home.
    pub(super) fn removes_critical(&self, cwd: &Path, home: &Path) -> Option<PathBuf> {
        if !matches!(self.name(), "rm" | "rmdir") {
            return None;
        }
        let mut removed = self.arguments().map(|word| paths::absolute(word, cwd, home));
        let root = Path::new("/");
        removed.find(|path| path == home || path.parent().is_none_or(|parent| parent == root))
    }
}

/// What an exit code other than 0 says that is no failure, by the last command of the line.
pub(super) fn meaning(line: &str, code: i32) -> Option<&'static str> {
    let commands = commands(line);
    match (commands.last()?.first()?.as_str(), code) {
        ("grep" | "rg", 1) => Some("No matches found"),
        ("find", 1) => Some("Some directories were inaccessible"),
        ("diff", 1) => Some("Files differ"),
        ("test" | "[", 1) => Some("Condition is false"),
        _ => None,
    }
}

/// Whether a line edits files where they are.
pub(super) fn edits_in_place(line: &str) -> bool {
    let commands = parse(line, Path::new("~")).commands;
    commands
        .iter()
        .any(|command| command.name() == "sed" && command.sed().in_place)
}

/// The content of a rule for commands like this one: its first two words, if the second is a plain one, or all of it.
pub(super) fn pattern(text: &str) -> String {
    let plain = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !word.ends_with('-')
    };
    let mut words = text.split_whitespace().skip_while(|word| is_harmless(word));
    match (words.next(), words.next().filter(plain)) {
        (Some(first), _) if is_wrapper(first) || is_assignment(first) => text.to_owned(),
        (Some(first), Some(second)) => format!("{first} {second} *"),
        _ => text.to_owned(),
    }
}

/// Whether this word runs the command behind it.
fn is_wrapper(first: &str) -> bool {
    let name = first.rsplit('/').next().unwrap_or_default();
    knows(&WORDS.wrappers, name) || knows(&WORDS.starters, name)
}

/// Reads a command line. Of variables only the home is known.
pub(super) fn parse(line: &str, home: &Path) -> ShellLine {
    let mut reader = WordReader {
        line,
        place: 0,
        began: 0,
        command: ShellCommand::default(),
        word: None,
        next: NextWord::Word,
        redirected: 0,
        first: None,
        until: None,
        nested: 0,
        parsed: ShellLine::default(),
    };
    reader.read(&home.to_string_lossy());
    reader.parsed
}

/// What the next word is.
enum NextWord {
    Word,
    Written,
    Read,
    /// The number of an open file, or the end of a text behind `<<`.
    Nothing,
}

struct WordReader<'a> {
    line: &'a str,
    place: usize,
    began: usize,
    command: ShellCommand,
    word: Option<String>,
    next: NextWord,
    /// Where the last redirection began.
    redirected: usize,
    /// Where the first redirection began, and the first that leads to nothing.
    first: Option<usize>,
    until: Option<usize>,
    /// In how many parentheses and functions it is.
    nested: usize,
    parsed: ShellLine,
}

impl WordReader<'_> {
    fn rest(&self) -> &str {
        self.line.get(self.place..).unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn doubt(&mut self, doubt: Doubt) {
        self.parsed.doubt.get_or_insert(doubt);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::replace(&mut self.next, NextWord::Word) {
            // Between commands, not of them.
            NextWord::Word if self.command.words.is_empty() && is_syntax(&word) => self.began = self.place,
            NextWord::Word => self.command.words.push(word),
            NextWord::Written if word == "/dev/null" => {
                self.until.get_or_insert(self.redirected);
            }
            NextWord::Written => self.command.writes.push(word),
            NextWord::Read => self.command.reads.push(word),
            NextWord::Nothing => {}
        }
    }

    fn end_command(&mut self, length: usize) {
        self.end_word();
        let until = self.until.take().unwrap_or(self.place);
        let plain = self.first.take().unwrap_or(until);
        let mut command = std::mem::take(&mut self.command);
        let starts = (knows(&WORDS.starters, command.name()) && command.words.len() > 1)
            || (command.name() == "env" && command.has(&["-S", "--split-string"]));
        if starts || command.name() == "case" || knows(&WORDS.unchecked, command.name()) {
            self.doubt(Doubt::Nested);
        }
        command.nested = self.nested > 0;
        while command.words.len() > 1 && is_harmless(&command.words[0]) {
            command.has_variable = true;
            if calculates(&command.words.remove(0)) {
                self.doubt(Doubt::Assignment);
            }
        }
        if command.is_assignment() {
            command
                .words
                .iter()
                .filter_map(|word| doubt_of(word))
                .for_each(|doubt| self.doubt(doubt));
            if command.words.len() > 1 {
                self.doubt(Doubt::Assignments);
            }
        }
        if !command.words.is_empty() || !command.writes.is_empty() {
            self.line
                .get(self.began..until)
                .unwrap_or_default()
                .trim()
                .clone_into(&mut command.text);
            let plain = self.line.get(self.began..plain).unwrap_or_default();
            plain.trim().clone_into(&mut command.plain);
            self.parsed.commands.push(command);
        }
        self.began = self.place + length;
    }

    /// Reads the commands in a text of the line, which another command contains.
    fn read_nested(&mut self, text: &str, home: &str) {
        self.doubt(Doubt::Nested);
        let nested = parse(text, Path::new(home)).commands.into_iter();
        let nested = nested.map(|command| ShellCommand {
            nested: true,
            ..command
        });
        self.parsed.commands.extend(nested);
    }

    fn dollar(&mut self, quoted: bool, home: &str) -> usize {
        let rest = self.rest();
        if rest.starts_with("$((") {
            self.doubt(Doubt::Nested);
        } else if rest.starts_with("$(") && quoted {
            let text = rest.get(2..closing(rest)).unwrap_or_default().to_owned();
            self.read_nested(&text, home);
            self.push("$(");
            self.push(&text);
            return 2 + text.len();
        } else if rest.starts_with("$(") {
            self.doubt(Doubt::Nested);
        } else if let Some(behind) = rest.strip_prefix("$HOME").or(rest.strip_prefix("${HOME}"))
            && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        {
            let length = rest.len() - behind.len();
            self.push(home);
            return length;
        } else if rest[1..].starts_with(|c: char| c.is_alphanumeric() || "_{@*#?!-$".contains(c)) {
            self.doubt(Doubt::Variable);
        }
        self.push("$");
        1
    }

    fn read(&mut self, home: &str) {
        let mut quote = None;
        while let Some(c) = self.rest().chars().next() {
            let mut length = c.len_utf8();
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (Some('\''), _) => self.push(c.encode_utf8(&mut [0; 4])),
                (_, '`') => {
                    let text = self.rest()[1..].split('`').next().unwrap_or_default().to_owned();
                    self.read_nested(&text, home);
                    self.push(&format!("`{text}`"));
                    length = (text.len() + 2).min(self.rest().len());
                }
                (_, '$') => length = self.dollar(quote.is_some(), home),
                (_, '\\') if self.rest().len() > 1 => {
                    let escaped: String = self.rest().chars().skip(1).take(1).collect();
                    if quote.is_none() && matches!(escaped.as_str(), " " | "\t") {
                        self.doubt(Doubt::Spelling);
                    }
                    self.push(&escaped);
                    length += escaped.len();
                }
                (Some(_), _) => self.push(c.encode_utf8(&mut [0; 4])),
                (None, '\'' | '"') => {
                    quote = Some(c);
                    self.word.get_or_insert_default();
                }
                (None, '>' | '<') if self.rest()[1..].starts_with('(') => {
                    self.doubt(Doubt::Nested);
                }
                (None, '>' | '<') => length = self.redirection(),
                (None, '&') if self.rest().starts_with("&>") => length = 1,
                (None, ';' | '&' | '|' | '\n') => {
                    let double = self.rest().starts_with("&&") || self.rest().starts_with("||");
                    if c == '&' && !double {
                        self.parsed.in_background = true;
                    }
                    if c == '|' && !double {
                        self.parsed.has_pipes = true;
                    } else {
                        self.parsed.has_lists = true;
                    }
                    length = if double { 2 } else { 1 };
                    self.end_command(length);
                }
                // A function. Its text, and what comes behind it, is read as a part of it.
                (None, '(') if self.rest().starts_with("()") && self.word.take().is_some() => {
                    self.doubt(Doubt::Nested);
                    self.nested += 1;
                    self.began = self.place + 2;
                    length = 2;
                }
                (None, '#') if self.word.is_none() => {
                    self.until.get_or_insert(self.place);
                    length = self.rest().find('\n').unwrap_or(self.rest().len());
                }
                (None, '(') => {
                    let calculates = self.rest().starts_with("((");
                    self.doubt(if calculates { Doubt::Group } else { Doubt::Subshell });
                    self.end_command(1);
                    self.nested += 1;
                }
                (None, ')') => {
                    self.end_command(1);
                    self.nested = self.nested.saturating_sub(1);
                }
                (None, '{' | '}') if self.word.is_none() && self.command.words.is_empty() => {
                    self.doubt(Doubt::Group);
                    self.began = self.place + 1;
                }
                (None, '{') => {
                    let inner = self.rest()[1..].split('}').next().unwrap_or_default();
                    if inner.contains(',') || inner.contains("..") {
                        self.doubt(Doubt::Spelling);
                    }
                    self.push("{");
                }
                (None, c) if c.is_whitespace() => self.end_word(),
                (None, c) => self.push(c.encode_utf8(&mut [0; 4])),
            }
            self.place += length;
        }
        self.end_command(0);
    }

    /// `>`, `>>`, `2>`, `2>&1`, `<` and `<<`.
    fn redirection(&mut self) -> usize {
        // The number of the file that is redirected.
        if self
            .word
            .as_ref()
            .is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()))
        {
            self.redirected = self.place - self.word.take().map_or(0, |number| number.len());
        } else {
            self.redirected = self.place;
        }
        self.first.get_or_insert(self.redirected);
        self.end_word();
        let rest = self.rest();
        let mark = rest.trim_start_matches(['<', '-', ' ']);
        let expands =
            rest.starts_with("<<") && !rest.starts_with("<<<") && !mark.starts_with(['\'', '"', '\\']);
        let (next, length) = match rest {
            _ if rest.starts_with(">&") => (NextWord::Nothing, 2),
            _ if rest.starts_with(">>") || rest.starts_with(">|") => (NextWord::Written, 2),
            _ if rest.starts_with('>') => (NextWord::Written, 1),
            _ if rest.starts_with("<<") => (
                NextWord::Nothing,
                rest.len() - rest.trim_start_matches(['<', '-']).len(),
            ),
            _ => (NextWord::Read, 1),
        };
        self.next = next;
        if expands {
            self.doubt(Doubt::Text);
        }
        length
    }
}

/// Where the parenthesis ends with which `$(` begins.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    let closes = |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ')' && depth == 0
    };
    text.find(closes).unwrap_or(text.len())
}

/// Whether a word gives a variable a value.
pub(super) fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether the word sets a variable that does not change what the command behind it does.
pub(super) fn is_harmless(word: &str) -> bool {
    let plain = |value: &str| {
        value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_./:-".contains(c))
    };
    word.split_once('=')
        .is_some_and(|(name, value)| knows(&WORDS.harmless, name) && plain(value))
}

/// Whether the shell may run something to get a value for this variable.
fn calculates(assignment: &str) -> bool {
    let is_number =
        |value: &str| value.len() <= 18 && value.parse().is_ok_and(|number: u64| number.to_string() == value);
    assignment
        .split_once('=')
        .is_some_and(|(name, value)| knows(&WORDS.calculating, name) && !is_number(value))
}

/// Why a variable may not get this value unasked.
fn doubt_of(assignment: &str) -> Option<Doubt> {
    let (name, value) = assignment.split_once('=')?;
    let lower = name.to_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _+:./=[]-".contains(c);
    let alters = name == "IFS"
        || (matches!(name, "PS4" | "PROMPT4") && !value.chars().all(is_plain))
        || knows(&WORDS.altering, lower.as_str())
        || ["ld_", "dyld_", "bash_func_"]
            .iter()
            .any(|prefix| lower.starts_with(prefix));
    match () {
        () if value.contains('~') => Some(Doubt::Tilde),
        () if alters || calculates(assignment) => Some(Doubt::Assignment),
        () => None,
    }
}

/// Words of the shell's own.
fn is_syntax(word: &str) -> bool {
    matches!(
        word,
        "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "!"
    )
}

/// The simple commands of a line, as words.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let parsed = parse(line, Path::new("~"));
    parsed.commands.into_iter().map(|command| command.words).collect()
}

/// Seconds after which a command that only sleeps is refused.
const LONG: u64 = 25;

/// Why a line must not run that begins with a long sleep; none if it does not. Only whole seconds count.
pub(super) fn long_sleep(text: &str) -> Option<String> {
    let rest = text.trim_start().strip_prefix("sleep ")?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (seconds, rest) = rest.split_at(end);
    let ends = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || ";&|<>".contains(c));
    let is_long = seconds.parse::<u64>().is_ok_and(|seconds| seconds >= LONG);
    (ends && is_long).then(|| {
        format!("Blocked: sleep {seconds}. Wait for something in a loop, or let the command run in the background.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        commands(line)
    }

    #[test]
    fn a_variable_that_changes_what_commands_do_is_in_doubt() {
        for (line, doubt) in [
            ("A=1", None),
            ("LINES=40 ls", None),
            ("LINES=007 ls", Some(Doubt::Assignment)),
            ("LINES= ls", Some(Doubt::Assignment)),
            ("Path=x", Some(Doubt::Assignment)),
            ("LD_PRELOAD=x && ls", Some(Doubt::Assignment)),
            ("PS4=x", None),
            ("PS4='$(id)'", Some(Doubt::Assignment)),
            ("A=~/x", Some(Doubt::Tilde)),
            ("A=1 B=2", Some(Doubt::Assignments)),
        ] {
            assert_eq!(parse(line, Path::new("/home/me")).doubt, doubt, "{line}");
        }
    }

    #[test]
    fn a_line_that_stays_where_it_is_is_what_comes_behind() {
        for (line, rest) in [
            ("cd /w/make && make", "make"),
            ("cd /w/make", "cd /w/make"),
            ("cd /w && make", "cd /w && make"),
        ] {
            let parsed = parse(line, Path::new("/home/me"));
            assert_eq!(parsed.without_standing(line, Path::new("/w/make")).1, rest);
        }
    }

    #[test]
    fn lines_are_cut_into_commands() {
        assert_eq!(
            words("a 'b c' && d | e; f"),
            [vec!["a", "b c"], vec!["d"], vec!["e"], vec!["f"]]
        );
        assert_eq!(
            words("if true; then echo a; fi"),
            [vec!["true"], vec!["echo", "a"]]
        );
        let line = parse("echo x >> ../n 2>&1 > /dev/null", Path::new("/h"));
        assert_eq!(line.commands[0].words, ["echo", "x"]);
        assert_eq!(line.commands[0].writes, ["../n"]);
        let text = |line| parse(line, Path::new("/h")).commands.remove(0).text;
        assert_eq!(text("git --version > /dev/null"), "git --version");
        assert_eq!(text("make 2>/dev/null; b"), "make");
        assert_eq!(
            parse("touch $HOME/x", Path::new("/h")).commands[0].words,
            ["touch", "/h/x"]
        );
    }

    #[test]
    fn doubts() {
        for (line, doubt) in [
            ("echo $VAR", Some(Doubt::Variable)),
            ("echo \"$VAR\"", Some(Doubt::Variable)),
            ("echo '$VAR'", None),
            ("echo $HOME", None),
            ("echo $(date)", Some(Doubt::Nested)),
            ("echo `date`", Some(Doubt::Nested)),
            ("sleep 1 &", None),
            ("a && b", None),
            ("a 2>&1", None),
            ("(a)", Some(Doubt::Subshell)),
            ("{ a; }", Some(Doubt::Group)),
            ("cat <<E\nhi\nE", Some(Doubt::Text)),
            ("cat <<'E'\nhi\nE", None),
            ("cat <<< hi", None),
        ] {
            assert_eq!(parse(line, Path::new("/h")).doubt, doubt, "{line}");
        }
    }

    #[test]
    fn patterns_of_rules() {
        for (text, expected) in [
            ("touch a", "touch a *"),
            ("touch a.txt", "touch a.txt"),
            ("touch ../b", "touch ../b"),
            ("git commit -m x", "git commit *"),
            ("curl http://x", "curl http://x"),
            ("./run.sh", "./run.sh"),
            ("X=1 echo hi", "X=1 echo hi"),
            ("cd .. && ls", "cd .. && ls"),
            ("make", "make"),
        ] {
            assert_eq!(pattern(text), expected);
        }
    }

    #[test]
    fn what_commands_do() {
        let one = |line: &str| parse(line, Path::new("/h")).commands.remove(0);
        for line in [
            "echo hi",
            "git log",
            "find . -name x",
            "sed -n p x",
            "test -f x",
            "cat x",
            "node -v",
        ] {
            assert!(one(line).only_reads(), "{line}");
        }
        for line in [
            "git add .",
            "find . -delete",
            "sed -i s/a/b/ x",
            "X=1 echo",
            "make",
            "env",
            "node x.js",
            "timeout -s echo make",
            "timeout 5 make",
        ] {
            assert!(!one(line).only_reads(), "{line}");
        }
        let paths = one("sed -i s/a/b/ src/x").paths(Path::new("/p"), Path::new("/h"));
        assert_eq!(paths.written, [Path::new("/p/src/x")]);
        let critical = one("rm -rf ~").removes_critical(Path::new("/p"), Path::new("/h"));
        assert_eq!(critical.unwrap(), Path::new("/h"));
        let critical = |line| {
            one(line)
                .removes_critical(Path::new("/p"), Path::new("/home/u"))
                .is_some()
        };
        assert!(
            critical("rm -rf /") && critical("rm /etc") && critical("rmdir ../p") && !critical("rm a /etc/b")
        );
    }
}
