//! What commands a command line of a POSIX-like shell consists of, as far as that can be known without running it.
//!
//! Two questions are asked of a command line, and err on different sides. *Is every command in it allowed?* needs a line that
//! is understood completely, so anything out of the ordinary is noted as [`odd`](Script::odd). *Can this command be in it?*
//! needs all commands that may be in it, so what the shell would compute is a text that can be [anything](Piece::Any), and
//! what can't be told apart is [`murky`](Script::murky).

use super::pattern::{Piece, is_unseen};
use super::runs;

/// Longer command lines are not read. The CLI has the same limit.
pub(super) const LONGEST: usize = 10_000;

/// How deep commands may be inside of each other.
const DEEPEST: usize = 24;

/// A command line, taken apart.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Its commands, also those inside of others.
    pub(super) parts: Vec<Part>,
    /// What is in it that is more than plain commands, one after the other or joined by `&&`, `||`, `|`.
    pub(super) odd: Option<&'static str>,
    /// Whether there may be commands in it that are not among the parts.
    pub(super) murky: bool,
    /// Whether it has a here-document.
    has_body: bool,
}

/// A simple command.
#[derive(Debug, Default, Clone)]
pub(super) struct Part {
    /// Its words, without assignments before it and without redirections.
    pub(super) words: Vec<Word>,
    /// The files that it is redirected from or to.
    pub(super) targets: Vec<Word>,
}

/// A word of a command.
#[derive(Debug, Default, Clone)]
pub(super) struct Word {
    /// What the shell makes of it.
    pub(super) pieces: Vec<Piece>,
    /// How it is written.
    pub(super) raw: String,
    /// Whether some of it is quoted.
    pub(super) quoted: bool,
}

impl Word {
    /// What the shell makes of it, if that is known.
    pub(super) fn text(&self) -> Option<String> {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Char(c) => Some(*c),
                Piece::Any => None,
            })
            .collect()
    }

    /// The last segment of the path that it is, in lower case: the name of the program, if it is one.
    pub(super) fn program(&self) -> Option<String> {
        let text = self.text()?.to_lowercase();
        let name = text.rsplit(['/', '\\']).next().unwrap_or_default();
        Some(name.strip_suffix(".exe").unwrap_or(name).to_owned())
    }

    /// A text to be read as a command line itself, in which `$_` stands for what is not known.
    pub(super) fn script(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Char(c) => text.push(*c),
                Piece::Any => text.push_str("${_}"),
            }
        }
        text
    }
}

/// Takes a command line apart.
pub(super) fn read(text: &str) -> Script {
    read_within(text, 0)
}

fn read_within(text: &str, depth: usize) -> Script {
    let mut reader = Reader {
        text: text.chars().collect(),
        at: 0,
        depth,
        script: Script::default(),
        bodies: Vec::new(),
    };
    if reader.text.len() > LONGEST {
        return Script {
            odd: Some("it is too long"),
            murky: true,
            ..Script::default()
        };
    }
    reader.commands(None);
    if !reader.bodies.is_empty() {
        reader.murky("a here-document that does not end");
    }
    // A here-document may be a script for one of the commands.
    let mut commands = reader.script.parts.iter().map(|part| &part.words);
    if reader.script.has_body && commands.any(|words| runs::kind(words).is_some()) {
        reader.murky("a here-document that may be a script");
    }
    reader.script
}

struct Reader {
    text: Vec<char>,
    at: usize,
    depth: usize,
    script: Script,
    /// The here-documents that begin on this line.
    bodies: Vec<Body>,
}

struct Body {
    delimiter: String,
    quoted: bool,
    tabs: bool,
}

/// What is being read: the word and the command it is of.
#[derive(Default)]
struct State {
    part: Part,
    word: Option<(Word, usize)>,
    /// Whether the next word is the target of a redirection; whether a number or `-` may stand there for none.
    target: Option<bool>,
    /// Whether an operator waits for its right side.
    joined: bool,
}

const RESERVED: &[&str] = &[
    "!", "{", "}", "[[", "]]", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done",
    "case", "esac", "in", "select", "function", "coproc",
];

impl Reader {
    fn odd(&mut self, what: &'static str) {
        self.script.odd.get_or_insert(what);
    }

    fn murky(&mut self, what: &'static str) {
        self.odd(what);
        self.script.murky = true;
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn follows(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    /// Reads commands up to the closing parenthesis, or to the end.
    fn commands(&mut self, end: Option<char>) {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.murky("too many commands inside of each other");
            self.at = self.text.len();
        }
        let mut state = State::default();
        let mut closed = false;
        while let Some(c) = self.peek(0) {
            if Some(c) == end {
                self.at += 1;
                closed = true;
                break;
            }
            self.step(c, &mut state);
        }
        self.end_part(&mut state);
        if state.joined {
            self.odd("an operator with nothing behind it");
        }
        if end.is_some() && !closed {
            self.murky("a parenthesis that is not closed");
        }
        self.depth -= 1;
    }

    fn step(&mut self, c: char, state: &mut State) {
        match c {
            ' ' | '\t' => {
                self.end_word(state);
                self.at += 1;
            }
            '\n' => {
                // A line that ends behind an operator goes on.
                self.end_part(state);
                self.at += 1;
                self.skip_bodies();
            }
            ';' => self.operator(1, state, false),
            '&' if self.follows("&>") => {
                self.end_word(state);
                self.at += 1;
                self.redirect(state);
            }
            '&' if self.follows("&&") => self.operator(2, state, true),
            '&' => {
                self.odd("`&`");
                self.operator(1, state, false);
            }
            '|' if self.follows("||") || self.follows("|&") => self.operator(2, state, true),
            '|' => self.operator(1, state, true),
            '(' => {
                self.odd("a parenthesis");
                self.end_part(state);
                self.at += 1;
                self.commands(Some(')'));
            }
            ')' => {
                self.odd("a parenthesis");
                self.end_part(state);
                self.at += 1;
            }
            '<' | '>' if self.peek(1) == Some('(') => {
                self.odd("a process substitution");
                self.at += 2;
                self.commands(Some(')'));
                self.word(state).pieces.push(Piece::Any);
            }
            '<' | '>' => self.redirect(state),
            _ => self.character(c, state),
        }
    }

    /// A character of a word.
    fn character(&mut self, c: char, state: &mut State) {
        let begins = state.word.is_none();
        match c {
            '\\' => match self.peek(1) {
                Some('\n') => self.at += 2,
                Some(next) => {
                    let word = self.word(state);
                    word.quoted = true;
                    word.pieces.push(Piece::Char(next));
                    self.at += 2;
                }
                None => {
                    self.murky("a backslash at the end");
                    self.at += 1;
                }
            },
            '\'' => {
                self.word(state).quoted = true;
                self.at += 1;
                loop {
                    match self.peek(0) {
                        Some('\'') => break self.at += 1,
                        Some(c) => {
                            self.word(state).pieces.push(Piece::Char(c));
                            self.at += 1;
                        }
                        None => break self.murky("a quotation mark that is not closed"),
                    }
                }
            }
            '"' => {
                self.word(state).quoted = true;
                self.at += 1;
                self.quoted(state);
            }
            '$' => self.dollar(state, false),
            '`' => self.backticks(state),
            '*' | '?' | '[' => {
                self.word(state).pieces.push(Piece::Any);
                self.at += 1;
            }
            '{' => self.brace(begins, state),
            '}' => {
                if !begins {
                    self.odd("a brace");
                }
                self.plain(c, state);
            }
            '~' if self.peek(1) == Some('[') => {
                self.odd("`~[`");
                self.plain(c, state);
            }
            '#' if begins => {
                // A comment, in most shells. What stands in it counts as if it were none.
                self.odd("a comment");
                self.plain(c, state);
            }
            '=' if begins => {
                self.odd("a word that begins with `=`");
                self.plain(c, state);
            }
            c if c.is_control() || is_unseen(c) || (c.is_whitespace() && !c.is_ascii()) => {
                self.odd("a character that can't be seen");
                self.word(state).pieces.push(Piece::Any);
                self.at += 1;
            }
            c => self.plain(c, state),
        }
    }

    fn plain(&mut self, c: char, state: &mut State) {
        self.word(state).pieces.push(Piece::Char(c));
        self.at += 1;
    }

    fn brace(&mut self, begins: bool, state: &mut State) {
        let after = self.peek(1);
        if after == Some('}') {
            self.word(state).pieces.extend(['{', '}'].map(Piece::Char));
            self.at += 2;
        } else if begins && after.is_none_or(char::is_whitespace) {
            self.plain('{', state);
        } else {
            self.odd("a brace");
            self.word(state).pieces.push(Piece::Any);
            self.at += 1;
        }
    }

    /// Behind a double quotation mark.
    fn quoted(&mut self, state: &mut State) {
        while let Some(c) = self.peek(0) {
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => match self.peek(1) {
                    Some('\n') => self.at += 2,
                    Some(next @ ('$' | '`' | '"' | '\\')) => {
                        self.word(state).pieces.push(Piece::Char(next));
                        self.at += 2;
                    }
                    _ => self.plain(c, state),
                },
                '$' => self.dollar(state, true),
                '`' => self.backticks(state),
                c if is_unseen(c) || (c.is_control() && c != '\n' && c != '\t') => {
                    self.odd("a character that can't be seen");
                    self.word(state).pieces.push(Piece::Any);
                    self.at += 1;
                }
                c => self.plain(c, state),
            }
        }
        self.murky("a quotation mark that is not closed");
    }

    fn dollar(&mut self, state: &mut State, quoted: bool) {
        self.odd("`$`");
        self.word(state);
        self.at += 1;
        match self.peek(0) {
            Some('(') => {
                self.at += 1;
                self.commands(Some(')'));
            }
            Some('{') => {
                self.at += 1;
                let from = self.at;
                let mut depth = 1usize;
                while let Some(c) = self.peek(0) {
                    self.at += 1;
                    match c {
                        '\\' => self.at += 1,
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
                if depth > 0 {
                    self.murky("a brace that is not closed");
                }
                let to = self.at.min(self.text.len());
                let inner: String = self.text[from.min(to)..to].iter().collect();
                self.within(inner.trim_end_matches('}'));
            }
            Some('\'') if !quoted => {
                self.at += 1;
                loop {
                    match self.peek(0) {
                        Some('\\') => self.at += 2,
                        Some('\'') => break self.at += 1,
                        Some(_) => self.at += 1,
                        None => break self.murky("a quotation mark that is not closed"),
                    }
                }
            }
            // A text to be translated: the quotation mark is read next.
            Some('"') if !quoted => return,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self
                    .peek(0)
                    .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
                {
                    self.at += 1;
                }
            }
            Some(c) if c.is_ascii_digit() || "?#@*!-$".contains(c) => self.at += 1,
            _ => {
                self.word(state).pieces.push(Piece::Char('$'));
                return;
            }
        }
        self.word(state).pieces.push(Piece::Any);
    }

    fn backticks(&mut self, state: &mut State) {
        self.odd("a backtick");
        self.word(state);
        self.at += 1;
        let mut inner = String::new();
        loop {
            match self.peek(0) {
                Some('`') => break self.at += 1,
                Some('\\') => {
                    match self.peek(1) {
                        Some(c @ ('`' | '\\' | '$')) => inner.push(c),
                        Some(c) => inner.extend(['\\', c]),
                        None => {}
                    }
                    self.at += 2;
                }
                Some(c) => {
                    inner.push(c);
                    self.at += 1;
                }
                None => break self.murky("a backtick that is not closed"),
            }
        }
        self.within(&inner);
        self.word(state).pieces.push(Piece::Any);
    }

    /// Reads a text inside of this one.
    fn within(&mut self, text: &str) {
        if self.depth >= DEEPEST {
            return self.murky("too many commands inside of each other");
        }
        let inner = read_within(text, self.depth);
        self.script.parts.extend(inner.parts);
        self.script.murky |= inner.murky;
        self.script.has_body |= inner.has_body;
    }

    /// A redirection. What is before it in the word is the number of a descriptor, or a word of its own.
    fn redirect(&mut self, state: &mut State) {
        let number = state.word.as_ref().is_some_and(|(word, _)| {
            !word.quoted
                && word.raw.is_empty()
                && word
                    .pieces
                    .iter()
                    .all(|piece| matches!(piece, Piece::Char('0'..='9')))
        });
        if number {
            state.word = None;
        }
        self.end_word(state);
        if self.follows("<<<") {
            self.odd("a here-string");
            self.at += 3;
            return;
        }
        if self.follows("<<") {
            self.odd("a here-document");
            self.at += 2;
            return self.here_document();
        }
        self.at += 1;
        let mut duplicates = false;
        while let Some(c @ ('>' | '<' | '|' | '&')) = self.peek(0) {
            duplicates |= c == '&';
            self.at += 1;
        }
        if state.target.is_some() {
            self.murky("a redirection without a target");
        }
        state.target = Some(duplicates);
    }

    fn here_document(&mut self) {
        let tabs = self.peek(0) == Some('-');
        if tabs {
            self.at += 1;
        }
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        let (mut delimiter, mut quoted) = (String::new(), false);
        while let Some(c) = self.peek(0) {
            match c {
                '\'' | '"' | '\\' => quoted = true,
                c if c.is_whitespace() || ";&|<>()".contains(c) => break,
                c => delimiter.push(c),
            }
            self.at += 1;
        }
        if delimiter.is_empty() {
            return self.murky("a here-document without an end");
        }
        self.bodies.push(Body {
            delimiter,
            quoted,
            tabs,
        });
    }

    /// Skips the here-documents that begin behind this line, and reads the commands that are in them.
    fn skip_bodies(&mut self) {
        for body in std::mem::take(&mut self.bodies) {
            let mut inner = String::new();
            loop {
                if self.at >= self.text.len() {
                    return self.murky("a here-document that does not end");
                }
                let rest = &self.text[self.at..];
                let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                self.at += length + 1;
                let line = if body.tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == body.delimiter {
                    break;
                }
                inner.push_str(line);
                inner.push('\n');
            }
            self.at = self.at.min(self.text.len());
            // The shell replaces what is in it unless its delimiter is quoted; a quotation mark is an ordinary character there.
            if !body.quoted && (inner.contains("$(") || inner.contains('`') || inner.contains("${")) {
                self.murky("a here-document with commands in it");
            }
            self.script.has_body = true;
        }
    }

    fn operator(&mut self, length: usize, state: &mut State, joins: bool) {
        if !self.end_part(state) {
            self.odd("an operator with nothing before it");
        }
        state.joined = joins;
        self.at += length;
    }

    fn word<'a>(&self, state: &'a mut State) -> &'a mut Word {
        &mut state.word.get_or_insert_with(|| (Word::default(), self.at)).0
    }

    fn end_word(&mut self, state: &mut State) {
        let Some((mut word, from)) = state.word.take() else {
            return;
        };
        let raw: String = self.text[from..self.at.min(self.text.len())].iter().collect();
        word.raw = raw.replace("\\\n", "");
        let Some(duplicates) = state.target.take() else {
            return state.part.words.push(word);
        };
        let numeric = !word.raw.is_empty() && word.raw.chars().all(|c| c.is_ascii_digit());
        if (duplicates && (numeric || word.raw == "-")) || word.raw == "/dev/null" {
            return;
        }
        self.odd("a redirection to a file");
        state.part.targets.push(word);
    }

    /// Ends a command; whether there was one.
    fn end_part(&mut self, state: &mut State) -> bool {
        self.end_word(state);
        if state.target.take().is_some() {
            self.murky("a redirection without a target");
        }
        let mut part = std::mem::take(&mut state.part);
        let existed = !(part.words.is_empty() && part.targets.is_empty());
        let mut leading = 0;
        for word in &part.words {
            if RESERVED.contains(&word.raw.as_str()) {
                self.odd("a word of the shell's own");
                if word.raw == "case" {
                    self.murky("a word of the shell's own");
                }
            } else if assigns(&word.raw) {
                self.odd("an assignment");
            } else {
                break;
            }
            leading += 1;
        }
        part.words.drain(..leading);
        if !(part.words.is_empty() && part.targets.is_empty()) {
            self.script.parts.push(part);
        }
        if existed {
            state.joined = false;
        }
        existed
    }
}

/// Whether a word sets a variable, if it stands before the command.
pub(super) fn assigns(raw: &str) -> bool {
    let Some((name, _)) = raw.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or_default();
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
