//! Every call that only looks.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_emulation::history::Table;
use serde_json::{Map, Value, json};

use super::super::operation::Operation;
use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{
    LOCATIONS, LoadBalancerType, SERVER_TYPES, Scene, ServerType, datacenters, images,
};
use super::page::{paged, paged_plain};
use super::query::{ListQuery, Listed};
use super::{Answer, Call};

impl Scene<'_> {
    pub(super) fn look(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let project = &self.project;
        match call.operation {
            Operation::GetServer => {
                self.look_at("server", call, &project.servers, Self::render_server)
            }
            Operation::GetNetwork => {
                self.look_at("network", call, &project.networks, Self::render_network)
            }
            Operation::GetLoadBalancer => {
                let balancers = &project.balancers;
                self.look_at("load balancer", call, balancers, Self::render_balancer)
            }
            Operation::GetCertificate => {
                let certificates = &project.certificates;
                self.look_at("certificate", call, certificates, Self::render_certificate)
            }
            Operation::GetAction => {
                let id = call.id("action")?;
                let found = project.actions.get(&id);
                let action = found.ok_or_else(|| Refusal::not_found("action", id))?;
                Ok(Answer::ok(json!({"action": action.wire(self.now.instant)})))
            }
            _ => self.list(call),
        }
    }

    /// The thing in the path, as a read shows it.
    fn look_at<T>(
        &self,
        kind: &str,
        call: &Call<'_>,
        table: &Table<T>,
        render: impl Fn(&Self, &T) -> Value,
    ) -> Result<Answer, Refusal> {
        let id = call.id(kind)?;
        self.show(kind, id, table.seen(id, self.view), render)
    }

    /// The answer with one thing, or that there is none.
    pub(super) fn show<T>(
        &self,
        kind: &str,
        id: u64,
        found: Option<&Arc<T>>,
        render: impl Fn(&Self, &T) -> Value,
    ) -> Result<Answer, Refusal> {
        let thing = found.ok_or_else(|| Refusal::not_found(kind, id))?;
        let key = kind.replace(' ', "_");
        let body = Map::from_iter([(key, render(self, thing))]);
        Ok(Answer::ok(Value::Object(body)))
    }

    fn list(&self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let query = &ListQuery::parse(call.query)?;
        let project = &self.project;
        match call.operation {
            Operation::ListServers => {
                Ok(self.page("servers", &project.servers, query, Self::render_server))
            }
            Operation::ListNetworks => {
                Ok(self.page("networks", &project.networks, query, Self::render_network))
            }
            Operation::ListLoadBalancers => {
                let balancers = &project.balancers;
                Ok(self.page("load_balancers", balancers, query, Self::render_balancer))
            }
            Operation::ListCertificates => {
                let certificates = &project.certificates;
                Ok(self.page(
                    "certificates",
                    certificates,
                    query,
                    Self::render_certificate,
                ))
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

    /// One page of a table, as a read shows it.
    fn page<T: Listed>(
        &self,
        key: &str,
        table: &Table<T>,
        query: &ListQuery,
        render: impl Fn(&Self, &T) -> Value,
    ) -> Answer {
        let things = table.all_seen(self.view).map(|(_, thing)| &**thing);
        paged(key, things, query, |thing| render(self, thing))
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
        let ids: BTreeSet<&u64> = query.ids.iter().collect();
        let actions = ids
            .into_iter()
            .filter_map(|id| self.project.actions.get(id));
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
        let body = Map::from_iter([(kind.to_owned(), thing)]);
        Ok(Answer::ok(Value::Object(body)))
    }
}
