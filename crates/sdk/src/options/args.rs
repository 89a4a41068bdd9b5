//! The command line, one argument at a time. The only place where a value can get next to a flag.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{OptionsError, invalid};

/// The most that one value may take on the command line, in bytes. Windows has 32 767 characters for everything.
pub(crate) const LONG: usize = 8 * 1024;

/// The most that all arguments may take together, in bytes.
const ALL: usize = if cfg!(windows) { 30_000 } else { 1024 * 1024 };

/// Arguments under construction. Every one is a flag of ours, alone or with `=` and its value, so that no value can become
/// a flag whatever it looks like.
#[derive(Debug, Default)]
pub(crate) struct Args {
    list: Vec<OsString>,
}

impl Args {
    /// A flag without a value.
    pub(crate) fn switch(&mut self, flag: &str) {
        self.list.push(OsString::from(format!("--{flag}")));
    }

    /// A flag with a value that must not be empty.
    pub(crate) fn value(
        &mut self,
        option: &'static str,
        flag: &str,
        value: impl AsRef<OsStr>,
    ) -> Result<(), OptionsError> {
        if value.as_ref().is_empty() {
            return Err(invalid(option, "", "is empty: leave it unset instead"));
        }
        self.value_or_empty(option, flag, value)
    }

    /// A flag with a value that means something even if it is empty.
    pub(crate) fn value_or_empty(
        &mut self,
        option: &'static str,
        flag: &str,
        value: impl AsRef<OsStr>,
    ) -> Result<(), OptionsError> {
        let value = value.as_ref();
        if value.as_encoded_bytes().contains(&0) {
            let problem = "holds a NUL character, which no argument can";
            return Err(invalid(option, "", problem));
        }
        if value.len() > LONG {
            return Err(OptionsError::TooLong {
                option,
                bytes: value.len(),
            });
        }
        let mut argument = OsString::from(format!("--{flag}="));
        argument.push(value);
        self.list.push(argument);
        Ok(())
    }

    /// The same flag for each path.
    pub(crate) fn paths<'a>(
        &mut self,
        option: &'static str,
        flag: &str,
        paths: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), OptionsError> {
        paths
            .into_iter()
            .try_for_each(|path| self.value(option, flag, path))
    }

    /// Whether this flag is there, with or without a value.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.list
            .iter()
            .any(|argument| flag_of(argument).as_deref() == Some(flag))
    }

    /// Everything, if it is short enough.
    pub(crate) fn finish(self) -> Result<Vec<OsString>, OptionsError> {
        let bytes = self.list.iter().map(|argument| argument.len() + 1).sum();
        if bytes > ALL {
            return Err(OptionsError::TooLong {
                option: "all options together",
                bytes,
            });
        }
        Ok(self.list)
    }
}

/// The flag in an argument of ours.
pub(crate) fn flag_of(argument: &OsStr) -> Option<std::borrow::Cow<'_, str>> {
    let bytes = argument.as_encoded_bytes().strip_prefix(b"--")?;
    Some(String::from_utf8_lossy(bytes.split(|byte| *byte == b'=').next()?))
}
