//! The fields of `initialize` that options fill in.

use std::collections::BTreeMap;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{OutputFormat, SystemPrompt};
use serde::Serialize;

use super::plan::{Delivered, unwritable};
use super::{Options, OptionsError, Skills};

/// The first request, without its subtype: the value of each field by its name on the wire. The session adds its hooks and
/// in-process servers before it sends it.
pub type InitializeFields = BTreeMap<String, RawJson>;

pub(crate) fn fields(options: &Options, delivered: Delivered) -> Result<InitializeFields, OptionsError> {
    let mut out = Fields::default();
    out.system_prompt(options)?;
    out.text(
        "append_subagent_system_prompt",
        "appendSubagentSystemPrompt",
        &options.append_subagent_system_prompt,
    )?;
    out.text(
        "plan_mode_instructions",
        "planModeInstructions",
        &options.plan_mode_instructions,
    )?;
    out.text("title", "title", &options.title)?;

    out.unless(
        "tool_aliases",
        "toolAliases",
        &options.tool_aliases,
        options.tool_aliases.is_empty(),
    )?;
    let code_running = &options.code_running_mcp_tools;
    out.unless(
        "code_running_mcp_tools",
        "codeRunningMcpTools",
        code_running,
        code_running.is_empty(),
    )?;
    let exempt = &options.web_search_isolation_exempt_mcp_servers;
    out.unless(
        "web_search_isolation_exempt_mcp_servers",
        "webSearchIsolationExemptMcpServers",
        exempt,
        exempt.is_empty(),
    )?;
    out.unless("agents", "agents", &options.agents, options.agents.is_empty())?;
    if let Some(Skills::Named(names)) = &options.skills {
        out.put("skills", "skills", names)?;
    }
    if let Some(OutputFormat::JsonSchema { schema }) = &options.output_format {
        out.put("output_format", "jsonSchema", schema)?;
    }
    if let Some(trust) = &options.workspace_trust {
        out.put("workspace_trust", "workspaceTrust", trust)?;
    }

    let switches = [
        ("promptSuggestions", options.prompt_suggestions),
        ("agentProgressSummaries", options.agent_progress_summaries),
        ("forwardSubagentText", options.forward_subagent_text),
        (
            "forwardNestedSubagentToolCalls",
            options.forward_nested_subagent_tool_calls,
        ),
        ("perTaskStopAffordance", options.per_task_stop_affordance),
        ("rapidFollowupPreempt", options.rapid_followup_preempt),
        ("offersBypassSwitchBack", options.offers_bypass_switch_back),
        ("keepsBypassHeld", options.keeps_bypass_held),
    ];
    for (field, on) in switches {
        if on {
            out.put(field, field, &true)?;
        }
    }

    // What is too long or too secret for the command line.
    out.unless(
        "mcp_servers",
        "mcpServers",
        &options.mcp_servers,
        !delivered.mcp_servers,
    )?;
    out.unless("plugins", "plugins", &options.plugins, !delivered.plugins)?;
    out.unless(
        "disallowed_tools",
        "disallowedTools",
        &options.disallowed_tools,
        !delivered.disallowed_tools,
    )?;
    if let Some(settings) = delivered.settings {
        out.put("settings", "settings", &settings)?;
    }
    if let Some(settings) = delivered.managed_settings {
        out.put("managed_settings", "managedSettings", &settings)?;
    }
    out.hatch(options)
}

#[derive(Default)]
struct Fields(InitializeFields);

impl Fields {
    fn put<T: Serialize + ?Sized>(
        &mut self,
        option: &'static str,
        field: &str,
        value: &T,
    ) -> Result<(), OptionsError> {
        let value = RawJson::encode(value).map_err(|_| unwritable(option))?;
        self.0.insert(field.to_owned(), value);
        Ok(())
    }

    fn unless<T: Serialize + ?Sized>(
        &mut self,
        option: &'static str,
        field: &str,
        value: &T,
        absent: bool,
    ) -> Result<(), OptionsError> {
        if absent {
            Ok(())
        } else {
            self.put(option, field, value)
        }
    }

    fn text(&mut self, option: &'static str, field: &str, text: &Option<String>) -> Result<(), OptionsError> {
        match text {
            Some(text) if text.is_empty() => Err(OptionsError::invalid(
                option,
                "",
                "is empty: leave it unset instead",
            )),
            Some(text) => self.put(option, field, text),
            None => Ok(()),
        }
    }

    /// The preset is what the CLI uses when no field says otherwise.
    fn system_prompt(&mut self, options: &Options) -> Result<(), OptionsError> {
        const OPTION: &str = "system_prompt";
        let snapshot = match &options.system_prompt {
            None => None,
            Some(SystemPrompt::Text(text)) => {
                self.put(OPTION, "systemPrompt", &[text])?;
                None
            }
            Some(SystemPrompt::List(texts)) => {
                self.put(OPTION, "systemPrompt", texts)?;
                None
            }
            Some(SystemPrompt::Custom { prompt, snapshot }) => {
                self.put(OPTION, "systemPrompt", prompt)?;
                *snapshot
            }
            Some(SystemPrompt::Preset {
                append,
                exclude_dynamic_sections,
                snapshot,
            }) => {
                if let Some(append) = append {
                    self.put(OPTION, "appendSystemPrompt", append)?;
                }
                if let Some(exclude) = exclude_dynamic_sections {
                    self.put(OPTION, "excludeDynamicSections", exclude)?;
                }
                *snapshot
            }
            Some(_) => {
                return Err(OptionsError::invalid(
                    OPTION,
                    "",
                    "is of a kind that this build cannot send",
                ));
            }
        };
        if let Some(snapshot) = snapshot {
            self.put(OPTION, "systemPromptSnapshot", &snapshot)?;
        }
        Ok(())
    }

    fn hatch(mut self, options: &Options) -> Result<InitializeFields, OptionsError> {
        for (name, value) in &options.initialize_fields {
            if self.0.contains_key(name) {
                let problem = "is a field that an option has set already";
                return Err(OptionsError::InitializeField {
                    name: name.clone(),
                    problem,
                });
            }
            self.0.insert(name.clone(), value.clone());
        }
        Ok(self.0)
    }
}
