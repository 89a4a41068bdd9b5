//! Objects that belong to somebody else and may be written back: what has no field is kept.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;

use crate::RawJson;

/// An object of optional fields that keeps what it has no field for.
///
/// `open_struct! { /// docs  pub struct Name { /// docs  field: "wireName" => Type, … } }` generates a struct of
/// `Option<Type>` fields with one more, `extra`, plus `Default`, `Deserialize`, `Serialize` and `KNOWN`. With
/// `pub struct Name in "type"` it is the body of a variant of a union by that tag, and leaves the tag to the union.
///
/// A key whose value does not fit its field is kept in `extra` too, and so is an explicit null: one misspelt value
/// does not make a whole settings file unreadable, and is still there when the file is written back.
macro_rules! open_struct {
    ($(#[$m:meta])* $vis:vis struct $name:ident $(in $tag:literal)? {
        $( $(#[$fm:meta])* $field:ident : $wire:literal => $ty:ty ),* $(,)?
    }) => {
        $(#[$m])*
        #[derive(Debug, Default)]
        #[non_exhaustive]
        $vis struct $name {
            $( $(#[$fm])* pub $field: Option<$ty>, )*
            /// Keys that this build has no field for, and values that their field cannot hold, as they came. A
            /// key that is set in its field too is not written from here.
            pub extra: std::collections::BTreeMap<String, $crate::RawJson>,
        }

        impl $name {
            /// The keys that have a field.
            pub const KNOWN: &'static [&'static str] = &[$($wire),*];
        }

        // A derived `clone` would be inlined, and each crate would compile all of the settings again.
        impl Clone for $name {
            #[inline(never)]
            fn clone(&self) -> Self {
                Self {
                    $( $field: self.$field.clone(), )*
                    extra: self.extra.clone(),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut this = Self::default();
                for (key, raw) in $crate::open_struct::entries(deserializer)? {
                    let left = match key.as_str() {
                        $( $wire => $crate::open_struct::fit(stringify!($name), &key, raw, &mut this.$field), )*
                        $( $tag => None, )?
                        _ => {
                            let unknown = $crate::drift::DriftKind::UnknownTag;
                            $crate::drift::note(stringify!($name), &key, unknown);
                            Some(raw)
                        }
                    };
                    if let Some(raw) = left {
                        this.extra.insert(key, raw);
                    }
                }
                Ok(this)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $( $crate::open_struct::write(&mut map, $wire, &self.$field)?; )*
                for (key, raw) in &self.extra {
                    let set = match key.as_str() {
                        $( $wire => self.$field.is_some(), )*
                        $( $tag => true, )?
                        _ => false,
                    };
                    if !set {
                        map.serialize_entry(key, raw)?;
                    }
                }
                map.end()
            }
        }
    };
}
pub(crate) use open_struct;

/// The entries of an object; of a key that is there twice, the last one, as in JavaScript.
pub(crate) fn entries<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, RawJson>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = BTreeMap<String, RawJson>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some((key, raw)) = map.next_entry()? {
                entries.insert(key, raw);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Entries)
}

/// Sets the field, or gives the value back if the field cannot hold it.
pub(crate) fn fit<T: DeserializeOwned>(
    place: &'static str,
    key: &str,
    raw: RawJson,
    field: &mut Option<T>,
) -> Option<RawJson> {
    let mut set = |raw: &RawJson| raw.read().map(|value| *field = Some(value));
    fit_any(place, key, raw, &mut set)
}

/// [`fit`], without the field's type.
#[inline(never)]
fn fit_any(
    place: &'static str,
    key: &str,
    raw: RawJson,
    set: &mut dyn FnMut(&RawJson) -> Result<(), serde_json::Error>,
) -> Option<RawJson> {
    if raw.is_null() {
        return Some(raw);
    }
    match set(&raw) {
        Ok(()) => None,
        Err(error) => {
            crate::drift::note(place, key, crate::drift::DriftKind::Misfit(error.to_string()));
            Some(raw)
        }
    }
}

/// Writes the field if it is set.
pub(crate) fn write<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &'static str,
    field: &Option<T>,
) -> Result<(), M::Error> {
    match field {
        Some(value) => map.serialize_entry(key, value),
        None => Ok(()),
    }
}
