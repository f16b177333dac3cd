//! Every call that only looks.

use serde_json::{Value, json};

use super::super::operation::Operation;
use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{
    LOCATIONS, LoadBalancerType, SERVER_TYPES, Scene, ServerType, datacenters, images,
};
use super::page::{paged, paged_plain};
use super::query::ListQuery;
use super::{Answer, Call};

impl Scene<'_> {
    pub(super) fn look(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        match call.operation {
            Operation::GetServer => {
                let id = call.id("server")?;
                let found = self.project.servers.seen(id, self.view);
                let server = found.ok_or_else(|| Refusal::not_found("server", id))?;
                Ok(Answer::ok(json!({"server": self.render_server(server)})))
            }
            Operation::GetNetwork => {
                let id = call.id("network")?;
                let found = self.project.networks.seen(id, self.view);
                let network = found.ok_or_else(|| Refusal::not_found("network", id))?;
                Ok(Answer::ok(json!({"network": self.render_network(network)})))
            }
            Operation::GetLoadBalancer => {
                let id = call.id("load balancer")?;
                let found = self.project.balancers.seen(id, self.view);
                let balancer = found.ok_or_else(|| Refusal::not_found("load balancer", id))?;
                let balancer = self.render_balancer(balancer);
                Ok(Answer::ok(json!({"load_balancer": balancer})))
            }
            Operation::GetCertificate => {
                let id = call.id("certificate")?;
                let found = self.project.certificates.seen(id, self.view);
                let certificate = found.ok_or_else(|| Refusal::not_found("certificate", id))?;
                let certificate = self.render_certificate(certificate);
                Ok(Answer::ok(json!({"certificate": certificate})))
            }
            Operation::GetAction => {
                let id = call.id("action")?;
                let found = self.project.actions.get(&id);
                let action = found.ok_or_else(|| Refusal::not_found("action", id))?;
                Ok(Answer::ok(json!({"action": action.wire(self.now.instant)})))
            }
            _ => self.list(call),
        }
    }

    fn list(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let query = &ListQuery::parse(call.query)?;
        let project = &self.project;
        match call.operation {
            Operation::ListServers => {
                let servers = project
                    .servers
                    .all_seen(self.view)
                    .map(|(_, thing)| &**thing);
                Ok(paged("servers", servers, query, |thing| {
                    self.render_server(thing)
                }))
            }
            Operation::ListNetworks => {
                let networks = project
                    .networks
                    .all_seen(self.view)
                    .map(|(_, thing)| &**thing);
                Ok(paged("networks", networks, query, |thing| {
                    self.render_network(thing)
                }))
            }
            Operation::ListLoadBalancers => {
                let balancers = project
                    .balancers
                    .all_seen(self.view)
                    .map(|(_, thing)| &**thing);
                let render = |thing: &_| self.render_balancer(thing);
                Ok(paged("load_balancers", balancers, query, render))
            }
            Operation::ListCertificates => {
                let found = project
                    .certificates
                    .all_seen(self.view)
                    .map(|(_, thing)| &**thing);
                let render = |thing: &_| self.render_certificate(thing);
                Ok(paged("certificates", found, query, render))
            }
            Operation::ListActions => self.list_actions(query),
            Operation::ListServerActions => self.actions_of(("server", call.id("server")?), query),
            Operation::ListNetworkActions => {
                self.actions_of(("network", call.id("network")?), query)
            }
            Operation::ListLoadBalancerActions => {
                self.actions_of(("load_balancer", call.id("load balancer")?), query)
            }
            Operation::ListCertificateActions => {
                self.actions_of(("certificate", call.id("certificate")?), query)
            }
            _ => self.catalogue(call, query),
        }
    }

    /// Actions are only given by ID.
    fn list_actions(&self, query: &ListQuery) -> Result<Answer, Refusal> {
        if query.ids.is_empty() {
            let message = "listing all actions was removed: ask for them by id";
            let mut refusal = Refusal::new("deprecated_api_endpoint", message);
            let announcement =
                "https://docs.hetzner.cloud/changelog#2025-01-30-listing-arbitrary-actions";
            refusal.details = json!({"announcement": announcement});
            return Err(refusal);
        }
        let asked = |action: &&Action| query.ids.contains(&action.id);
        let actions = self.project.actions.values().filter(asked);
        let render = |action: &Action| action.wire(self.now.instant);
        Ok(paged("actions", actions, query, render))
    }

    fn actions_of(&self, thing: (&'static str, u64), query: &ListQuery) -> Result<Answer, Refusal> {
        let exists = match thing.0 {
            "server" => self.project.servers.get(thing.1).is_some(),
            "network" => self.project.networks.get(thing.1).is_some(),
            "load_balancer" => self.project.balancers.get(thing.1).is_some(),
            _ => self.project.certificates.get(thing.1).is_some(),
        };
        if !exists {
            return Err(Refusal::not_found(thing.0, thing.1));
        }
        let actions = self.project.actions.values();
        let actions = actions.filter(|action| action.resources.contains(&thing));
        let render = |action: &Action| action.wire(self.now.instant);
        Ok(paged("actions", actions, query, render))
    }

    /// What is the same in every project.
    fn catalogue(&self, call: &Call<'_>, query: &ListQuery) -> Result<Answer, Refusal> {
        let (_, place) = call.operation.path().split_at("/v1/".len());
        let key = place.split('/').next().unwrap_or_default();
        let all: Vec<Value> = match key {
            "locations" => LOCATIONS.iter().map(|location| json!(location)).collect(),
            "datacenters" => datacenters(),
            "server_types" => SERVER_TYPES.iter().map(ServerType::wire).collect(),
            "images" => images(),
            _ => self
                .balancer_types
                .iter()
                .map(LoadBalancerType::wire)
                .collect(),
        };
        if call.operation.is_list() {
            return Ok(paged_plain(key, all, query.name(), query));
        }
        let kind = key.trim_end_matches('s');
        let id = call.id(kind)?;
        let found = all
            .into_iter()
            .find(|thing| thing.get("id") == Some(&json!(id)));
        let thing = found.ok_or_else(|| Refusal::not_found(kind, id))?;
        let body = serde_json::Map::from_iter([(kind.to_owned(), thing)]);
        Ok(Answer::ok(Value::Object(body)))
    }
}
