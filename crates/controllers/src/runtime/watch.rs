//! The watch of Nodes, as light as it can be.

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use super::protobuf::client_in_protobuf;
use crate::view::SlimNode;

/// Heavy Nodes come by the dozen kilobytes, and a page is held as text and as objects at once.
const NODES_PER_PAGE: u32 = 100;

/// Lists all Nodes and goes on with every change, without the parts of them that nobody reads.
pub fn watch_nodes(
    client: Client,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<Node>>> + Send {
    let config = config.page_size(NODES_PER_PAGE);
    watcher(Api::<SlimNode>::all(client_in_protobuf(client)), config)
        .default_backoff()
        .map(|event| event.map(widened))
}

fn widened(event: Event<SlimNode>) -> Event<Node> {
    match event {
        Event::Apply(node) => Event::Apply(node.into()),
        Event::Delete(node) => Event::Delete(node.into()),
        Event::Init => Event::Init,
        Event::InitApply(node) => Event::InitApply(node.into()),
        Event::InitDone => Event::InitDone,
    }
}
