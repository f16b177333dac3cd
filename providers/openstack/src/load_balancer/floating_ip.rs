//! The floating IP of a load balancer.

use cloudkeel_api::{BalancerRef, CloudError, Failures, LoadBalancerSpec, ServiceRef};
use cloudkeel_toolkit::OwnerText;
use regex::Regex;

use super::desired::Desired;
use super::observe::{Found, Role};
use super::owner::{LONGEST, OWNER};
use super::{OpenStackBalancers, keeps_floating_ip};
use crate::wire::network::{FloatingIp, Network, NewFloatingIp, Subnet};

/// How floating IPs are described that are made for Services. One that stays without its Service names no owner.
pub(super) const TEXT: OwnerText = OwnerText {
    before: "Floating IP for Kubernetes external service ",
    between: " from cluster ",
    longest: LONGEST,
};

/// What is to become of the floating IP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Floating {
    /// It is as it should be, or there should be none.
    #[default]
    Settled,
    /// This one is not used any more, and was made for the Service.
    Delete(FloatingIp),
    /// This one is not used any more, and stays.
    Detach(FloatingIp),
    /// This one is used, for this port.
    Attach(FloatingIp, String),
    /// This one is described so.
    Describe(FloatingIp, String),
    /// A new one is used: the first of these that can be had.
    Create(Vec<NewFloatingIp>),
    /// There is no external network, so the load balancer can only be reached inside.
    NoNetwork,
    /// IPv6 addresses need none.
    NotNeeded,
    /// The one that is asked for cannot be had.
    Unavailable(Failures),
}

impl Floating {
    /// The event that it is worth: its reason and message.
    pub(super) fn notice(&self) -> Option<(&'static str, String)> {
        match self {
            Self::NoNetwork => Some((
                "LoadBalancerForcedInternal",
                "there is no external network for a floating IP: the load balancer is only reachable inside".to_owned(),
            )),
            Self::NotNeeded => Some((
                "LoadBalancerFloatingIPSkipped",
                "a load balancer with an IPv6 address gets no floating IP".to_owned(),
            )),
            _ => None,
        }
    }
}

/// Whether a floating IP was made for this Service, by this provider or the Go CCM. One that it only asked for may have been
/// made for another, whose address it stays.
pub(super) fn is_made_for(ip: &FloatingIp, balancer_ref: &BalancerRef) -> bool {
    let made_for = format!("{}{} from ", TEXT.before, balancer_ref.service);
    ip.description.contains(&made_for)
}

/// Whether it leads nowhere.
pub(super) fn is_free(ip: &FloatingIp) -> bool {
    ip.port_id.as_ref().is_none_or(String::is_empty)
}

impl OpenStackBalancers {
    /// With its owner, if it goes with the Service.
    fn description(&self, balancer_ref: &BalancerRef) -> String {
        let keeps = keeps_floating_ip(balancer_ref);
        TEXT.owned(balancer_ref, self.cluster().filter(|_| !keeps))
    }

    /// One that was made for a Service follows its load balancer, which carries the UID of its own.
    fn described(&self, found: &Found, ip: &FloatingIp, balancer_ref: &BalancerRef) -> Floating {
        let is_owner = OWNER.is_labelled(&found.labels, &balancer_ref.service);
        let is_its = |it: ServiceRef| it.uid == balancer_ref.service.uid;
        let is_made = if found.sharing.is_shared() {
            TEXT.service(&ip.description, &self.identity)
                .is_some_and(is_its)
        } else {
            is_made_for(ip, balancer_ref)
        };
        let description = self.description(balancer_ref);
        if is_owner && is_made && ip.description != description {
            return Floating::Describe(ip.clone(), description);
        }
        Floating::Settled
    }

    /// Those of a Service that lead nowhere any more, because their load balancer was deleted by another client.
    pub(super) async fn stray_floating_ips(
        &self,
        balancer_ref: &BalancerRef,
    ) -> Result<Vec<FloatingIp>, CloudError> {
        let text = TEXT.owned(balancer_ref, self.cluster());
        if TEXT.without_owner(&text).is_none() {
            return Ok(Vec::new());
        }
        let mut found: Vec<FloatingIp> = self.servers.api.all(&[("description", &text)]).await?;
        found.retain(|ip| is_free(ip) && ip.description == text);
        Ok(found)
    }

    /// What is to become of the floating IP of a load balancer that is there.
    pub(super) async fn floating(
        &self,
        asked: &Desired,
        found: Option<&Found>,
        spec: &LoadBalancerSpec,
    ) -> Result<Floating, CloudError> {
        let Some(found) = found else {
            return Ok(Floating::Settled);
        };
        let (balancer, present) = (&found.balancer, found.floating_ip.as_ref());
        let Some(port) = &balancer.vip_port_id else {
            return Ok(Floating::Settled);
        };
        let is_owner = found.role != Role::Sharer;
        match present {
            Some(ip) if asked.is_internal && is_owner && !found.sharing.is_shared() => {
                let is_deleted = is_made_for(ip, &spec.balancer_ref) && !asked.keep_floating_ip;
                return Ok(if is_deleted {
                    Floating::Delete(ip.clone())
                } else {
                    Floating::Detach(ip.clone())
                });
            }
            Some(ip) => return Ok(self.described(found, ip, &spec.balancer_ref)),
            None if asked.is_internal => return Ok(Floating::Settled),
            None if balancer.vip_address.is_some_and(|ip| ip.is_ipv6()) => {
                return Ok(Floating::NotNeeded);
            }
            None if !is_owner => {
                let message = "cannot attach a floating IP to a load balancer for a shared Service: attach one to \
                               the load balancer first";
                return Ok(Floating::Unavailable(Failures::invalid(message)));
            }
            None => {}
        }
        if let Some(address) = asked.address {
            let known: Vec<FloatingIp> = self
                .servers
                .api
                .all(&[("floating_ip_address", &address.to_string())])
                .await?;
            if let Some(known) = known.first() {
                return Ok(attach(known, port));
            }
        }
        self.create_floating(asked, port, &spec.balancer_ref).await
    }

    async fn create_floating(
        &self,
        asked: &Desired,
        port: &str,
        balancer_ref: &BalancerRef,
    ) -> Result<Floating, CloudError> {
        let network = match &asked.network.floating_network {
            Some(network) => Some(network.clone()),
            None => self.external_network().await?,
        };
        let Some(network) = network else {
            return Ok(Floating::NoNetwork);
        };
        let new = |subnet_id| NewFloatingIp {
            floating_network_id: network.clone(),
            port_id: port.to_owned(),
            description: self.description(balancer_ref),
            subnet_id,
            floating_ip_address: asked.address,
        };
        let subnets = match self.floating_subnets(asked, &network).await? {
            Ok(subnets) => subnets,
            Err(failure) => return Ok(Floating::Unavailable(failure)),
        };
        Ok(Floating::Create(subnets.into_iter().map(new).collect()))
    }

    /// The subnets that a floating IP may be in; `None` is any.
    async fn floating_subnets(
        &self,
        asked: &Desired,
        network: &str,
    ) -> Result<Result<Vec<Option<String>>, Failures>, CloudError> {
        let wanted = &asked.network;
        if let Some(subnet) = &wanted.floating_subnet {
            return Ok(Ok(vec![Some(subnet.clone())]));
        }
        let by_name = wanted.floating_subnet_name.as_ref();
        let tags = wanted.floating_subnet_tags.as_deref().map(tag_filter);
        if asked.address.is_some() || (by_name.is_none() && tags.is_none()) {
            return Ok(Ok(vec![None]));
        }
        let pattern = match by_name.map(|text| NamePattern::parse(text)).transpose() {
            Ok(pattern) => pattern,
            Err(why) => return Ok(Err(Failures::invalid(why))),
        };
        let mut filters = vec![("network_id", network)];
        filters.extend(tags.as_ref().map(|(name, tags)| (*name, tags.as_str())));
        let mut subnets: Vec<Subnet> = self.servers.api.all(&filters).await?;
        subnets.retain(|subnet| {
            pattern
                .as_ref()
                .is_none_or(|pattern| pattern.matches(&subnet.name))
        });
        if subnets.is_empty() {
            let message = format!(
                "no subnet of network {network} fits the pattern or the tags for floating IPs"
            );
            return Ok(Err(Failures::invalid(message)));
        }
        Ok(Ok(subnets
            .into_iter()
            .map(|subnet| Some(subnet.id))
            .collect()))
    }

    /// The first external network that has a subnet for IPv4, or one that the project does not see.
    async fn external_network(&self) -> Result<Option<String>, CloudError> {
        let api = &self.servers.api;
        let networks: Vec<Network> = api.all(&[("router:external", "true")]).await?;
        for network in networks {
            let subnets: Vec<Subnet> = api.all(&[("network_id", &network.id)]).await?;
            let is_hidden = |id: &String| !subnets.iter().any(|subnet| subnet.id == *id);
            let has_ipv4 = subnets.iter().any(|subnet| subnet.cidr.addr().is_ipv4());
            if has_ipv4 || network.subnets.iter().any(is_hidden) {
                return Ok(Some(network.id));
            }
        }
        Ok(None)
    }
}

fn attach(known: &FloatingIp, port: &str) -> Floating {
    if is_free(known) {
        return Floating::Attach(known.clone(), port.to_owned());
    }
    let ip = known.floating_ip_address;
    let message = format!("floating IP {ip} is not available: it is attached to another port");
    Floating::Unavailable(Failures::invalid(message))
}

/// The parameter and value that ask Neutron for subnets with tags.
fn tag_filter(text: &str) -> (&'static str, String) {
    for (sign, param) in [("!&", "not-tags-any"), ("!", "not-tags"), ("&", "tags")] {
        if let Some(tags) = text.strip_prefix(sign) {
            return (param, tags.to_owned());
        }
    }
    ("tags-any", text.to_owned())
}

/// A pattern of names: a glob, or a regular expression behind `~`. Behind `!`, it must not match.
struct NamePattern {
    regex: Regex,
    is_negated: bool,
}

impl NamePattern {
    fn parse(text: &str) -> Result<Self, String> {
        let (is_negated, pattern) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let regex = match pattern.strip_prefix('~') {
            Some(regex) => regex.to_owned(),
            None => glob(pattern),
        };
        let regex = Regex::new(&format!("^(?:{regex})$"));
        let regex = regex.map_err(|_| {
            format!("floating-subnet: {text:?}: expected a glob, or `~` and a regular expression")
        })?;
        Ok(Self { regex, is_negated })
    }

    fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name) != self.is_negated
    }
}

fn glob(pattern: &str) -> String {
    let translate = |c: char| match c {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        c => regex::escape(&c.to_string()),
    };
    pattern.chars().map(translate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_as_a_whole() {
        for (pattern, name, expected) in [
            ("public*", "public-v4", true),
            ("public", "public-v4", false),
            ("public?v4", "public-v4", true),
            ("a.b", "axb", false),
            ("~pub.*4", "public-v4", true),
            ("~pub", "public-v4", false),
            ("!public*", "public-v4", false),
            ("!~.*v6", "public-v4", true),
        ] {
            let parsed = NamePattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(name), expected, "{pattern} {name}");
        }
        assert!(NamePattern::parse("~(").is_err());
    }

    #[test]
    fn signs_before_tags_choose_the_filter() {
        for (text, expected) in [
            ("a,b", ("tags-any", "a,b")),
            ("&a,b", ("tags", "a,b")),
            ("!a", ("not-tags", "a")),
            ("!&a", ("not-tags-any", "a")),
        ] {
            assert_eq!(tag_filter(text), (expected.0, expected.1.to_owned()));
        }
    }
}
