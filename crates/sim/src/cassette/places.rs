//! What differs from one machine to the next, and the placeholders that stand for it.

use std::path::Path;

use crate::word_list::WordList;

/// The directories and names of a session's machine, which a cassette replaces by placeholders.
///
/// | placeholder | meaning |
/// |---|---|
/// | `{{cwd}}` | the working directory |
/// | `{{cwd_slug}}` | the same in the CLI's names of directories: `-home-me-project` |
/// | `{{home}}` | the home directory |
/// | `{{tmp}}` | the directory for temporary files |
/// | `{{user}}` | the user's name |
/// | `{{host}}` | the machine's name |
///
/// Names of users and machines are not replaced where they are generic (`root`, `user`, `runner`, …) or words of the protocol (`max`,
/// `other`, …): a frame would no longer say what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Places {
    /// The working directory.
    pub cwd: String,
    /// The home directory.
    pub home: String,
    /// The directory for temporary files.
    pub tmp: String,
    /// The user's name.
    pub user: String,
    /// The machine's name.
    pub host: String,
}

/// Places that belong to nobody.
impl Default for Places {
    fn default() -> Self {
        Self {
            cwd: "/home/user/project".to_owned(),
            home: "/home/user".to_owned(),
            tmp: "/tmp".to_owned(),
            user: "user".to_owned(),
            host: "localhost".to_owned(),
        }
    }
}

/// Names of users and machines that are words or defaults.
const NOBODY: WordList = WordList(
    "admin agent app build builder ci claude code codespace container debian dev developer docker git github home \
     host jenkins linux local localhost mac main node nobody root runner server system test tester tests ubuntu \
     user users vagrant vscode windows work",
);

/// What the fields and values of frames are called: a machine may be called `other`, and a user `max`.
const WORDS: WordList = WordList(include_str!("words.txt"));

impl Places {
    /// The places of a process in this directory with this environment.
    ///
    /// Places that the environment does not have stay empty: the caller's own process is not used.
    pub fn of<'e>(cwd: impl AsRef<Path>, env: impl IntoIterator<Item = (&'e str, &'e str)>) -> Self {
        let mut this = Self {
            cwd: cwd.as_ref().to_string_lossy().into_owned(),
            ..Self::default()
        };
        let mut tmp = None;
        for (name, value) in env {
            if value.is_empty() {
                continue;
            }
            match name {
                "HOME" | "USERPROFILE" => this.home = value.to_owned(),
                "USER" | "LOGNAME" | "USERNAME" => this.user = value.to_owned(),
                "HOSTNAME" | "COMPUTERNAME" => this.host = value.to_owned(),
                "CLAUDE_CODE_TMPDIR" => tmp = Some(value),
                "TMPDIR" | "TEMP" => tmp = tmp.or(Some(value)),
                _ => {}
            }
        }
        if let Some(tmp) = tmp {
            this.tmp = tmp.to_owned();
        }
        this
    }

    /// The places of this process: its working directory, its environment, the machine's name.
    pub fn here() -> Self {
        let env: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let env = env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut this = Self::of(std::env::current_dir().unwrap_or_default(), env);
        if std::env::var_os("CLAUDE_CODE_TMPDIR").is_none() {
            this.tmp = std::env::temp_dir().to_string_lossy().into_owned();
        }
        if let Some(host) = machine() {
            this.host = host;
        }
        this
    }

    /// Adds the places that an environment does not have: the machine's name and the user of this process.
    pub fn complete(&mut self) {
        let here = Self::here();
        self.host = here.host;
        if self.user == Self::default().user {
            self.user = here.user;
        }
    }

    /// The texts to find, with their replacements: the longest first.
    pub(super) fn needles(&self) -> Vec<Needle> {
        let mut needles = Vec::new();
        let mut path = |text: &str, name: &'static str| {
            let text = text.trim_end_matches(['/', '\\']);
            // `/` and `C:` are in every path.
            if text.len() > 2 {
                needles.push(Needle::path(text, name));
                let canonical = std::fs::canonicalize(text);
                if let Some(canonical) = canonical.as_ref().ok().and_then(|path| path.to_str())
                    && canonical != text
                {
                    needles.push(Needle::path(canonical, name));
                }
                if text.contains('\\') {
                    needles.push(Needle::path(&text.replace('\\', "/"), name));
                }
            }
        };
        path(&self.cwd, "cwd");
        path(&self.home, "home");
        path(&self.tmp, "tmp");
        let slug = slug(&self.cwd);
        if slug.len() > 4 {
            needles.push(Needle {
                text: slug,
                name: "cwd_slug",
                anywhere: true,
            });
        }
        for (text, name) in [(&self.user, "user"), (&self.host, "host")] {
            if text.len() > 2 && is_name(text) && !WORDS.has(text) {
                needles.push(Needle {
                    text: text.clone(),
                    name,
                    anywhere: false,
                });
            }
        }
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.text.len()));
        needles
    }

    fn value(&self, name: &str) -> Option<String> {
        Some(match name {
            "cwd" => self.cwd.clone(),
            "cwd_slug" => slug(&self.cwd),
            "home" => self.home.clone(),
            "tmp" => self.tmp.trim_end_matches('/').to_owned(),
            "user" => self.user.clone(),
            "host" => self.host.clone(),
            _ => return None,
        })
    }

    /// The text with places instead of their placeholders; nothing if it has none.
    pub(super) fn fill(&self, text: &str) -> Option<String> {
        replace_placeholders(text, |name| match name.strip_prefix(LITERAL) {
            Some(name) => Some(format!("{{{{{name}}}}}")),
            None => self.value(name),
        })
    }
}

/// A text to find in a recording.
#[derive(Debug, Clone)]
pub(super) struct Needle {
    pub(super) text: String,
    pub(super) name: &'static str,
    /// Whether the place also counts inside a word, as names of persons do. A word must not continue after any of them.
    pub(super) anywhere: bool,
}

impl Needle {
    pub(super) fn is_path(&self) -> bool {
        matches!(self.name, "cwd" | "home" | "tmp")
    }

    fn path(text: &str, name: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            name,
            // `/root` and `/home/user` name nobody.
            anywhere: name == "home" && text.rsplit(['/', '\\']).next().is_some_and(is_name_of_somebody),
        }
    }
}

/// The name that the CLI gives to the directory of a working directory.
fn slug(path: &str) -> String {
    path.chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '-' })
        .collect()
}

/// Marks a text that looked like a placeholder before the replacement, so that it is restored.
pub(super) const LITERAL: &str = "as-is:";

/// Every name between `{{` and `}}` that `value` knows, replaced.
pub(crate) fn replace_placeholders(text: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut replaced: Option<String> = None;
    let mut copied = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("{{") {
        let at = from + found;
        let name = text[at + 2..].split_once("}}").map(|(name, _)| name);
        // `{{{cwd}}` has one, too.
        let known = name.and_then(|name| Some((name.len(), value(name)?)));
        let Some((length, value)) = known else {
            from = at + 1;
            continue;
        };
        let text_so_far = replaced.get_or_insert_with(String::new);
        text_so_far.push_str(&text[copied..at]);
        text_so_far.push_str(&value);
        copied = at + 4 + length;
        from = copied;
    }
    replaced.map(|mut done| {
        done.push_str(&text[copied..]);
        done
    })
}

/// Whether a placeholder of this name means anything in a cassette.
pub(super) fn is_placeholder(name: &str) -> bool {
    let name = name.trim_start_matches(LITERAL);
    matches!(name, "cwd" | "cwd_slug" | "home" | "tmp" | "user" | "host")
}

/// The machine's name.
fn machine() -> Option<String> {
    #[cfg(unix)]
    let name = Some(rustix::system::uname().nodename().to_string_lossy().into_owned());
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").ok();
    name.filter(|name| !name.is_empty())
}

/// Whether the `/` at `at` continues a path that began before, such as `/home` in `/srv/build/home` and in
/// `src/home`.
///
/// The text may be JSON, in which `\\n` is a line end and no part of a name. A path may directly follow a flag of two characters:
/// `-I/usr/include`.
pub(super) fn is_amid_path(text: &str, at: usize) -> bool {
    !path_before(text, at).is_empty()
}

/// The part of a path that ends at `at`; empty if none does.
fn path_before(text: &str, at: usize) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || "/._-+~@%{}".contains(c);
    let from = text[..at].rfind(|c| !is_part(c)).map_or(0, |last| {
        last + text[last..].chars().next().map_or(1, char::len_utf8)
    });
    let (before, mut path) = (&text[..from], &text[from..at]);
    if before.ends_with('\\') {
        let escape = if path.starts_with('u') { 5 } else { 1 };
        path = path.get(escape..).unwrap_or_default();
    }
    let is_colour = before.ends_with(['[', ';'])
        && path
            .strip_suffix('m')
            .is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
    let is_flag = path.len() == 2 && path.starts_with('-');
    // `file://` ends in slashes alone.
    let is_nothing = path.bytes().all(|byte| byte == b'/');
    if is_colour || is_flag || is_nothing {
        ""
    } else {
        path
    }
}

/// Where systems have home directories that are not right below the root.
const ABOVE_HOMES: &[&str] = &["/export", "/usr", "/var", "/System/Volumes/Data"];

/// Whether `/home` at `at` is where home directories are: at the root, or where some systems have them.
fn is_above_homes(text: &str, at: usize) -> bool {
    let above = path_before(text, at);
    // `/mnt/c` is a drive of Windows.
    let is_drive = above.strip_prefix("/mnt/").is_some_and(|drive| drive.len() == 1);
    above.is_empty() || is_drive || ABOVE_HOMES.contains(&above)
}

/// The home directory of any user in a text, as far as it can be recognized: `/home/NAME`, `/Users/NAME`.
pub(crate) fn home_of_somebody(text: &str) -> Option<&str> {
    let homes = ["/home/", "/Users/", "\\\\Users\\\\"];
    homes.iter().find_map(|home| {
        text.match_indices(home).find_map(|(at, _)| {
            let name = &text[at + home.len()..];
            let end = name.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c)));
            let name = &name[..end.unwrap_or(name.len())];
            let is_somebody = name.len() > 2 && is_name_of_somebody(name);
            (is_above_homes(text, at) && is_somebody).then(|| &text[at..at + home.len() + name.len()])
        })
    })
}

fn is_name_of_somebody(name: &str) -> bool {
    !name.starts_with('.') && is_name(name)
}

fn is_name(name: &str) -> bool {
    !NOBODY.has(&name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn placeholders_are_filled_and_those_that_were_there_come_back() {
        let places = Places::of("/place/it", [("HOME", "/home/me"), ("USER", "me")]);
        for (text, filled) in [
            (
                "at {{cwd}}/a and {{cwd_slug}}",
                Some("at /place/it/a and -place-it"),
            ),
            ("{{home}}, {{tmp}}", Some("/home/me, /tmp")),
            (
                "{{as-is:cwd}} and {{as-is:as-is:cwd}}",
                Some("{{cwd}} and {{as-is:cwd}}"),
            ),
            ("{{{cwd}}}", Some("{/place/it}")),
            ("{{secret}} {{ cwd }} {{other}} {{", None),
        ] {
            assert_eq!(places.fill(text).as_deref(), filled, "{text}");
        }
    }

    #[test]
    fn names_of_nobody_are_not_looked_for() {
        let needles = Places::of("/", [("HOME", "/root"), ("USER", "root")]).needles();
        let names: Vec<_> = needles.iter().map(|needle| needle.name).collect();
        assert_eq!(names, ["home", "tmp"]);
    }

    #[test]
    fn a_name_that_is_a_word_of_the_protocol_is_not_looked_for() {
        let mut places = Places::of("/w/it", [("HOME", "/home/max"), ("USER", "max")]);
        places.host = "other".to_owned();
        let redactor = crate::cassette::Redactor::new(&places, crate::cassette::RedactionRules::new());
        let frame = |path: &str| format!(r#"{{"effort":"max","reason":"other","cwd":"{path}/it"}}"#);
        assert_eq!(redactor.text(&frame("/home/max")), Some(frame("{{home}}")));
        places.user = "maximilian".to_owned();
        let redactor = crate::cassette::Redactor::new(&places, crate::cassette::RedactionRules::new());
        assert_eq!(
            redactor.text("by maximilian, max").as_deref(),
            Some("by {{user}}, max")
        );
    }

    #[test]
    fn a_home_begins_a_path() {
        for (text, home) in [
            ("/home/jane", Some("/home/jane")),
            (r#"{"a":"/home/jane/x"}"#, Some("/home/jane")),
            (r"a\n/home/jane", Some("/home/jane")),
            (r"a\u001b[1;32m/home/jane", Some("/home/jane")),
            ("--add-dir=/home/jane", Some("/home/jane")),
            ("-I/home/jane", Some("/home/jane")),
            ("PATH=/bin:/home/jane/bin", Some("/home/jane")),
            ("file:///home/jane/x", Some("/home/jane")),
            ("host:/home/jane", Some("/home/jane")),
            ("(/Users/Jane)", Some("/Users/Jane")),
            ("/var/home/jane", Some("/home/jane")),
            ("/mnt/c/Users/Jane", Some("/Users/Jane")),
            (r"C:\\Users\\Jane\\x", Some(r"\\Users\\Jane")),
            ("/srv/x/home/.cache/outrigger", None),
            ("/srv/x/home/jane", None),
            ("src/home/page.tsx", None),
            ("{{tmp}}/home/jane", None),
            ("/home/.cache", None),
            ("/home/user/x", None),
            ("/home/root", None),
        ] {
            assert_eq!(home_of_somebody(text), home, "{text}");
        }
    }

    #[test]
    fn a_place_is_no_part_of_another() {
        let places = Places::of("/w/it", [("HOME", "/root")]);
        let redactor = crate::cassette::Redactor::new(&places, crate::cassette::RedactionRules::new());
        let text = "/root/x /srv/root/x /w/it.old /var/tmp /w/it. /tmp";
        let redacted = "{{home}}/x /srv/root/x /w/it.old /var/tmp {{cwd}}. {{tmp}}";
        assert_eq!(redactor.text(text).as_deref(), Some(redacted));
    }

    proptest! {
        /// Whatever a path is made of, what looks like a home in its middle is none.
        #[test]
        fn no_home_is_in_the_middle_of_a_path(
            above in "(/[a-z0-9._+-]{2,9}){1,4}",
            before in "[ \"'(=:,\t]?",
            name in "[a-z]{3,9}",
        ) {
            prop_assume!(!ABOVE_HOMES.contains(&above.as_str()) && !above.ends_with("/home"));
            for home in ["home", "Users"] {
                let text = format!("{before}{above}/{home}/{name}/x");
                prop_assert_eq!(home_of_somebody(&text), None, "{}", text);
                let text = format!("{above}/x{before} /{home}/z{name}/x");
                let found = format!("/{home}/z{name}");
                prop_assert_eq!(home_of_somebody(&text), Some(found.as_str()), "{}", text);
            }
        }
    }
}
