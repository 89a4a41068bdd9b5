//! `cargo xtask test`, from outside: on a small workspace of its own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
// There a program that runs cannot be replaced.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PASSES: &str = "#[test] fn passes() {}";

/// Two programs with a test that fails, one that is killed, one whose test leaves a process behind, and a doctest that fails.
fn project(place: &Path) {
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n".to_owned(),
        ),
        (
            "src/lib.rs",
            format!("//! ```\n//! panic!();\n//! ```\n{PASSES}\n"),
        ),
        (
            "tests/a.rs",
            format!("mod inner {{ #[test] fn fails() {{ panic!() }} }} {PASSES}"),
        ),
        (
            "tests/b.rs",
            "#[test] fn dies() { std::process::abort() }".to_owned(),
        ),
        (
            "tests/c.rs",
            "#[test] fn leaves() { std::process::Command::new(\"sleep\").arg(\"600\").spawn().unwrap(); }"
                .to_owned(),
        ),
        ("tests/d.rs", "#[test] fn fails() { panic!() }".to_owned()),
    ];
    for (name, content) in files {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn run(place: &Path, arguments: &[&str]) -> Output {
    command(place, arguments).output().unwrap()
}

fn command(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(["test", "--manifest-path"])
        .arg(place.join("Cargo.toml"))
        .args(["--offline", "--target-dir"])
        .arg(place.join("target"))
        .args(arguments)
        .env("CARGO", env!("CARGO"))
        // What those say who run this test is not for the tests in it.
        .env_remove(outrigger_needs::REQUIRED)
        .env_remove(outrigger_needs::LIST);
    command
}

#[test]
fn all_programs_are_run_and_all_failures_told_at_the_end() {
    let place = tempfile::tempdir().unwrap();
    project(place.path());
    let output = run(place.path(), &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    // So that nobody takes it for what this program says.
    let shown = said.replace('\n', "\n| ");
    assert_eq!(output.status.code(), Some(101), "{shown}");
    let (run, told) = said.split_once("\nFAILED, ").unwrap();
    // What the programs say themselves is there, too.
    assert_eq!(run.matches("test result: ok. ").count(), 2, "{shown}");
    assert_eq!(run.matches("test result: FAILED. ").count(), 3, "{shown}");
    // Why it failed is told again.
    assert!(
        told.contains("        | explicit panic\n") && !told.contains("backtrace"),
        "{shown}"
    );
    let told: Vec<&str> = told
        .lines()
        .filter(|line| !line.contains("cargo xtask test") && !line.starts_with("        | "))
        .collect();
    let expected = [
        "1 test of `--test a`",
        "    inner::fails",
        "",
        "FAILED, all of `--test b`: signal: 6, SIGABRT: process abort signal",
        "",
        "FAILED, 1 test of `--test d`",
        "    fails",
        "",
        "FAILED, 1 test of `--doc`",
        "    src/lib.rs - (line 1)",
        "",
        "all results: 3 passed; 3 failed; 0 ignored; 0 left out; 4 programs failed",
    ];
    assert_eq!(told, expected, "{shown}");

    // The command that is named runs that test alone.
    let exact = ["--test", "a", "--", "--exact", "inner::fails"];
    let again = String::from_utf8(self::run(place.path(), &exact).stdout).unwrap();
    assert!(
        again.ends_with("all results: 0 passed; 1 failed; 0 ignored; 0 left out; 1 programs failed\n"),
        "{again}"
    );
}

#[test]
fn the_first_failure_ends_the_run_where_that_is_wanted() {
    let place = tempfile::tempdir().unwrap();
    project(place.path());
    let output = run(place.path(), &["--fail-fast", "--test", "a", "--test", "d"]);
    let said = String::from_utf8(output.stdout).unwrap();
    // So that nobody takes it for what this program says.
    let shown = said.replace('\n', "\n| ");
    assert_eq!(output.status.code(), Some(101), "{shown}");
    assert!(said.ends_with("1 programs failed\n"), "{shown}");
}

#[test]
fn what_is_left_out_is_told_and_where_all_is_required_fails() {
    let place = tempfile::tempdir().unwrap();
    let needs = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/needs");
    let manifest = format!(
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ndoctest = false\n[workspace]\n[dependencies]\n\
         outrigger-needs = {{ path = '{needs}' }}\n"
    );
    fs::write(place.path().join("Cargo.toml"), manifest).unwrap();
    let test = "#[test] fn asks() { outrigger_needs::needs!(outrigger_needs::program(\"no-such\", \"get it\")); panic!() }";
    fs::create_dir(place.path().join("src")).unwrap();
    fs::write(place.path().join("src/lib.rs"), format!("{test} {PASSES}")).unwrap();

    let output = run(place.path(), &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    let end = "\nLEFT OUT, 1 test: there is no program `no-such`: get it\n    small: asks\n\n\
               all results: 1 passed; 0 failed; 0 ignored; 1 left out; 0 programs failed\n";
    assert!(
        output.status.success() && said.ends_with(end),
        "{}",
        said.replace('\n', "\n| ")
    );

    let output = command(place.path(), &[])
        .env(outrigger_needs::REQUIRED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let end = "all results: 1 passed; 1 failed; 0 ignored; 0 left out; 1 programs failed\n";
    assert!(
        !output.status.success() && said.ends_with(end),
        "{}",
        said.replace('\n', "\n| ")
    );
}

/// By Ctrl-C, or by SIGKILL: a server that does not heed the signal of a terminal, and one that has a process group of its own.
#[test]
#[cfg(target_os = "linux")]
fn a_run_that_is_ended_leaves_nothing_behind() {
    use std::time::{Duration, Instant};

    let place = tempfile::tempdir().unwrap();
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n".to_owned(),
        ),
        ("src/lib.rs", String::new()),
        (
            "tests/a.rs",
            r##"use std::os::unix::process::CommandExt as _;
            use std::process::Command;
            #[test] fn hangs() {
                let deaf = Command::new("sh").args(["-c", "trap '' INT; sleep 600; true"]).spawn().unwrap();
                let mut apart = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
                let pids = format!("{} {} {}", std::process::id(), deaf.id(), apart.id());
                std::fs::write("pids.new", pids).unwrap();
                std::fs::rename("pids.new", "pids").unwrap();
                apart.wait().unwrap();
            }"##
            .to_owned(),
        ),
    ];
    for (name, content) in files {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        let until = Instant::now() + Duration::from_secs(120);
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut running = command(place.path(), &["--test", "a"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pids = place.path().join("pids");
    wait("the tests run", &|| pids.exists());
    running.kill().unwrap();
    running.wait().unwrap();
    let pids = fs::read_to_string(pids).unwrap();
    for pid in pids.split(' ') {
        let stat = format!("/proc/{pid}/stat");
        let is_gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        wait(&format!("{pid} is left"), &is_gone);
    }
}
