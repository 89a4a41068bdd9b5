//! Policies as they stand in files.

use serde::Deserialize;

use super::policy::{Policy, PolicyDefault, PolicyError};

/// A policy as it stands in a file, in TOML, JSON or whatever else serde reads. Keys that it does not know are refused.
///
/// ```toml
/// # What becomes of calls that the CLI asks about: "deny" (unless said), "ask" or "allow".
/// default = "ask"
/// # Whether reading in the working directories is allowed, and what `Policy::read_only` denies is denied; not unless said. Does not go
/// # with default = "allow".
/// read_only = true
/// # Rules as in the CLI's settings. Those that refuse win over those that ask, and these over those that allow.
/// allow = ["Bash(git log *)", "Edit(src/**)"]
/// ask = ["Bash(git push *)"]
/// deny = ["Read(.env)", "Bash(rm *)"]
/// ```
///
/// Reading the file is up to the program:
///
/// ```
/// use outrigger::permissions::PolicyFile;
///
/// let file: PolicyFile = serde_json::from_str(r#"{"default": "ask", "deny": ["Bash(rm *)"]}"#)?;
/// let policy = file.policy()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PolicyFile {
    /// What becomes of calls that the CLI asks about.
    pub default: PolicyDefault,
    /// Whether reading in the working directories is allowed, and the tools are denied that [`Policy::read_only`] denies.
    pub read_only: bool,
    /// Rules that allow.
    pub allow: Vec<String>,
    /// Rules that have somebody asked.
    pub ask: Vec<String>,
    /// Rules that refuse.
    pub deny: Vec<String>,
}

impl PolicyFile {
    /// The policy that the file describes.
    ///
    /// # Errors
    /// When a rule is wrong, with the list that it is in, or when it contradicts itself.
    pub fn policy(&self) -> Result<Policy, PolicyError> {
        if self.read_only && self.default == PolicyDefault::Allow {
            return Err(PolicyError::ReadOnlyAllowsAll);
        }
        let policy = Policy::new(self.default)
            .deny(&self.deny)
            .ask(&self.ask)
            .allow(&self.allow);
        policy.check()?;
        Ok(match self.read_only {
            true => policy.reading().no_more_than_reading(),
            false => policy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_say_the_same() {
        let toml = "default = \"ask\"\nread_only = true\nallow = [\"Bash(git *)\"]\nask = [\"Edit\"]\ndeny = [\"Read(.env)\"]";
        let json = r#"{"default": "ask", "read_only": true, "allow": ["Bash(git *)"], "ask": ["Edit"], "deny": ["Read(.env)"]}"#;
        let from_toml: PolicyFile = toml::from_str(toml).unwrap();
        let from_json: PolicyFile = serde_json::from_str(json).unwrap();
        assert_eq!(from_toml, from_json);
        let policy = Policy::ask_all()
            .allow(["Bash(git *)"])
            .ask(["Edit"])
            .deny(["Read(.env)"])
            .reading()
            .no_more_than_reading();
        assert_eq!(from_toml.policy(), Ok(policy));
        let empty: PolicyFile = serde_json::from_str("{}").unwrap();
        assert_eq!(empty.policy(), Ok(Policy::deny_all()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            (r#"{"alow": []}"#, "unknown field `alow`"),
            (r#"{"default": "yes"}"#, "unknown variant `yes`"),
            (r#"{"allow": "Bash"}"#, "invalid type"),
        ] {
            let error = serde_json::from_str::<PolicyFile>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        for (text, says) in [
            (
                r#"{"deny": ["Bash("]}"#,
                "in `deny` the rule `Bash(` lacks a closing parenthesis",
            ),
            (
                r#"{"allow": ["*"]}"#,
                "in `allow` the rule `*` allows tools of any name",
            ),
            (
                r#"{"ask": ["Write(x)"]}"#,
                "in `ask` the rule `Write(x)` has no effect: write `Edit(x)`",
            ),
            (r#"{"read_only": true, "default": "allow"}"#, "contradict"),
        ] {
            let file: PolicyFile = serde_json::from_str(text).unwrap();
            let error = file.policy().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
