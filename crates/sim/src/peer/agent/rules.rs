//! Rules for tools: allow, deny and ask.

use serde_json::{Value, json};

/// Where a rule, or a directory, comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A flag for tools.
    CliArg,
    /// `--settings`, or what the host has applied like it.
    Flag,
    /// Something the host has granted for as long as the session lives.
    Session,
    User,
    Project,
    Local,
}

impl Source {
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

    /// Whether it is a file of the user's.
    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::User | Self::Project | Self::Local)
    }

    fn editability(self) -> &'static str {
        match self {
            Self::CliArg | Self::Flag => "readonly",
            Self::Session => "session",
            Self::User | Self::Project | Self::Local => "persistent",
        }
    }
}

/// A rule, as `Tool` or `Tool(content)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) source: Source,
}

/// Allow, deny and ask rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    pub(super) allow: Vec<Rule>,
    pub(super) deny: Vec<Rule>,
    pub(super) ask: Vec<Rule>,
}

impl Rules {
    /// The rules of flags.
    pub(super) fn new(allow: &[String], deny: &[String], ask: &[String]) -> Self {
        let mut rules = Self::default();
        for (list, given) in [
            (&mut rules.allow, allow),
            (&mut rules.deny, deny),
            (&mut rules.ask, ask),
        ] {
            // One argument may hold several rules, divided by commas or spaces outside of parentheses.
            let texts = given.iter().flat_map(|rules| split(rules));
            list.extend(texts.map(|text| Rule {
                text,
                source: Source::CliArg,
            }));
        }
        rules
    }

    pub(super) fn list(&mut self, behavior: &str) -> Option<&mut Vec<Rule>> {
        match behavior {
            "allow" => Some(&mut self.allow),
            "deny" => Some(&mut self.deny),
            "ask" => Some(&mut self.ask),
            _ => None,
        }
    }

    /// All of them, with their behavior, as `list_permission_rules` tells them.
    pub(super) fn listed(&self) -> Vec<Value> {
        let lists = [("allow", &self.allow), ("ask", &self.ask), ("deny", &self.deny)];
        lists
            .into_iter()
            .flat_map(|(behavior, rules)| rules.iter().map(move |rule| rule.listed(behavior)))
            .collect()
    }
}

impl Rule {
    /// The rule for a tool, or for some of what it may be called with.
    fn parts(&self) -> (&str, Option<&str>) {
        match self.text.strip_suffix(')').and_then(|rule| rule.split_once('(')) {
            Some((name, content)) => (name, Some(content)),
            None => (&self.text, None),
        }
    }

    /// Whether it speaks about this call. `Tool(prefix:*)` and `Tool(exact)` are understood, for commands and paths.
    pub(super) fn covers(&self, tool: &str, subject: &str) -> bool {
        let (name, content) = self.parts();
        let name_fits = name == tool || (tool.starts_with("mcp__") && tool.starts_with(&format!("{name}__")));
        name_fits
            && match content {
                None | Some("*") => true,
                Some(content) => match content.strip_suffix(":*") {
                    Some(prefix) => subject.starts_with(prefix),
                    None => subject == content,
                },
            }
    }

    /// Whether it is for exactly this call.
    pub(super) fn names(&self, subject: &str) -> bool {
        self.parts().1 == Some(subject)
    }

    fn listed(&self, behavior: &str) -> Value {
        let mut listed = json!({
            "behavior": behavior, "source": self.source.as_str(), "rule": self.text,
            "editability": self.source.editability(),
        });
        let description = match self.parts() {
            (tool, None) => Some(json!({"prefix": "Any use of the ", "emphasis": tool, "suffix": " tool"})),
            ("Bash", Some(content)) => Some(match content.strip_suffix(":*") {
                Some(prefix) => json!({"prefix": "Any Bash command starting with ", "emphasis": prefix}),
                None => json!({"prefix": "The Bash command ", "emphasis": content}),
            }),
            _ => None,
        };
        if let Some(description) = description {
            listed["description"] = description;
        }
        listed
    }
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
