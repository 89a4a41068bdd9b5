//! The laws over the inputs that were found interesting, or broke a law once, before.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Panics anywhere, in tasks too; where nobody sees them otherwise.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The targets share the list, so they take turns.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn inputs(folder: &str, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

fn holds(target: &str, seeds: Vec<Vec<u8>>, run: fn(&[u8])) {
    let _alone = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let found = inputs("corpus", target);
    assert!(!found.is_empty(), "the corpus of {target} is missing");
    let seeds = seeds
        .into_iter()
        .enumerate()
        .map(|(number, seed)| (PathBuf::from(format!("seed {number}")), seed));
    let all: Vec<_> = found
        .into_iter()
        .chain(inputs("crashes", target))
        .chain(seeds)
        .collect();
    let mixed = mixed(&all).map(|(number, input)| (PathBuf::from(format!("{target}-mixed-{number}")), input));
    let mixed: Vec<_> = mixed.collect();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(|panic| PANICS.lock().unwrap().push(panic.to_string())));
    let mut broken = Vec::new();
    for (path, input) in all.into_iter().chain(mixed) {
        let _ = catch_unwind(AssertUnwindSafe(|| run(&input)));
        for panic in PANICS.lock().unwrap().drain(..) {
            broken.push(format!("{}: {panic}\n  the input: {input:?}", path.display()));
        }
    }
    std::panic::set_hook(usual);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Inputs mixed of others, always the same ones: a small search without coverage. `OUTRIGGER_FUZZ_MIXED` is how many, and
/// `OUTRIGGER_FUZZ_SEED` begins elsewhere.
fn mixed(of: &[(PathBuf, Vec<u8>)]) -> impl Iterator<Item = (u64, Vec<u8>)> + use<'_> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let mut state = number("OUTRIGGER_FUZZ_SEED")
        .unwrap_or(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        | 1;
    let mut below = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % bound.max(1)
    };
    (0..number("OUTRIGGER_FUZZ_MIXED").unwrap_or(300)).map(move |number| {
        let mut input = of[below(of.len())].1.clone();
        for _ in 0..below(6) + 1 {
            let at = below(input.len());
            match below(4) {
                0 => {
                    let other = &of[below(of.len())].1;
                    let from = below(other.len());
                    let piece = &other[from..(from + below(30)).min(other.len())];
                    input.splice(at..at, piece.iter().copied());
                }
                1 => drop(input.drain(at..(at + below(8)).min(input.len()))),
                2 => input.insert(at, u8::try_from(below(34)).unwrap()),
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << below(8);
                    }
                }
            }
        }
        (number, input)
    })
}

#[test]
fn codec() {
    holds(
        "codec",
        outrigger_fuzz::seeds::codec(),
        outrigger_fuzz::codec::run,
    );
}

#[test]
fn core() {
    holds("core", outrigger_fuzz::seeds::core(), outrigger::core_laws);
}

#[test]
fn host() {
    holds("host", outrigger_fuzz::seeds::host(), outrigger_host_http::laws);
}

#[test]
fn session() {
    holds(
        "session",
        outrigger_fuzz::seeds::session(),
        outrigger_fuzz::session::run,
    );
}
