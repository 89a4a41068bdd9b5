//! Each cause from the words, exits and errors that were recorded for it.

use outrigger_protocol::Frame;

use super::*;
use crate::discover::{FindError, Unusable};
use crate::end::Evidence;
use crate::error::{Error, Kind};
use crate::options::OptionsError;
use crate::outcome::{Around, Outcome, Verdict};
use crate::peer::Exit;
use crate::usage::TurnUsage;

fn outcome(fields: &str) -> Outcome {
    let line = format!(r#"{{"type":"result","session_id":"a",{fields}}}"#);
    let frame = Frame::from_line(line.into_bytes()).remove(0);
    Outcome::of_result(&frame, TurnUsage::default(), Vec::new(), &Around::default())
}

fn exited(code: i32, stderr: &str) -> Cause {
    Cause::of_end(&Evidence {
        exit: Some(Exit::with_code(code)),
        stderr,
        ..Evidence::default()
    })
}

fn signalled(signal: i32) -> Evidence<'static> {
    Evidence {
        exit: Some(Exit::with_signal(signal)),
        ..Evidence::default()
    }
}

#[test]
fn the_words_of_the_cli() {
    for (said, cause) in [
        ("error: unknown option '--no-such-flag'", Cause::UnknownOption),
        (
            "error: option '--permission-mode <mode>' argument 'bogus' is invalid. Allowed choices are acceptEdits, auto.",
            Cause::InvalidArgument,
        ),
        (
            "error: option '--model <model>' argument missing",
            Cause::InvalidArgument,
        ),
        (
            "error: option '--max-budget-usd <amount>' argument '-1' is invalid. --max-budget-usd must be a number greater than 0",
            Cause::InvalidArgument,
        ),
        (
            "Error: --json-schema is not valid JSON: JSON Parse error: Expected '}'",
            Cause::InvalidArgument,
        ),
        (
            "Error: Invalid session ID. Must be a valid UUID.",
            Cause::InvalidArgument,
        ),
        (
            "Error creating worktree: Invalid worktree name \"../up\": must not contain \".\" or \"..\" path segments",
            Cause::InvalidArgument,
        ),
        (
            "Error: Can only use --worktree in a git repository, but /x is not a git repository.",
            Cause::InvalidArgument,
        ),
        (
            "Error processing --setting-sources: Invalid setting source: nonsense. Valid options are: user, project, local",
            Cause::InvalidArgument,
        ),
        (
            "Error: --resume-session-at requires --resume",
            Cause::InvalidArgument,
        ),
        (
            "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons",
            Cause::RootBypass,
        ),
        (
            "No conversation found with session ID: 00000000-0000-4000-8000-000000000000",
            Cause::UnknownSession,
        ),
        (
            "No message found with message.uuid of: 7eda5555-3b6b-42d8-b7a0-63efcca372a1",
            Cause::UnknownSession,
        ),
        ("Error: Session ID 0 is already in use.", Cause::SessionInUse),
        (
            "Error: Claude Code cannot be launched inside another Claude Code session.\nNested sessions share runtime resources.",
            Cause::NestedSession,
        ),
        (
            "Error: Invalid MCP configuration:\nMCP config is not a valid JSON",
            Cause::McpConfig,
        ),
        ("Error: Settings file not found: /no/such.json", Cause::Settings),
        (
            "Error parsing streaming input line (type=unknown, 8 chars): SyntaxError",
            Cause::InputRefused,
        ),
        ("Error: Missing request on control_request", Cause::InputRefused),
        (
            "Error: Expected message role 'user', got 'assistant'",
            Cause::InputRefused,
        ),
        ("it broke", Cause::Unexplained),
        ("", Cause::Unexplained),
        (
            "Error: listen EADDRINUSE: port 1 is already in use",
            Cause::Unexplained,
        ),
        // A word in the middle of other talk is none.
        ("debug: the file says error: unknown option", Cause::Unexplained),
        // What was said last counts.
        (
            "error: unknown option '--x'\nError: Settings file not found: y\nbye",
            Cause::Settings,
        ),
    ] {
        assert_eq!(exited(1, said), cause, "{said}");
    }
    // What was to start the CLI says this of it, if the CLI itself said nothing before.
    for (code, cause) in [(126, Cause::NotExecutable), (127, Cause::BinaryMissing)] {
        assert_eq!(exited(code, "sh: 3: claude: not found"), cause);
        let spoken = Evidence {
            exit: Some(Exit::with_code(code)),
            has_spoken: true,
            ..Evidence::default()
        };
        assert_eq!(Cause::of_end(&spoken), Cause::Unexplained);
    }
    // Of a CLI that ended well, words explain nothing.
    assert_eq!(exited(0, "error: unknown option '--x'"), Cause::Unexplained);
}

#[test]
fn running_out_of_memory_and_crashing() {
    let heap = "<--- Last few GCs --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n 1: 0xb\n";
    assert_eq!(exited(134, heap), Cause::OutOfHeap);
    let aborted = Evidence {
        stderr: heap,
        ..signalled(6)
    };
    assert_eq!(Cause::of_end(&aborted), Cause::OutOfHeap);
    for (signal, cause) in [
        (11, Cause::Crashed { signal: Some(11) }),
        (6, Cause::Crashed { signal: Some(6) }),
        (9, Cause::Killed),
        (15, Cause::Terminated { signal: 15 }),
        (1, Cause::Terminated { signal: 1 }),
    ] {
        assert_eq!(Cause::of_end(&signalled(signal)), cause);
        assert_eq!(exited(128 + signal, ""), cause, "as a shell reports it");
    }
    for (counted, cause) in [
        (Some(true), Cause::OutOfMemory),
        (Some(false), Cause::Killed),
        (None, Cause::Killed),
    ] {
        let evidence = Evidence {
            oom_killed: counted,
            ..signalled(9)
        };
        assert_eq!(Cause::of_end(&evidence), cause);
    }
    assert_eq!(
        exited(
            132,
            "panic(main thread): Bun ran out of memory\nBun has run out of memory.\n"
        ),
        Cause::OutOfHeap
    );
    assert_eq!(
        exited(3, "panic(main thread): unreachable\noh no: Bun has crashed."),
        Cause::Crashed { signal: None }
    );
}

#[test]
fn what_this_program_did_is_not_blamed_on_others() {
    let by_us = |exit, killed_by_us, oom_killed| {
        Cause::of_end(&Evidence {
            exit,
            by_us: true,
            killed_by_us,
            mid_turn: true,
            oom_killed,
            ..Evidence::default()
        })
    };
    assert_eq!(by_us(Some(Exit::with_code(143)), false, None), Cause::EndedByUs);
    assert_eq!(
        by_us(Some(Exit::with_signal(9)), true, Some(true)),
        Cause::EndedByUs
    );
    assert_eq!(by_us(Some(Exit::with_code(0)), false, None), Cause::EndedByUs);
    assert_eq!(by_us(Some(Exit::with_code(1)), false, None), Cause::EndedByUs);
    assert_eq!(by_us(None, true, None), Cause::EndedByUs);
    // What happens to it meanwhile is.
    assert_eq!(
        by_us(Some(Exit::with_signal(9)), false, Some(true)),
        Cause::OutOfMemory
    );
    assert_eq!(
        by_us(Some(Exit::with_signal(11)), false, None),
        Cause::Crashed { signal: Some(11) }
    );
}

#[test]
fn an_end_in_the_middle_of_a_turn() {
    let mut evidence = Evidence {
        exit: Some(Exit::with_code(0)),
        mid_turn: true,
        ..Evidence::default()
    };
    assert_eq!(Cause::of_end(&evidence), Cause::Truncated);
    evidence.mid_turn = false;
    assert_eq!(Cause::of_end(&evidence), Cause::Unexplained);
    evidence.exit = None;
    assert_eq!(Cause::of_end(&evidence), Cause::Unexplained);
}

#[test]
fn an_exit_that_repeats_the_last_result_is_no_crash() {
    for (fields, cause) in [
        (
            r#""subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns""#,
            Cause::MaxTurns,
        ),
        (
            r#""subtype":"error_max_budget_usd","is_error":true,"terminal_reason":"budget_exhausted""#,
            Cause::Budget,
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"blocking_limit","result":"Prompt is too long""#,
            Cause::TooLong,
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","result":"Not logged in · Please run /login""#,
            Cause::NotLoggedIn,
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":401,"result":"Invalid API key""#,
            Cause::InvalidKey,
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":529,"result":"Not logged in""#,
            Cause::Api { status: Some(529) },
        ),
        (
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","result":"API Error: Connection refused""#,
            Cause::ConnectionFailed,
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","errors":["x"]"#,
            Cause::TurnFailed("interrupted".to_owned()),
        ),
        (
            r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"model_error","errors":["x"]"#,
            Cause::TurnFailed("model_error".to_owned()),
        ),
    ] {
        let last = outcome(fields);
        let ended = Evidence {
            exit: Some(Exit::with_code(1)),
            last_error: Some(&last),
            ..Evidence::default()
        };
        assert_eq!(Cause::of_end(&ended), cause, "{fields}");
        // The same is said of the turn itself, which an interrupt does not make fail.
        let failed = Error::turn_failed(last.clone());
        let told = Some(cause).filter(|_| *last.verdict() != Verdict::Interrupted);
        assert_eq!(failed.cause(), told, "{fields}");
    }
}

#[test]
fn the_reasons_of_a_failed_start() {
    for (reason, cause) in [
        ("bypass_root", Cause::RootBypass),
        ("cwd_unavailable", Cause::CwdMissing),
        ("session_held_by_background", Cause::SessionInUse),
        ("cli_version_too_old", Cause::UnsupportedVersion),
        ("config_file_invalid", Cause::Settings),
        ("managed_settings_invalid", Cause::Settings),
        ("initialize_not_first", Cause::InputRefused),
        (
            "proxy_invalid",
            Cause::StartupFailed(Some("proxy_invalid".to_owned())),
        ),
    ] {
        let last = outcome(&format!(
            r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"startup_failure_reason":"{reason}""#
        ));
        // Also when the session was closed for it.
        for by_us in [false, true] {
            let evidence = Evidence {
                exit: Some(Exit::with_code(1)),
                last_error: Some(&last),
                by_us,
                ..Evidence::default()
            };
            assert_eq!(Cause::of_end(&evidence), cause);
        }
    }
    let unknown = outcome(
        r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found with session ID: 1"]"#,
    );
    assert_eq!(unknown.cause(), Some(Cause::UnknownSession));
}

#[cfg(unix)]
#[test]
fn the_systems_refusals() {
    use rustix::io::Errno;

    let here = tempfile::tempdir().unwrap();
    let there = here.path().join("there");
    std::fs::write(&there, "x").unwrap();
    let missing = here.path().join("missing");
    for (program, cwd, errno, cause) in [
        (&missing, here.path(), Errno::NOENT, Some(Cause::BinaryMissing)),
        // The system says the same of all three.
        (&there, here.path(), Errno::NOENT, Some(Cause::WrongPlatform)),
        (&there, missing.as_path(), Errno::NOENT, Some(Cause::CwdMissing)),
        (&there, here.path(), Errno::ACCESS, Some(Cause::NotExecutable)),
        (&there, here.path(), Errno::NOEXEC, Some(Cause::WrongPlatform)),
        (&there, here.path(), Errno::TOOBIG, Some(Cause::ArgumentsTooLong)),
        (&there, here.path(), Errno::TXTBSY, Some(Cause::BeingUpdated)),
        (&there, here.path(), Errno::AGAIN, Some(Cause::SystemLimit)),
        (&there, here.path(), Errno::NOMEM, Some(Cause::SystemLimit)),
        (&there, here.path(), Errno::MFILE, Some(Cause::SystemLimit)),
        (&there, here.path(), Errno::IO, None),
    ] {
        let error = Error::new(Kind::Spawn {
            program: program.clone(),
            cwd: cwd.to_owned(),
            source: errno.into(),
        });
        assert_eq!(error.cause(), cause, "{errno:?}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn what_options_errors_are_about() {
    let unusable = |why| {
        OptionsError::Cli(FindError::Unusable {
            path: "claude".into(),
            origin: crate::discover::FoundBy::Given,
            why,
        })
    };
    for (error, cause) in [
        (unusable(Unusable::Missing), Some(Cause::BinaryMissing)),
        (unusable(Unusable::NotExecutable), Some(Cause::NotExecutable)),
        (unusable(Unusable::BatchFile), Some(Cause::BatchFile)),
        (unusable(Unusable::NotAProgram), Some(Cause::WrongPlatform)),
        (
            unusable(Unusable::LoaderMissing("ld".into())),
            Some(Cause::WrongPlatform),
        ),
        (OptionsError::BypassAsRoot, Some(Cause::RootBypass)),
        (OptionsError::NoHome, None),
    ] {
        assert_eq!(Error::of(error).cause(), cause);
    }
}

#[test]
fn every_cause_has_a_name_words_and_advice_of_its_own() {
    let all = Cause::ALL;
    let distinct = |of: &dyn Fn(&Cause) -> String| {
        let texts: std::collections::BTreeSet<String> = all.iter().map(of).collect();
        texts.len()
    };
    assert_eq!(distinct(&|cause| cause.name().to_owned()), all.len());
    assert_eq!(distinct(&|cause| cause.to_string()), all.len());
    assert_eq!(distinct(&|cause| cause.advice().to_owned()), all.len());
    for cause in all {
        // `RateLimit` is `rate_limit`.
        let variant = format!("{cause:?}")
            .split(['(', ' '])
            .next()
            .map(str::to_lowercase);
        assert_eq!(variant, Some(cause.name().replace('_', "")));
    }
    let passing: Vec<&str> = all
        .iter()
        .filter(|cause| cause.is_transient())
        .map(Cause::name)
        .collect();
    assert_eq!(
        passing,
        ["being_updated", "system_limit", "rate_limit", "connection_failed"]
    );
    for (status, passes) in [
        (400, false),
        (403, false),
        (404, false),
        (408, true),
        (500, true),
        (529, true),
    ] {
        assert_eq!(
            Cause::Api { status: Some(status) }.is_transient(),
            passes,
            "{status}"
        );
    }
    let of_start = all.iter().filter(|cause| cause.is_start());
    assert!(of_start.clone().count() == 19, "{of_start:?}");
}
