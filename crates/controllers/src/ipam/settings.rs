//! From flags to cluster CIDRs that can be allocated from.

use cloudkeel_api::{Problem, Problems};
use ipnet::IpNet;

use super::cidr_set::CidrSet;

const CLUSTER_CIDR: &str = "--cluster-cidr";
const SERVICE_CIDR: &str = "--service-cluster-ip-range";
const MASK: &str = "--node-cidr-mask-size";
const MASK_V4: &str = "--node-cidr-mask-size-ipv4";
const MASK_V6: &str = "--node-cidr-mask-size-ipv6";

const DEFAULT_MASK_V4: u8 = 24;
const DEFAULT_MASK_V6: u8 = 64;

/// What the flags say about the networks of Pods, as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamSettings {
    /// `--cluster-cidr`: one network, or one of each family. Nodes get a block of each, in this order.
    pub cluster_cidrs: Vec<IpNet>,
    /// `--service-cluster-ip-range`: no Pod gets these.
    pub service_cidrs: Vec<IpNet>,
    /// `--node-cidr-mask-size`
    pub mask_size: Option<u8>,
    /// `--node-cidr-mask-size-ipv4`
    pub mask_size_v4: Option<u8>,
    /// `--node-cidr-mask-size-ipv6`
    pub mask_size_v6: Option<u8>,
}

impl IpamSettings {
    /// Settings for these cluster CIDRs, with a default for everything else.
    pub fn new(cluster_cidrs: Vec<IpNet>) -> Self {
        Self {
            cluster_cidrs,
            service_cidrs: Vec::new(),
            mask_size: None,
            mask_size_v4: None,
            mask_size_v6: None,
        }
    }

    /// The cluster CIDRs in their order, cut into blocks, or everything that is wrong with the settings.
    pub(super) fn cidr_sets(&self) -> Result<Vec<CidrSet>, Problems> {
        let mut problems = Problems::new();
        self.check_networks(&mut problems);
        self.check_masks(&mut problems);
        let cut = self.cluster_cidrs.iter().map(|cidr| self.cut(*cidr));
        let sets = cut.filter_map(|set| problems.note(set)).collect();
        problems.into_result().map(|()| sets)
    }

    fn check_networks(&self, problems: &mut Problems) {
        if self.cluster_cidrs.is_empty() {
            problems.push(Problem::new(
                CLUSTER_CIDR,
                "is required with --allocate-node-cidrs: give the network of all Pods, such as `10.244.0.0/16`",
            ));
        }
        for (flag, networks) in [
            (CLUSTER_CIDR, &self.cluster_cidrs),
            (SERVICE_CIDR, &self.service_cidrs),
        ] {
            if by_family(networks).iter().any(|networks| *networks > 1) {
                let given: Vec<_> = networks.iter().map(IpNet::to_string).collect();
                problems.push(Problem::unexpected(
                    flag,
                    given.join(","),
                    "one network, or one IPv4 and one IPv6 network",
                ));
            }
        }
    }

    fn check_masks(&self, problems: &mut Problems) {
        if let Some(mask) = self.mask_size {
            if self.mask_size_v4.is_some() || self.mask_size_v6.is_some() {
                problems.push(Problem::new(
                    MASK,
                    format!("excludes {MASK_V4} and {MASK_V6}"),
                ));
            }
            if self.cluster_cidrs.len() > 1 {
                problems.push(Problem::unexpected(
                    MASK,
                    mask.to_string(),
                    format!(
                        "{MASK_V4} and {MASK_V6} in its place, because the cluster is dual stack"
                    ),
                ));
            }
        }
        let [has_v4, has_v6] = by_family(&self.cluster_cidrs).map(|networks| networks > 0);
        for (flag, mask, family, is_used) in [
            (MASK_V4, self.mask_size_v4, "IPv4", has_v4),
            (MASK_V6, self.mask_size_v6, "IPv6", has_v6),
        ] {
            if let Some(mask) = mask.filter(|_| !is_used && !self.cluster_cidrs.is_empty()) {
                let expected = format!(
                    "an {family} network in {CLUSTER_CIDR} to cut with it, or no such flag"
                );
                problems.push(Problem::unexpected(flag, mask.to_string(), expected));
            }
        }
    }

    fn cut(&self, cidr: IpNet) -> Result<CidrSet, Problem> {
        let (flag, mask) = self.mask_for(&cidr);
        CidrSet::new(cidr, mask).map_err(|error| {
            let expected = format!("{error} ({CLUSTER_CIDR} {cidr})");
            Problem::unexpected(flag, mask.to_string(), expected)
        })
    }

    fn mask_for(&self, cidr: &IpNet) -> (&'static str, u8) {
        let (flag, own, default) = match cidr {
            IpNet::V4(_) => (MASK_V4, self.mask_size_v4, DEFAULT_MASK_V4),
            IpNet::V6(_) => (MASK_V6, self.mask_size_v6, DEFAULT_MASK_V6),
        };
        // In a dual stack cluster the plain mask is refused already; it must not be reported again for
        // fitting only one of the families.
        match self.mask_size.filter(|_| self.cluster_cidrs.len() == 1) {
            Some(mask) => (MASK, mask),
            None => (flag, own.unwrap_or(default)),
        }
    }
}

/// How many IPv4 and how many IPv6 networks there are.
fn by_family(networks: &[IpNet]) -> [usize; 2] {
    let is_v4 = |network: &&IpNet| matches!(network, IpNet::V4(_));
    let v4 = networks.iter().filter(is_v4).count();
    [v4, networks.len() - v4]
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "10.244.0.0/16";
    const V6: &str = "fd00:10::/48";

    fn settings(cluster: &[&str]) -> IpamSettings {
        IpamSettings::new(networks(cluster))
    }

    fn networks(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn printed(settings: &IpamSettings) -> Vec<String> {
        let sets = settings.cidr_sets().unwrap();
        sets.iter().map(CidrSet::to_string).collect()
    }

    fn problems(settings: &IpamSettings) -> Vec<String> {
        let problems = settings.cidr_sets().unwrap_err();
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn masks_are_chosen_by_family_with_upstreams_defaults() {
        let v4_only = IpamSettings {
            mask_size: Some(26),
            ..settings(&[V4])
        };
        let v4_own = IpamSettings {
            mask_size_v4: Some(25),
            ..settings(&[V4])
        };
        let v6_only = IpamSettings {
            mask_size: Some(60),
            ..settings(&[V6])
        };
        let both = IpamSettings {
            mask_size_v4: Some(25),
            mask_size_v6: Some(56),
            ..settings(&[V6, V4])
        };
        for (case, settings, ranges) in [
            (
                "defaults",
                settings(&[V4, V6]),
                [
                    "10.244.0.0/16 in blocks of /24",
                    "fd00:10::/48 in blocks of /64",
                ]
                .as_slice(),
            ),
            (
                "plain on IPv4",
                v4_only,
                &["10.244.0.0/16 in blocks of /26"],
            ),
            ("own of IPv4", v4_own, &["10.244.0.0/16 in blocks of /25"]),
            ("plain on IPv6", v6_only, &["fd00:10::/48 in blocks of /60"]),
            (
                "the order of the cluster",
                both,
                &[
                    "fd00:10::/48 in blocks of /56",
                    "10.244.0.0/16 in blocks of /25",
                ],
            ),
        ] {
            assert_eq!(printed(&settings), ranges, "{case}");
        }
    }

    #[test]
    fn rules_about_networks_are_reported_with_the_flag_that_breaks_them() {
        for (case, settings, problem) in [
            (
                "no cluster CIDR",
                settings(&[]),
                "--cluster-cidr: is required with --allocate-node-cidrs: give the network of all Pods, such as `10.244.0.0/16`",
            ),
            (
                "twice the same family",
                settings(&[V4, "10.0.0.0/16"]),
                "--cluster-cidr: \"10.244.0.0/16,10.0.0.0/16\": expected one network, or one IPv4 and one IPv6 network",
            ),
            (
                "two service ranges of a family",
                IpamSettings {
                    service_cidrs: networks(&["10.1.0.0/16", "10.2.0.0/16"]),
                    ..settings(&[V4])
                },
                "--service-cluster-ip-range: \"10.1.0.0/16,10.2.0.0/16\": expected one network, or one IPv4 and one IPv6 network",
            ),
        ] {
            assert_eq!(problems(&settings), [problem], "{case}");
        }
    }

    #[test]
    fn rules_about_flags_are_reported_with_the_flag_that_breaks_them() {
        for (case, settings, problem) in [
            (
                "plain mask in dual stack",
                IpamSettings {
                    mask_size: Some(24),
                    ..settings(&[V4, V6])
                },
                "--node-cidr-mask-size: \"24\": expected --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 in its place, because the cluster is dual stack",
            ),
            (
                "plain mask beside another",
                IpamSettings {
                    mask_size: Some(24),
                    mask_size_v4: Some(24),
                    ..settings(&[V4])
                },
                "--node-cidr-mask-size: excludes --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6",
            ),
            (
                "IPv6 mask without IPv6",
                IpamSettings {
                    mask_size_v6: Some(64),
                    ..settings(&[V4])
                },
                "--node-cidr-mask-size-ipv6: \"64\": expected an IPv6 network in --cluster-cidr to cut with it, or no such flag",
            ),
            (
                "IPv4 mask without IPv4",
                IpamSettings {
                    mask_size_v4: Some(24),
                    ..settings(&[V6])
                },
                "--node-cidr-mask-size-ipv4: \"24\": expected an IPv4 network in --cluster-cidr to cut with it, or no such flag",
            ),
        ] {
            assert_eq!(problems(&settings), [problem], "{case}");
        }
    }

    #[test]
    fn rules_about_sizes_are_reported_with_the_flag_that_breaks_them() {
        for (case, settings, problem) in [
            (
                "wider than the cluster",
                IpamSettings {
                    mask_size: Some(15),
                    ..settings(&[V4])
                },
                "--node-cidr-mask-size: \"15\": expected a mask of at least 16, which is that of the cluster CIDR (--cluster-cidr 10.244.0.0/16)",
            ),
            (
                "the default is wider than the cluster",
                settings(&["10.0.0.0/25"]),
                "--node-cidr-mask-size-ipv4: \"24\": expected a mask of at least 25, which is that of the cluster CIDR (--cluster-cidr 10.0.0.0/25)",
            ),
            (
                "longer than an address",
                IpamSettings {
                    mask_size: Some(64),
                    ..settings(&[V4])
                },
                "--node-cidr-mask-size: \"64\": expected a mask of at most 32, which is the length of an address (--cluster-cidr 10.244.0.0/16)",
            ),
            (
                "too many IPv6 blocks",
                settings(&["fd00::/47"]),
                "--node-cidr-mask-size-ipv6: \"64\": expected a mask of at most 63, which is 16 bits beyond the cluster CIDR (--cluster-cidr fd00::/47)",
            ),
        ] {
            assert_eq!(problems(&settings), [problem], "{case}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let settings = IpamSettings {
            service_cidrs: networks(&["fd00::/108", "fd01::/108"]),
            mask_size: Some(24),
            mask_size_v4: Some(12),
            mask_size_v6: Some(90),
            ..settings(&[V4, V6])
        };
        assert_eq!(problems(&settings).len(), 5, "{:#?}", problems(&settings));
    }
}
