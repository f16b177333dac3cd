//! Node ports: given out, kept over changes, and free again as soon as no Service has them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::fill_in::ports;
use super::{has_node_ports, needs_health_check_port, wants_node_ports};
use crate::object::{at, items, put, text};
use crate::refusal::Fault;
use crate::rules::Surroundings;
use crate::store::{Allocated, node_ports};

const PORTS: std::ops::Range<u32> = 30_000..32_768;
/// The lower end is left to those who ask for a port.
const DYNAMIC: std::ops::Range<u32> = 30_086..32_768;

pub(super) fn allocate(
    new: &mut Value,
    old: Option<&Value>,
    around: &mut Surroundings<'_>,
) -> Result<(), Vec<Fault>> {
    if let Some(old) = old {
        inherit(new, old);
    }
    let mut taken = Taken {
        index: around.store.allocated(),
        own: old.map(node_ports).unwrap_or_default(),
        chosen: BTreeSet::new(),
    };
    if has_node_ports(new) {
        allocate_ports(new, &mut taken, around)?;
    }
    if needs_health_check_port(new) {
        allocate_health_check(new, old, &mut taken, around)?;
    }
    Ok(())
}

/// Who leaves a port out means the one that was there under this name.
fn inherit(new: &mut Value, old: &Value) {
    if wants_node_ports(old) && wants_node_ports(new) {
        let known: BTreeMap<_, _> = items(old, &["spec", "ports"])
            .iter()
            .map(|port| (text(port, &["name"]).to_owned(), port["nodePort"].clone()))
            .collect();
        let present = numbers(new);
        for port in ports(new).filter(|port| port["nodePort"].is_null()) {
            let before = known
                .get(text(port, &["name"]))
                .cloned()
                .unwrap_or_default();
            if before
                .as_u64()
                .is_some_and(|before| !present.contains(&before))
            {
                put(port, &["nodePort"], before);
            }
        }
    }
    if needs_health_check_port(old)
        && needs_health_check_port(new)
        && at(new, &["spec", "healthCheckNodePort"]).is_null()
    {
        let before = at(old, &["spec", "healthCheckNodePort"]).clone();
        put(new, &["spec", "healthCheckNodePort"], before);
    }
}

fn numbers(service: &Value) -> BTreeSet<u64> {
    let ports = items(service, &["spec", "ports"]).iter();
    ports.filter_map(|port| port["nodePort"].as_u64()).collect()
}

/// The node ports that are not to be had.
struct Taken<'a> {
    index: &'a Allocated,
    /// What this Service had before is not in its own way.
    own: BTreeSet<u64>,
    /// What it was given just now is.
    chosen: BTreeSet<u64>,
}

impl Taken<'_> {
    fn has(&self, port: u64) -> bool {
        let by_others = self.index.has_port(port) && !self.own.contains(&port);
        by_others || self.chosen.contains(&port)
    }
}

fn allocate_ports(
    new: &mut Value,
    taken: &mut Taken<'_>,
    around: &mut Surroundings<'_>,
) -> Result<(), Vec<Fault>> {
    let wanted = wants_node_ports(new);
    // One port number of two protocols may share its node port.
    let mut by_port = BTreeMap::new();
    for (index, port) in items(new, &["spec", "ports"]).iter().enumerate() {
        let asked = (port["port"].as_u64(), port["nodePort"].as_u64());
        if let (Some(number), Some(node_port)) = asked
            && by_port.get(&number) != Some(&node_port)
        {
            check(node_port, &format!("spec.ports[{index}].nodePort"), taken)?;
            taken.chosen.insert(node_port);
            by_port.insert(number, node_port);
        }
    }
    if !wanted {
        return Ok(());
    }
    for port in ports(new).filter(|port| port["nodePort"].is_null()) {
        let number = port["port"].as_u64().unwrap_or_default();
        let node_port = match by_port.get(&number) {
            Some(known) => *known,
            None => next(taken, around)?,
        };
        by_port.insert(number, node_port);
        put(port, &["nodePort"], node_port);
    }
    Ok(())
}

fn allocate_health_check(
    new: &mut Value,
    old: Option<&Value>,
    taken: &mut Taken<'_>,
    around: &mut Surroundings<'_>,
) -> Result<(), Vec<Fault>> {
    let given = at(new, &["spec", "healthCheckNodePort"]).as_u64();
    let before = old.and_then(|old| at(old, &["spec", "healthCheckNodePort"]).as_u64());
    match given {
        Some(_) if given == before => {}
        Some(number) => check(number, "spec.healthCheckNodePort", taken)?,
        None => put(new, &["spec", "healthCheckNodePort"], next(taken, around)?),
    }
    Ok(())
}

fn check(number: u64, field: &str, taken: &Taken<'_>) -> Result<(), Vec<Fault>> {
    let inside = u32::try_from(number).is_ok_and(|number| PORTS.contains(&number));
    let why = if !inside {
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    } else if taken.has(number) {
        "provided port is already allocated"
    } else {
        return Ok(());
    };
    Err(vec![Fault::invalid(field, &json!(number), why)])
}

fn next(taken: &mut Taken<'_>, around: &mut Surroundings<'_>) -> Result<u64, Vec<Fault>> {
    let is_taken =
        |number: u32| taken.has(u64::from(number)) || taken.own.contains(&u64::from(number));
    let free = around
        .generator
        .free(DYNAMIC, is_taken)
        .or_else(|| around.generator.free(PORTS, is_taken));
    let number = free.map(u64::from).ok_or_else(|| {
        let why = "failed to allocate a nodePort: range is full";
        vec![Fault::invalid("spec.ports", &json!([]), why)]
    })?;
    taken.chosen.insert(number);
    Ok(number)
}
