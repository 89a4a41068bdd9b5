//! The location of a launch's sessions: the config directory and the project.

use std::path::{Path, PathBuf};

use outrigger_sessions::place::{project_dir_name, real_path};

use crate::env::{self, Surroundings, Variables};
use crate::error::{Error, Result};
use crate::options::{Isolation, Options};

/// Names the CLI's directory for all projects; heeded only where `CLAUDE_CONFIG_DIR` is set.
pub(crate) const PROJECT_NAME: &str = "CLAUDE_CODE_PROJECT_DIR_NAME";

/// The config directory of the user's sessions with these options; `None` if it is temporary.
pub(crate) fn users_config(options: &Options, surroundings: &Surroundings) -> Option<PathBuf> {
    if options.isolation == Isolation::Hermetic {
        return options.hermetic_home.as_ref().map(|home| {
            let home = options
                .cwd
                .as_ref()
                .map_or_else(|| home.clone(), |cwd| cwd.join(home));
            home.join("home").join(".claude")
        });
    }
    let set = |name: &str| variable(options, surroundings, name).map(PathBuf::from);
    let home = || set("HOME").or_else(|| surroundings.home());
    set("CLAUDE_CONFIG_DIR").or_else(|| home().map(|home| home.join(".claude")))
}

/// The environment of the CLI, as far as the options determine it.
pub(crate) fn variable(
    options: &Options,
    surroundings: &Surroundings,
    name: &str,
) -> Option<std::ffi::OsString> {
    let own = env::get(options.environment.own(), name).map(Into::into);
    let inherited = || {
        let inherited = options.environment.inherited(&surroundings.env);
        env::get(&inherited, name).map(Into::into)
    };
    own.or_else(inherited)
        .filter(|value: &std::ffi::OsString| !value.is_empty())
}

/// What the CLI calls the project of the working directory; of one on another machine, which can't be looked at, by its name.
pub(crate) fn project_key(options: &Options, surroundings: &Surroundings, is_far: bool) -> Result<String> {
    let cwd = match &options.cwd {
        Some(cwd) if is_far => cwd.clone(),
        _ => options.working_directory(surroundings).map_err(Error::of)?,
    };
    let is_hermetic = options.isolation == Isolation::Hermetic;
    let named = variable(options, surroundings, PROJECT_NAME)
        .filter(|_| is_hermetic || variable(options, surroundings, "CLAUDE_CONFIG_DIR").is_some())
        .and_then(|name| name.into_string().ok());
    let real = || match is_far {
        true => cwd.to_string_lossy().into_owned(),
        false => real_path(&cwd),
    };
    Ok(named.unwrap_or_else(|| project_dir_name(&real())))
}

/// The config directory of a CLI with this environment.
pub(crate) fn config_dir(env: &Variables) -> Option<PathBuf> {
    let set = |name: &str| env::get(env, name).filter(|value| !value.is_empty());
    let home = || set("HOME").or_else(|| set("USERPROFILE").filter(|_| cfg!(windows)));
    match set("CLAUDE_CONFIG_DIR") {
        Some(config) => Some(config.into()),
        None => home().map(|home| Path::new(home).join(".claude")),
    }
}
