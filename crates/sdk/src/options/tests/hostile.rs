//! Whatever the strings are, the command line means what the options say and nothing else.

use std::collections::BTreeMap;

use outrigger_protocol::shared::{McpServerConfig, McpStdioServerConfig, PluginConfig};
use proptest::prelude::*;

use super::super::*;
use super::{TestHome, bare};

/// A reference parser: every argument is a flag, alone or with a value after its first `=`.
fn parse(args: &[OsString]) -> Result<BTreeMap<String, Vec<Option<String>>>, String> {
    let mut flags: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    for argument in args {
        let text = argument.to_str().ok_or("not text")?;
        let rest = text
            .strip_prefix("--")
            .ok_or_else(|| format!("a value by itself: {text:?}"))?;
        let (flag, value) = match rest.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (rest, None),
        };
        flags.entry(flag.to_owned()).or_default().push(value);
    }
    Ok(flags)
}

/// Strings that try to be something else, and any other.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(vec![
            "--version", "-p", "--dangerously-skip-permissions", "a --print", "--", "-", "=", "a=b", "--x=y", "\n--print",
            "a\0b", "", " ", "{\"a\":1}", "a,b", "Bash(*)", "Bash) Read", "$(id)", "`id`", "%PATH%", "\"; id; \"", "\\", "*", "ä🦀",
        ]).prop_flat_map(|list| prop::sample::select(list).prop_map(str::to_owned)),
        2 => ".*",
        1 => "[-=, ()\\\\*a-zA-Z\"']{0,12}",
        1 => (0usize..20_000).prop_map(|length| "-".repeat(length)),
    ]
}

type Apply = fn(Options, String) -> Options;

/// Every option that takes a string, with the flag that it may end up behind.
const TEXTS: &[(&str, Apply)] = &[
    ("add-dir", |o, s| o.additional_directories([s])),
    ("project-config-root", |o, s| o.project_config_root(s)),
    ("model", |o, s| o.model(s)),
    ("fallback-model", |o, s| o.fallback_model(s)),
    ("betas", |o, s| o.betas([s])),
    ("tools", |o, s| o.tools(Tools::only([s]))),
    ("allowedTools", |o, s| o.allowed_tools([s])),
    ("allowedTools", |o, s| o.skills(Skills::named([s]))),
    ("disallowedTools", |o, s| o.disallowed_tools([s])),
    ("permission-prompt-tool", |o, s| o.permission_prompt_tool_name(s)),
    ("agent", |o, s| o.agent(s)),
    ("plugin-dir", |o, s| o.plugins([PluginConfig::local(s)])),
    ("mcp-config", |o, s| {
        o.mcp_servers(
            s.clone(),
            McpServerConfig::Stdio(McpStdioServerConfig::new(s.clone(), [s])),
        )
    }),
    ("mcp-config", |o, s| o.mcp_config_files([s])),
    ("settings", |o, s| o.settings(PathBuf::from(s))),
    ("system-prompt-file", |o, s| o.system_prompt_file(s)),
    ("resume", |o, s| o.resume(s)),
    ("session-id", |o, s| o.session_id(s)),
    ("resume-session-at", |o, s| o.resume("x").resume_session_at(s)),
    ("resume-drops-turn", |o, s| {
        o.resume("x")
            .resume_session_at("01234567-89ab-4cde-8f01-23456789abcd")
            .resume_drops_turn(s)
    }),
    ("debug-file", |o, s| o.debug_file(s)),
    ("workload", |o, s| o.workload(s)),
    ("worktree", |o, s| o.worktree(s)),
    ("channels", |o, s| o.channels([s])),
    ("chrome", |o, s| o.extra_arg("chrome", Some(&s))),
    // These go over stdin or into the environment and must leave no trace on the command line.
    ("", |o, s| o.system_prompt(s)),
    ("", |o, s| o.title(s)),
    ("", |o, s| o.plan_mode_instructions(s)),
    ("", |o, s| o.append_subagent_system_prompt(s)),
    ("", |o, s| o.client_app(s)),
    ("", |o, s| o.env("SOME_VARIABLE", s)),
    ("", |o, s| o.tool_aliases(s.clone(), s)),
    ("", |o, s| o.web_search_isolation_exempt_mcp_servers([s])),
];

/// Flags that may come with a value that was too long or looked secret.
const COMPANIONS: &[&str] = &[
    "await-initialize",
    "initialize-fields",
    "settings",
    "resume",
    "resume-session-at",
];

fn plan(options: &Options) -> Result<Vec<OsString>, OptionsError> {
    let stage = std::path::Path::new("/base");
    options.check_in(&crate::env::Surroundings::new([], stage), Host::default())?;
    options.plan(Host::default(), stage).map(|plan| plan.args)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_never_becomes_a_flag(index in 0..TEXTS.len(), value in hostile()) {
        let (flag, apply) = TEXTS[index];
        let Ok(args) = plan(&apply(bare(), value.clone())) else { return Ok(()) };
        let mut found = parse(&args).map_err(TestCaseError::fail)?;
        for (fixed, expected) in [("output-format", Some("stream-json")), ("verbose", None), ("input-format", Some("stream-json"))] {
            prop_assert_eq!(found.remove(fixed), Some(vec![expected.map(str::to_owned)]));
        }
        for (name, values) in &found {
            prop_assert!(name == flag || COMPANIONS.contains(&name.as_str()), "{} appeared for {:?}", name, value);
            prop_assert_eq!(values.len(), 1);
        }
        // What is there is the value itself, or the value as part of a path, of a rule or of JSON.
        if let Some(text) = found.get(flag).and_then(|values| values[0].as_deref()) {
            let in_json = serde_json::to_string(&value).unwrap();
            let whole = text == value
                || text == std::path::Path::new("/base").join(&value).to_str().unwrap()
                || text == format!("Skill({value})")
                || (text.starts_with('{') && text.contains(&in_json));
            prop_assert!(whole, "{:?} became {:?}", value, text);
        }
        for argument in &args {
            prop_assert!(!argument.as_encoded_bytes().contains(&0));
            prop_assert!(argument.len() < 10_000);
        }
    }

    #[test]
    fn flags_of_the_hatch_are_names(name in hostile()) {
        let args = plan(&bare().extra_arg(name.clone(), None));
        if let Ok(args) = args {
            prop_assert_eq!(args.last().unwrap().to_str().unwrap(), format!("--{name}"));
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        }
    }

    #[test]
    fn lists_keep_their_length(rules in prop::collection::vec(hostile(), 1..5)) {
        let Ok(args) = plan(&bare().allowed_tools(rules.clone())) else { return Ok(()) };
        let found = parse(&args).map_err(TestCaseError::fail)?;
        let Some(list) = found.get("allowedTools").and_then(|values| values[0].clone()) else { return Ok(()) };
        prop_assert_eq!(split(&list), rules);
    }
}

/// Splits a list of rules as the CLI does: at commas and blanks outside parentheses.
fn split(list: &str) -> Vec<String> {
    let (mut rules, mut rule, mut depth) = (Vec::new(), String::new(), 0usize);
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' if depth == 0 => {
                rules.push(std::mem::take(&mut rule));
                continue;
            }
            _ => {}
        }
        rule.push(c);
    }
    rules.push(rule);
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[test]
fn bytes_that_are_no_text_survive() {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        let directory = PathBuf::from(OsString::from_vec(b"/d\xff".to_vec()));
        let stage = TestHome::new();
        let launch = stage.launch(&bare().additional_directories([directory])).unwrap();
        assert_eq!(launch.args[3], OsString::from_vec(b"--add-dir=/d\xff".to_vec()));
    }
}
