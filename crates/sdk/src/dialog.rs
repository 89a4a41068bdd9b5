//! Dialogs that the CLI requests (`request_user_dialog`).

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use outrigger_protocol::Frame;
use outrigger_protocol::inbound::RequestUserDialog;
pub use outrigger_protocol::outbound::UserDialogResult;

use crate::callback_kind::{Callback, CallbackReply, read};
use crate::conn::Context;
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest};
use crate::peer::BoxFuture;

/// A dialog for the user. Its fields are those of [`RequestUserDialog`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DialogRequest {
    /// The request's id, whether it was withdrawn, and the session.
    pub context: Context,
    /// The frame of the request.
    pub frame: Frame,
    dialog: RequestUserDialog,
}

impl Deref for DialogRequest {
    type Target = RequestUserDialog;

    fn deref(&self) -> &RequestUserDialog {
        &self.dialog
    }
}

impl DialogRequest {
    pub(crate) fn read(frame: &Frame, context: Context) -> Result<Self, String> {
        Ok(Self {
            dialog: read(frame)?,
            context,
            frame: frame.clone(),
        })
    }
}

/// An error closes the dialog.
impl<E: std::fmt::Display> From<Result<UserDialogResult, E>> for CallbackReply<UserDialogResult> {
    fn from(result: Result<UserDialogResult, E>) -> Self {
        Self::Now(result.unwrap_or_else(|error| {
            tracing::warn!(%error, "the dialog is cancelled");
            UserDialogResult::Cancelled
        }))
    }
}

pub(crate) type DialogCallback = Callback<DialogRequest, CallbackReply<UserDialogResult>>;

/// Answers `request_user_dialog` for the declared kinds, and leaves the others open: another client may have declared them, and a
/// reply from here would take them away.
#[derive(Clone, Default)]
pub(crate) struct Dialogs(pub(crate) Arc<BTreeMap<String, DialogCallback>>);

impl Dialogs {
    fn callback(&self, frame: &Frame) -> Option<(RequestUserDialog, DialogCallback)> {
        let dialog: RequestUserDialog = read(frame).ok()?;
        let callback = self.0.get(&dialog.dialog_kind)?;
        Some((dialog, Arc::clone(callback)))
    }
}

impl Answerer for Dialogs {
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply> {
        let CliRequest { frame, context } = asking;
        let Some((dialog, callback)) = self.callback(&frame) else {
            return Box::pin(std::future::ready(CliReply::NotOurs));
        };
        let request = DialogRequest {
            context,
            frame,
            dialog,
        };
        Box::pin(async move { callback(request).await.into_answer() })
    }

    fn refuse(&self, frame: &Frame, _: &str) -> CliReply {
        match self.callback(frame) {
            Some(_) => CliReply::success(&UserDialogResult::Cancelled),
            None => CliReply::NotOurs,
        }
    }
}
