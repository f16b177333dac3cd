//! Runs the background controllers of providers, restarts them when they fail, and stops them when the lease is lost.

mod host;
mod nodes;
mod services;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;

use cloudkeel_controllers::ControllerSelection;
use cloudkeel_controllers::clouds::Cloud;

pub(crate) use host::{Host, HostParts};

/// A controller of a cloud, by name: its provider may be replaced.
#[derive(Clone)]
pub(crate) struct Provided {
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) name: &'static str,
    /// Whether it needs the Services of the cluster.
    pub(crate) watches_services: bool,
}

/// Those that `--controllers` selects.
pub(crate) fn selected(selection: &ControllerSelection, clouds: &[Arc<Cloud>]) -> Vec<Provided> {
    let mut provided = Vec::new();
    for cloud in clouds {
        for controller in cloud.provider().background_controllers() {
            let name = controller.name();
            if selection.runs_provided(name, controller.on_by_default()) {
                let cloud = Arc::clone(cloud);
                provided.push(Provided {
                    cloud,
                    name,
                    watches_services: controller.watches_services(),
                });
            }
        }
    }
    provided
}
