//! The names of the tools that the CLI brings along.

/// The tools that the CLI brings along, by the names that models, permission rules and hooks use (CLI 2.1.332).
///
/// Which of them a session has depends on its settings; the `init` message lists them.
pub const BUILTIN_TOOL_NAMES: [&str; 54] = [
    "Agent",
    "Artifact",
    "AskUserQuestion",
    "Bash",
    "ClaudeDesign",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EndConversation",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "ListAgents",
    "ListMcpResourcesTool",
    "LSP",
    "Monitor",
    "NotebookEdit",
    "OfferChromeSetup",
    "PowerShell",
    "Projects",
    "propose_skills",
    "PushNotification",
    "Read",
    "ReadMcpResourceDirTool",
    "ReadMcpResourceTool",
    "ReadNotifications",
    "RemoteTrigger",
    "ReportFindings",
    "ScheduleWakeup",
    "SendFeedback",
    "SendMessage",
    "SendUserFile",
    "SendUserMessage",
    "SetGoal",
    "ShareOnboardingGuide",
    "ShowOnboardingRolePicker",
    "Skill",
    "SubagentHandback",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WaitForMcpServers",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
];

/// Earlier names of tools, each with the name it has now.
pub const LEGACY_TOOL_NAME_ALIASES: [(&str, &str); 9] = [
    ("Task", "Agent"),
    ("KillShell", "TaskStop"),
    ("KillBash", "TaskStop"),
    ("ListPeers", "ListAgents"),
    ("Brief", "SendUserMessage"),
    ("ListMcpResources", "ListMcpResourcesTool"),
    ("ReadMcpResource", "ReadMcpResourceTool"),
    ("ReadMcpResourceDir", "ReadMcpResourceDirTool"),
    ("ProposeGoal", "SetGoal"),
];

/// Names that the published schemas use for a tool, where they differ from its name and are no earlier name of it.
const SCHEMA_NAMES: [(&str, &str); 4] = [
    ("FileEdit", "Edit"),
    ("FileRead", "Read"),
    ("FileWrite", "Write"),
    ("ProposeSkills", "propose_skills"),
];

/// The name that a tool has now, for an earlier name or a schema's name of it; any other name as it is.
///
/// A session can also rename tools by itself (`toolAliases` of `initialize`); this does not know of those.
///
/// ```
/// use outrigger_protocol::tools::canonical_name;
///
/// assert_eq!(canonical_name("Task"), "Agent");
/// assert_eq!(canonical_name("mcp__calc__add"), "mcp__calc__add");
/// ```
pub fn canonical_name(name: &str) -> &str {
    LEGACY_TOOL_NAME_ALIASES
        .iter()
        .chain(&SCHEMA_NAMES)
        .find(|(earlier, _)| *earlier == name)
        .map_or(name, |(_, now)| now)
}
