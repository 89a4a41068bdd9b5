//! `stage`: a CLI in place for as long as stdin is open, for helpers of test suites.

use std::ffi::OsString;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use outrigger_sim::players::{PlayError, Scene, Setting};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Stdin};

use super::programs::{Which, block_on, causes, code_of, processes_json, read, say};
use super::report::flaws_json;

/// The longest line on stdin.
const LONGEST: u64 = 64 * 1024;

/// outrigger-sim stage: puts a CLI in place, and keeps it there until stdin ends. For helpers of test suites, which run the program
/// themselves; `outrigger-sim play` runs it for you.
///
/// The first line of stdout says what is in place, as JSON:
///   {"claude": PATH, "env": {NAME: VALUE}, "home": DIR, "project": DIR, "gates": DIR, "player": "sim"}
/// or, with the exit codes of `outrigger-sim play`, why nothing is: {"error": TEXT}
///
/// A line {"report": {"patience_ms": N}} on stdin is answered by a line with the report of `outrigger-sim play`, as soon as all processes
/// have ended, or after N milliseconds. Processes that still run when stdin ends are ended.
#[derive(Debug, clap::Parser)]
#[command(name = "outrigger-sim stage", verbatim_doc_comment)]
struct StageLine {
    #[command(flatten)]
    which: Which,
    /// A new or empty directory: the home of the CLI, its project with the files of the script, and the gates are made there.
    #[arg(value_name = "DIR")]
    place: PathBuf,
    /// The script, a YAML file. Without one, the prompts say what the model says.
    script: Option<PathBuf>,
}

impl StageLine {
    async fn set(&self) -> Result<Scene, PlayError> {
        let failed = |cause| PlayError::Place {
            doing: "make a place for the CLI",
            cause,
        };
        let own = std::env::current_exe().map_err(failed)?;
        std::fs::create_dir_all(&self.place).map_err(failed)?;
        // Without links, since the CLI names its project by the resolved path.
        let place = std::fs::canonicalize(&self.place).map_err(failed)?;
        // What another run has left there would be taken for what this one does.
        let made = |below: &str| -> Result<_, PlayError> {
            let directory = place.join(below);
            let named = |error: Error| Error::new(error.kind(), format!("{}: {error}", directory.display()));
            std::fs::create_dir(&directory).map_err(|error| failed(named(error)))?;
            Ok(Some(directory))
        };
        let mut setting = Setting::default();
        setting.script.clone_from(&self.script);
        setting.home = made("home")?;
        made("home/.claude")?;
        setting.project = made("project")?;
        setting.gates = made("gates")?;
        Scene::set(&own, &self.which.player().0, setting).await
    }
}

/// What may be asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StageRequest {
    Report { patience_ms: u64 },
}

/// `outrigger-sim stage`.
pub(crate) fn stage(arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, ExitCode> {
    let line: StageLine = read(arguments)?;
    let kept = block_on(async {
        let scene = match line.set().await {
            Ok(scene) => scene,
            Err(error) => {
                let _ = answer(&json!({"error": causes(&error)})).await;
                return Ok(code_of(&error, 1));
            }
        };
        let kept = keep(&scene, &line).await;
        scene.end().await?;
        kept.map(|()| 0)
    });
    match kept.and_then(|kept| kept) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) => {
            say(&format!("outrigger-sim stage: {error}\n"));
            Err(ExitCode::FAILURE)
        }
    }
}

/// Answers what is asked until stdin ends.
async fn keep(scene: &Scene, line: &StageLine) -> std::io::Result<()> {
    let name = line.which.player().1;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    answer(&json!({
        "claude": text(scene.claude()),
        "env": scene.env(),
        "home": text(&scene.home()),
        "project": text(&scene.project()),
        "gates": text(scene.gates()),
        "player": name,
    }))
    .await?;
    let mut input = BufReader::new(tokio::io::stdin());
    loop {
        let mut asked = Vec::new();
        let mut bounded = tokio::io::AsyncReadExt::take(&mut input, LONGEST);
        if bounded.read_until(b'\n', &mut asked).await? == 0 {
            return Ok(());
        }
        let reply = match serde_json::from_slice(&asked) {
            Ok(StageRequest::Report { patience_ms }) => {
                tokio::select! {
                    // What can be answered at once is.
                    biased;
                    waited = scene.wait(Duration::from_millis(patience_ms)) => waited?,
                    // Who has left waits for no answer.
                    () = end_of(&mut input) => return Ok(()),
                }
                report(scene, line, name)?
            }
            Err(error) => json!({"error": error.to_string()}),
        };
        answer(&reply).await?;
    }
}

/// Waits until nothing more comes. If there is something more, it never ends.
async fn end_of(input: &mut BufReader<Stdin>) {
    if matches!(input.fill_buf().await, Ok(more) if !more.is_empty()) {
        std::future::pending::<()>().await;
    }
}

fn report(scene: &Scene, line: &StageLine, name: &str) -> std::io::Result<Value> {
    let processes = scene.processes()?;
    let mut flaws = scene.flaws(&processes);
    flaws.extend(scene.ends(&processes));
    Ok(json!({
        "content": flaws.is_empty(),
        "flaws": flaws_json(&flaws),
        "script": line.script.as_ref().map(|script| script.display().to_string()),
        "player": name,
        "processes": processes_json(&processes),
    }))
}

async fn answer(answer: &Value) -> std::io::Result<()> {
    let mut output = tokio::io::stdout();
    output.write_all(format!("{answer}\n").as_bytes()).await?;
    output.flush().await
}
