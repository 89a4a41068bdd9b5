//! Rules for `WebFetch`: patterns for the host of a URL.

/// What follows `domain:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern {
    labels: Vec<String>,
}

/// The host of a URL.
#[derive(Debug, PartialEq, Eq)]
enum Host {
    /// Surely this one.
    Known(String),
    /// Perhaps any of these.
    Perhaps(Vec<String>),
    /// Perhaps any at all.
    Unknown,
}

impl HostPattern {
    /// Reads it. The error says what is wrong, and what to write instead.
    pub(super) fn parse(domain: &str) -> Result<Self, &'static str> {
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        if domain.is_empty() {
            return Err("names no domain; name the tool alone to mean all of them");
        }
        if domain.contains("://") || domain.contains('/') {
            return Err("holds a URL: write the host alone, as in `domain:example.com`");
        }
        if domain.contains(':') {
            return Err("holds a port, which no rule can tell apart: leave it out");
        }
        if !domain.is_ascii() {
            return Err(
                "holds a letter that domains have in another spelling: write the domain's `xn--` form",
            );
        }
        if !domain
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.*".contains(&b))
        {
            return Err("holds a character that no domain has");
        }
        let labels: Vec<String> = domain
            .to_ascii_lowercase()
            .split('.')
            .map(str::to_owned)
            .collect();
        if labels.iter().any(String::is_empty) {
            return Err("holds two dots in a row, or begins with one");
        }
        Ok(Self { labels })
    }

    /// Whether a fetch of this URL is covered.
    pub(super) fn covers(&self, url: &str) -> bool {
        matches!(host(url), Host::Known(host) if self.is(&host))
    }

    /// Whether a fetch of this URL could go to such a host.
    pub(super) fn touches(&self, url: &str) -> bool {
        match host(url) {
            Host::Known(host) => self.is(&host),
            Host::Perhaps(hosts) => hosts.iter().any(|host| self.is(host)),
            Host::Unknown => true,
        }
    }

    fn is(&self, host: &str) -> bool {
        let host: Vec<&str> = host.split('.').collect();
        match &self.labels[..] {
            [all] if all == "*" => true,
            [first, rest @ ..] if first == "*" => {
                host.len() > rest.len() && labels(rest, &host[host.len() - rest.len()..])
            }
            pattern => labels(pattern, &host),
        }
    }
}

/// A `*` stands for what is between two dots, here.
fn labels(pattern: &[String], host: &[&str]) -> bool {
    pattern.len() == host.len()
        && pattern.iter().zip(host).all(|(pattern, label)| {
            let pattern = super::pattern::wildcards(pattern);
            super::pattern::matches(&pattern, &super::pattern::known(label))
        })
}

fn host(url: &str) -> Host {
    // What a URL's reader leaves out, maps or decodes is left to it.
    if url
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || !c.is_ascii())
    {
        return Host::Unknown;
    }
    let lower = url.to_ascii_lowercase();
    let Some(rest) = lower
        .strip_prefix("https://")
        .or_else(|| lower.strip_prefix("http://"))
    else {
        return Host::Unknown;
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, odd) = (&rest[..end], rest[end..].starts_with('\\') || end == 0);
    if odd || authority.contains(['%', '[']) {
        return Host::Unknown;
    }
    let parts: Vec<String> = authority.split('@').filter_map(without_port).collect();
    match &parts[..] {
        [host] if !authority.contains('@') => {
            let number = |label: &str| label.starts_with("0x") || label.bytes().all(|b| b.is_ascii_digit());
            let all_known = host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            let labels: Vec<&str> = host.split('.').collect();
            let address = labels.last().is_some_and(|label| number(label));
            // An address has many spellings.
            let usual = labels.len() == 4
                && labels
                    .iter()
                    .all(|label| label.parse::<u8>().is_ok_and(|byte| byte.to_string() == *label));
            if !all_known || labels.iter().any(|label| label.is_empty()) || (address && !usual) {
                Host::Unknown
            } else {
                Host::Known(host.clone())
            }
        }
        [] => Host::Unknown,
        _ => Host::Perhaps(parts),
    }
}

fn without_port(authority: &str) -> Option<String> {
    let host = authority.split(':').next()?;
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_matched_by_label() {
        for (pattern, url, expected) in [
            ("example.com", "https://example.com/x", true),
            ("example.com", "HTTPS://EXAMPLE.com.:8443/x?y#z", true),
            ("Example.COM.", "http://example.com", true),
            ("example.com", "https://sub.example.com/", false),
            ("example.com", "https://example.com.evil.org/", false),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("*.example.com", "https://evilexample.com/", false),
            ("lab.*", "https://lab.org/", true),
            ("lab.*", "https://lab.evil.org/", false),
            ("a*.test", "https://abc.test/", true),
            ("*", "https://anything.test/", true),
            ("127.0.0.1", "http://127.0.0.1:80/", true),
        ] {
            let pattern = HostPattern::parse(pattern).unwrap();
            assert_eq!(pattern.covers(url), expected, "{pattern:?} {url}");
            assert_eq!(pattern.touches(url), expected, "{pattern:?} {url}");
        }
    }

    /// Readers of URLs disagree on these: nothing allows them, and what refuses the host counts.
    #[test]
    fn a_host_that_is_in_doubt_is_not_allowed_and_may_be_refused() {
        let pattern = HostPattern::parse("example.com").unwrap();
        for url in [
            "https://example.com@evil.org/",
            "https://evil.org@example.com/",
            "https://evil.org\\@example.com/",
            "https://example.com\\.evil.org/",
            "https://exam\tple.com/",
            "https://e%78ample.com/",
            "https://\u{ff45}xample.com/",
            "https://example\u{3002}com/",
            "example.com",
            "https:example.com",
            "ftp://example.com/",
            "",
            "https://",
        ] {
            assert!(!pattern.covers(url), "{url}");
            assert!(pattern.touches(url), "{url}");
        }
        let local = HostPattern::parse("127.0.0.1").unwrap();
        for url in [
            "http://2130706433/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
        ] {
            assert!(!local.covers(url) && local.touches(url), "{url}");
            assert!(!HostPattern::parse("*").unwrap().covers(url), "{url}");
        }
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        for bad in [
            "",
            ".",
            "https://example.com",
            "example.com/x",
            "example.com:80",
            "b\u{fc}cher.de",
            "a..b",
            ".a",
            "a b",
            "a@b",
        ] {
            assert!(HostPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
