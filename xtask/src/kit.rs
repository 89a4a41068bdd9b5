//! Builds the Python wheel and the npm packages of the simulated CLI, installs them from the built files as their users would, and
//! runs their examples and tests with the official SDKs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use outrigger_claude::{Fetch, Sandbox};

use crate::packages::{
    copy_tree, install, install_node, install_python, install_typescript, isolated, read, remove,
};
use crate::{cargo, notices};

/// The variable that says which CLI plays.
const REAL: &str = "OUTRIGGER_SIM_REAL";

/// The variable that says where the directory `e2e-tests` of the official Python SDK is.
const E2E: &str = "OUTRIGGER_SDK_E2E";

type Step = fn(&Kit) -> Result<()>;

/// What the packages must do, in this order.
const STEPS: &[(&str, Step)] = &[
    ("wheel", Kit::wheel),
    ("pytest", |kit| kit.pytest(&[])),
    ("pytest-real", |kit| kit.pytest(&["--claude-real"])),
    ("mypy", Kit::mypy),
    ("sdk-examples", Kit::sdk_examples),
    ("sdk-e2e", Kit::sdk_e2e),
    ("tarballs", Kit::tarballs),
    ("vitest", |kit| kit.vitest("0")),
    ("vitest-real", |kit| kit.vitest("1")),
    ("node-test", |kit| kit.node_test("0")),
    ("node-test-real", |kit| kit.node_test("1")),
    ("tsc", Kit::tsc),
    ("acp-packages", Kit::acp_packages),
    ("acp-npx", Kit::acp_npx),
];

/// What the runs of clients have, and the packages of the agent for editors need.
pub(crate) struct Clients {
    /// Builds our programs; where each is, by its name.
    pub(crate) build: fn(&Path) -> Result<BTreeMap<String, PathBuf>>,
    /// Drives an installed agent by clients that are not ours: the root, the target directory, `outrigger`, the agent.
    pub(crate) drive: fn(&Path, &Path, &Path, &Path) -> Result<()>,
}

/// The packages, and where they are tried.
struct Kit {
    clients: Clients,
    root: PathBuf,
    target: PathBuf,
    place: PathBuf,
}

/// Takes the steps, all or those with these names; how many failed.
pub(crate) fn run(root: &Path, target: &Path, wanted: &[String], clients: Clients) -> Result<usize> {
    // The SDKs come without their CLIs, so the pinned one stands in for those.
    crate::fetch::run()?;
    let place = target.join("clients").join("kit");
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let kit = Kit {
        clients,
        root: root.to_owned(),
        target: target.to_owned(),
        place,
    };
    let (mut passed, mut failed) = (0, 0);
    for (name, step) in STEPS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        let began = Instant::now();
        let done = step(&kit);
        let ms = began.elapsed().as_millis();
        match done {
            Ok(()) => {
                passed += 1;
                println!("kit         ok    {name:<28} {ms:>6} ms");
            }
            Err(error) => {
                failed += 1;
                println!("kit         FAIL  {name:<28} {ms:>6} ms\n            {error:#}");
            }
        }
    }
    println!("kit: {passed} passed, {failed} failed");
    Ok(failed)
}

impl Kit {
    /// The version of the workspace, which the packages have to have.
    fn version(&self) -> Result<String> {
        let manifest = read(&self.root.join("Cargo.toml"))?;
        let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
        let version = line.context("Cargo.toml states no version of the workspace")?;
        Ok(version.trim_matches('"').to_owned())
    }

    /// The directory of a package.
    fn package(&self, name: &str) -> PathBuf {
        self.root.join("packages").join(name)
    }

    /// The interpreter of an environment with the official SDK, pytest and maturin.
    fn python(&self) -> Result<PathBuf> {
        let mut wanted = String::new();
        for file in [
            "clients/python/requirements.txt",
            "clients/examples/requirements.txt",
            "packages/python/tests/requirements.txt",
        ] {
            wanted += &read(&self.root.join(file))?;
            wanted.push('\n');
        }
        let source = self.place.join("requirements");
        fs::create_dir_all(&source).with_context(|| format!("cannot create {}", source.display()))?;
        fs::write(source.join("requirements.txt"), wanted)
            .with_context(|| format!("cannot write to {}", source.display()))?;
        install_python(&source, &self.place, &[])
    }

    /// Builds the wheel and installs it from its file.
    fn wheel(&self) -> Result<()> {
        let python = self.python()?;
        let wheels = self.place.join("wheels");
        remove(&wheels)?;
        install(
            Command::new(&python)
                .current_dir(self.package("python"))
                .envs(cargo::replaced()?)
                .args(["-m", "maturin", "build", "--profile=dev", "--locked", "--quiet"])
                .arg("--target-dir")
                .arg(&self.target)
                .arg("--out")
                .arg(&wheels),
            "maturin could not build the wheel",
        )?;
        install(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(["--force-reinstall", "--no-deps", "--no-index"])
                .arg(only_file(&wheels)?),
            "pip could not install the wheel",
        )
    }

    /// Runs the tests and the examples of the Python package, with the simulated CLI or the real one.
    fn pytest(&self, player: &[&str]) -> Result<()> {
        let package = self.package("python");
        let mut command = isolated(&self.python()?)?;
        command
            // Without files of its own in the tree.
            .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
            .arg("--basetemp")
            .arg(self.place.join("pytest"))
            .args(player)
            .arg(package.join("tests"))
            .arg(package.join("examples"));
        self.check(&mut command, &package)
    }

    /// Checks the types of the Python package.
    fn mypy(&self) -> Result<()> {
        let package = self.package("python");
        let mut command = isolated(&self.python()?)?;
        command
            .args(["-m", "mypy", "--strict", "--cache-dir"])
            .arg(self.place.join("mypy"))
            .arg(package.join("src"));
        self.check(&mut command, &package)
    }

    /// The source distribution of the official Python SDK, unpacked; nothing of it is ours to keep in the tree.
    fn sdk_source(&self) -> Result<PathBuf> {
        let python = self.python()?;
        let requirements = read(&self.root.join("clients/python/requirements.txt"))?;
        let pin = requirements
            .lines()
            .find(|line| line.starts_with("claude-agent-sdk=="))
            .context("clients/python/requirements.txt does not pin claude-agent-sdk")?;
        let place = self.place.join("sdk").join(pin.replace("==", "-"));
        let unpacked = place.join("unpacked");
        if !unpacked.exists() {
            remove(&place)?;
            install(
                Command::new(&python)
                    .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"])
                    .args(["--no-deps", "--no-binary", "claude-agent-sdk", "--dest"])
                    .arg(place.join("archive"))
                    .arg(pin),
                "pip could not download the source of the official SDK",
            )?;
            let partly = place.join("partly");
            install(
                Command::new(&python)
                    .args(["-m", "tarfile", "--extract"])
                    .arg(only_file(&place.join("archive"))?)
                    .arg(&partly),
                "Python could not unpack the source of the official SDK",
            )?;
            fs::rename(only_file(&partly)?, &unpacked)
                .with_context(|| format!("cannot move to {}", unpacked.display()))?;
        }
        Ok(unpacked)
    }

    /// Runs the examples of the official Python SDK, unchanged.
    fn sdk_examples(&self) -> Result<()> {
        let source = self.sdk_source()?;
        let mut command = isolated(&self.python()?)?;
        command
            .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp"])
            .arg(self.place.join("pytest-examples"))
            .arg(self.root.join("clients").join("examples"));
        self.check(command.env("OUTRIGGER_SDK_EXAMPLES", source), &self.root)
    }

    /// Runs the end-to-end tests of the official Python SDK, unchanged, with the simulated CLI and with the real one. They are in no
    /// distribution, so a variable has to say where they are.
    fn sdk_e2e(&self) -> Result<()> {
        let Some(tests) = env::var_os(E2E) else {
            println!(
                "kit         left out: {E2E} names no directory with the end-to-end tests of the official SDK"
            );
            return Ok(());
        };
        let ours = self.root.join("clients").join("e2e");
        for (real, name) in [("0", "pytest-e2e"), ("1", "pytest-e2e-real")] {
            let mut command = isolated(&self.python()?)?;
            command
                .args([
                    "-B",
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "simulated_cli",
                ])
                .arg("--import-mode=importlib")
                .arg("--basetemp")
                .arg(self.place.join(name))
                .arg(&tests);
            self.check(command.env("PYTHONPATH", &ours).env(REAL, real), &self.root)?;
        }
        Ok(())
    }

    /// Where the packages for Node are tried: below the project that has the official SDK.
    fn project(&self) -> PathBuf {
        self.target.join("clients").join("typescript").join("kit")
    }

    /// Packs the npm packages, with the executable that the wheel has, and installs them from their files.
    fn tarballs(&self) -> Result<()> {
        let (package, project) = (self.package("npm"), self.project());
        let sdk = self.target.join("clients").join("typescript");
        for directory in [&sdk, &project] {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        install_typescript(&self.root.join("clients").join("typescript"), &sdk)?;
        install_node(&package.join("tests"), &project, "ci", &[])?;
        for (from, to) in [("examples", "examples"), ("tests/failing", "failing")] {
            remove(&project.join(to))?;
            copy_tree(&package.join(from), &project.join(to))?;
        }
        let tarballs = self.place.join("tarballs");
        remove(&tarballs)?;
        let executable = format!("outrigger-sim{}", env::consts::EXE_SUFFIX);
        install(
            Command::new("node")
                .arg(package.join("pack.mjs"))
                .arg("sim")
                .arg(self.target.join("debug").join(executable))
                .arg(&tarballs),
            "the npm packages could not be packed",
        )?;
        install_tarballs(&tarballs, &project)
    }

    /// Runs the examples for vitest, with the simulated CLI or the real one.
    fn vitest(&self, real: &str) -> Result<()> {
        let vitest = self.project().join("node_modules/vitest/vitest.mjs");
        let mut command = isolated(Path::new("node"))?;
        command.arg(vitest).args(["run", "--dir", "examples"]);
        // The real CLI starts slowly on a machine with other work.
        command.arg("--test-timeout=60000");
        self.check(command.env(REAL, real), &self.project())
    }

    /// Runs the example and the tests for Node's own runner, with the simulated CLI or the real one.
    fn node_test(&self, real: &str) -> Result<()> {
        let mut command = isolated(Path::new("node"))?;
        command.args(["--test", "examples/plain.mjs", "kit.mjs"]);
        self.check(command.env(REAL, real), &self.project())
    }

    /// Checks the types of the npm package, as the examples use them.
    fn tsc(&self) -> Result<()> {
        let mut command = isolated(Path::new("node"))?;
        command.arg("node_modules/typescript/bin/tsc");
        self.check(&mut command, &self.project())
    }

    /// The directory in which the agent for editors is installed.
    fn acp(&self) -> PathBuf {
        self.place.join("acp")
    }

    /// Packs the npm packages of the agent for editors, and installs them from their files as `npx` would, with the CLI that they bring.
    fn acp_packages(&self) -> Result<()> {
        let programs = (self.clients.build)(&self.root)?;
        let agent = programs
            .get("outrigger-acp")
            .context("cargo named no executable outrigger-acp")?;
        let (project, tarballs) = (self.acp(), self.place.join("acp-tarballs"));
        remove(&tarballs)?;
        remove(&project)?;
        fs::create_dir_all(&project).with_context(|| format!("cannot create {}", project.display()))?;
        install(
            Command::new("node")
                .arg(self.package("npm").join("pack.mjs"))
                .arg("acp")
                .args([agent, &tarballs]),
            "the npm packages of the agent could not be packed",
        )?;
        // Users get the newest CLI; the test gets the one that all tests have.
        let pin = outrigger_claude::pin();
        let versions: serde_json::Map<_, _> = pin
            .packages
            .values()
            .map(|one| (one.package.clone(), pin.version.clone().into()))
            .collect();
        let manifest = serde_json::json!({ "name": "editor", "private": true, "overrides": versions });
        fs::write(project.join("package.json"), manifest.to_string())
            .with_context(|| format!("cannot write to {}", project.display()))?;
        install_tarballs(&tarballs, &project)
    }

    /// Drives the installed agent by clients that are not ours, and asks it what the registry of agents asks.
    fn acp_npx(&self) -> Result<()> {
        let programs = (self.clients.build)(&self.root)?;
        let outrigger = programs
            .get("outrigger")
            .context("cargo named no executable outrigger")?;
        let agent = self.acp().join("node_modules/.bin/outrigger-acp");
        (self.clients.drive)(&self.root, &self.target, outrigger, &agent)
    }

    /// Runs a test program with an empty home.
    fn check(&self, command: &mut Command, directory: &Path) -> Result<()> {
        let sandbox = Sandbox::new().context("cannot create a temporary directory")?;
        let named: Vec<_> = command
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.unwrap_or_default().to_owned()))
            .collect();
        let fetched = Fetch::new().context("cannot tell where the pinned CLI is kept")?;
        let status = command
            .current_dir(directory)
            .env_clear()
            .envs(sandbox.env("http://127.0.0.1:9"))
            .envs(named)
            .env("OUTRIGGER_CLAUDE_CACHE", fetched.directory())
            .env("OUTRIGGER_VERSION", self.version()?)
            .env("NO_COLOR", "1")
            // The SDK warns of options that are meant so.
            .env("NODE_NO_WARNINGS", "1")
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        ensure!(status.success(), "it ended with {status}; what it said is above");
        Ok(())
    }
}

/// Installs the packages of a directory in a project. The one with the executable has to have the licences of what is linked into it.
fn install_tarballs(tarballs: &Path, project: &Path) -> Result<()> {
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = Command::new(npm);
    command
        .current_dir(project)
        .args([
            "install",
            "--no-save",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .arg("--loglevel=error");
    for entry in fs::read_dir(tarballs).with_context(|| format!("cannot read {}", tarballs.display()))? {
        command.arg(entry?.path());
    }
    install(&mut command, "npm could not install the packages")?;
    let platform = only_file(&project.join("node_modules").join("@outrigger"))?;
    let told = read(&platform.join(notices::FILE))?;
    ensure!(
        told.contains("\nserde_json "),
        "{} has no licence of serde_json",
        platform.display()
    );
    Ok(())
}

/// The file that a directory has.
fn only_file(directory: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let files: Vec<_> = entries.collect::<Result<_, _>>()?;
    ensure!(
        files.len() == 1,
        "{} has {} files, not one",
        directory.display(),
        files.len()
    );
    Ok(files[0].path())
}
