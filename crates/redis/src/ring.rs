//! Consistent hashing of tags over independent servers: one server more moves about one tag in n, and only to it.

use xxhash_rust::xxh3::xxh3_64;

use crate::address::Address;
use crate::tags::{At, HOME};

/// Points per server. At a hundred the shares of the servers differ by about a tenth.
const POINTS: u32 = 100;

/// Points on the circle, each with the place of its server in the list. Every node must compute the same one, so the
/// hash and what goes into it never change.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    points: Vec<(u64, usize)>,
}

// === impl Ring ===

impl Ring {
    pub(crate) fn new(servers: &[Address]) -> Self {
        let points = |(place, server): (usize, &Address)| {
            let name = server.to_string();
            (0..POINTS).map(move |point| (xxh3_64(format!("{name}#{point}").as_bytes()), place))
        };
        let mut points: Vec<_> = servers.iter().enumerate().flat_map(points).collect();
        points.sort_unstable();
        Self { points }
    }

    /// The place of the first server at or after the tag's own point. Nothing only if there is no server at all.
    pub(crate) fn place(&self, at: At) -> Option<usize> {
        let own = match at {
            At::Tag(tag) => xxh3_64(&tag.to_le_bytes()),
            At::Home => xxh3_64(HOME.as_bytes()),
        };
        let next = self.points.partition_point(|(point, _)| *point < own);
        let (_, place) = self.points.get(next).or(self.points.first())?;
        Some(*place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn servers(count: usize, seed: u16) -> Vec<Address> {
        (0..count).map(|n| Address::new(format!("redis-{seed}-{n}.example"), 6379)).collect()
    }

    proptest! {
        #[test]
        fn a_new_server_takes_about_its_share_and_no_tag_moves_between_the_others(
            count in 1_usize..9,
            seed in any::<u16>(),
        ) {
            let all = servers(count + 1, seed);
            let (old, new) = (Ring::new(&all[..count]), Ring::new(&all));
            let moved = At::all().filter(|at| old.place(*at) != new.place(*at));
            let moved: Vec<_> = moved.collect();
            prop_assert!(moved.iter().all(|at| new.place(*at) == Some(count)));
            let fair = At::COUNT / (count + 1);
            prop_assert!((fair * 2 / 5..=fair * 2).contains(&moved.len()), "{} of {fair}", moved.len());
        }

        #[test]
        fn the_order_of_the_servers_in_the_url_does_not_matter(count in 2_usize..9, seed in any::<u16>()) {
            let all = servers(count, seed);
            let mut turned = all.clone();
            turned.rotate_left(1);
            let (one, other) = (Ring::new(&all), Ring::new(&turned));
            for at in At::all() {
                let server = one.place(at).map(|place| &all[place]);
                prop_assert_eq!(server, other.place(at).map(|place| &turned[place]));
            }
        }
    }

    #[test]
    fn the_ring_is_the_same_in_every_version() {
        let all = servers(3, 0);
        let ring = Ring::new(&all);
        let places: Vec<_> = (0..12).filter_map(|tag| ring.place(At::Tag(tag))).collect();
        assert_eq!(places, [1, 1, 2, 0, 1, 2, 1, 0, 2, 2, 0, 1]);
        assert_eq!(Ring::new(&[]).place(At::Home), None);
    }
}
