//! Colours, for a person at a terminal and nobody else.

use std::io::IsTerminal;

/// Paints text, or leaves it alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Paints if `stream` is a terminal, unless `NO_COLOR` is set or the terminal is a dumb one.
    pub(crate) fn on(stream: &impl IsTerminal) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self(stream.is_terminal() && !set("NO_COLOR") && !dumb)
    }

    /// Whether colours are used.
    pub(crate) fn is_on(self) -> bool {
        self.0
    }

    pub(crate) fn bold(self, text: impl AsRef<str>) -> String {
        self.wrap("1", text.as_ref())
    }

    pub(crate) fn dim(self, text: impl AsRef<str>) -> String {
        self.wrap("2", text.as_ref())
    }

    pub(crate) fn red(self, text: impl AsRef<str>) -> String {
        self.wrap("31", text.as_ref())
    }

    pub(crate) fn green(self, text: impl AsRef<str>) -> String {
        self.wrap("32", text.as_ref())
    }

    pub(crate) fn yellow(self, text: impl AsRef<str>) -> String {
        self.wrap("33", text.as_ref())
    }

    pub(crate) fn cyan(self, text: impl AsRef<str>) -> String {
        self.wrap("36", text.as_ref())
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
