//! Rules for `Bash`: which command lines they cover, and which they touch.

use std::collections::BTreeSet;

use super::pattern::{Piece, Text, fold_pieces, known, matches, wildcards};
use super::runs::{self, Kind};
use super::shell::{self, Part, Script, Word};

/// Behind how many words of a command a program is looked for that has options before its subcommand.
const STARTS: usize = 64;

/// How many scripts inside of each other are looked into.
const NESTED: usize = 4;

/// How many texts a command line is matched as at most; one with more is taken for one that runs anything.
const MOST: usize = 4096;

/// What is between the parentheses of a rule for `Bash`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandPattern {
    /// Any of these; as written.
    narrow: Vec<Vec<Piece>>,
    /// The same for matching as much as it could mean: folded, and also without quotation marks.
    wide: Vec<Vec<Piece>>,
    has_wildcard: bool,
}

impl CommandPattern {
    /// Reads it. The error says what is wrong, and what to write instead.
    pub(super) fn parse(spec: &str) -> Result<Self, &'static str> {
        if spec.contains("\\*") {
            return Err("has `\\*`, which no `*` of a command can be told from: leave the backslash out");
        }
        if spec != spec.trim() {
            return Err("begins or ends with a blank between its parentheses");
        }
        let blank = |spec: &str| spec.chars().all(|c| c == '*' || c == ' ');
        let (text, prefix) = match spec.strip_suffix(":*").or_else(|| spec.strip_suffix(" *")) {
            Some(prefix) if !prefix.contains('*') => (prefix, true),
            Some(_) if spec.ends_with(":*") => {
                return Err("has a `*` before its `:*`; end it with ` *` instead");
            }
            _ => (spec, false),
        };
        if text.contains(":*") {
            return Err(
                "has `:*` before its end, where the colon is an ordinary character: put a blank there",
            );
        }
        if blank(text) {
            return Err("names no command; name the tool alone to mean all of its calls");
        }
        let base = wildcards(&single_blanks(text));
        let mut narrow = vec![base.clone()];
        if prefix {
            let mut longer = base;
            longer.extend([Piece::Char(' '), Piece::Any]);
            narrow.push(longer);
        }
        let mut wide = Vec::new();
        for pattern in &narrow {
            let bare = pattern
                .iter()
                .copied()
                .filter(|piece| !matches!(piece, Piece::Char('\'' | '"' | '\\')));
            for pattern in [fold_pieces(pattern.iter().copied()), fold_pieces(bare)] {
                if !wide.contains(&pattern) {
                    wide.push(pattern);
                }
            }
        }
        Ok(Self {
            narrow,
            wide,
            has_wildcard: prefix || text.contains('*'),
        })
    }

    /// Whether it leaves open which program runs.
    pub(super) fn names_no_program(&self) -> bool {
        self.narrow
            .iter()
            .any(|pattern| pattern.first() == Some(&Piece::Any))
    }

    /// Whether this one command is covered.
    fn covers(&self, words: &[Word]) -> bool {
        if self.has_wildcard && runs::goes_as_a_whole(words) {
            return false;
        }
        let raw: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
        let text = known(&raw.join(" "));
        self.narrow.iter().any(|pattern| matches(pattern, &text))
    }

    /// Whether a command line could run what this names.
    pub(super) fn touches(&self, line: &Line) -> bool {
        line.hides_all
            || line
                .texts
                .iter()
                .any(|text| self.wide.iter().any(|pattern| matches(pattern, text)))
    }
}

fn single_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Which of the patterns covers each of the commands of a line; `Err` tells why the line is not covered.
pub(super) fn cover<T: Copy>(patterns: &[(T, &CommandPattern)], command: &str) -> Result<Vec<T>, String> {
    let script = shell::read(command);
    if let Some(odd) = script.odd {
        return Err(format!("with {odd} in it no rule covers the command"));
    }
    if script.parts.is_empty() {
        return Err("it holds no command".into());
    }
    let mut by = Vec::new();
    for part in &script.parts {
        by.push(cover_part(patterns, part).ok_or_else(|| {
            let words: Vec<&str> = part.words.iter().map(|word| word.raw.as_str()).collect();
            format!("no rule covers `{}`", words.join(" "))
        })?);
    }
    Ok(by)
}

fn cover_part<T: Copy>(patterns: &[(T, &CommandPattern)], part: &Part) -> Option<T> {
    let mut words = &part.words[..];
    if words.is_empty() || !part.targets.is_empty() {
        return None;
    }
    loop {
        if let Some((by, _)) = patterns.iter().find(|(_, pattern)| pattern.covers(words)) {
            return Some(*by);
        }
        match runs::wrapped(words, false) {
            0 => return None,
            length => words = &words[length..],
        }
    }
}

/// A command line with all that it could run.
pub(super) struct Line {
    texts: Vec<Text>,
    /// Whether it may run what can't be seen in it.
    pub(super) hides_all: bool,
    /// Its words and the files of its redirections, as far as they are known; whether the command may write them.
    pub(super) mentions: Vec<(String, bool)>,
}

impl Line {
    pub(super) fn read(command: &str) -> Self {
        let mut line = Self {
            texts: Vec::new(),
            hides_all: command.chars().count() > shell::LONGEST,
            mentions: Vec::new(),
        };
        if !line.hides_all {
            line.script(command, &shell::read(command), 0);
        }
        line
    }

    fn script(&mut self, text: &str, script: &Script, depth: usize) {
        if script.murky {
            self.loosely(text, true);
        }
        for part in &script.parts {
            self.part(part, depth);
        }
    }

    fn part(&mut self, part: &Part, depth: usize) {
        let reads = part
            .words
            .first()
            .and_then(Word::program)
            .is_some_and(|p| runs::only_reads(&p));
        for (words, writes) in [(&part.words, !reads), (&part.targets, true)] {
            for text in words.iter().filter_map(Word::text) {
                self.mention(text, writes);
            }
        }
        let mut words = &part.words[..];
        while !words.is_empty() {
            self.command(words, depth);
            match runs::wrapped(words, true) {
                0 => break,
                length => words = &words[length..],
            }
        }
    }

    fn command(&mut self, words: &[Word], depth: usize) {
        // A plain wrapper is taken off by `part`; others may run any of their words.
        let runs = runs::kind(words).filter(|_| runs::wrapped(words, true) == 0);
        let is_known = |at: usize| words[at].pieces.first() != Some(&Piece::Any);
        let operand = words
            .iter()
            .skip(1)
            .position(|word| word.text().is_none_or(|text| !text.starts_with('-')))
            .map(|at| at + 1);
        let begins = |at: usize| match runs {
            _ if at == 0 => true,
            None => false,
            Some(Kind::Wrapper) => true,
            Some(Kind::Finder) => runs::finds(&words[at - 1]),
            Some(Kind::Shell) => is_known(at) || Some(at) == operand,
            Some(Kind::Language) => is_known(at),
        };
        self.texts.push(text(
            words,
            |word| word.raw.chars().map(Piece::Char).collect(),
            begins,
        ));
        self.texts.push(text(words, |word| word.pieces.clone(), begins));
        // The options between a program and its subcommand, with or without values, could be left out.
        for start in (0..words.len().min(STARTS)).filter(|at| begins(*at)) {
            let mut behind = BTreeSet::from([start + 1]);
            while let Some(at) = behind.pop_first() {
                let option = words
                    .get(at)
                    .and_then(Word::text)
                    .is_some_and(|text| text.starts_with('-'));
                if !option || at - start > STARTS {
                    continue;
                }
                for next in [at + 1, at + 2] {
                    if next < words.len() && behind.insert(next) {
                        let without: Vec<Word> = [&words[start..=start], &words[next..]].concat();
                        self.texts
                            .push(text(&without, |word| word.pieces.clone(), |at| at == 0));
                    }
                }
                if self.texts.len() > MOST {
                    self.hides_all = true;
                    return;
                }
            }
        }
        let quoted = words.iter().skip(1).filter(|word| word.quoted);
        match runs {
            Some(Kind::Wrapper | Kind::Shell) if depth >= NESTED => self.hides_all |= quoted.count() > 0,
            Some(Kind::Wrapper | Kind::Shell) => {
                for word in quoted {
                    let inner = word.script();
                    self.script(&inner, &shell::read(&inner), depth + 1);
                    if let Some((_, value)) = inner.split_once('=') {
                        self.script(value, &shell::read(value), depth + 1);
                    }
                }
            }
            // Only what is written there can be found.
            Some(Kind::Language) => quoted.for_each(|word| self.loosely(&word.script(), false)),
            Some(Kind::Finder) | None => {}
        }
    }

    fn mention(&mut self, text: String, writes: bool) {
        if let Some((_, value)) = text.split_once('=') {
            self.mentions.push((value.to_owned(), writes));
        }
        self.mentions.push((text, writes));
    }

    /// Takes anything that could be a command for one. `unknown` says whether the shell replaces `$X` and `*` in it.
    fn loosely(&mut self, command: &str, unknown: bool) {
        let command = command.replace("\\\n", "");
        for quotes_part in [false, true] {
            let mut text = Text::new();
            let mut begins = true;
            let mut chars = command.chars().peekable();
            while let Some(c) = chars.next() {
                match c {
                    '\'' | '"' | '\\' if !quotes_part => continue,
                    ';' | '&' | '|' | '\n' | '(' | ')' | '{' | '}' | '<' | '>' | '`' | ',' => {
                        self.fragment(&mut text);
                        begins = true;
                        continue;
                    }
                    '$' | '*' | '?' | '[' if !unknown => {
                        self.fragment(&mut text);
                        begins = true;
                        continue;
                    }
                    ' ' | '\t' | '\'' | '"' | '\\' => {
                        if text.last().is_some_and(|(piece, _)| *piece != Piece::Char(' ')) {
                            text.push((Piece::Char(' '), false));
                        }
                        begins = true;
                        continue;
                    }
                    '$' => {
                        while chars
                            .peek()
                            .is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
                        {
                            chars.next();
                        }
                        text.push((Piece::Any, begins));
                    }
                    '*' | '?' | '[' => text.push((Piece::Any, begins)),
                    c => {
                        for (at, piece) in fold_pieces([Piece::Char(c)]).into_iter().enumerate() {
                            text.push((piece, begins && at == 0));
                        }
                    }
                }
                begins = matches!(c, '/' | '=');
            }
            self.fragment(&mut text);
        }
        let words = command.split(|c: char| c.is_whitespace() || ";&|(){}<>`'\"\\".contains(c));
        for word in words.filter(|word| !word.is_empty()) {
            self.mention(word.to_owned(), true);
        }
    }

    fn fragment(&mut self, text: &mut Text) {
        let mut text = std::mem::take(text);
        while text.last().is_some_and(|(piece, _)| *piece == Piece::Char(' ')) {
            text.pop();
        }
        if !text.is_empty() {
            self.texts.push(text);
        }
    }
}

/// Words as a text to match, folded; `begins` says which of them may be a program. The directory of a program does not count.
fn text(words: &[Word], pieces: impl Fn(&Word) -> Vec<Piece>, begins: impl Fn(usize) -> bool) -> Text {
    let mut text = Text::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            text.push((Piece::Char(' '), false));
        }
        let starts = begins(at);
        let mut fresh = starts;
        let mut pieces = fold_pieces(pieces(word));
        let suffix = [".", "e", "x", "e"].map(|c| Piece::Char(c.chars().next().unwrap_or_default()));
        if starts && pieces.ends_with(&suffix) {
            pieces.truncate(pieces.len() - suffix.len());
        }
        for piece in pieces {
            text.push((piece, fresh));
            fresh = starts && matches!(piece, Piece::Char('/' | '\\'));
        }
    }
    text
}
