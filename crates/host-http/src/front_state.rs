//! What all handlers share.

use std::collections::BTreeSet;

use outrigger_host::SessionHost;
use outrigger_host_hooks::{Schedules, Webhooks};
use tokio::sync::watch;
use uuid::Uuid;

use crate::limits::{Limits, OpenStreams};
use crate::peer::Peer;
use crate::rate::Rates;
use crate::token::Tokens;

pub(crate) struct FrontState {
    pub(crate) host: SessionHost,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    pub(crate) names: BTreeSet<String>,
    pub(crate) origins: BTreeSet<String>,
    pub(crate) streams: OpenStreams,
    /// Whether a proxy is in front.
    pub(crate) proxied: bool,
    /// How fast tokens ask.
    pub(crate) rates: Rates<Uuid>,
    /// How fast clients without a token may send requests.
    pub(crate) strangers: Rates<Peer>,
    pub(crate) webhooks: Webhooks,
    pub(crate) schedules: Schedules,
    /// Ends the streams when the front shuts down.
    pub(crate) closing: watch::Receiver<bool>,
}
