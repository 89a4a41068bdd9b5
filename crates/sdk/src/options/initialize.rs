//! The fields of `initialize` that options fill in.

use std::collections::BTreeMap;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::Initialize;
use outrigger_protocol::shared::SystemPrompt;

use super::routes::{Delivered, unwritable};
use super::{Options, OptionsError, Skills, invalid};

/// The request as far as the options make it. The session adds its in-process servers before it sends it.
pub(super) fn request(options: &Options, delivered: Delivered) -> Result<Initialize, OptionsError> {
    let preset = SystemPrompt::PRESET;
    let mut request = Initialize::new().prompt(Some(options.system_prompt.as_ref().unwrap_or(&preset)));
    for (option, text) in [
        (
            "append_subagent_system_prompt",
            &options.append_subagent_system_prompt,
        ),
        ("plan_mode_instructions", &options.plan_mode_instructions),
        ("title", &options.title),
    ] {
        if text.as_deref().is_some_and(|text| text.trim().is_empty()) {
            return Err(invalid(option, "", "is empty: leave it unset instead"));
        }
    }
    request.append_subagent_system_prompt = options.append_subagent_system_prompt.clone();
    request.plan_mode_instructions = options.plan_mode_instructions.clone();
    request.title = options.title.clone();
    request.workspace_trust = options.workspace_trust.clone();

    let hooks = crate::hooks::matchers(&options.hosting.handlers.hooks);
    request.hooks = (!hooks.is_empty()).then_some(hooks);

    request.tool_aliases = filled(&options.tool_aliases, BTreeMap::is_empty);
    request.code_running_mcp_tools = filled(&options.code_running_mcp_tools, BTreeMap::is_empty);
    request.web_search_isolation_exempt_mcp_servers =
        filled(&options.web_search_isolation_exempt_mcp_servers, Vec::is_empty);
    request.agents = filled(&options.agents, BTreeMap::is_empty);
    if let Some(Skills::Named(names)) = &options.skills {
        request.skills = Some(names.clone());
    }
    request.json_schema = options.output_schema();

    let on = |switch: bool| switch.then_some(true);
    request.prompt_suggestions = on(options.prompt_suggestions);
    request.agent_progress_summaries = on(options.agent_progress_summaries);
    request.forward_subagent_text = on(options.forward_subagent_text);
    request.forward_nested_subagent_tool_calls = on(options.forward_nested_subagent_tool_calls);
    request.per_task_stop_affordance = on(options.per_task_stop_affordance);
    request.rapid_followup_preempt = on(options.rapid_followup_preempt);
    request.offers_bypass_switch_back = on(options.offers_bypass_switch_back);
    request.keeps_bypass_held = on(options.keeps_bypass_held);

    // What is too long or too secret for the command line.
    request.mcp_servers = delivered.mcp_servers.then(|| options.mcp_servers.clone());
    request.plugins = delivered.plugins.then(|| options.plugins.clone());
    request.disallowed_tools = delivered.disallowed_tools.then(|| options.denied());
    request.settings = delivered.settings;
    request.managed_settings = delivered.managed_settings;

    add_hatch(&mut request, &options.initialize_fields)?;
    Ok(request)
}

fn filled<T: Clone>(value: &T, is_empty: fn(&T) -> bool) -> Option<T> {
    (!is_empty(value)).then(|| value.clone())
}

/// Adds the fields that have no option. None of them may be there already: the CLI would see it twice.
fn add_hatch(request: &mut Initialize, fields: &BTreeMap<String, RawJson>) -> Result<(), OptionsError> {
    if fields.is_empty() {
        return Ok(());
    }
    let set: BTreeMap<String, RawJson> = RawJson::encode(request)
        .and_then(|json| json.read())
        .map_err(|_| unwritable("initialize_fields"))?;
    if let Some(name) = fields.keys().find(|name| set.contains_key(*name)) {
        let problem = "is a field that an option has set already";
        return Err(OptionsError::InitializeField {
            name: name.clone(),
            problem,
        });
    }
    request
        .extra
        .extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(())
}
