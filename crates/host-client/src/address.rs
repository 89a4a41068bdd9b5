//! Where the host is, and who the client is.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;
use hyper::header::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::{Error, Result};

/// Characters that need no escape in a query and in a segment of a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The token of a client. Its `Debug` does not show it.
#[derive(Clone)]
pub struct Token(HeaderValue);

impl Token {
    /// A token as the host issued it.
    ///
    /// # Errors
    /// When the text is empty or has characters that no token has.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::try_from(format!("Bearer {text}"));
        match header {
            Ok(mut header) if is_token => {
                header.set_sensitive(true);
                Ok(Self(header))
            }
            // The text is not repeated: it may be a part of a token.
            _ => Err(Error::Invalid(
                "the token is empty, or has characters that no token has".to_owned(),
            )),
        }
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The address of a host, up to the `/v1` of its routes.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    base: String,
    origin: String,
    pub(crate) is_tls: bool,
}

impl Address {
    pub(crate) fn read(address: &str, plain_http: bool) -> Result<Self> {
        let wrong = |reason: &str| Error::Address {
            address: address.to_owned(),
            reason: reason.to_owned(),
        };
        let uri: Uri = address.trim().parse().map_err(|_| wrong("it is no URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it has to begin with https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has a user; the token is all that a host asks for"));
        }
        if uri.query().is_some() {
            return Err(wrong("it has a query"));
        }
        if !is_tls && !plain_http && !is_loopback(authority.host()) {
            return Err(wrong(
                "without TLS the token would go over the network in plain text; use https, or a tunnel to a loopback address",
            ));
        }
        let scheme = if is_tls { "https" } else { "http" };
        let base = format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/'));
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let origin = format!("{scheme}://{}:{port}", authority.host().to_ascii_lowercase());
        Ok(Self { base, origin, is_tls })
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Scheme, host and port, each address of a host in one form.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The address of a route. `path` begins with a slash.
    pub(crate) fn of(&self, path: &str) -> Result<Uri> {
        format!("{}{path}", self.base)
            .parse()
            .map_err(|_| Error::Address {
                address: format!("{}{path}", self.base),
                reason: "it is no URL".to_owned(),
            })
    }
}

fn is_loopback(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

/// A value, for a query or as a segment of a path.
pub(crate) fn encoded(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, PLAIN)
}

/// An id as a segment of a path.
pub(crate) fn segment(id: &str) -> Result<String> {
    if id.is_empty() || id == "." || id == ".." {
        return Err(Error::Invalid(format!("{id:?} is no id")));
    }
    Ok(encoded(id).to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_no_secret_and_plain_text_stays_at_home() {
        for (text, base) in [
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070"),
            ("http://127.9.9.9/", "http://127.9.9.9"),
            ("http://localhost:1/x/", "http://localhost:1/x"),
            ("http://[::1]:7070", "http://[::1]:7070"),
            (
                "https://agents.example.com/team",
                "https://agents.example.com/team",
            ),
        ] {
            assert_eq!(Address::read(text, false).unwrap().base(), base);
        }
        for text in [
            "127.0.0.1:7070",
            "ftp://localhost",
            "http://10.0.0.1:7070",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "https://ada@example.com",
            "https://example.com?x=1",
            "",
        ] {
            let error = Address::read(text, false).unwrap_err();
            assert!(matches!(error, Error::Address { .. }), "{text}: {error}");
        }
        Address::read("http://host.internal:7070", true).unwrap();
    }

    #[test]
    fn an_origin_has_one_form() {
        for (text, origin) in [
            (
                "https://Agents.Example.com/team/",
                "https://agents.example.com:443",
            ),
            ("https://agents.example.com:443", "https://agents.example.com:443"),
            (
                "https://agents.example.com:8443/x",
                "https://agents.example.com:8443",
            ),
            ("http://localhost", "http://localhost:80"),
            ("http://[::1]:7070", "http://[::1]:7070"),
        ] {
            assert_eq!(Address::read(text, false).unwrap().origin(), origin);
        }
    }

    #[test]
    fn an_id_stays_one_segment() {
        assert_eq!(segment("a/../b?c#d e").unwrap(), "a%2F..%2Fb%3Fc%23d%20e");
        for id in ["", ".", ".."] {
            segment(id).unwrap_err();
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let token = Token::new(" secret-token\n").unwrap();
        assert!(!format!("{token:?} {:?}", token.header()).contains("secret"));
        for text in ["", " ", "a b", "a\nb", "ü"] {
            let error = Token::new(text).unwrap_err();
            assert!(error.to_string().starts_with("the token"), "{error}");
        }
    }
}
