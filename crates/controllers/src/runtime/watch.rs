//! The watches of Nodes, reduced to the fields in use, and of Services.

use std::time::Duration;

use futures::Stream;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, InitialListStrategy, watcher};
use kube::{Api, Client};

use super::Backoff;
use super::backoff::WatchBackoff;
use super::protobuf::client_in_protobuf;
use crate::view::SlimNode;

/// Heavy Nodes come by the dozen kilobytes, and a page is held as text and as objects at once.
const NODES_PER_PAGE: u32 = 100;

/// Between two attempts to repair a watch.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(30),
};

/// Lists all Nodes and goes on with every change, without the parts of them that no controller reads. Pauses between
/// attempts follow from the seed.
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
    watcher(Api::all(client_in_protobuf(client)), config)
        .backoff(WatchBackoff::new(BACKOFF, seed, 0))
}

/// Lists all Services and goes on with every change.
pub fn watch_services(
    client: Client,
    config: watcher::Config,
    seed: u64,
) -> impl Stream<Item = watcher::Result<Event<Service>>> + Send {
    watcher(Api::<Service>::all(client), config).backoff(WatchBackoff::new(BACKOFF, seed, 1))
}
