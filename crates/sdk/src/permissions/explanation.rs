//! Who would decide about a call, and what keeps a handler from being asked.

use std::fmt;

use super::layers::Outlook;

/// Who may decide about a call, in the order in which they are asked. From [`Options::explain`](crate::Options::explain).
///
/// ```
/// use outrigger::permissions::Outlook;
/// use outrigger::options::{PermissionMode, RawJson};
/// use outrigger::{Agent, Policy};
///
/// // Unless a mode is chosen the CLI chooses one, and who would decide is not sure.
/// let options = Agent::builder()
///     .permission_mode(PermissionMode::Default)
///     .permissions(Policy::read_only().allow(["Bash(git log *)"]).deny(["WebFetch"]));
/// let input = RawJson::from_text(r#"{"command": "git log --oneline"}"#)?;
/// let explanation = options.explain("Bash", &input);
/// // Whether the rule means this command only the CLI can tell.
/// let by_rule = explanation.steps.iter().find(|step| step.rule.as_deref() == Some("Bash(git log *)"));
/// assert!(by_rule.is_some_and(|step| step.outlook == Outlook::Allowed && !step.is_sure));
/// assert_eq!(explanation.decisive().unwrap().outlook, Outlook::Refused);
/// println!("{explanation}");
/// assert_eq!(options.explain("WebFetch", &RawJson::from_text("{}")?).outlook(), Outlook::Refused);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The tool.
    pub tool: String,
    /// Who may decide, up to the first that surely does.
    pub steps: Vec<DecisionStep>,
    /// What may decide as well and is not known here: settings files, the organization's policy, …
    pub unknown: Vec<&'static str>,
}

/// One step of the decision: who may decide about a call, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecisionStep {
    /// Who decides.
    pub who: Decider,
    /// What the decision would be.
    pub outlook: Outlook,
    /// Whether the decision is sure. Otherwise the next step may be reached.
    pub is_sure: bool,
    /// The rule by which it does.
    pub rule: Option<String>,
    /// Why, for people.
    pub why: String,
}

/// Who may decide about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decider {
    /// A hook, of this program or of settings.
    Hook,
    /// The tools of the session: whether this one is among them.
    Tools,
    /// [`Options::disallowed_tools`](crate::Options::disallowed_tools).
    DisallowedTools,
    /// The rules of the permission handler, such as those of a [`Policy`](super::Policy), which the CLI judges.
    Policy,
    /// The rules of [`Options::settings`](crate::Options::settings) and
    /// [`Options::managed_settings`](crate::Options::managed_settings).
    Settings,
    /// [`Options::permission_mode`](crate::Options::permission_mode).
    PermissionMode,
    /// [`Options::allowed_tools`](crate::Options::allowed_tools).
    AllowedTools,
    /// [`Options::skills`](crate::Options::skills).
    Skills,
    /// The CLI by itself: it allows what it knows to be harmless.
    Cli,
    /// [`Options::permission_prompts`](crate::Options::permission_prompts).
    PermissionPrompts,
    /// The tool of [`Options::permission_prompt_tool_name`](crate::Options::permission_prompt_tool_name).
    PromptTool,
    /// Who answers questions, [`Options::questions`](crate::Options::questions).
    Questions,
    /// Who decides about plans, [`Options::plans`](crate::Options::plans).
    Plans,
    /// The permission handler, [`Options::permissions`](crate::Options::permissions).
    Handler,
}

impl Explanation {
    /// Who surely decides, unless one of the steps before it does. `None` never comes from
    /// [`Options::explain`](crate::Options::explain).
    pub fn decisive(&self) -> Option<&DecisionStep> {
        self.steps.iter().find(|step| step.is_sure)
    }

    /// What becomes of the call, if what is not known here says nothing; [`Outlook::Unknown`] also when somebody may say
    /// otherwise before the one who surely decides.
    pub fn outlook(&self) -> Outlook {
        let Some(decisive) = self.decisive() else {
            return Outlook::Unknown;
        };
        let agree = self.steps.iter().all(|step| step.outlook == decisive.outlook);
        if agree { decisive.outlook } else { Outlook::Unknown }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a call of {}:", self.tool)?;
        for step in &self.steps {
            let may = if step.is_sure { "" } else { "perhaps " };
            let says = match step.outlook {
                Outlook::Allowed => "allowed",
                Outlook::Refused => "refused",
                Outlook::Asked => "asked",
                Outlook::Unknown => "decided",
            };
            write!(f, "  {may}{says} by {}: {}", step.who, step.why)?;
            match &step.rule {
                Some(rule) => writeln!(f, " (`{rule}`)")?,
                None => writeln!(f)?,
            }
        }
        if !self.unknown.is_empty() {
            writeln!(f, "  not known here: {}", self.unknown.join("; "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hook => "a hook",
            Self::Tools => "the tools of the session",
            Self::DisallowedTools => "`disallowed_tools`",
            Self::Policy => "the rules of the permission handler",
            Self::Settings => "the settings of the session",
            Self::PermissionMode => "`permission_mode`",
            Self::AllowedTools => "`allowed_tools`",
            Self::Skills => "`skills`",
            Self::Cli => "the CLI",
            Self::PermissionPrompts => "`permission_prompts`",
            Self::PromptTool => "`permission_prompt_tool_name`",
            Self::Questions => "who answers questions",
            Self::Plans => "who decides about plans",
            Self::Handler => "the permission handler",
        })
    }
}

/// Something in the options that is likely not meant. From [`Options::warnings`](crate::Options::warnings).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A permission handler was set, and will not be asked about these calls.
    HandlerNotAsked {
        /// The tool; `*` for all.
        calls: String,
        /// The option that decides on them.
        option: &'static str,
    },
    /// A rule about reading does not hold for other ways to read the same. `Read` alone is about that tool only, not about `Grep` and
    /// commands. A rule that has somebody asked about a file (`Read(./secret.txt)`) is not about commands (`cat secret.txt`), nor about
    /// `Grep` where that comes upon the file in a directory.
    OtherWaysToRead {
        /// The rule.
        rule: String,
    },
    /// A rule about writing does not hold for other ways to write. `Edit` alone is about that tool only where it denies or asks, not
    /// about `Write`, `NotebookEdit` and commands.
    OtherWaysToWrite {
        /// The rule.
        rule: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, option) = match self {
            Self::HandlerNotAsked { calls, option } => (calls, option),
            Self::OtherWaysToRead { rule } => {
                return write!(
                    f,
                    "the rule `{rule}` is not about other ways to read the same, commands and searches by `Grep`: refuse files by their \
                     paths, as in `Read(./**)`, or name `Grep` and `Bash` as well"
                );
            }
            Self::OtherWaysToWrite { rule } => {
                return write!(
                    f,
                    "the rule `{rule}` is not about other ways to write files, `Write`, `NotebookEdit` and commands: name the files, as \
                     in `Edit(//**)`, or these tools as well"
                );
            }
        };
        match calls.as_str() {
            "*" => write!(f, "the permission handler is asked about nothing")?,
            calls => write!(f, "the permission handler is not asked about {calls}")?,
        }
        write!(
            f,
            ", since `{option}` decides first; to see these calls use a PreToolUse hook, or change `{option}`"
        )
    }
}
