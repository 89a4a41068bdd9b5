//! `outrigger doctor`: why a session does not start, or whether it would.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use outrigger::Agent;
use outrigger::advice::reworded;
use outrigger::discover::{
    AuthSource, Candidate, Directory, Doctor, DoctorReport, Format, FoundBy, Libc, Problem, Severity,
    VersionCheck,
};
use serde_json::{Value, json};

use crate::exit::{CommandResult, Status};
use crate::paint::Paint;
use crate::plain::plain;
use crate::words;

/// What `outrigger doctor` takes.
///
/// Looks for Claude Code, the account and the directories, and tells what stands in the way of a session. Starts what it finds with
/// `--version`, in a private home, and asks nothing of the network. Where no key is seen, also starts a session without a prompt, as
/// `outrigger run` would, and asks the CLI for its account. The exit status is 1 if a session could not be started; warnings leave it at 0.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The CLI to examine, instead of the one that is found.
    #[arg(long, value_name = "PATH")]
    cli: Option<PathBuf>,
    /// Print the report as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Why a session does not start although nothing was seen that stands in its way.
struct RefusedStart {
    found: String,
    advice: String,
}

/// Examines, and prints the report.
pub(crate) async fn run(args: Args) -> CommandResult {
    let mut doctor = Doctor::default();
    if let Some(cli) = args.cli {
        doctor = doctor.cli_path(cli);
    }
    let mut report = doctor.examine().await;
    let refused = ask_cli(&mut report).await;
    let healthy = report.is_healthy() && refused.is_none();
    let mut out = io::stdout().lock();
    if args.json {
        let json = json(&report, healthy, refused.as_ref())?;
        writeln!(out, "{json}")?;
    } else {
        let paint = Paint::on(&out);
        write!(out, "{}", report_text(&report, refused.as_ref(), paint))?;
    }
    out.flush()?;
    Ok(if healthy { Status::Success } else { Status::Failed })
}

/// Starts a session as `outrigger run` does, and ends it, unless a key says enough: only the CLI knows all places where an account may be,
/// and what a stored login is worth. What was seen of the account is no problem of its own then.
async fn ask_cli(report: &mut DoctorReport) -> Option<RefusedStart> {
    let cli = report.chosen.clone().filter(|_| report.is_healthy())?;
    if matches!(report.used, Some(AuthSource::Variable(_))) {
        return None;
    }
    let options = Agent::builder()
        .cli_path(cli)
        .persist_session(false)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let started = options.start().await;
    let mut problems = report.problems.iter();
    let warning = problems.position(|problem| problem.found.starts_with("no account was found"));
    let warning = warning.map(|at| report.problems.remove(at));
    let error = match started {
        Ok(session) => {
            // It could be started, which is all that counts.
            let _ = session.close().await;
            return None;
        }
        Err(error) => error,
    };
    if let Some(Problem { found, advice, .. }) = warning.filter(|_| error.as_no_account().is_some()) {
        return Some(RefusedStart { found, advice });
    }
    let told = error.explained(words::flag);
    let because = told.because.iter().map(|why| format!(": {why}"));
    Some(RefusedStart {
        found: std::iter::once(told.message.clone()).chain(because).collect(),
        advice: told
            .hint
            .unwrap_or_else(|| "correct what it says, and try again".to_owned()),
    })
}

fn json(report: &DoctorReport, healthy: bool, refused: Option<&RefusedStart>) -> serde_json::Result<Value> {
    let mut json = json!({ "healthy": healthy });
    let report = serde_json::to_value(report)?;
    for (key, value) in report.as_object().into_iter().flatten() {
        json[key] = value.clone();
    }
    if let (Some(refused), Some(problems)) = (refused, json["problems"].as_array_mut()) {
        let problem = json!({"severity": Severity::Error, "found": refused.found, "advice": refused.advice});
        problems.insert(0, problem);
    }
    Ok(json)
}

fn report_text(report: &DoctorReport, refused: Option<&RefusedStart>, paint: Paint) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let label = format!("{label:<15}");
        let _ = writeln!(text, "{}{}", paint.bold(label), plain(value));
    };
    if report.candidates.is_empty() {
        line("Claude Code", "none found");
    }
    let mut label = "Claude Code";
    for candidate in &report.candidates {
        let used = report.chosen.as_ref() == Some(&candidate.path);
        let mark = if used { " (this one is used)" } else { "" };
        line(label, &format!("{}{mark}", candidate.path.display()));
        label = "";
        for detail in details(candidate) {
            line("", &format!("  {detail}"));
        }
    }
    let libc = report.host.libc.map(|libc| format!(", {}", libc_name(libc)));
    line(
        "Machine",
        &format!(
            "{} {}{}",
            report.host.os,
            report.host.arch,
            libc.unwrap_or_default()
        ),
    );
    let mut label = "Account";
    for source in &report.auth {
        let mark = if report.used.as_ref() == Some(source) {
            " (this one is used)"
        } else {
            match source {
                AuthSource::ApiKeyHelper(_) => {
                    " (used only where settings are loaded, such as with --isolation interactive)"
                }
                _ => "",
            }
        };
        line(label, &format!("{source}{mark}"));
        label = "";
    }
    if report.auth.is_empty() {
        line(label, "none found");
    } else if report.used.is_some() {
        line(
            "",
            "  by `outrigger` and by programs with Agent::builder(), unless another account is chosen",
        );
    }
    for (label, directory) in [
        ("Home", &report.home),
        ("Configuration", &report.config),
        ("Directory", &report.cwd),
    ] {
        line(label, &directory.as_ref().map_or("none".to_owned(), place));
    }
    if report.root {
        let declared = if report.sandbox_declared {
            ", IS_SANDBOX is set (the SDK does not pass it on by itself)"
        } else {
            ""
        };
        line("User", &format!("root{declared}"));
    }
    if !report.nested.is_empty() {
        let names = report.nested.join(", ");
        line(
            "Surroundings",
            &format!("inside of a Claude Code session; the SDK keeps back {names}"),
        );
    }
    let _ = writeln!(text);
    if let Some(RefusedStart { found, advice }) = refused {
        text.push_str(&problem_text(Severity::Error, found, advice, paint));
    }
    for problem in &report.problems {
        let Problem {
            severity,
            found,
            advice,
            ..
        } = problem;
        text.push_str(&problem_text(*severity, found, advice, paint));
    }
    let count = |severity| {
        report
            .problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count()
    };
    let errors = count(Severity::Error) + usize::from(refused.is_some());
    let verdict = match (errors, count(Severity::Warning)) {
        (0, 0) => paint.green("Nothing stands in the way of a session."),
        (0, _) if report.used.is_none() => {
            paint.green("A session can be started: the CLI has an account that is not seen here.")
        }
        (0, warnings) => paint.yellow(format!(
            "A session can be started; {}.",
            counted(warnings, "warning")
        )),
        (errors, _) => paint.red(format!(
            "A session cannot be started: {}.",
            counted(errors, "problem")
        )),
    };
    let _ = writeln!(text, "{verdict}");
    text
}

fn problem_text(severity: Severity, found: &str, advice: &str, paint: Paint) -> String {
    let severity = match severity {
        Severity::Error => paint.red(format!("{:<15}", "Problem")),
        Severity::Warning => paint.yellow(format!("{:<15}", "Warning")),
    };
    format!(
        "{severity}{}\n{:15}→ {}\n",
        plain(&reworded(found, words::flag)),
        "",
        plain(&reworded(advice, words::flag))
    )
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn details(candidate: &Candidate) -> Vec<String> {
    let mut details = vec![format!(
        "found by {}{}",
        match &candidate.origin {
            FoundBy::Given => "the path that was given".to_owned(),
            FoundBy::Variable(name) => format!("the variable {name}"),
            FoundBy::Path => "PATH".to_owned(),
            FoundBy::Installer => "where installers put it".to_owned(),
            other => other.to_string(),
        },
        match &candidate.real_path {
            Some(real) if *real != candidate.path => format!(", leads to {}", real.display()),
            _ => String::new(),
        }
    )];
    match &candidate.version {
        VersionCheck::Version(version) => details.push(format!("runs: version {version}")),
        VersionCheck::Odd(said) => details.push(format!("runs, but says {said:?}")),
        VersionCheck::TimedOut => details.push("runs, but did not end in time".to_owned()),
        VersionCheck::Failed(error) => details.push(format!("does not run: {error}")),
        VersionCheck::NotRun if candidate.unusable.is_none() => {
            details.push("not tried: it needs a JavaScript runtime".to_owned());
        }
        _ => {}
    }
    if let Some(why) = &candidate.unusable {
        details.push(format!("cannot be used: {why}"));
    }
    if let Some(binary) = &candidate.binary {
        let format = match binary.format {
            Format::Elf => "ELF program",
            Format::MachO => "Mach-O program",
            Format::Pe => "Windows program",
            Format::Script => "script",
            _ => "program",
        };
        let mut what = format.to_owned();
        if !binary.architectures.is_empty() {
            let _ = write!(what, " for {}", binary.architectures.join(", "));
        }
        if let Some(libc) = binary.libc {
            let _ = write!(what, ", {}", libc_name(libc));
        }
        if let (Format::Script, Some(interpreter)) = (binary.format, &binary.interpreter) {
            let _ = write!(what, " for {}", interpreter.display());
        }
        details.push(what);
    }
    details
}

fn libc_name(libc: Libc) -> &'static str {
    match libc {
        Libc::Glibc => "glibc",
        Libc::Musl => "musl",
        Libc::Bionic => "bionic",
        Libc::Static => "statically linked",
        _ => "another C library",
    }
}

fn place(directory: &Directory) -> String {
    let state = match (directory.exists, directory.readable, directory.writable) {
        (false, _, true) => " (not there yet, can be made)",
        (false, _, false) => " (not there, and cannot be made)",
        (true, true, true) => "",
        (true, true, false) => " (read-only)",
        (true, false, _) => " (cannot be read)",
    };
    format!("{}{state}", directory.path.display())
}
