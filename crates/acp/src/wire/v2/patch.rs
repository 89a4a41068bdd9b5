//! A diff as a git patch.

use std::path::Path;

use crate::event::Diff;

/// The patch of one change. Equal lines at both ends are context.
///
/// The line of a change is known once it was made. A planned change gets line 1.
pub(super) fn of(diff: &Diff) -> String {
    let name = name(&diff.path);
    let new: Vec<_> = diff.new.split_inclusive('\n').collect();
    let Some(old) = &diff.old else {
        let mut patch =
            format!("diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n");
        if !new.is_empty() {
            patch += &format!("@@ -0,0 +1,{} @@\n", new.len());
            new.iter().for_each(|line| push(&mut patch, '+', line));
        }
        return patch;
    };
    let old: Vec<_> = old.split_inclusive('\n').collect();
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - before;
    let ends = old.iter().rev().zip(new.iter().rev());
    let after = ends.take(rest).take_while(|(old, new)| old == new).count();

    let line = diff.line.unwrap_or(1);
    let start = |count: usize| if count == 0 { line.saturating_sub(1) } else { line };
    let mut patch = format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n");
    patch += &format!(
        "@@ -{},{} +{},{} @@\n",
        start(old.len()),
        old.len(),
        start(new.len()),
        new.len()
    );
    old[..before].iter().for_each(|line| push(&mut patch, ' ', line));
    old[before..old.len() - after]
        .iter()
        .for_each(|line| push(&mut patch, '-', line));
    new[before..new.len() - after]
        .iter()
        .for_each(|line| push(&mut patch, '+', line));
    old[old.len() - after..]
        .iter()
        .for_each(|line| push(&mut patch, ' ', line));
    patch
}

/// The path in a patch: with slashes, and without a leading one.
fn name(path: &Path) -> String {
    let name = path.display().to_string().replace('\\', "/");
    name.trim_start_matches('/').to_owned()
}

fn push(patch: &mut String, sign: char, line: &str) {
    patch.push(sign);
    patch.push_str(line);
    if !line.ends_with('\n') {
        patch.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(old: Option<&str>, new: &str, line: Option<u32>) -> String {
        of(&Diff {
            path: "/w/a.txt".into(),
            old: old.map(str::to_owned),
            new: new.to_owned(),
            line,
        })
    }

    #[test]
    fn a_change_is_a_hunk_at_its_line() {
        let head = "diff --git a/w/a.txt b/w/a.txt\n--- a/w/a.txt\n+++ b/w/a.txt\n";
        assert_eq!(
            patch(Some("a\nb\nc\n"), "a\nB\nc\n", Some(7)),
            format!("{head}@@ -7,3 +7,3 @@\n a\n-b\n+B\n c\n")
        );
        assert_eq!(
            patch(Some("a\n"), "", Some(7)),
            format!("{head}@@ -7,1 +6,0 @@\n-a\n")
        );
        assert_eq!(
            patch(Some("x\nx\n"), "x\nx\nx\n", None),
            format!("{head}@@ -1,2 +1,3 @@\n x\n x\n+x\n")
        );
        assert_eq!(
            patch(Some("one"), "two", None),
            format!(
                "{head}@@ -1,1 +1,1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n"
            )
        );
    }

    #[test]
    fn a_new_file_comes_from_nothing() {
        assert_eq!(
            patch(None, "a\nb\n", None),
            "diff --git a/w/a.txt b/w/a.txt\nnew file mode 100644\n--- /dev/null\n+++ b/w/a.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
        assert!(!patch(None, "", None).contains("@@"));
    }

    /// Puts the hunk onto the old text.
    fn applied(patch: &str) -> (String, String) {
        let (mut old, mut new) = (String::new(), String::new());
        let body = patch.split_once(" @@\n").map_or("", |(_, body)| body);
        let mut last = ' ';
        for line in body.split_inclusive('\n') {
            let (sign, text) = line.split_at(1);
            let sign = sign.chars().next().unwrap();
            if sign == '\\' {
                if last != '+' {
                    old.pop();
                }
                if last != '-' {
                    new.pop();
                }
                continue;
            }
            if sign != '+' {
                old.push_str(text);
            }
            if sign != '-' {
                new.push_str(text);
            }
            last = sign;
        }
        (old, new)
    }

    proptest::proptest! {
        #[test]
        fn the_patch_leads_from_the_old_to_the_new(old in "([ab\n]){0,12}", new in "([ab\n]){0,12}") {
            let made = patch(Some(&old), &new, Some(1));
            proptest::prop_assert_eq!(applied(&made), (old, new));
        }
    }
}
