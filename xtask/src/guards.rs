//! Takes guards out of the SDK, one at a time, and sees the test of their trap fail.
//!
//! Works on a copy of the tree below the target directory; nothing of the tree itself is changed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::cargo::cargo;

/// How long a test may take before it counts as hanging, which is a way to fail.
const PATIENCE: Duration = Duration::from_secs(180);

/// A guard, and what is there instead once it is taken out.
struct Guard {
    /// The test of the trap, in `crates/sdk/tests/traps`.
    trap: &'static str,
    file: &'static str,
    /// Stands there exactly once.
    line: &'static str,
    instead: &'static str,
}

/// Guards, two lines each: the trap and the file; the line, and what is there instead.
macro_rules! guards {
    ($( $trap:literal in $file:literal: $line:literal => $instead:literal; )+) => {
        &[$( Guard { trap: $trap, file: $file, line: $line, instead: $instead } ),+]
    };
}

const GUARDS: &[Guard] = guards! {
    "turns::foreign_origin_result" in "crates/sdk/src/conn/core/turns.rs":
        r#"let foreign = frame.origin_kind().is_some_and(|kind| kind != "human");"# => "let foreign = false;";
    "turns::folded_steer" in "crates/sdk/src/conn/core/turns.rs":
        r#""completed" if self.is_in_running(&id) => self.completed_in_running(&id),"#
            => r#""completed" if id.is_empty() => self.completed_in_running(&id),"#;
    "sessions::resume_from_other_cwd" in "crates/sdk/src/cause.rs":
        r#"("No conversation found", Cause::UnknownSession),"# => "";
    "sessions::double_resume" in "crates/sdk/src/cause.rs":
        r#"("Error: Session ID", Cause::SessionInUse),"# => "";
    "sessions::corrupted_transcript" in "crates/sessions/src/read/index.rs":
        "index.damaged += 1;" => "";
    "turns::stalled_stream_per_phase" in "crates/sdk/src/conn/core/watchdog.rs":
        "AwaitedOutput::Piece => (Phase::BetweenEvents, self.patience.between_events?)," => "AwaitedOutput::Piece => return None,";
    "turns::id_change_on_clear" in "crates/sdk/src/conn/core.rs":
        "self.session_ids.push_back(id.to_owned());" => "if self.session_ids.is_empty() { self.session_ids.push_back(id.to_owned()); }";
    "turns::cumulative_cost_deltas" in "crates/sdk/src/usage.rs":
        "(Some(total), _) => total - self.last_cost," => "(Some(total), _) => total,";
    "turns::partial_and_final_dedupe" in "crates/sdk/src/event/streamed.rs":
        "text.drain(..told.len());" => "text.drain(..0);";
    "turns::subagent_attribution" in "crates/sdk/src/event.rs":
        "let (id, parent) = (assistant.message.id.as_deref(), frame.parent_tool_use_id());"
            => "let (id, parent) = (assistant.message.id.as_deref(), None);";
    "requests::hook_timeout_or_panic_is_deny" in "crates/sdk/src/hooks/dispatch.rs":
        "Err(why) => failed(on_failure, &hook.event, input.as_ref(), &why)," => "Err(_) => std::future::pending().await,";
    "requests::cancel_pending_permission" in "crates/sdk/src/conn/core/control_frames.rs":
        "let withdrawn = self.open_requests.withdraw(id.as_str());" => "let withdrawn = None.filter(|_: &Serial| id.as_str().is_empty());";
    "requests::question_without_handler" in "crates/sdk/src/permissions.rs":
        "(self.is_question && !has_answers(allow))" => "(false && self.is_question && !has_answers(allow))";
    "requests::every_inbound_id_answered_once" in "crates/sdk/src/conn/cli_requests.rs":
        "_ => CliReply::Unsupported," => "_ => CliReply::NotOurs,";
    "input::env_allow_list" in "crates/sdk/src/env.rs":
        "if is_listed(PASSED, name) {" => "if is_listed(PASSED, name) || true {";
    "input::lone_surrogate" in "crates/json/src/repair.rs":
        "Some(0xD800..=0xDFFF) => {" => "Some(0xD800..=0xDFFF) if bytes.is_empty() => {";
    "processes::sigterm_ignoring_child_and_grandchild" in "crates/sdk/src/child/unix.rs":
        "Signal::Kill => family::kill(self.leader)," => "Signal::Kill => kill_process_group(self.leader, Unix::KILL),";
    "processes::drop_without_runtime" in "crates/sdk/src/child/unix.rs":
        "let _ = self.life.signal(Signal::Kill);" => "let _ = &self.life;";
    "policies::ask_rules_of_a_cli_that_gives_no_reasons" in "crates/sdk/src/permissions/policy.rs":
        ".is_some_and(|version| version.is_since(crate::version::TELLS_REASONS))" => ".is_some_and(|_| true)";
    "policies::ask_rules_and_a_command_that_cannot_be_read" in "crates/sdk/src/permissions/policy.rs":
        "Some(reason) if runs_commands(&request.tool_name) || !HEEDS_RULES.contains(reason) => {"
            => "Some(reason) if reason.as_str().is_empty() => {";
    "policies::rules_taken_away_by_an_answer" in "crates/sdk/src/rule/change.rs":
        r#"if is("destination", &["cliArg"])"# => r#"if is("destination", &["nowhere"])"#;
    "policies::wide_rules_of_an_answer" in "crates/sdk/src/permissions.rs":
        "if let Some(why) = refused {" => r#"if let Some(why) = refused.filter(|why| why.contains("taken")) {"#;
    "policies::plan_of_an_older_cli" in "crates/sdk/src/permissions/policy.rs":
        "request.requires_user_interaction || matches!(&*request.tool_name, QUESTION | PLAN)" => "request.requires_user_interaction";
    "policies::rules_that_nobody_handed_over" in "crates/sdk/src/permissions/policy.rs":
        "if self.default != PolicyDefault::Deny && !self.binds(request) {"
            => "if self.default != PolicyDefault::Deny && !self.binds(request) && tool.is_empty() {";
    "policies::rule_behind_layer" in "crates/sdk/src/options/check.rs":
        "if let Some((rule, layer)) = handed.misplaced {" => "if let Some((rule, layer)) = handed.misplaced.filter(|_| false) {";
    "policies::rule_behind_layer" in "crates/sdk/src/permissions/layers.rs":
        "decides.get_or_insert(name);" => "let _ = &mut decides;";
    "policies::ask_rules_beside_a_settings_file" in "crates/sdk/src/options/routes.rs":
        "Some(SettingsInput::File(_)) if !asked.is_empty() => {" => "Some(SettingsInput::File(_)) if asked.len() > 99 => {";
    "policies::rules_of_every_layer" in "crates/sdk/src/permissions/layers.rs":
        "take(decides, self.last.rules());" => "let _ = &mut take;";
    "policies::rules_of_every_layer" in "crates/sdk/src/permissions/person.rs":
        "self.0.rules()" => "Rules::default()";
    "policies::rules_of_every_layer" in "crates/sdk/src/permissions/layers.rs":
        "self.0.rules()" => "Rules::default()";
    "policies::ask_rules_are_handed_over" in "crates/sdk/src/options/routes.rs":
        "own.extend(rules);" => "let _ = rules;";
    "policies::read_only_is_the_project" in "crates/sdk/src/permissions/policy.rs":
        "    \"Read(./**)\",\n" => "    \"Read\",\n";
    "policies::rule_within_a_rule" in "crates/sdk/src/value_syntax.rs":
        "if seems_closed && depth > 0 && (c == ',' || c.is_whitespace()) {" => "if seems_closed && depth > 99 {";
    "policies::rules_in_settings" in "crates/sdk/src/options/check.rs":
        r#"check_rules_of_settings("managed_settings", settings)?;"# => "let _ = settings;";
};

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let wanted: Vec<String> = arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let guards: Vec<&Guard> = GUARDS
        .iter()
        .filter(|guard| wanted.is_empty() || wanted.iter().any(|word| guard.trap.contains(word.as_str())))
        .collect();
    ensure!(!guards.is_empty(), "no trap has {wanted:?} in its name");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let scratch = Scratch {
        tree: target.join("guards/tree"),
        target: target.join("guards/build"),
    };
    scratch.copy(&root)?;
    println!("with all guards in place:");
    for guard in &guards {
        let (passed, said) = scratch.test(guard.trap)?;
        ensure!(passed, "{} fails as it is:\n{said}", guard.trap);
    }
    println!("  {} tests pass", guards.len());
    let mut useless = 0;
    for guard in &guards {
        let path = scratch.tree.join(guard.file);
        let source = std::fs::read_to_string(&path).with_context(|| guard.file)?;
        let found = source.matches(guard.line).count();
        ensure!(
            found == 1,
            "{}: the guard of {} is there {found} times, not once",
            guard.file,
            guard.trap
        );
        std::fs::write(&path, source.replace(guard.line, guard.instead))?;
        let tested = scratch.test(guard.trap);
        std::fs::write(&path, source)?;
        match tested?.0 {
            true => {
                println!("NOT NOTICED  {}: `{}`", guard.trap, guard.line);
                useless += 1;
            }
            false => println!("noticed      {}", guard.trap),
        }
    }
    println!("{} of {} were noticed", guards.len() - useless, guards.len());
    Ok(if useless == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Scratch {
    tree: PathBuf,
    target: PathBuf,
}

impl Scratch {
    /// Copies what git knows of, as it is now. Files that are the same already are left alone, so that cargo builds little.
    fn copy(&self, root: &Path) -> Result<()> {
        let listed = Command::new("git")
            .current_dir(root)
            .args(["ls-files", "-z", "-c", "-o", "--exclude-standard"])
            .output()?;
        ensure!(listed.status.success(), "git cannot list the files");
        for name in listed
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
        {
            let name = String::from_utf8_lossy(name).into_owned();
            // One that was deleted is still listed.
            let Ok(content) = std::fs::read(root.join(&name)) else {
                continue;
            };
            let copy = self.tree.join(&name);
            if std::fs::read(&copy).is_ok_and(|there| there == content) {
                continue;
            }
            if let Some(directory) = copy.parent() {
                std::fs::create_dir_all(directory)?;
            }
            std::fs::write(copy, content)?;
        }
        Ok(())
    }

    /// Runs one test of a trap: whether it passed, and what it said. What does not build is an error.
    fn test(&self, trap: &str) -> Result<(bool, String)> {
        let command = |arguments: &[&str]| {
            let mut command = cargo();
            command
                .current_dir(&self.tree)
                .env("CARGO_TARGET_DIR", &self.target)
                // A line that is taken out leaves others unused.
                .env("RUSTFLAGS", "--cap-lints=warn")
                .args(arguments);
            command
        };
        let built = command(&[
            "test",
            "--offline",
            "--package",
            "outrigger",
            "--test",
            "traps",
            "--no-run",
            "--message-format=json",
        ])
        .output()
        .context("cannot run cargo")?;
        if !built.status.success() {
            bail!(
                "without its guard, {trap} does not build:\n{}",
                String::from_utf8_lossy(&built.stderr)
            );
        }
        // Run by itself: cargo could wait for another cargo, and the test would seem to hang.
        let program = String::from_utf8_lossy(&built.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["target"]["name"] == "traps")
            .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
            .context("cargo names no test program")?;
        let said = tempfile::tempfile()?;
        let mut child = Command::new(program)
            .current_dir(self.tree.join("crates/sdk"))
            .args(["--exact", trap])
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said.try_clone()?)
            .spawn()?;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let said = read(said)?;
        let Some(status) = status else {
            return Ok((false, format!("{said}\nit hangs")));
        };
        ensure!(said.contains("running 1 test"), "there is no test {trap}");
        Ok((status.success(), said))
    }
}

/// What was written to the file.
fn read(mut file: File) -> Result<String> {
    let mut said = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut said)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row whose line has gone would be found out only by the command, which takes half an hour.
    #[test]
    fn every_guard_is_where_its_row_says() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let wrong: Vec<String> = GUARDS
            .iter()
            .filter_map(|guard| {
                let source = std::fs::read_to_string(root.join(guard.file)).unwrap_or_default();
                let found = source.matches(guard.line).count();
                (found != 1)
                    .then(|| format!("{}: {found} times in {}: {}", guard.trap, guard.file, guard.line))
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
