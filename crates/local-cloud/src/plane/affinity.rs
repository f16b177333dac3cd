//! Session affinity: clients that stay with a target.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

/// How many clients are remembered; beyond that, the one that was away longest is forgotten.
const MOST_CLIENTS: usize = 65_536;

/// Which client was led where, and when it last came.
#[derive(Debug, Default)]
pub(super) struct Affinities(HashMap<IpAddr, (SocketAddr, Instant)>);

impl Affinities {
    /// Where the client was led before, unless that is too long ago.
    pub(super) fn of(&self, client: IpAddr, timeout: Duration, now: Instant) -> Option<SocketAddr> {
        let (target, last) = self.0.get(&client)?;
        let away = now.saturating_duration_since(*last);
        (away < timeout).then_some(*target)
    }

    pub(super) fn remember(
        &mut self,
        client: IpAddr,
        target: SocketAddr,
        timeout: Duration,
        now: Instant,
    ) {
        if self.0.len() >= MOST_CLIENTS && !self.0.contains_key(&client) {
            self.make_room(timeout, now);
        }
        self.0.insert(client, (target, now));
    }

    fn make_room(&mut self, timeout: Duration, now: Instant) {
        self.0
            .retain(|_, (_, last)| now.saturating_duration_since(*last) < timeout);
        if self.0.len() >= MOST_CLIENTS {
            let oldest = self.0.iter().min_by_key(|(_, (_, last))| *last);
            if let Some(oldest) = oldest.map(|(client, _)| *client) {
                self.0.remove(&oldest);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn a_client_is_remembered_until_it_was_away_too_long() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let (client, target) = ([10, 0, 0, 1].into(), ([10, 0, 0, 2], 80).into());
        let mut known = Affinities::default();
        known.remember(client, target, TIMEOUT, start);
        assert_eq!(known.of(client, TIMEOUT, after(9)), Some(target));
        assert_eq!(known.of(client, TIMEOUT, after(10)), None);
        assert_eq!(known.of([10, 0, 0, 9].into(), TIMEOUT, start), None);
    }

    #[test]
    fn memory_is_bounded_and_the_longest_away_goes_first() {
        let start = Instant::now();
        let target = ([10, 0, 0, 2], 80).into();
        let mut known = Affinities::default();
        let client = |n: usize| IpAddr::from(u32::try_from(n).unwrap().to_be_bytes());
        for n in 0..=MOST_CLIENTS {
            let at = start + Duration::from_micros(n as u64);
            known.remember(client(n), target, TIMEOUT, at);
        }
        assert_eq!(known.0.len(), MOST_CLIENTS);
        assert_eq!(known.of(client(0), TIMEOUT, start), None);
        assert_eq!(known.of(client(1), TIMEOUT, start), Some(target));
    }
}
