//! What the CLI takes a call of `sed` for.

/// A call of `sed`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sed {
    pub(super) kind: SedKind,
    pub(super) files: Vec<String>,
    pub(super) in_place: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SedKind {
    /// The command prints lines of certain numbers.
    Prints,
    /// The command replaces one thing by another.
    Substitutes,
    /// The command does something that the CLI does not look into.
    Other,
}

const QUIET: &[&str] = &["--quiet", "--silent"];
const SYNTAX: &[&str] = &["--regexp-extended", "--posix"];

impl Sed {
    /// Reads the words behind `sed`.
    pub(super) fn read(words: &[String]) -> Self {
        let (mut options, mut rest) = (Vec::new(), Vec::new());
        let mut has_script = false;
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            match word {
                "-e" | "--expression" => {
                    has_script = true;
                    options.push(word);
                    words.next();
                }
                "-i" if words.peek() == Some(&"") => {
                    options.push("-i=");
                    words.next();
                }
                _ if word.starts_with('-') => {
                    has_script |= word.starts_with("--expression=") || word.starts_with("-f");
                    options.push(word);
                }
                _ => rest.push(word),
            }
        }
        // Where a file may be changed by a long option, the CLI takes the script for one of the files.
        let is_file = options.iter().any(|option| option.starts_with("--in-place"));
        let script = if has_script { None } else { rest.first().copied() };
        let files = rest.iter().skip(usize::from(script.is_some() && !is_file));
        let short = |letters: &str, option: &str| {
            let given = option.strip_prefix('-').filter(|given| !given.is_empty());
            given.is_some_and(|given| given.chars().all(|letter| letters.contains(letter)))
        };
        let all = |letters: &str, long: &[&str]| {
            let mut options = options.iter();
            options.all(|option| short(letters, option) || long.contains(option) || SYNTAX.contains(option))
        };
        let is_quiet = options
            .iter()
            .any(|option| QUIET.contains(option) || (short("nErz", option) && option.contains('n')));
        let kind = match script {
            Some(script) if is_quiet && all("nErz", QUIET) && prints(script) => SedKind::Prints,
            Some(script) if all("Eri", &["--in-place"]) && substitutes(script) => SedKind::Substitutes,
            _ => SedKind::Other,
        };
        let in_place = |option: &&str| {
            option.starts_with("--in-place") || (!option.starts_with("--") && option.contains('i'))
        };
        Self {
            kind,
            files: files.map(|file| (*file).to_owned()).collect(),
            in_place: options.iter().any(in_place),
        }
    }

    /// Whether the script changes nothing, and reads no file that the CLI takes for one to be changed.
    pub(super) fn only_reads(&self) -> bool {
        match self.kind {
            SedKind::Prints => true,
            SedKind::Substitutes => !self.in_place && self.files.is_empty(),
            SedKind::Other => false,
        }
    }
}

/// Whether a script prints lines by their numbers: `p`, `1p`, `1,5p`, more of them with `;` between.
fn prints(script: &str) -> bool {
    script.split(';').all(|command| {
        let Some(lines) = command.trim().strip_suffix('p') else {
            return false;
        };
        lines.is_empty() || lines.split(',').count() <= 2 && lines.split(',').all(is_number)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

/// Whether a script is a plain `s/…/…/` with flags that run and write nothing.
fn substitutes(script: &str) -> bool {
    let is_plain = |c: char| c.is_ascii() && !matches!(c, ';' | '{' | '}' | '#' | '~' | '\n');
    let parts: Vec<&str> = script.split('/').collect();
    let ["s", pattern, _, flags] = parts.as_slice() else {
        return false;
    };
    let digits = flags.chars().filter(char::is_ascii_digit).count();
    let harmless = |c: char| "gpimIM".contains(c) || ('1'..='9').contains(&c);
    !pattern.is_empty() && script.chars().all(is_plain) && flags.chars().all(harmless) && digits <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(words: &str) -> SedKind {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        Sed::read(&words).kind
    }

    #[test]
    fn lines_are_printed_by_their_numbers() {
        for words in [
            "-n 1p x",
            "-nE 1,5p;7p x y",
            "--quiet p x",
            "-n 1p -E x",
            "-z -n 1p",
        ] {
            assert_eq!(kind(words), SedKind::Prints, "{words}");
        }
        for words in [
            "1,5p x",
            "-n $p x",
            "-n -e 1p x",
            "-n /x/p x",
            "-n 5q x",
            "-ni 1p x",
            "-n 1,2,3p x",
        ] {
            assert_eq!(kind(words), SedKind::Other, "{words}");
        }
    }

    #[test]
    fn plain_substitutions_are_known() {
        for words in [
            "s/a/b/ x",
            "-i s/a/b/gI x",
            "-Ei s/a//2 x",
            "--in-place s/a/b/ x",
            "-i --posix s/a/b/",
        ] {
            assert_eq!(kind(words), SedKind::Substitutes, "{words}");
        }
        for words in [
            "-i.bak s/a/b/ x",
            "-i -e s/a/b/ x",
            "s|a|b| x",
            "s/a/b/e x",
            "s/a/b/10 x",
            "s/a/b/;s/c/d/ x",
            "-n s/a/b/p x",
            "s/a\\/b/c/ x",
            "s/1~2/c/ x",
            "d x",
            "-s s/a/b/ x",
            "-f x y",
            "s/a/b x",
        ] {
            assert_eq!(kind(words), SedKind::Other, "{words}");
        }
    }

    #[test]
    fn files_are_told_from_scripts() {
        let files = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Sed::read(&words).files
        };
        assert_eq!(files(&["-i", "s/a/b/", "x", "y"]), ["x", "y"]);
        assert_eq!(files(&["-i", "", "s/a/b/", "x"]), ["x"]);
        assert_eq!(files(&["-e", "s/a/b/", "x"]), ["x"]);
        assert_eq!(files(&["--in-place", "s/a/b/", "x"]), ["s/a/b/", "x"]);
    }
}
