//! Words that are looked up, in one text.

/// Words with spaces or line ends between them.
pub(crate) struct WordList(pub(crate) &'static str);

impl WordList {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.0.split_whitespace()
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.iter().any(|known| known == word)
    }
}
