//! What an address stands for, in every form that translators and tunnels give it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds keep the credentials of a machine, besides the link-local addresses.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whether it is link-local, or where a cloud gives out the credentials of a machine.
pub fn gives_out_credentials(address: IpAddr) -> bool {
    meant(address).into_iter().any(|ip| match ip {
        IpAddr::V4(ip) => ip.is_link_local() || METADATA_V4.contains(&ip),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip == METADATA_V6,
    })
}

/// An address, and the IPv4 addresses that translators and tunnels make of it.
pub fn meant(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(wide) = address else { return vec![address] };
    let s = wide.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let embedded = match s {
        // Mapped, compatible, translated.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(of(high, low)),
        // NAT64: the well-known prefix and the local ones.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => Some(of(high, low)),
        // 6to4, Teredo, ISATAP.
        [0x2002, high, low, ..] => Some(of(high, low)),
        [0x2001, 0, .., high, low] => Some(of(!high, !low)),
        [.., 0 | 0x200, 0x5efe, high, low] => Some(of(high, low)),
        _ => None,
    };
    // `::1` and `::` are no IPv4 addresses.
    let embedded = embedded.filter(|_| !wide.is_loopback() && !wide.is_unspecified());
    std::iter::once(address).chain(embedded.map(IpAddr::V4)).collect()
}

/// One to four numbers, decimal, octal or hexadecimal, the last one for all bytes that are left: as `inet_aton` reads them.
pub fn numbers(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, first) = parts.split_last().filter(|(_, first)| first.len() < 4)?;
    let mut address = 0;
    for part in first {
        address = address << 8 | number(part).filter(|number| *number < 256)?;
    }
    let bits = 8 * (4 - first.len() as u32);
    let last = number(last).filter(|number| number >> bits == 0)?;
    let whole = (address << bits) | last;
    Some(Ipv4Addr::from(u32::try_from(whole).ok()?))
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some("") => ("0", 16),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let is_number = !digits.is_empty() && digits.len() <= 16 && digits.chars().all(|char| char.is_digit(radix));
    is_number.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}
