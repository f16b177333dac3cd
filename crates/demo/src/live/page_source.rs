//! The data of the demo's page.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{Clock as _, SystemClock};
use cloudkeel_local_cloud::simulated_cloud::wire::{Hop, Route};
use cloudkeel_page::{
    Action, CloudRow, ControllerRow, EventRow, Leader, Level, ManagerRow, PageData, RouteRow,
    Source, Summary, Windows,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::ResourceExt as _;

use super::{action, balancers, nodes};
use crate::managers::{ControllerStatus, ManagerState, QueueStatus, Status};
use crate::scenario::Scenario;
use crate::world::World;

const MOST_EVENTS: usize = 60;

/// Collects the data of the demo's page.
pub(crate) struct DemoPage {
    world: Arc<World>,
    scenario: Arc<Scenario>,
}

impl DemoPage {
    pub(crate) const fn new(world: Arc<World>, scenario: Arc<Scenario>) -> Self {
        Self { world, scenario }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new(action::ADD, "Add a machine")];
        if !self.scenario.is_playing() {
            actions.push(Action::new(action::SCENARIO, "Play the scenario"));
        }
        actions
    }

    fn notice(&self) -> Option<String> {
        let world = &self.world;
        if world.cloud.is_broken() {
            return Some("The cloud is broken: every call is answered with 503.".to_owned());
        }
        world.has_foreign_token().then(|| {
            "The managers' token belongs to another project: every machine looks gone.".to_owned()
        })
    }

    /// The objects of the cluster. On failure: the API's error.
    async fn cluster(&self) -> Result<(Vec<Node>, Vec<Service>, Vec<Event>), String> {
        let world = &self.world;
        tokio::try_join!(world.nodes(), world.services(), world.events())
    }

    fn cloud(&self, leader: Option<&Status>) -> CloudRow {
        let world = &self.world;
        let seen = leader.and_then(|status| status.clouds.first());
        let stop = seen.and_then(|seen| seen.deletions.as_ref()?.stopped.clone());
        let list = seen.and_then(|seen| seen.last_list.as_ref());
        let (state, level) = match (world.cloud.is_broken(), &stop) {
            (true, _) => ("does not answer", Level::Bad),
            (false, Some(_)) => ("deletions are stopped", Level::Warning),
            (false, None) => ("answers", Level::Good),
        };
        let actions = if world.cloud.is_broken() || world.has_foreign_token() {
            vec![Action::new(action::REPAIR, "Mend the cloud")]
        } else {
            vec![
                Action::new(action::BREAK, "Break the cloud").destructive(),
                Action::new(action::SWAP_TOKEN, "Swap the token").destructive(),
            ]
        };
        let calls = world.cloud.calls();
        CloudRow {
            name: world.cloud.name().to_owned(),
            provider: world.cloud.provider().to_owned(),
            state: state.to_owned(),
            level,
            machines: list.map(|list| list.machines),
            seen: list.map(|list| list.at.clone()),
            budget: None,
            calls: Some((calls.all, calls.mutations)),
            note: stop.map(|stop| stop.reason),
            actions,
        }
    }

    fn routes(&self) -> Vec<RouteRow> {
        let machines = self.world.cloud.machines();
        let routes = self.world.cloud.routes().into_iter();
        let row = |route: Route| {
            let machine = machines.iter().find(|m| route.hop == Hop::Machine(m.id));
            let (state, level) = if route.blackhole {
                ("leads nowhere", Level::Warning)
            } else {
                ("ours", Level::Good)
            };
            RouteRow {
                destination: route.destination.to_string(),
                to: machine.map_or_else(|| route.hop.to_string(), |m| m.name.clone()),
                cloud: self.world.cloud.name().to_owned(),
                state: state.to_owned(),
                level,
            }
        };
        routes.map(row).collect()
    }
}

#[async_trait]
impl Source for DemoPage {
    async fn data(&self) -> PageData {
        let world = &self.world;
        let (seen, stats) = tokio::join!(world.managers.poll(), world.cloud.stats());
        let cluster = self.cluster().await;
        let leader = seen.iter().filter_map(|seen| seen.status.as_ref());
        let leader = leader.into_iter().find(|status| status.leading);
        let (machines, fleet) = (world.cloud.machines(), world.fleet.names());
        let balancers = world.cloud.balancers();
        let (nodes, services, events, notice) = match cluster {
            Ok((nodes, services, events)) => (nodes, services, events, self.notice()),
            Err(error) => {
                let notice = format!("The Kubernetes API does not answer: {error}");
                (Vec::new(), Vec::new(), Vec::new(), Some(notice))
            }
        };
        let shown_nodes = nodes::Shown {
            cloud: world.cloud.name(),
            id_prefix: world.cloud.id_prefix(),
            machines: &machines,
            fleet: &fleet,
            leader,
        };
        let shown_balancers = balancers::Shown {
            cloud: world.cloud.name(),
            service_uid_label: world.cloud.service_uid_label(),
            balancers: &balancers,
            stats: &stats,
            machines: &machines,
        };
        let mut data = PageData {
            title: "cloudkeel demo".to_owned(),
            time: SystemClock.now().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            leader: leader_of(&seen),
            summary: Summary::default(),
            notice,
            windows: Windows::default(),
            managers: seen.iter().map(manager).collect(),
            nodes: nodes::rows(&nodes, &shown_nodes),
            balancers: balancers::rows(&services, leader, &shown_balancers, &world.traffic.count()),
            routes: self.routes(),
            more_routes: 0,
            controllers: controllers(leader),
            clouds: vec![self.cloud(leader)],
            events: rows_of(events),
            steps: self.scenario.steps(),
            actions: self.actions(),
        };
        data.summary = Summary::of(&data);
        data
    }
}

/// The leader, as the managers report it.
fn leader_of(seen: &[ManagerState]) -> Leader {
    let leads = |seen: &&ManagerState| seen.status.as_ref().is_some_and(|status| status.leading);
    let leader = seen.iter().find(leads);
    let holder = leader.map(|seen| {
        let status = seen.status.as_ref();
        let identity = status.and_then(|status| status.leader.holder.as_deref());
        identity.map_or_else(
            || seen.name.to_owned(),
            |identity| format!("{} ({identity})", seen.name),
        )
    });
    Leader {
        is_shown: holder.is_some(),
        error: holder.is_none().then(|| why_no_leader(seen)).flatten(),
        holder,
    }
}

/// Why there is no leader, as the managers report it.
fn why_no_leader(seen: &[ManagerState]) -> Option<String> {
    let statuses: Vec<_> = seen
        .iter()
        .filter_map(|seen| seen.status.as_ref())
        .collect();
    if statuses.is_empty() {
        return Some("no manager answers".to_owned());
    }
    let mut errors = statuses
        .iter()
        .filter_map(|status| status.leader.error.clone());
    let mut holders = statuses
        .iter()
        .filter_map(|status| status.leader.holder.as_deref());
    errors.next().or_else(|| {
        let holder = holders.next()?;
        Some(format!(
            "the lease is held by {holder}, which does not lead: it is taken over when it expires"
        ))
    })
}

fn manager(seen: &ManagerState) -> ManagerRow {
    let (state, level) = match (&seen.status, seen.pid) {
        (Some(status), _) if status.leading => ("leads", Level::Good),
        (Some(_), _) => ("stands by", Level::Neutral),
        (None, Some(_)) => ("starts", Level::Warning),
        (None, None) => ("ended", Level::Bad),
    };
    let kill = Action::new(action::KILL, "Kill")
        .on(seen.name)
        .destructive();
    ManagerRow {
        name: seen.name.to_owned(),
        state: state.to_owned(),
        level,
        link: seen.pid.map(|_| seen.page.clone()),
        actions: seen.pid.map(|_| kill).into_iter().collect(),
    }
}

fn controllers(leader: Option<&Status>) -> Vec<ControllerRow> {
    let row = |controller: &ControllerStatus| {
        let (state, level) = if controller.running {
            ("runs", Level::Good)
        } else {
            ("stopped", Level::Warning)
        };
        ControllerRow {
            name: controller.name.clone(),
            state: state.to_owned(),
            level,
            waiting: controller.queue.ready + controller.queue.delayed,
            working: controller.queue.working,
            note: doing(controller),
        }
    };
    let controllers = leader.map(|status| status.controllers.iter().map(row));
    controllers.into_iter().flatten().collect()
}

fn doing(controller: &ControllerStatus) -> Option<String> {
    if !controller.waits_for.is_empty() {
        return Some(controller.waits_for.join("; "));
    }
    let QueueStatus {
        ready,
        working,
        delayed,
    } = controller.queue;
    let is_idle = controller.running && ready + working + delayed == 0;
    is_idle.then(|| "nothing to do".to_owned())
}

/// The latest events, newest first.
fn rows_of(events: Vec<Event>) -> Vec<EventRow> {
    let mut events: Vec<(Timestamp, Event)> = events
        .into_iter()
        .map(|event| (time_of(&event), event))
        .collect();
    events.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    events.truncate(MOST_EVENTS);
    events
        .into_iter()
        .map(|(time, event)| row_of(time, event))
        .collect()
}

fn row_of(time: Timestamp, event: Event) -> EventRow {
    let about = &event.involved_object;
    let kind = about.kind.as_deref().unwrap_or_default();
    let name = about.name.as_deref().unwrap_or_default();
    let level = if event.type_.as_deref() == Some("Warning") {
        Level::Warning
    } else {
        Level::Neutral
    };
    EventRow {
        id: format!(
            "{}/{}",
            event.namespace().unwrap_or_default(),
            event.name_any()
        ),
        time: time.to_string(),
        level,
        object: format!("{kind}/{name}"),
        count: event
            .count
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(1),
        reason: event.reason.unwrap_or_default(),
        message: event.message.unwrap_or_default(),
    }
}

fn time_of(event: &Event) -> Timestamp {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let once = event.event_time.as_ref().map(|time| time.0);
    let made = event.metadata.creation_timestamp.as_ref();
    let made = made.map(|time| time.0);
    last.or(once).or(made).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_listed_newest_first_by_whichever_time_they_have() {
        let event = |name: &str, times: serde_json::Value| {
            let mut event = json!({
                "metadata": {"name": name, "namespace": "default"},
                "involvedObject": {"kind": "Node", "name": "n"},
                "type": "Warning",
            });
            let (Some(all), Some(times)) = (event.as_object_mut(), times.as_object()) else {
                unreachable!("both are objects")
            };
            all.extend(times.clone());
            serde_json::from_value::<Event>(event).unwrap()
        };
        let rows = rows_of(vec![
            event(
                "first",
                json!({"lastTimestamp": "2026-01-01T00:00:01Z", "count": 3}),
            ),
            event("third", json!({"eventTime": "2026-01-01T00:00:03.000000Z"})),
            event("second", json!({"lastTimestamp": "2026-01-01T00:00:02Z"})),
        ]);
        let ids: Vec<_> = rows
            .iter()
            .map(|row| (row.id.as_str(), row.count))
            .collect();
        assert_eq!(
            ids,
            [
                ("default/third", 1),
                ("default/second", 1),
                ("default/first", 3)
            ]
        );
    }

    #[test]
    fn the_leader_is_named_with_its_identity_or_it_is_said_why_there_is_none() {
        let seen = |name, status: Option<serde_json::Value>| ManagerState {
            name,
            pid: Some(7),
            page: String::new(),
            status: status.map(|status| serde_json::from_value(status).unwrap()),
        };
        let leads = json!({"leading": true, "leader": {"holder": "vm_1", "error": null}});
        let stands_by = json!({"leading": false, "leader": {"holder": "vm_1", "error": null}});
        let blind = json!({"leading": false, "leader": {"holder": null, "error": "403"}});
        for (case, seen, holder, error) in [
            (
                "one leads",
                [seen("a", Some(stands_by.clone())), seen("b", Some(leads))],
                Some("b (vm_1)"),
                None,
            ),
            (
                "the leader was killed",
                [seen("a", Some(stands_by)), seen("b", None)],
                None,
                Some(
                    "the lease is held by vm_1, which does not lead: it is taken over when it expires",
                ),
            ),
            (
                "the lease cannot be read",
                [seen("a", Some(blind)), seen("b", None)],
                None,
                Some("403"),
            ),
            (
                "both are gone",
                [seen("a", None), seen("b", None)],
                None,
                Some("no manager answers"),
            ),
        ] {
            let leader = leader_of(&seen);
            let got = (leader.holder.as_deref(), leader.error.as_deref());
            assert_eq!(got, (holder, error), "{case}");
            assert_eq!(leader.is_shown, holder.is_some(), "{case}");
        }
    }

    #[test]
    fn a_manager_leads_stands_by_starts_or_has_ended() {
        let status = |leading| Status {
            leading,
            ..Status::default()
        };
        for (status, pid, state, can_be_killed) in [
            (Some(status(true)), Some(7), "leads", true),
            (Some(status(false)), Some(7), "stands by", true),
            (None, Some(7), "starts", true),
            (None, None, "ended", false),
        ] {
            let seen = ManagerState {
                name: "manager-a",
                pid,
                page: String::new(),
                status,
            };
            let row = manager(&seen);
            assert_eq!(
                (row.state.as_str(), !row.actions.is_empty()),
                (state, can_be_killed)
            );
        }
    }
}
