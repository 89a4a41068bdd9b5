//! What a start decides before there is a process.

use super::*;
use crate::hooks::{HookOutput, pre_tool_use};
use crate::options::Runtime;

#[tokio::test]
#[cfg(unix)]
async fn hooks_are_awaited_unless_the_cli_says_that_it_is_too_old() {
    for (says, waits) in [
        ("exit 1", true),
        ("kill -9 $$", true),
        ("echo '2.1.261 (Claude Code)'", true),
        ("echo '2.1.260 (Claude Code)'", false),
    ] {
        let home = tempfile::tempdir().unwrap();
        let script = home.path().join("cli.js");
        std::fs::write(&script, "console.log(1)").unwrap();
        outrigger_needs::script(home.path().join("node"), format!("#!/bin/sh\n{says}\n")).unwrap();
        let variables = ["HOME", "PATH"].map(|name| (name.into(), home.path().into()));
        let options = Options::new(Auth::ApiKey("key".into()))
            .cli_path(&script)
            .executable(Runtime::Node)
            .resume("00000000-0000-4000-8000-000000000000")
            .hook(pre_tool_use(|_, _| async { HookOutput::none() }));
        let surroundings = Surroundings::new(variables, home.path());
        let mut launch = options.launch(&surroundings, Host::default()).unwrap();
        await_initialize(&mut launch, &options).await;
        let is_passed = launch
            .args
            .iter()
            .any(|argument| argument == "--await-initialize");
        assert_eq!((launch.await_initialize, is_passed), (waits, waits), "{says}");
    }
}
