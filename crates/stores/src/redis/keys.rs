//! What things are called in Redis.

use std::fmt::Write as _;

use outrigger_sessions::store::SessionKey;

/// The names of all that belongs to a transcript. In a cluster they are in one place, for they have the same text in braces.
#[derive(Debug)]
pub(super) struct Names {
    /// A hash: the session's lease.
    pub(super) lease: String,
    /// A hash: when the transcript was appended to, its summary and the like.
    pub(super) info: String,
    /// A list.
    pub(super) entries: String,
    /// A set.
    pub(super) uuids: String,
    /// A set: the names of the session's parts.
    pub(super) parts: String,
}

impl Names {
    pub(super) fn of(prefix: &str, key: &SessionKey) -> Self {
        let mut session = format!("{prefix}:{{");
        escape(&mut session, &key.project_key);
        session.push('/');
        escape(&mut session, &key.session_id);
        session.push('}');
        let of_transcript = |what: &str| match &key.subpath {
            None => format!("{session}:{what}"),
            // The part needs no escapes: nothing follows it.
            Some(part) => format!("{session}:{what}:{part}"),
        };
        Self {
            info: of_transcript("info"),
            entries: of_transcript("entries"),
            uuids: of_transcript("uuids"),
            lease: format!("{session}:lease"),
            parts: format!("{session}:parts"),
        }
    }
}

/// A set: the sessions of a project. In a cluster it is on another node than they.
pub(super) fn index(prefix: &str, project: &str) -> String {
    let mut index = format!("{prefix}:{{");
    escape(&mut index, project);
    index.push_str("}:sessions");
    index
}

/// The version of what is stored.
pub(super) fn version(prefix: &str) -> String {
    format!("{prefix}:version")
}

/// A hash: a value that processes share.
pub(super) fn value(prefix: &str, name: &str) -> String {
    format!("{prefix}:value:{name}")
}

/// Escapes only what would end the text in braces, or could be mistaken for a separator.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '%' | '/' | '{' | '}' => {
                // Writing to a text does not fail.
                let _ = write!(out, "%{:02x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_session_has_the_same_text_in_braces() {
        let key = SessionKey::new("-p", "s").with_subpath("subagents/agent-{1}");
        let names = Names::of("outrigger", &key);
        assert_eq!(names.info, "outrigger:{-p/s}:info:subagents/agent-{1}");
        let main = Names::of("outrigger", &key.main());
        for name in [
            &names.entries,
            &names.uuids,
            &names.lease,
            &main.info,
            &main.parts,
        ] {
            assert!(name.starts_with("outrigger:{-p/s}:"), "{name}");
        }
        assert_eq!(names.lease, main.lease);
        assert_eq!(names.parts, main.parts);
    }

    #[test]
    fn different_keys_have_different_names() {
        let name = |project: &str, session: &str| Names::of("x", &SessionKey::new(project, session)).info;
        let names = [
            name("a/b", "c"),
            name("a", "b/c"),
            name("a%2fb", "c"),
            name("a}b", "c"),
            name("", ""),
            index("x", "a"),
            index("x", "a/b"),
            version("x"),
        ];
        let apart: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(apart.len(), names.len(), "{names:?}");
        assert_eq!(name("a}b", "{"), "x:{a%7db/%7b}:info");
    }
}
