//! Permission rules in the CLI's own syntax, for policies of this library.
//!
//! The CLI has such rules itself, in its settings and options; those decide before anybody is asked. Here they decide what the
//! CLI asks about. They are read as the CLI reads them wherever that is safe, and towards refusing wherever it isn't: a rule
//! that [allows](Rules::covers) covers nothing that it isn't sure of, and one that [refuses](Rules::touches) counts for
//! whatever it could mean.
//!
//! | rule | means |
//! |---|---|
//! | `Bash` | every call of the tool |
//! | `Bash(git status)` | this command |
//! | `Bash(git log *)`, `Bash(git log:*)` | this command, with any arguments or none |
//! | `Bash(git * main)` | a `*` stands for any text |
//! | `Read(src/**)`, `Read(./.env)` | files below the working directory, with the patterns of a `.gitignore` |
//! | `Edit(/docs/**)`, `Edit(~/notes/*.md)`, `Edit(//tmp/x)` | from the working directory, the home directory, the root; `Edit` stands for all tools that write files |
//! | `WebFetch(domain:example.com)`, `WebFetch(domain:*.example.com)` | a host; the hosts below it |
//! | `mcp__server`, `mcp__server__*`, `mcp__server__get_*` | tools of an MCP server |
//! | `Agent(name)`, `Skill(name)` | a kind of subagent; a skill |
//! | `*`, `mcp__*` | all tools; only to refuse or ask |
//! | `Tool(field:value)` | calls with this value in their input; only to refuse or ask |
//!
//! # Commands
//!
//! An allowed command line consists of plain commands, joined by `&&`, `||`, `|`, `;` or line breaks, and each of them is
//! covered by a rule. Anything else in it (`$`, backticks, `&`, parentheses, redirections to files, here-documents, assignments,
//! braces, comments, characters that can't be seen) makes it one that no rule with a pattern covers. `timeout 5`, `time`,
//! `nice`, `nohup`, `command` and `builtin` before a command don't matter. `eval`, `exec`, `source`, `watch`, `find -exec` and
//! the like are only covered by rules without `*`.
//!
//! A command line is refused if one of its commands could be what a rule refuses: also inside of substitutions, subshells and
//! quotation marks for `sh -c`, behind `env`, `sudo`, `xargs` and other programs that run programs, by a path, in other letters,
//! or by a variable. Where the line can't be taken apart, it is enough that a command is named in it. What a script or a program
//! does by itself nobody sees: this is no sandbox.
//!
//! # Files
//!
//! Paths are looked at as given and with all links followed. An allowed file is covered both ways, a refused one either way.
//! Rules that refuse reading a file also refuse to write it, to search a directory that could contain it, and commands that
//! name it.

mod command;
mod files;
mod hosts;
mod pattern;
mod place;
mod runs;
mod shell;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::PermissionRuleValue;
use outrigger_protocol::tools::{BUILTIN_TOOL_NAMES, canonical_name};

use self::command::{CommandPattern, Line};
use self::files::FilePattern;
use self::hosts::HostPattern;
use self::pattern::{Piece, fold, known, matches, wildcards};
pub use self::place::Place;

/// A permission rule: `Tool` or `Tool(what)`. See the [module](self).
///
/// ```
/// use outrigger::permissions::rules::Rule;
///
/// let rule: Rule = "Bash(git log *)".parse()?;
/// assert_eq!(rule.as_str(), "Bash(git log *)");
/// let error = "bash(git log *)".parse::<Rule>().unwrap_err();
/// assert_eq!(error.to_string(), "the rule `bash(git log *)` names a tool in other letters than its own: write `Bash`");
/// # Ok::<(), outrigger::permissions::rules::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    tool: Tools,
    what: What,
    field: Option<Field>,
}

/// A rule that can't be read, or could be read otherwise than it looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    rule: String,
    problem: String,
}

/// Whether a rule means a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sureness {
    Yes,
    Perhaps,
    No,
}

/// The tools that a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tools {
    One(String),
    /// Those whose name begins like this.
    Server(String),
    Pattern(Vec<Piece>),
}

/// Which of their calls.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    All,
    Command(CommandPattern),
    Read(FilePattern),
    Edit(FilePattern),
    Host(HostPattern),
    Agent(String),
    Skill {
        name: String,
        prefix: bool,
    },
    /// Only those with the [field](Field).
    Field,
}

/// A field of the input and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    value: Vec<Piece>,
}

/// Tools whose calls are asked about by path, with the tool whose rules they go by.
const GOES_BY: &[(&str, &str)] = &[
    ("Write", "Edit"),
    ("NotebookEdit", "Edit"),
    ("MultiEdit", "Edit"),
    ("Glob", "Read"),
    ("Grep", "Read"),
    ("LS", "Read"),
    ("LSP", "Read"),
    ("NotebookRead", "Read"),
];

/// What a tool does, in a field that rules name in another way.
const MAIN_FIELDS: &[(&str, &str, &str)] = &[
    ("Bash", "command", "Bash(git log *)"),
    ("PowerShell", "command", "PowerShell"),
    ("Read", "file_path", "Read(./path)"),
    ("Edit", "file_path", "Edit(./path)"),
    ("WebFetch", "url", "WebFetch(domain:example.com)"),
];

/// Fields of `Bash` that are no beginnings of commands.
const BASH_FIELDS: &[&str] = &[
    "dangerouslyDisableSandbox",
    "description",
    "run_in_background",
    "timeout",
];

impl RuleError {
    fn new(rule: &str, problem: impl Into<String>) -> Self {
        Self {
            rule: rule.chars().take(200).collect(),
            problem: problem.into(),
        }
    }

    /// The rule, as it was given, up to 200 characters.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rule `{}` {}", self.rule.escape_debug(), self.problem)
    }
}

impl std::error::Error for RuleError {}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        read(text).map_err(|problem| RuleError::new(text, problem))
    }
}

impl TryFrom<&PermissionRuleValue> for Rule {
    type Error = RuleError;

    fn try_from(value: &PermissionRuleValue) -> Result<Self, RuleError> {
        value.to_string().parse()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn read(text: &str) -> Result<Rule, String> {
    crate::options::rules::rule(text)?;
    let (name, spec) = match text.split_once('(') {
        Some((name, spec)) => (name, Some(spec.strip_suffix(')').unwrap_or(spec))),
        None => (text, None),
    };
    let tool = tools(name)?;
    let (what, field) = match (&tool, spec) {
        (_, None) => (What::All, None),
        (Tools::One(tool), Some(spec)) => what(tool, spec)?,
        (_, Some(_)) => return Err("has parentheses behind a name for several tools: leave them out".into()),
    };
    Ok(Rule {
        text: text.to_owned(),
        tool,
        what,
        field,
    })
}

fn tools(name: &str) -> Result<Tools, String> {
    if let Some(rest) = name.strip_prefix("mcp__") {
        if rest.is_empty() || rest.starts_with("__") || rest.ends_with("__") {
            return Err(
                "names no MCP server or none of its tools: write `mcp__server` or `mcp__server__tool`".into(),
            );
        }
        if let Some(server) = rest
            .strip_suffix("__*")
            .filter(|server| !server.contains(['*', '_']))
        {
            return Ok(Tools::Server(format!("mcp__{server}__")));
        }
        if rest.contains('*') {
            return Ok(Tools::Pattern(wildcards(name)));
        }
        return Ok(match rest.contains("__") {
            true => Tools::One(name.to_owned()),
            false => Tools::Server(format!("{name}__")),
        });
    }
    if name.contains('*') {
        return Ok(Tools::Pattern(wildcards(name)));
    }
    let in_its_letters = BUILTIN_TOOL_NAMES
        .iter()
        .find(|tool| tool.eq_ignore_ascii_case(name));
    if let Some(tool) = in_its_letters.filter(|tool| **tool != name) {
        return Err(format!(
            "names a tool in other letters than its own: write `{tool}`"
        ));
    }
    if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
    {
        return Err("names no tool: those have letters, digits, `_`, `-` and `.` only".into());
    }
    Ok(Tools::One(canonical_name(name).to_owned()))
}

fn what(tool: &str, spec: &str) -> Result<(What, Option<Field>), String> {
    if spec.is_empty() {
        return Err(format!(
            "has nothing between its parentheses: write `{tool}` to mean all of its calls"
        ));
    }
    if let Some((_, by)) = GOES_BY.iter().find(|(name, _)| *name == tool) {
        return Err(format!(
            "has no effect: write `{by}({spec})`, which goes for `{tool}` too"
        ));
    }
    let field = field(spec);
    if let Some((_, _, instead)) = MAIN_FIELDS
        .iter()
        .find(|(name, main, _)| *name == tool && field.as_ref().is_some_and(|field| field.name == *main))
    {
        return Err(format!(
            "names the field that the tool's rules are about anyway: write it as in `{instead}`"
        ));
    }
    let mcp = tool.starts_with("mcp__");
    let what = match tool {
        "Read" => What::Read(FilePattern::parse(spec)?),
        "Edit" => What::Edit(FilePattern::parse(spec)?),
        _ if spec == "*" && !mcp => What::All,
        "Bash" => What::Command(CommandPattern::parse(spec)?),
        "Skill" => {
            let (name, prefix) = match spec.strip_suffix(":*").or_else(|| spec.strip_suffix(" *")) {
                Some(name) => (name, true),
                None => (spec, false),
            };
            crate::options::rules::skill(name)?;
            if name.contains('*') {
                return Err(
                    "has a `*` in the name of a skill: it stands at the end, behind a colon or a blank"
                        .into(),
                );
            }
            What::Skill {
                name: name.to_owned(),
                prefix,
            }
        }
        "Agent"
            if spec
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-.: ".contains(&b))
                && spec == spec.trim() =>
        {
            What::Agent(spec.to_owned())
        }
        "WebFetch" if spec.starts_with("domain:") => {
            What::Host(HostPattern::parse(&spec["domain:".len()..])?)
        }
        _ if field.is_some() => What::Field,
        "WebFetch" => return Err("names no domain: write `WebFetch(domain:example.com)`".into()),
        "PowerShell" => {
            return Err(
                "is about single commands of PowerShell, which this does not read: write `PowerShell`".into(),
            );
        }
        _ => {
            return Err(format!(
                "says more than is known about calls of `{tool}`: write `{tool}`"
            ));
        }
    };
    let only_domain = matches!(what, What::Host(_));
    Ok((what, field.filter(|_| !only_domain)))
}

/// `name:value`, the other meaning of what is between parentheses.
fn field(spec: &str) -> Option<Field> {
    let (name, value) = spec.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    sound.then(|| Field {
        name: name.to_owned(),
        value: wildcards(value),
    })
}

impl Rule {
    /// The rule as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this may stand in a list of rules that allow.
    ///
    /// # Errors
    /// When it names its tools by a pattern, which the CLI skips; when it leaves open which program a command runs; when it is
    /// about a field, which says nothing of the rest of a call.
    pub fn check_allow(&self) -> Result<(), RuleError> {
        let fail = |problem: &str| Err(RuleError::new(&self.text, problem));
        if let Tools::Pattern(pattern) = &self.tool {
            let text: String = pattern
                .iter()
                .map(|piece| match piece {
                    Piece::Char(c) => *c,
                    Piece::Any => '*',
                })
                .collect();
            let server = text.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            if server.is_none_or(|(server, _)| server.contains('*')) {
                return fail(
                    "allows tools of any name: name each, or write `mcp__server__*` for those of an MCP server",
                );
            }
        }
        match (&self.what, &self.field) {
            (What::Command(command), _) if command.names_no_program() => fail(
                "leaves open which program runs, since a `*` comes first: begin it with the program's name",
            ),
            (What::Field, _) => {
                fail("is about a field of the input, by which a call can be refused but not allowed")
            }
            (What::Command(_), Some(field)) if BASH_FIELDS.contains(&field.name.as_str()) => {
                fail("is about a field of the input, by which a call can be refused but not allowed")
            }
            _ => Ok(()),
        }
    }

    fn names(&self, tool: &str) -> bool {
        match &self.tool {
            Tools::One(name) => name == tool,
            Tools::Server(prefix) => tool.len() > prefix.len() && tool.starts_with(prefix),
            Tools::Pattern(pattern) => matches(pattern, &known(tool)),
        }
    }

    /// Whether a call is surely one of those that this rule means. A command line may need [several rules](Rules::covers).
    pub fn covers(&self, call: &Call<'_>) -> bool {
        self.covers_whole(call)
            || match (&self.what, call.command()) {
                (What::Command(pattern), Some(command)) if self.names(&call.tool) => {
                    command::cover(&[((), pattern)], command).is_ok()
                }
                _ => false,
            }
    }

    /// [`covers`](Self::covers), but for patterns of commands.
    fn covers_whole(&self, call: &Call<'_>) -> bool {
        if self.check_allow().is_err() || call.is_odd() {
            return false;
        }
        let (tool, place) = (call.tool.as_str(), &call.place);
        match &self.what {
            What::All => self.names(tool),
            What::Read(pattern) => match call.path() {
                Some((FileTool::Reads, path)) => pattern.covers(path, place),
                Some((FileTool::Searches, path)) => pattern.covers_below(path, place),
                _ => false,
            },
            // Who may write a file may read it, as in the CLI.
            What::Edit(pattern) => match call.path() {
                Some((FileTool::Reads | FileTool::Writes, path)) => pattern.covers(path, place),
                Some((FileTool::Searches, path)) => pattern.covers_below(path, place),
                None => false,
            },
            What::Host(pattern) => {
                self.names(tool) && call.text("url").is_some_and(|url| pattern.covers(url))
            }
            What::Agent(name) => self.names(tool) && call.text("subagent_type") == Some(name.as_str()),
            What::Skill { name, .. } => self.names(tool) && call.text("skill") == Some(name.as_str()),
            What::Command(_) | What::Field => false,
        }
    }

    /// Whether the CLI would take a call for one of those that this rule means.
    pub(crate) fn sureness(&self, call: &Call<'_>, allows: bool) -> Sureness {
        let whole = matches!(self.what, What::All)
            && self.names(&call.tool)
            && (!allows || self.check_allow().is_ok());
        if whole || self.covers(call) {
            Sureness::Yes
        } else if self.touches(call) && !(allows && matches!(self.what, What::All)) {
            Sureness::Perhaps
        } else {
            Sureness::No
        }
    }

    /// Whether a call could be one of those that this rule means.
    pub fn touches(&self, call: &Call<'_>) -> bool {
        let (tool, place) = (call.tool.as_str(), &call.place);
        let named = self.names(tool)
            || matches!(&self.tool, Tools::One(name) if tool.starts_with(&format!("{name}__")));
        if named && (call.input.is_none() || matches!(self.what, What::All)) {
            return true;
        }
        if named && self.field.as_ref().is_some_and(|field| call.has(field)) {
            return true;
        }
        // What has no text where the tool needs one could become any.
        let touches =
            |name: &str, touches: &dyn Fn(&str) -> bool| named && call.text(name).is_none_or(touches);
        match &self.what {
            What::All | What::Field => false,
            What::Command(pattern) => match tool {
                "Bash" => touches("command", &|_| {
                    call.line().is_some_and(|line| pattern.touches(line))
                }),
                // It runs commands too.
                "Monitor" => call.line().is_some_and(|line| pattern.touches(line)),
                _ => false,
            },
            What::Read(pattern) => match call.path() {
                Some((FileTool::Searches, path)) => pattern.touches_below(path, place),
                Some((_, path)) => pattern.touches(path, place),
                None => call.needs_path() || call.mentions(|path, _| pattern.touches(path, place)),
            },
            What::Edit(pattern) => match call.path() {
                Some((FileTool::Writes, path)) => pattern.touches(path, place),
                Some(_) => false,
                None => {
                    matches!(call.file_tool(), Some((FileTool::Writes, ..)))
                        || call.mentions(|path, writes| writes && pattern.touches(path, place))
                }
            },
            What::Host(pattern) => touches("url", &|url| pattern.touches(url)),
            What::Agent(name) => {
                let wanted = fold(name);
                named
                    && match call.fields().get("subagent_type") {
                        // The CLI takes the general one then.
                        None => wanted == "general-purpose",
                        Some(_) => call
                            .text("subagent_type")
                            .is_none_or(|kind| same_or_qualified(&fold(kind), &wanted)),
                    }
            }
            What::Skill { name, prefix } => {
                let wanted = fold(name);
                touches("skill", &|skill| {
                    let skill = fold(skill.trim().trim_start_matches('/'));
                    same_or_qualified(&skill, &wanted) || (*prefix && skill.starts_with(&wanted))
                })
            }
        }
    }
}

/// Whether a name is the wanted one, perhaps with the name of its plugin before it.
fn same_or_qualified(name: &str, wanted: &str) -> bool {
    name == wanted || name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with(':'))
}

/// A list of rules of one effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// The first rule that can't be read.
    pub fn parse<S: AsRef<str>>(rules: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        rules
            .into_iter()
            .map(|rule| rule.as_ref().parse())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The rules, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules that together cover a call: all that it does is allowed by one of them. For a list of rules that allow.
    ///
    /// # Errors
    /// Why they don't, for people.
    pub fn covers<'a>(&'a self, call: &Call<'_>) -> Result<Vec<&'a Rule>, String> {
        if let Some(rule) = self.0.iter().find(|rule| rule.covers_whole(call)) {
            return Ok(vec![rule]);
        }
        let patterns: Vec<(&Rule, &CommandPattern)> = self
            .0
            .iter()
            .filter(|rule| rule.names(&call.tool) && rule.check_allow().is_ok())
            .filter_map(|rule| match &rule.what {
                What::Command(pattern) => Some((rule, pattern)),
                _ => None,
            })
            .collect();
        match call.command() {
            Some(command) if !patterns.is_empty() && !call.is_odd() => {
                let mut by: Vec<&Rule> = Vec::new();
                for rule in command::cover(&patterns, command)? {
                    if !by.contains(&rule) {
                        by.push(rule);
                    }
                }
                Ok(by)
            }
            _ => Err(format!("no rule covers this call of {}", call.tool)),
        }
    }

    /// The first rule that a call could be meant by. For a list of rules that refuse, or that ask.
    pub fn touches(&self, call: &Call<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.touches(call))
    }
}

impl Extend<Rule> for Rules {
    fn extend<T: IntoIterator<Item = Rule>>(&mut self, rules: T) {
        self.0.extend(rules);
    }
}

impl IntoIterator for Rules {
    type Item = Rule;
    type IntoIter = std::vec::IntoIter<Rule>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Rules {
    type Item = &'a Rule;
    type IntoIter = std::slice::Iter<'a, Rule>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// What a tool does with the path in its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileTool {
    Reads,
    Writes,
    Searches,
}

/// A call of a tool, as rules look at it.
pub struct Call<'a> {
    tool: String,
    raw: &'a RawJson,
    place: Place,
    /// `None` if the input is no object.
    input: Option<BTreeMap<String, RawJson>>,
    texts: BTreeMap<String, String>,
    line: OnceCell<Line>,
}

impl<'a> Call<'a> {
    /// A call of the tool with this input, which happens there. A former name of a tool counts as its name.
    pub fn new(tool: &str, input: &'a RawJson, place: Place) -> Self {
        let fields: Option<BTreeMap<String, RawJson>> = input.decode().ok();
        let texts = fields.iter().flatten();
        Self {
            tool: canonical_name(tool).to_owned(),
            raw: input,
            place,
            texts: texts
                .filter_map(|(name, value)| Some((name.clone(), value.decode().ok()?)))
                .collect(),
            input: fields,
            line: OnceCell::new(),
        }
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// What it is called with.
    pub fn input(&self) -> &'a RawJson {
        self.raw
    }

    /// Whether the tool only reads files.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(self.file_tool(), Some((FileTool::Reads | FileTool::Searches, ..)))
    }

    fn fields(&self) -> &BTreeMap<String, RawJson> {
        static NONE: BTreeMap<String, RawJson> = BTreeMap::new();
        self.input.as_ref().unwrap_or(&NONE)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    fn command(&self) -> Option<&str> {
        self.text("command")
    }

    fn line(&self) -> Option<&Line> {
        let command = self.command()?;
        Some(self.line.get_or_init(|| Line::read(command)))
    }

    /// Whether the input is not what the tool takes, or asks for more than the tool does by itself.
    fn is_odd(&self) -> bool {
        let Some(fields) = &self.input else { return true };
        let lacks = |name: &str| self.text(name).is_none();
        match self.tool.as_str() {
            "Bash" | "PowerShell" => {
                let confined = fields
                    .get("dangerouslyDisableSandbox")
                    .is_none_or(|value| matches!(value.get(), "false" | "null"));
                lacks("command") || !confined
            }
            "WebFetch" => lacks("url"),
            "Skill" => lacks("skill"),
            _ => self.needs_path() && self.path().is_none(),
        }
    }

    /// What the tool does with files, the field that names them, and the directory that it takes without that.
    fn file_tool(&self) -> Option<(FileTool, &'static str, Option<&'static str>)> {
        Some(match self.tool.as_str() {
            "Read" => (FileTool::Reads, "file_path", None),
            "NotebookRead" => (FileTool::Reads, "notebook_path", None),
            "LSP" => (FileTool::Reads, "filePath", None),
            "Edit" | "Write" | "MultiEdit" => (FileTool::Writes, "file_path", None),
            "NotebookEdit" => (FileTool::Writes, "notebook_path", None),
            "Glob" | "Grep" | "LS" => (FileTool::Searches, "path", Some(".")),
            _ => return None,
        })
    }

    fn needs_path(&self) -> bool {
        self.file_tool().is_some()
    }

    /// The file or the directory that the call is about. `None` also if its pattern leads out of that.
    fn path(&self) -> Option<(FileTool, &str)> {
        let (does, field, otherwise) = self.file_tool()?;
        if does == FileTool::Searches {
            for pattern in ["pattern", "glob"]
                .into_iter()
                .filter(|name| self.tool == "Glob" || *name == "glob")
            {
                let Some(value) = self.fields().get(pattern) else {
                    continue;
                };
                let pattern = self.text(pattern);
                if value.get() != "null"
                    && pattern.is_none_or(|p| {
                        p.starts_with(['/', '\\', '~'])
                            || p.contains("..")
                            || p.contains(':')
                            || p.contains('{')
                    })
                {
                    return None;
                }
            }
        }
        let absent = self.fields().get(field).is_none_or(|value| value.get() == "null");
        match self.text(field) {
            Some(path) => Some((does, path)),
            None if absent => Some((does, otherwise?)),
            None => None,
        }
    }

    /// Whether a command names such a file; the second argument says whether the command may write it.
    fn mentions(&self, is_meant: impl Fn(&str, bool) -> bool) -> bool {
        matches!(self.tool.as_str(), "Bash" | "Monitor")
            && self.line().is_some_and(|line| {
                line.hides_all
                    || line
                        .mentions
                        .iter()
                        .any(|(path, writes)| !path.is_empty() && is_meant(path, *writes))
            })
    }

    fn has(&self, field: &Field) -> bool {
        let Some(value) = self.fields().get(&field.name) else {
            return false;
        };
        match value.get().as_bytes().first() {
            Some(b'"') => self
                .text(&field.name)
                .is_none_or(|text| matches(&field.value, &known(text))),
            Some(b'{' | b'[') | None => false,
            Some(_) => matches(&field.value, &known(value.get())),
        }
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("tool", &self.tool)
            .field("input", &self.raw)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
