//! Which addresses the host may call.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

/// Which addresses a host may call for a client, such as those of webhooks.
///
/// By default they are public addresses, over `https`. An operator allows further networks, also over `http`: `127.0.0.0/8` for a receiver on this
/// machine, `10.1.0.0/16` for one in the network of the house. A name counts by the addresses that it resolves to when it is called, so that no name leads
/// to an address that the rule does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRule {
    networks: Vec<IpNet>,
}

impl AddressRule {
    /// Public addresses, over `https`.
    pub fn public() -> Self {
        Self::default()
    }

    /// Allows the addresses of a network, over `http` and `https`.
    ///
    /// # Errors
    /// When the text is neither an address nor a network in the notation `10.1.0.0/16` or `fd00::/8`.
    pub fn allow(mut self, network: &str) -> Result<Self, String> {
        let network = IpNet::from_str(network)
            .or_else(|_| IpAddr::from_str(network).map(IpNet::from))
            .map_err(|_| format!("`{network}` is neither an address nor a network such as `10.1.0.0/16`"))?;
        self.networks.push(network.trunc());
        Ok(self)
    }

    /// Whether an address may be called; `is_encrypted` says whether by `https`.
    pub fn allows(&self, address: IpAddr, is_encrypted: bool) -> bool {
        let address = address.to_canonical();
        let is_stated = self.networks.iter().any(|network| network.contains(&address));
        is_stated || (is_encrypted && is_public(address))
    }

    /// Whether plain `http` may lead anywhere.
    pub fn allows_http(&self) -> bool {
        !self.networks.is_empty()
    }
}

/// Whether an address is one of the internet (the registries of special addresses of IANA).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a == 10
        || a == 127
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 168)
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113))
}

/// Only what is handed out to networks (2000::/3), without what leads on to IPv4 addresses or is for examples.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    (a & 0xe000) == 0x2000
        && !(a == 0x2001 && (b < 0x0200 || b == 0x0db8))
        && a != 0x2002
        && !(a == 0x3fff && b < 0x1000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn allows(rule: &AddressRule, address: &str) -> (bool, bool) {
        let address = address.parse().unwrap();
        (rule.allows(address, true), rule.allows(address, false))
    }

    #[test]
    fn only_public_addresses_are_called_and_only_encrypted() {
        let rule = AddressRule::public();
        for address in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.1.2.3",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert_eq!(allows(&rule, address), (false, false), "{address}");
        }
        for address in [
            "1.1.1.1",
            "100.63.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "2a00::1",
            "::ffff:1.1.1.1",
        ] {
            assert_eq!(allows(&rule, address), (true, false), "{address}");
        }
    }

    #[test]
    fn a_network_that_is_stated_may_be_called() {
        let rule = AddressRule::public()
            .allow("127.0.0.1")
            .unwrap()
            .allow("fd00::/8")
            .unwrap();
        assert_eq!(allows(&rule, "127.0.0.1"), (true, true));
        assert_eq!(allows(&rule, "::ffff:127.0.0.1"), (true, true));
        assert_eq!(allows(&rule, "fd12::1"), (true, true));
        assert_eq!(allows(&rule, "127.0.0.2"), (false, false));
        assert_eq!(allows(&rule, "1.1.1.1"), (true, false));
        AddressRule::public().allow("localhost").unwrap_err();
        AddressRule::public().allow("10.0.0.0/33").unwrap_err();
    }
}
