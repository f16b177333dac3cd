//! Changes of Neutron's resources.

use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Context, body};
use crate::OpenStackCloud;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::state::{Kind, list, merge, refers, text};

/// The address of a number in a network of 16 bits.
pub(crate) fn address(network: &str, number: u64) -> String {
    format!("{network}.{}.{}", number / 250 % 250, number % 250 + 1)
}

/// The IPv6 address of a number in the private network.
pub(crate) fn address_v6(number: u64) -> String {
    format!("fd00:6::{:x}", number + 1)
}

/// A port with an address of each family in the private network.
pub(crate) fn port(id: &str, device: &str, ip: &str, order: u64) -> Value {
    let subnet_v6 = OpenStackCloud::SUBNET_V6;
    json!({
        "id": id, "name": "", "status": "ACTIVE", "device_id": device, "network_id": OpenStackCloud::NETWORK,
        "fixed_ips": [
            {"subnet_id": OpenStackCloud::SUBNET, "ip_address": ip},
            {"subnet_id": subnet_v6, "ip_address": address_v6(order)},
        ],
        "security_groups": [], "allowed_address_pairs": [], "port_security_enabled": true,
        "revision_number": 1, "tags": [], "order": order,
    })
}

pub(super) fn ok(name: &str, value: &Value) -> Answer {
    Answer::json(StatusCode::OK, &json!({name: value}))
}

pub(super) fn created(name: &str, value: &Value) -> Answer {
    Answer::json(StatusCode::CREATED, &json!({name: value}))
}

impl Context<'_> {
    pub(super) fn change_network(&mut self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let id = call.path_param("id").to_owned();
        match call.operation {
            Operation::ListExtensions => {
                let extensions = self
                    .settings
                    .extensions
                    .iter()
                    .map(|alias| json!({"alias": alias}));
                let extensions: Vec<Value> = extensions.collect();
                Ok(Answer::json(
                    StatusCode::OK,
                    &json!({"extensions": extensions}),
                ))
            }
            Operation::UpdatePort => self.update(Kind::Port, &id, call, &body(call, "port")?),
            Operation::UpdateRouter => {
                let router = body(call, "router")?;
                Self::check_routes(&router)?;
                self.update(Kind::Router, &id, call, &router)
            }
            Operation::AddRoutes | Operation::RemoveRoutes => self.change_routes(&id, call),
            Operation::CreateFloatingIp => self.create_floating_ip(&body(call, "floatingip")?),
            Operation::UpdateFloatingIp => {
                let mut fields = body(call, "floatingip")?;
                if fields.as_object().is_some_and(serde_json::Map::is_empty) {
                    fields = json!({"port_id": null});
                }
                self.update(Kind::FloatingIp, &id, call, &fields)
            }
            Operation::DeleteFloatingIp => self.delete(Kind::FloatingIp, &id),
            Operation::CreateSecurityGroup => Ok(self.create_group(&body(call, "security_group")?)),
            Operation::UpdateSecurityGroup => {
                let fields = body(call, "security_group")?;
                self.update(Kind::SecurityGroup, &id, call, &fields)
            }
            Operation::DeleteSecurityGroup => {
                let is_used = |port: &Value| list(port, "security_groups").contains(&json!(id));
                if !self.project.those(Kind::Port, is_used).is_empty() {
                    let message = format!("Security Group {id} in use.");
                    return Err(Refusal::new(409, "SecurityGroupInUse", message));
                }
                self.delete(Kind::SecurityGroup, &id)
            }
            Operation::CreateRule => self.create_rule(body(call, "security_group_rule")?),
            _ => self.delete_rule(&id),
        }
    }

    fn delete(&mut self, kind: Kind, id: &str) -> Result<Answer, Refusal> {
        self.found(kind, id)?;
        self.project.remove(kind, id, self.now);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Sets fields, unless the caller has seen another revision.
    fn update(
        &mut self,
        kind: Kind,
        id: &str,
        call: &Call<Operation>,
        fields: &Value,
    ) -> Result<Answer, Refusal> {
        let mut value = self.found(kind, id)?;
        let revision = value
            .get("revision_number")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        let seen = call
            .headers
            .get("if-match")
            .and_then(|seen| seen.to_str().ok());
        if seen.is_some_and(|seen| seen != format!("revision_number={revision}")) {
            let message = "Constrained to another revision_number";
            return Err(Refusal::new(412, "RevisionNumberConstraintFailed", message));
        }
        merge(&mut value, fields);
        merge(&mut value, &json!({"revision_number": revision + 1}));
        self.project.put(kind, value.clone(), self.now);
        Ok(ok(kind.names().0, &value))
    }

    fn check_routes(router: &Value) -> Result<(), Refusal> {
        for route in list(router, "routes") {
            let hop = text(route, "nexthop");
            if !hop.starts_with("10.6.") && !hop.starts_with("fd00:6:") {
                let message = format!(
                    "Invalid format for routes: {route}, the nexthop is not connected with router"
                );
                return Err(Refusal::new(400, "InvalidRoutes", message));
            }
        }
        Ok(())
    }

    fn change_routes(&mut self, id: &str, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let router = body(call, "router")?;
        let mut present = self.found(Kind::Router, id)?;
        if let Some(routes) = present.get_mut("routes").and_then(Value::as_array_mut) {
            let given = list(&router, "routes").to_vec();
            routes.retain(|route| !given.contains(route));
            if call.operation == Operation::AddRoutes {
                Self::check_routes(&router)?;
                routes.extend(given);
            }
        }
        self.project.put(Kind::Router, present.clone(), self.now);
        Ok(ok("router", &present))
    }

    fn create_floating_ip(&mut self, asked: &Value) -> Result<Answer, Refusal> {
        let (network, port) = (text(asked, "floating_network_id"), text(asked, "port_id"));
        self.found(Kind::Network, network)?;
        self.found(Kind::Port, port)?;
        let (id, number) = (self.ids.uuid(), self.ids.number());
        let asked_ip = text(asked, "floating_ip_address");
        let ip = if asked_ip.is_empty() {
            format!("203.0.113.{}", number % 250 + 1)
        } else {
            asked_ip.to_owned()
        };
        let floating = json!({
            "id": id, "floating_ip_address": ip, "port_id": port, "floating_network_id": network,
            "description": text(asked, "description"), "status": "DOWN", "revision_number": 1,
        });
        self.project
            .put(Kind::FloatingIp, floating.clone(), self.now);
        Ok(created("floatingip", &floating))
    }

    fn create_group(&mut self, asked: &Value) -> Answer {
        let (id, rule) = (self.ids.uuid(), self.ids.uuid());
        let egress = json!({
            "id": rule, "direction": "egress", "ethertype": "IPv4", "protocol": null, "port_range_min": null,
            "port_range_max": null, "remote_ip_prefix": null, "security_group_id": id,
        });
        let group = json!({
            "id": id, "name": text(asked, "name"), "description": text(asked, "description"),
            "security_group_rules": [egress],
        });
        self.project
            .put(Kind::SecurityGroup, group.clone(), self.now);
        created("security_group", &group)
    }

    fn create_rule(&mut self, mut rule: Value) -> Result<Answer, Refusal> {
        let id = self.ids.uuid();
        let mut group = self.found(Kind::SecurityGroup, text(&rule, "security_group_id"))?;
        merge(&mut rule, &json!({"id": id}));
        if let Some(rules) = group
            .get_mut("security_group_rules")
            .and_then(Value::as_array_mut)
        {
            rules.push(rule.clone());
        }
        self.project.put(Kind::SecurityGroup, group, self.now);
        Ok(created("security_group_rule", &rule))
    }

    fn delete_rule(&mut self, id: &str) -> Result<Answer, Refusal> {
        let has_it = |group: &Value| refers(group, "security_group_rules", id);
        let mut groups = self.project.those(Kind::SecurityGroup, has_it);
        let Some(mut group) = groups.pop() else {
            return Err(Refusal::not_found(
                "SecurityGroupRuleNotFound",
                "Security group rule",
                id,
            ));
        };
        if let Some(rules) = group
            .get_mut("security_group_rules")
            .and_then(Value::as_array_mut)
        {
            rules.retain(|rule| text(rule, "id") != id);
        }
        self.project.put(Kind::SecurityGroup, group, self.now);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}
