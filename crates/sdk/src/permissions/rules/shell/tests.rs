use proptest::prelude::*;

use super::*;

/// The words of the commands, `…` for what is not known, and whether the line is plain, odd or murky.
fn show(text: &str) -> (Vec<String>, &'static str) {
    let script = read(text);
    let word = |word: &Word| -> String {
        word.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Char(c) => *c,
                Piece::Any => '…',
            })
            .collect()
    };
    let parts = script.parts.iter().map(|part| {
        let words = part.words.iter().map(word);
        words
            .chain(part.targets.iter().map(|target| format!(">{}", word(target))))
            .collect::<Vec<_>>()
            .join(" ")
    });
    let kind = match (script.odd, script.murky) {
        (None, false) => "plain",
        (Some(_), false) => "odd",
        _ => "murky",
    };
    (parts.collect(), kind)
}

#[test]
fn plain_lines() {
    for (line, parts) in [
        ("git status", &["git status"][..]),
        ("  a   b\tc  ", &["a b c"]),
        ("a && b || c | d; e\nf", &["a", "b", "c", "d", "e", "f"]),
        ("a |& b", &["a", "b"]),
        ("a &&\n b", &["a", "b"]),
        ("a;", &["a"]),
        ("a\n\n", &["a"]),
        ("a 'b; c' \"d && e\" f\\;g", &["a b; c d && e f;g"]),
        ("a 'x\ny'", &["a x\ny"]),
        ("'a' \"b\"c'd'", &["a bcd"]),
        ("a \\\n b", &["a b"]),
        ("a b\\\nc", &["a bc"]),
        ("a *.txt x?[a-z]", &["a ….txt x……a-z]"]),
        ("a {} +", &["a {} +"]),
        ("a ~/x a=b", &["a ~/x a=b"]),
        (
            "a 2>&1 >/dev/null 2> /dev/null </dev/null &>/dev/null >&2 2>&-",
            &["a"],
        ),
        ("a '$(x)' '`x`' '${x}'", &["a $(x) `x` ${x}"]),
        ("a \"\\$x \\` \\\" \\\\ \\n\"", &["a $x ` \" \\ \\n"]),
    ] {
        assert_eq!(
            show(line),
            (parts.iter().map(|part| (*part).to_owned()).collect(), "plain"),
            "{line:?}"
        );
    }
}

#[test]
fn what_is_more_than_plain_is_seen_and_looked_into() {
    for (line, parts) in [
        ("a & b", &["a", "b"][..]),
        ("a $(b c) d", &["b c", "a … d"]),
        ("a `b c`", &["b c", "a …"]),
        ("a \"x $(b \"y\") z\"", &["b y", "a x … z"]),
        ("a `b \\`c\\``", &["c", "b …", "a …"]),
        ("a <(b) >(c)", &["b", "c", "a … …"]),
        ("(a; b)", &["a", "b"]),
        ("{ a; }", &["a"]),
        ("if a; then b; else c; fi", &["a", "b", "c"]),
        ("while ! a; do b; done", &["a", "b"]),
        ("X=1 Y[0]+=2 a", &["a"]),
        ("X=1", &[]),
        ("a $X ${X} $1 $? $$", &["X", "a … … … … …"]),
        ("a ${X:-$(b)}", &["b", "X:-…", "a …"]),
        ("a $((1+1))", &["1+1", "a …"]),
        ("a $'\\x41\\'' b", &["a … b"]),
        ("a $\"x\"", &["a x"]),
        ("a > out 2>> err < in", &["a >out >err >in"]),
        (">out a", &["a >out"]),
        ("a &> all", &["a >all"]),
        ("a >| x", &["a >x"]),
        ("a {b,c}", &["a …b,c}"]),
        ("a # b", &["a # b"]),
        ("a <<< b", &["a b"]),
        ("a <<'E'\n$(b)\nE\nc", &["a", "c"]),
        ("a <<E\nx\nE", &["a"]),
        ("a <<-E\n\tx\n\tE\nc", &["a", "c"]),
        ("f() { a; }; f", &["f", "a", "f"]),
        ("a\u{a0}b", &["a…b"]),
        ("a\u{200b}", &["a…"]),
        ("a \r", &["a …"]),
        ("&& a", &["a"]),
        ("a &&", &["a"]),
        ("a;; b", &["a", "b"]),
        ("=a", &["=a"]),
        ("~[a]", &["~…a]"]),
        ("a 12>&x", &["a >x"]),
    ] {
        assert_eq!(
            show(line),
            (parts.iter().map(|part| (*part).to_owned()).collect(), "odd"),
            "{line:?}"
        );
    }
}

#[test]
fn what_cannot_be_told_apart_is_murky() {
    for line in [
        "a 'b",
        "a \"b",
        "a `b",
        "a $(b",
        "a ${b",
        "a $'b",
        "a \\",
        "a <<E\nb",
        "a <<E",
        "a <<E\n$(b)\nE",
        "sh <<'E'\nb\nE",
        "cat <<'E' | sh\nb\nE",
        "cat <<'E' > x\nb\nE\nbash x",
        "case x in x) a;; esac",
        "a >",
        "a > > b",
    ] {
        assert_eq!(show(line).1, "murky", "{line:?}");
    }
    assert_eq!(show(&"x".repeat(LONGEST + 1)).1, "murky");
    assert_eq!(show(&"$(".repeat(2000)).1, "murky");
    assert_eq!(show(&"(".repeat(5000)).1, "murky");
}

proptest! {
    /// Whatever it is, it is read to its end.
    #[test]
    fn nothing_brings_it_down(text in "\\PC{0,60}", shell in "[a-c '\"\\\\`$(){}<>&|;\n#=!*~\\[\\]E-]{0,40}") {
        read(&text);
        read(&shell);
    }

    /// A word in single quotation marks is one word, whatever is in it.
    #[test]
    fn quoted_words_stay_whole(words in proptest::collection::vec("[^'\0-\u{1f}\u{7f}]{0,12}", 1..5)) {
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let script = read(&line);
        prop_assert_eq!(script.odd, None);
        let read: Vec<_> = script.parts[0].words.iter().map(|word| word.text().unwrap()).collect();
        prop_assert_eq!(read, words);
    }
}
