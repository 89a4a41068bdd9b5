//! Replaces the texts in the output of a tool, and nothing else of it.

use outrigger_protocol::RawJson;

/// A picture of one transparent pixel: only a picture can replace a picture.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// The value with every text in it replaced by `notice`. Its shape stays: keys, numbers, and texts under `type`. Pictures become one
/// pixel. `None` if the value is not JSON.
///
/// The function scans the text without a parser: the value may be nested deeper than a parser goes, and have escapes that are not
/// Unicode.
pub(super) fn replace_texts(value: &RawJson, notice: &str) -> Option<RawJson> {
    let notice = serde_json::to_string(notice).ok()?;
    let source = value.get();
    let bytes = source.as_bytes();
    let mut masked = String::with_capacity(source.len());
    // The key whose value comes next, in its quotes; empty inside of arrays.
    let mut key = "";
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'"' {
            let end = bytes
                .get(at..)?
                .iter()
                .position(|&byte| byte == b'"')
                .map_or(bytes.len(), |next| at + next);
            let between = source.get(at..end)?;
            if between.contains(['[', '{', ',']) {
                key = "";
            }
            masked.push_str(between);
            at = end;
            continue;
        }
        let end = end_of_string(bytes, at)?;
        let text = source.get(at..end)?;
        let is_key = bytes
            .get(end..)?
            .iter()
            .find(|byte| !byte.is_ascii_whitespace())
            .is_some_and(|&byte| byte == b':');
        if is_key {
            key = text;
            masked.push_str(text);
        } else {
            masked.push_str(&replacement(key, text, &notice));
        }
        at = end;
    }
    RawJson::from_text(masked).ok()
}

/// Where the string that begins at `from` ends, its quote included.
fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn replacement(key: &str, text: &str, notice: &str) -> String {
    let is_picture = text.starts_with("\"image/");
    match key {
        // The pixel is of this kind.
        r#""type""# | r#""media_type""# | r#""mimeType""# if is_picture => r#""image/png""#.to_owned(),
        r#""type""# | r#""media_type""# | r#""mimeType""# => text.to_owned(),
        r#""base64""# | r#""data""# => format!("\"{PIXEL}\""),
        _ => notice.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let value = RawJson::from_text(text).unwrap();
        replace_texts(&value, "no \"x\"").unwrap().get().to_owned()
    }

    #[test]
    fn texts_go_and_the_shape_stays() {
        assert_eq!(
            masked(r#"{"stdout":"sec\"ret","stderr": "","n":[1,2.5e3,true,null],"isImage":false}"#),
            r#"{"stdout":"no \"x\"","stderr": "no \"x\"","n":[1,2.5e3,true,null],"isImage":false}"#
        );
        assert_eq!(masked(r#""secret""#), r#""no \"x\"""#);
        assert_eq!(masked("12"), "12");
        assert_eq!(
            masked(r#"[{"type":"text","text":"secret \\"},"secret",{"type" : ["secret"]}]"#),
            r#"[{"type":"text","text":"no \"x\""},"no \"x\"",{"type" : ["no \"x\""]}]"#
        );
        assert_eq!(
            masked(r#"{"type":"text","a":{"b":"secret"},"c":"secret"}"#),
            r#"{"type":"text","a":{"b":"no \"x\""},"c":"no \"x\""}"#
        );
    }

    #[test]
    fn what_no_parser_takes_is_masked_too() {
        let deep = format!("{}\"secret\"{}", "[".repeat(5000), "]".repeat(5000));
        let masked_deep = masked(&deep);
        assert!(
            !masked_deep.contains("secret")
                && masked_deep.starts_with("[[[[")
                && masked_deep.ends_with("]]]]")
        );
        assert_eq!(masked(r#"{"a":"\ud800 secret"}"#), r#"{"a":"no \"x\""}"#);
    }

    #[test]
    fn a_picture_stays_a_picture() {
        let one =
            masked(r#"{"type":"image","file":{"base64":"c2VjcmV0","type":"image/jpeg","originalSize":6}}"#);
        assert!(
            one.contains(PIXEL) && one.contains("image/png") && !one.contains("c2VjcmV0"),
            "{one}"
        );
        assert!(one.contains(r#""originalSize":6"#));
    }
}
