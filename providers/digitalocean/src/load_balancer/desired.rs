//! What a Service asks for: its annotations, else the neutral options, else the defaults. Pure.

use cloudkeel_api::{Algorithm, CloudError, IpFamily, KeyValue as _, LoadBalancerSpec, names};
use cloudkeel_toolkit::{AnnotationReader, DesiredTargets, named_balancer};

use super::nodes::{StackCount, resolve};
use super::owner::TAG;
use super::{Facts, health, rules};
use crate::annotations as key;
use crate::annotations::{Network, NetworkStack, SizeSlug};
use crate::config::BalancerType;
use crate::wire::{
    BalancerRequest, BalancerSettings, ClientRules, ForwardingRule, LoadBalancer, StickySessions,
    units,
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
    pub(super) problems: Vec<String>,
    /// What is asked for and cannot change any more.
    pub(super) fixed: Vec<String>,
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
        let network = reader.get(&key::NETWORK);
        let network = network.or(spec.options.internal.map(Network::of));
        let (targets, count) = resolve(spec, kind, network);
        if count.unreachable > 0 && count.unreachable == spec.targets.len() {
            let why = targets.unresolved.values().next().cloned();
            let problem = "no Node can be a target: of the first, ".to_owned();
            reader.problems.push(problem + &why.unwrap_or_default());
        }
        let (size, size_unit) = size(&mut reader, spec);
        let hostname = reader.text(&key::HOSTNAME).map(|name| name.to_lowercase());
        let ip = reader.trimmed(&key::IP);
        let tags = have.map(|have| have.settings.tags.as_slice());
        let cluster = facts.cluster.as_deref();
        let request = BalancerRequest {
            region: facts.region.clone(),
            algorithm: algorithm(&mut reader, spec),
            size: size.map(|slug| slug.as_str().to_owned()),
            size_unit,
            ip: ip.or_else(|| spec.address.map(|ip| ip.to_string())),
            validate_only: None,
            settings: BalancerSettings {
                name: named_balancer(spec, &key::NAME),
                kind: kind.as_str().to_owned(),
                network_stack: stack(&mut reader, spec, kind, network, count, &now.network_stack),
                network: reader.keep(&key::NETWORK, network, Network::External, &now.network),
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
            problems: reader.into_problems(),
        }
    }

    /// What is sent for a new load balancer, if nothing is wrong with it.
    pub(crate) fn checked(&self) -> Result<BalancerRequest, CloudError> {
        if self.problems.is_empty() {
            return Ok(self.request.clone());
        }
        let problems = self.problems.join("; ");
        Err(CloudError::invalid("plan load balancer", problems))
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

/// The addresses that it has. If nothing is asked for, those of both families where all Nodes have both.
fn stack(
    reader: &mut Reader<'_>,
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    network: Option<Network>,
    count: StackCount,
    now: &str,
) -> String {
    let is_internal = network == Some(Network::Internal);
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
    let mut both = [IpFamily::V4, IpFamily::V6].iter();
    let default = match (kind, count.nodes) {
        _ if is_internal => NetworkStack::Ipv4,
        (BalancerType::Network, 0) if !both.all(|it| spec.families.contains(it)) => {
            NetworkStack::Ipv4
        }
        (BalancerType::Network, _) if single > 0 => NetworkStack::Ipv4,
        _ => NetworkStack::DualStack,
    };
    reader.keep(&key::NETWORK_STACK, asked, default, now)
}

fn sticky(reader: &mut Reader<'_>) -> StickySessions {
    let kind = reader.text(&key::STICKY_SESSIONS_TYPE);
    let name = reader.text(&key::STICKY_SESSIONS_COOKIE_NAME);
    let ttl = reader.get(&key::STICKY_SESSIONS_COOKIE_TTL);
    if kind.as_deref() != Some("cookies") {
        return StickySessions::none();
    }
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
    let (allow, deny) = (rules(&key::ALLOW_RULES), rules(&key::DENY_RULES));
    let ranges = spec.source_ranges.iter();
    let ranges = ranges.map(|range| format!("cidr:{range}"));
    ClientRules {
        allow: if ranges.len() > 0 {
            ranges.collect()
        } else {
            allow
        },
        deny,
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
