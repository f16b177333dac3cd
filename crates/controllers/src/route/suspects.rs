//! Suspect routes: those that seem to lead nowhere, and since when.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::Route;
use ipnet::IpNet;
use tokio::time::Instant;

/// How much later a suspect has to be listed again. Long enough for a Node that has just joined to arrive by the
/// watch, and for a cloud's list to catch up.
pub(super) const CONFIRM_AFTER: Duration = Duration::from_secs(10);

/// Routes that every list since then has shown alike.
#[derive(Debug, Default)]
pub(super) struct SuspectRoutes(BTreeMap<(String, IpNet), (Route, Instant)>);

impl SuspectRoutes {
    /// Whether this very route was suspect long enough ago, and in every list since.
    pub(super) fn is_confirmed(&self, route: &Route, now: Instant) -> bool {
        let known = self.0.get(&key(route));
        known.is_some_and(|(known, since)| known == route && *since + CONFIRM_AFTER <= now)
    }

    /// Takes the suspects of the latest list, and forgets all others.
    pub(super) fn replace(&mut self, suspects: &[Route], now: Instant) {
        let mut before = std::mem::take(&mut self.0);
        for route in suspects {
            let since = match before.remove(&key(route)) {
                Some((known, since)) if known == *route => since,
                _ => now,
            };
            self.0.insert(key(route), (route.clone(), since));
        }
    }

    /// How soon the next of them can be confirmed that was not when they were planned from.
    pub(super) fn next_due(&self, planned: Instant) -> Option<Duration> {
        let due = self.0.values().map(|(_, since)| *since + CONFIRM_AFTER);
        let next = due.filter(|due| *due > planned).min();
        next.map(|due| due.saturating_duration_since(Instant::now()))
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
    async fn a_suspect_is_confirmed_by_a_later_list_that_agrees() {
        let (mut suspects, now) = (SuspectRoutes::default(), Instant::now());
        let (first, other) = (route("1", "a"), route("1", "b"));
        assert!(!suspects.is_confirmed(&first, now));
        suspects.replace(std::slice::from_ref(&first), now);
        assert_eq!(suspects.next_due(now), Some(CONFIRM_AFTER));
        assert!(
            !suspects.is_confirmed(&first, now),
            "the same list confirms nothing"
        );
        let later = now + CONFIRM_AFTER;
        assert!(suspects.is_confirmed(&first, later));
        assert!(
            !suspects.is_confirmed(&other, later),
            "it has changed meanwhile"
        );
        suspects.replace(std::slice::from_ref(&first), later);
        assert!(
            suspects.is_confirmed(&first, later),
            "the first list counts"
        );
        assert_eq!(suspects.next_due(later), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_disagrees_ends_the_suspicion() {
        let (mut suspects, now) = (SuspectRoutes::default(), Instant::now());
        let later = now + CONFIRM_AFTER;
        let suspect = route("1", "a");
        suspects.replace(std::slice::from_ref(&suspect), now);
        suspects.replace(&[], later);
        suspects.replace(std::slice::from_ref(&suspect), later);
        assert!(!suspects.is_confirmed(&suspect, later));
        assert!(suspects.is_confirmed(&suspect, later + CONFIRM_AFTER));
    }
}
