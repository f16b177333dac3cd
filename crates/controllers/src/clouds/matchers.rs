//! Which instance is a Node's, by the matchers that the configuration names, in their order. Pure.

use std::net::IpAddr;

use cloudkeel_api::{AddressKind, Instance, InstanceList, KeyValue, Match, NodeAddress, NodeFacts};
use serde::Serialize;

use crate::wellknown::PROVIDED_NODE_IP;

/// Something by which a Node and its instance are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeMatcher {
    /// The provider ID, which always comes first.
    #[serde(rename = "providerID")]
    ProviderId,
    /// The system UUID that the kubelet reports.
    #[serde(rename = "systemUUID")]
    SystemUuid,
    /// An internal address that the Node reports or asks for.
    #[serde(rename = "internalIP")]
    InternalIp,
    /// The Node's name.
    Name,
    /// The Node's name, or a hostname or DNS name of it, with the domain.
    Fqdn,
    /// The name without the domain.
    ShortName,
}

impl NodeMatcher {
    const ALL: [(&'static str, Self); 6] = [
        ("providerID", Self::ProviderId),
        ("systemUUID", Self::SystemUuid),
        ("internalIP", Self::InternalIp),
        ("name", Self::Name),
        ("fqdn", Self::Fqdn),
        ("shortName", Self::ShortName),
    ];

    /// As it is configured.
    pub fn as_str(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(word, matcher)| (matcher == self).then_some(word))
            .unwrap_or_default()
    }
}

impl KeyValue for NodeMatcher {
    const TYPE: &'static str = "choice";
    const CHOICES: &'static [&'static str] = &[
        "providerID",
        "systemUUID",
        "internalIP",
        "name",
        "fqdn",
        "shortName",
    ];

    fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(word, matcher)| (word == text.trim()).then_some(matcher))
            .ok_or_else(|| {
                "`providerID`, `systemUUID`, `internalIP`, `name`, `fqdn` or `shortName`".to_owned()
            })
    }
}

/// The instance of a Node whose provider ID says nothing here. The first matcher for which there is an instance decides.
pub(super) fn identify<'a>(
    matchers: &[NodeMatcher],
    node: &NodeFacts,
    list: &'a InstanceList,
) -> Match<'a> {
    // What comes after a matcher that cannot be asked must not decide in its place.
    let can_be_asked = |it: &&NodeMatcher| **it != NodeMatcher::InternalIp || shows_addresses(list);
    let all = matchers.iter().take_while(can_be_asked);
    let all = all.map(|matcher| match matcher {
        NodeMatcher::ProviderId => Vec::new(),
        NodeMatcher::SystemUuid => {
            let uuid = node.system_uuid.as_deref();
            uuid.map_or_else(Vec::new, |uuid| list.with_system_uuid(uuid))
        }
        NodeMatcher::InternalIp => with_internal_ip(node, list),
        NodeMatcher::Name => list.named(&node.name),
        NodeMatcher::Fqdn => with_name(list, &fqdns(node), |name| name.contains('.')),
        NodeMatcher::ShortName => with_short_name(node, list),
    });
    let first = all.into_iter().find(|found| !found.is_empty());
    Match::of(first.unwrap_or_default())
}

/// Whether a list shows the addresses of all its instances: a summary may have none.
pub fn shows_addresses(list: &InstanceList) -> bool {
    !list
        .instances()
        .any(|instance| instance.is_summary && instance.addresses.is_empty())
}

/// What a Node was looked for by.
pub fn in_words(matchers: &[NodeMatcher]) -> String {
    let words: Vec<_> = matchers.iter().map(|matcher| matcher.as_str()).collect();
    words.join(", ")
}

fn with_internal_ip<'a>(node: &NodeFacts, list: &'a InstanceList) -> Vec<&'a Instance> {
    let internal = |addresses: &[NodeAddress]| -> Vec<IpAddr> {
        let addresses = addresses.iter();
        let internal = addresses.filter(|address| address.kind == AddressKind::InternalIp);
        internal.filter_map(NodeAddress::ip).collect()
    };
    let asked = node.annotations.get(PROVIDED_NODE_IP).into_iter();
    let asked = asked.flat_map(|ips| ips.split(','));
    let asked = asked.filter_map(|ip| ip.trim().parse().ok());
    let wanted: Vec<IpAddr> = internal(&node.addresses).into_iter().chain(asked).collect();
    let has_one = |instance: &&Instance| {
        let held = internal(&instance.addresses);
        held.iter().any(|ip| wanted.contains(ip))
    };
    list.instances().filter(has_one).collect()
}

/// The names of a Node that have a domain.
fn fqdns(node: &NodeFacts) -> Vec<String> {
    let kinds = [
        AddressKind::Hostname,
        AddressKind::InternalDns,
        AddressKind::ExternalDns,
    ];
    let addresses = node.addresses.iter();
    let names = addresses.filter(|address| kinds.contains(&address.kind));
    let names = names.map(|address| address.address.as_str());
    let names = std::iter::once(node.name.as_str()).chain(names);
    names
        .map(folded)
        .filter(|name| name.contains('.'))
        .collect()
}

fn with_name<'a>(
    list: &'a InstanceList,
    wanted: &[String],
    counts: impl Fn(&str) -> bool,
) -> Vec<&'a Instance> {
    let is_meant = |instance: &&Instance| {
        let mut names = names_of(instance);
        names.any(|name| counts(&name) && wanted.contains(&name))
    };
    list.instances().filter(is_meant).collect()
}

fn with_short_name<'a>(node: &NodeFacts, list: &'a InstanceList) -> Vec<&'a Instance> {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let wanted = short(&folded(&node.name));
    let is_meant = |instance: &&Instance| names_of(instance).any(|name| short(&name) == wanted);
    list.instances().filter(is_meant).collect()
}

fn names_of(instance: &Instance) -> impl Iterator<Item = String> {
    let names = std::iter::once(&instance.name).chain(&instance.aliases);
    names.map(|name| folded(name))
}

/// Names of hosts are the same in any case, and with the dot of the root.
fn folded(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::ScopeFingerprint;
    use jiff::Timestamp;

    use super::NodeMatcher::{Fqdn, InternalIp, Name, ProviderId, ShortName, SystemUuid};
    use super::*;

    fn instance(id: &str, name: &str, uuid: &str, ip: [u8; 4]) -> Instance {
        Instance {
            system_uuid: Some(uuid.to_owned()),
            addresses: vec![NodeAddress::internal(ip.into())],
            ..Instance::new(format!("c://{id}").parse().unwrap(), name)
        }
    }

    fn list() -> InstanceList {
        let mut aliased = instance("4", "i-4", "uuid-4", [10, 0, 0, 4]);
        aliased.aliases.insert("Dee.example.com.".to_owned());
        let all = [
            instance("1", "a", "uuid-1", [10, 0, 0, 1]),
            instance("2", "b.example.com", "uuid-2", [10, 0, 0, 2]),
            instance("3", "b.example.org", "uuid-3", [10, 0, 0, 3]),
            aliased,
        ];
        InstanceList::complete(ScopeFingerprint::new("s"), Timestamp::UNIX_EPOCH, all)
    }

    fn node(name: &str, uuid: Option<&str>, ip: Option<[u8; 4]>) -> NodeFacts {
        let address = ip.map(|ip| NodeAddress::internal(ip.into()));
        NodeFacts {
            name: name.to_owned(),
            system_uuid: uuid.map(str::to_owned),
            addresses: address.into_iter().collect(),
            ..NodeFacts::default()
        }
    }

    #[test]
    fn the_first_matcher_that_finds_something_decides() {
        let list = list();
        let plain = node("a", Some("UUID-2"), Some([10, 0, 0, 3]));
        let long = node("dee.example.com", None, None);
        let short = node("a.other", None, None);
        let ambiguous = node("b", None, None);
        let mut asking = node("b", None, None);
        let ip = "fd00::1, 10.0.0.2".to_owned();
        asking.annotations.insert(PROVIDED_NODE_IP.to_owned(), ip);
        for (case, node, matchers, expected) in [
            ("by name", &plain, &[Name, SystemUuid][..], &["c://1"][..]),
            ("by UUID", &plain, &[SystemUuid, Name], &["c://2"]),
            ("by address", &plain, &[InternalIp, Name], &["c://3"]),
            (
                "by what is there",
                &long,
                &[Name, SystemUuid, Fqdn],
                &["c://4"],
            ),
            (
                "by the address that it asks for",
                &asking,
                &[InternalIp],
                &["c://2"],
            ),
            ("not by a name without domain", &plain, &[Fqdn], &[]),
            ("by the short name", &short, &[Name, ShortName], &["c://1"]),
            ("not by the short name", &short, &[Name, Fqdn], &[]),
            ("several", &ambiguous, &[ShortName], &["c://2", "c://3"]),
            (
                "several, and one by the next",
                &ambiguous,
                &[ShortName, SystemUuid],
                &["c://2", "c://3"],
            ),
            ("an ID is no name", &plain, &[ProviderId], &[]),
        ] {
            let found = match identify(matchers, node, &list) {
                Match::One(one) => vec![one.id.as_str()],
                Match::Many(all) => all.iter().map(|it| it.id.as_str()).collect(),
                Match::None => vec![],
            };
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn matchers_are_read_as_they_are_written() {
        for (word, matcher) in NodeMatcher::ALL {
            assert_eq!(NodeMatcher::parse(word), Ok(matcher));
            assert_eq!(matcher.as_str(), word);
        }
        let words: Vec<_> = NodeMatcher::ALL.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, NodeMatcher::CHOICES);
        assert!(NodeMatcher::parse("hostname").is_err());
        assert_eq!(in_words(&[SystemUuid, Name]), "systemUUID, name");
    }
}
