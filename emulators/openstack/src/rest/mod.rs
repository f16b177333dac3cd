//! What each call does. Plain functions over a project: no I/O, no waiting.

mod balancer;
pub(crate) mod keystone;
pub(crate) mod network;

use cloudkeel_emulation::history::View;
use cloudkeel_emulation::ids::Ids;
use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::state::{Kind, Project, State, refers, text};

type Performed = Result<Answer, Refusal>;

/// One project with everything that is needed to change it.
pub(crate) struct Context<'a> {
    pub(crate) project: &'a mut Project,
    pub(crate) settings: &'a Settings,
    pub(crate) ids: &'a mut Ids,
    pub(crate) now: Instant,
    /// Which moment a read shows.
    view: View,
    /// Whether the next change of a load balancer ends badly.
    pub(crate) ends_in_error: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        state: &'a mut State,
        project: &str,
        now: Instant,
        view: View,
    ) -> Result<Self, Refusal> {
        // Octavia's versions need no token, so they have no project.
        if project.is_empty() {
            let keep = state.settings.history;
            state
                .projects
                .entry(String::new())
                .or_insert_with(|| Project::new(keep));
        }
        let found = state.projects.get_mut(project);
        let found = found.ok_or_else(|| Refusal::new(403, "", "no such project"))?;
        Ok(Self {
            project: found,
            settings: &state.settings,
            ids: &mut state.ids,
            now,
            view,
            ends_in_error: false,
        })
    }

    /// The resource in the path.
    fn found(&self, kind: Kind, id: &str) -> Result<Value, Refusal> {
        let (_, _, neutron, name) = kind.names();
        self.project
            .get(kind, id)
            .ok_or_else(|| Refusal::not_found(neutron, name, id))
    }

    fn show(&mut self, kind: Kind, call: &Call<Operation>) -> Performed {
        let id = call.resource.as_deref().unwrap_or_default();
        let (one, _, neutron, name) = kind.names();
        let view = self.view;
        let found = self
            .project
            .table(kind)
            .seen(id, view)
            .map(|value| Value::clone(value));
        let found = found.ok_or_else(|| Refusal::not_found(neutron, name, id))?;
        Ok(Answer::json(StatusCode::OK, &json!({one: found})))
    }

    fn list(&self, kind: Kind, call: &Call<Operation>) -> Answer {
        let (_, many, ..) = kind.names();
        let params = call.params();
        let mut items = self.project.all(kind, self.view);
        items.retain(|item| {
            let mut names = params.iter().map(|(name, _)| name);
            names.all(|name| {
                let wanted: Vec<&str> = params.all(name).collect();
                wanted.iter().any(|wanted| matches(item, name, wanted))
            })
        });
        items.sort_by_key(|item| {
            (
                item.get("order").and_then(Value::as_u64),
                text(item, "id").to_owned(),
            )
        });
        if let Some(marker) = params.get("marker") {
            let place = items.iter().position(|item| text(item, "id") == marker);
            items.drain(..place.map_or(0, |place| place + 1));
        }
        let mut answer = serde_json::Map::new();
        let size = self.settings.page_size;
        if items.len() > size {
            items.truncate(size);
            let last = items
                .last()
                .map(|item| text(item, "id").to_owned())
                .unwrap_or_default();
            let path = call.operation.path();
            let query = call
                .query
                .split('&')
                .filter(|pair| !pair.starts_with("marker="));
            let query: Vec<&str> = query.collect();
            let (base, query) = (cloudkeel_emulation::InProcess::URL, query.join("&"));
            let href = format!("{base}{path}?{query}&marker={last}");
            let links = json!([{"rel": "next", "href": href}]);
            answer.insert(format!("{many}_links"), links);
        }
        answer.insert(many.to_owned(), json!(items));
        Answer::json(StatusCode::OK, &answer)
    }
}

/// Whether an item passes a filter of a list.
fn matches(item: &Value, name: &str, wanted: &str) -> bool {
    let listed = |field: &str, wanted: &str| {
        let list = item.get(field).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|one| one.as_str() == Some(wanted)))
    };
    match name {
        // Everything in a project is of the project.
        "marker" | "limit" | "fields" | "project_id" => true,
        "name" if item.get("OS-EXT-AZ:availability_zone").is_some() => {
            let name = wanted
                .trim_start_matches('^')
                .trim_end_matches('$')
                .replace('\\', "");
            text(item, "name") == name
        }
        "tags" => wanted.split(',').all(|tag| listed("tags", tag)),
        "tags-any" => wanted.split(',').any(|tag| listed("tags", tag)),
        "not-tags" => !wanted.split(',').all(|tag| listed("tags", tag)),
        "not-tags-any" => !wanted.split(',').any(|tag| listed("tags", tag)),
        "security_groups" => listed("security_groups", wanted),
        "loadbalancer_id" => refers(item, "loadbalancers", wanted),
        "router:external" => item.get(name).and_then(Value::as_bool) == Some(wanted == "true"),
        "fixed_ips" => {
            let ip = wanted.strip_prefix("ip_address=").unwrap_or_default();
            let fixed = item.get("fixed_ips").and_then(Value::as_array);
            fixed.is_some_and(|fixed| fixed.iter().any(|one| text(one, "ip_address") == ip))
        }
        name => text(item, name) == wanted,
    }
}

/// The object under its name in a body.
fn body(call: &Call<Operation>, name: &str) -> Result<Value, Refusal> {
    let body: Value =
        serde_json::from_slice(&call.body).map_err(|error| Refusal::invalid(error.to_string()))?;
    body.get(name)
        .cloned()
        .ok_or_else(|| Refusal::invalid(format!("the body has no {name:?}")))
}

/// Carries out a call.
pub(crate) fn perform(context: &mut Context<'_>, call: &Call<Operation>) -> Performed {
    use Operation as Op;
    match call.operation {
        Op::ListServers => Ok(context.list(Kind::Server, call)),
        Op::GetServer => context.show(Kind::Server, call),
        Op::ListFlavors => Ok(context.list(Kind::Flavor, call)),
        Op::ListNetworks => Ok(context.list(Kind::Network, call)),
        Op::ListSubnets => Ok(context.list(Kind::Subnet, call)),
        Op::GetSubnet => context.show(Kind::Subnet, call),
        Op::ListPorts => Ok(context.list(Kind::Port, call)),
        Op::GetRouter => context.show(Kind::Router, call),
        Op::ListFloatingIps => Ok(context.list(Kind::FloatingIp, call)),
        Op::ListSecurityGroups => Ok(context.list(Kind::SecurityGroup, call)),
        Op::ListLoadBalancers => Ok(context.list(Kind::LoadBalancer, call)),
        Op::GetLoadBalancer => context.show(Kind::LoadBalancer, call),
        Op::ListListeners => Ok(context.list(Kind::Listener, call)),
        Op::ListPools => Ok(context.list(Kind::Pool, call)),
        Op::ListMonitors => Ok(context.list(Kind::Monitor, call)),
        Op::GetMonitor => context.show(Kind::Monitor, call),
        Op::GetVolume => context.show(Kind::Volume, call),
        Op::GetSecret | Op::GetContainer => context.show(Kind::Secret, call),
        Op::ListVersions => {
            let last = json!({"id": context.settings.octavia_version, "status": "CURRENT"});
            Ok(Answer::json(
                StatusCode::OK,
                &json!({"versions": [{"id": "v2.0", "status": "SUPPORTED"}, last]}),
            ))
        }
        Op::Login => Err(Refusal::invalid("logins have no project")),
        operation if operation.path().starts_with("/network") => context.change_network(call),
        _ => context.change_balancer(call),
    }
}
