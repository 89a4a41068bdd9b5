//! The address of the database, from libpq's connection strings.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use outrigger_sessions::store::{Result, StoreError, StoreErrorKind};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// How long a server may answer nothing on a connection, not even that it has received something, where the address does not say so.
const SILENCE: Duration = Duration::from_secs(30);

/// How much of the server's identity is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Encryption without any check of the server.
    Anybody,
    /// An authority has signed the certificate.
    Authority,
    /// The certificate is also for the server's name.
    Name,
}

/// A connection string, taken apart.
#[derive(Debug)]
#[cfg_attr(
    not(any(feature = "postgres-tls", test)),
    expect(dead_code, reason = "without TLS there is nobody to trust")
)]
pub(super) struct PostgresTarget {
    pub(super) config: Config,
    pub(super) trust: Trust,
    /// The authorities; the system's if there are none here, which is so with [`Trust::Name`] only.
    pub(super) authorities: Option<PathBuf>,
}

impl PostgresTarget {
    /// Reads what libpq would: both forms, with the `sslmode`s that the client below does not know.
    pub(super) fn read(text: &str) -> Result<Self> {
        let (mut mode, mut authorities) = (None, None);
        let mut has_idle = false;
        let rest = without(text, |name, value| {
            match name {
                "sslmode" => mode = Some(value),
                "sslrootcert" => authorities = Some(value),
                "keepalives_idle" => {
                    has_idle = true;
                    return false;
                }
                _ => return false,
            }
            true
        });
        let mut config = Config::from_str(&rest).map_err(|error| {
            let what = "the PostgreSQL session store could not read its connection string";
            StoreError::new(StoreErrorKind::Invalid, what).caused_by(error)
        })?;
        // Nobody looks up the name of a query: an `@` in it was taken for the end of a password.
        let is_query = |host: &Host| matches!(host, Host::Tcp(name) if name.contains(['?', '&', '=', '@']));
        if config.get_hosts().iter().any(is_query) {
            let what = "the PostgreSQL session store could not read its connection string: write `@` as %40 in parameters";
            return Err(StoreError::new(StoreErrorKind::Invalid, what));
        }
        let authorities = authorities.filter(|file: &String| !file.is_empty());
        let is_system = authorities.as_deref() == Some("system");
        let invalid = |what: String| Err(StoreError::new(StoreErrorKind::Invalid, what));
        let mode = mode
            .as_deref()
            .unwrap_or(if is_system { "verify-full" } else { "prefer" });
        // As in libpq. The system's authorities sign the certificates of anybody, so only the name identifies a server.
        if is_system && mode != "verify-full" {
            return invalid(format!(
                "the PostgreSQL session store does not take sslmode={mode} with sslrootcert=system: say verify-full, or name a file"
            ));
        }
        if authorities.is_none() && mode == "verify-ca" {
            return invalid(
                "the PostgreSQL session store needs the file of an authority for sslmode=verify-ca: name it by sslrootcert, or say \
                 verify-full"
                    .to_owned(),
            );
        }
        // As in libpq: a file of authorities means that they are to be checked.
        let named = match authorities {
            Some(_) => Trust::Authority,
            None => Trust::Anybody,
        };
        let (mode, trust) = match mode {
            "disable" => (SslMode::Disable, Trust::Anybody),
            "prefer" => (SslMode::Prefer, named),
            "require" => (SslMode::Require, named),
            "verify-ca" => (SslMode::Require, Trust::Authority),
            "verify-full" => (SslMode::Require, Trust::Name),
            other => {
                return invalid(format!(
                    "the PostgreSQL session store has no sslmode {other:?}, but disable, prefer, require, verify-ca and verify-full"
                ));
            }
        };
        // A mode that was not found above, since the client below reads the address in another way, is not weakened.
        let mode = match config.get_ssl_mode() {
            SslMode::Require => SslMode::Require,
            _ => mode,
        };
        // A socket of this machine has no TLS, and needs none.
        let is_here = |host: &Host| !matches!(host, Host::Tcp(_));
        let is_local = !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_here);
        config.ssl_mode(if is_local { SslMode::Disable } else { mode });
        // The server may go without a word. The system would wait for a quarter of an hour, or for two hours where nothing is sent, and the
        // pool would hand the connection out meanwhile.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if !has_idle {
            config.keepalives_idle(SILENCE);
        }
        Ok(Self {
            config,
            trust,
            authorities: authorities.filter(|_| !is_system).map(PathBuf::from),
        })
    }
}

/// Where the query of a URL begins. As in libpq, what is in front of an `@` is the user and the password, which may have a `?`; an `@` behind the path is a
/// part of the query.
fn query_of(text: &str) -> Option<usize> {
    let begin = text.find("://")? + 3;
    let path = text[begin..].find('/').map_or(text.len(), |at| begin + at);
    let behind_password = match text.find('@') {
        Some(at) if !text[..at].get(path..).is_some_and(|path| path.contains('?')) => at,
        _ => begin,
    };
    text[behind_password..].find('?').map(|at| behind_password + at)
}

/// A connection string without those parameters that are taken.
fn without(text: &str, mut take: impl FnMut(&str, String) -> bool) -> String {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let Some(at) = query_of(text) else {
            return text.to_owned();
        };
        let (address, query) = (&text[..at], &text[at + 1..]);
        let rest: Vec<String> = query
            .split('&')
            .filter(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                !take(name, unescaped(value))
            })
            // The client below takes all in front of the first `@` for a user and a password, wherever it is.
            .map(|pair| pair.replace('@', "%40"))
            .collect();
        return format!("{address}?{}", rest.join("&"))
            .trim_end_matches('?')
            .to_owned();
    }
    let mut kept = String::new();
    let mut rest = text;
    while let Some((whole, name, value, after)) = parameter(rest) {
        if !take(name, value) {
            kept.push_str(whole);
            kept.push(' ');
        }
        rest = after;
    }
    // The client below reports parameters that do not exist.
    kept + rest
}

/// The first parameter: all of it, its name, its value, and what follows.
fn parameter(text: &str) -> Option<(&str, &str, String, &str)> {
    let text = text.trim_start();
    let (name, value) = text.split_once('=')?;
    let name = name.trim_end();
    let mut chars = value.trim_start().char_indices();
    let begin = text.len() - value.trim_start().len();
    let is_quoted = value.trim_start().starts_with('\'');
    if is_quoted {
        chars.next();
    }
    let mut read = String::new();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => read.extend(chars.next().map(|(_, c)| c)),
            '\'' if is_quoted => {
                end = begin + at + 1;
                break;
            }
            c if c.is_whitespace() && !is_quoted => {
                end = begin + at;
                break;
            }
            c => read.push(c),
        }
    }
    Some((&text[..end], name, read, &text[end..]))
}

/// A value of a URL without its `%XX`.
fn unescaped(value: &str) -> String {
    let mut parts = value.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (SslMode, Trust, Option<PathBuf>) {
        let target = PostgresTarget::read(text).unwrap();
        (target.config.get_ssl_mode(), target.trust, target.authorities)
    }

    #[test]
    fn modes_mean_what_they_mean_to_libpq() {
        let file = Some(PathBuf::from("/a b/ca.pem"));
        for (text, wanted) in [
            ("host=h", (SslMode::Prefer, Trust::Anybody, None)),
            ("host=h sslmode=disable", (SslMode::Disable, Trust::Anybody, None)),
            (
                "host=h sslmode = 'require' ",
                (SslMode::Require, Trust::Anybody, None),
            ),
            (
                "sslrootcert='/a b/ca.pem' sslmode=require host=h",
                (SslMode::Require, Trust::Authority, file.clone()),
            ),
            (
                "host=h sslmode=verify-ca sslrootcert='/a b/ca.pem'",
                (SslMode::Require, Trust::Authority, file.clone()),
            ),
            (
                "host=h sslrootcert='/a b/ca.pem'",
                (SslMode::Prefer, Trust::Authority, file.clone()),
            ),
            ("host=h sslrootcert=''", (SslMode::Prefer, Trust::Anybody, None)),
            (
                "host=h sslmode=verify-full",
                (SslMode::Require, Trust::Name, None),
            ),
            ("host=h sslrootcert=system", (SslMode::Require, Trust::Name, None)),
            (
                "postgresql://u:p@h/d?sslmode=verify-full&application_name=x&sslrootcert=%2Fa%20b/ca.pem",
                (SslMode::Require, Trust::Name, file),
            ),
            (
                "postgres://h?sslrootcert=system&sslmode=verify-full",
                (SslMode::Require, Trust::Name, None),
            ),
            (
                "postgresql://u:p?q@h/d?sslmode=require",
                (SslMode::Require, Trust::Anybody, None),
            ),
            (
                "postgresql://u:p?sslmode=disable&q@h/d?sslmode=verify-full",
                (SslMode::Require, Trust::Name, None),
            ),
            (
                "postgresql://h/d?application_name=a@b&sslmode=verify-full",
                (SslMode::Require, Trust::Name, None),
            ),
            (
                "postgresql://h:5432/d?sslmode=verify-full&options=-c%20a=b@c",
                (SslMode::Require, Trust::Name, None),
            ),
            (
                "postgresql://h/?sslmode=require&application_name=a@b?c",
                (SslMode::Require, Trust::Anybody, None),
            ),
            (
                "postgresql://u:p/w@h/d?sslmode=require&application_name=a@b",
                (SslMode::Require, Trust::Anybody, None),
            ),
            (
                "postgresql://h/d?ssl%6dode=require",
                (SslMode::Require, Trust::Anybody, None),
            ),
            // libpq does not look at it there either.
            (
                "host=/run/postgresql sslmode=verify-full",
                (SslMode::Disable, Trust::Name, None),
            ),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        for text in [
            "host=h sslrootcert=system sslmode=disable",
            "host=h sslrootcert=system sslmode=prefer",
            "host=h sslmode=require sslrootcert=system",
            "postgres://h?sslrootcert=system&sslmode=verify-ca",
            "host=h sslmode=verify-ca",
            "host=h sslmode=allow",
            "host=h sslmode=nonsense",
            "host=h sslmode=",
            "host",
            "host='h",
            // To libpq it is the host `b&sslmode=verify-full`, too.
            "postgresql://h?application_name=a@b&sslmode=verify-full",
        ] {
            assert!(PostgresTarget::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_may_say_how_long_a_server_is_silent() {
        let of = |text: &str| {
            let config = PostgresTarget::read(text).unwrap().config;
            (
                config.get_tcp_user_timeout().copied(),
                config.get_keepalives_idle(),
            )
        };
        assert_eq!(of("host=h"), (Some(SILENCE), SILENCE));
        let hours = Duration::from_secs(7200);
        assert_eq!(
            of("host=h keepalives_idle=7200 tcp_user_timeout=7"),
            (Some(Duration::from_secs(7)), hours)
        );
        assert_eq!(of("postgresql://h?keepalives_idle=7200"), (Some(SILENCE), hours));
    }

    #[test]
    fn the_rest_is_as_it_was() {
        let target = PostgresTarget::read(
            r"host=h sslmode=disable options='-c search_path=\'a b\'' user=o\'x dbname = d",
        )
        .unwrap();
        assert_eq!(target.config.get_options(), Some("-c search_path='a b'"));
        assert_eq!(target.config.get_user(), Some("o'x"));
        assert_eq!(target.config.get_dbname(), Some("d"));
        for address in ["u@h/d", "h/d"] {
            let text = format!("postgresql://{address}?sslmode=disable&application_name=x@y");
            let config = PostgresTarget::read(&text).unwrap().config;
            assert_eq!(config.get_application_name(), Some("x@y"));
            assert_eq!(config.get_dbname(), Some("d"));
            assert_eq!(config.get_hosts(), [Host::Tcp("h".to_owned())]);
        }
    }
}
