//! What a Service asks for: its annotations, else the neutral options, else the defaults. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{self as api, AnnotationKey, IpFamily, KeyValue as _, LoadBalancerSpec, names};
use cloudkeel_toolkit::{AnnotationReader, DesiredTargets, balancer_name};

use super::nodes::{StackCount, resolve};
use super::owner::TAG;
use super::{Facts, health, rules};
use crate::annotations as key;
use crate::annotations::{Network, NetworkStack, SizeSlug};
use crate::config::BalancerType;
use crate::wire::{
    BalancerRequest, BalancerSettings, ClientRules, LoadBalancer, StickySessions, units,
};

pub(super) type Reader<'a> = AnnotationReader<'a, ()>;

/// Everything that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    /// The whole of it, as it is sent.
    pub(crate) request: BalancerRequest,
    /// How many nodes the load balancer has.
    pub(super) units: u32,
    pub(super) hostname: Option<String>,
    pub(super) targets: DesiredTargets<u64>,
    /// What cannot be as it is asked for. Nothing but targets is changed until it is mended.
    pub(crate) problems: Vec<String>,
    /// What is asked for and cannot change any more.
    pub(super) fixed: Vec<String>,
    /// What is asked for and cannot be done, in words.
    pub(super) unsupported: Vec<String>,
}

impl Desired {
    /// What the Service says in DigitalOcean's words, else in neutral ones. What cannot change is as it is in `have`.
    pub(crate) fn of(
        spec: &LoadBalancerSpec,
        facts: &Facts,
        have: Option<&LoadBalancer>,
        certificate: Option<&str>,
    ) -> Self {
        let mut reader = Reader::new(&spec.balancer_ref.annotations, ());
        reader.unsupported = health::LIMITS.out_of_range(spec);
        let now = have.map(|have| have.settings.clone()).unwrap_or_default();
        let kind = BalancerType::parse(&now.kind);
        let kind = kind.unwrap_or_else(|_| kind_of(&mut reader, spec, facts.default_type));
        let network = network(&mut reader, spec);
        let (targets, count) = resolve(spec, kind, network);
        if count.unreachable > 0 && count.unreachable == spec.targets.len() {
            let why = targets.unresolved.values().next();
            let why = why.map_or("", String::as_str);
            let problem = format!("no Node can be a target: of the first, {why}");
            reader.problems.push(problem);
        }
        let stack = stack(&mut reader, kind, network, count);
        let default_stack = default_stack(spec, kind, network, count);
        let mut fixed = Vec::new();
        let (asked, default) = (network.map(Network::as_str), Network::External.as_str());
        let network = keep(&mut fixed, &key::NETWORK, asked, default, &now.network);
        let (asked, default) = (stack.map(NetworkStack::as_str), default_stack.as_str());
        let (key, now_stack) = (&key::NETWORK_STACK, &now.network_stack);
        let stack = keep(&mut fixed, key, asked, default, now_stack);
        let (size, size_unit) = size(&mut reader, spec);
        let hostname = reader.text(&key::HOSTNAME).map(|name| name.to_lowercase());
        let ip = trimmed(&mut reader, &key::IP);
        let request = BalancerRequest {
            region: facts.region.clone(),
            algorithm: algorithm(&mut reader, spec),
            size: size.map(|slug| slug.as_str().to_owned()),
            size_unit,
            ip: ip.or_else(|| spec.address.map(|ip| ip.to_string())),
            validate_only: None,
            settings: BalancerSettings {
                name: name_of(spec),
                kind: kind.as_str().to_owned(),
                network,
                network_stack: stack,
                forwarding_rules: rules::of(spec, kind, certificate, &mut reader),
                health_check: health::of(spec, &mut reader),
                sticky_sessions: sticky(&mut reader),
                droplet_ids: targets.places.keys().copied().collect(),
                tags: tags(spec, facts, have),
                redirect_http_to_https: reader.is_on(&key::REDIRECT_HTTP_TO_HTTPS),
                enable_proxy_protocol: proxy_protocol(&mut reader, spec, kind),
                enable_backend_keepalive: reader.is_on(&key::ENABLE_BACKEND_KEEPALIVE),
                disable_lets_encrypt_dns_records: reader.is_on(&key::DISABLE_DNS_RECORDS),
                http_idle_timeout_seconds: reader.get(&key::HTTP_IDLE_TIMEOUT_SECONDS),
                firewall: clients(&mut reader, spec),
                vpc_uuid: facts.vpc_id.clone(),
                subnet_uuid: trimmed(&mut reader, &key::SUBNET_UUID),
                project_id: now.project_id,
                tls_cipher_policy: now.tls_cipher_policy,
            },
        };
        Self {
            units: units(size_unit, request.size.as_deref()),
            request,
            hostname: hostname.or_else(|| spec.options.hostname.clone()),
            targets,
            fixed,
            unsupported: std::mem::take(&mut reader.unsupported),
            problems: reader.into_problems(),
        }
    }

    /// What is sent for an existing load balancer, with its present size.
    pub(super) fn update(
        &self,
        have: &LoadBalancer,
        settings: BalancerSettings,
    ) -> BalancerRequest {
        let size_unit = have.size_unit.filter(|units| *units > 0);
        let slug = have.size.clone().filter(|size| !size.is_empty());
        BalancerRequest {
            settings,
            size: slug.filter(|_| size_unit.is_none()),
            size_unit,
            ip: None,
            ..self.request.clone()
        }
    }
}

/// What cannot change is as it is, which is noted if something else is asked for.
fn keep<T: api::KeyValue>(
    fixed: &mut Vec<String>,
    key: &AnnotationKey<T>,
    asked: Option<&str>,
    default: &str,
    now: &str,
) -> String {
    let kept = Some(now).filter(|now| !now.is_empty());
    let kept = kept.or(asked).unwrap_or(default);
    if let Some(asked) = asked.filter(|asked| *asked != kept) {
        let key = key.name();
        fixed.push(format!(
            "{key}: {asked:?}: it is {kept}, which cannot change"
        ));
    }
    kept.to_owned()
}

/// The name that the load balancer of a Service has or would have.
pub(super) fn name_of(spec: &LoadBalancerSpec) -> String {
    let own = spec.balancer_ref.annotations.get(key::NAME.name());
    let own = own.filter(|name| !name.is_empty()).cloned();
    own.unwrap_or_else(|| balancer_name(spec))
}

fn trimmed(reader: &mut Reader<'_>, key: &AnnotationKey<String>) -> Option<String> {
    let text = reader.get(key).map(|text| text.trim().to_owned());
    text.filter(|text| !text.is_empty())
}

/// The type that a Service asks for, whatever there is.
pub(crate) fn asked_type(
    annotations: &BTreeMap<String, String>,
    default: BalancerType,
) -> Result<BalancerType, api::Problem> {
    let name = key::TYPE.name();
    match annotations.get(name).map(String::as_str) {
        None | Some("") => Ok(default),
        Some(text) => BalancerType::parse(text)
            .map_err(|expected| api::Problem::unexpected(name, text, expected)),
    }
}

/// The type of a new load balancer. An existing one has the type that it has: the annotation is written back.
fn kind_of(
    reader: &mut Reader<'_>,
    spec: &LoadBalancerSpec,
    default: BalancerType,
) -> BalancerType {
    let asked = asked_type(&spec.balancer_ref.annotations, default);
    asked.unwrap_or_else(|problem| {
        reader.problems.push(problem.to_string());
        default
    })
}

/// From where it is asked to be reached.
fn network(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> Option<Network> {
    let own = reader.get(&key::NETWORK);
    own.or(match spec.options.internal {
        Some(true) => Some(Network::Internal),
        Some(false) => Some(Network::External),
        None => None,
    })
}

/// The addresses that it is asked to have.
fn stack(
    reader: &mut Reader<'_>,
    kind: BalancerType,
    network: Option<Network>,
    count: StackCount,
) -> Option<NetworkStack> {
    let asked = reader.get(&key::NETWORK_STACK)?;
    let name = key::NETWORK_STACK.name();
    if asked == NetworkStack::DualStack && network == Some(Network::Internal) {
        let network = key::NETWORK.name();
        reader.problems.push(format!(
            "{name}: \"DUALSTACK\": expected IPV4 with {network}: INTERNAL"
        ));
    }
    let only = count.nodes - count.dual;
    if asked == NetworkStack::DualStack && kind == BalancerType::Network && only > 0 {
        reader.problems.push(format!(
            "{name}: \"DUALSTACK\": expected IPV4, because {only} Nodes have no public IPv6 address"
        ));
    }
    Some(asked)
}

/// The addresses that it has if nothing is asked for.
fn default_stack(
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    network: Option<Network>,
    count: StackCount,
) -> NetworkStack {
    let mut both = [IpFamily::V4, IpFamily::V6].iter();
    let is_dual = match (network, kind) {
        (Some(Network::Internal), _) => false,
        (_, BalancerType::Regional) => true,
        (_, BalancerType::Network) if count.nodes > 0 => count.dual == count.nodes,
        (_, BalancerType::Network) => both.all(|family| spec.families.contains(family)),
    };
    if is_dual {
        NetworkStack::DualStack
    } else {
        NetworkStack::Ipv4
    }
}

/// What is tagged stays tagged. A new load balancer gets the tags of the cluster and of its owner, as does one that
/// becomes the Service's.
fn tags(spec: &LoadBalancerSpec, facts: &Facts, have: Option<&LoadBalancer>) -> Vec<String> {
    let tags = have.map(|have| have.settings.tags.clone());
    let is_new = tags.is_none() || spec.balancer_ref.adopt.is_some();
    let mut tags = tags.unwrap_or_default();
    if is_new && TAG.among(&tags).is_none() {
        tags.push(TAG.of(&spec.balancer_ref, facts.cluster.as_deref()));
    }
    if let Some(tag) = facts.cluster_tag.as_ref().filter(|tag| !tags.contains(tag)) {
        tags.push(tag.clone());
    }
    tags
}

fn sticky(reader: &mut Reader<'_>) -> StickySessions {
    let is_on = reader.text(&key::STICKY_SESSIONS_TYPE).as_deref() == Some("cookies");
    let name = reader.text(&key::STICKY_SESSIONS_COOKIE_NAME);
    let ttl = reader.get(&key::STICKY_SESSIONS_COOKIE_TTL);
    if !is_on {
        return StickySessions::default();
    }
    let with = key::STICKY_SESSIONS_TYPE.name();
    for (name, is_given) in [
        (key::STICKY_SESSIONS_COOKIE_NAME.name(), name.is_some()),
        (key::STICKY_SESSIONS_COOKIE_TTL.name(), ttl.is_some()),
    ] {
        if !is_given {
            let problem = format!("{name}: is required with {with}: cookies");
            reader.problems.push(problem);
        }
    }
    StickySessions {
        kind: "cookies".to_owned(),
        cookie_name: name,
        cookie_ttl_seconds: ttl,
    }
}

/// What passes packets on can add nothing to them; DigitalOcean's own annotation is sent all the same.
fn proxy_protocol(reader: &mut Reader<'_>, spec: &LoadBalancerSpec, kind: BalancerType) -> bool {
    let neutral = spec.options.proxy_protocol.map(|version| version.is_some());
    let neutral = neutral.filter(|_| kind == BalancerType::Regional);
    let own = reader.get(&key::ENABLE_PROXY_PROTOCOL);
    own.or(neutral).unwrap_or(false)
}

fn clients(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> ClientRules {
    let mut rules = |key| {
        let rules: Vec<String> = reader.get(key).unwrap_or_default();
        let rules = rules.iter().map(|rule| rule.trim().to_owned());
        rules.filter(|rule| !rule.is_empty()).collect()
    };
    let (mut allow, deny) = (rules(&key::ALLOW_RULES), rules(&key::DENY_RULES));
    if !spec.source_ranges.is_empty() {
        let ranges = spec.source_ranges.iter();
        allow = ranges.map(|range| format!("cidr:{range}")).collect();
    }
    ClientRules { allow, deny }
}

/// It is sent as the Go CCM sends it; the API no longer minds it.
fn algorithm(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> String {
    let neutral = spec.options.algorithm;
    if neutral.is_some_and(|asked| asked != api::Algorithm::RoundRobin) {
        let what = "spread connections in another way than round robin";
        reader.unsupported.push(what.to_owned());
    }
    match reader.text(&key::ALGORITHM).as_deref() {
        Some("least_connections") => "least_connections".to_owned(),
        _ => "round_robin".to_owned(),
    }
}

/// The size, by name or by number of nodes. Nothing that is asked for is the default, also for an existing one.
fn size(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> (Option<SizeSlug>, Option<u32>) {
    let slug = reader.get(&key::SIZE_SLUG);
    let unit = reader.get(&key::SIZE_UNIT).filter(|units| *units > 0);
    if slug.is_some() && unit.is_some() {
        let (slug, unit) = (key::SIZE_SLUG.name(), key::SIZE_UNIT.name());
        let problem = format!("{slug}: give either this or {unit}, not both");
        reader.problems.push(problem);
    }
    let (None, None, Some(text)) = (slug, unit, spec.options.size.as_deref()) else {
        return (slug, unit);
    };
    match (SizeSlug::parse(text), text.parse()) {
        (Ok(slug), _) => (Some(slug), None),
        (Err(_), Ok(units)) => (None, Some(units)),
        (Err(slugs), Err(_)) => {
            let name = names::LB_TYPE.name();
            let problem = format!("{name}: {text:?}: expected {slugs}, or a number of nodes");
            reader.problems.push(problem);
            (None, None)
        }
    }
}
