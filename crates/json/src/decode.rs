//! Decodes types in one pass over the text.
//!
//! One reader ([`Reader`]) decodes all types of a protocol: code that is instantiated for two readers takes twice as long to build.
//! Types of other crates are decoded by serde_json.
//!
//! A union has to know its tag before it can read its body, and keeps the text of what it can't read. The reader looks ahead for
//! the tag, which nearly always comes first, reads the body from where the object begins, and goes back to the beginning when the
//! body does not fit.

mod reader;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, Unexpected, Visitor};

pub use self::reader::{Failed, Reader};
use crate::drift::{self, DriftKind};
use crate::raw::{RawJson, mending};

/// Decodes `text`, which has to be one value.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let mut reader = Reader::of(text);
    match T::deserialize(&mut reader) {
        Ok(value) => reader.end().map(|()| value),
        Err(failed) => Err(reader.error_for(&failed)),
    }
}

impl RawJson {
    /// Decodes the value by [`Reader`], which all types of a protocol share: this is faster than [`decode`](Self::decode), and
    /// faster to build.
    ///
    /// # Errors
    /// When the text is not of `T`'s shape.
    #[doc(hidden)]
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        mending(self.get(), decode)
    }
}

/// A value with a known tag whose body did not have the expected shape.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MisfitValue {
    /// The tag, as it was written.
    pub tag: String,
    /// What did not fit, with line and column inside `raw`.
    pub reason: String,
    /// The whole value as it came.
    pub raw: RawJson,
}

impl MisfitValue {
    #[doc(hidden)]
    pub fn __new(tag: String, reason: String, raw: RawJson) -> Self {
        Self { tag, reason, raw }
    }
}

/// A union whose variants differ by a tag.
#[doc(hidden)]
pub trait Union: Sized {
    /// Its Rust name.
    const NAME: &'static str;
    /// The key of the tag.
    const TAG: &'static str;

    /// Reads the body of a known tag. `None` for one that is not known.
    fn fit(tag: &str, reader: &mut Reader<'_>) -> Option<Result<Self, Failed>>;

    /// What an unknown tag becomes.
    fn unknown(raw: RawJson) -> Self;

    /// What a body that does not fit becomes.
    fn misfit(misfit: Box<MisfitValue>) -> Self;
}

/// The name by which a union asks the reader to hand over.
const UNION: &str = "$outrigger::Union";

/// What goes between the reader and a union, which know nothing of each other's types: serde stands between them.
#[derive(Debug, Clone, Copy)]
enum Handover {
    Nothing,
    /// The reader hands over its text, and this.
    Given(reader::Level),
    /// The union gives back how far it has read.
    Read(usize),
}

thread_local! {
    static HANDOVER: Cell<Handover> = const { Cell::new(Handover::Nothing) };
}

/// Reads a union, for its `Deserialize`.
#[doc(hidden)]
pub fn union<'de, T: Union, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Tagged<T>(PhantomData<T>);
    impl<'de, T: Union> Visitor<'de> for Tagged<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an object with a string `{}`", T::TAG)
        }
        fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<T, E> {
            let Handover::Given(level) = HANDOVER.replace(Handover::Nothing) else {
                return Err(E::invalid_type(Unexpected::Str(text), &self));
            };
            let mut reader = Reader::at(text, level);
            let read = read(&mut reader);
            HANDOVER.set(Handover::Read(reader.position()));
            read.map_err(E::custom)
        }
        fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
            let raw = RawJson::deserialize(deserializer)?;
            read(&mut Reader::of(raw.get())).map_err(D::Error::custom)
        }
    }
    deserializer.deserialize_newtype_struct(UNION, Tagged(PhantomData))
}

fn read<T: Union>(reader: &mut Reader<'_>) -> Result<T, Failed> {
    let noted = drift::count();
    let tag = reader.tag(T::NAME, T::TAG)?;
    let fitted = match T::fit(&tag, reader) {
        Some(Ok(value)) if !reader.has_other_tags() => return Ok(value),
        fitted => fitted,
    };
    let mut value = None;
    let mut keep =
        |fitted: Option<Result<T, Failed>>| fitted.map(|fitted| fitted.map(|fitted| value = Some(fitted)));
    let fitted = keep(fitted);
    let mut fit = |tag: &str, reader: &mut Reader<'_>| keep(T::fit(tag, reader));
    match reconsider(reader, (T::NAME, T::TAG), &tag, noted, fitted, &mut fit)? {
        Odd::Fits => value.ok_or_else(|| Failed::custom("not read")),
        Odd::Unknown(raw) => Ok(T::unknown(raw)),
        Odd::Misfit(misfit) => Ok(T::misfit(misfit)),
    }
}

/// What a union is that is not as it usually is.
enum Odd {
    /// What was read last.
    Fits,
    Unknown(RawJson),
    Misfit(Box<MisfitValue>),
}

/// Reads the body of a tag, and says whether the tag is known and the body fits it.
type Fit<'f> = &'f mut dyn FnMut(&str, &mut Reader<'_>) -> Option<Result<(), Failed>>;

/// What is to be made of a union that is not as it usually is. `noted` is the drift before it, `fitted` what came of its first tag.
/// It knows nothing of the union's type: there are many.
#[cold]
#[inline(never)]
fn reconsider(
    reader: &mut Reader<'_>,
    (name, key): (&'static str, &'static str),
    tag: &str,
    noted: usize,
    mut fitted: Option<Result<(), Failed>>,
    fit: Fit<'_>,
) -> Result<Odd, Failed> {
    let mut reason = match &fitted {
        Some(Err(failed)) => reader.reason(failed),
        _ => String::new(),
    };
    let raw = reader.whole()?;
    let last = reader.last_tag(&raw, name, key)?;
    if last != tag {
        drift::forget(noted);
        let mut again = reader.careful(raw.get());
        fitted = fit(&last, &mut again);
        if let Some(Err(failed)) = &fitted {
            reason = again.reason(failed);
        }
    }
    match fitted {
        Some(Ok(())) => return Ok(Odd::Fits),
        Some(Err(_)) => {}
        None => {
            drift::note(name, &last, DriftKind::UnknownTag);
            return Ok(Odd::Unknown(raw));
        }
    }
    if let Some(mended) = crate::repair::lone_surrogates(raw.get()) {
        drift::forget(noted);
        let mut again = reader.careful(&mended);
        match fit(&last, &mut again) {
            Some(Ok(())) => return Ok(Odd::Fits),
            Some(Err(failed)) => reason = again.reason(&failed),
            None => {}
        }
    }
    drift::note(name, &last, DriftKind::Misfit(reason.clone()));
    Ok(Odd::Misfit(Box::new(MisfitValue::__new(last, reason, raw))))
}
