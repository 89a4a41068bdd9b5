//! Partial messages: text that is added to a block of the answer.

use std::borrow::Cow;

use super::head::Span;

/// The kind of text that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PieceKind {
    /// The answer: `text_delta`.
    Text,
    /// The model's reasoning: `thinking_delta`.
    Thinking,
    /// JSON text of a tool call's input: `input_json_delta`.
    InputJson,
}

/// The addition of a `content_block_delta` to a block; see [`Frame::delta`](super::Frame::delta).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delta<'f> {
    /// The block's place in the message.
    pub index: u64,
    /// The kind of text.
    pub kind: PieceKind,
    /// The text.
    pub text: Cow<'f, str>,
}

/// Where a delta is in the frame's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeltaPiece {
    pub(super) index: u32,
    pub(super) kind: PieceKind,
    pub(super) text: Span,
}
