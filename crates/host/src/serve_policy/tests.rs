//! Policy files, right and wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::time::Duration;

use outrigger::options::Auth;
use outrigger::protocol::shared::{PermissionMode, SettingSource};

use super::reader::{PolicyResult, Reader};
use super::tables::File;
use super::{ServePolicy, ServerSettings, TlsFiles};
use crate::address_rule::AddressRule;

struct TestPolicyDir {
    dir: tempfile::TempDir,
}

impl TestPolicyDir {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("projects")).unwrap();
        std::fs::write(dir.path().join("key"), "sk-very-secret\n").unwrap();
        Self { dir }
    }

    fn read(&self, text: &str) -> PolicyResult<ServePolicy> {
        let path = self.dir.path().join("policy.toml");
        let environment = |name: &str| (name == "THE_TOKEN").then(|| "token-very-secret".to_owned());
        let reader = Reader {
            path: &path,
            text,
            environment: &environment,
        };
        reader.read()
    }

    fn error(&self, text: &str) -> String {
        let error = self.read(text).unwrap_err();
        assert_eq!(error.path, self.dir.path().join("policy.toml"));
        format!("{}: {}", error.line.unwrap_or(0), error.message)
    }
}

#[test]
fn a_file_is_read_with_the_secrets_that_it_names_and_none_is_shown() {
    let place = TestPolicyDir::new();
    let found = place
        .read(
            r#"
            [sessions]
            roots = ["projects"]
            models = ["opus"]
            permission_modes = ["plan", "acceptEdits"]
            idle_seconds = 60
            max_processes = 3
            spares = 2
            changed_inputs = true
            memory_soft_mib = 2
            memory_hard_mib = 4
            approvals_expire_seconds = 90
            deferred = "Bash|Write"
            [workspaces]
            directory = "workspaces"
            snapshots = false
            setup = ["npm", "ci"]
            [options]
            cli = "bin/claude"
            model = "sonnet"
            permission_mode = "plan"
            allowed_tools = ["Read", "Bash(git log *)"]
            disallowed_tools = ["WebFetch"]
            additional_directories = ["/srv/shared"]
            setting_sources = ["project"]
            max_turns = 10
            max_budget_usd = 2.5
            [environment]
            pass = ["LANG"]
            set = { CI = "1", NPM_TOKEN = { env = "THE_TOKEN" } }
            [account]
            api_key = { file = "key" }
            [server]
            listen = "0.0.0.0:8443"
            origins = ["https://app.example.com"]
            [server.tls]
            certificate = "cert.pem"
            key = "key.pem"
            names = ["host.example.com"]
            [webhooks]
            networks = ["127.0.0.0/8"]
            "#,
        )
        .unwrap();
    let dir = place.dir.path();
    let policy = &found.policy;
    assert_eq!(policy.roots, [dir.join("projects")]);
    assert_eq!(
        (&policy.models[..], &policy.permission_modes[..]),
        (
            &["opus".to_owned()][..],
            &["plan".to_owned(), "acceptEdits".to_owned()][..]
        )
    );
    assert_eq!((policy.idle, policy.max_processes), (Duration::from_secs(60), 3));
    assert_eq!(policy.spares, 2);
    assert!(policy.changed_inputs);
    let memory = policy.memory.as_ref().unwrap();
    assert_eq!((memory.soft, memory.hard), (Some(2 << 20), Some(4 << 20)));
    assert_eq!(policy.approvals_expire, Some(Duration::from_secs(90)));
    assert_eq!(policy.deferred.as_deref(), Some("Bash|Write"));
    let workspaces = policy.workspaces.as_ref().unwrap();
    assert_eq!(workspaces.directory, dir.join("workspaces"));
    assert_eq!((workspaces.worktrees, workspaces.snapshots), (true, false));
    assert_eq!(workspaces.setup, ["npm", "ci"]);
    let options = &policy.options;
    assert_eq!(options.cli_path, Some(dir.join("bin/claude")));
    assert_eq!(options.model.as_deref(), Some("sonnet"));
    assert_eq!(options.permission_mode, Some(PermissionMode::Plan));
    assert_eq!(options.allowed_tools, ["Read", "Bash(git log *)"]);
    assert_eq!(options.disallowed_tools, ["WebFetch"]);
    assert_eq!(options.additional_directories, [PathBuf::from("/srv/shared")]);
    assert_eq!(options.setting_sources, Some(vec![SettingSource::Project]));
    assert_eq!((options.max_turns, options.max_budget_usd), (Some(10), Some(2.5)));
    assert!(matches!(&options.auth, Auth::ApiKey(key) if key.reveal() == "sk-very-secret"));
    let own = options.environment.own();
    assert_eq!(
        own.get(std::ffi::OsStr::new("NPM_TOKEN")).unwrap(),
        "token-very-secret"
    );
    assert_eq!(options.environment.passed(), ["LANG"]);
    let tls = TlsFiles {
        certificate: dir.join("cert.pem"),
        key: dir.join("key.pem"),
        names: vec!["host.example.com".to_owned()],
    };
    let server = ServerSettings {
        listen: "0.0.0.0:8443".parse().unwrap(),
        proxy_names: Vec::new(),
        origins: vec!["https://app.example.com".to_owned()],
        tls: Some(tls),
    };
    assert_eq!(found.server, server);
    assert!(found.webhooks.allows("127.0.0.1".parse().unwrap(), false));
    let shown = format!("{found:?}");
    assert!(!shown.contains("very-secret"), "{shown}");

    let least = place.read("sessions.roots = [\"projects\"]").unwrap();
    assert_eq!(least.server.listen, "127.0.0.1:7070".parse().unwrap());
    assert_eq!(least.webhooks, AddressRule::public());
    assert!(matches!(least.policy.options.auth, Auth::Inherit));
    assert!(
        least.policy.memory.is_none()
            && least.policy.workspaces.is_none()
            && least.policy.approvals_expire.is_none()
            && least.policy.deferred.is_none()
    );
    assert!(least.policy.models.is_empty() && least.policy.permission_modes.is_empty());
}

#[test]
fn the_examples_of_the_docs_are_read() {
    let page = include_str!("../../../../docs/host-policy.md");
    let docs = include_str!("../serve_policy.rs");
    let of_page = page.split("```toml").nth(1).unwrap().split("```").next().unwrap();
    let of_docs = docs
        .split("/// ```toml")
        .nth(1)
        .unwrap()
        .split("/// ```")
        .next()
        .unwrap();
    let of_docs = of_docs.replace("\n///", "\n");
    toml::from_str::<File>(of_page).unwrap();
    toml::from_str::<File>(&of_docs).unwrap();
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let place = TestPolicyDir::new();
    let roots = "sessions.roots = [\"projects\"]\n";
    for (text, line, part) in [
        ("", 1, "missing field `sessions`"),
        ("[sessions]\nroots = []", 2, "`roots` is empty"),
        (
            "[sessions]\nroots = [\n\"projects\",\n\"elsewhere\"]",
            4,
            "elsewhere is no directory",
        ),
        (
            "[sessions]\nroots = [\"projects\"]\nmodel = \"opus\"",
            3,
            "unknown field `model`",
        ),
        (
            "[sessions]\nroots = [\"projects\"]\npermission_modes = [\"bypas\"]",
            3,
            "bypas",
        ),
        (
            "[sessions]\nroots = [\"projects\"]\nmax_processes = 0",
            3,
            "at least 1",
        ),
        (
            "[sessions]\nroots = [\"projects\"]\nmax_processes = 2\nspares = 3",
            4,
            "more than `max_processes`",
        ),
        (
            "[sessions]\nroots = [\"projects\"]\nmemory_soft_mib = 2\nmemory_hard_mib = 1",
            4,
            "is below",
        ),
        (
            "[sessions]\nroots = [\"projects\"]\ndeferred = \"Bash(\"",
            3,
            "Bash(",
        ),
        ("[sessions\nroots = []", 1, "table"),
    ] {
        let error = place.error(text);
        assert!(
            error.starts_with(&format!("{line}: ")) && error.contains(part),
            "{text}: {error}"
        );
    }
    for (rest, line, part) in [
        ("tools = 1", 2, "unknown field `tools`"),
        ("[options]\nallowed_tools = [\"Read\",\n\"Bash(\"]", 4, "Bash("),
        (
            "[environment]\nset = { A = { file = \"missing\" } }",
            3,
            "missing",
        ),
        ("[environment]\nset = { A = { secret = \"x\" } }", 3, "a text"),
        (
            "[account]\napi_key = \"sk-very-secret\"",
            3,
            "is not written here, but named",
        ),
        (
            "[account]\napi_key = { file = \"key\", env = \"KEY\" }",
            3,
            "expected `{ file",
        ),
        (
            "[account]\napi_key = { env = \"UNSET\" }",
            3,
            "the variable UNSET is not set",
        ),
        (
            "[account]\napi_key = { file = \"key\" }\nauth_token = { file = \"key\" }",
            2,
            "has one of",
        ),
        ("[account]", 2, "has one of"),
        ("[server]\nlisten = \"0.0.0.0:7070\"", 3, "plain text"),
        ("[server]\nlisten = \"localhost\"", 3, "address"),
        ("[server]\norigins = [\"*\"]", 3, "is no origin"),
        ("[server.tls]\ncertificate = \"c\"", 2, "key"),
        ("[workspaces]\nworktrees = true", 2, "directory"),
        ("[webhooks]\nnetworks = [\"localhost\"]", 3, "localhost"),
    ] {
        let error = place.error(&format!("{roots}{rest}"));
        assert!(
            error.starts_with(&format!("{line}: ")) && error.contains(part),
            "{rest}: {error}"
        );
        assert!(!error.contains("very-secret"), "{error}");
    }
    place
        .read(&format!(
            "{roots}[server]\nlisten = \"0.0.0.0:7070\"\nproxy_names = [\"a.example\"]"
        ))
        .unwrap();
    let missing = ServePolicy::read(place.dir.path().join("none.toml")).unwrap_err();
    assert_eq!(missing.line, None);
}
