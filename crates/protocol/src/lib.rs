//! Types and codec of the stream-json protocol that the Claude Code CLI speaks on stdin and stdout.
//!
//! No I/O and no runtime: bytes go in, typed values come out, and the other way round.
//!
//! ```
//! use outrigger_protocol::framer::LineFramer;
//! use outrigger_protocol::{Frame, Message};
//!
//! let mut framer = LineFramer::new(LineFramer::DEFAULT_CAP);
//! framer.feed(b"{\"type\":\"keep_alive\"}\n", |framed| {
//!     for frame in Frame::read(framed) {
//!         assert_eq!(frame.kind(), "keep_alive");
//!         assert!(matches!(frame.decode(), Ok(Message::KeepAlive(_))));
//!     }
//! });
//! ```
//!
//! What to rely on:
//! * **Nothing is lost.** A [`Frame`] keeps the bytes of its line; types never stand in for them.
//! * **Nothing is fatal.** What this build has no type for is an `Unknown` of its enum, what does not fit is a `Misfit`, and
//!   [`drift`] tells about both.
//! * **Nothing is decoded twice or in vain.** A frame reads its type, subtype and ids; the payload waits for
//!   [`Frame::decode`].
//!
//! The first path segment is the direction: [`inbound`] is what the CLI writes, [`outbound`] what it reads, [`shared`] what
//! goes both ways.

pub mod check;
mod frame;
pub mod framer;
pub mod inbound;
mod open_struct;
pub mod outbound;
pub mod settings;
mod shape;
pub mod shared;
pub mod tools;
mod whole;

pub use frame::{Delta, Frame, FrameReader, Misfit, MisfitKind, PieceKind};
pub use inbound::Message;
#[doc(inline)]
pub use outrigger_json::{RawJson, drift, open_enum, repair, walk, wire_enum};

/// The oldest and the newest version of Claude Code that the types were tested with, on recordings and on the program itself.
///
/// Others work as far as they agree with these: what they say beyond the types is kept and told ([`drift`]).
pub const TESTED_CLI_VERSIONS: (&str, &str) = ("2.1.330", "2.1.330");
