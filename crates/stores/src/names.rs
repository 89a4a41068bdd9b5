//! Keys as names of files and objects.

/// A key's text as a name that means the same on every system: all but small letters, digits, `-` and `_` is written as `escape` and
/// two digits for each byte.
pub(crate) fn name(text: &str, escape: char) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            _ => name.push_str(&format!("{escape}{byte:02x}")),
        }
    }
    // No other text has the escape alone as its name.
    if name.is_empty() { escape.into() } else { name }
}

/// The text that this name stands for; `None` if the name is not one of ours.
pub(crate) fn text_of(name: &str, escape: char) -> Option<String> {
    let mut texts = name.split(escape);
    let mut bytes = texts.next()?.as_bytes().to_vec();
    if name.len() == escape.len_utf8() && bytes.is_empty() {
        return Some(String::new());
    }
    for text in texts {
        bytes.push(u8::from_str_radix(text.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&text.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        for text in [
            "",
            "a",
            "A",
            "%",
            "=",
            "a/b",
            "..",
            "é",
            "-_",
            "a%2Fb",
            "\u{1f600}",
        ] {
            for escape in ['%', '='] {
                let name = name(text, escape);
                assert!(name.is_ascii() && !name.contains(['/', '.']), "{name}");
                assert_eq!(text_of(&name, escape).as_deref(), Some(text), "{name}");
            }
        }
        assert_eq!(text_of("a%", '%'), None);
        assert_eq!(text_of("a%zz", '%'), None);
        assert_eq!(text_of("%ff", '%'), None);
    }
}
