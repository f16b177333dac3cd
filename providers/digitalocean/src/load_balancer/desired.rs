//! What a Service asks for: its annotations, else the neutral options, else the defaults. Pure.

use std::collections::BTreeSet;

use cloudkeel_api::{
    Algorithm, CloudError, Failures, IpFamily, KeyValue as _, LoadBalancerSpec, names,
};
use cloudkeel_toolkit::{
    AnnotationReader, DesiredTargets, Sharing, check_unchanged, named_balancer, silent_spec,
};

use super::nodes::{StackCount, resolve};
use super::owner::TAG;
use super::{Facts, health, rules};
use crate::annotations as key;
use crate::annotations::{Network, NetworkStack, SizeSlug};
use crate::config::BalancerType;
use crate::wire::{
    BalancerRequest, BalancerSettings, ClientRules, ForwardingRule, LoadBalancer, PORTS,
    StickySessions, units,
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
    pub(super) problems: Vec<Failures>,
    /// What is asked for and cannot change any more.
    pub(super) fixed: Vec<Failures>,
    /// What is asked for and cannot be done, in words.
    pub(super) unsupported: Vec<String>,
}

impl Desired {
    /// Whether Nodes get something else than clients send: the PROXY protocol, plain requests in place of TLS, or more
    /// headers.
    pub(super) fn changes_traffic(&self) -> bool {
        let settings = &self.request.settings;
        let is_parsed = |rule: &ForwardingRule| {
            rule.entry_protocol.starts_with("http") && !rule.tls_passthrough
        };
        settings.enable_proxy_protocol || settings.forwarding_rules.iter().any(is_parsed)
    }

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
        // The annotation of an existing one is written back.
        let kind = BalancerType::parse(&now.kind);
        let kind = kind.unwrap_or_else(|_| reader.get(&key::TYPE).unwrap_or(facts.default_type));
        let asked = reader.get(&key::NETWORK);
        let asked = asked.or(spec.options.internal.map(Network::of));
        let network = reader.keep(&key::NETWORK, asked, Network::External, &now.network);
        let (targets, count) = resolve(spec, kind, &network);
        if count.unreachable > 0 && count.unreachable == spec.targets.len() {
            let why = targets.unresolved.values().next().cloned();
            let problem = "no Node can be a target: of the first, ".to_owned();
            reader.problems.push(problem + &why.unwrap_or_default());
        }
        let (size, size_unit) = size(&mut reader, spec);
        let hostname = reader.text(&key::HOSTNAME).map(|name| name.to_lowercase());
        let ip = reader.trimmed(&key::IP);
        let ip = ip.or_else(|| spec.address.map(|ip| ip.to_string()));
        let tags = have.map(|have| have.settings.tags.as_slice());
        let cluster = facts.cluster.as_deref();
        let request = BalancerRequest {
            region: Some(facts.region.clone()),
            size: size.map(|slug| slug.as_str().to_owned()),
            size_unit,
            ip: ip.filter(|_| have.is_none()),
            validate_only: None,
            settings: BalancerSettings {
                name: named_balancer(spec, &key::NAME),
                kind: kind.as_str().to_owned(),
                network_stack: stack(&mut reader, spec, kind, &network, count, &now.network_stack),
                network,
                algorithm: Some(algorithm(&mut reader, spec)),
                forwarding_rules: rules::of(spec, kind, certificate, &mut reader),
                health_check: health::of(spec, &mut reader),
                sticky_sessions: sticky(&mut reader),
                droplet_ids: targets.places.keys().copied().collect(),
                tags: TAG.tags(tags, &spec.balancer_ref, cluster, &facts.cluster_tag),
                redirect_http_to_https: reader.is_on(&key::REDIRECT_HTTP_TO_HTTPS),
                enable_proxy_protocol: proxy_protocol(&mut reader, spec, kind),
                enable_backend_keepalive: reader.is_on(&key::ENABLE_BACKEND_KEEPALIVE),
                disable_lets_encrypt_dns_records: reader.is_on(&key::DISABLE_DNS_RECORDS),
                http_idle_timeout_seconds: reader.get(&key::HTTP_IDLE_TIMEOUT_SECONDS),
                firewall: clients(&mut reader, spec),
                vpc_uuid: facts.vpc_id.clone(),
                subnet_uuid: reader.trimmed(&key::SUBNET_UUID),
                project_id: now.project_id,
                tls_cipher_policy: now.tls_cipher_policy,
            },
        };
        Self {
            units: units(size_unit, request.size.as_deref()),
            request,
            hostname: hostname.or_else(|| spec.options.hostname.clone()),
            targets,
            fixed: std::mem::take(&mut reader.fixed),
            unsupported: std::mem::take(&mut reader.unsupported),
            problems: reader.into_failures(),
        }
    }

    /// Where other clients use the load balancer too, all that changes are ports and droplets of the Service. What else it
    /// asks for itself has to be so already.
    pub(super) fn share(
        &mut self,
        spec: &LoadBalancerSpec,
        facts: &Facts,
        have: &LoadBalancer,
        sharing: &Sharing,
    ) -> Result<(), CloudError> {
        let silent = Self::of(&silent_spec(spec), facts, Some(have), None);
        let own = self.request.settings.clone();
        let other = own.differing(&have.settings);
        let asked = own.differing(&silent.request.settings).into_iter();
        let asked = asked.filter(|what| *what != PORTS && other.contains(what));
        let size = (![silent.units, have.units()].contains(&self.units)).then_some("size");
        // Droplets chosen by a tag take no others.
        let tag = (!have.tag.is_empty()).then_some("tag of droplets");
        let refused = asked.chain(size).chain(tag).map(|what| (what, true));
        check_unchanged(have, &refused.collect::<Vec<_>>())?;
        let now = &have.settings;
        let rules = sharing.with_foreign_listeners(&own.forwarding_rules, &now.forwarding_rules);
        self.units = have.units();
        self.request.settings = BalancerSettings {
            forwarding_rules: rules,
            droplet_ids: sharing.with_foreign_targets(&own.droplet_ids, &now.droplet_ids),
            tags: own.tags,
            ..now.clone()
        };
        Ok(())
    }

    /// What is sent for a new load balancer, if nothing is wrong with it.
    pub(crate) fn checked(&self) -> Result<BalancerRequest, CloudError> {
        let problems = self.problems.iter().map(Failures::to_error).collect();
        let problem = CloudError::combine("plan load balancer", problems);
        problem.map_or_else(|| Ok(self.request.clone()), Err)
    }
}

/// The addresses that it has. If nothing is asked for, those of both families where all Nodes have both.
fn stack(
    reader: &mut Reader<'_>,
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    network: &str,
    count: StackCount,
    now: &str,
) -> String {
    let is_internal = network == Network::Internal.as_str();
    let single = count.nodes - count.dual;
    let asked = reader.get(&key::NETWORK_STACK);
    if asked == Some(NetworkStack::DualStack) && is_internal {
        let why = format!("expected IPV4 with {}: INTERNAL", key::NETWORK.name());
        reader.problem(&key::NETWORK_STACK, format!("\"DUALSTACK\": {why}"));
    }
    if asked == Some(NetworkStack::DualStack) && kind == BalancerType::Network && single > 0 {
        let why = format!("expected IPV4, because {single} Nodes have no public IPv6 address");
        reader.problem(&key::NETWORK_STACK, format!("\"DUALSTACK\": {why}"));
    }
    let is_network = kind == BalancerType::Network;
    let mut both = [IpFamily::V4, IpFamily::V6].iter();
    let is_dual = match count.nodes {
        0 if is_network => both.all(|it| spec.families.contains(it)),
        _ => !is_network || single == 0,
    };
    let (single, dual) = (NetworkStack::Ipv4, NetworkStack::DualStack);
    let default = if is_dual && !is_internal {
        dual
    } else {
        single
    };
    reader.keep(&key::NETWORK_STACK, asked, default, now)
}

fn sticky(reader: &mut Reader<'_>) -> StickySessions {
    let kind = reader.text(&key::STICKY_SESSIONS_TYPE);
    if kind.as_deref() != Some("cookies") {
        return StickySessions {
            kind: "none".to_owned(),
            ..StickySessions::default()
        };
    }
    let name = reader.text(&key::STICKY_SESSIONS_COOKIE_NAME);
    let ttl = reader.get(&key::STICKY_SESSIONS_COOKIE_TTL);
    let with = format!("{}: cookies", key::STICKY_SESSIONS_TYPE.name());
    StickySessions {
        kind: "cookies".to_owned(),
        cookie_name: reader.require(&key::STICKY_SESSIONS_COOKIE_NAME, name, &with),
        cookie_ttl_seconds: reader.require(&key::STICKY_SESSIONS_COOKIE_TTL, ttl, &with),
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
    let mut rules = |key| reader.get(key).into_iter().flatten().collect();
    let ranges = spec.source_ranges.iter();
    let ranges: BTreeSet<_> = ranges.map(|range| format!("cidr:{range}")).collect();
    let ranges = Some(ranges).filter(|ranges| !ranges.is_empty());
    ClientRules {
        allow: ranges.unwrap_or_else(|| rules(&key::ALLOW_RULES)),
        deny: rules(&key::DENY_RULES),
    }
}

/// It is sent as the Go CCM sends it; the API no longer minds it.
fn algorithm(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> String {
    let neutral = spec.options.algorithm;
    if neutral.is_some_and(|asked| asked != Algorithm::RoundRobin) {
        let what = "spread connections in another way than round robin";
        reader.unsupported.push(what.to_owned());
    }
    let own = reader.text(&key::ALGORITHM);
    let own = own.filter(|algorithm| algorithm == "least_connections");
    own.unwrap_or_else(|| "round_robin".to_owned())
}

/// The size, by name or by number of nodes. Nothing that is asked for is the default, also for an existing one.
fn size(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> (Option<SizeSlug>, Option<u32>) {
    let slug = reader.get(&key::SIZE_SLUG);
    let unit = reader.get(&key::SIZE_UNIT).filter(|units| *units > 0);
    if slug.is_some() && unit.is_some() {
        let other = key::SIZE_UNIT.name();
        reader.problem(
            &key::SIZE_SLUG,
            format!("give either this or {other}, not both"),
        );
    }
    let (None, None, Some(text)) = (slug, unit, spec.options.size.as_deref()) else {
        return (slug, unit);
    };
    match (SizeSlug::parse(text), text.parse()) {
        (Ok(slug), _) => (Some(slug), None),
        (Err(_), Ok(units)) => (None, Some(units)),
        (Err(slugs), Err(_)) => {
            let why = format!("{text:?}: expected {slugs}, or a number of nodes");
            reader.problem(&names::LB_TYPE, why);
            (None, None)
        }
    }
}
