//! The part of the options that this program keeps and the CLI does not get.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::transport::Transport;
use crate::callbacks::Handlers;
use crate::conn::budget::SlowReader;
use crate::conn::core::Patience;
use crate::env::Surroundings;
use crate::mcp::McpHosting;
use crate::ownership::LeaseOptions;
use crate::store_config::StoreOptions;
use crate::usage::SessionUsage;

/// The parts of a session that live in this program: callbacks, servers, transport, store, lease.
#[derive(Clone)]
pub(crate) struct Hosting {
    pub(crate) handlers: Handlers,
    pub(crate) mcp: McpHosting,
    /// `None` for a process on this machine.
    pub(crate) transport: Option<Arc<dyn Transport>>,
    pub(crate) start_deadline: Duration,
    pub(crate) initialize_deadline: Option<Duration>,
    pub(crate) control_deadline: Duration,
    pub(crate) interrupt_deadline: Duration,
    pub(crate) patience: Patience,
    pub(crate) run_deadline: Option<Duration>,
    pub(crate) usage_so_far: Option<SessionUsage>,
    pub(crate) close_grace: Duration,
    pub(crate) term_grace: Duration,
    pub(crate) buffer_bytes: usize,
    pub(crate) slow_reader: SlowReader,
    pub(crate) stderr_tail_bytes: usize,
    pub(crate) stderr: Option<crate::stderr::StderrCallback>,
    pub(crate) store: StoreOptions,
    pub(crate) lease: Option<LeaseOptions>,
}

impl Default for Hosting {
    fn default() -> Self {
        Self {
            handlers: Handlers::default(),
            mcp: McpHosting::default(),
            transport: None,
            start_deadline: Duration::from_secs(30),
            initialize_deadline: None,
            control_deadline: Duration::from_secs(60),
            interrupt_deadline: Duration::from_secs(10),
            patience: Patience {
                first_token: Some(Duration::from_secs(600)),
                between_events: Some(Duration::from_secs(300)),
                turn: None,
            },
            run_deadline: None,
            usage_so_far: None,
            close_grace: Duration::from_secs(5),
            term_grace: Duration::from_secs(5),
            buffer_bytes: 64 * 1024 * 1024,
            slow_reader: SlowReader::default(),
            stderr_tail_bytes: 64 * 1024,
            stderr: None,
            store: StoreOptions::default(),
            lease: None,
        }
    }
}

impl fmt::Debug for Hosting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hosting")
    }
}

impl Hosting {
    pub(crate) fn is_local(&self) -> bool {
        self.transport
            .as_ref()
            .is_none_or(|transport| transport.is_local())
    }

    /// The surroundings of a launch: those of this process, with the transport's home.
    pub(crate) fn surroundings(&self) -> Surroundings {
        let mut surroundings = Surroundings::of_this_process();
        if let Some(home) = self.transport.as_ref().and_then(|transport| transport.home()) {
            surroundings.move_home(home);
        }
        surroundings
    }

    pub(crate) fn can_reopen(&self) -> bool {
        self.transport
            .as_ref()
            .is_none_or(|transport| transport.can_reopen())
    }
}
