//! Which target gets a connection. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use cloudkeel_provider_local::wire::Algorithm;

/// What the choice depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) address: SocketAddr,
    pub(super) active: u64,
}

/// The index of the chosen one. `turn` moves on with every choice.
pub(super) fn choose(
    algorithm: Algorithm,
    candidates: &[Candidate],
    client: IpAddr,
    turn: &mut usize,
) -> Option<usize> {
    if candidates.is_empty() {
        return None;
    }
    let count = candidates.len();
    let start = *turn % count;
    *turn = turn.wrapping_add(1);
    match algorithm {
        Algorithm::RoundRobin => Some(start),
        // Among equals it goes round, or the first would always be the one.
        Algorithm::LeastConnections => candidates
            .iter()
            .enumerate()
            .min_by_key(|(index, candidate)| (candidate.active, (index + count - start) % count))
            .map(|(index, _)| index),
        // The highest weight of all pairs: a target that comes or goes moves only its own clients.
        Algorithm::SourceIp => candidates
            .iter()
            .enumerate()
            .max_by_key(|(_, candidate)| weight(client, candidate.address))
            .map(|(index, _)| index),
    }
}

fn weight(client: IpAddr, target: SocketAddr) -> u64 {
    let mut hasher = DefaultHasher::new();
    (client, target).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(active: &[u64]) -> Vec<Candidate> {
        let candidate = |(index, active): (usize, &u64)| Candidate {
            address: SocketAddr::from(([10, 0, 0, 1 + u8::try_from(index).unwrap()], 80)),
            active: *active,
        };
        active.iter().enumerate().map(candidate).collect()
    }

    fn client(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn no_target_is_chosen_among_none() {
        for algorithm in [
            Algorithm::RoundRobin,
            Algorithm::LeastConnections,
            Algorithm::SourceIp,
        ] {
            assert_eq!(choose(algorithm, &[], client(1), &mut 0), None);
        }
    }

    #[test]
    fn round_robin_goes_round_also_past_the_end_of_counting() {
        let all = candidates(&[9, 0, 0]);
        let mut turn = usize::MAX - 1;
        let chosen: Vec<_> = (0..6)
            .filter_map(|_| choose(Algorithm::RoundRobin, &all, client(1), &mut turn))
            .collect();
        assert_eq!(chosen.len(), 6);
        for index in 0..3 {
            assert!(chosen.contains(&index), "{chosen:?}");
        }
    }

    #[test]
    fn the_fewest_connections_win_and_equals_take_turns() {
        let mut turn = 0;
        let uneven = candidates(&[3, 1, 2]);
        for _ in 0..5 {
            let chosen = choose(Algorithm::LeastConnections, &uneven, client(1), &mut turn);
            assert_eq!(chosen, Some(1));
        }
        let even = candidates(&[0, 0, 0]);
        let mut chosen: Vec<_> = (0..3)
            .filter_map(|_| choose(Algorithm::LeastConnections, &even, client(1), &mut turn))
            .collect();
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 1, 2]);
    }

    #[test]
    fn a_target_that_goes_moves_only_its_own_clients() {
        let all = candidates(&[0, 0, 0, 0]);
        let pick = |among: &[Candidate], last| {
            let index = choose(Algorithm::SourceIp, among, client(last), &mut 0).unwrap();
            among[index].address
        };
        let fewer = &all[..3];
        let mut moved = 0;
        for last in 0..=255 {
            let before = pick(&all, last);
            assert_eq!(before, pick(&all, last), "the same client, the same target");
            if before == all[3].address {
                moved += 1;
            } else {
                assert_eq!(before, pick(fewer, last));
            }
        }
        assert!((20..120).contains(&moved), "about a quarter: {moved}");
    }
}
