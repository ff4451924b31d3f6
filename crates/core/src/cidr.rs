//! Address ranges: `10.0.0.0/8`, `2001:db8::/32`, or a single address. IPv4 inside IPv6 counts as IPv4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    /// The range's first address.
    base: IpAddr,
    prefix: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotACidr;

// === impl Cidr ===

impl Cidr {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, canonical(address)) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                masked_v4(address, self.prefix) == u32::from(base)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                masked_v6(address, self.prefix) == u128::from(base)
            }
            _ => false,
        }
    }

    /// The range of this length that an address lies in.
    pub(crate) fn around(address: IpAddr, prefix: u8) -> Self {
        let base = match address {
            IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from(masked_v4(v4, prefix))),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(masked_v6(v6, prefix))),
        };
        Self { base, prefix }
    }

    pub(crate) fn prefix(&self) -> u8 {
        self.prefix
    }

    pub(crate) fn is_v4(&self) -> bool {
        self.base.is_ipv4()
    }
}

impl FromStr for Cidr {
    type Err = NotACidr;

    /// Bits behind the prefix are cleared: `10.1.2.3/8` is `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Self, NotACidr> {
        const MAPPED_BITS: u8 = 96;
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(parse_prefix(prefix)?)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().map_err(|_| NotACidr)?;
        let prefix_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(prefix_max);
        if prefix > prefix_max {
            return Err(NotACidr);
        }
        // Addresses are compared as IPv4 where they are IPv4 inside IPv6, so ranges of those are written so too.
        match (canonical(address), prefix.checked_sub(MAPPED_BITS)) {
            (IpAddr::V4(inner), Some(inner_prefix)) if address.is_ipv6() => {
                Ok(Self::around(IpAddr::V4(inner), inner_prefix))
            }
            _ => Ok(Self::around(address, prefix)),
        }
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

/// Digits only: `+8` and ` 8` are accepted by the number parser, and by nobody who writes ranges.
fn parse_prefix(text: &str) -> Result<u8, NotACidr> {
    let plain = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().map_err(|_| NotACidr) } else { Err(NotACidr) }
}

fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn masked_v4(address: Ipv4Addr, prefix: u8) -> u32 {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
    u32::from(address) & mask
}

fn masked_v6(address: Ipv6Addr, prefix: u8) -> u128 {
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
    u128::from(address) & mask
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn contains(range: &str, address: &str) -> bool {
        range.parse::<Cidr>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_range_holds_its_addresses_and_no_others() {
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.255.255.255", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "::1", true),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("::/0", "10.0.0.1", false),
            ("::ffff:10.0.0.0/104", "10.1.1.1", true),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("::ffff:192.0.2.1", "192.0.2.2", false),
            ("0.0.0.0/0", "::1", false),
        ] {
            assert_eq!(contains(range, address), expected, "{range} {address}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "a/8",
            "1.2.3.4/08888",
        ] {
            assert_eq!(text.parse::<Cidr>(), Err(NotACidr), "{text}");
        }
    }
}
