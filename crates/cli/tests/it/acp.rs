//! `outrigger acp`, which is `outrigger-acp` by another name.

use crate::tool::{outrigger, ran};

#[test]
fn its_exit_statuses_are_those_of_the_agent_s_own_program() {
    let (said, code) = ran(&mut outrigger(&["acp", "--version"]));
    assert!(said.starts_with("outrigger-acp "), "{said}");
    assert_eq!(code, 0);
    let wrong = outrigger(&["acp", "--colour"]).output().expect("it starts");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stdout.is_empty(), "stdout is the protocol's");
    let why = String::from_utf8_lossy(&wrong.stderr);
    assert!(why.contains("--colour") && why.contains("--help"), "{why}");
    let log = outrigger(&["acp", "--log", "/no/such/place/log"]).output();
    assert_eq!(log.expect("it starts").status.code(), Some(1));
    // Nobody is there from the beginning.
    let (said, code) = ran(outrigger(&["acp", "--no-spare"]).stdin(std::process::Stdio::null()));
    assert_eq!((said.as_str(), code), ("", 0));
}
