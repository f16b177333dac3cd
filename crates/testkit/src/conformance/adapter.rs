//! What an author writes for a cloud: how to make one, how to change it, and what is really in it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{BuildError, CloudError, CloudProvider, Limits, NodeAddress, ProviderContext};
use cloudkeel_emulation::FaultInjector;
use ipnet::IpNet;

use super::actual::ActualState;

/// Why a check ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The provider does something wrong.
    Failed(String),
    /// The cloud cannot play this part, so nothing is known. The adapter declares the gap.
    NotPlayable(String),
    /// The provider itself says that it does not do this. The adapter declares the gap.
    Unsupported(String),
}

impl Stop {
    /// The provider does something wrong.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }

    /// The cloud cannot play this.
    pub fn not_playable(what: impl Into<String>) -> Self {
        Self::NotPlayable(what.into())
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) | Self::NotPlayable(why) | Self::Unsupported(why) => f.write_str(why),
        }
    }
}

/// An error where none was expected.
impl From<CloudError> for Stop {
    fn from(error: CloudError) -> Self {
        Self::Failed(format!("{error} [{}]", error.kind()))
    }
}

impl From<BuildError> for Stop {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Cloud(error) => error.into(),
            BuildError::Settings(problems) => Self::Failed(problems.to_string()),
        }
    }
}

/// For adapters: a refusal of the cloud's own control is no fault of the provider.
pub trait OrNotPlayable<T> {
    /// The value, or [`Stop::NotPlayable`] with the refusal.
    fn or_not_playable(self) -> Result<T, Stop>;
}

impl<T, E: fmt::Display> OrNotPlayable<T> for Result<T, E> {
    fn or_not_playable(self) -> Result<T, Stop> {
        self.map_err(|refusal| Stop::NotPlayable(refusal.to_string()))
    }
}

/// The owner labels of a balancer that the provider under test did not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerLabels {
    /// None: it was created by hand.
    None,
    /// Those of a Service of another cluster.
    OtherCluster,
}

impl OwnerLabels {
    /// As labels, or tags, with the provider's keys for the UIDs of the Service and the cluster.
    pub fn labels(self, service_uid: &str, cluster_uid: &str) -> BTreeMap<String, String> {
        let labels = match self {
            Self::None => Vec::new(),
            Self::OtherCluster => vec![
                (service_uid, "another-service"),
                (cluster_uid, "another-cluster"),
            ],
        };
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        labels.into_iter().map(owned).collect()
    }

    /// As the one tag of clouds whose tags have no values, behind the provider's prefix.
    pub fn tags(self, prefix: &str) -> Vec<String> {
        let parts = ["another-service", "another-cluster", "other", "web"];
        match self {
            Self::None => Vec::new(),
            Self::OtherCluster => vec![format!("{prefix}{}", parts.join(":"))],
        }
    }
}

/// Where a listener leads that another client has added.
const OTHER_NODE_PORT: u16 = 31_999;

/// What happens to a cloud behind the provider's back. Instances are given by name, balancers by ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// A running instance of this name is added. Mandatory.
    AddInstance(&'a str),
    /// An instance vanishes for good. Mandatory.
    DestroyInstance(&'a str),
    /// An instance is switched off; it still exists. Mandatory.
    SwitchOff(&'a str),
    /// An instance is destroyed, and the cloud keeps showing it for a while, in a state from which there is no return.
    Terminate(&'a str),
    /// An instance gets another type, other addresses, or both.
    Modify(&'a str),
    /// A balancer of this name is added, without listeners and targets.
    AddBalancer(&'a str, OwnerLabels),
    /// Another client protects a balancer from deletion.
    Protect(&'a str),
    /// Another client removes one listener and all targets of a balancer.
    Damage(&'a str),
    /// Another client adds a TCP listener on this port, which leads to the node port 31999.
    AddListener(&'a str, u16),
    /// Another client adds an instance, by its name, as a target.
    AddTarget(&'a str, &'a str),
    /// Another client adds a label that means nothing to the provider.
    AddLabel(&'a str, (&'a str, &'a str)),
    /// Another client removes all labels of a balancer, those of the provider included.
    RemoveLabels(&'a str),
    /// Another client adds a route to the table that the provider works on, to a next hop that is no instance of the kit.
    AddRoute(IpNet),
    /// A disk is added.
    AddVolume,
    /// From now on no more than this many balancers may exist.
    BalancerQuota(usize),
    /// From now on jobs such as building a balancer take this long. Calls answer at once.
    SlowJobs(Duration),
}

impl Change<'_> {
    /// For emulated clouds whose balancers have a list of listeners and one of targets: makes the changes of another client in
    /// them. `ports` are those of a listener: where it listens, and where it leads. `target` is that of the instance.
    pub fn edit_lists<L: Clone, T>(
        &self,
        listeners: &mut Vec<L>,
        targets: &mut Vec<T>,
        ports: impl FnOnce(&mut L) -> (&mut u16, &mut u16),
        target: T,
    ) {
        match *self {
            Change::Damage(_) => {
                listeners.pop();
                targets.clear();
            }
            Change::AddListener(_, port) => {
                if let Some(mut added) = listeners.first().cloned() {
                    let (listens, leads) = ports(&mut added);
                    (*listens, *leads) = (port, OTHER_NODE_PORT);
                    listeners.push(added);
                }
            }
            Change::AddTarget(..) => targets.push(target),
            _ => {}
        }
    }

    /// For emulated clouds with labels: makes the changes of another client in them.
    pub fn edit_labels(&self, labels: &mut BTreeMap<String, String>) {
        match *self {
            Change::AddLabel(_, (key, value)) => _ = labels.insert(key.into(), value.into()),
            Change::RemoveLabels(_) => labels.clear(),
            _ => {}
        }
    }

    /// For emulated clouds whose labels are tags: makes the changes of another client in them, with the separator behind a key.
    pub fn edit_tags(&self, tags: &mut Vec<String>, separator: char) {
        match *self {
            Change::AddLabel(_, (key, value)) => tags.push(format!("{key}{separator}{value}")),
            Change::RemoveLabels(_) => tags.clear(),
            _ => {}
        }
    }

    /// The name of the instance that this happens to, if it happens to one that is there.
    pub(super) const fn instance(&self) -> Option<&str> {
        match self {
            Change::DestroyInstance(name)
            | Change::SwitchOff(name)
            | Change::Terminate(name)
            | Change::Modify(name)
            | Change::AddTarget(_, name) => Some(name),
            _ => None,
        }
    }

    /// The balancer whose lists or labels another client changes. No other change of a balancer can be played in them.
    pub fn edited_balancer(&self) -> Result<&str, Stop> {
        match self {
            Change::Damage(id)
            | Change::AddListener(id, _)
            | Change::AddTarget(id, _)
            | Change::AddLabel(id, _)
            | Change::RemoveLabels(id) => Ok(id),
            _ => Err(self.not_playable()),
        }
    }

    /// For the changes that a cloud cannot play.
    pub fn not_playable(&self) -> Stop {
        Stop::NotPlayable(format!("this cloud cannot play {self:?}"))
    }
}

/// Annotations for the balancer of an ID.
pub type Share = fn(&str) -> BTreeMap<String, String>;

/// What checks use of a cloud. What is left out makes the checks that need it gaps.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Every credential that the provider is given, as text. None of them may appear in an error, an event or a log line,
    /// neither as it is nor encoded for a URL or a header.
    pub secrets: Vec<String>,
    /// How many instances one page of a list has.
    pub page_size: Option<usize>,
    /// How much a balancer takes. What is left out here is taken from the provider's profile.
    pub limits: Limits,
    /// Two sizes of balancers.
    pub sizes: Option<[&'static str; 2]>,
    /// An address that a Service may ask for and gets.
    pub address: Option<IpAddr>,
    /// The address of a node of another cloud that balancers reach.
    pub outside_target: Option<NodeAddress>,
    /// Annotations of the provider's own that change something of an [`ActualBalancer`](super::ActualBalancer), with a value that is no default.
    pub annotations: Vec<(&'static str, &'static str)>,
    /// The provider's own annotation that selects Nodes as targets.
    pub node_selector: Option<&'static str>,
    /// The annotations by which a Service shares the balancer of this ID with the Service that it was made for.
    pub share: Option<Share>,
}

/// Makes clouds to check a provider on.
#[async_trait]
pub trait Adapter: Send + Sync {
    /// The provider's name, as in `--cloud-provider`. Another source of its instances has its name behind that.
    fn name(&self) -> &str;

    /// A new cloud with nothing in it. Every check has its own.
    async fn new_cloud(&self) -> Result<Box<dyn TestCloud>, Stop>;

    /// The checks that this provider does not pass, and why that is right: `(name, reason)`. A name is that of a check, or a
    /// group as in `volumes/*` or `load-balancers/shared-*`. Mandatory checks cannot be declared. A declared check runs all the same: if it passes, the
    /// declaration is stale, and that is a failure.
    fn gaps(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// After how long a check is taken to hang. Made for a paused clock, where it costs nothing.
    fn timeout(&self) -> Duration {
        Duration::from_hours(12)
    }

    /// How many checks run at once. More than one pays off where a cloud answers by real connections.
    fn concurrency(&self) -> usize {
        1
    }
}

/// The [gaps](Adapter::gaps) in some texts. A line has the names of checks and why they are not passed:
/// `routes/*, volumes/*: the cloud has none`. Without a reason, the names go on in the next line.
pub(super) fn declared_gaps(texts: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    let mut gaps = Vec::new();
    for text in texts {
        let mut names = Vec::new();
        for line in text.lines() {
            let (more, reason) = line.split_once(": ").unwrap_or((line, ""));
            let more = more.split(',').map(str::trim);
            names.extend(more.filter(|name| !name.is_empty()));
            if !reason.is_empty() {
                gaps.extend(names.drain(..).map(|name| (name, reason)));
            }
        }
        gaps.extend(names.into_iter().map(|name| (name, "")));
    }
    gaps
}

/// The [`Adapter`] of a provider with this name: its [gaps](Adapter::gaps) as text, lines such as
/// `routes/*, volumes/*: the cloud has none`, and how a new cloud is made.
pub fn adapter<C: TestCloud + 'static>(
    name: &'static str,
    gaps: &[&'static str],
    new_cloud: fn() -> Result<C, Stop>,
) -> impl Adapter {
    PlainAdapter {
        name,
        gaps: declared_gaps(gaps),
        new_cloud,
    }
}

struct PlainAdapter<C> {
    name: &'static str,
    gaps: Vec<(&'static str, &'static str)>,
    new_cloud: fn() -> Result<C, Stop>,
}

#[async_trait]
impl<C: TestCloud + 'static> Adapter for PlainAdapter<C> {
    fn name(&self) -> &str {
        self.name
    }

    async fn new_cloud(&self) -> Result<Box<dyn TestCloud>, Stop> {
        Ok(Box::new((self.new_cloud)()?))
    }

    fn gaps(&self) -> &[(&'static str, &'static str)] {
        &self.gaps
    }
}

/// One cloud, changed and observed behind the provider's back. What it reports is the truth that the provider is measured by.
///
/// An adapter of real software implements [`change`](Self::change) and [`state`](Self::state) with the vendor's own API. What
/// it cannot play is [`Stop::NotPlayable`], and the checks that need it are [declared](Adapter::gaps) as gaps.
#[async_trait]
pub trait TestCloud: Send + Sync {
    /// A provider that sees this cloud and remembers nothing, as after a restart. Its calls go through the
    /// [interposer](Self::interposer). The context has the kit's cluster, clock and event sink.
    async fn connect(&self, context: ProviderContext)
    -> Result<Arc<dyn CloudProvider>, BuildError>;

    /// Counts the calls of every provider that was [connected](Self::connect) to this cloud, and plays faults on them: an
    /// emulated cloud itself, or for software that is not ours an
    /// [`Interposer`](cloudkeel_emulation::interposer::Interposer) in front of it. Calls that the adapter makes itself do not
    /// pass through it.
    ///
    /// A fault that cannot be played makes the checks that need it gaps, which the adapter declares. 401, 403, 429, 500, no
    /// answer and an unreadable answer have to be playable: the mandatory checks need them.
    fn interposer(&self) -> &dyn FaultInjector;

    /// Makes a change, and returns when it is complete. Only instances have to be added, destroyed and switched off.
    async fn change(&self, change: Change<'_>) -> Result<(), Stop>;

    /// Everything that is there now, as it really is.
    async fn state(&self) -> Result<ActualState, Stop>;

    /// What checks use of this cloud.
    fn samples(&self) -> Samples {
        Samples::default()
    }

    /// Waits. By default with tokio's clock, which tests pause. An adapter of real software may wait less.
    async fn wait(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_declared_by_names_and_a_reason() {
        let text = "
            routes/*, volumes/*: it has none
            load-balancers/udp,
            load-balancers/sctp: it forwards TCP: nothing else
        ";
        assert_eq!(
            declared_gaps(&[text, "webhooks/*"]),
            [
                ("routes/*", "it has none"),
                ("volumes/*", "it has none"),
                ("load-balancers/udp", "it forwards TCP: nothing else"),
                ("load-balancers/sctp", "it forwards TCP: nothing else"),
                ("webhooks/*", ""),
            ]
        );
    }
}
