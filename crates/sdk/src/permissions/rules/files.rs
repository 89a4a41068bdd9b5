//! Rules for files: patterns as in a `.gitignore`, from the working directory, the home directory or the root.

use globset::{GlobBuilder, GlobMatcher};

use super::pattern::fold;
use super::place::{Place, Target, names_of, native};

/// Where a pattern begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Cwd,
    Home,
    Root,
}

/// What is between the parentheses of a rule for files.
#[derive(Debug, Clone)]
pub(super) struct FilePattern {
    base: Base,
    /// What it covers, read narrowly: below its base, with its own case.
    narrow: GlobMatcher,
    /// What it could mean: folded, and at any depth where the CLI reads it so.
    wide: Vec<GlobMatcher>,
    /// The directories that it begins with, without wildcards.
    literal: String,
    /// [`wide`](Self::wide) behind these.
    behind: Vec<GlobMatcher>,
    /// Whether it only matches what is in a directory.
    inside: bool,
    /// Whether it covers all that is in a directory, if it matches any name in there.
    sweeps: bool,
}

impl FilePattern {
    /// Reads it. The error says what is wrong, and what to write instead.
    pub(super) fn parse(spec: &str) -> Result<Self, &'static str> {
        let (base, anchored, rest) = if let Some(rest) = spec.strip_prefix("//") {
            (Base::Root, true, rest)
        } else if let Some(rest) = spec.strip_prefix("~/") {
            (Base::Home, true, rest)
        } else if let Some(rest) = spec.strip_prefix('/') {
            (Base::Cwd, true, rest)
        } else if let Some(rest) = spec.strip_prefix("./") {
            (Base::Cwd, false, rest)
        } else {
            (Base::Cwd, false, spec)
        };
        check(spec, rest)?;
        let inside = rest.ends_with('/');
        let rest = rest.trim_end_matches('/');
        let single = !rest.contains('/');
        // The CLI matches `./name` at any depth, which it does not say.
        let floats_narrowly = !anchored && single && !spec.starts_with("./");
        let directory = rest
            .strip_suffix("/**")
            .filter(|directory| !directory.contains('/'));
        // The CLI matches `name/**` at any depth if the rule refuses.
        let floats = single && base == Base::Cwd && !spec.starts_with('/')
            || !anchored && directory.is_some()
            || rest.starts_with("**/");
        let narrow = glob(&if floats_narrowly {
            format!("**/{rest}")
        } else {
            rest.to_owned()
        })?;
        let segments: Vec<&str> = rest.split('/').collect();
        let plain = segments
            .iter()
            .take_while(|segment| !segment.contains(['*', '?', '[', '\\']))
            .count();
        let literal = if floats {
            String::new()
        } else {
            segments[..plain].join("/")
        };
        let remaining = segments[if floats { 0 } else { plain }..].join("/");
        let wide = |pattern: &str| -> Result<Vec<GlobMatcher>, &'static str> {
            let mut forms = vec![fold(pattern)];
            if let Some(directory) = pattern.strip_suffix("/**") {
                forms.push(fold(directory));
            }
            if floats && !pattern.starts_with("**/") {
                for form in forms.clone() {
                    forms.push(format!("**/{form}"));
                }
            }
            forms.iter().map(|form| glob(form)).collect()
        };
        Ok(Self {
            base,
            narrow,
            wide: wide(rest)?,
            behind: if remaining.is_empty() {
                Vec::new()
            } else {
                wide(&remaining)?
            },
            literal,
            inside,
            sweeps: rest == "**" || rest.ends_with("/**") || rest == "*" || rest.ends_with("/*"),
        })
    }

    /// Whether this file is covered, under both its names.
    pub(super) fn covers(&self, path: &str, place: &Place) -> bool {
        self.covers_as(path, place, |path| !path.is_empty() && self.hits(path))
    }

    /// Whether all that is in this directory is covered.
    pub(super) fn covers_below(&self, path: &str, place: &Place) -> bool {
        // No pattern names this file, so one that matches it matches any.
        let any = |path: &str| self.sweeps && self.hits(format!("{path}/\u{1}").trim_start_matches('/'));
        self.covers_as(path, place, |path| self.hits(path) || any(path))
    }

    fn covers_as(&self, path: &str, place: &Place, covers: impl Fn(&str) -> bool) -> bool {
        let Some(target) = Target::of(path, place) else {
            return false;
        };
        let Some(real) = &target.real else { return false };
        if cfg!(windows)
            && [&target.given, real]
                .into_iter()
                .any(|name| is_another_name(name))
        {
            return false;
        }
        // The base itself may be reached through links: those are not the model's doing.
        let bases = self.bases(place);
        [&target.given, real].into_iter().all(|name| {
            bases.iter().any(|base| {
                below(base, name)
                    .or((base == name).then_some(""))
                    .is_some_and(&covers)
            })
        })
    }

    /// Whether the pattern matches the path below its base, or a directory that it is in.
    fn hits(&self, path: &str) -> bool {
        prefixes(path).any(|(prefix, whole)| !(whole && self.inside) && self.narrow.is_match(prefix))
    }

    /// Whether this file could be meant, under any of its names.
    pub(super) fn touches(&self, path: &str, place: &Place) -> bool {
        match Target::of(path, place) {
            Some(target) => self.touches_target(&target, place),
            // A path that is not known could be any; a relative one only ends like this.
            None => path.is_empty() || self.touches_end(&fold_path(path)),
        }
    }

    fn touches_target(&self, target: &Target, place: &Place) -> bool {
        let Some((bases, literals)) = self.wide_bases(place) else {
            return target.names().any(|name| self.touches_end(&fold_path(name)));
        };
        target.names().map(fold_path).any(|name| {
            bases
                .iter()
                .any(|base| below(base, &name).is_some_and(|path| hit(&self.wide, path)))
                || literals.iter().any(|literal| {
                    (name == *literal && self.behind.is_empty())
                        || below(literal, &name)
                            .is_some_and(|path| self.behind.is_empty() || hit(&self.behind, path))
                })
        })
    }

    /// Whether a path whose beginning is not known could be meant.
    fn touches_end(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
        std::iter::once(path).chain(ends).any(|end| hit(&self.wide, end))
    }

    /// Whether something in this directory could be meant.
    pub(super) fn touches_below(&self, path: &str, place: &Place) -> bool {
        let (Some(target), Some((_, literals))) = (Target::of(path, place), self.wide_bases(place)) else {
            return true;
        };
        if self.touches_target(&target, place) {
            return true;
        }
        !target.is_file()
            && target.names().map(fold_path).any(|name| {
                literals.iter().any(|literal| {
                    *literal == name || below(&name, literal).is_some() || below(literal, &name).is_some()
                })
            })
    }

    /// The names of its base; none if it is not known.
    fn bases(&self, place: &Place) -> Vec<String> {
        match self.base {
            Base::Root => vec!["/".to_owned()],
            Base::Cwd => place.cwd.as_deref().map(names_of).unwrap_or_default(),
            Base::Home => place.home.as_deref().map(names_of).unwrap_or_default(),
        }
    }

    /// The folded names of its base, and those of the directories that it begins with.
    fn wide_bases(&self, place: &Place) -> Option<(Vec<String>, Vec<String>)> {
        let bases = self.bases(place);
        let mut literals = Vec::new();
        for base in &bases {
            let literal = format!("{}/{}", base.trim_end_matches('/'), self.literal);
            let literal = literal.trim_end_matches('/');
            literals.extend(names_of(&native(if literal.is_empty() { "/" } else { literal })));
        }
        let fold_all = |names: Vec<String>| names.iter().map(|name| fold_path(name)).collect();
        (!bases.is_empty()).then(|| (fold_all(bases), fold_all(literals)))
    }
}

/// Two patterns that are written alike are the same.
impl PartialEq for FilePattern {
    fn eq(&self, other: &Self) -> bool {
        (self.base, self.inside, self.narrow.glob()) == (other.base, other.inside, other.narrow.glob())
    }
}

impl Eq for FilePattern {}

fn hit(globs: &[GlobMatcher], path: &str) -> bool {
    prefixes(path).any(|(prefix, _)| globs.iter().any(|glob| glob.is_match(prefix)))
}

/// The directories that a path is in, and the path itself, with whether it is that.
fn prefixes(path: &str) -> impl Iterator<Item = (&str, bool)> {
    path.match_indices('/')
        .map(|(at, _)| (&path[..at], false))
        .chain([(path, true)])
}

/// The path from a directory to something in it.
fn below<'a>(directory: &str, path: &'a str) -> Option<&'a str> {
    let rest = path
        .strip_prefix(directory.trim_end_matches('/'))?
        .strip_prefix('/')?;
    (!rest.is_empty()).then_some(rest)
}

fn fold_path(path: &str) -> String {
    let path = fold(path);
    if !cfg!(windows) {
        return path;
    }
    // Windows leaves out dots and blanks at the end of a name, and a name behind a colon is part of the same file.
    let path = path.replace('\\', "/");
    let names = path.split('/').map(|name| {
        name.split(':')
            .next()
            .unwrap_or_default()
            .trim_end_matches(['.', ' '])
    });
    names.collect::<Vec<_>>().join("/")
}

/// Whether Windows would take a path for another one.
fn is_another_name(path: &str) -> bool {
    path.split('/')
        .any(|name| name.ends_with(['.', ' ']) || name.contains([':', '~']))
}

fn glob(pattern: &str) -> Result<GlobMatcher, &'static str> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|_| "is no pattern: is a bracket not closed? `[[]` stands for an opening bracket")
}

/// What the CLI would read otherwise than it looks, or not at all.
fn check(spec: &str, rest: &str) -> Result<(), &'static str> {
    if spec != spec.trim() {
        return Err("begins or ends with a blank between its parentheses");
    }
    if spec == "*" {
        return Err(
            "is read in several ways: name the tool alone for all files, or write `./**` for those below the \
                    working directory",
        );
    }
    if rest.is_empty() {
        return Err(
            "names no file: write `./**` for all below the working directory, `//**` for all there are",
        );
    }
    if spec.starts_with('!') {
        return Err(
            "is an exception to other rules, which depend on their order: write rules for what is meant instead",
        );
    }
    if spec.starts_with('#') {
        return Err("is a comment to the CLI: write `[#]` for a `#`");
    }
    if spec.starts_with('~') && !spec.starts_with("~/") {
        return Err("begins with `~` and no slash: write `~/path` for a path in the home directory");
    }
    if spec.chars().nth(1) == Some(':') && spec.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err("begins with a drive: write `//c/path` for `C:\\path`");
    }
    let mut class = false;
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if !chars.next().is_some_and(|c| "*?[]!#\\ ".contains(c)) => {
                return Err("holds a backslash before an ordinary character: paths are written with slashes");
            }
            '[' => class = true,
            ']' => class = false,
            '{' | '}' if !class => {
                return Err(
                    "holds a brace, which is an ordinary character to the CLI: write a rule for each, or `[{]`",
                );
            }
            _ => {}
        }
    }
    for segment in rest.trim_end_matches('/').split('/') {
        match segment {
            "" => return Err("holds two slashes in a row"),
            "." | ".." => {
                return Err("holds `.` or `..`, which never matches: write the path from the root with `//`");
            }
            "**" => {}
            segment if segment.contains("**") => {
                return Err("holds `**` beside other characters: it stands between slashes");
            }
            _ => {}
        }
    }
    Ok(())
}
