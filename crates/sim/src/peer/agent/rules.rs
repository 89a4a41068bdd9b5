//! Rules for tools: allow, deny and ask.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::context::{AgentState, Context};
use super::paths::{self, Area};
use super::runners::spellings;
use super::shell::{self, Doubt, ShellCommand, ShellLine};
use super::subagent::is_agent_tool;
use crate::fields::JsonFields as _;

/// Where a rule, or a directory, comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleSource {
    /// A flag for tools.
    CliArg,
    /// `--settings`, or later settings of the host.
    Flag,
    /// Something the host has granted for as long as the session lives.
    Session,
    User,
    Project,
    Local,
}

impl RuleSource {
    /// The destination of a permission update; anything that is not a file counts for the session.
    pub(super) fn destination(update: &Value) -> Self {
        match update["destination"].as_str() {
            Some("userSettings") => Self::User,
            Some("projectSettings") => Self::Project,
            Some("localSettings") => Self::Local,
            _ => Self::Session,
        }
    }

    /// The name on the wire.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::CliArg => "cliArg",
            Self::Flag => "flagSettings",
            Self::Session => "session",
            Self::User => "userSettings",
            Self::Project => "projectSettings",
            Self::Local => "localSettings",
        }
    }

    /// Where the decision of one of its rules comes from, in the result of the tool.
    pub(super) fn decided(self, allows: bool) -> &'static str {
        match (self, allows) {
            (Self::CliArg | Self::Flag | Self::Project, _) => "config",
            (Self::Session, true) => "user_temporary",
            (Self::User | Self::Local, true) => "user_permanent",
            (Self::Session | Self::User | Self::Local, false) => "user_reject",
        }
    }

    /// Whether the source is a file of the user's.
    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::User | Self::Project | Self::Local)
    }

    fn editability(self) -> &'static str {
        match self {
            Self::Flag => "readonly",
            Self::CliArg | Self::Session => "session",
            Self::User | Self::Project | Self::Local => "persistent",
        }
    }
}

/// A rule, as `Tool` or `Tool(content)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PermissionRule {
    pub(super) text: String,
    pub(super) source: RuleSource,
}

/// Allow, deny and ask rules.
#[derive(Debug, Clone, Default)]
pub(super) struct PermissionRules {
    pub(super) allow: Vec<PermissionRule>,
    pub(super) deny: Vec<PermissionRule>,
    pub(super) ask: Vec<PermissionRule>,
}

impl PermissionRules {
    /// The rules of flags.
    pub(super) fn new(allow: &[String], deny: &[String]) -> Self {
        let mut rules = Self::default();
        for (list, given) in [(&mut rules.allow, allow), (&mut rules.deny, deny)] {
            // One argument may hold several rules, divided by commas or spaces outside of parentheses.
            let texts = given.iter().flat_map(|rules| split(rules));
            list.extend(PermissionRule::all(texts, RuleSource::CliArg));
        }
        rules
    }

    pub(super) fn list(&mut self, behavior: &str) -> Option<&mut Vec<PermissionRule>> {
        match behavior {
            "allow" => Some(&mut self.allow),
            "deny" => Some(&mut self.deny),
            "ask" => Some(&mut self.ask),
            _ => None,
        }
    }

    /// All rules with their behavior, for `list_permission_rules`.
    pub(super) fn listed(&self) -> Vec<Value> {
        let lists = [("allow", &self.allow), ("ask", &self.ask), ("deny", &self.deny)];
        lists
            .into_iter()
            .flat_map(|(behavior, rules)| rules.iter().map(move |rule| rule.listed(behavior)))
            .collect()
    }
}

impl PermissionRule {
    /// Rules of one source.
    pub(super) fn all(
        texts: impl IntoIterator<Item = String>,
        source: RuleSource,
    ) -> impl Iterator<Item = Self> {
        texts.into_iter().map(move |text| Self { text, source })
    }

    /// The tool of the rule, and its pattern for the input. `Tool()` and `Tool(*)` are `Tool`.
    fn parts(&self) -> (&str, Option<&str>) {
        match self.text.strip_suffix(')').and_then(|rule| rule.split_once('(')) {
            Some((name, content)) => (
                name,
                Some(content).filter(|content| !matches!(*content, "" | "*")),
            ),
            None => (&self.text, None),
        }
    }

    /// Whether the rule means all calls of this tool. The tool that starts subagents goes by both of its names.
    pub(super) fn is_for_all(&self, tool: &str) -> bool {
        let (name, None) = self.parts() else {
            return false;
        };
        name == tool
            || (is_agent_tool(name) && is_agent_tool(tool))
            || (tool.starts_with("mcp__") && tool.starts_with(&format!("{name}__")))
            || (name.contains('*') && is_like(&glob(name, ".*"), tool))
    }

    /// Whether the rule allows all calls of this tool: no pattern allows anything but tools of one server, and `Read(*)` no file
    /// elsewhere.
    pub(super) fn allows_all(&self, tool: &str) -> bool {
        let name = self.parts().0;
        let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let is_wide = name.contains('*') && server.is_none_or(|(server, _)| server.contains('*'));
        let is_pattern = name == "Read" && self.text != name;
        !is_wide && !is_pattern && self.is_for_all(tool)
    }

    /// Whether the rule is about this kind of agent.
    pub(super) fn means_agent(&self, kind: &str) -> bool {
        matches!(self.parts(), (name, Some(content)) if is_agent_tool(name) && content == kind)
    }

    /// Whether the rule means this one command, of which a line may have several. Who denies or asks is about more spellings of it than who
    /// allows.
    pub(super) fn means_command(&self, command: &ShellCommand, restricts: bool) -> bool {
        let ("Bash", Some(pattern)) = self.parts() else {
            return false;
        };
        let narrow = |text: &str| {
            text.split([' ', '\t'])
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let is_exact = self.is_exact();
        let pattern = narrow(pattern);
        let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
        let prefix = prefix.filter(|prefix| !prefix.contains('*'));
        let begins = |text: &str, prefix: &str| {
            text.strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        // What `xargs` runs is meant too.
        let means = |text: &str| match prefix {
            _ if is_exact => false,
            Some(prefix) => begins(text, prefix),
            None => is_like(&glob(&pattern, ".*"), text),
        };
        spellings(command, restricts).iter().any(|text| {
            let narrow = narrow(text);
            (is_exact && *text == pattern)
                || means(&narrow)
                || narrow
                    .strip_prefix("xargs ")
                    .is_some_and(|text| (restricts || pattern.ends_with('*')) && means(text))
        })
    }

    /// Whether the rule is about one command, letter by letter.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self.parts(), ("Bash", Some(pattern)) if !pattern.contains('*'))
    }

    /// Whether the rule allows this access to the file, by its name and where its links lead. A relative path in a rule begins where the
    /// shell is.
    pub(super) fn allows_file(&self, access: Access, path: &Path, place: &RuleRoots<'_>) -> bool {
        let spellings = place.spellings(path);
        let mut spellings = spellings.iter();
        spellings.all(|path| self.means_file(access, path, place, &[place.cwd]))
    }

    /// Whether the rule means this file, with relative paths from these bases. Who may write a file may read it.
    fn means_file(&self, access: Access, path: &Path, place: &RuleRoots<'_>, bases: &[&Path]) -> bool {
        let (name, Some(pattern)) = self.parts() else {
            return false;
        };
        let fits = match name {
            "Read" => access == Access::Read,
            "Edit" => true,
            _ => false,
        };
        // Who may use all that is in a directory may look at it.
        let directory = pattern.strip_suffix("/**");
        let directory =
            directory.filter(|directory| !matches!(*directory, "" | "~") && !directory.ends_with('/'));
        fits && self.is_below(directory.unwrap_or(pattern), path, place, bases)
    }

    /// Whether a pattern for files, as in a `.gitignore`, means this one. A relative one begins at one of these directories.
    fn is_below(&self, pattern: &str, path: &Path, place: &RuleRoots<'_>, bases: &[&Path]) -> bool {
        let (base, pattern) = match pattern {
            _ if pattern.starts_with("//") => (Path::new("/"), pattern.trim_start_matches('/')),
            _ if pattern.starts_with("~/") => (place.home, &pattern[2..]),
            _ if pattern.starts_with('/') => match place.of(self.source) {
                Some(base) => (base, &pattern[1..]),
                None => return false,
            },
            _ => {
                let mut bases = bases.iter();
                return bases.any(|base| is_at(base, pattern, path, true));
            }
        };
        is_at(base, pattern, path, false)
    }

    /// Whether the rule allows the whole call; a line of commands may need several rules.
    pub(super) fn allows(&self, call: &Subject<'_>, place: &RuleRoots<'_>) -> bool {
        self.allows_all(call.tool)
            || match call.what {
                Accessed::File(access, path) => self.allows_file(access, &place.cwd.join(path), place),
                Accessed::Command(_) => false,
                Accessed::Url(url) => self.means_host(url),
                Accessed::Other => false,
            }
    }

    /// Whether the rule is about a part of this call. A relative path in a rule begins where the shell is, or at the project.
    pub(super) fn touches(&self, call: &Subject<'_>, place: &RuleRoots<'_>) -> bool {
        if self.is_for_all(call.tool) {
            return true;
        }
        let bases = [place.cwd, place.project];
        match call.what {
            Accessed::File(access, path) => {
                let spellings = place.spellings(&place.cwd.join(path));
                // What may not be read may not be written.
                let read = self.parts().0 == "Read";
                let denied = if read { Access::Read } else { access };
                let mut spellings = spellings.iter();
                (read || access == Access::Write)
                    && spellings.any(|path| self.means_file(denied, path, place, &bases))
            }
            Accessed::Command(line) => {
                let line = shell::parse(line, place.home);
                !self.touched(&line, place, true).is_empty()
            }
            Accessed::Url(url) => self.means_host(url),
            Accessed::Other => false,
        }
    }

    /// The commands of a line that it asks about, or denies. Who asks about files does not ask about commands.
    pub(super) fn touched<'a>(
        &self,
        line: &'a ShellLine,
        place: &RuleRoots<'_>,
        denies: bool,
    ) -> Vec<&'a ShellCommand> {
        let mut at = place.cwd.to_owned();
        let mut touched = Vec::new();
        for command in &line.commands {
            let is_hidden = command.nested && line.doubt == Some(Doubt::Nested);
            let by_file = denies && !is_hidden && self.means_files_of(command, &at, place);
            if by_file || self.means_command(command, true) {
                touched.push(command);
            }
            if command.name() == "cd" {
                let to = command.words.get(1).map_or("~", String::as_str);
                at = paths::absolute(to, &at, place.home);
            }
        }
        touched
    }

    /// Whether the rule means a file that this command uses at this place.
    fn means_files_of(&self, command: &ShellCommand, at: &Path, place: &RuleRoots<'_>) -> bool {
        let bases = [place.cwd, place.project];
        let paths = command.paths(at, place.home);
        let means = |access, path: &PathBuf| {
            let spellings = place.spellings(path);
            let mut spellings = spellings.iter();
            spellings.any(|path| self.means_file(access, path, place, &bases))
        };
        if self.is_about("Read") {
            let mut read = paths.read.iter().chain(&paths.also_read);
            return read.any(|path| means(Access::Read, path));
        }
        // A copy leaves what it reads as it is.
        let is_source = |path: &PathBuf| command.name() == "cp" && paths.also_read.contains(path);
        let mut written = paths.written.iter().filter(|path| !is_source(path));
        written.any(|path| means(Access::Write, path))
    }

    fn means_host(&self, url: &str) -> bool {
        let ("WebFetch", Some(domain)) = self.parts() else {
            return false;
        };
        let Some(domain) = domain.strip_prefix("domain:") else {
            return false;
        };
        domain == "*" || is_like(&glob(domain, "[^.]+"), &host(url))
    }

    /// Whether the text is a part of a rule, which means nothing.
    pub(super) fn is_torn(&self) -> bool {
        self.text.contains('(') && !self.text.ends_with(')')
    }

    /// Whether the rule is for exactly this line.
    pub(super) fn names(&self, line: &str) -> bool {
        self.is_exact() && self.parts() == ("Bash", Some(line))
    }

    /// Whether the rule is for this one command without anything behind it.
    pub(super) fn names_command(&self, command: &ShellCommand) -> bool {
        let ("Bash", Some(pattern)) = self.parts() else {
            return false;
        };
        let name = pattern.strip_suffix(":*").unwrap_or(pattern);
        !name.contains('*') && spellings(command, false).iter().any(|text| text == name)
    }

    /// Whether the rule would allow all that a check on the server is for: all commands, or all agents.
    pub(super) fn is_too_wide(&self) -> bool {
        ["Agent", "Bash", "Task"].iter().any(|tool| self.is_for_all(tool))
    }

    /// Whether the rule is about this tool.
    pub(super) fn is_about(&self, tool: &str) -> bool {
        self.parts().0 == tool
    }

    /// The rule, as a request has it.
    pub(super) fn matched(&self) -> Value {
        let (tool, content) = self.parts();
        json!({"tool_name": tool, "rule_content": content, "source": self.source.as_str()})
    }

    fn listed(&self, behavior: &str) -> Value {
        let mut listed = json!({
            "behavior": behavior, "source": self.source.as_str(), "rule": self.text,
            "editability": self.source.editability(),
        });
        let description = match self.parts() {
            ("Bash", None) => Some(json!({"prefix": "Any Bash command"})),
            (tool, None) => Some(json!({"prefix": "Any use of the ", "emphasis": tool, "suffix": " tool"})),
            ("Bash", Some(content)) => {
                Some(match content.strip_suffix(":*").or(content.strip_suffix(" *")) {
                    Some(prefix) => json!({"prefix": "Any Bash command starting with ", "emphasis": prefix}),
                    None => json!({"prefix": "The Bash command ", "emphasis": content}),
                })
            }
            _ => None,
        };
        listed.put("description", description);
        listed
    }
}

/// The parts of a call that rules match.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) tool: &'a str,
    pub(super) what: Accessed<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Accessed<'a> {
    Command(&'a str),
    File(Access, &'a str),
    Url(&'a str),
    Other,
}

/// The access to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// What paths in rules begin with.
pub(super) struct RuleRoots<'a> {
    /// What the session is about.
    project: &'a Path,
    /// Where the shell is.
    cwd: &'a Path,
    home: &'a Path,
    /// What knows where links lead, if that counts.
    links: Option<&'a Area>,
    /// Where the user's settings are.
    user: Option<&'a Path>,
    /// Where the settings of `--settings` are.
    flags: &'a SettingsPlace,
}

/// Where settings of `--settings` are.
#[derive(Debug, Clone, Default)]
pub(super) enum SettingsPlace {
    /// There are none, but the host may change such settings later.
    #[default]
    Session,
    /// In a file in this directory.
    Beside(PathBuf),
    /// In a temporary file, since they were passed as text.
    Elsewhere,
}

impl<'a> RuleRoots<'a> {
    pub(super) fn new(
        ctx: &'a Context,
        state: &'a AgentState,
        (project, cwd): (&'a Path, &'a Path),
        links: Option<&'a Area>,
    ) -> Self {
        Self {
            project,
            cwd,
            home: Path::new(&ctx.config.home),
            links,
            user: ctx.config.config_dir.as_deref(),
            flags: state.settings.place(),
        }
    }

    /// The directory at which a path begins that begins with one `/` in a rule of this source; none if no file is meant.
    fn of(&self, source: RuleSource) -> Option<&Path> {
        match (source, self.flags) {
            (RuleSource::User, _) => self.user,
            (RuleSource::Flag, SettingsPlace::Beside(directory)) => Some(directory),
            (RuleSource::Flag, SettingsPlace::Elsewhere) => None,
            _ => Some(self.project),
        }
    }

    /// A path, and where its links lead.
    fn spellings(&self, path: &Path) -> Vec<PathBuf> {
        let mut spellings = vec![path.to_owned()];
        spellings.extend(self.links.map(|links| links.resolved(path)));
        spellings.dedup();
        spellings
    }
}

fn is_at(base: &Path, pattern: &str, path: &Path, relative: bool) -> bool {
    let name = pattern
        .strip_prefix("./")
        .unwrap_or(pattern)
        .trim_end_matches('/');
    let floats = relative && !name.contains('/');
    let Ok(path) = path.strip_prefix(base) else {
        return false;
    };
    let path = path.to_string_lossy();
    // What is in a directory is not the directory.
    if path.is_empty() && name == "**" {
        return false;
    }
    let pattern = glob(name, "[^/]*");
    let pattern = if floats {
        format!("(?:.*/)?{pattern}")
    } else {
        pattern
    };
    // A directory includes its contents.
    is_like(&format!("{pattern}(?:/.*)?"), &path)
}

/// The pattern as a regular expression, with the meaning of a single `*`.
fn glob(pattern: &str, any: &str) -> String {
    let mut expression = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let (text, read) = match rest {
            _ if rest.starts_with("**/") => ("(?:.*/)?".to_owned(), 3),
            _ if rest.starts_with("**") => (".*".to_owned(), 2),
            _ if c == '*' => (any.to_owned(), 1),
            _ if c == '?' && any != ".*" => ("[^/]".to_owned(), 1),
            _ => (regex_lite::escape(&rest[..c.len_utf8()]), c.len_utf8()),
        };
        expression.push_str(&text);
        rest = &rest[read..];
    }
    expression
}

fn is_like(expression: &str, text: &str) -> bool {
    regex_lite::Regex::new(&format!("(?s)^(?:{expression})$")).is_ok_and(|regex| regex.is_match(text))
}

fn split(rules: &str) -> Vec<String> {
    let (mut found, mut rule, mut depth) = (Vec::new(), String::new(), 0);
    for c in rules.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            found.push(std::mem::take(&mut rule));
        } else {
            rule.push(c);
        }
    }
    found.push(rule);
    found.retain(|rule| !rule.is_empty());
    found
}

/// The host of an address, in lower case.
pub(super) fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default().to_lowercase()
}
