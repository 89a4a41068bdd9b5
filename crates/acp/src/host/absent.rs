//! Without the feature `host` there are no hosts: these types have no values.

use std::io;
use std::path::Path;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::options::Launch;
use outrigger::protocol::Frame;
use outrigger::transport::{BoxFuture, Connection, Transport};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub(crate) enum Host {}

impl Host {
    pub(crate) async fn create(&self, _: &Path) -> Result<HostSession, Error> {
        match *self {}
    }

    pub(crate) async fn find(&self, _: &acp::SessionId) -> Result<HostSession, Error> {
        match *self {}
    }

    pub(crate) async fn fork(&self, _: &acp::SessionId) -> Result<HostSession, Error> {
        match *self {}
    }

    pub(crate) async fn list(&self, _: acp::ListSessionsRequest) -> Result<acp::ListSessionsResponse, Error> {
        match *self {}
    }

    pub(crate) async fn delete(&self, _: &acp::SessionId) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) async fn set_title(&self, _: &acp::SessionId, _: &str) -> Result<(), Error> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum HostSession {}

impl HostSession {
    pub(crate) fn id(&self) -> acp::SessionId {
        match *self {}
    }

    pub(crate) fn cwd(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn mode(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) fn model(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) fn is_working(&self) -> bool {
        match *self {}
    }

    pub(crate) fn notice(&self, _: &str) -> Vec<Frame> {
        match *self {}
    }

    pub(crate) async fn page(&mut self) -> Result<Option<Vec<Frame>>, Error> {
        match *self {}
    }

    pub(crate) fn link(self, _: CancellationToken) -> HostLink {
        match self {}
    }
}

#[derive(Debug, Clone)]
pub(crate) enum HostLink {}

impl HostLink {
    pub(crate) fn go(&self) {
        match *self {}
    }

    pub(crate) fn leave(&self) {
        match *self {}
    }
}

impl Transport for HostLink {
    fn open<'a>(&'a self, _: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        match *self {}
    }
}
