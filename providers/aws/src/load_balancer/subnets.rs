//! Which subnets a balancer is in. Pure, but for the reading.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{CloudError, Priority};

use crate::account::Account;
use crate::annotations as key;
use crate::client::Call;
use crate::tags::{CLUSTER_PREFIX, ClusterTag};
use crate::wire::{RouteTable, Subnet, Zone};

const PUBLIC_ROLE: &str = "kubernetes.io/role/elb";
const INTERNAL_ROLE: &str = "kubernetes.io/role/internal-elb";

/// The network that balancers are placed in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Network {
    subnets: Vec<Subnet>,
    tables: Vec<RouteTable>,
    /// Zones that are no ordinary ones: local zones, outposts.
    other_zones: Vec<String>,
}

impl Network {
    pub(super) async fn read(account: &Account) -> Result<Self, CloudError> {
        let call = Call::ec2("DescribeRouteTables").filter("vpc-id", [&account.vpc]);
        let tables = account
            .api
            .all_of_ec2(call, "routeTableSet/item", Priority::Normal);
        let zones = account.zones(None).await?;
        let is_other = |zone: &&Zone| {
            let kind = zone.kind.as_deref();
            kind.is_some_and(|kind| kind != "availability-zone")
        };
        Ok(Self {
            subnets: account.subnets().await?,
            tables: tables.await?,
            other_zones: zones
                .iter()
                .filter(is_other)
                .map(|zone| zone.name.clone())
                .collect(),
        })
    }

    /// All subnets of the VPC.
    pub(super) fn subnets(&self) -> &[Subnet] {
        &self.subnets
    }

    /// Where a balancer is or should be: one that is there keeps the subnets that it was made with.
    pub(super) fn place(
        &self,
        present: Option<&BTreeSet<String>>,
        asked: &[String],
        discover: impl FnOnce() -> Result<Vec<Subnet>, String>,
    ) -> Result<Vec<Subnet>, String> {
        match present {
            Some(present) => self.named(present),
            None if asked.is_empty() => discover(),
            None => {
                let named = self.named(asked);
                named.map_err(|why| format!("{}: {why}", key::SUBNETS.name()))
            }
        }
    }

    /// The subnets of these IDs or names, each of which has to mean one that is there.
    fn named<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<Vec<Subnet>, String> {
        let one = |name: &String| {
            let is_it =
                |subnet: &&Subnet| subnet.id == *name || subnet.tags.get("Name") == Some(name);
            let mut found = self.subnets.iter().filter(is_it);
            match (found.next(), found.next()) {
                (Some(one), None) => Ok(one.clone()),
                (Some(one), Some(other)) => {
                    let (one, other) = (&one.id, &other.id);
                    Err(format!(
                        "{one} and {other} are both called {name:?}: give one of these IDs"
                    ))
                }
                (None, _) => Err(format!("there is no subnet {name:?} in the VPC")),
            }
        };
        names.into_iter().map(one).collect()
    }

    /// One subnet in each zone, found by tags, as the Go CCM finds them.
    pub(super) fn discover(
        &self,
        cluster: &ClusterTag,
        own_subnet: Option<&String>,
        is_internal: bool,
    ) -> Result<Vec<Subnet>, String> {
        let role = if is_internal {
            INTERNAL_ROLE
        } else {
            PUBLIC_ROLE
        };
        let is_usable = |subnet: &&Subnet| {
            let mut keys = subnet.tags.keys();
            cluster.is_tagged(&subnet.tags) || !keys.any(|key| key.starts_with(CLUSTER_PREFIX))
        };
        let mut usable: Vec<_> = self.subnets.iter().filter(is_usable).collect();
        if usable.is_empty() {
            usable = self
                .subnets
                .iter()
                .filter(|s| Some(&s.id) == own_subnet)
                .collect();
        }
        let mut by_zone: BTreeMap<&str, &Subnet> = BTreeMap::new();
        for subnet in usable {
            if !is_internal && !self.is_public(subnet)? {
                continue;
            }
            // The smallest of this order wins: its role first, then the cluster's tag, then the ID.
            let order = |subnet: &Subnet| {
                let has_role = subnet.tags.contains_key(role);
                (
                    !has_role,
                    !cluster.is_tagged(&subnet.tags),
                    subnet.id.clone(),
                )
            };
            let best = by_zone.entry(&subnet.zone).or_insert(subnet);
            if order(subnet) < order(best) {
                *best = subnet;
            }
        }
        by_zone.retain(|zone, _| !self.other_zones.iter().any(|other| other == zone));
        if by_zone.is_empty() {
            let kind = if is_internal { "internal" } else { "public" };
            return Err(format!(
                "could not find any suitable subnets for creating the ELB: tag {kind} ones with {role}=1"
            ));
        }
        Ok(by_zone.into_values().cloned().collect())
    }

    /// Whether its route table, or the main one of the VPC, leads to an internet gateway.
    fn is_public(&self, subnet: &Subnet) -> Result<bool, String> {
        let mut tables = self.tables.iter();
        let own = tables.find(|table| table.subnets.contains(&subnet.id));
        let table = own.or_else(|| self.tables.iter().find(|table| table.is_main));
        let table = table.ok_or_else(|| {
            let id = &subnet.id;
            format!("subnet {id} has no route table, and the VPC has no main one")
        })?;
        let is_internet = |gateway: &String| gateway.starts_with("igw");
        Ok(table
            .routes
            .iter()
            .any(|route| route.gateway.as_ref().is_some_and(is_internet)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Route, Tags};

    fn cluster() -> ClusterTag {
        ClusterTag {
            id: "x".to_owned(),
            has_legacy: false,
        }
    }

    fn subnet(id: &str, zone: &str, tags: &[(&str, &str)]) -> Subnet {
        let tags = tags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Subnet {
            id: id.to_owned(),
            zone: zone.to_owned(),
            cidr: String::new(),
            tags: tags.collect::<Tags>(),
        }
    }

    fn table(id: &str, subnets: &[&str], is_main: bool, gateway: &str) -> RouteTable {
        RouteTable {
            id: id.to_owned(),
            is_main,
            tags: Tags::new(),
            subnets: subnets.iter().map(ToString::to_string).collect(),
            routes: vec![Route {
                destination: None,
                instance: None,
                gateway: Some(gateway.to_owned()),
                interface: None,
                is_blackhole: false,
            }],
        }
    }

    fn ids(found: Result<Vec<Subnet>, String>) -> Vec<String> {
        found.unwrap().into_iter().map(|subnet| subnet.id).collect()
    }

    #[test]
    fn one_subnet_in_each_zone_by_role_then_cluster_then_id() {
        const OURS: (&str, &str) = ("kubernetes.io/cluster/x", "shared");
        const ROLE: (&str, &str) = ("kubernetes.io/role/elb", "1");
        let network = Network {
            subnets: vec![
                subnet("s-2", "a", &[]),
                subnet("s-1", "a", &[]),
                subnet("s-4", "b", &[OURS]),
                subnet("s-3", "b", &[]),
                subnet("s-6", "c", &[ROLE]),
                subnet("s-5", "c", &[OURS]),
                subnet("s-7", "d", &[("kubernetes.io/cluster/y", "owned")]),
                subnet("s-8", "local", &[OURS]),
                subnet("s-9", "e", &[OURS]),
            ],
            tables: vec![
                table("t-1", &[], true, "igw-1"),
                table("t-2", &["s-9"], false, "nat-1"),
            ],
            other_zones: vec!["local".to_owned()],
        };
        let public = network.discover(&cluster(), None, false);
        assert_eq!(ids(public), ["s-1", "s-4", "s-6"]);
        let internal = network.discover(&cluster(), None, true);
        assert_eq!(ids(internal), ["s-1", "s-4", "s-5", "s-9"]);
    }

    #[test]
    fn a_balancer_stays_in_its_subnets_and_a_new_one_is_put_where_it_is_asked_for() {
        let network = Network {
            subnets: vec![
                subnet("s-1", "a", &[("Name", "one")]),
                subnet("s-2", "b", &[("Name", "two")]),
                subnet("s-3", "c", &[("Name", "two")]),
            ],
            ..Network::default()
        };
        let place = |present: Option<&str>, asked: &[&str]| {
            let present = present.map(|id| BTreeSet::from([id.to_owned()]));
            let asked: Vec<_> = asked.iter().map(ToString::to_string).collect();
            let discover = || Ok(vec![subnet("discovered", "a", &[])]);
            let found = network.place(present.as_ref(), &asked, discover)?;
            let ids: Vec<_> = found.into_iter().map(|subnet| subnet.id).collect();
            Ok::<_, String>(ids.join(","))
        };
        assert_eq!(place(None, &[]).as_deref(), Ok("discovered"));
        assert_eq!(place(None, &["s-3", "one"]).as_deref(), Ok("s-3,s-1"));
        for asked in [&[][..], &["one"], &["nowhere"]] {
            assert_eq!(place(Some("s-2"), asked).as_deref(), Ok("s-2"), "{asked:?}");
        }
        for (asked, why) in [
            ("s-10", "-subnets: there is no subnet \"s-10\""),
            (
                "two",
                "-subnets: s-2 and s-3 are both called \"two\": give one",
            ),
        ] {
            let error = place(None, &[asked]).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn without_tagged_subnets_the_own_one_is_used_and_without_any_it_is_an_error() {
        let network = Network {
            subnets: vec![subnet("s-1", "a", &[("kubernetes.io/cluster/y", "owned")])],
            tables: vec![table("t-1", &[], true, "igw-1")],
            other_zones: vec![],
        };
        let own = "s-1".to_owned();
        assert_eq!(
            ids(network.discover(&cluster(), Some(&own), false)),
            ["s-1"]
        );
        let error = network.discover(&cluster(), None, false).unwrap_err();
        assert!(error.contains("kubernetes.io/role/elb=1"), "{error}");
    }
}
