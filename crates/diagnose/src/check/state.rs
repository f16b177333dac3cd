//! What was looked at, and how it is, in one sentence each.

use cloudkeel_controllers::view::Readiness;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;

use crate::finding::Area;
use crate::snapshot::{CloudState, Snapshot};
use crate::text::age;

pub(super) fn sentences(snapshot: &Snapshot) -> Vec<(Area, String)> {
    let mut state = Vec::new();
    if let Ok(version) = &snapshot.api_server {
        state.push((Area::ApiServer, format!("{version} answers")));
    }
    state.extend(leader(snapshot).map(|text| (Area::Manager, text)));
    if let Some(subject) = &snapshot.access.subject
        && !snapshot.access.checks.is_empty()
    {
        let allowed = snapshot
            .access
            .checks
            .iter()
            .filter(|it| it.is_allowed)
            .count();
        let of = snapshot.access.checks.len();
        state.push((
            Area::Manager,
            format!("{subject} has {allowed} of {of} permissions"),
        ));
    }
    let clouds = snapshot.clouds.iter().map(cloud);
    state.extend(clouds.map(|text| (Area::Clouds, text)));
    if let Ok(nodes) = &snapshot.nodes {
        let ready = nodes
            .iter()
            .filter(|it| it.view.readiness == Readiness::Ready)
            .count();
        let tainted = nodes
            .iter()
            .filter(|it| it.view.has_taint(UNINITIALIZED_TAINT))
            .count();
        let text = format!("{}: {ready} Ready, {tainted} not initialized", nodes.len());
        state.push((Area::Nodes, text));
    }
    let routed = snapshot.clouds.iter().filter_map(|cloud| {
        let routes = cloud.routes.as_ref()?.as_ref().ok()?;
        Some((
            Area::Routes,
            format!("{} in cloud {}", routes.len(), cloud.name),
        ))
    });
    state.extend(routed);
    if let Ok(services) = &snapshot.services {
        let served = services.iter().filter(|it| it.owner.is_some()).count();
        let text = format!("{served} with a load balancer of a cloud here");
        state.push((Area::Services, text));
    }
    state
}

fn leader(snapshot: &Snapshot) -> Option<String> {
    let lease = snapshot.lease()?;
    let (holder, renewed) = (lease.holder.as_ref()?, lease.renewed?);
    let ago = age(renewed, snapshot.now);
    Some(format!("{holder} holds {}, renewed {ago} ago", lease.name))
}

fn cloud(cloud: &CloudState) -> String {
    let mut parts = vec![format!("{} ({})", cloud.name, cloud.provider)];
    if let Some(Ok(scope)) = &cloud.scope {
        parts.push(format!("sees {scope}"));
    }
    if let Some(listed) = cloud.listed() {
        parts.push(format!("{} machines", listed.count));
    }
    if let Some(Ok(owned)) = &cloud.owned {
        parts.push(format!("{} resources of this cluster", owned.len()));
    }
    if let Some((left, of)) = cloud.budget {
        parts.push(format!("{left} of {of} requests left"));
    }
    parts.join(", ")
}
