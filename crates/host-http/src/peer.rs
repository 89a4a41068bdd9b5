//! The address that a request comes from.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;

/// An address, as far as it tells one client from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

impl From<IpAddr> for Peer {
    /// Whoever has an address of IPv6 has the 2^64 around it, too.
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into(),
            address => address,
        })
    }
}

impl Peer {
    /// Whom a request comes from that the proxy, as this peer, passed on. What the proxy appended is the last address; the ones before
    /// are what a client says of itself.
    pub(crate) fn behind_proxy(self, headers: &HeaderMap) -> Self {
        let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
        let last = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        last.and_then(|address| address.trim().parse::<IpAddr>().ok())
            .map_or(self, Self::from)
    }
}

/// Counts the connections of each address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<HashMap<Peer, usize>>>);

/// A connection of an address, until it is dropped.
#[derive(Debug)]
pub(crate) struct Connected {
    open: Connections,
    peer: Peer,
}

impl Connections {
    /// A place for one more, unless the address has `most`.
    pub(crate) fn enter(&self, peer: Peer, most: usize) -> Option<Connected> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.get(&peer).copied().unwrap_or(0);
        if own >= most {
            return None;
        }
        open.insert(peer, own + 1);
        drop(open);
        Some(Connected {
            open: self.clone(),
            peer,
        })
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn one_client_is_one_peer_and_no_client_chooses_which() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));

        let proxy = peer("127.0.0.1");
        let mut headers = HeaderMap::new();
        assert_eq!(proxy.behind_proxy(&headers), proxy);
        for (value, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("198.51.100.7, 192.0.2.1", "192.0.2.1"),
            ("no address", "127.0.0.1"),
            ("192.0.2.1,", "127.0.0.1"),
        ] {
            headers.insert("x-forwarded-for", value.parse().unwrap());
            assert_eq!(proxy.behind_proxy(&headers), peer(expected), "{value}");
        }
        headers.insert("x-forwarded-for", "198.51.100.7".parse().unwrap());
        headers.append("x-forwarded-for", "192.0.2.1".parse().unwrap());
        assert_eq!(proxy.behind_proxy(&headers), peer("192.0.2.1"));
    }

    #[test]
    fn an_address_has_so_many_connections_and_gives_them_back() {
        let open = Connections::default();
        let (one, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let first = open.enter(one, 1).unwrap();
        assert!(open.enter(one, 1).is_none());
        let _other = open.enter(other, 1).unwrap();
        drop(first);
        assert!(open.enter(one, 1).is_some());
        assert_eq!(open.0.lock().unwrap().len(), 1);
    }
}
