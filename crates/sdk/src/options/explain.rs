//! Computes from options what would decide about a call.

use std::collections::BTreeMap;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{HookEvent, PermissionMode, SettingSource};

use super::{Isolation, Options, PermissionPrompts, SettingsInput, Skills, Tools};
use crate::fields::Fields;
use crate::permissions::{Decider, DecisionStep, Explanation, Foreseen, Outlook, PLAN, QUESTION, Warning};
use crate::rule::{About, Rule};

struct Steps(Vec<DecisionStep>);

impl Steps {
    fn add(&mut self, who: Decider, outlook: Outlook, is_sure: bool, why: impl Into<String>) {
        let step = DecisionStep {
            who,
            outlook,
            is_sure,
            rule: None,
            why: why.into(),
        };
        self.0.push(step);
    }

    fn is_settled(&self) -> bool {
        self.0.iter().any(|step| step.is_sure)
    }

    /// Adds the rules of a list that could match the call. Only the CLI knows whether a rule with parentheses matches, and whether
    /// it requests permission in spite of an allow rule.
    fn rules<'a>(
        &mut self,
        who: Decider,
        outlook: Outlook,
        rules: impl IntoIterator<Item = &'a str>,
        tool: &str,
    ) {
        for text in rules {
            let (about, why) = match text.parse::<Rule>() {
                Ok(rule) if outlook == Outlook::Allowed && rule.check_allow().is_err() => (About::None, ""),
                Ok(rule) => (
                    rule.about(tool),
                    "only the CLI can tell whether the rule means this call",
                ),
                Err(_) => (
                    whole(text, tool),
                    "a rule that the CLI may read in another way than it looks",
                ),
            };
            let (is_sure, why) = match (about, outlook) {
                (About::None, _) => continue,
                (About::All, Outlook::Allowed) => (
                    false,
                    "the rule means all calls of the tool; the CLI's own checks may want some asked",
                ),
                (About::All, _) => (true, "the rule means all calls of the tool"),
                (About::Some, _) => (false, why),
            };
            self.add(who, outlook, is_sure, why);
            if let Some(step) = self.0.last_mut() {
                step.rule = Some(text.to_owned());
            }
            if is_sure {
                return;
            }
        }
    }

    fn foreseen(&mut self, foreseen: Foreseen) {
        let Foreseen {
            outlook,
            layer,
            rule,
            why,
        } = foreseen;
        let why = layer.map_or(why.clone(), |layer| format!("layer {layer}: {why}"));
        self.add(Decider::Handler, outlook, true, why);
        if let Some(step) = self.0.last_mut() {
            step.rule = rule;
        }
    }
}

/// Rules that this crate rejects and the CLI accepts: `Tool()`, for example.
fn whole(text: &str, tool: &str) -> About {
    match text.split_once('(') {
        Some((name, ")")) if name == tool => About::All,
        Some((name, _)) if name == tool => About::Some,
        _ => About::None,
    }
}

/// Whether the tool only reads files.
fn only_reads(tool: &str) -> bool {
    matches!(tool, "Read" | "Glob" | "Grep" | "LS" | "LSP" | "NotebookRead")
}

/// Whether the CLI may call a hook with this matcher for the tool. A regular expression may match anything.
fn may_match(matcher: Option<&str>, tool: &str) -> bool {
    let Some(matcher) = matcher.filter(|matcher| !matches!(*matcher, "" | "*")) else {
        return true;
    };
    let is_list = matcher
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-|, ".contains(c));
    let name = outrigger_protocol::tools::canonical_name;
    !is_list
        || matcher
            .split(['|', ','])
            .any(|one| name(one.trim()) == name(tool))
}

impl Options {
    /// What would decide about a call of this tool with this input, as far as the options tell: a hook, rules, the mode, the
    /// permission handler, and in a [`Policy`](crate::Policy) which rule. This starts nothing and calls no callback.
    ///
    /// The [`Explanation`] names what is not known. Only the CLI evaluates the part in the parentheses of a rule: the explanation
    /// lists such a rule as one that may decide.
    pub fn explain(&self, tool: &str, input: &RawJson) -> Explanation {
        let tool = outrigger_protocol::tools::canonical_name(tool).to_owned();
        let mut steps = Steps(Vec::new());
        self.explain_refusals(&tool, &mut steps);
        if !steps.is_settled() {
            self.explain_allowances(&tool, &mut steps);
        }
        if !steps.is_settled() {
            self.explain_asking(&tool, input, &mut steps);
        }
        if let Some(last) = steps.0.iter().position(|step| step.is_sure) {
            steps.0.truncate(last + 1);
        }
        Explanation {
            tool,
            steps: steps.0,
            unknown: self.unknown(),
        }
    }

    /// The inline settings.
    fn inline_settings(&self) -> impl Iterator<Item = Fields> {
        let own = match &self.settings {
            Some(SettingsInput::Inline(settings)) => Some(settings),
            _ => None,
        };
        let all = self.managed_settings.iter().chain(own);
        all.filter_map(|settings| settings.json().map(|json| Fields::of_object(json)))
    }

    /// Adds the rules of one behavior that the inline settings have.
    fn explain_rules(&self, behavior: &str, outlook: Outlook, tool: &str, steps: &mut Steps) {
        for settings in self.inline_settings() {
            let rules = rules_of(&settings, behavior);
            steps.rules(Decider::Settings, outlook, rules.iter().map(String::as_str), tool);
        }
    }

    fn explain_refusals(&self, tool: &str, steps: &mut Steps) {
        let deciding =
            |event: &HookEvent| matches!(event, HookEvent::PreToolUse | HookEvent::PermissionRequest);
        let own = self
            .hosting
            .handlers
            .hooks
            .iter()
            .any(|hook| deciding(hook.event()) && may_match(hook.matcher(), tool));
        if own {
            steps.add(
                Decider::Hook,
                Outlook::Unknown,
                false,
                "a hook of this program is called first",
            );
        }
        let configured = self.inline_settings().any(|settings| {
            #[derive(serde::Deserialize)]
            struct Matched {
                matcher: Option<String>,
            }
            let hooks: BTreeMap<String, Vec<Matched>> = settings.get("hooks").unwrap_or_default();
            settings.get("disableAllHooks") != Some(true)
                && hooks
                    .iter()
                    .filter(|(event, _)| deciding(&HookEvent::from(event.as_str())))
                    .flat_map(|(_, matchers)| matchers)
                    .any(|matcher| may_match(matcher.matcher.as_deref(), tool))
        });
        if configured {
            steps.add(
                Decider::Hook,
                Outlook::Unknown,
                false,
                "a hook of the settings is called first",
            );
        }
        if let Some(Tools::Only(tools)) = &self.tools
            && outrigger_protocol::tools::BUILTIN_TOOL_NAMES.contains(&tool)
            && !tools
                .iter()
                .any(|name| outrigger_protocol::tools::canonical_name(name) == tool)
        {
            return steps.add(
                Decider::Tools,
                Outlook::Refused,
                true,
                "the session does not have this tool",
            );
        }
        let disallowed = self.disallowed_tools.iter().map(String::as_str);
        steps.rules(Decider::DisallowedTools, Outlook::Refused, disallowed, tool);
        let policy = self.hosting.handlers.rules();
        let denied = policy.deny.iter().map(Rule::as_str);
        steps.rules(Decider::Policy, Outlook::Refused, denied, tool);
        self.explain_rules("deny", Outlook::Refused, tool, steps);
    }

    fn explain_allowances(&self, tool: &str, steps: &mut Steps) {
        let policy = self.hosting.handlers.rules();
        let asks = |steps: &mut Steps| {
            self.explain_rules("ask", Outlook::Asked, tool, steps);
            let asked = policy.ask.iter().map(Rule::as_str);
            steps.rules(Decider::Policy, Outlook::Asked, asked, tool);
        };
        if tool == QUESTION || tool == PLAN {
            return;
        }
        let before = steps.0.len();
        asks(steps);
        if steps.is_settled() {
            // Somebody is asked, whatever allows the call; who, is said next.
            steps
                .0
                .iter_mut()
                .skip(before)
                .for_each(|step| step.is_sure = false);
            return;
        }
        match self.permission_mode {
            Some(PermissionMode::BypassPermissions) => {
                return steps.add(
                    Decider::PermissionMode,
                    Outlook::Allowed,
                    true,
                    "bypassPermissions allows all calls",
                );
            }
            Some(PermissionMode::AcceptEdits)
                if matches!(tool, "Edit" | "Write" | "NotebookEdit" | "Bash") =>
            {
                steps.add(
                    Decider::PermissionMode,
                    Outlook::Allowed,
                    false,
                    "acceptEdits allows edits, and plain commands on files, in the working directories",
                )
            }
            Some(PermissionMode::Plan) if !only_reads(tool) => {
                steps.add(
                    Decider::PermissionMode,
                    Outlook::Unknown,
                    false,
                    "plan lets the model change nothing but its plan",
                );
            }
            Some(PermissionMode::Auto) => {
                steps.add(
                    Decider::PermissionMode,
                    Outlook::Unknown,
                    false,
                    "auto has a classifier decide",
                );
            }
            None => steps.add(
                Decider::PermissionMode,
                Outlook::Unknown,
                false,
                "no mode is chosen: the CLI chooses one",
            ),
            _ => {}
        }
        let allowed = self.allowed_tools.iter().map(String::as_str);
        steps.rules(Decider::AllowedTools, Outlook::Allowed, allowed, tool);
        let allowed = policy.allow.iter().map(Rule::as_str);
        steps.rules(Decider::Policy, Outlook::Allowed, allowed, tool);
        self.explain_rules("allow", Outlook::Allowed, tool, steps);
        match &self.skills {
            Some(Skills::All) if tool == "Skill" => {
                steps.add(Decider::Skills, Outlook::Allowed, true, "all skills are allowed")
            }
            Some(Skills::Named(names)) => {
                let rules: Vec<String> = names.iter().map(|name| format!("Skill({name})")).collect();
                let rules = rules.iter().map(String::as_str);
                steps.rules(Decider::Skills, Outlook::Allowed, rules, tool);
            }
            _ => {}
        }
        if !steps.is_settled() {
            let why = match tool {
                "Bash" => "it runs commands that it knows to be read-only without asking",
                _ if only_reads(tool) => "it reads in the working directories without asking",
                _ => "some tools it never asks about",
            };
            steps.add(Decider::Cli, Outlook::Allowed, false, why);
        }
    }

    fn explain_asking(&self, tool: &str, input: &RawJson, steps: &mut Steps) {
        if self.permission_mode == Some(PermissionMode::DontAsk) {
            return steps.add(
                Decider::PermissionMode,
                Outlook::Refused,
                true,
                "dontAsk refuses what would be asked",
            );
        }
        if self.permission_prompts == Some(PermissionPrompts::None) {
            return steps.add(
                Decider::PermissionPrompts,
                Outlook::Refused,
                true,
                "nobody is asked",
            );
        }
        if self.permission_prompt_tool_name.is_some() {
            return steps.add(
                Decider::PromptTool,
                Outlook::Unknown,
                true,
                "it is asked instead of this program",
            );
        }
        let handlers = &self.hosting.handlers;
        if tool == QUESTION {
            return match handlers.answers_questions() {
                true => steps.add(
                    Decider::Questions,
                    Outlook::Asked,
                    true,
                    "the question is passed on",
                ),
                false => steps.add(
                    Decider::Tools,
                    Outlook::Refused,
                    true,
                    "nobody answers questions, so the model can't ask any",
                ),
            };
        }
        if tool == PLAN && handlers.plans.is_some() {
            return steps.add(Decider::Plans, Outlook::Asked, true, "the plan is passed on");
        }
        let foreseen = handlers.foresee(tool, input);
        steps.foreseen(match (tool, foreseen.outlook) {
            // No rule stands for a person.
            (QUESTION | PLAN, Outlook::Allowed) => {
                Foreseen::new(Outlook::Refused, "only a person may answer this")
            }
            _ => foreseen,
        });
    }

    /// Whether the CLI reads configuration of the working directory.
    pub(super) fn reads_checkout(&self) -> bool {
        match &self.setting_sources {
            Some(sources) => sources
                .iter()
                .any(|source| matches!(source, SettingSource::Project | SettingSource::Local)),
            None => matches!(self.isolation, Isolation::Project | Isolation::Interactive),
        }
    }

    /// The deciders that are not known from the options.
    fn unknown(&self) -> Vec<&'static str> {
        let mut unknown = vec!["the organization's policy, if there is one"];
        let reads_user = self
            .setting_sources
            .as_ref()
            .is_some_and(|sources| !sources.is_empty());
        if reads_user || self.reads_checkout() {
            unknown.push("rules and hooks of the settings files that are loaded");
        }
        if matches!(self.settings, Some(SettingsInput::File(_))) {
            unknown.push("rules and hooks of the settings file that was given");
        }
        if !self.plugins.is_empty() {
            unknown.push("hooks of plugins");
        }
        unknown.push("what is changed while the session runs");
        unknown
    }

    /// Options that are probably mistakes. The start of a session logs each as a warning, once.
    ///
    /// For example a permission handler that is never called, because the mode, a rule for a whole tool or another option decides
    /// first. [`explain`](Self::explain) has the details for a single call.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if !self.hosting.handlers.permissions_set {
            return warnings;
        }
        warnings.extend(
            self.never_asked()
                .into_iter()
                .map(|never| Warning::HandlerNotAsked {
                    calls: never.calls,
                    option: never.option,
                }),
        );
        if self.permission_prompt_tool_name.is_some() {
            warnings.push(Warning::HandlerNotAsked {
                calls: "*".to_owned(),
                option: "permission_prompt_tool_name",
            });
        }
        let rules = self.hosting.handlers.rules();
        let is_decided = |tool| {
            let mut strict = rules.ask.iter().chain(&rules.deny);
            strict.any(|rule| rule.names_all_of(tool))
        };
        if !is_decided("Grep") || !is_decided("Bash") {
            let whole = rules.deny.iter().filter(|rule| rule.as_str() == "Read");
            let asked = rules.ask.iter().filter(|rule| {
                let name = rule.as_str().split('(').next();
                name == Some("Read")
            });
            warnings.extend(whole.chain(asked).map(|rule| Warning::OtherWaysToRead {
                rule: rule.to_string(),
            }));
        }
        if !["Write", "NotebookEdit", "Bash"].into_iter().all(is_decided) {
            let strict = rules.ask.iter().chain(&rules.deny);
            let whole = strict.filter(|rule| rule.as_str() == "Edit");
            warnings.extend(whole.map(|rule| Warning::OtherWaysToWrite {
                rule: rule.to_string(),
            }));
        }
        warnings
    }

    /// Writes the [`warnings`](Self::warnings) to the log.
    pub(crate) fn warn(&self) {
        for warning in self.warnings() {
            tracing::warn!("{warning}");
        }
    }
}

/// The rules of one behavior in these settings.
fn rules_of(settings: &Fields, behavior: &str) -> Vec<String> {
    let permissions: Option<RawJson> = settings.get("permissions");
    let rules = permissions.and_then(|rules| Fields::of_object(&rules).get(behavior));
    rules.unwrap_or_default()
}

#[cfg(test)]
mod tests;
