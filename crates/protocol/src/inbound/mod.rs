//! What the CLI writes on its stdout.

mod notice;

pub use notice::*;

use crate::json::RawJson;

/// Generates [`Message`] and its decoding, one line a kind.
macro_rules! messages {
    ($( $(#[$m:meta])* $wire:literal => $var:ident($ty:ty) ),+ $(,)?) => {
        /// One frame, decoded: everything the CLI may write on stdout, by its `type`.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum Message {
            $( $(#[$m])* $var(Box<$ty>), )+
            /// A `type` that this build does not know, as it came.
            Unknown(RawJson),
        }

        impl Message {
            /// The types that this build knows.
            pub const KNOWN: &'static [&'static str] = &[$($wire),+];

            pub(crate) fn from_text(kind: &str, text: &str) -> Result<Self, serde_json::Error> {
                match kind {
                    $( $wire => serde_json::from_str(text).map(|body| Self::$var(Box::new(body))), )+
                    _ => {
                        crate::drift::note("Message", kind, || crate::drift::DriftKind::UnknownTag);
                        RawJson::from_text(text).map(Self::Unknown)
                    }
                }
            }

            /// Writes the typed part again, without the `type` tag. Tests compare it with what came.
            pub fn to_body(&self) -> Result<RawJson, serde_json::Error> {
                match self {
                    $( Self::$var(body) => RawJson::encode(&**body), )+
                    Self::Unknown(raw) => Ok(raw.clone()),
                }
            }
        }
    };
}

messages! {
    /// A sign of life while a long control request runs.
    "keep_alive" => KeepAlive(KeepAlive),
    /// What the user might ask next.
    "prompt_suggestion" => PromptSuggestion(PromptSuggestion),
}
