//! Which top-level modules of a crate use which.
//!
//! Read from the tokens of the sources, so that paths within macros count as well. A path counts from where it starts at the root of
//! the crate (`crate::`, or enough `super::`); a name that the root re-exports is its module's. What only tests compile does not count.
//! Methods are not seen: a type whose methods are written in a module above it looks as if it did not need that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};

use super::sources::{attribute, is_sign, read, word};

/// One module uses another.
pub(crate) type Edge = (String, String);

/// The top-level modules of a crate, and which use which.
pub(crate) struct Graph {
    pub(crate) modules: BTreeSet<String>,
    /// Each with the first place, as `file:line`.
    pub(crate) edges: BTreeMap<Edge, String>,
}

impl Graph {
    /// Reads the crate below `dir`; `None` if it has no sources of its own.
    pub(crate) fn of_crate(dir: &Path) -> Result<Option<Self>> {
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| dir.join(root));
        let Some(root) = roots.into_iter().find(|root| root.exists()) else {
            return Ok(None);
        };
        let mut files = Vec::new();
        read(&root, &[], &mut files)?;
        let mut names = BTreeMap::new();
        let mut modules = BTreeSet::new();
        for file in &files {
            if let [top] = &file.module[..] {
                modules.insert(top.clone());
            }
        }
        for file in &files {
            match file.module.first() {
                None => exports(&file.tokens, &mut names),
                Some(top) => macros(&file.tokens, top, &mut names),
            }
        }
        names.retain(|name, module| !modules.contains(name) && modules.contains(module));
        let mut edges = BTreeMap::new();
        for file in files.iter().filter(|file| !file.module.is_empty()) {
            uses(&file.tokens, &file.module, &mut |name, line| {
                let used = names.get(name).map_or(name, String::as_str);
                let top = &file.module[0];
                if used != top && modules.contains(used) {
                    let path = file.path.strip_prefix(dir).unwrap_or(&file.path);
                    let place = || format!("{}:{line}", path.display());
                    edges.entry((top.clone(), used.to_owned())).or_insert_with(place);
                }
            });
        }
        Ok(Some(Self { modules, edges }))
    }

    /// The modules from which a module can be reached by way of others, for each.
    fn reached(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for module in &self.modules {
            let mut seen = BTreeSet::new();
            let mut open = vec![module.as_str()];
            while let Some(from) = open.pop() {
                let used = self.edges.keys().filter(|(user, _)| user == from);
                open.extend(
                    used.map(|(_, used)| used.as_str())
                        .filter(|used| seen.insert(*used)),
                );
            }
            reached.insert(module, seen);
        }
        reached
    }

    /// The sets of modules that all need each other, the lowest first with its height, and every module in one: a set of one is no
    /// circle.
    pub(crate) fn floors(&self) -> Vec<(usize, BTreeSet<&str>)> {
        let reached = self.reached();
        let together = |a: &str, b: &str| a == b || reached[a].contains(b) && reached[b].contains(a);
        let mut sets: Vec<BTreeSet<&str>> = Vec::new();
        for module in self.modules.iter().map(String::as_str) {
            match sets
                .iter_mut()
                .find(|set| set.iter().any(|other| together(module, other)))
            {
                Some(set) => {
                    set.insert(module);
                }
                None => sets.push(BTreeSet::from([module])),
            }
        }
        // What needs fewer modules comes first, so that the heights of all that a set needs are known.
        sets.sort_by_key(|set| {
            set.iter()
                .map(|module| {
                    let itself = usize::from(!reached[module].contains(module));
                    reached[module].len() + itself
                })
                .max()
        });
        let mut floors: Vec<(usize, BTreeSet<&str>)> = Vec::new();
        for set in sets {
            let below = floors
                .iter()
                .filter(|(_, lower)| set.iter().any(|module| !reached[module].is_disjoint(lower)));
            let height = below.map(|(height, _)| height + 1).max().unwrap_or(0);
            floors.push((height, set));
        }
        floors.sort();
        floors
    }

    /// A shortest way from a module of a circle back to it. What has just closed the circle is on it.
    pub(crate) fn round(&self, circle: &BTreeSet<&str>) -> Vec<&str> {
        let from = |module: &str| {
            let mut ways = vec![vec![self.modules.get(module)?.as_str()]];
            let mut seen = BTreeSet::new();
            while !ways.is_empty() {
                let mut longer = Vec::new();
                for way in ways {
                    let last = way[way.len() - 1];
                    for (_, used) in self.edges.keys().filter(|(user, _)| user == last) {
                        if used == module {
                            return Some([&way[..], &[used]].concat());
                        }
                        if seen.insert(used.as_str()) {
                            longer.push([&way[..], &[used]].concat());
                        }
                    }
                }
                ways = longer;
            }
            None
        };
        let rounds = circle.iter().filter_map(|module| from(module));
        rounds.min_by_key(Vec::len).unwrap_or_default()
    }

    /// The circles, each with the edges that are in it.
    pub(crate) fn circles(&self) -> Vec<(BTreeSet<&str>, BTreeMap<&Edge, &str>)> {
        let sets = self.floors().into_iter().map(|(_, set)| set);
        let circles = sets.filter(|set| set.len() > 1);
        circles
            .map(|set| {
                let inside = |(from, to): &Edge| set.contains(from.as_str()) && set.contains(to.as_str());
                let edges = self.edges.iter().filter(|(edge, _)| inside(edge));
                let edges = edges.map(|(edge, place)| (edge, place.as_str())).collect();
                (set, edges)
            })
            .collect()
    }
}

/// Where a path goes on if two colons are at `at`.
fn behind_colons(tokens: &[TokenTree], at: usize) -> Option<usize> {
    (is_sign(tokens.get(at), ':') && is_sign(tokens.get(at + 1), ':')).then_some(at + 2)
}

/// The names that the root has from its modules (`pub use module::{Name, …}`), and the modules.
fn exports(tokens: &[TokenTree], names: &mut BTreeMap<String, String>) {
    let mut at = 0;
    while at < tokens.len() {
        if word(tokens.get(at)).as_deref() == Some("use") {
            let end = (at..tokens.len()).find(|end| is_sign(tokens.get(*end), ';'));
            let end = end.unwrap_or(tokens.len());
            tree(&tokens[at + 1..end], None, names);
            at = end;
        }
        at += 1;
    }
}

/// The names at the ends of an import, and the module at its beginning.
fn tree(tokens: &[TokenTree], module: Option<&str>, names: &mut BTreeMap<String, String>) {
    for part in tokens.split(|token| is_sign(Some(token), ',')) {
        let first = part
            .iter()
            .filter_map(|token| word(Some(token)))
            .find(|word| word != "crate" && word != "self");
        let Some(module) = module.map(str::to_owned).or(first) else {
            continue;
        };
        match part.last() {
            Some(TokenTree::Group(group)) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                tree(&inside, Some(&module), names);
            }
            last => {
                if let Some(name) = word(last) {
                    names.insert(name, module);
                }
            }
        }
    }
}

/// The macros that are at the root of the crate, wherever they are written (`#[macro_export]`).
fn macros(tokens: &[TokenTree], top: &str, names: &mut BTreeMap<String, String>) {
    let mut is_exported = false;
    let mut at = 0;
    while at < tokens.len() {
        if let Some((text, end)) = attribute(tokens, at) {
            is_exported |= text == "macro_export";
            at = end;
            continue;
        }
        if is_exported
            && word(tokens.get(at)).as_deref() == Some("macro_rules")
            && let Some(name) = word(tokens.get(at + 2))
        {
            names.insert(name, top.to_owned());
        }
        is_exported = false;
        at += 1;
    }
}

/// Calls `each` with the names behind the root of the crate, and their lines.
fn uses(tokens: &[TokenTree], module: &[String], each: &mut dyn FnMut(&str, usize)) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(ident) if ident == "mod" => {
                if let (Some(name), Some(TokenTree::Group(body))) =
                    (word(tokens.get(at + 1)), tokens.get(at + 2))
                {
                    let inside: Vec<TokenTree> = body.stream().into_iter().collect();
                    uses(&inside, &[module, &[name]].concat(), each);
                    at += 3;
                    continue;
                }
            }
            TokenTree::Ident(ident) if ident == "crate" || ident == "super" => {
                let mut up = usize::from(ident == "super");
                let mut next = behind_colons(tokens, at + 1);
                while let Some(at) = next.filter(|at| word(tokens.get(*at)).as_deref() == Some("super")) {
                    up += 1;
                    next = behind_colons(tokens, at + 1);
                }
                if let Some(next) = next {
                    if ident == "crate" || up == module.len() {
                        named(&tokens[next..], each);
                    }
                    at = next;
                    continue;
                }
            }
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                uses(&inside, module, each);
            }
            // Attributes of serde have paths in strings.
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let path = text.trim_matches('"');
                if path.starts_with("crate::") || path.starts_with("super::") {
                    let line = literal.span().start().line;
                    let inside: Vec<TokenTree> = path.parse::<TokenStream>().into_iter().flatten().collect();
                    uses(&inside, module, &mut |name, _| each(name, line));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        at += 1;
    }
}

/// The names directly behind the root: one, or those in braces.
fn named(tokens: &[TokenTree], each: &mut dyn FnMut(&str, usize)) {
    match tokens.first() {
        Some(TokenTree::Ident(name)) => each(&name.to_string(), name.span().start().line),
        Some(TokenTree::Group(group)) => {
            let inside: Vec<TokenTree> = group.stream().into_iter().collect();
            for part in inside.split(|token| is_sign(Some(token), ',')) {
                named(part, each);
            }
        }
        _ => {}
    }
}
