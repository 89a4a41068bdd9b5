//! Whether the CLI has an account, and the chosen one, before a model is called.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::InitializeReply;
use outrigger_protocol::outbound::control::{ControlRequest, GetSettings};
use serde::Deserialize;

use crate::conn::encode_request;
use crate::env::{self, Surroundings};
use crate::error::{Error, Result};
use crate::location;
use crate::options::{Auth, CUSTOM_HEADERS, Isolation, NoAccount, carry_credentials, reports_none};
use crate::settings::{ResolveSettings, SettingSource};
use crate::start::{Opened, check_account};

/// How long the CLI may take to tell its settings, where they decide whether there is an account.
const SETTINGS: Duration = Duration::from_secs(5);

impl Opened {
    /// Whether the account is the chosen one, and there is one.
    pub(crate) async fn check_account(&self, initialized: &InitializeReply) -> Result<()> {
        check_account(&self.launch.auth, initialized)?;
        self.require_account(initialized).await
    }

    /// Fails if the CLI reports that it has no account, so that the first turn would. Not for an account that was handed over
    /// by name: what is reported of that one was held against it.
    pub(crate) async fn require_account(&self, initialized: &InitializeReply) -> Result<()> {
        let auth = &self.launch.auth;
        if !matches!(auth, Auth::Inherit | Auth::Login) || !reports_none(&initialized.account) {
            return Ok(());
        }
        let own = env::get(&self.launch.env, CUSTOM_HEADERS).map(OsStr::to_string_lossy);
        if own.is_some_and(|headers| carry_credentials(&headers)) || self.settings_may_pay().await {
            return Ok(());
        }
        let hermetic = self.options.isolation == Isolation::Hermetic && self.options.hermetic_home.is_none();
        Err(Error::of(NoAccount::of(
            auth,
            hermetic,
            &Surroundings::of_this_process().env,
        )))
    }

    /// Whether the settings of the CLI carry a credential in headers, which it does not report.
    async fn settings_may_pay(&self) -> bool {
        let Ok(request) = encode_request(GetSettings::SUBTYPE, &GetSettings::new()) else {
            return true;
        };
        let asked = self.conn.request(GetSettings::SUBTYPE, request, Some(SETTINGS));
        let Ok(reply) = asked.await else {
            return self.files_may_pay().await;
        };
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct AccountReply {
            effective: Effective,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Effective {
            env: BTreeMap<String, RawJson>,
        }
        let Ok(reply) = reply.decode::<AccountReply>() else {
            return true;
        };
        let headers = reply.effective.env.get(CUSTOM_HEADERS);
        let headers = headers.and_then(|headers| headers.decode::<String>().ok());
        headers.is_some_and(|headers| carry_credentials(&headers))
    }

    /// The same for a CLI that does not tell its settings, as those before 2.1.100 don't: by the files that it reads. If these can't be
    /// read from here, they may.
    async fn files_may_pay(&self) -> bool {
        let is_readable = self.options.hosting.is_local() && self.launch.run_as.is_none();
        let config = location::config_dir(&self.launch.env).filter(|_| is_readable);
        let (Some(config), None) = (config, &self.options.settings) else {
            return true;
        };
        let sources = match (&self.options.setting_sources, self.options.isolation) {
            (Some(sources), _) => Some(sources.clone()),
            (None, Isolation::Plain | Isolation::Hermetic) => Some(Vec::new()),
            (None, Isolation::Project) => Some(vec![SettingSource::Project, SettingSource::Local]),
            (None, Isolation::Interactive) => None,
        };
        let mut files = ResolveSettings::new().cwd(&self.launch.cwd).config_dir(config);
        if let Some(sources) = sources {
            files = files.setting_sources(sources);
        }
        let read = tokio::task::spawn_blocking(move || files.variable(CUSTOM_HEADERS));
        let Ok(headers) = read.await else {
            return true;
        };
        headers.iter().any(|headers| carry_credentials(headers))
    }
}
