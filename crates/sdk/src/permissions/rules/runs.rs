//! Programs that run other programs.

use super::shell::Word;

/// How a program runs others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Each of its arguments may be the program that it runs, or a script.
    Wrapper,
    /// The program that it runs stands behind one of its options.
    Finder,
    /// It runs a script of commands: one that is an argument, a file or its input.
    Shell,
    /// It runs a script in a language of its own.
    Language,
}

const WRAPPERS: &[&str] = &[
    ".",
    "alias",
    "at",
    "batch",
    "builtin",
    "bunx",
    "busybox",
    "caffeinate",
    "chpst",
    "chroot",
    "chrt",
    "command",
    "cpulimit",
    "devbox",
    "direnv",
    "doas",
    "entr",
    "env",
    "eval",
    "exec",
    "expect",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "ionice",
    "lldb",
    "ltrace",
    "mise",
    "nice",
    "nix",
    "nix-shell",
    "nocorrect",
    "noglob",
    "nohup",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pipx",
    "pkexec",
    "prlimit",
    "proot",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "source",
    "ssh",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "trap",
    "unbuffer",
    "unshare",
    "uv",
    "uvx",
    "valgrind",
    "watch",
    "watchexec",
    "wsl",
    "xargs",
];

/// These run programs only with one of [`CONTAINED`] among their arguments.
const CONTAINERS: &[&str] = &["docker", "kubectl", "nerdctl", "podman"];
const CONTAINED: &[&str] = &["compose", "debug", "exec", "run"];

const FINDERS: &[&str] = &["bfs", "fd", "fdfind", "find"];
const FOUND: &[&str] = &[
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "-X",
    "--exec",
    "--exec-batch",
];

const SHELLS: &[&str] = &[
    "ash",
    "bash",
    "cmd",
    "csh",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "posh",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "tcsh",
    "xonsh",
    "yash",
    "zsh",
];

const LANGUAGES: &[&str] = &[
    "awk",
    "bun",
    "deno",
    "ed",
    "ex",
    "gawk",
    "irb",
    "lua",
    "luajit",
    "mawk",
    "nawk",
    "node",
    "nvim",
    "osascript",
    "perl",
    "php",
    "pypy",
    "python",
    "ruby",
    "sed",
    "tclsh",
    "vi",
    "vim",
];

/// Commands that go by a rule only as a whole: what they run, or change, is in their arguments. As the CLI has it.
const AS_A_WHOLE: &[&str] = &[
    ".", "eval", "exec", "flock", "ionice", "setsid", "source", "trap", "watch",
];

/// How this command runs others; `None` if it is not known to.
pub(super) fn kind(words: &[Word]) -> Option<Kind> {
    let program = words.first()?.program()?;
    // `python3.12` is python.
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is = |list: &[&str]| list.contains(&program.as_str()) || list.contains(&name);
    if is(WRAPPERS)
        || (is(CONTAINERS)
            && words
                .iter()
                .any(|word| word.text().is_some_and(|text| CONTAINED.contains(&text.as_str()))))
    {
        Some(Kind::Wrapper)
    } else if is(FINDERS) {
        Some(Kind::Finder)
    } else if is(SHELLS) {
        Some(Kind::Shell)
    } else {
        is(LANGUAGES).then_some(Kind::Language)
    }
}

/// Whether the program that a [finder](Kind::Finder) runs stands behind this word.
pub(super) fn finds(word: &Word) -> bool {
    word.text().is_none_or(|text| FOUND.contains(&text.as_str()))
}

/// Whether a command is only covered by a rule that has no `*`.
pub(super) fn goes_as_a_whole(words: &[Word]) -> bool {
    let Some(program) = words.first().and_then(Word::program) else {
        return true;
    };
    if program == "find" {
        // A file name can look like an option.
        return words[1..].iter().any(|word| match word.text() {
            Some(text) => ["-exec", "-ok", "-delete", "-fprint", "-fls"]
                .iter()
                .any(|option| text.starts_with(option)),
            None => true,
        });
    }
    AS_A_WHOLE.contains(&program.as_str())
}

/// How many words before the command are a wrapper that does nothing but run it; 0 if there is none.
///
/// `wide` are those that an allow rule does not look behind.
pub(super) fn wrapped(words: &[Word], wide: bool) -> usize {
    let text = |at: usize| words.get(at).and_then(Word::text);
    let Some(program) = text(0) else { return 0 };
    let length = match program.as_str() {
        "sudo" | "doas" if wide => 1,
        "env" if wide => {
            1 + words[1..]
                .iter()
                .take_while(|word| super::shell::assigns(&word.raw))
                .count()
        }
        "time" | "nohup" | "command" | "builtin" => 1,
        "timeout" if text(1).is_some_and(|text| is_duration(&text)) => 2,
        "nice" if text(1).as_deref() == Some("-n") && text(2).is_some_and(|text| is_number(&text)) => 3,
        "nice" => 1,
        _ => return 0,
    };
    // An option of the wrapper would change what it does.
    match text(length) {
        Some(next) if !next.starts_with('-') => length,
        _ => 0,
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    number.bytes().any(|b| b.is_ascii_digit()) && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Programs that only read the files that they are given.
pub(super) fn only_reads(program: &str) -> bool {
    const READERS: &[&str] = &[
        "[",
        "basename",
        "cat",
        "cd",
        "cksum",
        "cmp",
        "cut",
        "diff",
        "dirname",
        "du",
        "echo",
        "egrep",
        "fgrep",
        "file",
        "grep",
        "head",
        "hexdump",
        "jq",
        "less",
        "ls",
        "md5sum",
        "more",
        "nl",
        "od",
        "printf",
        "pwd",
        "readlink",
        "realpath",
        "rg",
        "sha1sum",
        "sha256sum",
        "sha512sum",
        "stat",
        "strings",
        "tac",
        "tail",
        "test",
        "tree",
        "wc",
        "which",
    ];
    READERS.contains(&program)
}
