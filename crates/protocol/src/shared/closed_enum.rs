//! The macro behind string sets that carry authority or that only we choose from.

/// A string set that is closed on purpose: a value outside it is an error, in both directions.
///
/// Used for what we decide and send. What the CLI reports goes through `open_enum!`.
macro_rules! closed_enum {
    ($(#[$m:meta])* $vis:vis enum $name:ident { $( $(#[$vm:meta])* $var:ident = $wire:literal ),+ $(,)? }) => {
        $(#[$m])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $( $(#[$vm])* #[serde(rename = $wire)] $var, )+
        }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$var),+];

            /// The value as it is on the wire and on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$var => $wire, )+
                }
            }

            /// The value that is written like this, if there is one.
            pub fn from_wire(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use closed_enum;
