//! What goes into the core, and what comes out of it.

use outrigger_protocol::drift::Drift;
use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, RawJson};

use super::open_requests::Serial;
use super::turns::Accept;
use crate::error::Error;
use crate::outcome::Outcome;

/// All that can happen.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    /// The CLI wrote a line.
    Frame(&'a Frame),
    /// Something of our own is told as if the CLI had written it. It is no sign of the CLI's life.
    Own(&'a Frame),
    /// What was decoded of frames has this many misfits, and parts without a type.
    Decoded { misfits: u64, drift: &'a [Drift] },
    /// The CLI announced that it reports the life of prompts.
    Lifecycle,
    /// The session has this id.
    SessionId(&'a str),
    /// The session is going to have this id, unless the CLI has told one.
    ExpectedSessionId(&'a str),
    /// A prompt is to be sent. `number` is greater than that of any before, and what outputs call it.
    Prompt { number: u64, prompt: Accept },
    /// A prompt is not wanted any more: takes it back if it was not sent.
    TakeBack { prompt: &'a str },
    /// The CLI has taken a prompt back.
    TakenBack { prompt: &'a str },
    /// Prompts wait for something else (`true`), or do no longer.
    HoldBack(bool),
    /// An interrupt begins to be carried out (`true`), or was: no prompt is sent meanwhile.
    Gate(bool),
    /// The CLI is asked to end the turn that runs, or the next one.
    Interrupt,
    /// It refused to end the turn of this number.
    InterruptRefused { turn: Option<u64> },
    /// Enough was waited for the CLI to say whose turn this is.
    Confirm { turn: u64 },
    /// A request of ours is about to be sent.
    Request { id: &'a str, subtype: &'a str },
    /// Nobody waits for the reply to it any more.
    Forget { id: &'a str },
    /// A request of the CLI was decided. Refused if it was decided or withdrawn before: then nothing may be written.
    Claim(Serial),
    /// The answer was handed over to be written.
    Written(Serial),
    /// Another program answers the request.
    Leave(Serial),
    /// It is over, for this reason.
    End(&'a Error),
}

/// What has to be done.
#[derive(Debug)]
pub(crate) enum Output {
    /// This is for the reader of a prompt's turn.
    Deliver { prompt: u64, frame: Frame },
    /// The prompt has ended: the last of it.
    Settle {
        prompt: u64,
        settled: Result<Outcome, Error>,
    },
    /// This belongs to no prompt.
    Ambient(Frame),
    /// A turn of no prompt has ended.
    AmbientEnded(Outcome),
    /// A turn has begun, and the CLI told about the session.
    Init(Frame),
    /// The reply to a request of ours: the last of it.
    Reply {
        id: String,
        reply: Result<RawJson, Error>,
    },
    /// A request of the CLI: have it answered, under the id as the CLI wrote it.
    CliRequest {
        serial: Serial,
        id: RequestId,
        frame: Frame,
    },
    /// A request of the CLI for which there is no room.
    RefuseRequest {
        serial: Serial,
        id: RequestId,
        frame: Frame,
    },
    /// There are too many of those.
    Flood,
    /// Nobody waits for the answer to this request any more.
    Withdrawn(Serial),
    /// A prompt may be ready to be sent.
    Dispatch,
    /// Something else is waited for now.
    Watch,
    /// Nobody here keeps the CLI waiting any more.
    Unblocked,
    /// The state of the run may have changed.
    Changed,
    /// This turn was taken for a prompt's: confirm it, unless the CLI says otherwise soon.
    Unsure(u64),
    /// Nothing more comes.
    Ended,
}
