//! The text to find: in messages, and in the lines that have it.

use std::ops::Range;

use aho_corasick::packed;
use memchr::memmem;

/// How many characters of a needle are looked for in raw lines.
const WINDOW: usize = 3;

/// A text to look for in decoded text.
#[derive(Debug, Clone)]
pub(super) struct Needle {
    text: String,
    /// The characters to compare when the case does not matter.
    folded: Vec<char>,
    ignores_case: bool,
}

/// A character for comparisons that ignore the case. ASCII stays apart from the rest (the Kelvin sign is no `k`), and a character
/// without a lower case of one character is unchanged.
fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) if !lower.is_ascii() => lower,
        _ => c,
    }
}

impl Needle {
    pub(super) fn new(text: &str, ignores_case: bool) -> Self {
        Self {
            text: text.to_owned(),
            folded: text.chars().map(fold).collect(),
            ignores_case,
        }
    }

    /// Where the needle is first, in bytes.
    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        if !self.ignores_case {
            let at = memmem::find(text.as_bytes(), self.text.as_bytes())?;
            return Some(at..at + self.text.len());
        }
        let Some(first) = self.folded.first() else {
            return Some(0..0);
        };
        if let Ok(low) = u8::try_from(*first)
            && low.is_ascii()
        {
            let mut places = memchr::memchr2_iter(low, low.to_ascii_uppercase(), text.as_bytes());
            return places.find_map(|at| self.at(text, at));
        }
        text.char_indices().find_map(|(at, _)| self.at(text, at))
    }

    /// Whether the needle is at this place, and how far it goes.
    fn at(&self, text: &str, at: usize) -> Option<Range<usize>> {
        let mut rest = text[at..].chars();
        for wanted in &self.folded {
            if fold(rest.next()?) != *wanted {
                return None;
            }
        }
        Some(at..text.len() - rest.as_str().len())
    }
}

/// Finds the lines of a transcript that may have a needle, without decoding them. It errs on one side only: it may find a line without
/// the needle, and always finds one with it, however its writer escaped it.
#[derive(Debug)]
pub(super) struct Sieve {
    /// `None` if any line may hold it.
    quick: Option<Quick>,
}

#[derive(Debug)]
struct Quick {
    searcher: packed::Searcher,
    /// How many of the patterns are writings of the needle; the others are escapes that may hide it.
    writings: usize,
    /// The run of ASCII that the window is a part of, and where the window is in it.
    run: Option<(Vec<u8>, usize)>,
    ignores_case: bool,
}

/// Whether JSON can write a character only as itself, or as `\u` and four digits.
fn is_plain(c: char) -> bool {
    !c.is_control() && !matches!(c, '"' | '\\' | '/' | char::REPLACEMENT_CHARACTER)
}

impl Sieve {
    pub(super) fn new(needle: &Needle) -> Self {
        let quick = Self::ascii(needle).or_else(|| Self::other(needle));
        Self { quick }
    }

    /// Searches by a run of ASCII in the needle.
    fn ascii(needle: &Needle) -> Option<Quick> {
        let is_fit = |c: char| c.is_ascii() && is_plain(c);
        let runs = needle.text.split(|c| !is_fit(c)).filter(|run| !run.is_empty());
        // A window of the full width if there is one, and of those the one with the rarest letters.
        let windows = runs.flat_map(|run| {
            let run = run.as_bytes();
            run.windows(WINDOW.min(run.len()))
                .enumerate()
                .map(move |(at, window)| (run, at, window))
        });
        let (run, at, window) = windows.max_by_key(|(_, _, window)| {
            let rarity = |byte: &u8| rarity(byte.to_ascii_lowercase());
            (window.len(), window.iter().map(rarity).sum::<usize>())
        })?;
        let mut writings = vec![Vec::new()];
        for byte in window {
            let either = [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()];
            let either = match either {
                [low, up] if needle.ignores_case && low != up => vec![low, up],
                _ => vec![*byte],
            };
            writings = product(
                &writings,
                &either.iter().map(std::slice::from_ref).collect::<Vec<_>>(),
            );
        }
        // An escape of printable ASCII.
        let escapes = (2..=7).map(|digit| format!("\\u00{digit}").into_bytes());
        Quick::new(writings, escapes, Some((run.to_vec(), at)), needle.ignores_case)
    }

    /// Searches by other characters.
    fn other(needle: &Needle) -> Option<Quick> {
        let is_fit = |c: char| !c.is_ascii() && is_plain(c);
        let runs = needle.text.split(|c| !is_fit(c));
        let run = runs.max_by_key(|run| run.len()).filter(|run| !run.is_empty())?;
        let mut writings = vec![Vec::new()];
        for c in run.chars().take(2) {
            let mut either = vec![c];
            if needle.ignores_case {
                // All that has the same lower case; no letter with one is beyond this.
                either.extend(('\u{80}'..'\u{20000}').filter(|other| *other != c && fold(*other) == fold(c)));
            }
            let either: Vec<String> = either.into_iter().map(String::from).collect();
            writings = product(
                &writings,
                &either.iter().map(String::as_bytes).collect::<Vec<_>>(),
            );
        }
        Quick::new(writings, [b"\\u".to_vec()], None, needle.ignores_case)
    }

    /// Where in a text there is a line that may hold the needle: some byte of the line, at `from` or behind it.
    pub(super) fn find(&self, text: &[u8], mut from: usize) -> Option<usize> {
        let Some(quick) = &self.quick else {
            return (from < text.len()).then_some(from);
        };
        loop {
            let span = aho_corasick::Span {
                start: from,
                end: text.len(),
            };
            let found = quick.searcher.find_in(text, span)?;
            if found.pattern().as_usize() >= quick.writings || quick.fits(text, found.start()) {
                return Some(found.start());
            }
            from = found.start() + 1;
        }
    }
}

impl Quick {
    fn new(
        writings: Vec<Vec<u8>>,
        escapes: impl IntoIterator<Item = Vec<u8>>,
        run: Option<(Vec<u8>, usize)>,
        ignores_case: bool,
    ) -> Option<Self> {
        let count = writings.len();
        let mut builder = packed::Config::new().builder();
        builder.extend(writings);
        builder.extend(escapes);
        Some(Self {
            searcher: builder.build()?,
            writings: count,
            run,
            ignores_case,
        })
    }

    /// Whether the whole run is around the window that was found. If a part of it is escaped, the escape is found by itself.
    fn fits(&self, text: &[u8], at: usize) -> bool {
        let Some((run, offset)) = &self.run else {
            return true;
        };
        let Some(start) = at.checked_sub(*offset) else {
            return false;
        };
        text.get(start..start + run.len()).is_some_and(|found| {
            if self.ignores_case {
                found.eq_ignore_ascii_case(run)
            } else {
                found == run
            }
        })
    }
}

fn product(before: &[Vec<u8>], either: &[&[u8]]) -> Vec<Vec<u8>> {
    let with = |start: &Vec<u8>| {
        let start = start.clone();
        either.iter().map(move |next| [&start, *next].concat())
    };
    before.iter().flat_map(with).collect()
}

/// How rare a byte is in transcripts, roughly: what JSON itself and words are made of is common.
fn rarity(byte: u8) -> usize {
    const COMMON: &[u8] = b"\": ,etaoinsrldchumpfg0123456789-_.{}[]wybv()=;k<>xjqz";
    COMMON
        .iter()
        .position(|common| *common == byte)
        .unwrap_or(COMMON.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sieve(needle: &str, ignores_case: bool, line: &str) -> bool {
        let sieve = Sieve::new(&Needle::new(needle, ignores_case));
        sieve.find(line.as_bytes(), 0).is_some()
    }

    #[test]
    fn a_needle_is_found_where_it_is_first_whatever_the_case() {
        let any = |needle: &str, text: &str| Needle::new(needle, true).find(text);
        assert_eq!(any("WORLD", "hello World world"), Some(6..11));
        assert_eq!(any("grösse", "Die GRÖSSE"), Some(4..11));
        assert_eq!(any("σ", "aΣ"), Some(1..3));
        assert_eq!(any("k", "\u{212a}"), None);
        assert_eq!(any("", "x"), Some(0..0));
        assert_eq!(any("aab", "aaab"), Some(1..4));
        let exact = |needle: &str, text: &str| Needle::new(needle, false).find(text);
        assert_eq!(exact("World", "world World"), Some(6..11));
        assert_eq!(exact("", "x"), Some(0..0));
    }

    #[test]
    fn lines_without_the_needle_are_sieved_out() {
        let line = r#"{"text":"say \"hello\" to the Wörld\n\u001b[0m"}"#;
        for needle in ["hello", "HELLO", "wörld", "say \"hello", "\n", "RLD\n", "\"", ""] {
            assert!(sieve(needle, true, line), "{needle:?}");
        }
        for needle in ["help", "goodbye", "hello\nworld", "日本", "say hello?"] {
            assert!(!sieve(needle, true, &line.replace("\\u001b", "")), "{needle:?}");
        }
        assert!(!sieve("HELLO", false, line) && sieve("hello", false, line));
        // An escape of a control character hides no letter, one of a letter may.
        assert!(!sieve("zoo", true, line) && sieve("zoo", true, r#"{"text":"z\u006fo"}"#));
    }

    proptest! {
        #[test]
        fn a_line_with_the_needle_is_never_sieved_out(before in ".{0,20}", needle in "[a-zA-Z/\"\\\\\n äÖßςΣ日🦀\u{1b}Kk.]{0,8}", after in ".{0,20}", upper in any::<bool>(), escaped in proptest::collection::vec(any::<bool>(), 60)) {
            let written = if upper { needle.chars().map(|c| if c.to_uppercase().count() == 1 { c.to_uppercase().next().unwrap() } else { c }).collect() } else { needle.clone() };
            let text = format!("{before}{written}{after}");
            let mut line = String::from("{\"text\":\"");
            for (nth, c) in text.chars().enumerate() {
                if escaped[nth % escaped.len()] && (nth % 3 == 0 || !c.is_ascii_alphanumeric()) {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        line += &format!("\\u{unit:04x}");
                    }
                } else {
                    let quoted = serde_json::to_string(&c).unwrap();
                    line += &quoted[1..quoted.len() - 1];
                }
            }
            line += "\"}";
            let wanted = Needle::new(&needle, upper);
            if wanted.find(&text).is_some() {
                prop_assert!(sieve(&needle, upper, &line), "{needle:?} in {line}");
            }
        }
    }
}
