//! What it costs to build a program of ten lines: with this SDK, and with others of its kind beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Names the file to which this program writes what each crate cost, when cargo runs it in place of the compiler.
const LOG: &str = "OUTRIGGER_BUILD_COST_LOG";

/// One build may take this long, also on a busy machine.
const LONGEST: Duration = Duration::from_secs(3600);

/// How many crates `--crates` lists.
const CRATES: usize = 12;

struct Program {
    name: &'static str,
    dependencies: &'static str,
    main: &'static str,
}

/// The first one is ours, `PATH` in it the SDK's directory. The others' versions are fixed, such that only we move.
const PROGRAMS: &[Program] = &[
    Program {
        name: "outrigger",
        dependencies: "outrigger = { path = 'PATH' }",
        main: r#"#[tokio::main]
async fn main() -> outrigger::Result<()> {
    let answer = outrigger::Agent::builder().query_text("What does this repository do?").await?;
    println!("{answer}");
    Ok(())
}
"#,
    },
    Program {
        name: "async-nats",
        dependencies: "async-nats = '=0.51.0'",
        main: r#"#[tokio::main]
async fn main() -> Result<(), async_nats::Error> {
    let client = async_nats::connect("localhost").await?;
    let reply = client.request("greet", "hello".into()).await?;
    println!("{}", String::from_utf8_lossy(&reply.payload));
    Ok(())
}
"#,
    },
    Program {
        name: "rmcp",
        dependencies: "rmcp = { version = '=3.9.0', features = ['client', 'transport-child-process'] }",
        main: r#"#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = rmcp::transport::TokioChildProcess::new(tokio::process::Command::new("server"))?;
    let client = rmcp::ServiceExt::serve((), server).await?;
    println!("{:?}", client.list_all_tools().await?);
    Ok(())
}
"#,
    },
];

#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Seconds of all processes of the build together; only where the system tells.
    cpu: Option<f64>,
    wall: f64,
    /// The same for building it again after a change of the program.
    again: Option<f64>,
    bytes: u64,
}

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let mut names = Vec::new();
    let mut by_crate = false;
    for argument in arguments {
        match argument.to_str() {
            Some("--crates") => by_crate = true,
            Some(name) if PROGRAMS.iter().any(|program| program.name == name) => names.push(name),
            _ => bail!("`build-cost` does not know {}", argument.display()),
        }
    }
    let chosen = |program: &&Program| names.is_empty() || names.contains(&program.name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let place = target.join("build-cost");
    let mut costs = BTreeMap::new();
    for program in PROGRAMS.iter().filter(chosen) {
        let directory = place.join(program.name);
        write(program, &root, &directory)?;
        fetch(&directory)?;
        for profile in ["debug", "release"] {
            fs::write(directory.join("src").join("main.rs"), program.main)?;
            println!("building {} ({profile})", program.name);
            let log = by_crate.then(|| directory.join("crates.log"));
            let cost = build(program, profile, &directory, log.as_deref())?;
            costs.insert((profile, program.name), cost);
            if let Some(log) = log {
                print_crates(&log)?;
            }
        }
    }
    print_table(&costs);
    Ok(ExitCode::SUCCESS)
}

/// Writes the program, a workspace of its own.
fn write(program: &Program, root: &Path, directory: &Path) -> Result<()> {
    let sdk = root.join("crates").join("sdk");
    let dependencies = program
        .dependencies
        .replace("PATH", sdk.to_str().context("the path of the tree is not UTF-8")?);
    let manifest = format!(
        "[package]
name = 'program'
version = '0.0.0'
edition = '2024'

[dependencies]
{dependencies}
tokio = {{ version = '1', features = ['macros', 'process', 'rt-multi-thread'] }}

[profile.release]
strip = 'symbols'

[workspace]
"
    );
    fs::create_dir_all(directory.join("src"))
        .with_context(|| format!("cannot create {}", directory.display()))?;
    fs::write(directory.join("Cargo.toml"), manifest)?;
    fs::write(directory.join("src").join("main.rs"), program.main)?;
    // The versions that this workspace has, as far as the program has the same dependencies.
    fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    Ok(())
}

fn cargo(directory: &Path) -> Command {
    let mut cargo = crate::cargo::cargo();
    cargo.current_dir(directory).stdin(Stdio::null());
    // Dependencies of a program come from a registry, and are not built incrementally.
    cargo.env("CARGO_INCREMENTAL", "0");
    // What would make the build warm, or another one.
    for name in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", LOG] {
        cargo.env_remove(name);
    }
    cargo
}

/// Brings the packages. Without a network, those of an earlier run have to do.
fn fetch(directory: &Path) -> Result<()> {
    for arguments in [&["fetch", "--quiet"][..], &["fetch", "--quiet", "--offline"]] {
        let mut fetch = cargo(directory);
        if fetch
            .args(arguments)
            .status()
            .context("cannot run cargo")?
            .success()
        {
            return Ok(());
        }
    }
    bail!("the packages could not be fetched, and are not all there from an earlier run");
}

fn build(program: &Program, profile: &str, directory: &Path, log: Option<&Path>) -> Result<Cost> {
    let output = tempfile::tempdir_in(directory)?;
    let mut build = cargo(directory);
    build.args(["build", "--quiet", "--offline"]);
    if profile == "release" {
        build.arg("--release");
    }
    build.env("CARGO_TARGET_DIR", output.path());
    if let Some(log) = log {
        fs::write(log, "")?;
        build.env("RUSTC_WRAPPER", std::env::current_exe()?).env(LOG, log);
    }
    let (cpu, wall) = timed(&mut build, program)?;
    let main = directory.join("src").join("main.rs");
    fs::write(&main, format!("{}\nfn _changed() {{}}\n", program.main))?;
    let (again, _) = timed(&mut build, program)?;
    let name = format!("program{}", std::env::consts::EXE_SUFFIX);
    Ok(Cost {
        cpu,
        wall,
        again,
        bytes: fs::metadata(output.path().join(profile).join(name))?.len(),
    })
}

/// The seconds of CPU, where the system tells them, and of the clock.
fn timed(build: &mut Command, program: &Program) -> Result<(Option<f64>, f64)> {
    let (began, cpu) = (Instant::now(), cpu_of_children());
    let mut child = build.spawn().context("cannot run cargo")?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            bail!("the build of {} took more than {LONGEST:?}", program.name);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if !status.success() {
        bail!("{} could not be built", program.name);
    }
    let cpu = cpu_of_children().zip(cpu).map(|(after, before)| after - before);
    Ok((cpu, began.elapsed().as_secs_f64()))
}

/// The seconds of all processes that this one has waited for, and of those that they have waited for.
fn cpu_of_children() -> Option<f64> {
    // Linux counts in hundredths, whatever the machine.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have anything in it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / TICKS)
}

fn print_table(costs: &BTreeMap<(&str, &str), Cost>) {
    println!("\n| build | program | CPU s | x | wall s | x | again, CPU s | MB |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    let seconds = |cpu: Option<f64>| cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.1}"));
    for ((profile, name), cost) in costs {
        let first = costs.get(&(*profile, PROGRAMS[0].name)).unwrap_or(cost);
        let times = first.cpu.zip(cost.cpu).map(|(first, cpu)| first / cpu);
        println!(
            "| {profile} | {name} | {} | {} | {:.0} | {:.1} | {} | {:.1} |",
            seconds(cost.cpu),
            seconds(times),
            cost.wall,
            first.wall / cost.wall,
            seconds(cost.again),
            cost.bytes as f64 / 1e6,
        );
    }
    println!(
        "\nx: how many times as much ours takes. again: after a change of the program. A release build is stripped."
    );
}

fn print_crates(log: &Path) -> Result<()> {
    let log = fs::read_to_string(log)?;
    let mut crates: Vec<(f64, &str)> = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(cpu, name)| Some((cpu.parse().ok()?, name)))
        .collect();
    crates.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (cpu, name) in crates.iter().take(CRATES) {
        println!("{cpu:8.2} s of CPU  {name}");
    }
    Ok(())
}

/// Runs the compiler in cargo's place and writes down what it cost. `None` if this is not what cargo has started us for.
pub(crate) fn in_place_of_rustc() -> Option<Result<ExitCode>> {
    let log = std::env::var_os(LOG)?;
    let mut arguments = std::env::args_os().skip(1);
    let mut rustc = Command::new(arguments.next()?);
    let arguments: Vec<OsString> = arguments.collect();
    let name = arguments.iter().position(|argument| argument == "--crate-name");
    let name = name.and_then(|at| arguments.get(at + 1)?.to_str());
    rustc.args(&arguments);
    Some(rustc.status().context("cannot run rustc").and_then(|status| {
        if let (Some(name), Some(cpu)) = (name, cpu_of_children()) {
            use std::io::Write as _;
            let mut log = fs::OpenOptions::new().append(true).open(log)?;
            log.write_all(format!("{cpu:.2} {name}\n").as_bytes())?;
        }
        Ok(match status.code() {
            Some(0) => ExitCode::SUCCESS,
            Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
            None => ExitCode::FAILURE,
        })
    }))
}
