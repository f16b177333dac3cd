//! The watches of Nodes, as light as it can be, and of Services.

use std::time::Duration;

use futures::Stream;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, InitialListStrategy, watcher};
use kube::{Api, Client};

use super::protobuf::client_in_protobuf;
use super::{Backoff, jittered};
use crate::view::SlimNode;

/// Heavy Nodes come by the dozen kilobytes, and a page is held as text and as objects at once.
const NODES_PER_PAGE: u32 = 100;

/// Between two attempts to repair a watch.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(30),
};

/// Lists all Nodes and goes on with every change, without the parts of them that nobody reads. Pauses
/// between attempts follow from the seed.
pub fn watch_nodes(
    client: Client,
    config: watcher::Config,
    seed: u64,
) -> impl Stream<Item = watcher::Result<Event<SlimNode>>> + Send {
    let config = watcher::Config {
        // Pages of one list show one moment; a stream of its own may bring what came later.
        initial_list_strategy: InitialListStrategy::ListWatch,
        ..config.page_size(NODES_PER_PAGE)
    };
    watcher(Api::all(client_in_protobuf(client)), config).backoff(Pauses::new(seed, 0))
}

/// Lists all Services and goes on with every change.
pub fn watch_services(
    client: Client,
    config: watcher::Config,
    seed: u64,
) -> impl Stream<Item = watcher::Result<Event<Service>>> + Send {
    watcher(Api::<Service>::all(client), config).backoff(Pauses::new(seed, 1))
}

/// Pauses that grow, and differ a little from those of others.
struct Pauses {
    seed: u64,
    watch: usize,
    failures: u32,
    round: u64,
}

impl Pauses {
    const fn new(seed: u64, watch: usize) -> Self {
        Self {
            seed,
            watch,
            failures: 0,
            round: 0,
        }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        self.round = self.round.wrapping_add(1);
        let pause = BACKOFF.pause(self.failures);
        Some(jittered(pause, self.seed, self.watch, self.round))
    }
}

impl kube::runtime::utils::Backoff for Pauses {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::utils::Backoff as _;

    use super::*;

    #[test]
    fn pauses_grow_start_anew_and_follow_from_the_seed() {
        let is_about = |pause: Option<Duration>, seconds: u64| {
            let (pause, expected) = (pause.unwrap(), Duration::from_secs(seconds));
            assert!(pause.abs_diff(expected) <= expected / 10, "{pause:?}");
        };
        let mut pauses = Pauses::new(7, 0);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            is_about(pauses.next(), seconds);
        }
        pauses.reset();
        is_about(pauses.next(), 1);
        let first = |seed, watch| Pauses::new(seed, watch).next();
        assert_eq!(first(7, 0), first(7, 0));
        assert_ne!(first(7, 0), first(8, 0));
        assert_ne!(first(7, 0), first(7, 1));
    }
}
