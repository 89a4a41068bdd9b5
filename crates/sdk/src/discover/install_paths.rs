//! Where installers put the CLI.

use std::path::{Path, PathBuf};

use crate::env::Surroundings;

/// The name of the program in a directory.
pub(crate) const PROGRAM: &str = if cfg!(windows) { "claude.exe" } else { "claude" };

/// Every place to look at after the `PATH`, best first. Only absolute paths.
pub(crate) fn places(surroundings: &Surroundings) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let home = surroundings.home();
    if let Some(home) = &home {
        // The native installer, then the npm installation that it took over from.
        places.push(home.join(".local/bin").join(PROGRAM));
        places.push(home.join(".claude/local").join(PROGRAM));
        places.push(home.join(".claude/local/node_modules/.bin").join(PROGRAM));
    }
    if cfg!(windows) {
        windows(surroundings, home.as_deref(), &mut places);
    } else {
        unix(surroundings, home.as_deref(), &mut places);
    }
    places.retain(|place| place.is_absolute());
    places
}

fn unix(surroundings: &Surroundings, home: Option<&Path>, places: &mut Vec<PathBuf>) {
    for directory in [
        "/opt/homebrew/bin",
        "/usr/local/bin",
        "/home/linuxbrew/.linuxbrew/bin",
        "/usr/bin",
    ] {
        places.push(Path::new(directory).join(PROGRAM));
    }
    // Package and version managers say where they are; what follows is where they are by default.
    for variable in [
        "NPM_CONFIG_PREFIX",
        "npm_config_prefix",
        "VOLTA_HOME",
        "BUN_INSTALL",
    ] {
        if let Some(directory) = surroundings.var(variable) {
            places.push(Path::new(directory).join("bin").join(PROGRAM));
        }
    }
    for variable in ["PNPM_HOME", "NVM_BIN"] {
        if let Some(directory) = surroundings.var(variable) {
            places.push(Path::new(directory).join(PROGRAM));
        }
    }
    for variable in ["ASDF_DATA_DIR", "MISE_DATA_DIR"] {
        if let Some(directory) = surroundings.var(variable) {
            places.push(Path::new(directory).join("shims").join(PROGRAM));
        }
    }
    let Some(home) = home else { return };
    for directory in [
        ".npm-global/bin",
        ".volta/bin",
        ".asdf/shims",
        ".local/share/mise/shims",
        ".bun/bin",
        ".local/share/pnpm",
        "Library/pnpm",
        ".yarn/bin",
        "node_modules/.bin",
        ".nix-profile/bin",
    ] {
        places.push(home.join(directory).join(PROGRAM));
    }
    places.extend(nvm(&home.join(".nvm/versions/node")));
}

/// The CLI in each Node.js that nvm installed, newest first.
fn nvm(versions: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(versions) else {
        return Vec::new();
    };
    let mut found: Vec<(Vec<u64>, PathBuf)> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            let name = entry.file_name();
            let numbers = name
                .to_string_lossy()
                .trim_start_matches('v')
                .split('.')
                .map_while(|n| n.parse().ok())
                .collect();
            (numbers, entry.path().join("bin").join(PROGRAM))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

fn windows(surroundings: &Surroundings, home: Option<&Path>, places: &mut Vec<PathBuf>) {
    // npm leaves only `claude.cmd` on the PATH, which must not be run; the program itself lies in the package.
    const PACKAGE: &str = "node_modules/@anthropic-ai/claude-code/bin";
    if let Some(directory) = surroundings.var("APPDATA") {
        places.push(Path::new(directory).join("npm").join(PACKAGE).join(PROGRAM));
    }
    if let Some(directory) = surroundings.var("LOCALAPPDATA") {
        places.push(Path::new(directory).join("Microsoft/WinGet/Links").join(PROGRAM));
        places.push(Path::new(directory).join("pnpm").join(PROGRAM));
        places.push(Path::new(directory).join("Volta/bin").join(PROGRAM));
    }
    for variable in ["PROGRAMFILES", "PROGRAMDATA"] {
        if let Some(directory) = surroundings.var(variable) {
            places.push(Path::new(directory).join("ClaudeCode").join(PROGRAM));
        }
    }
    if let Some(home) = home {
        places.push(home.join("scoop/shims").join(PROGRAM));
        places.push(home.join(".bun/bin").join(PROGRAM));
    }
}
