//! The slot of a key in a Redis Cluster: CRC16 of the text between its braces, modulo 16,384.

use crate::tags::{At, HOME};

pub(crate) const SLOTS: u16 = 16384;

/// The slot of every key that carries this place's tag.
pub(crate) fn slot_of(at: At) -> u16 {
    let crc = match at {
        At::Tag(tag) => crc16(tag.to_string().as_bytes()),
        At::Home => crc16(HOME.trim_matches(['{', '}']).as_bytes()),
    };
    crc % SLOTS
}

/// CRC16/XMODEM, as the cluster specification has it. Bit by bit: it runs once per tag, at the start.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // CLUSTER KEYSLOT tk:ep:{17} and x:{home} of Redis 7.0.15.
        assert_eq!((slot_of(At::Tag(17)), slot_of(At::Home)), (12304, 10814));
    }
}
