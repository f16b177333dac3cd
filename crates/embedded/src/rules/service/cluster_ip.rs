//! Families and cluster addresses. The cluster is single-stack IPv4, as a plain kube-apiserver is.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use super::{is_headless, needs_cluster_ip};
use crate::object::{at, is_unset, items, put, put_default, text, texts};
use crate::refusal::Fault;
use crate::rules::Surroundings;

/// 10.0.0.0/16: the first address is the network's, the second the API server's own.
const NETWORK: u32 = 0x0a00_0000;
const SIZE: u32 = 1 << 16;
/// The lower end is left to those who ask for an address.
const DYNAMIC: u32 = 256;

pub(super) fn allocate(
    new: &mut Value,
    old: Option<&Value>,
    around: &mut Surroundings<'_>,
) -> Result<(), Vec<Fault>> {
    inherit(new, old);
    if !needs_cluster_ip(new) {
        return Ok(());
    }
    choose_families(new, old)?;
    if is_headless(new) {
        put_default(new, &["spec", "clusterIPs"], json!(["None"]));
        return Ok(());
    }
    let wanted = text(new, &["spec", "clusterIP"]).to_owned();
    let owned = old.map(|old| text(old, &["spec", "clusterIP"]));
    if wanted.is_empty() {
        let address = next_address(around)?;
        put(new, &["spec", "clusterIP"], address.as_str());
        put(new, &["spec", "clusterIPs"], vec![address]);
    } else if owned != Some(wanted.as_str()) {
        take(&wanted, around)?;
        put_default(new, &["spec", "clusterIPs"], vec![wanted]);
    }
    Ok(())
}

/// Who leaves the addresses out means those that are there.
fn inherit(new: &mut Value, old: Option<&Value>) {
    let Some(old) = old else {
        let single = text(new, &["spec", "clusterIP"]).to_owned();
        if !single.is_empty() {
            put_default(new, &["spec", "clusterIPs"], vec![single]);
        }
        return;
    };
    if !(needs_cluster_ip(old) && needs_cluster_ip(new)) {
        return;
    }
    let changed = {
        let (new, old) = (
            text(new, &["spec", "clusterIP"]),
            text(old, &["spec", "clusterIP"]),
        );
        !new.is_empty() && new != old
    };
    let same_many = *at(new, &["spec", "clusterIPs"]) == *at(old, &["spec", "clusterIPs"]);
    put_default(
        new,
        &["spec", "clusterIP"],
        at(old, &["spec", "clusterIP"]).clone(),
    );
    if changed && (same_many || is_unset(at(new, &["spec", "clusterIPs"]))) {
        let single = at(new, &["spec", "clusterIP"]).clone();
        put(new, &["spec", "clusterIPs"], json!([single]));
    }
    put_default(
        new,
        &["spec", "clusterIPs"],
        at(old, &["spec", "clusterIPs"]).clone(),
    );
}

fn choose_families(new: &mut Value, old: Option<&Value>) -> Result<(), Vec<Fault>> {
    let before = old.map_or(Value::Null, |old| {
        at(old, &["spec", "ipFamilyPolicy"]).clone()
    });
    let dual_headless = is_headless(new) && is_unset(at(new, &["spec", "selector"]));
    let policy = match before {
        Value::Null if dual_headless => json!("RequireDualStack"),
        Value::Null => json!("SingleStack"),
        policy => policy,
    };
    put_default(new, &["spec", "ipFamilyPolicy"], policy);
    let policy = text(new, &["spec", "ipFamilyPolicy"]).to_owned();
    if dual_headless {
        let families: &[&str] = match policy.as_str() {
            "SingleStack" => &["IPv4"],
            _ => &["IPv4", "IPv6"],
        };
        put_default(new, &["spec", "ipFamilies"], json!(families));
        return Ok(());
    }
    let mut faults = Vec::new();
    match policy.as_str() {
        "RequireDualStack" => faults.push(Fault::invalid(
            "spec.ipFamilyPolicy",
            &json!(policy),
            "this cluster is not configured for dual-stack services",
        )),
        "SingleStack" if items(new, &["spec", "ipFamilies"]).len() > 1 => {
            faults.push(Fault::invalid(
                "spec.ipFamilyPolicy",
                &json!(policy),
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
            ));
        }
        _ => {}
    }
    for (index, family) in texts(new, &["spec", "ipFamilies"]).iter().enumerate() {
        if family != "IPv4" {
            let field = format!("spec.ipFamilies[{index}]");
            faults.push(Fault::invalid(
                field,
                &json!(family),
                "not configured on this cluster",
            ));
        }
    }
    put_default(new, &["spec", "ipFamilies"], json!(["IPv4"]));
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

fn next_address(around: &mut Surroundings<'_>) -> Result<String, Vec<Fault>> {
    let taken = around.store.allocated();
    let address = |number: u32| Ipv4Addr::from_bits(NETWORK + number).to_string();
    let free = around.mint.free(DYNAMIC..SIZE - 1, |number| {
        taken.has_address(&address(number))
    });
    free.map(address).ok_or_else(|| {
        let why = "failed to allocate IP: range is full";
        vec![Fault::invalid("spec.clusterIPs", &json!([]), why)]
    })
}

/// A certain address, if it is one of the cluster and free.
fn take(wanted: &str, around: &Surroundings<'_>) -> Result<(), Vec<Fault>> {
    let refused = |why: String| {
        Err(vec![Fault::invalid(
            "spec.clusterIPs",
            &json!([wanted]),
            &why,
        )])
    };
    if wanted.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return Err(vec![Fault::invalid(
            "spec.clusterIPs[0]",
            &json!(wanted),
            why,
        )]);
    }
    let inside = match wanted.parse() {
        Ok(IpAddr::V4(address)) => address.to_bits() & !(SIZE - 1) == NETWORK,
        _ => false,
    };
    if !inside {
        return refused(format!(
            "failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the valid range. The range of valid IPs is 10.0.0.0/16"
        ));
    }
    if around.store.allocated().has_address(wanted) {
        return refused(format!(
            "failed to allocate IP {wanted}: provided IP is already allocated"
        ));
    }
    Ok(())
}
