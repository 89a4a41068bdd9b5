//! Keys as paths. File systems take 255 bytes for a name, and a name of many capitals has three for each.

use std::path::{Path, PathBuf};

use outrigger_sessions::store::Result;

use super::ESCAPE;
use super::files::entries;
use crate::names::{name, text_of};

/// The most bytes of one name.
const LONGEST: usize = 255;

/// The bytes of each piece of a name that is too long, but of its last one.
const PIECE: usize = 200;

/// Ends the name of a directory that is a piece of a longer name: no name ends so, for no two digits follow the escape.
const GOES_ON: &str = "%+";

/// Where that which has this name in a key is, from the directory that it is in. A name that is too long is cut to pieces, and each
/// piece is in the directory of the one before it.
pub(super) fn place(text: &str, extension: &str) -> PathBuf {
    let name = name(text, ESCAPE);
    let mut place = PathBuf::new();
    let mut rest = name.as_str();
    if rest.len() + extension.len() > LONGEST {
        // A name is ASCII, so it can be cut anywhere.
        while let Some((piece, more)) = rest.split_at_checked(PIECE).filter(|(_, more)| !more.is_empty()) {
            place.push(format!("{piece}{GOES_ON}"));
            rest = more;
        }
    }
    place.push(format!("{rest}{extension}"));
    place
}

/// All that is in a directory by the names that keys have for it, each with its path.
pub(super) fn places(directory: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), directory.to_owned())];
    while let Some((before, directory)) = open.pop() {
        for path in entries(&directory)? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if let Some(piece) = name.strip_suffix(GOES_ON) {
                open.push((format!("{before}{piece}"), path));
            } else if let Some(last) = name.strip_suffix(extension)
                && let Some(text) = text_of(&format!("{before}{last}"), ESCAPE)
            {
                found.push((text, path));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_too_long_is_cut() {
        assert_eq!(place("a/B", ".jsonl"), Path::new("a%2f%42.jsonl"));
        let longest = "x".repeat(LONGEST);
        assert_eq!(place(&longest, ""), Path::new(&longest));
        let cut = place(&longest, ".jsonl");
        assert_eq!(
            cut,
            Path::new(&format!("{}%+/{}.jsonl", "x".repeat(200), "x".repeat(55)))
        );
        for length in [85, 86, 200, 207, 400] {
            let place = place(&"A".repeat(length), ".jsonl");
            assert!(
                place.iter().all(|name| name.len() <= LONGEST),
                "{}",
                place.display()
            );
        }
    }

    #[test]
    fn every_name_is_found_again_and_no_two_are_one() {
        let root = tempfile::tempdir().unwrap();
        let mut texts: Vec<String> = ["", "%", "+", "%+", "a", "A"].map(str::to_owned).into();
        for length in [
            66, 67, 83, 84, 85, 86, 133, 134, 200, 201, 207, 249, 250, 255, 256, 400,
        ] {
            texts.push("A".repeat(length));
            texts.push("a".repeat(length));
            texts.push(format!("{}é", "a".repeat(length)));
            texts.push(format!("{}b", "A".repeat(length)));
        }
        for text in &texts {
            let path = root.path().join(place(text, ".jsonl"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create_new(path).unwrap();
        }
        let mut found: Vec<_> = places(root.path(), ".jsonl")
            .unwrap()
            .into_iter()
            .map(|(text, _)| text)
            .collect();
        found.sort();
        texts.sort();
        assert_eq!(found, texts);
    }
}
