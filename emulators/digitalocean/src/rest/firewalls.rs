//! Cloud firewalls.

use cloudkeel_emulation::history::View;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tags::check_tag;
use super::{Performed, one, shown};
use crate::refusal::Refusal;
use crate::resources::Firewall;
use crate::state::AccountContext;

/// All settings of a firewall; what is not given is empty.
#[derive(Deserialize)]
pub(super) struct FirewallRequest {
    name: String,
    #[serde(default)]
    inbound_rules: Option<Vec<Value>>,
    #[serde(default)]
    outbound_rules: Option<Vec<Value>>,
    #[serde(default)]
    droplet_ids: Option<Vec<u64>>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// A rule as the API shows it: `all` ports are `0`.
fn rule(mut rule: Value, peers: &str) -> Result<Value, Refusal> {
    let protocol = rule.get("protocol").and_then(Value::as_str);
    let protocol = protocol.unwrap_or_default().to_owned();
    if !["tcp", "udp", "icmp"].contains(&protocol.as_str()) {
        let message = format!("unknown protocol {protocol:?}");
        return Err(Refusal::invalid(message));
    }
    let ports = rule.get("ports").and_then(Value::as_str);
    let ports = match (protocol.as_str(), ports) {
        ("icmp", _) | (_, Some("all")) => "0".to_owned(),
        (_, Some(ports)) if ports.split('-').all(|port| port.parse().is_ok_and(is_port)) => {
            ports.to_owned()
        }
        _ => return Err(Refusal::invalid("you must specify a valid range for ports")),
    };
    if !rule.get(peers).is_some_and(Value::is_object) {
        let message = format!("a rule needs {peers}");
        return Err(Refusal::invalid(message));
    }
    if let Some(fields) = rule.as_object_mut() {
        fields.insert("ports".to_owned(), json!(ports));
    }
    Ok(rule)
}

const fn is_port(port: u16) -> bool {
    port > 0
}

impl AccountContext<'_> {
    fn built_firewall(&self, id: String, request: FirewallRequest) -> Result<Firewall, Refusal> {
        let mut others = self.account.firewalls.values(View::Now);
        if others.any(|other| other.name == request.name && other.id != id) {
            return Err(Refusal::status(409));
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
        if request.name.is_empty() || !request.name.chars().all(is_allowed) {
            return Err(Refusal::invalid(
                "name should only contain alphanumeric, dashes and dots",
            ));
        }
        let rules = |rules: Option<Vec<Value>>, peers| {
            let rules = rules.unwrap_or_default().into_iter();
            rules.map(|one| rule(one, peers)).collect::<Result<_, _>>()
        };
        let tags = request.tags.unwrap_or_default();
        tags.iter().try_for_each(|tag| check_tag(tag))?;
        Ok(Firewall {
            id,
            name: request.name,
            status: "succeeded".to_owned(),
            inbound_rules: rules(request.inbound_rules, "sources")?,
            outbound_rules: rules(request.outbound_rules, "destinations")?,
            droplet_ids: request.droplet_ids.unwrap_or_default(),
            tags,
            created_at: self.time(),
            pending_changes: Vec::new(),
        })
    }

    pub(super) fn create_firewall(&mut self, request: FirewallRequest) -> Performed {
        let id = self.counters.ids.uuid();
        let firewall = self.built_firewall(id, request)?;
        let answer = shown(StatusCode::ACCEPTED, "firewall", &firewall);
        self.account.tags.extend(firewall.tags.iter().cloned());
        let firewalls = &mut self.account.firewalls;
        firewalls.put(firewall.id.clone(), firewall, self.now);
        Ok(answer)
    }

    pub(super) fn update_firewall(&mut self, id: &str, request: FirewallRequest) -> Performed {
        let found = self.account.firewalls.get(id);
        let created_at = found.ok_or_else(Refusal::not_found)?.created_at.clone();
        let firewall = Firewall {
            created_at,
            ..self.built_firewall(id.to_owned(), request)?
        };
        let answer = one("firewall", &firewall);
        let firewalls = &mut self.account.firewalls;
        firewalls.put(id.to_owned(), firewall, self.now);
        Ok(answer)
    }
}
