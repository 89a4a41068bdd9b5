//! What the demo shows: short lines, step by step.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::paint::Paint;
use crate::plain::plain;

/// The terminal. Clones are the same one.
///
/// Nobody may be reading any more; the demo then goes on to clean up after itself, so failures to write are passed over.
#[derive(Debug, Clone)]
pub(crate) struct DemoScreen {
    pub(crate) paint: Paint,
    /// Whether a line has been begun and not ended: text of the model that is being streamed.
    open: Arc<Mutex<bool>>,
}

impl DemoScreen {
    pub(crate) fn new() -> Self {
        Self {
            paint: Paint::on(&io::stdout()),
            open: Arc::default(),
        }
    }

    pub(crate) fn title(&self, text: &str) {
        self.line(&self.paint.bold(text));
        self.line("");
    }

    /// Something that is so, with a label.
    pub(crate) fn fact(&self, label: &str, text: &str) {
        let label = self.paint.bold(format!("{label:<10}"));
        let text = plain(text).replace('\n', "\n            ");
        self.line(&format!("  {label}{text}"));
    }

    /// A step begins.
    pub(crate) fn step(&self, number: usize, text: &str) {
        self.line("");
        self.line(&self.paint.bold(format!("{number}  {text}")));
    }

    /// Somebody says or does something.
    pub(crate) fn event(&self, who: &str, text: &str) {
        let who = self.paint.cyan(format!("{who:<8}"));
        let text = plain(text).replace('\n', "\n           ");
        self.line(&format!("   {who}{text}"));
    }

    /// A piece of the model's text, as it comes.
    pub(crate) fn piece(&self, text: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = io::stdout().lock();
        if !*open {
            let _ = write!(out, "   {}", self.paint.cyan(format!("{:<8}", "model")));
            *open = true;
        }
        let _ = write!(out, "{}", plain(text).replace('\n', "\n           "));
        let _ = out.flush();
    }

    /// A step ended well.
    pub(crate) fn good(&self, text: &str) {
        self.line(&format!(
            "   {} {}",
            self.paint.green("✓"),
            self.paint.dim(plain(text))
        ));
    }

    /// Something is not as it should be.
    pub(crate) fn bad(&self, text: &str) {
        self.line(&format!("   {} {}", self.paint.red("✗"), plain(text)));
    }

    pub(crate) fn end(&self, text: &str) {
        self.line("");
        self.line(&self.paint.green(text));
    }

    /// A line of its own.
    pub(crate) fn line(&self, text: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = io::stdout().lock();
        if std::mem::take(&mut *open) {
            let _ = writeln!(out);
        }
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }
}
