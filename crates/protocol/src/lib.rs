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
//! Guarantees:
//! * **Nothing is lost.** A [`Frame`] keeps the bytes of its line.
//! * **Nothing is fatal.** A value without a type becomes the `Unknown` of its enum, a value that does not fit becomes a `Misfit`,
//!   and [`drift`] counts both.
//! * **Nothing is decoded in vain.** A frame reads its type, subtype and ids; [`Frame::decode`] decodes the payload on demand.
//!
//! The first path segment is the direction: [`inbound`] has the frames that the CLI writes, [`outbound`] those that it reads, and
//! [`shared`] the types of both directions.

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

/// The oldest and the newest version of Claude Code with which the types were tested, on recordings and on the program itself.
///
/// Other versions work as far as they agree with these: values without a type are kept and counted ([`drift`]).
pub const TESTED_CLI_VERSIONS: (&str, &str) = ("2.1.332", "2.1.332");
