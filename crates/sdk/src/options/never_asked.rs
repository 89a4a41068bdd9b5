//! The tool calls that the options decide, without a permission request.

use outrigger_protocol::shared::PermissionMode;

use super::{Options, PermissionPrompts, Skills};

/// Tool calls without a permission request; see [`Options::never_asked`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeverAsked {
    /// The tool; `*` for all.
    pub calls: String,
    /// The option that decides.
    pub option: &'static str,
}

impl Options {
    /// The tool calls for which the CLI will never request permission, although there is a callback. Look here when a permission
    /// callback is never called. Settings files may allow more.
    pub fn never_asked(&self) -> Vec<NeverAsked> {
        let mut unasked = Vec::new();
        let mut add = |calls: &str, option| {
            unasked.push(NeverAsked {
                calls: calls.to_owned(),
                option,
            })
        };
        if matches!(
            self.permission_mode,
            Some(PermissionMode::BypassPermissions | PermissionMode::DontAsk)
        ) {
            add("*", "permission_mode");
        }
        if self.permission_prompts == Some(PermissionPrompts::None) {
            add("*", "permission_prompts");
        }
        for rule in &self.allowed_tools {
            let whole = match rule.split_once('(') {
                None => Some(rule.as_str()),
                Some((tool, "*)")) => Some(tool),
                Some(_) => None,
            };
            if let Some(tool) = whole {
                add(tool, "allowed_tools");
            }
        }
        if self.skills == Some(Skills::All) {
            add("Skill", "skills");
        }
        unasked
    }
}
