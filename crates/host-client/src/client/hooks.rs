//! What the host does by itself: webhooks and schedules.

use hyper::Method;
use serde::Deserialize;

use super::{HostClient, encoded};
use crate::address::segment;
use crate::document::{AddedWebhook, Schedule, Webhook};
use crate::error::Result;
use crate::exchange::{HostRequest, Repeat};
use crate::request::{NewSchedule, NewWebhook};

impl HostClient {
    /// The webhooks, without their secrets.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn webhooks(&self) -> Result<Vec<Webhook>> {
        #[derive(Deserialize)]
        struct WebhookList {
            webhooks: Vec<Webhook>,
        }
        let answer: WebhookList = self.fetch(HostRequest::get("/v1/webhooks".to_owned())).await?;
        Ok(answer.webhooks)
    }

    /// Adds a webhook, which gets the events of all sessions from now on. It is not sent again when its answer is lost: then there may be a webhook whose
    /// secret nobody knows, to be removed.
    ///
    /// # Errors
    /// When the operator does not allow the address, or the host refuses or is away.
    pub async fn add_webhook(&self, new: &NewWebhook) -> Result<AddedWebhook> {
        let request = HostRequest::new(Method::POST, "/v1/webhooks".to_owned(), Repeat::Unsafe);
        self.fetch(request.body(encoded(new)?)).await
    }

    /// Removes a webhook.
    ///
    /// # Errors
    /// When there is none, or the host refuses or is away.
    pub async fn remove_webhook(&self, id: &str) -> Result<()> {
        self.deleted(format!("/v1/webhooks/{}", segment(id)?)).await
    }

    /// Enables a webhook that the host disabled because its address was dead. It gets what it missed.
    ///
    /// # Errors
    /// When there is none, or the host refuses or is away.
    pub async fn enable_webhook(&self, id: &str) -> Result<()> {
        let path = format!("/v1/webhooks/{}/enable", segment(id)?);
        self.execute(HostRequest::new(Method::POST, path, Repeat::Safe))
            .await
    }

    /// The schedules of all sessions.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub async fn schedules(&self) -> Result<Vec<Schedule>> {
        #[derive(Deserialize)]
        struct ScheduleList {
            schedules: Vec<Schedule>,
        }
        let answer: ScheduleList = self.fetch(HostRequest::get("/v1/schedules".to_owned())).await?;
        Ok(answer.schedules)
    }

    /// Adds a schedule. It is not sent again when its answer is lost: the prompt would be sent twice each time.
    ///
    /// # Errors
    /// When the expression or the time zone is none, there is no such session, or the host refuses or is away.
    pub async fn add_schedule(&self, new: &NewSchedule) -> Result<Schedule> {
        let request = HostRequest::new(Method::POST, "/v1/schedules".to_owned(), Repeat::Unsafe);
        self.fetch(request.body(encoded(new)?)).await
    }

    /// Removes a schedule. Prompts that it has sent stay.
    ///
    /// # Errors
    /// When there is none, or the host refuses or is away.
    pub async fn remove_schedule(&self, id: &str) -> Result<()> {
        self.deleted(format!("/v1/schedules/{}", segment(id)?)).await
    }
}
