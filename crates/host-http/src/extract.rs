//! What handlers take from a request, and the problem if it is not there.

use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::Body as Bytestream;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use outrigger::SessionId;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::front_state::FrontState;
use crate::limits::Limits;
use crate::problem::{Problem, Refusal};
use crate::token::TokenRecord;

/// The body of a request, which is JSON.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<FrontState>> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, shared: &Arc<FrontState>) -> Result<Self, Refusal> {
        // A page of a foreign site can send other types without being asked first.
        let is_json = single(request.headers(), header::CONTENT_TYPE.as_str())?
            .and_then(|value| value.to_str().ok())
            .is_some_and(is_json);
        if !is_json {
            return Err(Problem::InvalidRequest.because("the body has to be `application/json`"));
        }
        // Nothing is unpacked: it would be larger than its limit.
        if request.headers().contains_key(header::CONTENT_ENCODING) {
            return Err(Problem::InvalidRequest.because("the body has to be sent without `Content-Encoding`"));
        }
        let body = read(request.into_body(), &shared.limits).await?;
        serde_json::from_slice(&body)
            .map(Self)
            .map_err(|error| Problem::InvalidRequest.because(format!("the body: {error}")))
    }
}

/// A header that may be there. One that is there twice is two answers to one question, and a proxy may read the other one.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(Problem::InvalidRequest.because(format!("the header `{name}` is there twice"))),
    }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

async fn read(body: Bytestream, limits: &Limits) -> Result<Bytes, Refusal> {
    let collected = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_patience, collected).await {
        Err(_) => Err(Problem::BodyTimeout.into()),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::BodyTooLarge.because(format!("a body has at most {} bytes", limits.body_bytes)))
        }
        Ok(Err(error)) => Err(Problem::InvalidRequest.because(error.to_string())),
    }
}

/// The query of an address.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(Problem::InvalidRequest.because(error.body_text())),
        }
    }
}

/// The session in the path.
pub(crate) struct InSession(pub(crate) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for InSession {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let id = path(parts, state).await?;
        SessionId::new(&id)
            .map(Self)
            .map_err(|_| Problem::UnknownSession.into())
    }
}

/// The id of something else in the path.
pub(crate) struct Of(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Of {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let id = path(parts, state).await?;
        Uuid::parse_str(&id)
            .map(Self)
            .map_err(|_| Problem::NotFound.into())
    }
}

async fn path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Refusal> {
    match Path::<String>::from_request_parts(parts, state).await {
        Ok(Path(id)) => Ok(id),
        Err(error) => Err(Problem::InvalidRequest.because(error.body_text())),
    }
}

/// The id in the path of a request, for the audits: as handlers read it, so decoded. What is no id would be a text of the client.
pub(crate) async fn id_of(request: &mut Request) -> Option<Uuid> {
    let params = request.extract_parts::<RawPathParams>().await.ok()?;
    let (_, id) = params.iter().find(|(name, _)| *name == "id")?;
    Uuid::try_parse(id).ok()
}

/// The token of the request. Routes without a scope have none.
pub(crate) struct Caller(pub(crate) TokenRecord);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let record = parts.extensions.get::<TokenRecord>().cloned();
        record.map(Self).ok_or_else(|| Problem::Unauthorized.into())
    }
}
