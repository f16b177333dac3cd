//! Routes that look as if they lead nowhere, and since when.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::Route;
use ipnet::IpNet;
use tokio::time::Instant;

/// How much later a second look has to be. Long enough for a Node that has just joined to arrive by
/// the watch, and for a cloud's list to catch up.
pub(super) const SECOND_LOOK: Duration = Duration::from_secs(10);

/// What every complete list since then has shown alike.
#[derive(Debug, Default)]
pub(super) struct Suspicions {
    since: BTreeMap<(String, IpNet), (Route, Instant)>,
}

impl Suspicions {
    /// Whether this very route was suspect long enough ago, and in every complete list since.
    pub(super) fn confirm(&self, route: &Route, now: Instant) -> bool {
        let known = self.since.get(&key(route));
        known.is_some_and(|(known, since)| known == route && *since + SECOND_LOOK <= now)
    }

    /// Takes what a complete list has shown: what is no longer suspect is forgotten.
    pub(super) fn note(&mut self, suspects: Vec<Route>, now: Instant) {
        let mut before = std::mem::take(&mut self.since);
        for route in suspects {
            let since = match before.remove(&key(&route)) {
                Some((known, since)) if known == route => since,
                _ => now,
            };
            self.since.insert(key(&route), (route, since));
        }
    }

    /// When the next of them can be confirmed.
    pub(super) fn next_look(&self, now: Instant) -> Option<Duration> {
        let due = self.since.values().map(|(_, since)| *since + SECOND_LOOK);
        let due = due.filter(|due| *due > now).min()?;
        Some(due - now)
    }
}

fn key(route: &Route) -> (String, IpNet) {
    (route.name.clone(), route.destination)
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::RouteTarget;

    use super::*;

    fn route(name: &str, hop: &str) -> Route {
        Route {
            name: name.into(),
            destination: "10.244.1.0/24".parse().unwrap(),
            target: RouteTarget::Elsewhere { hop: hop.into() },
            blackhole: true,
            follows_addresses: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspect_is_confirmed_by_a_later_look_that_agrees() {
        let (mut suspicions, now) = (Suspicions::default(), Instant::now());
        let (first, other) = (route("1", "a"), route("1", "b"));
        assert!(!suspicions.confirm(&first, now));
        suspicions.note(vec![first.clone()], now);
        assert_eq!(suspicions.next_look(now), Some(SECOND_LOOK));
        assert!(
            !suspicions.confirm(&first, now),
            "the same look is no second"
        );
        let later = now + SECOND_LOOK;
        assert!(suspicions.confirm(&first, later));
        assert!(
            !suspicions.confirm(&other, later),
            "it has changed meanwhile"
        );
        suspicions.note(vec![first.clone()], later);
        assert!(suspicions.confirm(&first, later), "the first look counts");
        assert_eq!(suspicions.next_look(later), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_disagrees_ends_the_suspicion() {
        let (mut suspicions, now) = (Suspicions::default(), Instant::now());
        let later = now + SECOND_LOOK;
        let suspect = route("1", "a");
        suspicions.note(vec![suspect.clone()], now);
        suspicions.note(vec![], later);
        suspicions.note(vec![suspect.clone()], later);
        assert!(!suspicions.confirm(&suspect, later));
        assert!(suspicions.confirm(&suspect, later + SECOND_LOOK));
    }
}
