//! The API server, and what may be read of it.

use std::collections::BTreeMap;

use crate::catalogue::{API_UNREACHABLE, NOT_READABLE, VERSION_SKEW};
use crate::finding::Finding;
use crate::snapshot::{Snapshot, Unread};
use crate::text::first_few;

/// A kubelet may be this many minor versions older than the API server.
const SUPPORTED_SKEW: u32 = 3;

/// Whether the API server does not answer, so that nothing can be said about the cluster.
pub(super) fn is_unreachable(snapshot: &Snapshot) -> bool {
    matches!(&snapshot.api_server, Err(unread) if !unread.is_denied)
}

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    if is_unreachable(snapshot)
        && let Err(unread) = &snapshot.api_server
    {
        return vec![API_UNREACHABLE.found("API server", &unread.why)];
    }
    let mut findings: Vec<_> = unread(snapshot).map(not_readable).collect();
    findings.extend(version_skew(snapshot));
    findings
}

fn unread(snapshot: &Snapshot) -> impl Iterator<Item = &Unread> {
    let endpoints = snapshot.known_services().iter();
    let mut endpoints = endpoints.filter_map(|it| it.endpoints.as_ref()?.as_ref().err());
    [
        snapshot.api_server.as_ref().err(),
        snapshot.pods.as_ref().err(),
        snapshot.leases.as_ref().err(),
        snapshot.access.unread.as_ref(),
        snapshot.nodes.as_ref().err(),
        snapshot.services.as_ref().err(),
        snapshot.events.as_ref().err(),
        endpoints.next(),
    ]
    .into_iter()
    .flatten()
}

fn not_readable(unread: &Unread) -> Finding {
    NOT_READABLE.found(&unread.what, &unread.why)
}

/// One finding for each kubelet version that does not fit.
fn version_skew(snapshot: &Snapshot) -> Vec<Finding> {
    let Some(server) = snapshot.api_server.as_deref().ok().and_then(minor) else {
        return Vec::new();
    };
    let mut by_version = BTreeMap::<&str, Vec<&str>>::new();
    for node in snapshot.known_nodes() {
        let kubelet = minor(&node.kubelet_version);
        let fits = |minor: u32| minor <= server && server - minor <= SUPPORTED_SKEW;
        if kubelet.is_some_and(|minor| !fits(minor)) {
            by_version
                .entry(&node.kubelet_version)
                .or_default()
                .push(node.name());
        }
    }
    let server = snapshot.api_server.as_deref().unwrap_or_default();
    by_version
        .into_iter()
        .map(|(version, nodes)| {
            let what = format!(
                "the kubelets of {} are {version}, the API server is {server}",
                first_few(nodes.iter().copied())
            );
            VERSION_SKEW.found(format!("kubelet {version}"), what)
        })
        .collect()
}

/// The minor version of `v1.35.1`.
fn minor(version: &str) -> Option<u32> {
    let version = version.strip_prefix("v1.")?;
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}
