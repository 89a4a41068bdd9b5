//! The serialized form of frames.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_protocol::framer::Framed;
use outrigger_protocol::{Frame, Misfit, MisfitKind, RawJson, walk};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A frame: the JSON object as the CLI wrote it, byte for byte. A line that is no frame is an object without a `type`, with the text
/// of the line in `line`, or its bytes in `line_base64`.
#[derive(Debug, Clone)]
pub(crate) struct FrameForm(pub(crate) Frame);

/// A line that is no frame, or not UTF-8.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LineForm {
    /// The line, if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// The bytes of the line in base64, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_base64: Option<String>,
    /// The length of a line that was too long, in bytes. Only the beginning of such a line is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oversized: Option<u64>,
}

/// Why a frame could not be decoded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MisfitForm {
    /// `not_json`, `no_type`, `oversized` or `shape`.
    kind: String,
    /// The length of an oversized line, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    /// The reason, with line and column where there is one.
    reason: String,
}

impl From<Misfit> for MisfitForm {
    fn from(misfit: Misfit) -> Self {
        let (kind, length) = match misfit.kind {
            MisfitKind::NotJson => ("not_json", None),
            MisfitKind::NoType => ("no_type", None),
            MisfitKind::Oversized(length) => ("oversized", Some(length)),
            // `Shape`, and what later versions of the protocol crate tell apart.
            _ => ("shape", None),
        };
        Self {
            kind: kind.to_owned(),
            length,
            reason: misfit.reason,
        }
    }
}

impl From<&MisfitForm> for Misfit {
    fn from(form: &MisfitForm) -> Self {
        let kind = match form.kind.as_str() {
            "not_json" => MisfitKind::NotJson,
            "no_type" => MisfitKind::NoType,
            "oversized" => MisfitKind::Oversized(form.length.unwrap_or_default()),
            _ => MisfitKind::Shape,
        };
        Self::new(kind, form.reason.as_str())
    }
}

/// The frame as JSON, if that is all of it.
fn as_json(frame: &Frame) -> Option<RawJson> {
    if frame.flaw().is_some() || frame.bytes().contains(&b'\n') {
        return None;
    }
    let text = std::str::from_utf8(frame.bytes()).ok()?;
    let json = RawJson::from_text(text).ok()?;
    // An object without a `type` is the other form.
    (json.get() == text && has_type(&json)).then_some(json)
}

fn has_type(json: &RawJson) -> bool {
    walk::string_at(json.get(), "type").is_some()
}

impl Serialize for FrameForm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(json) = as_json(&self.0) {
            return json.serialize(serializer);
        }
        LineForm::of(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FrameForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = RawJson::deserialize(deserializer)?;
        read(&json).map(Self).map_err(serde::de::Error::custom)
    }
}

impl LineForm {
    fn of(frame: &Frame) -> Self {
        let mut form = Self::default();
        match std::str::from_utf8(frame.bytes()) {
            Ok(text) => form.line = Some(text.to_owned()),
            Err(_) => form.line_base64 = Some(STANDARD.encode(frame.bytes())),
        }
        if let Some(MisfitKind::Oversized(length)) = frame.flaw().map(|flaw| flaw.kind) {
            form.oversized = Some(length);
        }
        form
    }

    fn into_frame(self) -> Result<Frame, String> {
        let bytes = match (self.line, self.line_base64) {
            (Some(line), None) => line.into_bytes(),
            (None, Some(line)) => STANDARD
                .decode(line)
                .map_err(|error| format!("the `line_base64` of a frame: {error}"))?,
            _ => return Err("a frame has a `type`, a `line` or a `line_base64`".to_owned()),
        };
        if let Some(length) = self.oversized {
            let framed = Framed::Oversized { head: bytes, length };
            return Frame::read(framed).into_iter().next().ok_or_else(nothing);
        }
        let mut frames = Frame::from_line(&bytes).into_iter();
        match (frames.next(), frames.next()) {
            (Some(frame), None) if frame.bytes() == bytes => Ok(frame),
            // What is left of a line of too many objects.
            _ => {
                let reason = format!("more than {} objects on one line", Frame::MOST_ON_A_LINE);
                Ok(Frame::flawed(&bytes, Misfit::new(MisfitKind::NotJson, reason)))
            }
        }
    }
}

fn nothing() -> String {
    "a frame is empty".to_owned()
}

fn read(json: &RawJson) -> Result<Frame, String> {
    if !has_type(json) {
        let line: LineForm = json.read().map_err(|error| format!("a frame: {error}"))?;
        return line.into_frame();
    }
    let frame = Frame::from_line(json.get())
        .into_iter()
        .next()
        .ok_or_else(nothing)?;
    match frame.flaw() {
        None => Ok(frame),
        Some(flaw) => Err(format!("a frame: {flaw}")),
    }
}

/// Either of the two, for the schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum FrameSchema {
    /// The JSON object that the CLI wrote.
    Frame {
        /// The CLI's `type`.
        r#type: String,
    },
    /// A line that is no frame.
    Line(LineForm),
}
