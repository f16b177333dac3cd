//! End-to-end checks that know neither the cluster nor the cloud: what a user of Nodes and Services sees.
//!
//! They make one namespace with one Service in it, and remove both. The label that keeps a Node out of load balancers
//! is set on one Node for a while, and taken off again however the checks end.

mod checks;
mod cluster;
mod report;
mod traffic;

use std::time::Duration;

use kube::Client;

pub use report::{Case, Outcome, Report};

/// How the checks are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The image of the Pods behind the Service, which answers HTTP on port 8080. `None` if the cluster answers node ports
    /// by itself, as the demo's does.
    pub image: Option<String>,
    /// How long each wait may take.
    pub timeout: Duration,
}

/// Runs all checks, one after the other.
pub async fn run(client: &Client, options: &Options) -> Report {
    let mut report = Report::default();
    let cluster = cluster::Cluster::new(client, options);
    report
        .check("every Node is initialized", checks::nodes(&cluster))
        .await;
    let started = checks::start(&cluster);
    report.check("a Service gets an address", started).await;
    let is_there = report.last_passed();
    for (name, check) in [
        ("the Service is reachable", checks::Step::Reach),
        ("a new port is served", checks::Step::NewPort),
        ("targets follow Nodes", checks::Step::Targets),
    ] {
        if is_there {
            report.check(name, checks::step(&cluster, check)).await;
        } else {
            report.skip(name, "the Service has no address");
        }
    }
    report
        .check("everything is cleaned up", checks::clean_up(&cluster))
        .await;
    report
}
