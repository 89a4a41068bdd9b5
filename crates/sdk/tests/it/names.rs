//! Where the types are that the options take: beside the options, and never in the protocol alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[path = "../../src/options/tests/setters.rs"]
mod setters;

/// Names types by their public paths: a test that compiles has found them there.
macro_rules! reachable {
    ($($($at:ident)::+ { $($name:ident)+ })+) => {
        #[allow(unused_imports, reason = "that they can be named is what is tested")]
        mod reachable {
            $( pub(super) use $($at)::+::{$($name),+}; )+
        }

        const REACHABLE: &[&str] = &[$($(stringify!($name)),+),+];
    };
}

reachable! {
    outrigger::options {
        AgentDefinition AgentEffort AgentMcpServer AgentMemory Auth Delivery Effort Encoded Environment Isolation JsonObject
        McpOrgMaxPermission McpPermissionPolicy McpRemoteServerConfig McpSdkServerConfig McpServerConfig McpServerToolPolicy
        McpStdioServerConfig OutputFormat PermissionMode PermissionPrompts PluginConfig PluginKind QuestionPreviewFormat RawJson RunAs
        Runtime SandboxSettings Secret SettingSource Settings SettingsInput Skills SystemPrompt ThinkingConfig ThinkingDisplay Tools
        WorkspaceTrust Worktree
    }
    outrigger::permissions {
        PermissionDecision PermissionHandler PermissionRequest PlanReply PlanRequest QuestionReply QuestionRequest
    }
    outrigger::hooks { Hook }
    outrigger::mcp { SdkMcpServer }
    outrigger::transport { Transport }
    outrigger::sessions::store { SessionStore }
    outrigger {
        Callbacks DialogRequest ElicitationRequest ElicitationResult HostAuthTokenAnswer HostAuthTokenRefresh LeaseOptions
        OauthTokenAnswer OauthTokenRefresh CallbackReply SessionUsage SlowReader StoreFlush TokenRequest UserDialogResult
    }
}

/// Of the standard library, and of serde.
const COMMON: &[&str] = &[
    "Arc",
    "BTreeMap",
    "Box",
    "Duration",
    "Fn",
    "Future",
    "Into",
    "IntoIterator",
    "Item",
    "Option",
    "OsString",
    "Output",
    "PathBuf",
    "Self",
    "Send",
    "Serialize",
    "Sized",
    "String",
    "Sync",
    "Vec",
];

/// The types in a piece of a declaration. A single letter is a parameter.
fn types(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.len() > 1 && word.starts_with(|c: char| c.is_ascii_uppercase()))
        .filter(|word| !COMMON.contains(word))
}

/// The types of the protocol that go both ways, each with the text of its declaration and methods.
fn protocol() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/src/shared");
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for head in ["\npub struct ", "\npub enum ", "\nimpl "] {
            for item in text.split(head).skip(1) {
                let (item, _) = item.split_once("\n}\n").unwrap_or((item, ""));
                let Some((name, body)) = item.split_once(" {\n") else {
                    continue;
                };
                if head == "\nimpl " && (name.contains(' ') || name.contains('<')) {
                    continue;
                }
                let public = body.lines().map(str::trim).filter(|line| match head {
                    "\npub enum " => !line.starts_with(['/', '#']),
                    _ => line.starts_with("pub ") && !line.starts_with("pub const "),
                });
                // What stands behind the name of a field, a variant or a function.
                let taken = public
                    .filter_map(|line| line.split("->").next()?.split_once(['(', ':']))
                    .map(|(_, taken)| taken);
                let taken = taken.collect::<Vec<_>>().join("\n");
                found
                    .entry(name.to_owned())
                    .or_default()
                    .push_str(&format!("\n{taken}"));
            }
        }
    }
    found
}

#[test]
fn what_options_take_is_where_options_are() {
    let protocol = protocol();
    assert!(protocol.contains_key("AgentDefinition") && protocol.contains_key("McpServerConfig"));
    let setters = setters::setters();
    assert!(setters.len() > 100, "the setters were not found: {setters:?}");
    let mut open: Vec<(String, String)> = setters
        .iter()
        .flat_map(|(name, taken)| types(taken).map(move |of| (of.to_owned(), format!("Options::{name}"))))
        .collect();
    let mut seen = BTreeSet::new();
    while let Some((of, by)) = open.pop() {
        if !seen.insert(of.clone()) {
            continue;
        }
        assert!(
            REACHABLE.contains(&of.as_str()),
            "{by} takes `{of}`: re-export it from `outrigger::options`, or name where it is in this test"
        );
        let inner = protocol.get(&of).map(String::as_str).unwrap_or_default();
        open.extend(types(inner).map(|inner| (inner.to_owned(), of.clone())));
    }
    assert!(
        seen.contains("ThinkingDisplay") && seen.contains("McpServerToolPolicy"),
        "{seen:?}"
    );
}
