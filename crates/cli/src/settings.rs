//! `outrigger settings`: the settings of the CLI on disk, put together.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::ValueHint;
use outrigger::protocol::RawJson;
use outrigger::protocol::settings::Settings;
use outrigger::protocol::shared::SettingSource;
use outrigger::settings::{ResolveSettings, ResolvedSettings};
use serde_json::{Map, Value};

use crate::agent::object;
use crate::exit::{CommandResult, Failure, Status};
use crate::plain::plain;

/// What `outrigger settings` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what holds, and where each value comes from. Nothing is started.
    Show(ShowSettings),
    /// List the keys that have a type here.
    Keys,
}

/// Values of variables whose names speak of a secret are not shown, except with --json.
#[derive(Debug, clap::Args)]
struct ShowSettings {
    /// Only these keys of the top level, such as `permissions`.
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// The directory whose project and local settings count.
    #[arg(long, value_name = "DIR", default_value = ".", hide_default_value = true)]
    dir: PathBuf,
    /// The files to read: user, project, local; all unless given. Managed settings are always read.
    #[arg(long, value_name = "LIST", value_parser = sources)]
    setting_sources: Option<Sources>,
    /// The settings that a session would get by `--settings`: JSON, or a file with it.
    #[arg(long, value_name = "JSON|FILE", value_hint = ValueHint::FilePath)]
    settings: Option<String>,
    /// The managed settings of an embedding program: JSON, or a file with it.
    #[arg(long, value_name = "JSON|FILE", value_hint = ValueHint::FilePath)]
    managed_settings: Option<String>,
    /// The managed settings of a server: JSON, or a file with it.
    #[arg(long, value_name = "JSON|FILE", value_hint = ValueHint::FilePath)]
    server_managed_settings: Option<String>,
    /// Another directory than the system's for managed settings.
    #[arg(long, value_name = "DIR")]
    managed_dir: Option<PathBuf>,
    /// Leave out a permission mode that the project chose and that the CLI ignores.
    #[arg(long)]
    heeded: bool,
    /// Write all as a line of JSON, as the TypeScript SDK's `resolveSettings` has it; with --heeded the settings alone.
    #[arg(long)]
    json: bool,
}

/// A list with commas between; an empty one reads no file.
#[derive(Debug, Clone)]
struct Sources(Vec<SettingSource>);

fn sources(list: &str) -> Result<Sources, String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let sources = names.map(|name| match name {
        "user" => Ok(SettingSource::User),
        "project" => Ok(SettingSource::Project),
        "local" => Ok(SettingSource::Local),
        _ => Err(format!("{name:?} is none of user, project, local")),
    });
    sources.collect::<Result<_, _>>().map(Sources)
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> CommandResult {
    let show = match args.command {
        Command::Show(show) => show,
        Command::Keys => {
            let mut stdout = io::stdout().lock();
            for key in Settings::KNOWN {
                writeln!(stdout, "{key}")?;
            }
            return Ok(Status::Success);
        }
    };
    let resolve = resolver(&show)?;
    let resolved = tokio::task::spawn_blocking(move || resolve.resolve()).await?;
    for problem in &resolved.problems {
        eprintln!("outrigger: {}", plain(&problem.to_string()));
    }
    let mut stdout = io::stdout().lock();
    if show.json {
        if show.heeded {
            serde_json::to_writer(&mut stdout, &resolved.without_escalating_default_mode())?;
        } else {
            serde_json::to_writer(&mut stdout, &resolved)?;
        }
        writeln!(stdout)?;
        return Ok(Status::Success);
    }
    let settings = if show.heeded {
        resolved.without_escalating_default_mode()
    } else {
        resolved.effective.clone()
    };
    let text = human(&resolved, &settings, &show.keys)?;
    if stdout.is_terminal() {
        write!(stdout, "{}", plain(&text))?;
    } else {
        write!(stdout, "{text}")?;
    }
    Ok(Status::Success)
}

fn resolver(show: &ShowSettings) -> Result<ResolveSettings, Failure> {
    let mut resolve = ResolveSettings::new().cwd(&show.dir);
    if let Some(Sources(sources)) = &show.setting_sources {
        resolve = resolve.setting_sources(sources.iter().copied());
    }
    if let Some(directory) = &show.managed_dir {
        resolve = resolve.managed_dir(directory);
    }
    if let Some(text) = &show.settings {
        resolve = resolve.flag_settings(object("--settings", text)?);
    }
    if let Some(text) = &show.managed_settings {
        resolve = resolve.managed_settings(object("--managed-settings", text)?);
    }
    if let Some(text) = &show.server_managed_settings {
        resolve = resolve.server_managed_settings(object("--server-managed-settings", text)?);
    }
    Ok(resolve)
}

/// Each key with its value and its source; lists and objects over several lines.
fn human(resolved: &ResolvedSettings, settings: &Settings, keys: &[String]) -> anyhow::Result<String> {
    let effective: Map<String, Value> = RawJson::encode(settings)?.decode()?;
    let mut text = String::new();
    for (key, value) in &effective {
        if !keys.is_empty() && !keys.contains(key) {
            continue;
        }
        let value = masked(key, value.clone());
        let value = serde_json::to_string_pretty(&value)?;
        let from = resolved
            .provenance
            .get(key)
            .map(|entry| format!("   # {entry}"))
            .unwrap_or_default();
        match value.split_once('\n') {
            None => text.push_str(&format!("{key}: {value}{from}\n")),
            Some((first, rest)) => text.push_str(&format!("{key}: {first}{from}\n{rest}\n")),
        }
    }
    for key in keys.iter().filter(|key| !effective.contains_key(*key)) {
        text.push_str(&format!("{key}:    # set nowhere\n"));
    }
    if text.is_empty() {
        text.push_str("no settings\n");
    }
    if !resolved.machine_policy.did_not_load.is_empty() {
        text.push_str("# a policy of this machine may be there and was not read\n");
    }
    Ok(text)
}

fn masked(key: &str, mut value: Value) -> Value {
    if key == "env"
        && let Value::Object(variables) = &mut value
    {
        let secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            [
                "KEY",
                "TOKEN",
                "SECRET",
                "PASSWORD",
                "CREDENTIAL",
                "AUTH",
                "HEADERS",
            ]
            .iter()
            .any(|word| name.contains(word))
        };
        for (_, value) in variables.iter_mut().filter(|(name, _)| secret(name)) {
            *value = Value::String("(not shown)".to_owned());
        }
    }
    value
}
