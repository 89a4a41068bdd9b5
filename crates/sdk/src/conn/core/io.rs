//! The inputs and outputs of the core.

use std::time::Duration;

use outrigger_protocol::drift::Drift;
use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, RawJson};

use super::open_requests::Serial;
use super::turns::Accept;
use crate::error::Error;
use crate::outcome::Outcome;
use crate::usage::SessionUsage;

/// An event that changes the core.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    /// The CLI wrote a line.
    Frame(&'a Frame),
    /// A frame that the SDK made, to be emitted like those of the CLI. It is no sign of life of the CLI.
    Own(&'a Frame),
    /// Readers have decoded frames, with this many misfits and this drift.
    Decoded { misfits: u64, drift: &'a [Drift] },
    /// The CLI announced `command_lifecycle` frames.
    Lifecycle,
    /// The session has this id.
    SessionId(&'a str),
    /// The session will have this id, unless the CLI has reported another.
    ExpectedSessionId(&'a str),
    /// Earlier processes of the session used this.
    UsedEarlier(&'a SessionUsage),
    /// Accept a prompt. Outputs refer to it by `number`, which is greater than any before.
    Prompt { number: u64, prompt: Accept },
    /// Take back a prompt if it was not sent.
    TakeBack { prompt: &'a str },
    /// The CLI has taken a prompt back.
    TakenBack { prompt: &'a str },
    /// The CLI's stdin is about to be closed.
    Closing,
    /// Hold prompts back (`true`), or no longer.
    HoldBack(bool),
    /// An interrupt begins (`true`) or is done: no prompt is sent in between.
    Gate(bool),
    /// An interrupt of the current or the next turn is about to be sent.
    Interrupt,
    /// A reply to the CLI ends the running turn. Other prompts go on.
    InterruptByReply,
    /// The CLI rejected the interrupt of this turn.
    InterruptRefused { turn: Option<u64> },
    /// The CLI had enough time to report whose turn this is.
    Confirm { turn: u64 },
    /// The session has this time in all from now on.
    RunDeadline(Option<Duration>),
    /// An SDK request is about to be sent.
    Request { id: &'a str, subtype: &'a str },
    /// The reply to an SDK request is no longer needed.
    Forget { id: &'a str },
    /// Claim the right to answer a CLI request. An error if it was answered or withdrawn before: then nothing may be written.
    Claim(Serial),
    /// The reply was passed to the writer.
    Written(Serial),
    /// Another program replies to the request.
    Leave(Serial),
    /// The session ends, with this error.
    End(&'a Error),
}

/// An action for the driver.
#[derive(Debug)]
pub(crate) enum Output {
    /// Emit the frame to the reader of a prompt's turn.
    Deliver { prompt: u64, frame: Frame },
    /// The prompt has ended. Its last output.
    Settle {
        prompt: u64,
        settled: Result<Outcome, Error>,
    },
    /// Emit the frame as ambient: it belongs to no prompt.
    Ambient(Frame),
    /// An ambient turn has ended.
    AmbientEnded(Outcome),
    /// The CLI sent `system/init`, at the beginning of a turn.
    Init(Frame),
    /// The reply to an SDK request. Its last output.
    Reply {
        id: String,
        reply: Result<RawJson, Error>,
    },
    /// Answer a CLI request, under the id as the CLI wrote it.
    CliRequest {
        serial: Serial,
        id: RequestId,
        frame: Frame,
    },
    /// Reject a CLI request: there is no room.
    RefuseRequest {
        serial: Serial,
        id: RequestId,
        frame: Frame,
    },
    /// The CLI does not read its replies: end the process.
    Flood,
    /// The CLI request was withdrawn: stop its callback.
    Withdrawn(Serial),
    /// A prompt may be ready to be sent.
    Dispatch,
    /// The deadline of the watchdog has changed.
    Watch,
    /// No CLI request is open any more.
    Unblocked,
    /// The state of the run may have changed.
    Changed,
    /// It is only a guess that this turn answers a prompt: send `Confirm` after a moment.
    Unsure(u64),
    /// The last output.
    Ended,
}
