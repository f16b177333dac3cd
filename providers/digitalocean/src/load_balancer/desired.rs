//! What a Service asks for: its annotations, else the neutral options, else the defaults. Pure.

use cloudkeel_api::{self as api, IpFamily, KeyValue as _, LoadBalancerSpec, Protocol, names};
use cloudkeel_toolkit::{AnnotationReader, DesiredTargets, balancer_name};

use super::nodes::{StackCount, resolve};
use super::owner::TAG;
use super::{Facts, health, rules};
use crate::annotations as key;
use crate::annotations::{Network, NetworkStack, SizeSlug};
use crate::config::BalancerType;
use crate::wire::{BalancerRequest, BalancerSettings, ClientRules, LoadBalancer, StickySessions};

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
        let mut problems = Vec::new();
        let placement = Placement::of(&mut reader, spec, facts, have, &mut problems);
        let Placement { kind, targets, .. } = placement;
        let now = have.map(|have| &have.settings);
        let settings = BalancerSettings {
            name: reader
                .text(&key::NAME)
                .unwrap_or_else(|| balancer_name(spec)),
            kind: kind.as_str().to_owned(),
            network: placement.network,
            network_stack: placement.stack,
            forwarding_rules: rules::of(spec, kind, certificate, &mut reader, &mut problems),
            health_check: health::of(spec, &mut reader, &mut problems),
            sticky_sessions: sticky(&mut reader, &mut problems),
            droplet_ids: targets.places.keys().copied().collect(),
            tags: tags(spec, facts, have),
            redirect_http_to_https: is_on(&mut reader, &key::REDIRECT_HTTP_TO_HTTPS),
            enable_proxy_protocol: proxy_protocol(&mut reader, spec, kind),
            enable_backend_keepalive: is_on(&mut reader, &key::ENABLE_BACKEND_KEEPALIVE),
            disable_lets_encrypt_dns_records: is_on(
                &mut reader,
                &key::DISABLE_LETS_ENCRYPT_DNS_RECORDS,
            ),
            http_idle_timeout_seconds: reader.get(&key::HTTP_IDLE_TIMEOUT_SECONDS),
            firewall: clients(&mut reader, spec),
            vpc_uuid: facts.vpc_id.clone(),
            subnet_uuid: trimmed(&mut reader, &key::SUBNET_UUID),
            project_id: now.and_then(|now| now.project_id.clone()),
            tls_cipher_policy: now.and_then(|now| now.tls_cipher_policy.clone()),
        };
        let size = size(&mut reader, spec, &mut problems);
        let hostname = reader.text(&key::HOSTNAME).map(|name| name.to_lowercase());
        let request = BalancerRequest {
            settings,
            region: facts.region.clone(),
            algorithm: algorithm(&mut reader, spec),
            size: size.slug.map(|slug| slug.as_str().to_owned()),
            size_unit: size.unit,
            ip: trimmed(&mut reader, &key::IP).or_else(|| spec.address.map(|ip| ip.to_string())),
            validate_only: None,
        };
        let unsupported = std::mem::take(&mut reader.unsupported);
        problems.extend(reader.into_unread().messages());
        Self {
            request,
            units: size.units(),
            hostname: hostname.or_else(|| spec.options.hostname.clone()),
            targets,
            problems,
            fixed: placement.fixed,
            unsupported,
        }
    }

    /// What is sent for an existing load balancer, with its present size.
    pub(super) fn update(
        &self,
        have: &LoadBalancer,
        settings: BalancerSettings,
    ) -> BalancerRequest {
        let slug = Some(have.size.clone()).filter(|size| !size.is_empty() && have.size_unit == 0);
        BalancerRequest {
            settings,
            size: slug,
            size_unit: Some(have.size_unit).filter(|units| *units > 0),
            ip: None,
            ..self.request.clone()
        }
    }
}

fn is_on(reader: &mut Reader<'_>, key: &api::AnnotationKey<bool>) -> bool {
    reader.get(key).unwrap_or(false)
}

fn trimmed(reader: &mut Reader<'_>, key: &api::AnnotationKey<String>) -> Option<String> {
    let text = reader.get(key).map(|text| text.trim().to_owned());
    text.filter(|text| !text.is_empty())
}

/// The type that a Service asks for, whatever there is.
pub(crate) fn asked_type(
    annotations: &std::collections::BTreeMap<String, String>,
    default: BalancerType,
) -> Result<BalancerType, api::Problem> {
    let name = key::TYPE.name();
    match annotations.get(name).map(String::as_str) {
        None | Some("") => Ok(default),
        Some(text) => BalancerType::parse(text)
            .map_err(|expected| api::Problem::unexpected(name, text, expected)),
    }
}

/// An existing load balancer has the type that it has: the annotation is written back.
fn kind(
    reader: &mut Reader<'_>,
    facts: &Facts,
    have: Option<&LoadBalancer>,
    problems: &mut Vec<String>,
) -> BalancerType {
    if let Some(kind) = have.and_then(|have| BalancerType::parse(&have.settings.kind).ok()) {
        return kind;
    }
    let asked = reader.get(&key::TYPE).into_iter();
    let asked = asked
        .map(|text| (key::TYPE.name().to_owned(), text))
        .collect();
    asked_type(&asked, facts.default_type).unwrap_or_else(|problem| {
        problems.push(problem.to_string());
        facts.default_type
    })
}

/// Where a load balancer is and what it reaches. What cannot change is as it is.
struct Placement {
    kind: BalancerType,
    network: String,
    stack: String,
    targets: DesiredTargets<u64>,
    /// What is asked for and cannot change any more.
    fixed: Vec<String>,
}

impl Placement {
    fn of(
        reader: &mut Reader<'_>,
        spec: &LoadBalancerSpec,
        facts: &Facts,
        have: Option<&LoadBalancer>,
        problems: &mut Vec<String>,
    ) -> Self {
        let kind = kind(reader, facts, have, problems);
        let network = network(reader, spec);
        let (targets, count) = resolve(spec, kind, network);
        if count.unreachable > 0 && count.unreachable == spec.targets.len() {
            let why = targets.unresolved.values().next();
            let why = why.map_or("", String::as_str);
            problems.push(format!("no Node can be a target: of the first, {why}"));
        }
        let stack = stack(reader, spec, kind, network, count, problems);
        let now = have.map(|have| &have.settings);
        let mut fixed = Vec::new();
        let mut keep = |key: &str, asked: Option<&str>, default: &str, now: Option<&String>| {
            let now = now.filter(|now| !now.is_empty());
            let now = now.map_or(default, String::as_str).to_owned();
            let change = asked.filter(|asked| *asked != now);
            fixed.extend(
                change.map(|asked| format!("{key}: {asked:?}: it is {now}, which cannot change")),
            );
            now
        };
        let network = keep(
            key::NETWORK.name(),
            network.asked.map(Network::as_str),
            network.wanted().as_str(),
            now.map(|now| &now.network),
        );
        let stack = keep(
            key::NETWORK_STACK.name(),
            stack.asked.map(NetworkStack::as_str),
            stack.wanted.as_str(),
            now.map(|now| &now.network_stack),
        );
        Self {
            kind,
            network,
            stack,
            targets,
            fixed,
        }
    }
}

/// From where it is reached: as asked, by default from outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedNetwork {
    asked: Option<Network>,
}

impl AskedNetwork {
    pub(super) fn wanted(self) -> Network {
        self.asked.unwrap_or(Network::External)
    }
}

fn network(reader: &mut Reader<'_>, spec: &LoadBalancerSpec) -> AskedNetwork {
    let neutral = spec.options.internal.map(|internal| {
        if internal {
            Network::Internal
        } else {
            Network::External
        }
    });
    AskedNetwork {
        asked: reader.get(&key::NETWORK).or(neutral),
    }
}

struct Stack {
    asked: Option<NetworkStack>,
    wanted: NetworkStack,
}

fn stack(
    reader: &mut Reader<'_>,
    spec: &LoadBalancerSpec,
    kind: BalancerType,
    network: AskedNetwork,
    count: StackCount,
    problems: &mut Vec<String>,
) -> Stack {
    use NetworkStack::{DualStack, Ipv4};
    let asked = reader.get(&key::NETWORK_STACK);
    let name = key::NETWORK_STACK.name();
    let both = [IpFamily::V4, IpFamily::V6];
    let is_dual_service = both.iter().all(|family| spec.families.contains(family));
    let wanted = match (network.wanted(), kind) {
        (Network::Internal, _) => Ipv4,
        (Network::External, BalancerType::Regional) => DualStack,
        (Network::External, BalancerType::Network) => match count {
            StackCount { nodes: 0, .. } if is_dual_service => DualStack,
            StackCount { nodes: 0, .. } => Ipv4,
            StackCount { dual, nodes, .. } if dual == nodes => DualStack,
            StackCount { .. } => Ipv4,
        },
    };
    if asked == Some(DualStack) && network.wanted() == Network::Internal {
        problems.push(format!(
            "{name}: \"DUALSTACK\": expected IPV4 with {}: INTERNAL",
            key::NETWORK.name()
        ));
    }
    if asked == Some(DualStack) && kind == BalancerType::Network && count.dual < count.nodes {
        let only = count.nodes - count.dual;
        problems.push(format!(
            "{name}: \"DUALSTACK\": expected IPV4, because {only} Nodes have no public IPv6 address"
        ));
    }
    Stack {
        asked,
        wanted: asked.unwrap_or(wanted),
    }
}

/// What is tagged stays tagged. A new load balancer gets the tags of the cluster and of its owner, as does one that
/// becomes the Service's.
fn tags(spec: &LoadBalancerSpec, facts: &Facts, have: Option<&LoadBalancer>) -> Vec<String> {
    let mut tags = have
        .map(|have| have.settings.tags.clone())
        .unwrap_or_default();
    let is_new = have.is_none() || spec.balancer_ref.adopt.is_some();
    if is_new && TAG.among(&tags).is_none() {
        tags.push(TAG.of(&spec.balancer_ref, facts.cluster.as_deref()));
    }
    if let Some(tag) = facts.cluster_tag.as_ref().filter(|tag| !tags.contains(tag)) {
        tags.push(tag.clone());
    }
    tags
}

fn sticky(reader: &mut Reader<'_>, problems: &mut Vec<String>) -> StickySessions {
    let is_on = reader.text(&key::STICKY_SESSIONS_TYPE).as_deref() == Some("cookies");
    let name = reader.text(&key::STICKY_SESSIONS_COOKIE_NAME);
    let ttl = reader.get(&key::STICKY_SESSIONS_COOKIE_TTL);
    if !is_on {
        return StickySessions::default();
    }
    let required = [
        (key::STICKY_SESSIONS_COOKIE_NAME.name(), name.is_some()),
        (key::STICKY_SESSIONS_COOKIE_TTL.name(), ttl.is_some()),
    ];
    let missing = required.into_iter().filter(|(_, is_given)| !*is_given);
    let with = key::STICKY_SESSIONS_TYPE.name();
    problems.extend(missing.map(|(name, _)| format!("{name}: is required with {with}: cookies")));
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
    let (allow, deny) = (rules(&key::ALLOW_RULES), rules(&key::DENY_RULES));
    let ranges = spec.source_ranges.iter();
    let ranges = ranges.map(|range| format!("cidr:{range}"));
    ClientRules {
        allow: if spec.source_ranges.is_empty() {
            allow
        } else {
            ranges.collect()
        },
        deny,
    }
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

#[derive(Default)]
struct Size {
    slug: Option<SizeSlug>,
    unit: Option<u32>,
}

impl Size {
    /// How many nodes that is.
    fn units(&self) -> u32 {
        match self.slug {
            Some(SizeSlug::Medium) => 3,
            Some(SizeSlug::Large) => 6,
            Some(SizeSlug::Small) | None => self.unit.unwrap_or(1),
        }
    }
}

/// The size, by name or by number of nodes. Nothing that is asked for is the default, also for an existing one.
fn size(reader: &mut Reader<'_>, spec: &LoadBalancerSpec, problems: &mut Vec<String>) -> Size {
    let slug = reader.get(&key::SIZE_SLUG);
    let unit = reader.get(&key::SIZE_UNIT).filter(|units| *units > 0);
    if slug.is_some() && unit.is_some() {
        let (slug, unit) = (key::SIZE_SLUG.name(), key::SIZE_UNIT.name());
        problems.push(format!("{slug}: give either this or {unit}, not both"));
    }
    let neutral = spec.options.size.as_deref();
    match (slug, unit, neutral) {
        (None, None, Some(text)) => match (SizeSlug::parse(text), text.parse()) {
            (Ok(slug), _) => Size {
                slug: Some(slug),
                unit: None,
            },
            (Err(_), Ok(units)) => Size {
                slug: None,
                unit: Some(units),
            },
            (Err(slugs), Err(_)) => {
                let name = names::LB_TYPE.name();
                problems.push(format!(
                    "{name}: {text:?}: expected {slugs}, or a number of nodes"
                ));
                Size::default()
            }
        },
        (slug, unit, _) => Size { slug, unit },
    }
}

/// Whether a port can be served at all.
pub(super) const fn transport(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Tcp => Some("tcp"),
        Protocol::Udp => Some("udp"),
        Protocol::Sctp => None,
    }
}
