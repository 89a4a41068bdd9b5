use super::*;

const SAMPLE: &str = "\
# What was done

The *first* step is **easy**: run `cargo test` in
the snake_case_dir, 2 * 3 times, and see [the docs](https://example.com/a).

1. one
2. two with `code`
   - inside
   - also **bold**
3. three

- [x] loose

- items

```rust
fn main() {
    println!(\"*not bold*\");

}
```
> quoted
> twice

| name | count |
|------|------:|
| a    | 1     |
| long name | 200 |

---
The end &#27;[2J is near.
";

/// The text without our colours.
fn bare(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        bare.push_str(&rest[..at]);
        let end = rest[at..].find('m').expect("the only sequences are colours");
        let codes = &rest[at + 2..at + end];
        assert!(
            codes.chars().all(|char| char.is_ascii_digit() || char == ';'),
            "{codes:?}"
        );
        rest = &rest[at + end + 1..];
    }
    bare.push_str(rest);
    bare
}

fn shown(text: &str, piece: usize) -> String {
    let mut markdown = Markdown::default();
    let mut out = String::new();
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(piece) {
        out.push_str(&markdown.push(&piece.iter().collect::<String>(), 80));
    }
    out.push_str(&markdown.finish(80));
    out
}

#[test]
fn blocks_are_rendered() {
    insta::assert_snapshot!(bare(&shown(SAMPLE, usize::MAX)), @r#"
    What was done

    The first step is easy: run cargo test in
    the snake_case_dir, 2 * 3 times, and see the docs (https://example.com/a).

    1. one
    2. two with code
       - inside
       - also bold
    3. three

    - [x] loose

    - items

    fn main() {
        println!("*not bold*");

    }

    | quoted
    | twice

    name       count
    ---------  -----
    a              1
    long name    200

    ---

    The end \u{1b}[2J is near.
    "#);
}

#[test]
fn it_looks_the_same_in_whatever_pieces_it_comes() {
    let whole = bare(&shown(SAMPLE, usize::MAX));
    for piece in [1, 2, 3, 5, 8, 40] {
        assert_eq!(bare(&shown(SAMPLE, piece)), whole, "in pieces of {piece}");
    }
}

#[test]
fn emphasis_and_code_have_colours() {
    assert_eq!(
        shown("An *old* **bold** `code`.", 1),
        "An \x1b[3mold\x1b[0m \x1b[1mbold\x1b[0m \x1b[36mcode\x1b[0m.\n"
    );
}

#[test]
fn a_paragraph_comes_word_by_word() {
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push("Now I look at th", 80), "Now I look at th");
    assert_eq!(markdown.push("e file, and ", 80), "e file, and");
    // What may be bold waits until it is known.
    assert_eq!(markdown.push("then ", 80), " then");
    assert_eq!(markdown.push("**it is ", 80), "");
    assert_eq!(
        markdown.push("over** at last", 80),
        " \x1b[1mit is over\x1b[0m at last"
    );
    assert_eq!(markdown.finish(80), "\n");
}

#[test]
fn code_comes_line_by_line() {
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push("```\nlet a", 80), "");
    assert_eq!(markdown.push(" = 1;\nlet", 80), "\x1b[36mlet a = 1;\x1b[0m\n");
    assert_eq!(
        markdown.push(" b;\n```\nAnd ", 80),
        "\x1b[36mlet b;\x1b[0m\n\nAnd"
    );
}

#[test]
fn a_list_comes_item_by_item_with_its_numbers() {
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push("3. a\n4. b", 80), "");
    assert_eq!(markdown.push("\n4. c\n", 80), "3. a\n4. b\n");
    assert_eq!(markdown.finish(80), "5. c\n");
}

#[test]
fn a_table_that_is_too_wide_is_a_list_of_its_cells() {
    let table = "| name | what it does |\n|---|---|\n| alpha | stands at the beginning |\n";
    let mut markdown = Markdown::default();
    let mut out = markdown.push(table, 20);
    out.push_str(&markdown.finish(20));
    assert_eq!(bare(&out), "name: alpha\nwhat it does: stands at the beginning\n");
}

#[test]
fn an_entity_does_not_command_the_terminal() {
    for text in [
        "a &#27;[31mb",
        "`&#27;` &#x9b;2J",
        "[x](http://a/&#27;[2J)",
        "| &#27;[2J |\n|---|\n| a |\n",
        "# &#27;c",
    ] {
        let out = shown(text, 1);
        assert!(!bare(&out).contains(['\x1b', '\u{9b}']), "{out:?}");
    }
}

#[test]
fn what_never_ends_is_shown_nevertheless() {
    let mut markdown = Markdown::default();
    let out = markdown.push(&format!("`{}", "word ".repeat(20_000)), 80);
    assert!(out.len() > LONGEST, "{}", out.len());
}
