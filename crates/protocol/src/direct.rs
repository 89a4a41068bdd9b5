//! Decoding unions in one pass over the text.
//!
//! A union has to know its tag before it can read its body, and keeps the text of what it can't read. Done in general, that
//! takes three passes over each union within a union: to find where it ends, to find its tag, and to read it. But nearly
//! always the tag comes first, or after a few short fields, and everything fits. So decoding first tries to read straight
//! through; when anything at all is unusual, the attempt is given up and everything is read again in the general way, which
//! alone decides what an unknown tag or a misfit becomes.

mod reader;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How the text is read that is being read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    General,
    Straight,
    /// What is read now will be read again. Not every error gets to the top: readers that try one type after another
    /// take it for an answer.
    GivenUp,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::General) };
}

/// Whether the text that is being read may be read straight through.
#[doc(hidden)]
pub fn is_on() -> bool {
    MODE.get() == Mode::Straight
}

/// Runs `decode` in a mode, and says in which one it ended.
fn within<R>(mode: Mode, decode: impl FnOnce() -> R) -> (R, Mode) {
    struct Restore(Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            MODE.set(self.0);
        }
    }
    let _restore = Restore(MODE.replace(mode));
    let result = decode();
    (result, MODE.get())
}

/// Decodes `text`: straight through if that goes, else in the general way.
pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let attempt = || within(Mode::Straight, || reader::read(text));
    match crate::drift::watch(attempt) {
        ((Ok(value), Mode::Straight), seen) => {
            crate::drift::pass_on(seen);
            Ok(value)
        }
        _ => within(Mode::General, || serde_json::from_str(text)).0,
    }
}

/// A union, which can be read straight through if it is `in one pass`.
#[doc(hidden)]
pub trait Union<'de>: Sized {
    /// The key of the tag.
    const TAG: &'static str = "";

    /// Reads the body of a known tag. Any error makes the attempt be given up.
    fn read<A: MapAccess<'de>>(_: &str, _: Body<'de, A>) -> Result<Self, A::Error> {
        Err(A::Error::custom("not in one pass"))
    }

    /// Reads it, or gives the reader back untouched when it is to be read in the general way.
    fn straight<D: Deserializer<'de>>(deserializer: D) -> Result<Result<Self, D::Error>, D> {
        Err(deserializer)
    }
}

/// The entries of the object, its tag among them.
#[doc(hidden)]
pub type Body<'de, A> = MapAccessDeserializer<Entries<'de, A>>;

/// How many fields may come before the tag.
const MOST_BEFORE: usize = 8;

/// Reads a union, or fails for the attempt to be given up.
#[doc(hidden)]
pub fn read<'de, T: Union<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Tagged<T>(PhantomData<T>);
    impl<'de, T: Union<'de>> Visitor<'de> for Tagged<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
            let mut before = Vec::new();
            while let Some(key) = map.next_key::<&'de str>()? {
                if key == T::TAG {
                    let tag = map.next_value::<&'de str>()?;
                    let entries = Entries {
                        before: before.into_iter(),
                        key: T::TAG,
                        tag: Some(tag),
                        given: Given::Later,
                        map,
                    };
                    return T::read(tag, MapAccessDeserializer::new(entries));
                }
                if before.len() == MOST_BEFORE {
                    break;
                }
                before.push((key, map.next_value()?));
            }
            Err(A::Error::custom("no tag in sight"))
        }
    }
    let read = deserializer.deserialize_map(Tagged(PhantomData));
    if read.is_err() {
        MODE.set(Mode::GivenUp);
    }
    read
}

/// The entries of an object whose tag was found already, in the order in which they stand.
#[doc(hidden)]
pub struct Entries<'de, A> {
    before: std::vec::IntoIter<(&'de str, &'de RawValue)>,
    key: &'static str,
    tag: Option<&'de str>,
    /// What comes after the tag.
    map: A,
    given: Given<'de>,
}

/// Where the value is of the key that was given last.
enum Given<'de> {
    Before(&'de RawValue),
    Tag(&'de str),
    Later,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let key = if let Some((key, value)) = self.before.next() {
            self.given = Given::Before(value);
            key
        } else if let Some(tag) = self.tag.take() {
            self.given = Given::Tag(tag);
            self.key
        } else {
            self.given = Given::Later;
            match self.map.next_key::<&'de str>()? {
                // Which one counts is not for here to say.
                Some(key) if key == self.key => return Err(A::Error::custom("a second tag")),
                Some(key) => key,
                None => return Ok(None),
            }
        };
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.given {
            Given::Before(raw) => seed.deserialize(raw).map_err(A::Error::custom),
            Given::Tag(tag) => seed.deserialize(BorrowedStrDeserializer::new(tag)),
            Given::Later => self.map.next_value_seed(seed),
        }
    }
}

#[cfg(test)]
mod tests;
