//! Families and cluster addresses. The cluster is single-stack IPv4, as a plain kube-apiserver is, unless it was built
//! with both families.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::{is_headless, needs_cluster_ip};
use crate::object::{at, is_unset, items, put, put_default, text, texts};
use crate::refusal::Fault;
use crate::rules::Surroundings;

/// 10.0.0.0/16 and `fd00:10::/112`: the first address is the network's, the second the API server's own.
const IPV4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
const IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 0);
const SIZE: u32 = 1 << 16;
/// The lower end is left to those who ask for an address.
const DYNAMIC: u32 = 256;

const FAMILY_POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

/// A family of addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// An address of its range.
    fn address(self, number: u32) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::from_bits(IPV4.to_bits() + number).into(),
            Self::V6 => Ipv6Addr::from_bits(IPV6.to_bits() + u128::from(number)).into(),
        }
    }
}

fn has_range(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits() & !(SIZE - 1) == IPV4.to_bits(),
        IpAddr::V6(address) => address.to_bits() & !u128::from(SIZE - 1) == IPV6.to_bits(),
    }
}

/// The families of the cluster, the default first.
const fn families_of(around: &Surroundings<'_>) -> &'static [Family] {
    if around.dual_stack {
        &[Family::V4, Family::V6]
    } else {
        &[Family::V4]
    }
}

pub(super) fn allocate(
    new: &mut Value,
    old: Option<&Value>,
    around: &mut Surroundings<'_>,
) -> Result<(), Vec<Fault>> {
    inherit(new, old);
    if let Some(old) = old {
        drop_second(new, old);
    }
    if !needs_cluster_ip(new) {
        return Ok(());
    }
    choose_families(new, old, families_of(around))?;
    if is_headless(new) {
        put_default(new, &["spec", "clusterIPs"], json!(["None"]));
        return Ok(());
    }
    let owned = old.map(|old| texts(old, &["spec", "clusterIPs"]));
    let owned = owned.unwrap_or_default();
    let mut addresses = texts(new, &["spec", "clusterIPs"]);
    for wanted in addresses.iter().filter(|wanted| !owned.contains(wanted)) {
        take(wanted, &addresses, around)?;
    }
    let families = texts(new, &["spec", "ipFamilies"]);
    for family in families.iter().skip(addresses.len()) {
        let known = families_of(around).iter();
        let family = known.copied().find(|it| it.name() == family);
        addresses.push(next_address(family.unwrap_or(Family::V4), around)?);
    }
    put(new, &["spec", "clusterIP"], addresses.first().cloned());
    put(new, &["spec", "clusterIPs"], addresses);
    Ok(())
}

/// One that becomes single-stack loses what is second.
fn drop_second(new: &mut Value, old: &Value) {
    let policy = ["spec", "ipFamilyPolicy"];
    let is_single = |service: &Value| matches!(text(service, &policy), "" | "SingleStack");
    if is_single(old) || text(new, &policy) != "SingleStack" {
        return;
    }
    for field in ["clusterIPs", "ipFamilies"] {
        let field = ["spec", field];
        if at(new, &field) == at(old, &field) {
            let first: Vec<_> = texts(new, &field).into_iter().take(1).collect();
            put(new, &field, first);
        }
    }
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

fn choose_families(
    new: &mut Value,
    old: Option<&Value>,
    families: &[Family],
) -> Result<(), Vec<Fault>> {
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
    if !FAMILY_POLICIES.contains(&policy.as_str()) {
        let field = "spec.ipFamilyPolicy";
        let fault = Fault::not_supported(field, &json!(policy), FAMILY_POLICIES);
        return Err(vec![fault]);
    }
    check_addresses(new)?;
    check_single(new, &policy)?;
    if let Some(old) = old {
        check_release(new, old, &policy)?;
    }
    follow_addresses(new, families)?;
    let is_dual = policy != "SingleStack";
    if dual_headless {
        complete(new, &[Family::V4, Family::V6], is_dual);
        return Ok(());
    }
    let mut faults = Vec::new();
    if policy == "RequireDualStack" && families.len() < 2 {
        faults.push(Fault::invalid(
            "spec.ipFamilyPolicy",
            &json!(policy),
            "this cluster is not configured for dual-stack services",
        ));
    }
    for (index, family) in texts(new, &["spec", "ipFamilies"]).iter().enumerate() {
        if !families.iter().any(|known| known.name() == family) {
            let field = format!("spec.ipFamilies[{index}]");
            faults.push(Fault::invalid(
                field,
                &json!(family),
                "not configured on this cluster",
            ));
        }
    }
    if faults.is_empty() {
        complete(new, families, is_dual);
        Ok(())
    } else {
        Err(faults)
    }
}

/// The default family if none is named, and the other one if both are asked for.
fn complete(new: &mut Value, families: &[Family], is_dual: bool) {
    let mut chosen = texts(new, &["spec", "ipFamilies"]);
    for family in families {
        let is_missing = !chosen.iter().any(|it| it == family.name());
        if chosen.is_empty() || (is_dual && is_missing) {
            chosen.push(family.name().to_owned());
        }
    }
    put(new, &["spec", "ipFamilies"], chosen);
}

/// What is asked for has to be addresses, and of the families that are named.
fn check_addresses(new: &Value) -> Result<(), Vec<Fault>> {
    let families = texts(new, &["spec", "ipFamilies"]);
    let mut faults = Vec::new();
    let addresses = texts(new, &["spec", "clusterIPs"]);
    if is_unset(at(new, &["spec", "clusterIP"])) && !addresses.is_empty() {
        let why = "must be empty when `clusterIP` is not specified";
        faults.push(Fault::invalid("spec.clusterIPs", &json!(addresses), why));
    }
    for (index, text) in addresses.iter().enumerate() {
        let field = format!("spec.clusterIPs[{index}]");
        match text.parse() {
            _ if text == "None" => {}
            Err(_) => {
                let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                faults.push(Fault::invalid(field, &json!(text), why));
            }
            Ok(address) => {
                let family = Family::of(address).name();
                if let Some(named) = families.get(index).filter(|named| *named != family) {
                    let why =
                        format!("expected an {named} value as indicated by `ipFamilies[{index}]`");
                    faults.push(Fault::invalid(field, &json!(text), &why));
                }
            }
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

fn check_single(new: &Value, policy: &str) -> Result<(), Vec<Fault>> {
    let has_two = |field: &str| items(new, &["spec", field]).len() > 1;
    let mut faults = Vec::new();
    for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if policy == "SingleStack" && has_two(field) {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            faults.push(Fault::invalid("spec.ipFamilyPolicy", &json!(policy), &why));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// What is second goes only with the policy.
fn check_release(new: &Value, old: &Value, policy: &str) -> Result<(), Vec<Fault>> {
    let count = |service: &Value, field: &str| items(service, &["spec", field]).len();
    let mut faults = Vec::new();
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        if policy != "SingleStack" && count(old, field) > 1 && count(new, field) == 1 {
            let why = format!("must be 'SingleStack' to release the secondary {what}");
            faults.push(Fault::invalid("spec.ipFamilyPolicy", &json!(policy), &why));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Families that are not named follow from the addresses that are.
fn follow_addresses(new: &mut Value, families: &[Family]) -> Result<(), Vec<Fault>> {
    let mut named = texts(new, &["spec", "ipFamilies"]);
    let addresses = texts(new, &["spec", "clusterIPs"]);
    let parsed = addresses.iter().map_while(|text| text.parse().ok());
    for (index, address) in parsed.enumerate().skip(named.len()) {
        let family = Family::of(address);
        if !families.contains(&family) {
            let why = format!(
                "may not use {} on a cluster which is not configured for it",
                family.name()
            );
            let field = format!("spec.clusterIPs[{index}]");
            return Err(vec![Fault::invalid(field, &json!(addresses), &why)]);
        }
        named.push(family.name().to_owned());
    }
    if !named.is_empty() {
        put(new, &["spec", "ipFamilies"], named);
    }
    Ok(())
}

fn next_address(family: Family, around: &mut Surroundings<'_>) -> Result<String, Vec<Fault>> {
    let taken = around.store.allocated();
    let address = |number: u32| family.address(number).to_string();
    let free = around.generator.free(DYNAMIC..SIZE - 1, |number| {
        taken.has_address(&address(number))
    });
    free.map(address).ok_or_else(|| {
        let why = "failed to allocate IP: range is full";
        vec![Fault::invalid("spec.clusterIPs", &json!([]), why)]
    })
}

/// A certain address, if it is one of the cluster and free.
fn take(wanted: &str, all: &[String], around: &Surroundings<'_>) -> Result<(), Vec<Fault>> {
    let refused = |why: String| Err(vec![Fault::invalid("spec.clusterIPs", &json!(all), &why)]);
    let Ok(address) = wanted.parse() else {
        return refused(format!("failed to allocate IP {wanted}: not an address"));
    };
    if !has_range(address) {
        let why = match Family::of(address) {
            Family::V4 => format!(
                "the provided IP ({wanted}) is not in the valid range. The range of valid IPs is 10.0.0.0/16"
            ),
            Family::V6 => "the provided network does not match the current range".to_owned(),
        };
        return refused(format!("failed to allocate IP {wanted}: {why}"));
    }
    if around.store.allocated().has_address(wanted) {
        return refused(format!(
            "failed to allocate IP {wanted}: provided IP is already allocated"
        ));
    }
    Ok(())
}
