//! `cargo xtask layers`: which top-level modules of a crate use which, the lowest first.

mod graph;
pub(crate) mod sources;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use self::graph::Graph;

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut crates: Vec<_> = std::fs::read_dir(root.join("crates"))?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    crates.sort();
    if let Some(unknown) = arguments.iter().find(|argument| !crates.contains(argument)) {
        bail!("there is no crates/{}", unknown.display());
    }
    crates.retain(|name| arguments.is_empty() || arguments.contains(name));
    for name in crates {
        let Some(graph) = Graph::of_crate(&root.join("crates").join(&name))? else {
            continue;
        };
        let (modules, edges) = (graph.modules.len(), graph.edges.len());
        println!("{}: {modules} modules, {edges} edges", name.display());
        for (height, set) in graph.floors() {
            let used = graph.edges.keys().filter(|(user, _)| set.contains(user.as_str()));
            let mut used: Vec<&str> = used.map(|(_, used)| used.as_str()).collect();
            used.retain(|used| !set.contains(used));
            used.sort_unstable();
            used.dedup();
            let set: Vec<&str> = set.into_iter().collect();
            println!("{height:4}  {} <- {}", set.join(" = "), used.join(" "));
        }
        for (set, edges) in graph.circles() {
            println!("  a circle of {} modules, {} edges:", set.len(), edges.len());
            println!("    by the shortest way: {}", graph.round(&set).join(" -> "));
            for ((from, to), place) in edges {
                println!("    {from} -> {to}  {place}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
