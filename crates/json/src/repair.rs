//! Mends text that JavaScript writes and Rust strings cannot hold.

/// Replaces each lone UTF-16 surrogate escape by `\ufffd`; `None` when there is none.
///
/// JavaScript strings may be cut inside a surrogate pair and `JSON.stringify` then writes `\ud83d` alone, which
/// no Rust string can hold. The mended text has the same length and differs nowhere else.
pub fn lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(step) = memchr::memchr(b'\\', &bytes[at..]) {
        let here = at + step;
        match unit(bytes, here) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, here + 6), Some(0xDC00..=0xDFFF)) => at = here + 12,
            Some(0xD800..=0xDFFF) => {
                mended.get_or_insert_with(|| bytes.to_vec())[here..here + 6].copy_from_slice(b"\\ufffd");
                at = here + 6;
            }
            // Any other escape is two bytes long as far as finding the next backslash is concerned.
            _ => at = (here + 2).min(bytes.len()),
        }
    }
    mended.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The UTF-16 code unit of a `\uXXXX` escape that begins at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
