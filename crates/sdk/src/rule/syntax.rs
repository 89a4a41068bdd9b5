//! What can be written in a rule, and what the CLI would skip or read in another way than it looks.

use outrigger_protocol::tools::{BUILTIN_TOOL_NAMES, LEGACY_TOOL_NAME_ALIASES, canonical_name};

use super::{GOES_BY, Rule, ToolPattern};

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

const BY_FIELD: &str = "is about a field of the input, by which a call can be denied but not allowed";

/// Why a rule can't stand among those that allow.
type NotToAllow = Option<&'static str>;

/// Reads a rule. The error says what is wrong, and what to write instead.
pub(super) fn read(text: &str) -> Result<Rule, String> {
    crate::value_syntax::rule(text)?;
    let (name, spec) = match text.split_once('(') {
        Some((name, spec)) => (name, Some(spec.strip_suffix(')').unwrap_or(spec))),
        None => (text, None),
    };
    parts(text, name, spec)
}

/// Whether no part of a tool's calls is meant.
pub(super) fn whole_tool(text: &str) -> Result<(), String> {
    match text.split_once('(') {
        Some((name, spec)) if spec != "*)" => Err(format!(
            "is about some calls of a tool, and for a subagent the CLI only looks at the name: write `{name}`, and a rule for the session"
        )),
        _ => Ok(()),
    }
}

/// Whether the pattern stands for all tools of one MCP server, or of all.
pub(super) fn is_whole_server(pattern: &str) -> bool {
    let server = pattern.strip_suffix('*').unwrap_or(pattern);
    server == "mcp__" || server.starts_with("mcp__") && server.ends_with("__") && !server.contains('*')
}

/// Reads a rule that comes in two parts, as in answers. The CLI splits nothing of it.
pub(super) fn parts(text: &str, name: &str, spec: Option<&str>) -> Result<Rule, String> {
    if let Some(c) = text.chars().find(|c| looks_like_another(*c)) {
        return Err(format!(
            "holds U+{:04X}, which looks like a blank or like nothing, and is another character to the CLI: write a blank, or `?` for \
             it in a path",
            u32::from(c)
        ));
    }
    let tools = tools(name)?;
    let (is_whole, not_to_allow) = match (&tools, spec) {
        (_, None) => (true, any_name(&tools)),
        (ToolPattern::One(tool), Some(spec)) => covers_all_calls(tool, spec)?,
        (_, Some(_)) => return Err("has parentheses behind a name for several tools: leave them out".into()),
    };
    Ok(Rule {
        text: text.to_owned(),
        tools,
        is_whole,
        not_to_allow,
    })
}

/// The name of the tool that was meant by a name in other letters.
pub(crate) fn in_its_letters(name: &str) -> Option<&'static str> {
    let earlier = LEGACY_TOOL_NAME_ALIASES.iter().map(|(earlier, _)| earlier);
    let mut tools = BUILTIN_TOOL_NAMES.iter().chain(earlier).copied();
    tools.find(|tool| tool.eq_ignore_ascii_case(name) && *tool != name)
}

fn tools(name: &str) -> Result<ToolPattern, String> {
    if let Some(rest) = name.strip_prefix("mcp__") {
        if rest.is_empty() || rest.starts_with("__") || rest.ends_with("__") {
            return Err(
                "names no MCP server or none of its tools: write `mcp__server` or `mcp__server__tool`".into(),
            );
        }
        if !rest.chars().all(|c| is_of_mcp(c) || c == '*') {
            return Err(in_letters_of_mcp(name));
        }
        return Ok(match () {
            () if rest.contains('*') => ToolPattern::Pattern(name.to_owned()),
            () if rest.contains("__") => ToolPattern::One(name.to_owned()),
            () => ToolPattern::Server(format!("{name}__")),
        });
    }
    if name.contains('*') {
        return Ok(ToolPattern::Pattern(name.to_owned()));
    }
    if let Some(tool) = in_its_letters(name) {
        return Err(format!(
            "names a tool in other letters than its own: write `{tool}`"
        ));
    }
    if name.is_empty() {
        return Err("names no tool".into());
    }
    if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
    {
        return Err("names no tool: those have letters, digits, `_`, `-` and `.` only".into());
    }
    Ok(ToolPattern::One(canonical_name(name).to_owned()))
}

/// Whether a name of an MCP tool has this character. The CLI writes `_` for each other.
fn is_of_mcp(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// What is wrong with an MCP name that is not in the letters in which the CLI has it.
fn in_letters_of_mcp(name: &str) -> String {
    let mut own = String::new();
    for c in name.chars() {
        match c {
            c if is_of_mcp(c) || c == '*' => own.push(c),
            // The CLI counts as JavaScript does.
            c => own.extend(std::iter::repeat_n('_', c.len_utf16())),
        }
    }
    if !name["mcp__".len()..].contains("__") && !name.contains('*') {
        own.push_str("__*");
    }
    let why = "holds a character that no name of an MCP tool has, since the CLI writes `_` for it";
    match tools(&own) {
        Ok(_) => format!("{why}: write `{own}`"),
        Err(_) => format!("{why}: name the server in letters and digits"),
    }
}

/// Whether a person sees a blank or nothing where the CLI has a character of its own.
fn looks_like_another(c: char) -> bool {
    let is_invisible = matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    is_invisible || c.is_whitespace() && c != ' '
}

/// The CLI skips rules that allow tools by a pattern, but for those of one MCP server.
fn any_name(tools: &ToolPattern) -> NotToAllow {
    let ToolPattern::Pattern(pattern) = tools else {
        return None;
    };
    let server = pattern
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"));
    server.is_none_or(|(server, _)| server.contains('*')).then_some(
        "allows tools of any name: name each, or write `mcp__server__*` for those of an MCP server",
    )
}

/// Whether the rule is about all calls of the tool.
fn covers_all_calls(tool: &str, spec: &str) -> Result<(bool, NotToAllow), String> {
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
        .find(|(name, main, _)| *name == tool && field == Some(*main))
    {
        return Err(format!(
            "names the field that the tool's rules are about anyway: write it as in `{instead}`"
        ));
    }
    let is_mcp = tool.starts_with("mcp__");
    let some = |not_to_allow| Ok((false, not_to_allow));
    match tool {
        "Read" | "Edit" => {
            file(spec)?;
            some(None)
        }
        _ if spec == "*" && !is_mcp => Ok((true, None)),
        "Bash" => {
            command(spec)?;
            some(match field {
                Some(field) if BASH_FIELDS.contains(&field) => Some(BY_FIELD),
                _ => names_no_program(spec),
            })
        }
        "Skill" => {
            skill(spec)?;
            some(None)
        }
        "Agent" if is_agent(spec) => some(None),
        "WebFetch" if spec.starts_with("domain:") => {
            host(&spec["domain:".len()..])?;
            some(None)
        }
        _ if field.is_some() => some(Some(BY_FIELD)),
        "WebFetch" => Err("names no domain: write `WebFetch(domain:example.com)`".into()),
        "PowerShell" => Err(
            "is about single commands of PowerShell, of which it is not known how the CLI reads them: write `PowerShell`"
                .into(),
        ),
        _ => Err(format!(
            "says more than is known about calls of `{tool}`: write `{tool}`"
        )),
    }
}

/// The field of `name:value`, the other meaning of what is between parentheses.
fn field(spec: &str) -> Option<&str> {
    let (name, _) = spec.split_once(':')?;
    let name = name.trim();
    let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    sound.then_some(name)
}

fn is_agent(spec: &str) -> bool {
    spec.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_-.: ".contains(&b))
        && spec == spec.trim()
}

fn skill(spec: &str) -> Result<(), &'static str> {
    let name = spec
        .strip_suffix(":*")
        .or_else(|| spec.strip_suffix(" *"))
        .unwrap_or(spec);
    crate::value_syntax::skill(name)?;
    if name.contains('*') {
        return Err("has a `*` in the name of a skill: it stands at the end, behind a colon or a blank");
    }
    Ok(())
}

fn command(spec: &str) -> Result<(), &'static str> {
    if spec.contains("\\*") {
        return Err("has `\\*`, which no `*` of a command can be told from: leave the backslash out");
    }
    if spec != spec.trim() {
        return Err("begins or ends with a blank between its parentheses");
    }
    let text = match spec.strip_suffix(":*").or_else(|| spec.strip_suffix(" *")) {
        Some(prefix) if !prefix.contains('*') => prefix,
        Some(_) if spec.ends_with(":*") => {
            return Err("has a `*` before its `:*`; end it with ` *` instead");
        }
        _ => spec,
    };
    if text.contains(":*") {
        return Err("has `:*` before its end, where the colon is an ordinary character: put a blank there");
    }
    if text.chars().all(|c| c == '*' || c == ' ') {
        return Err("names no command; name the tool alone to mean all of its calls");
    }
    Ok(())
}

/// A `*` in the first word of a command lets the model choose the program.
fn names_no_program(spec: &str) -> NotToAllow {
    let first = spec.strip_suffix(":*").unwrap_or(spec);
    let first = first.split_whitespace().next().unwrap_or_default();
    first.contains('*').then_some(
        "leaves open which program runs, since a `*` stands in its first word: write the program's name in full, as in `Bash(git *)`",
    )
}

fn host(domain: &str) -> Result<(), &'static str> {
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    if domain.is_empty() {
        return Err("names no domain; name the tool alone to mean all of them");
    }
    if domain.contains("://") || domain.contains('/') {
        return Err("holds a URL: write the host alone, as in `domain:example.com`");
    }
    if domain.contains(':') {
        return Err("holds a port, which no rule can tell apart: leave it out");
    }
    if !domain.is_ascii() {
        return Err("holds a letter that domains have in another spelling: write the domain's `xn--` form");
    }
    if !domain
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.*".contains(&b))
    {
        return Err("holds a character that no domain has");
    }
    if domain.split('.').any(str::is_empty) {
        return Err("holds two dots in a row, or begins with one");
    }
    address(domain)?;
    if domain != "*" && domain.contains('*') && !domain.contains('.') {
        return Err("matches no domain: behind its beginning, a `*` stands for what is between two dots");
    }
    Ok(())
}

/// An address is written in one way, and a `*` in it stands for one number.
fn address(domain: &str) -> Result<(), &'static str> {
    let is_number = |label: &str| {
        let digits = label.strip_prefix("0x").unwrap_or(label);
        label.bytes().all(|b| b.is_ascii_digit())
            || label.len() > 2 && digits.len() < label.len() && digits.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let labels: Vec<&str> = domain.split('.').collect();
    let last = labels.last().copied().unwrap_or_default();
    let is_address = is_number(last)
        || last == "*"
            && labels.iter().all(|label| *label == "*" || is_number(label))
            && labels.iter().any(|label| is_number(label));
    let is_own = |label: &&str| {
        *label == "*"
            || label
                .parse::<u8>()
                .is_ok_and(|number| number.to_string() == *label)
    };
    let is_whole = labels.len() == 4 || labels.first() == Some(&"*") && labels.len() < 4;
    if is_address && !(is_whole && labels.iter().all(is_own)) {
        return Err("matches no address: write all four numbers, and `*` for any, as in `domain:10.*.*.*`");
    }
    Ok(())
}

fn file(spec: &str) -> Result<(), &'static str> {
    let rest = ["//", "~/", "/", "./"]
        .iter()
        .find_map(|base| spec.strip_prefix(base))
        .unwrap_or(spec);
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
    letters(rest)?;
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

/// The characters that mean something in a pattern for files.
fn letters(pattern: &str) -> Result<(), &'static str> {
    let mut in_brackets = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if !chars.next().is_some_and(|c| "*?[]!#\\ ".contains(c)) => {
                return Err("holds a backslash before an ordinary character: paths are written with slashes");
            }
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            '{' | '}' if !in_brackets => {
                return Err(
                    "holds a brace, which is an ordinary character to the CLI: write a rule for each, or `[{]`",
                );
            }
            _ => {}
        }
    }
    match in_brackets {
        true => Err("has an opening bracket without a closing one"),
        false => Ok(()),
    }
}
