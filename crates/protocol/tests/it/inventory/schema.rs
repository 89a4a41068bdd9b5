//! The inventory, and values that have everything which it says a type has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The string of all samples.
pub(crate) const TEXT: &str = "a sample's text";

/// Where the lists about upstream are.
pub(crate) fn upstream() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../upstream")
}

/// What `cargo xtask inventory` wrote.
#[derive(Debug)]
pub(crate) struct Inventory(Value);

impl Inventory {
    pub(crate) fn read() -> Self {
        let file = upstream().join("inventory.json");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask inventory`", file.display()));
        Self(serde_json::from_str(&text).unwrap())
    }

    /// What a section lists: for each name the types.
    pub(crate) fn section(&self, section: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let entries = self.0[section].as_object().expect(section);
        entries.iter().map(|(name, types)| {
            let types = types.as_array().unwrap().iter();
            (name.as_str(), types.map(|it| it.as_str().unwrap()).collect())
        })
    }

    /// The strings of a constant.
    pub(crate) fn constant(&self, name: &str) -> Vec<&str> {
        let list = self.0["constants"][name].as_array().expect(name);
        list.iter().map(|it| it.as_str().unwrap()).collect()
    }

    /// Values of the type which together have each field and each member of each union and set; `types` is the section.
    pub(crate) fn samples(&self, types: &str, name: &str) -> Vec<Value> {
        Sampler::new(self, types, None).named(name)
    }

    /// The same, with a string that no set has in place of each member of a set. What a string stands for is in `sets`.
    pub(crate) fn probes(&self, types: &str, name: &str, sets: &mut Sets) -> Vec<Value> {
        Sampler::new(self, types, Some(sets)).named(name)
    }
}

/// Sets of strings, by the string that stood for them in a probe.
#[derive(Debug, Default)]
pub(crate) struct Sets(BTreeMap<String, Vec<String>>);

impl Sets {
    const PREFIX: &str = "any of ";

    fn stand_in(&mut self, members: Vec<String>) -> String {
        let name = format!("{}{}", Self::PREFIX, members.join(", "));
        self.0.insert(name.clone(), members);
        name
    }

    /// The members of the set that the string stood for.
    pub(crate) fn get(&self, stand_in: &str) -> Option<&[String]> {
        self.0.get(stand_in).map(Vec::as_slice)
    }
}

/// Where only somebody else knows what may be there: nothing of it is compared.
pub(crate) fn is_opaque(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.is_empty() || EXTERNAL.iter().any(|name| external(name).as_ref() == Some(value))
        }
        _ => false,
    }
}

const EXTERNAL: &[&str] = &[
    "BetaMessage",
    "BetaRawMessageStreamEvent",
    "BetaUsage",
    "ElicitResult",
    "JSONRPCMessage",
    "MessageParam",
    "ToolAnnotations",
];

/// A value of a type that another package declares.
fn external(name: &str) -> Option<Value> {
    Some(match name {
        "UUID" => json!("1b4e28ba-2fa1-11d2-883f-0016d3cca427"),
        "MessageParam.content" => json!(TEXT),
        "MessageParam" => json!({"role": "user", "content": TEXT}),
        "BetaMessage" => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "model",
            "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }),
        "BetaRawMessageStreamEvent" => json!({"type": "message_stop"}),
        "BetaUsage" => json!({"input_tokens": 1, "output_tokens": 1}),
        "ElicitResult" => json!({"action": "accept", "content": {"name": "value"}}),
        "JSONRPCMessage" => json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        "ToolAnnotations" => json!({"readOnlyHint": true}),
        _ => return None,
    })
}

struct Sampler<'a> {
    types: &'a Map<String, Value>,
    sets: Option<&'a mut Sets>,
    /// The types that are being made: one that holds itself is made once.
    within: Vec<&'a str>,
}

impl<'a> Sampler<'a> {
    fn new(inventory: &'a Inventory, types: &str, sets: Option<&'a mut Sets>) -> Self {
        Self {
            types: inventory.0[types].as_object().expect(types),
            sets,
            within: Vec::new(),
        }
    }

    fn named(&mut self, name: &str) -> Vec<Value> {
        let Some((name, declared)) = self.types.get_key_value(name) else {
            panic!("the inventory has no type `{name}`");
        };
        if self.within.contains(&name.as_str()) {
            return Vec::new();
        }
        self.within.push(name);
        let made = match declared {
            Value::Object(fields) => self.object(fields),
            Value::Array(atoms) => {
                let atoms: Vec<&str> = atoms.iter().map(|it| it.as_str().unwrap()).collect();
                self.union(&atoms)
            }
            other => panic!("{name} is {other}"),
        };
        self.within.pop();
        made
    }

    /// As many objects as the field with the most alternatives needs, and one that has only what it must.
    fn object(&mut self, fields: &'a Map<String, Value>) -> Vec<Value> {
        let mut made = Vec::new();
        for (key, written) in fields {
            let (key, is_optional) = match key.strip_suffix('?') {
                Some(key) => (key, true),
                None => (key.as_str(), false),
            };
            if key == "[string]" {
                continue;
            }
            let atoms: Vec<&str> = written.as_str().unwrap().split(" | ").collect();
            let mut values = match atoms[..] {
                // Taken for what their names say.
                ["any"] if key.ends_with("_id") || key.ends_with("Id") => vec![json!(TEXT)],
                _ => self.union(&atoms),
            };
            if values.is_empty() && !is_optional {
                values.push(Value::Null);
            }
            made.push((key, is_optional, values));
        }
        let most = made.iter().map(|(_, _, values)| values.len()).max().unwrap_or(0);
        let pick = |index: usize, sparse: bool| -> Value {
            let fields = made
                .iter()
                .filter(|(_, is_optional, values)| !(values.is_empty() || sparse && *is_optional))
                .map(|(key, _, values)| ((*key).to_owned(), values[index % values.len()].clone()));
            Value::Object(fields.collect())
        };
        let mut objects: Vec<Value> = (0..most.max(1)).map(|index| pick(index, false)).collect();
        objects.push(pick(0, true));
        objects
    }

    fn union(&mut self, atoms: &[&str]) -> Vec<Value> {
        let literals: Vec<String> = atoms
            .iter()
            .filter_map(|atom| literal(atom))
            .map(str::to_owned)
            .collect();
        let mut values = Vec::new();
        // A single literal is no set, but tells what the object is.
        if let (Some(sets), true) = (&mut self.sets, literals.len() > 1) {
            values.push(Value::String(sets.stand_in(literals)));
        } else {
            values.extend(literals.into_iter().map(Value::String));
        }
        for atom in atoms.iter().filter(|atom| literal(atom).is_none()) {
            values.extend(self.atom(atom));
        }
        values
    }

    fn atom(&mut self, atom: &str) -> Vec<Value> {
        if let Some(element) = atom.strip_suffix("[]") {
            return vec![Value::Array(self.atom(element))];
        }
        if let Some(element) = atom.strip_prefix('{').and_then(|atom| atom.strip_suffix('}')) {
            let values = self.atom(element);
            let entries = values
                .into_iter()
                .enumerate()
                .map(|(index, value)| (format!("key{index}"), value));
            return vec![Value::Object(entries.collect())];
        }
        if let Some(name) = atom.strip_prefix('@') {
            return external(name).into_iter().collect();
        }
        match atom {
            "" | "function" => Vec::new(),
            "string" => vec![json!(TEXT)],
            "number" => vec![json!(7)],
            "boolean" => vec![json!(true)],
            "true" => vec![json!(true)],
            "false" => vec![json!(false)],
            "null" => vec![Value::Null],
            "any" | "object" => vec![json!({})],
            number if number.parse::<f64>().is_ok() => vec![serde_json::from_str(number).unwrap()],
            name => self.named(name),
        }
    }
}

fn literal(atom: &str) -> Option<&str> {
    atom.strip_prefix('\'')?.strip_suffix('\'')
}
