//! The sources of a crate as tokens, without what only tests compile.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A source file, without what only tests compile.
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// The path of the module; empty for the root.
    pub(crate) module: Vec<String>,
    pub(crate) tokens: Vec<TokenTree>,
}

/// Reads a file and those of its modules.
pub(crate) fn read(path: &Path, module: &[String], files: &mut Vec<File>) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let tokens: TokenStream = text
        .parse()
        .map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let tokens = without_tests(tokens);
    let owns_its_folder = module.is_empty() || path.ends_with("mod.rs");
    let folder = match owns_its_folder {
        true => path.with_file_name(""),
        false => path.with_extension(""),
    };
    for name in declared(&tokens) {
        let places = [
            folder.join(format!("{name}.rs")),
            folder.join(&name).join("mod.rs"),
        ];
        let file = places.iter().find(|place| place.exists());
        let file = file.ok_or_else(|| anyhow!("{} has no file for `mod {name}`", path.display()))?;
        read(file, &[module, &[name]].concat(), files)?;
    }
    files.push(File {
        path: path.to_owned(),
        module: module.to_owned(),
        tokens,
    });
    Ok(())
}

pub(crate) fn word(token: Option<&TokenTree>) -> Option<String> {
    match token? {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    }
}

pub(crate) fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// The text of the attribute at `at`, and where it ends.
pub(crate) fn attribute(tokens: &[TokenTree], at: usize) -> Option<(String, usize)> {
    if !is_sign(tokens.get(at), '#') {
        return None;
    }
    let at = at + 1 + usize::from(is_sign(tokens.get(at + 1), '!'));
    match tokens.get(at)? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            let mut text = group.stream().to_string();
            text.retain(|c| !c.is_whitespace());
            Some((text, at + 1))
        }
        _ => None,
    }
}

/// How items begin, which may have commas in them.
const ITEMS: &[&str] = &["enum", "fn", "impl", "mod", "struct", "trait", "type", "use"];

fn is_for_tests(attribute: &str) -> bool {
    ["cfg(test)", "cfg(all(test,", "cfg(doctest)", "cfg(all(doctest,"]
        .iter()
        .any(|start| attribute.starts_with(start))
}

/// The tokens without items, fields and statements that only tests compile.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match attribute(&tokens, at) {
            Some((text, end)) if is_for_tests(&text) => {
                at = end;
                let mut is_item = false;
                while let Some(token) = tokens.get(at) {
                    at += 1;
                    is_item |= word(Some(token)).is_some_and(|word| ITEMS.contains(&word.as_str()));
                    let is_body =
                        matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
                    // A field ends with a comma. A `use` goes on behind its braces, with nothing that counts.
                    if is_body || is_sign(Some(token), ';') || is_sign(Some(token), ',') && !is_item {
                        break;
                    }
                }
                continue;
            }
            _ => {}
        }
        kept.push(match token {
            TokenTree::Group(group) => {
                let inside = without_tests(group.stream()).into_iter().collect();
                let mut cut = proc_macro2::Group::new(group.delimiter(), inside);
                cut.set_span(group.span());
                TokenTree::Group(cut)
            }
            token => token.clone(),
        });
        at += 1;
    }
    kept
}

/// The modules that have files of their own.
fn declared(tokens: &[TokenTree]) -> Vec<String> {
    let at_mod =
        |at: &usize| word(tokens.get(*at)).as_deref() == Some("mod") && is_sign(tokens.get(at + 2), ';');
    let places = (0..tokens.len()).filter(at_mod);
    places.filter_map(|at| word(tokens.get(at + 1))).collect()
}
