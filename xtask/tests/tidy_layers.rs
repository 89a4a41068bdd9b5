//! The top-level modules of a crate are layers: none needs what is above it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../src/layers/graph.rs"]
mod graph;
#[path = "../src/layers/sources.rs"]
mod sources;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use self::graph::Graph;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn crates() -> Vec<(String, Graph)> {
    let members = std::fs::read_dir(root().join("crates")).unwrap();
    let mut members: Vec<_> = members.map(|entry| entry.unwrap().path()).collect();
    members.extend(["fuzz", "xtask"].map(|member| root().join(member)));
    members.sort();
    members
        .iter()
        .filter_map(|member| {
            let name = member.file_name()?.to_str()?.to_owned();
            let graph = Graph::of_crate(member).unwrap_or_else(|error| panic!("{name}: {error:#}"))?;
            Some((name, graph))
        })
        .collect()
}

#[test]
fn no_modules_need_each_other_in_a_circle() {
    let mut found = String::new();
    let crates = crates();
    assert!(
        crates.iter().any(|(name, _)| name == "sdk"),
        "the crates are read"
    );
    for (name, graph) in &crates {
        for (circle, edges) in graph.circles() {
            let round = graph.round(&circle).join(" -> ");
            let circle: Vec<&str> = circle.into_iter().collect();
            writeln!(
                found,
                "\nThese modules of {name} need each other: {}\n  by the shortest way: {round}",
                circle.join(", ")
            )
            .unwrap();
            for ((from, to), place) in &edges {
                writeln!(found, "  {from} -> {to}  at {place}").unwrap();
            }
        }
    }
    assert!(
        found.is_empty(),
        "A module needs one above it. Move what both need to the lower one, or hand it over as data; \
         `cargo xtask layers` prints who needs whom.\n{found}"
    );
}

/// What a crate of these files is read as, as `module -> module`.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = place.path().join("src").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let graph = Graph::of_crate(place.path()).unwrap().unwrap();
    let edges = graph.edges.iter();
    edges
        .map(|((from, to), place)| format!("{from} -> {to} {place}"))
        .collect()
}

#[test]
fn every_way_to_name_a_module_counts() {
    let root = "mod a;\nmod b;\nmod c;\npub use b::{Deep, inner::{Other as Renamed}};\n";
    for used in [
        "use crate::b;",
        "use crate::{c::{self, d}, b::x as y};",
        "use crate::Deep;",
        "use crate::{Renamed};",
        "use super::b::x;",
        "fn f() -> super::b::X { todo!() }",
        "fn f() { crate::b::x::<crate::c::X>() }",
        "macro_rules! m { () => { $crate::b::x() } }",
        "fn f() { assert!(vec![1].iter().all(|_| crate::b::x())) }",
        "fn f() { crate::told!(1) }",
        "#[derive(Serialize)] struct S { #[serde(with = \"crate::b::text\")] x: u8 }",
        "mod inner { use super::super::b::x; }",
        "#[cfg(any(test, feature = \"x\"))] use crate::b;",
    ] {
        let b = "#[macro_export]\nmacro_rules! told { () => {} }";
        let found = edges(&[("lib.rs", root), ("a.rs", used), ("b/mod.rs", b), ("c.rs", "")]);
        assert!(
            found.contains(&"a -> b src/a.rs:1".to_owned()),
            "{used}: {found:?}"
        );
    }
    let below = edges(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod d;"),
        ("a/d.rs", "\nuse super::super::b::x;"),
        ("b.rs", ""),
    ]);
    assert_eq!(below, ["a -> b src/a/d.rs:2"]);
}

#[test]
fn what_is_no_use_does_not_count() {
    for unused in [
        "// crate::b\n/* crate::b */\n/// [`b`](crate::b)\nfn f() { \"see crate::b\"; 'b'; }",
        "#[cfg(test)]\nmod tests { use crate::b; }",
        "#[cfg(all(test, unix))]\nimpl Of<u8, u16> for X<crate::b::Y, u8> { fn f() { crate::b::x() } }",
        "struct S { #[cfg(test)] x: crate::b::X, y: u8 }",
        "#[cfg(test)] use crate::b::{x, y};\nfn f() {}",
        "#[cfg(test)]\n#[path = \"no_such_file.rs\"]\nmod tests;",
        "pub(crate) fn f() { super::a::f(); self::f(); b::f(); other::b::f() }",
        "use crate::a::b;\nfn f<'a>() { let crate_b = b; }",
    ] {
        let found = edges(&[("lib.rs", "mod a; mod b;"), ("a.rs", unused), ("b.rs", "")]);
        assert!(found.is_empty(), "{unused}: {found:?}");
    }
}

#[test]
fn a_circle_is_found_with_its_edges_and_those_beside_it_are_not() {
    let place = tempfile::tempdir().unwrap();
    let src = place.path().join("src");
    std::fs::create_dir_all(&src).unwrap();
    for (file, text) in [
        ("main.rs", "mod a; mod b; mod c; mod top; mod low;"),
        ("a.rs", "use crate::b;"),
        ("b.rs", "use crate::{c, low};"),
        ("c.rs", "\nuse crate::a;"),
        ("top.rs", "use crate::a;"),
        ("low.rs", ""),
    ] {
        std::fs::write(src.join(file), text).unwrap();
    }
    let graph = Graph::of_crate(place.path()).unwrap().unwrap();
    let circles = graph.circles();
    let [(circle, edges)] = &circles[..] else {
        panic!("{} circles", circles.len());
    };
    assert_eq!(*circle, BTreeSet::from(["a", "b", "c"]));
    assert_eq!(graph.round(circle), ["a", "b", "c", "a"]);
    let edges: Vec<String> = edges
        .iter()
        .map(|((from, to), place)| format!("{from} {to} {place}"))
        .collect();
    assert_eq!(edges, ["a b src/a.rs:1", "b c src/b.rs:1", "c a src/c.rs:2"]);
    assert_eq!(
        graph.floors(),
        [
            (0, BTreeSet::from(["low"])),
            (1, circle.clone()),
            (2, BTreeSet::from(["top"]))
        ]
    );
}
