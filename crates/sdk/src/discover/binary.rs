//! The kind of a program file, by its header: enough to explain why the system would not run it.
//!
//! A binary for the other libc fails with "not found" although it is there, and one for another machine with "exec format
//! error". Both cost people afternoons, so the header is read before anything is started.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cause::Cause;
use crate::env::Surroundings;

/// The header of a program file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Binary {
    /// The format of the file.
    pub format: Format,
    /// The machines that the program runs on, in the names of [`std::env::consts::ARCH`] where there is one; empty for a script.
    pub architectures: Vec<String>,
    /// The C library that a Linux program is linked with; `None` for other systems and for scripts.
    pub libc: Option<Libc>,
    /// The loader of a dynamic Linux program, or the interpreter of a script.
    pub interpreter: Option<PathBuf>,
}

/// The format of a program file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Linux, Android and the BSDs.
    Elf,
    /// macOS.
    MachO,
    /// Windows.
    Pe,
    /// A text file that begins with `#!`.
    Script,
}

/// The C library of a Linux program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Libc {
    /// The GNU library: most distributions.
    Glibc,
    /// musl: Alpine and its kin.
    Musl,
    /// Android.
    Bionic,
    /// None needed at run time.
    Static,
}

/// Why a path cannot be started as the CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unusable {
    /// There is nothing there.
    Missing,
    /// A directory or a device.
    NotAFile,
    /// The execute permission is missing.
    NotExecutable,
    /// The file cannot be read; the text is the system's.
    Unreadable(String),
    /// A `.cmd` or `.bat` file. Windows would hand its arguments to a shell, which reads them again.
    BatchFile,
    /// A name without a directory, or a relative path where only an absolute one will do.
    NotAbsolute,
    /// No program format that this build knows.
    NotAProgram,
    /// A program for another operating system.
    OtherSystem(Format),
    /// A program for another kind of processor.
    OtherArchitecture {
        /// What the program was built for.
        built_for: Vec<String>,
        /// What this machine is.
        host: String,
    },
    /// The loader of the program is not installed: usually a musl build on a glibc system or the reverse.
    LoaderMissing(PathBuf),
    /// The interpreter of the script is not installed or not on the `PATH`.
    InterpreterMissing(PathBuf),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no such file"),
            Self::NotAFile => f.write_str("not a file"),
            Self::NotExecutable => f.write_str("not executable"),
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::BatchFile => f.write_str("a batch file"),
            Self::NotAbsolute => f.write_str("not an absolute path"),
            Self::NotAProgram => f.write_str("not a program"),
            Self::OtherSystem(format) => write!(f, "a program for another system ({format:?})"),
            Self::OtherArchitecture { built_for, host } => {
                write!(f, "built for {}, this machine is {host}", built_for.join(", "))
            }
            Self::LoaderMissing(loader) => write!(f, "its loader {} is not installed", loader.display()),
            Self::InterpreterMissing(name) => {
                write!(f, "its interpreter {} is not installed", name.display())
            }
        }
    }
}

impl Unusable {
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Missing | Self::NotAFile | Self::NotAbsolute => Cause::BinaryMissing,
            Self::NotExecutable | Self::Unreadable(_) => Cause::NotExecutable,
            Self::BatchFile => Cause::BatchFile,
            Self::NotAProgram
            | Self::OtherSystem(_)
            | Self::OtherArchitecture { .. }
            | Self::LoaderMissing(_)
            | Self::InterpreterMissing(_) => Cause::WrongPlatform,
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Missing => "install Claude Code there or correct the path",
            Self::NotAFile => "name the program itself, not its directory",
            Self::NotExecutable => "run `chmod +x` on it",
            Self::Unreadable(_) => "check the permissions of the file and of the directories above it",
            Self::BatchFile => {
                "name claude.exe instead; the native installer puts it into %USERPROFILE%\\.local\\bin"
            }
            Self::NotAbsolute => "give the absolute path; the current directory is never searched",
            Self::NotAProgram => "reinstall Claude Code: the file is damaged or something else",
            Self::OtherSystem(_) | Self::OtherArchitecture { .. } => {
                "install the Claude Code build for this system and processor"
            }
            Self::LoaderMissing(_) => {
                "install the Claude Code build for this system's C library (musl on Alpine, glibc elsewhere)"
            }
            Self::InterpreterMissing(_) => {
                "install the interpreter, put it on the PATH, or use the native build of Claude Code"
            }
        }
    }
}

/// Reads what `path` is and whether this machine can start it. Follows symbolic links.
pub(crate) fn inspect(path: &Path, surroundings: &Surroundings) -> Result<Binary, Unusable> {
    if is_batch(path) {
        return Err(Unusable::BatchFile);
    }
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Unusable::NotAFile);
    }
    if !is_executable(&meta) && !is_module(path) {
        return Err(Unusable::NotExecutable);
    }
    let binary = match read(path) {
        Ok(Some(binary)) => binary,
        // A JavaScript file without `#!` is fine: it is run by its runtime, see `Options::executable`.
        Ok(None) if is_module(path) => {
            return Ok(Binary {
                format: Format::Script,
                architectures: Vec::new(),
                libc: None,
                interpreter: None,
            });
        }
        Ok(None) => return Err(Unusable::NotAProgram),
        // One may be allowed to run a file without being allowed to read it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Binary {
                format: native(),
                architectures: Vec::new(),
                libc: None,
                interpreter: None,
            });
        }
        Err(error) => return Err(unreadable(error)),
    };
    if !is_module(path) {
        runs_here(&binary, path, surroundings)?;
    }
    Ok(binary)
}

/// Whether the CLI at this path is a module that a JavaScript runtime has to be started for.
pub(crate) fn is_module(path: &Path) -> bool {
    has_extension(path, &["js", "mjs", "ts", "tsx", "jsx"])
}

fn is_batch(path: &Path) -> bool {
    // Windows ignores dots and spaces at the end of a name, so `claude.cmd.` is one too.
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let name = name.trim_end_matches(['.', ' ']);
    name.ends_with(".cmd") || name.ends_with(".bat")
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .and_then(OsStr::to_str)
        .is_some_and(|e| extensions.iter().any(|x| x.eq_ignore_ascii_case(e)))
}

fn unreadable(error: io::Error) -> Unusable {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unusable::Missing,
        _ => Unusable::Unreadable(error.to_string()),
    }
}

#[cfg(unix)]
fn is_executable(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    true
}

fn native() -> Format {
    match std::env::consts::OS {
        "macos" | "ios" => Format::MachO,
        "windows" => Format::Pe,
        _ => Format::Elf,
    }
}

fn runs_here(binary: &Binary, path: &Path, surroundings: &Surroundings) -> Result<(), Unusable> {
    if binary.format == Format::Script {
        if cfg!(windows) {
            return Err(Unusable::OtherSystem(Format::Script));
        }
        return match script_program(path, surroundings) {
            Some(missing) => Err(Unusable::InterpreterMissing(missing)),
            None => Ok(()),
        };
    }
    if binary.format != native() {
        return Err(Unusable::OtherSystem(binary.format));
    }
    let host = std::env::consts::ARCH;
    // Apple's and Microsoft's ARM machines run x86_64 programs as well.
    let emulates = cfg!(any(target_os = "macos", windows)) && host == "aarch64";
    let fits =
        |arch: &String| arch == host || (arch == "x86" && host == "x86_64") || (emulates && arch == "x86_64");
    if !binary.architectures.is_empty() && !binary.architectures.iter().any(fits) {
        return Err(Unusable::OtherArchitecture {
            built_for: binary.architectures.clone(),
            host: host.to_owned(),
        });
    }
    match &binary.interpreter {
        Some(loader) if !loader.exists() => Err(Unusable::LoaderMissing(loader.clone())),
        _ => Ok(()),
    }
}

/// The program that a script needs and that is not there, if so.
fn script_program(path: &Path, surroundings: &Surroundings) -> Option<PathBuf> {
    let line = first_line(path)?;
    let mut words = line.split_ascii_whitespace();
    let interpreter = PathBuf::from(words.next()?);
    if !interpreter.exists() {
        return Some(interpreter);
    }
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return None;
    }
    // `env -S node --flag` and `env NAME=value node` both name the program after what env keeps for itself.
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    match super::on_path(name, surroundings) {
        Some(_) => None,
        None => Some(PathBuf::from(name)),
    }
}

fn first_line(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(512).read_to_end(&mut head).ok()?;
    let head = head.strip_prefix(b"#!")?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// Reads the header. `Ok(None)` is a file of no format that is known here.
fn read(path: &Path) -> io::Result<Option<Binary>> {
    let mut file = File::open(path)?;
    let mut head = Vec::with_capacity(4096);
    file.by_ref().take(4096).read_to_end(&mut head)?;
    Ok(match head.as_slice() {
        [0x7f, b'E', b'L', b'F', ..] => elf(&head, &mut file)?,
        [b'#', b'!', ..] => Some(Binary {
            format: Format::Script,
            architectures: Vec::new(),
            libc: None,
            interpreter: first_line(path)
                .and_then(|line| line.split_ascii_whitespace().next().map(PathBuf::from)),
        }),
        [b'M', b'Z', ..] => pe(&head, &mut file)?,
        [0xcf, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => mach_o(&head),
        _ => None,
    })
}

fn elf(head: &[u8], file: &mut File) -> io::Result<Option<Binary>> {
    let (Some(class), Some(order)) = (head.get(4), head.get(5)) else {
        return Ok(None);
    };
    let (wide, little) = (*class == 2, *order == 1);
    let number = |bytes: &[u8], at: usize, width: usize| number(bytes, at, width, little);
    let Some(machine) = number(head, 18, 2) else {
        return Ok(None);
    };
    let (table, size, count) = if wide {
        (number(head, 32, 8), number(head, 54, 2), number(head, 56, 2))
    } else {
        (number(head, 28, 4), number(head, 42, 2), number(head, 44, 2))
    };
    let (Some(table), Some(size), Some(count)) = (table, size, count) else {
        return Ok(None);
    };
    let mut interpreter = None;
    for index in 0..count.min(64) {
        let Some(entry) = table
            .checked_add(index * size)
            .and_then(|at| slice(head, file, at, 56).transpose())
        else {
            break;
        };
        let entry = entry?;
        const PT_INTERP: u64 = 3;
        if number(&entry, 0, 4) != Some(PT_INTERP) {
            continue;
        }
        let (offset, length) = if wide {
            (number(&entry, 8, 8), number(&entry, 32, 8))
        } else {
            (number(&entry, 4, 4), number(&entry, 16, 4))
        };
        if let (Some(offset), Some(length @ 1..=4096)) = (offset, length)
            && let Some(name) = slice(head, file, offset, length as usize)?
        {
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            interpreter = Some(PathBuf::from(String::from_utf8_lossy(name).into_owned()));
        }
        break;
    }
    let libc = match interpreter
        .as_deref()
        .and_then(Path::file_name)
        .map(OsStr::to_string_lossy)
    {
        None => Libc::Static,
        Some(name) if name.contains("musl") => Libc::Musl,
        Some(name) if name.starts_with("linker") => Libc::Bionic,
        Some(_) => Libc::Glibc,
    };
    let architecture = match machine {
        0x03 => "x86",
        0x28 => "arm",
        0x3e => "x86_64",
        0xb7 => "aarch64",
        0xf3 => "riscv64",
        0x15 => "powerpc64",
        0x16 => "s390x",
        _ => "unknown",
    };
    Ok(Some(Binary {
        format: Format::Elf,
        architectures: vec![architecture.to_owned()],
        libc: Some(libc),
        interpreter,
    }))
}

fn pe(head: &[u8], file: &mut File) -> io::Result<Option<Binary>> {
    let Some(at) = number(head, 0x3c, 4, true) else {
        return Ok(None);
    };
    let Some(header) = slice(head, file, at, 6)? else {
        return Ok(None);
    };
    if !header.starts_with(b"PE\0\0") {
        return Ok(None);
    }
    let architecture = match number(&header, 4, 2, true) {
        Some(0x014c) => "x86",
        Some(0x8664) => "x86_64",
        Some(0xaa64) => "aarch64",
        _ => "unknown",
    };
    let architectures = vec![architecture.to_owned()];
    Ok(Some(Binary {
        format: Format::Pe,
        architectures,
        libc: None,
        interpreter: None,
    }))
}

fn mach_o(head: &[u8]) -> Option<Binary> {
    let name = |cpu: u64| match cpu {
        0x0100_0007 => "x86_64",
        0x0100_000c => "aarch64",
        _ => "unknown",
    };
    let architectures = if head.first() == Some(&0xca) {
        // A universal file: a big-endian list of what is inside. Java class files begin alike but count far more.
        let count = number(head, 4, 4, false).filter(|count| (1..=16).contains(count))?;
        (0..count as usize)
            .filter_map(|i| number(head, 8 + i * 20, 4, false))
            .map(|cpu| name(cpu).to_owned())
            .collect()
    } else {
        vec![name(number(head, 4, 4, true)?).to_owned()]
    };
    Some(Binary {
        format: Format::MachO,
        architectures,
        libc: None,
        interpreter: None,
    })
}

/// A number of `width` bytes; `None` past the end.
fn number(bytes: &[u8], at: usize, width: usize, little: bool) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    let fold = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
    Some(if little {
        field.iter().rev().fold(0, fold)
    } else {
        field.iter().fold(0, fold)
    })
}

/// `length` bytes at `at`, from what was read already or from the file; `None` past the end.
fn slice(head: &[u8], file: &mut File, at: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
    let known = usize::try_from(at)
        .ok()
        .and_then(|at| head.get(at..at.checked_add(length)?));
    if let Some(known) = known {
        return Ok(Some(known.to_vec()));
    }
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; length];
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
