//! Rules of security groups: those of balancers, and those of Nodes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_toolkit::{joined_networks, joined_ports};
use ipnet::IpNet;

use crate::client::Call;
use crate::tags::ClusterTag;
use crate::wire::{Ec2Instance, Rule, SecurityGroup, Source};

/// As many rules as a group has room for by default.
pub(super) const ROOM: usize = 60;

/// Rules with their descriptions.
pub(super) type Rules = BTreeMap<Rule, Option<String>>;

/// A TCP or UDP port, or a range of them, for a network.
pub(super) fn port_rule(protocol: &str, from: u16, to: u16, range: &IpNet) -> Rule {
    Rule {
        protocol: protocol.to_owned(),
        from: Some(from.into()),
        to: Some(to.into()),
        source: Source::Cidr(range.to_string()),
    }
}

/// "Fragmentation needed", without which paths with a small MTU do not work.
pub(super) fn mtu_rule(range: &IpNet) -> Rule {
    Rule {
        protocol: "icmp".to_owned(),
        from: Some(3),
        to: Some(4),
        source: Source::Cidr(range.to_string()),
    }
}

/// Everything from the members of a group.
pub(super) fn group_rule(group: &str) -> Rule {
    Rule {
        protocol: "-1".to_owned(),
        from: None,
        to: None,
        source: Source::Group(group.to_owned()),
    }
}

/// The rules of a balancer's own group: each port for each network. If they would not fit into a group, ports and
/// networks that touch each other share one, which lets in exactly the same.
pub(super) fn balancer_rules(protocol: &str, ports: &[u16], ranges: &[IpNet]) -> Rules {
    let each: BTreeSet<_> = ports.iter().map(|port| (*port, *port)).collect();
    let (mut spans, mut ranges) = (each.into_iter().collect::<Vec<_>>(), ranges.to_vec());
    if (spans.len() + 1) * ranges.len() > ROOM {
        spans = joined_ports(spans);
        ranges = joined_networks(&ranges);
    }
    let of_range = |range: &IpNet| {
        let ports = spans
            .iter()
            .map(|(from, to)| port_rule(protocol, *from, *to, range));
        ports.chain([mtu_rule(range)]).collect::<Vec<_>>()
    };
    ranges
        .iter()
        .flat_map(of_range)
        .map(|rule| (rule, None))
        .collect()
}

/// What has to change in a group: rules to add, and rules to take away of those for which `is_ours` holds.
pub(super) fn diff(
    have: &Rules,
    want: &Rules,
    is_ours: impl Fn(&Rule, Option<&str>) -> bool,
) -> (Rules, Rules) {
    let missing = want.iter().filter(|(rule, _)| !have.contains_key(rule));
    let extra = have.iter().filter(|(rule, _)| !want.contains_key(rule));
    let extra = extra.filter(|(rule, description)| is_ours(rule, description.as_deref()));
    let own = |(rule, description): (&Rule, &Option<String>)| (rule.clone(), description.clone());
    (missing.map(own).collect(), extra.map(own).collect())
}

/// A call that adds or removes rules.
pub(super) fn change_rules(action: &'static str, group: &str, rules: &Rules) -> Call {
    let call = Call::ec2(action).set("GroupId", group);
    call.each("IpPermissions", rules, |(rule, description)| {
        let (kind, source) = match &rule.source {
            Source::Group(id) => ("Groups.1", ("Groups.1.GroupId", id)),
            Source::Cidr(text) | Source::Other(text) => ("IpRanges.1", ("IpRanges.1.CidrIp", text)),
        };
        let mut fields = vec![("IpProtocol", rule.protocol.clone())];
        fields.extend(rule.from.map(|from| ("FromPort", from.to_string())));
        fields.extend(rule.to.map(|to| ("ToPort", to.to_string())));
        fields.push((source.0, source.1.clone()));
        if let (Some(text), "IpRanges.1") = (description, kind) {
            fields.push(("IpRanges.1.Description", text.clone()));
        }
        fields
    })
}

/// The group of each Node that balancers are let in by: the one with the cluster's tag, else the only one.
pub(super) fn node_groups<'a>(
    instances: impl IntoIterator<Item = &'a Ec2Instance>,
    tagged: &[SecurityGroup],
    cluster: &ClusterTag,
) -> Result<BTreeSet<String>, String> {
    let mut chosen = BTreeSet::new();
    for instance in instances {
        let is_tagged = |id: &&String| {
            let mut groups = tagged.iter();
            groups.any(|group| group.id == **id && cluster.is_tagged(&group.tags))
        };
        let own: Vec<_> = instance.groups.iter().filter(is_tagged).collect();
        let (groups, kind) = match own.as_slice() {
            [] => (instance.groups.iter().collect(), "untagged"),
            _ => (own, "tagged"),
        };
        match groups.as_slice() {
            [] => {}
            [one] => {
                chosen.insert((*one).clone());
            }
            several => {
                let ids: Vec<_> = several.iter().map(|id| id.as_str()).collect();
                return Err(format!(
                    "Multiple {kind} security groups found for instance {}: {}; ensure that {} has the tag {}",
                    instance.id,
                    ids.join(", "),
                    "exactly one of them",
                    cluster.key()
                ));
            }
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn rules_are_as_the_go_ccm_makes_them_until_they_would_not_fit() {
        let few = balancer_rules("tcp", &[443, 80], &ranges(&["10.0.0.0/8"]));
        assert_eq!(few.len(), 3, "{few:?}");
        let many: Vec<_> = (0..40).map(|n| format!("10.0.{n}.0/24")).collect();
        let many = ranges(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let joined = balancer_rules("tcp", &[80, 81, 82, 443], &many);
        // 10.0.0.0/19 and 10.0.32.0/21, each for 80-82, 443 and ICMP.
        assert_eq!(joined.len(), 6, "{joined:?}");
    }

    #[test]
    fn only_our_own_rules_are_taken_away() {
        let anywhere = ranges(&["0.0.0.0/0"]);
        let have = balancer_rules("tcp", &[80, 81], &anywhere);
        let want = balancer_rules("tcp", &[80, 82], &anywhere);
        let (add, remove) = diff(&have, &want, |rule, _| rule.protocol == "tcp");
        assert_eq!((add.len(), remove.len()), (1, 1));
        let (_, none) = diff(&have, &Rules::new(), |rule, _| rule.protocol == "udp");
        assert!(none.is_empty());
    }

    #[test]
    fn each_node_has_one_group_to_open() {
        let cluster = ClusterTag {
            id: "x".to_owned(),
            has_legacy: false,
        };
        let tagged = |id: &str| SecurityGroup {
            id: id.to_owned(),
            tags: cluster.owned(),
            ..SecurityGroup::default()
        };
        let instance = |groups: &[&str]| Ec2Instance {
            id: "i-1".to_owned(),
            groups: groups.iter().map(ToString::to_string).collect(),
            ..Ec2Instance::default()
        };
        let known = [tagged("sg-1"), tagged("sg-2")];
        for (groups, expected) in [
            (&["sg-1", "sg-9"][..], Ok("sg-1")),
            (&["sg-9"], Ok("sg-9")),
            (&[], Ok("")),
            (&["sg-1", "sg-2"], Err("Multiple tagged security groups")),
            (&["sg-8", "sg-9"], Err("Multiple untagged security groups")),
        ] {
            let found = node_groups([&instance(groups)], &known, &cluster);
            match (found, expected) {
                (Ok(found), Ok(one)) => {
                    let found: Vec<_> = found.into_iter().collect();
                    assert_eq!(found.join(","), one);
                }
                (Err(error), Err(begin)) => assert!(error.starts_with(begin), "{error}"),
                (found, expected) => panic!("{groups:?}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
