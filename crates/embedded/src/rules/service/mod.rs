//! Services: the kind with the most rules. Addresses and ports are given out here, and a change of
//! the type gives back what the new type does not have.

mod cluster_ip;
mod faults;
mod fill_in;
mod node_port;
mod wipe;

use serde_json::{Value, json};

use super::{Part, Rules, Surroundings, keep_apart};
use crate::object::{at, put, text};
use crate::refusal::Fault;

pub(crate) struct Services;

impl Rules for Services {
    fn fill_in(&self, object: &mut Value) {
        fill_in::fill_in(object);
    }

    fn create(&self, new: &mut Value, around: &mut Surroundings<'_>) -> Result<(), Vec<Fault>> {
        cluster_ip::allocate(new, None, around)?;
        node_port::allocate(new, None, around)?;
        put(new, &["status"], json!({"loadBalancer": {}}));
        Ok(())
    }

    fn update(
        &self,
        part: Part,
        new: &mut Value,
        old: &Value,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Vec<Fault>> {
        // Most changes are about something else, and what was given out stays.
        if part == Part::Main && new["spec"] != old["spec"] {
            cluster_ip::allocate(new, Some(old), around)?;
            node_port::allocate(new, Some(old), around)?;
        }
        keep_apart(part, new, old);
        if part == Part::Main {
            wipe::wipe(new, old);
        }
        Ok(())
    }

    fn faults(&self, part: Part, new: &Value, old: Option<&Value>) -> Vec<Fault> {
        match part {
            Part::Main | Part::Finalize => faults::of_spec(new, old),
            Part::Status => faults::of_status(new),
        }
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![
            (
                "spec.clusterIP",
                text(object, &["spec", "clusterIP"]).to_owned(),
            ),
            ("spec.type", kind(object).to_owned()),
        ]
    }
}

/// The type of a Service.
fn kind(service: &Value) -> &str {
    text(service, &["spec", "type"])
}

fn needs_cluster_ip(service: &Value) -> bool {
    kind(service) != "ExternalName"
}

fn has_node_ports(service: &Value) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

/// A balancer may go without node ports if it says so.
fn wants_node_ports(service: &Value) -> bool {
    let declined = *at(service, &["spec", "allocateLoadBalancerNodePorts"]) == json!(false);
    has_node_ports(service) && !(declined && kind(service) == "LoadBalancer")
}

fn needs_health_check_port(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && text(service, &["spec", "externalTrafficPolicy"]) == "Local"
}

fn is_reached_from_outside(service: &Value) -> bool {
    let has_addresses = !crate::object::items(service, &["spec", "externalIPs"]).is_empty();
    has_node_ports(service) || (kind(service) == "ClusterIP" && has_addresses)
}

fn is_headless(service: &Value) -> bool {
    text(service, &["spec", "clusterIP"]) == "None"
}
