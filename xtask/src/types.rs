//! Writes the types of the protocol that are leaves: objects, sets of strings and unions that only say what upstream declares.
//!
//! What a type has comes from `upstream/inventory.json`; what it is called in Rust and what its docs say comes from the overlay, the
//! files of `upstream/tools` and its like, one for each module. `--check` writes nothing, and fails if a module is not what would be
//! written.

mod declared;
mod overlay;
mod write;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use self::declared::Declared;
use self::overlay::Overlay;

/// The beginning of the line behind the docs of each written file.
pub(crate) const WRITTEN: &str = "// Written by `cargo xtask types`";

/// A folder of overlays, where its modules are, and where the inventory has their types and which of them must have one.
struct Group {
    overlay: &'static str,
    modules: &'static str,
    types: &'static str,
    roots: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        overlay: "upstream/tools",
        modules: "crates/protocol/src/tools",
        types: "tool_types",
        roots: &["tool_inputs", "tool_outputs"],
    },
    Group {
        overlay: "upstream/settings",
        modules: "crates/protocol/src/settings",
        types: "types",
        roots: &[],
    },
    Group {
        overlay: "upstream/hooks",
        modules: "crates/protocol/src/shared/hook",
        types: "types",
        roots: &["hook_inputs"],
    },
    Group {
        overlay: "upstream/requests",
        modules: "crates/protocol/src/outbound/control",
        types: "types",
        roots: &["control_requests", "control_responses"],
    },
];

pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let is_check = match arguments {
        [] => false,
        [argument] if argument == "--check" => true,
        _ => bail!("`types` takes nothing but --check"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("the workspace")?;
    let mut stale = Vec::new();
    for group in GROUPS {
        for (file, text) in modules(root, group)? {
            let before = std::fs::read_to_string(&file).unwrap_or_default();
            if before == text {
                continue;
            }
            if is_check {
                stale.push(file.display().to_string());
            } else {
                std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
                println!("wrote {}", file.display());
            }
        }
    }
    ensure!(
        stale.is_empty(),
        "run `cargo xtask types`: these are not what it writes:\n{}",
        stale.join("\n")
    );
    Ok(ExitCode::SUCCESS)
}

/// The modules of a group, each with the text that it has to have.
fn modules(root: &Path, group: &Group) -> Result<Vec<(PathBuf, String)>> {
    let overlays = Overlay::read_all(&root.join(group.overlay))?;
    let inventory = root.join("upstream/inventory.json");
    let inventory = std::fs::read(&inventory).with_context(|| format!("{}", inventory.display()))?;
    let inventory = serde_json::from_slice(&inventory).context("upstream/inventory.json")?;
    let declared = Declared::new(&inventory, group.types, &overlays)?;
    declared.all_have_a_type(&inventory, group.roots)?;
    let text = |overlay: &Overlay| {
        let text = write::module(overlay, &declared, group.overlay)?;
        anyhow::Ok((
            root.join(group.modules).join(format!("{}.rs", overlay.module)),
            formatted(root, &text)?,
        ))
    };
    overlays
        .iter()
        .map(|overlay| text(overlay).with_context(|| format!("{}/{}.toml", group.overlay, overlay.module)))
        .collect()
}

/// The text as rustfmt has it.
fn formatted(root: &Path, text: &str) -> Result<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run rustfmt")?;
    let mut input = rustfmt.stdin.take().context("rustfmt has no stdin")?;
    input
        .write_all(text.as_bytes())
        .context("cannot write to rustfmt")?;
    drop(input);
    let output = rustfmt.wait_with_output().context("cannot wait for rustfmt")?;
    ensure!(
        output.status.success(),
        "rustfmt failed on what was made:\n{text}"
    );
    String::from_utf8(output.stdout).context("rustfmt wrote no UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERLAY: &str = r#"
doc = "A tool."

[PaintInput]
doc = "What it takes."
new = true
[PaintInput.fields]
wall = "The wall."
coatCount = "How often."

[Colour]
doc = "A colour."
of = "PaintInput.colour"
[Colour.values]
red = "Like a rose."
"#;

    /// The module that is written for one type of upstream, or what is wrong.
    fn written(declared: serde_json::Value, overlay: &str) -> Result<String, String> {
        let inventory = serde_json::json!({"tool_types": {"PaintInput": declared}});
        let place = tempfile::tempdir().expect("a directory");
        std::fs::write(place.path().join("paint.toml"), overlay).expect("it is written");
        let overlays = Overlay::read_all(place.path()).map_err(|error| format!("{error:#}"))?;
        Declared::new(&inventory, "tool_types", &overlays)
            .and_then(|declared| write::module(&overlays[0], &declared, "upstream/tools"))
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_type_is_written_by_its_declaration_and_what_is_new_in_it_is_named() {
        let colour = "colour?";
        let fields = serde_json::json!({"wall": "string", "coatCount?": "number", colour: "'red'"});
        let with_colour = OVERLAY.replace("coatCount =", "colour = \"Its colour.\"\ncoatCount =");
        let text = written(fields.clone(), &with_colour).expect("all is declared");
        for line in [
            "pub wall: String",
            "pub colour: Option<Colour>",
            "pub coat_count: Option<u64>",
            "pub fn new(wall: impl Into<String>) -> Self",
            "Red = \"red\"",
        ] {
            assert!(text.contains(line), "no {line} in\n{text}");
        }
        let fails = |declared, overlay: &str, why: &str| {
            let error = written(declared, overlay).expect_err(why);
            assert!(error.contains(why), "{error}");
        };
        fails(
            fields.clone(),
            OVERLAY,
            "add `colour = \"what it is\"` to [PaintInput.fields]",
        );
        let mut more = fields.clone();
        more[colour] = "'blue' | 'red'".into();
        fails(
            more,
            &with_colour,
            "add `blue = \"what it means\"` to [Colour.values]",
        );
        let mut fewer = fields.clone();
        fewer.as_object_mut().expect("an object").remove("coatCount?");
        fails(fewer, &with_colour, "coatCount: upstream does not declare it");
        let elsewhere = with_colour.replace("PaintInput.colour", "PaintInput.color");
        fails(
            fields,
            &elsewhere,
            "[Colour] is of PaintInput.color, which upstream does not declare",
        );
    }

    #[test]
    fn a_request_is_written_by_what_has_to_be_there_and_a_closed_set_as_such() {
        let overlay = r#"
doc = "Requests."
tag = "subtype"

[Paint]
doc = "Paints a wall."
of = "PaintInput"
request = true
[Paint.fields]
wall = "The wall."
coats = "How many coats."
primer = "The primer; `None` for none."
tone = "The tone."

[Tone]
doc = "A tone."
of = "PaintInput.tone"
closed = true
[Tone.values]
warm = "A warm tone."
"#;
        let fields = serde_json::json!({
            "subtype": "'paint'", "wall": "string", "coats?": "number", "primer?": "null | string", "tone": "'warm' | null",
        });
        let text = written(fields, overlay).expect("all is declared");
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "crate::outbound::control::request! { /// Paints a wall. pub struct Paint { required {",
            "wall: \"wall\" => String, /// The tone. tone: \"tone\" => Option<Tone>, } optional {",
            "coats: \"coats\" => u64, } nullable {",
            "primer: \"primer\" => String, } } }",
            "closed_enum! { /// A tone. #[non_exhaustive] pub enum Tone { /// A warm tone. Warm = \"warm\", } }",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
    }
}
