//! `cargo xtask size`: how many lines each crate has, of which kind, and the longest files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

use crate::layers::sources::{attribute, is_sign, read, word};
use crate::types;

/// How many of the longest files are printed.
const LONGEST: usize = 10;

/// Items that count when they are `pub`. Fields, methods of traits, variants and re-exports do not.
const ITEMS: &[&str] = &[
    "async", "const", "enum", "extern", "fn", "mod", "static", "struct", "trait", "type", "union", "unsafe",
];

/// How many lines there are. No line counts twice, and blank ones not at all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Lines {
    /// Code of `src` that is not only for tests.
    code: usize,
    /// Comments of `src`.
    comments: usize,
    /// Doc comments of `src`.
    docs: usize,
    /// Code and docs that `cargo xtask types` writes, which count nowhere else.
    written: usize,
    /// Code and docs that only tests compile, in files that have other code.
    inline_tests: usize,
    /// Code and docs of test files, in `tests/` and in `src`.
    tests: usize,
    /// Code and docs of benchmarks, examples, fuzz targets and build scripts.
    others: usize,
    /// Items declared `pub` outside of tests, whether or not their module is.
    public: usize,
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.code += other.code;
        self.comments += other.comments;
        self.docs += other.docs;
        self.written += other.written;
        self.inline_tests += other.inline_tests;
        self.tests += other.tests;
        self.others += other.others;
        self.public += other.public;
    }
}

pub(crate) fn run() -> Result<ExitCode> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut members = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        members.push(entry?.path());
    }
    members.sort();
    members.extend(["fuzz", "xtask"].map(|name| root.join(name)));

    println!(
        "{:10} {:>8} {:>9} {:>7} {:>8} {:>13} {:>8} {:>7} {:>7}",
        "crate", "code", "comments", "docs", "written", "inline tests", "tests", "others", "public"
    );
    let mut total = Lines::default();
    let mut longest = Vec::new();
    for member in members {
        let mut lines = Lines::default();
        for (path, text, counted) in
            of_crate(&member).with_context(|| format!("counting {}", member.display()))?
        {
            lines += counted;
            let path = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if counted.written == 0 {
                longest.push((text.lines().count(), path));
            }
        }
        print(&member.file_name().unwrap_or_default().to_string_lossy(), &lines);
        total += lines;
    }
    print("all", &total);

    longest.sort_by(|a, b| b.cmp(a));
    println!("\nthe longest files, all of their lines:");
    for (lines, path) in longest.iter().take(LONGEST) {
        println!("{lines:7}  {path}");
    }
    Ok(ExitCode::SUCCESS)
}

fn print(name: &str, lines: &Lines) {
    println!(
        "{name:10} {:8} {:9} {:7} {:8} {:13} {:8} {:7} {:7}",
        lines.code,
        lines.comments,
        lines.docs,
        lines.written,
        lines.inline_tests,
        lines.tests,
        lines.others,
        lines.public
    );
}

/// The files of a crate, each with its text and its lines.
fn of_crate(dir: &Path) -> Result<Vec<(PathBuf, String, Lines)>> {
    let mut paths = Vec::new();
    sources_below(dir, &mut paths)?;
    let src = dir.join("src");
    let is_root = |path: &Path| {
        let bin = src.join("bin");
        path == src.join("lib.rs") || path == src.join("main.rs") || path.parent() == Some(&bin)
    };
    let mut read_files = Vec::new();
    for root in paths.iter().filter(|path| is_root(path)) {
        read(root, &[], &mut read_files)?;
    }
    let kept: BTreeMap<PathBuf, Vec<TokenTree>> = read_files
        .into_iter()
        .map(|file| (file.path, file.tokens))
        .collect();
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let tokens: TokenStream = text
            .parse()
            .map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let lines = match kept.get(&path) {
            Some(kept) if text.lines().any(|line| line.starts_with(types::WRITTEN)) => {
                let found = Found::of(kept);
                Lines {
                    written: found.code.union(&found.docs).count(),
                    public: found.public,
                    ..Lines::default()
                }
            }
            Some(kept) => of_source(&text, &tokens, kept),
            None => {
                let found = Found::of(&tokens);
                let lines = found.code.union(&found.docs).count();
                match path.starts_with(&src) || path.starts_with(dir.join("tests")) {
                    true => Lines {
                        tests: lines,
                        ..Lines::default()
                    },
                    false => Lines {
                        others: lines,
                        ..Lines::default()
                    },
                }
            }
        };
        files.push((path, text, lines));
    }
    Ok(files)
}

/// The Rust files below a folder, without what builds leave.
fn sources_below(dir: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                sources_below(&path, paths)?;
            }
        } else if path.extension() == Some(OsStr::new("rs")) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(())
}

/// The lines of a file whose tokens are `all`, of which `kept` are not only for tests.
fn of_source(text: &str, all: &[TokenTree], kept: &[TokenTree]) -> Lines {
    let (all, kept) = (Found::of(all), Found::of(kept));
    let mut lines = Lines {
        public: kept.public,
        ..Lines::default()
    };
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        if kept.code.contains(&number) {
            lines.code += 1;
        } else if kept.docs.contains(&number) {
            lines.docs += 1;
        } else if all.code.contains(&number) || all.docs.contains(&number) {
            lines.inline_tests += 1;
        } else if !line.trim().is_empty() {
            lines.comments += 1;
        }
    }
    lines
}

/// What tokens stand on, by the numbers of the lines.
#[derive(Debug, Default)]
struct Found {
    code: BTreeSet<usize>,
    docs: BTreeSet<usize>,
    public: usize,
}

impl Found {
    fn of(tokens: &[TokenTree]) -> Self {
        let mut found = Self::default();
        found.add(tokens);
        found
    }

    fn add(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            // To the tokenizer a doc comment is an attribute.
            if let Some((text, end)) = attribute(tokens, at)
                && text.starts_with("doc=")
            {
                self.docs.extend(lines(token.span()));
                if let Some(last) = tokens.get(end - 1) {
                    self.docs.extend(lines(last.span()));
                }
                at = end;
                continue;
            }
            if let TokenTree::Group(group) = token {
                self.code.extend(lines(group.span_open()));
                self.code.extend(lines(group.span_close()));
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                self.add(&inside);
            } else {
                self.code.extend(lines(token.span()));
            }
            let is_public = word(Some(token)).as_deref() == Some("pub") && !is_restricted(tokens.get(at + 1));
            if is_public && word(tokens.get(at + 1)).is_some_and(|word| ITEMS.contains(&word.as_str())) {
                // A field may be called `union`.
                self.public += usize::from(!is_sign(tokens.get(at + 2), ':'));
            }
            at += 1;
        }
    }
}

/// Whether this is the `(crate)` of `pub(crate)`.
fn is_restricted(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

fn lines(span: Span) -> std::ops::RangeInclusive<usize> {
    span.start().line..=span.end().line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_one_kind() {
        let files = [
            (
                "src/lib.rs",
                "//! Docs.\n\n/* A comment\n   of two lines. */\nmod a; // Code.\nmod w;\n/// Docs.\npub struct S {\n    /// Docs.\n    \
                 pub union: u8,\n    // A comment.\n}\npub(crate) fn f() -> &'static str {\n    \"a\n\n    b\"\n}\n#[cfg(test)]\n\
                 mod tests;\n#[cfg(test)]\n/// Docs.\nmod inline {\n    pub fn g() {}\n}\n",
            ),
            ("src/a.rs", "pub const fn h() {}\n"),
            (
                "src/w.rs",
                "//! Docs.\n// Written by `cargo xtask types` from here.\n\n/// Docs.\npub struct T;\n",
            ),
            ("src/tests.rs", "/// Docs.\nfn t() {}\n\n// A comment.\n"),
            ("tests/it/main.rs", "fn u() {}\n"),
            ("examples/e.rs", "fn main() {}\n"),
            ("src/bin/b.rs", "fn main() {}\n"),
        ];
        let place = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            fs::write(path, text).expect("it is written");
        }
        let mut total = Lines::default();
        for (_, _, lines) in of_crate(place.path()).expect("it is counted") {
            total += lines;
        }
        let expected = Lines {
            // With the blank line within the string.
            code: 12,
            comments: 3,
            docs: 3,
            written: 3,
            inline_tests: 7,
            tests: 3,
            others: 1,
            public: 3,
        };
        assert_eq!(total, expected);
    }
}
