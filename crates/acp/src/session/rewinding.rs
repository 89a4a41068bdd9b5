//! How a session rewinds to an earlier prompt.
//!
//! Nothing else runs meanwhile: a rewind is rejected while a prompt is open, and new prompts wait for its end. The CLI rewinds the
//! files. For the conversation, the process is ended, and another one continues behind the answer before the prompt.

use agent_client_protocol::{Error, ErrorCode};
use futures_util::future::BoxFuture;
use outrigger::Session;
use outrigger::protocol::outbound::control::{RewindFiles, RewindFilesReply};
use tokio::sync::oneshot;

use super::actor::Actor;
use super::conversation::Conversation;
use super::process::Process;
use crate::error;
use crate::outcome;
use crate::rewind::{Behind, Rewind, Rewound, place};
use crate::sdk_error;

type RewindReply = oneshot::Sender<Result<Rewound, Error>>;

/// The progress of a rewind.
#[derive(Default)]
pub(super) enum Rewinding {
    #[default]
    No,
    /// The rewind waits for a process.
    Asked(Rewind, RewindReply),
    /// The place of the prompt is searched, and the files are rewound.
    Files(BoxFuture<'static, Result<Planned, Error>>, RewindReply),
    /// The process is replaced by another.
    Conversation(Rewound, RewindReply),
}

/// The result for the files, and what is left to do.
pub(super) struct Planned {
    rewound: Rewound,
    behind: Option<Behind>,
}

impl Rewinding {
    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Self::No)
    }

    /// Waits for the files to be rewound; for ever without a rewind.
    pub(super) async fn planned(&mut self) -> Result<Planned, Error> {
        match self {
            Self::Files(work, _) => work.await,
            _ => std::future::pending().await,
        }
    }

    /// Sends the reply.
    fn end(&mut self, told: Result<Rewound, Error>) {
        let (Self::Asked(_, reply) | Self::Files(_, reply) | Self::Conversation(_, reply)) =
            std::mem::take(self)
        else {
            return;
        };
        // The caller may have gone.
        let _ = reply.send(told);
    }
}

impl Actor {
    pub(super) fn rewind(&mut self, request: Rewind, reply: RewindReply) {
        let refused = if !request.files && !request.conversation {
            Some(error::bad(
                "files",
                "neither the files nor the conversation are to be taken back",
            ))
        } else if self.is_busy() || self.rewinding.is_on() {
            Some(Error::new(
                ErrorCode::INVALID_REQUEST,
                "Invalid request: a prompt runs; cancel it or wait for its end before going back",
            ))
        } else {
            None
        };
        match refused {
            // The caller may have gone.
            Some(error) => drop(reply.send(Err(error))),
            None => self.rewinding = Rewinding::Asked(request, reply),
        }
    }

    /// Begins a requested rewind, with a running process.
    pub(super) fn begin_rewind(&mut self, session: &Session) {
        self.rewinding = match std::mem::take(&mut self.rewinding) {
            Rewinding::Asked(request, reply) => {
                let conversation = self.conversation.id.clone();
                Rewinding::Files(Box::pin(plan(session.clone(), conversation, request)), reply)
            }
            other => other,
        };
    }

    pub(super) fn planned(&mut self, planned: Result<Planned, Error>) {
        let (rewound, behind) = match planned {
            Ok(Planned { rewound, behind }) => (rewound, behind),
            Err(error) => return self.rewinding.end(Err(error)),
        };
        let Some(behind) = behind else {
            return self.rewinding.end(Ok(rewound));
        };
        let Rewinding::Files(_, reply) = std::mem::take(&mut self.rewinding) else {
            return;
        };
        self.rewinding = Rewinding::Conversation(rewound, reply);
        // Background work ends with the process, and so does a turn that it began meanwhile.
        self.process_over();
        self.activity.turn_ends(|| Ok(outcome::cancelled(None)));
        let ended = self.process.session().clone();
        match behind {
            Behind::Answer(uuid) => self.conversation.behind = Some(uuid),
            Behind::Nothing => self.conversation.start_over(),
        }
        let revival = Box::pin(go_back(ended.clone(), &self.conversation));
        self.process = Process::Reviving { ended, revival };
    }

    /// The process was revived, or was not.
    pub(super) fn rewound(&mut self, failed: Option<&outrigger::Error>) {
        if let Rewinding::Conversation(rewound, _) = &self.rewinding {
            let told = match failed {
                None => Ok(rewound.clone()),
                Some(why) => Err(sdk_error::of_sdk(why)),
            };
            self.rewinding.end(told);
        }
        if failed.is_some() {
            let why = "the CLI did not come back to go on with it";
            self.rewinding.end(Err(error::internal(why)));
        }
    }

    pub(super) fn end_rewind(&mut self) {
        self.rewinding.end(Err(error::internal("the session was closed")));
    }
}

/// Finds the place of the prompt, and rewinds the files unless this is a dry run.
async fn plan(session: Session, conversation: String, request: Rewind) -> Result<Planned, Error> {
    let mut rewound = Rewound {
        can_rewind: true,
        ..Rewound::default()
    };
    let place = place(session.options(), &conversation, &request.message_id).await?;
    let mut behind = None;
    if request.conversation {
        rewound.messages_removed = Some(place.removed);
        behind = Some(place.behind);
    }
    if request.files {
        // Only a dry run returns the counts.
        let would = files(&session, &request.message_id, true).await?;
        rewound.can_rewind = would.can_rewind;
        rewound.error = would.error;
        rewound.files_changed = would.files_changed;
        rewound.insertions = would.insertions;
        rewound.deletions = would.deletions;
    }
    if !rewound.can_rewind || request.dry_run {
        return Ok(Planned {
            rewound,
            behind: None,
        });
    }
    if request.files {
        let done = files(&session, &request.message_id, false).await?;
        rewound.can_rewind = done.can_rewind;
        rewound.error = done.error;
        rewound.skipped_links = done.skipped_links;
        if !rewound.can_rewind {
            behind = None;
        }
    }
    Ok(Planned { rewound, behind })
}

async fn files(session: &Session, message: &str, dry: bool) -> Result<RewindFilesReply, Error> {
    let request = RewindFiles::new(message).dry_run(dry);
    let reply = session.request(&request).await;
    reply.map_err(|error| sdk_error::of_sdk(&error))
}

/// Ends the process, and continues the conversation in another.
pub(super) fn go_back(
    session: Session,
    conversation: &Conversation,
) -> impl Future<Output = Result<Session, outrigger::Error>> + Send + use<> {
    let (again, behind) = (conversation.again.clone(), conversation.behind.clone());
    async move {
        if let Err(error) = session.clone().close().await {
            tracing::debug!(%error, "a process could not be closed");
        }
        match behind {
            Some(behind) => Ok(session.revive_at(&behind).await?.session),
            None => again.start().await,
        }
    }
}
