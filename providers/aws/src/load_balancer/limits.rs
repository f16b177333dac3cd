//! How much a load balancer takes: quotas of the account, which it may have raised.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Failures, Limits, Protocol};
use cloudkeel_toolkit::{ListenerKey, diff_listeners};

use super::AwsBalancers;
use super::desired::Desired;
use super::groups::ROOM;
use super::observe::Observed;
use crate::client::{Api, Call};
use crate::config::BalancerType;

/// How old quotas may be.
const QUOTAS_FRESH: Duration = Duration::from_hours(1);

/// What an account has from the start. What stays below it costs no call.
const CLASSIC: (usize, usize) = (1000, 100);
/// The targets are those of one zone.
const NETWORK: (usize, usize) = (500, 50);
const NETWORK_TARGETS: u32 = 3000;

/// The quotas of an account by name; none of them if they may not be read.
pub(super) type Quotas = BTreeMap<String, usize>;

/// What a new account has.
pub(super) fn defaults(kind: BalancerType) -> Limits {
    let number = |n: usize| u32::try_from(n).ok();
    let (targets, listeners) = match kind {
        BalancerType::Classic => (number(CLASSIC.0), CLASSIC.1),
        BalancerType::Nlb => (Some(NETWORK_TARGETS), NETWORK.1),
    };
    Limits {
        targets,
        listeners: number(listeners),
        rules: number(ROOM),
    }
}

impl AwsBalancers {
    /// Leaves out what is over the limits. The quotas are read only if more is asked for than any account has.
    pub(super) async fn fit(
        &self,
        desired: &mut Desired,
        have: &mut Observed,
    ) -> Result<(), CloudError> {
        let wanted = (have.targets.wanted.places.len(), desired.ports.len());
        let (few, quotas) = match desired.kind {
            BalancerType::Classic => (CLASSIC, &self.classic_quotas),
            BalancerType::Nlb => (NETWORK, &self.network_quotas),
        };
        if wanted.0 <= few.0 && wanted.1 <= few.1 {
            return Ok(());
        }
        let read = || quotas_of(&self.account.api, desired.kind);
        let quotas = quotas.no_older_than(QUOTAS_FRESH, read).await?;
        fit(desired, have, &quotas);
        Ok(())
    }
}

/// Without the permission nothing is left out: the account refuses what is too much.
async fn quotas_of(api: &Api, kind: BalancerType) -> Result<Quotas, CloudError> {
    let call = match kind {
        BalancerType::Classic => Call::elb("DescribeAccountLimits"),
        BalancerType::Nlb => Call::elbv2("DescribeAccountLimits"),
    };
    let answer = match api.send(&call).await {
        Err(error) if error.kind() == ErrorKind::Denied => return Ok(Quotas::new()),
        answer => answer?,
    };
    let quotas = answer.all_at("Limits/member").map(|limit| {
        let name: String = limit.value_at("Name")?;
        Ok((name, limit.value_at("Max")?))
    });
    let quotas: Result<Quotas, String> = quotas.collect();
    quotas.map_err(|why| CloudError::new(call.action, ErrorKind::Malformed, why))
}

/// What there is keeps its place. Pure.
pub(super) fn fit(desired: &mut Desired, have: &mut Observed, quotas: &Quotas) {
    let of = |name: &str| quotas.get(name).copied().unwrap_or(usize::MAX);
    let (targets, listeners) = match desired.kind {
        BalancerType::Classic => (of("classic-registered-instances"), of("classic-listeners")),
        BalancerType::Nlb => {
            let zones = have.subnets.as_ref().map_or(1, Vec::len).max(1);
            let of_zone = of("targets-per-availability-zone-per-network-load-balancer");
            let all = of("targets-per-network-load-balancer");
            let targets = all.min(of_zone.saturating_mul(zones));
            (targets, of("listeners-per-network-load-balancer"))
        }
    };
    have.targets.limit = targets;
    let present = present_keys(have);
    let diff = diff_listeners(&desired.ports, &present, listeners, |_| false, |_, _| true);
    let left_out: Vec<_> = diff.left_out.iter().map(|port| port.port).collect();
    have.over_limits.extend(diff.over_limit(listeners));
    have.over_limits.extend(targets_over_limit(have));
    desired.ports.retain(|port| !left_out.contains(&port.port));
}

/// What cannot be targets of all groups alike.
fn targets_over_limit(have: &Observed) -> Option<Failures> {
    let targets = &have.targets;
    let network = have.network.iter().flat_map(|network| &network.groups);
    let network = network.map(|group| group.targets.iter().map(|it| it.id.clone()).collect());
    let classic = have.classic.iter().map(|it| it.balancer.instances.clone());
    let mut present: Vec<BTreeSet<String>> = network.chain(classic).collect();
    if present.is_empty() {
        present.push(BTreeSet::new());
    }
    let mut over = present
        .into_iter()
        .filter_map(|present| targets.diff(present).over_limit(targets.limit));
    over.next()
}

fn present_keys(have: &Observed) -> Vec<ListenerKey> {
    let key = |port, protocol| ListenerKey { protocol, port };
    let network = have.network.iter().flat_map(|it| &it.listeners);
    let network = network.map(|it| match it.protocol.as_str() {
        "UDP" => key(it.port, Protocol::Udp),
        _ => key(it.port, Protocol::Tcp),
    });
    let classic = have.classic.iter().flat_map(|it| &it.balancer.listeners);
    let classic = classic.map(|it| key(it.port, Protocol::Tcp));
    network.chain(classic).collect()
}
