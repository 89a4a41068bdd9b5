//! `outrigger acp`, which is `outrigger-acp` by another name.

use crate::tool::{outrigger, ran};

#[test]
fn its_exit_statuses_are_those_of_the_agent_s_own_program() {
    let (said, code) = ran(&mut outrigger(&["acp", "--version"]));
    assert!(said.starts_with("outrigger-acp "), "{said}");
    assert_eq!(code, 0);
    let (said, _) = ran(&mut outrigger(&["acp", "--help"]));
    assert!(said.contains("Usage: outrigger acp ["), "{said}");
    let wrong = outrigger(&["acp", "--colour"]).output().expect("it starts");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stdout.is_empty(), "stdout is the protocol's");
    let why = String::from_utf8_lossy(&wrong.stderr);
    assert!(why.contains("--colour") && why.contains("--help"), "{why}");
    let log = outrigger(&["acp", "--log", "/no/such/place/log"]).output();
    assert_eq!(log.expect("it starts").status.code(), Some(1));
    // Without a token nobody is asked, and what is for processes here is not for a host.
    let config = tempfile::tempdir().unwrap();
    let on_host = |more: &[&str], token: &str| {
        let arguments = [&["acp", "--host", "http://127.0.0.1:1"], more].concat();
        let mut command = outrigger(&arguments);
        command
            .env("XDG_CONFIG_HOME", config.path())
            .env("OUTRIGGER_TOKEN", token);
        let output = command.output().expect("it starts");
        assert!(output.stdout.is_empty(), "stdout is the protocol's");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, why) = on_host(&[], "");
    assert!(
        code == Some(2) && why.contains("no token for http://127.0.0.1:1"),
        "{why}"
    );
    let (code, why) = on_host(&["--review-edits"], "outrigger_x");
    assert!(code == Some(2) && why.contains("--review-edits"), "{why}");
    assert_eq!(
        on_host(&[], "outrigger_x").0,
        Some(0),
        "the host is asked with the first session"
    );
    // Nobody is there from the beginning.
    let (said, code) = ran(outrigger(&["acp", "--no-spare"]).stdin(std::process::Stdio::null()));
    assert_eq!((said.as_str(), code), ("", 0));
}
