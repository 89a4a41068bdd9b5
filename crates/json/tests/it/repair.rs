//! Lone surrogates.

use outrigger_json::repair::lone_surrogates;

#[test]
fn pairs_and_plain_text_are_left_alone() {
    assert_eq!(lone_surrogates(r#""\ud83d\ude00 \\ud83d \n \u0041""#), None);
}

#[test]
fn lone_halves_become_the_replacement_character() {
    assert_eq!(
        lone_surrogates(r#""a\ud83db\ude00""#).as_deref(),
        Some(r#""a\ufffdb\ufffd""#)
    );
    assert_eq!(
        lone_surrogates(r#""\ud83d\ud83d\ude00""#).as_deref(),
        Some(r#""\ufffd\ud83d\ude00""#)
    );
    assert_eq!(lone_surrogates(r#""\\\ud83d""#).as_deref(), Some(r#""\\\ufffd""#));
}
