//! Control requests and their replies, in both directions.

use std::collections::{BTreeMap, HashMap};

use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, RawJson};

use super::open_requests::Arrival;
use super::{Core, MAX_REQUESTS, Output};
use crate::error::{Error, Kind, Refusal};
use crate::fields::Fields;

impl Core {
    /// Registers an SDK request.
    pub(super) fn expect(&mut self, id: &str, subtype: &str) -> Result<(), Error> {
        if self.pending.len() >= MAX_REQUESTS {
            return Err(Error::new(Kind::Busy {
                what: "unanswered control requests",
                limit: MAX_REQUESTS,
            }));
        }
        self.pending.insert(id.to_owned(), subtype.to_owned());
        Ok(())
    }

    pub(super) fn on_response(&mut self, frame: &Frame) {
        let request = frame.request_id().and_then(|id| self.pending.remove_entry(id));
        let Some((id, request)) = request else {
            // A reply to a cancelled request, or an echo of the SDK's own reply.
            self.stats.unmatched_responses += 1;
            return;
        };
        let body = Fields::of(frame).get::<RawJson>("response").unwrap_or_default();
        let body: HashMap<String, RawJson> = body.decode().unwrap_or_default();
        let text = |key: &str| body.get(key).and_then(|value| value.decode::<String>().ok());
        let listed = if request == "initialize" {
            listed(&body)
        } else {
            Vec::new()
        };
        let reply = if let Some(flaw) = frame.flaw() {
            // What is left of it would read as a plain acknowledgement.
            Err(Error::misfit(format!("the answer to `{request}`"), flaw.clone()))
        } else if frame.subtype() == Some("success") {
            // A plain acknowledgement has no payload.
            Ok(body.get("response").cloned().unwrap_or_default())
        } else {
            let message = text("error").unwrap_or_else(|| "the CLI gave no reason".to_owned());
            Err(Error::new(Kind::Refusal(Refusal {
                request,
                message,
                code: text("error_code"),
            })))
        };
        self.out.push(Output::Reply { id, reply });
        // The requests that the CLI lists as open have come before, unless they went to an earlier program.
        for frame in listed {
            if id_of(&frame).is_some_and(|id| !self.open_requests.knows(id.as_str())) {
                self.on_request(&frame);
            }
        }
    }

    pub(super) fn on_request(&mut self, frame: &Frame) {
        let Some(id) = id_of(frame) else {
            self.stats.misfits += 1;
            return;
        };
        let arrival = self.open_requests.arrive(&id, frame);
        let frame = frame.clone();
        self.out.push(match arrival {
            Arrival::New(serial) => Output::CliRequest { serial, id, frame },
            Arrival::TooMany(serial) => Output::RefuseRequest { serial, id, frame },
            Arrival::Flood => Output::Flood,
            Arrival::Duplicate => {
                self.stats.duplicate_requests += 1;
                return;
            }
        });
    }

    pub(super) fn on_cancel(&mut self, frame: &Frame) {
        if let Some(id) = id_of(frame) {
            let withdrawn = self.open_requests.withdraw(id.as_str());
            if let Some(serial) = withdrawn {
                self.out.extend([Output::Withdrawn(serial), Output::Changed]);
            }
        }
    }
}

/// The id of a request of the CLI, which may be a number. An oversized line is not JSON, but its beginning may have the id.
fn id_of(frame: &Frame) -> Option<RequestId> {
    let shown = || frame.request_id().map(RequestId::from);
    frame.written_request_id().or_else(shown)
}

/// The open requests in the reply to `initialize`.
fn listed(body: &HashMap<String, RawJson>) -> Vec<Frame> {
    const LISTS: [&str; 3] = [
        "pending_permission_requests",
        "pending_user_dialog_requests",
        "pending_elicitation_requests",
    ];
    let lists = LISTS.iter().filter_map(|list| body.get(*list));
    let requests = lists.flat_map(|list| list.decode::<Vec<RawJson>>().unwrap_or_default());
    requests
        .flat_map(|request| Frame::from_line(without_waiver(&request).as_ref().unwrap_or(&request).get()))
        .filter(|frame| frame.kind() == "control_request")
        .collect()
}

/// The request without the mark that only the policy of an MCP server asks. It says how things were when the request was made, and a
/// program may take it for leave to allow the call. `None` if it has no such mark.
fn without_waiver(request: &RawJson) -> Option<RawJson> {
    let mut request: BTreeMap<String, RawJson> = request.read().ok()?;
    let mut body: BTreeMap<String, RawJson> = request.get("request")?.read().ok()?;
    body.remove("server_policy_ask_only")?;
    request.insert("request".to_owned(), RawJson::encode(&body).ok()?);
    RawJson::encode(&request).ok()
}
