//! What `Edit` and `Write` leave in a file. Each is followed by a command that fails if something else is in it.

use serde_json::{Value, json};

use crate::scenario::Scenario;

fn call(tool: &str, input: Value) -> String {
    format!("%tool {tool} {input}\n")
}

fn read(path: &str) -> String {
    call("Read", json!({"file_path": path}))
}

fn write(path: &str, content: &str) -> String {
    call("Write", json!({"file_path": path, "content": content}))
}

fn edit(path: &str, old: &str, new: &str) -> String {
    call(
        "Edit",
        json!({"file_path": path, "old_string": old, "new_string": new}),
    )
}

fn edit_all(path: &str, old: &str, new: &str) -> String {
    let input = json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": true});
    call("Edit", input)
}

fn bash(command: &str) -> String {
    call("Bash", json!({"command": command}))
}

/// Fails unless the file has this content, written for `printf`.
fn has(path: &str, content: &str) -> String {
    bash(&format!("printf '{content}' | cmp - {path}"))
}

fn project(name: &str, calls: &[String]) -> Scenario {
    let scenario = Scenario::new(name).flags("--permission-mode acceptEdits --allowedTools Bash");
    scenario.turn(&format!("{}%say done", calls.concat()))
}

/// A hundred lines, some of them marked.
fn long() -> String {
    let line = |n: u32| {
        format!(
            "line {n}{}\n",
            if [3, 50, 52, 60, 97].contains(&n) {
                " k"
            } else {
                ""
            }
        )
    };
    (1..=100).map(line).collect()
}

pub(super) fn edits() -> Vec<Scenario> {
    let several = [
        write("a.txt", &long()),
        edit_all("a.txt", " k", " K"),
        edit_all("a.txt", "line 5", "L5"),
        edit("a.txt", "line 2\nline 3", "line 2\nnew\nline 3"),
        write(
            "a.txt",
            &long()
                .replace("line 1\n", "")
                .replace("line 40\n", "line 40\nmore\n"),
        ),
    ];
    vec![
        project(
            "edits_of_lines_with_crlf",
            &[
                bash(
                    "printf 'one\\r\\ntwo\\r\\nthree\\r\\n' > a.txt; printf 'a\\r\\nb\\nc\\n' > b.txt; printf 'a\\r\\nb\\n' > c.txt; printf 'a\\nb\\r\\nc\\r\\n' > d.txt",
                ),
                read("a.txt"),
                edit("a.txt", "one\ntwo", "1\n2\n3"),
                has("a.txt", "1\\r\\n2\\r\\n3\\r\\nthree\\r\\n"),
                edit("a.txt", "1\r\n2", "z"),
                edit("a.txt", "three", "x\ny"),
                has("a.txt", "1\\r\\n2\\r\\n3\\r\\nx\\r\\ny\\r\\n"),
                read("b.txt"),
                edit("b.txt", "b", "x"),
                has("b.txt", "a\\nx\\nc\\n"),
                read("c.txt"),
                edit("c.txt", "b", "x"),
                has("c.txt", "a\\nx\\n"),
                read("d.txt"),
                edit("d.txt", "b", "x"),
                has("d.txt", "a\\r\\nx\\r\\nc\\r\\n"),
                write("d.txt", "1\n2\n"),
                has("d.txt", "1\\n2\\n"),
                write("d.txt", "1\r\n2\r\n"),
                edit("d.txt", "2", "2\n3"),
                has("d.txt", "1\\r\\n2\\r\\n3\\r\\n"),
            ],
        ),
        project(
            "edits_with_quotes_of_another_shape",
            &[
                write("a.txt", "say “hi” and ‘yo’ it’s\n"),
                edit("a.txt", "\"hi\"", "\"ho\" 'k' don't"),
                has("a.txt", "say “ho” '\\''k'\\'' don'\\''t and ‘yo’ it’s\\n"),
                edit("a.txt", "'yo'", "'ya'"),
                edit("a.txt", "it's", "it's x"),
                has("a.txt", "say “ho” '\\''k'\\'' don'\\''t and ‘ya’ it’s x\\n"),
                write("b.txt", "say \"hi\"\n“a” “b” “a”\n(‘x’) ‘y’\n"),
                edit("b.txt", "“hi”", "“ho”"),
                edit_all("b.txt", "\"a\"", "\"n\""),
                edit("b.txt", "('x') 'y'", "('x') 'y' ['z'] it's 'tis"),
                has("b.txt", "say “ho”\\n“n” “b” “n”\\n(‘x’) ‘y’ [‘z’] it’s ‘tis\\n"),
            ],
        ),
        project(
            "edits_that_leave_nothing",
            &[
                write("a.txt", "one\ntwo\nthree\n"),
                edit("a.txt", "two", ""),
                has("a.txt", "one\\nthree\\n"),
                edit("a.txt", "n", ""),
                edit("a.txt", "three\n", ""),
                has("a.txt", "oe\\n"),
                edit("a.txt", "oe", ""),
                has("a.txt", ""),
                edit("a.txt", "", "new\n"),
                has("a.txt", "new\\n"),
                write("b.txt", "a\na\nb\na"),
                edit_all("b.txt", "a", ""),
                has("b.txt", "b\\na"),
                write("c.txt", "  \n"),
                edit("c.txt", "", "new"),
                has("c.txt", "new"),
            ],
        ),
        project(
            "edits_of_files_with_a_mark",
            &[
                bash("printf '\\xef\\xbb\\xbfone\\ntwo\\n' > a.txt"),
                read("a.txt"),
                edit("a.txt", "one", "1"),
                has("a.txt", "\\xef\\xbb\\xbf1\\ntwo\\n"),
                write("a.txt", "x\n"),
                has("a.txt", "\\xef\\xbb\\xbfx\\n"),
            ],
        ),
        project("edits_in_several_places", &several),
        project(
            "edits_behind_commands",
            &[
                bash("for f in r1 r2 r3 r4 r5; do echo a > $f.txt; done"),
                read("r1.txt") + &bash("echo b >> r1.txt") + &write("r1.txt", "c\n"),
                write("w1.txt", "a\n") + &bash("echo b >> w1.txt") + &write("w1.txt", "c\n"),
                write("w2.txt", "a\n") + &bash("echo b >> w2.txt") + &edit("w2.txt", "b", "c"),
                read("r2.txt")
                    + &bash("echo b > r2.txt")
                    + &edit("r2.txt", "a", "c")
                    + &edit("r2.txt", "b", "c"),
                read("r3.txt") + &bash("echo b >> r3.txt") + &read("r3.txt") + &write("r3.txt", "z"),
                bash("cat r4.txt") + &bash("echo b >> r4.txt") + &write("r4.txt", "z"),
                read("r5.txt")
                    + &edit("r5.txt", "a", "q")
                    + &bash("sed -i s/q/t/ r5.txt")
                    + &write("r5.txt", "u"),
                bash("cat *.txt | sort | uniq -c"),
            ],
        ),
    ]
}
