//! Which Node a network belongs to.

use std::collections::BTreeMap;

use ipnet::IpNet;

/// Networks by owner. Two networks are either disjoint or one lies in the other, so a
/// look-up walks up the prefixes and then takes one step down, however many networks there are.
#[derive(Debug, Default)]
pub(super) struct Networks<'a>(BTreeMap<IpNet, &'a str>);

impl<'a> Networks<'a> {
    /// Whose network has something in common with this one.
    pub(super) fn owner_of_any_part(&self, network: IpNet) -> Option<&'a str> {
        let network = network.trunc();
        let around = std::iter::successors(Some(network), IpNet::supernet);
        let mut around = around.filter_map(|wider| self.0.get(&wider));
        let inside = || {
            let next = self.0.range(network..).next();
            next.filter(|(next, _)| network.contains(*next))
                .map(|(_, owner)| owner)
        };
        around.next().or_else(inside).copied()
    }
}

impl<'a> FromIterator<(IpNet, &'a str)> for Networks<'a> {
    fn from_iter<I: IntoIterator<Item = (IpNet, &'a str)>>(networks: I) -> Self {
        let networks = networks.into_iter();
        Self(networks.map(|(net, owner)| (net.trunc(), owner)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_is_found_by_any_part_of_it() {
        let networks: Networks<'_> = [
            (net("10.1.0.0/16"), "wide"),
            (net("10.2.3.7/24"), "narrow"),
            (net("fd00::/64"), "six"),
        ]
        .into_iter()
        .collect();
        for (case, asked, owner) in [
            ("the same", "10.1.0.0/16", Some("wide")),
            ("inside", "10.1.200.0/24", Some("wide")),
            ("around", "10.2.0.0/16", Some("narrow")),
            ("an address", "10.2.3.255/32", Some("narrow")),
            ("beside", "10.2.4.0/24", None),
            ("all of a family", "::/0", Some("six")),
            ("the other family", "fd01::/64", None),
        ] {
            assert_eq!(networks.owner_of_any_part(net(asked)), owner, "{case}");
        }
    }

    fn any_net() -> impl Strategy<Value = IpNet> {
        (0_u8..8, 0_u8..8, 20_u8..=32).prop_map(|(a, b, prefix)| {
            let net: IpNet = format!("10.0.{a}.{}/{prefix}", b * 32).parse().unwrap();
            net.trunc()
        })
    }

    proptest! {
        #[test]
        fn the_quick_look_up_agrees_with_a_comparison_of_all(
            all in proptest::collection::vec(any_net(), 0..12),
            asked in any_net(),
        ) {
            let networks: Networks<'_> = all.iter().map(|net| (*net, "x")).collect();
            let expected = all.iter().any(|net| net.contains(&asked) || asked.contains(net));
            prop_assert_eq!(networks.owner_of_any_part(asked).is_some(), expected);
        }
    }
}
