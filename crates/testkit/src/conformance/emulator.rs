//! What an author writes: clouds that can be steered, and how to reach them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, CloudProvider, NodeAddress, NodeFacts};
use ipnet::IpNet;

use super::seen::{SeenBalancer, SeenRoute, Thing};

/// Why a check does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The provider does something wrong.
    Wrong(String),
    /// The emulator cannot play this part, so nothing is known: a gap.
    CannotPlay(String),
    /// The provider itself says that it does not do this: a gap.
    Unsupported(String),
}

impl Stop {
    /// The provider does something wrong.
    pub fn wrong(why: impl Into<String>) -> Self {
        Self::Wrong(why.into())
    }

    /// The emulator cannot play this.
    pub fn cannot_play(what: impl Into<String>) -> Self {
        Self::CannotPlay(what.into())
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(why) | Self::CannotPlay(why) | Self::Unsupported(why) => f.write_str(why),
        }
    }
}

/// An error where none was expected.
impl From<CloudError> for Stop {
    fn from(error: CloudError) -> Self {
        Self::Wrong(format!("{error} [{}]", error.kind()))
    }
}

/// How often a cloud was called since it was made. Every call counts, also one that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    /// All of them.
    pub total: u64,
    /// Those that could change something.
    pub mutating: u64,
}

impl Calls {
    /// What came since an earlier count.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            mutating: self.mutating.saturating_sub(before.mutating),
        }
    }
}

/// Something that goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The credential is refused (401); nothing happens.
    Unauthenticated,
    /// The credential may not do this (403); nothing happens.
    Denied,
    /// Too many calls (429); nothing happens.
    Throttled,
    /// The cloud has trouble (500); nothing happens.
    Unavailable,
    /// Nobody answers, and nothing happens.
    Timeout,
    /// The answer cannot be read.
    Malformed,
    /// It happens, and then the answer is lost on the way.
    LostAnswer,
    /// A list says that there is nothing.
    EmptyList,
    /// A page has fewer things than it announces.
    TruncatedPage,
    /// A page claims to be the last and is not.
    LostPage,
    /// The credential sees another account, which has machines of its own, and everything answers as if
    /// that were normal.
    OtherScope,
}

/// Which calls meet the trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    /// All of them that can, until [`Emulator::heal`].
    Always,
    /// Of those that could change something the nth from now on, counted from 1, and no other.
    Mutation(u64),
    /// The same and all that come after it, until [`Emulator::heal`].
    MutationsFrom(u64),
}

/// Whose marks a balancer carries that the provider did not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Nobody's: a person made it.
    Nobody,
    /// Those of a Service of another cluster.
    OtherCluster,
}

/// Makes clouds to try a provider on.
#[async_trait]
pub trait Setup: Send + Sync {
    /// The provider's name, as in `--cloud-provider`.
    fn name(&self) -> &str;

    /// A new cloud with nothing in it.
    async fn new_cloud(&self) -> Result<Box<dyn Emulator>, Stop>;

    /// Checks that this provider does not pass, and why that is no fault: `(name, reason)`. What the
    /// provider itself declares (`Features`, missing capabilities) need not be repeated.
    fn gaps(&self) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// After how long a check is taken to hang. Made for a paused clock, where it costs nothing.
    fn patience(&self) -> Duration {
        Duration::from_hours(12)
    }
}

/// One cloud, steered behind the provider's back. What it says is the truth that the provider is measured by.
#[async_trait]
pub trait Emulator: Send + Sync {
    /// A provider that sees this cloud and remembers nothing, as after a restart. It belongs to
    /// [the kit's cluster](super::cluster).
    async fn connect(&self) -> Result<Arc<dyn CloudProvider>, Stop>;

    /// How often it was called.
    fn calls(&self) -> Calls;

    /// Adds a running machine: the facts of its Node, provider ID and addresses included, as they are
    /// once the Node is initialised.
    async fn add_machine(&self, name: &str) -> Result<NodeFacts, Stop>;

    /// Makes a machine vanish for good.
    async fn destroy_machine(&self, name: &str) -> Result<(), Stop>;

    /// Switches a machine off; it still exists.
    async fn switch_off_machine(&self, name: &str) -> Result<(), Stop>;

    /// How many calls a sweep of so many machines takes at least.
    fn pages(&self, machines: usize) -> Result<u64, Stop>;

    /// Lets calls meet trouble. A cloud of which a trouble is not known [cannot play](Stop::CannotPlay) it.
    async fn strike(&self, strike: Strike, trouble: Trouble) -> Result<(), Stop>;

    /// Ends all trouble.
    async fn heal(&self);

    /// Everything in the cloud that a provider could leave behind: balancers, routes, rules,
    /// certificates, addresses. No machines.
    fn things(&self) -> Vec<Thing>;

    /// All balancers, in neutral words.
    fn balancers(&self) -> Vec<SeenBalancer>;

    /// Adds a balancer of this name without ports and targets. Answers with its ID.
    async fn add_balancer(&self, name: &str, mark: Mark) -> Result<String, Stop>;

    /// Protects a balancer from deletion, as a person would.
    async fn protect_balancer(&self, _id: &str) -> Result<(), Stop> {
        Err(Stop::cannot_play("this cloud has no protection"))
    }

    /// Takes all targets and one port away from a balancer, as a person would.
    async fn damage_balancer(&self, id: &str) -> Result<(), Stop>;

    /// Two sizes of balancers, if it has several.
    fn sizes(&self) -> Option<[&str; 2]> {
        None
    }

    /// An address that a Service may wish for and gets, if that is possible.
    fn spare_address(&self) -> Option<IpAddr> {
        None
    }

    /// The address of a node of another cloud that balancers can reach, if there is such a thing.
    fn far_address(&self) -> Option<NodeAddress> {
        None
    }

    /// All routes of the table that the provider works on.
    fn routes(&self) -> Vec<SeenRoute> {
        Vec::new()
    }

    /// Adds somebody else's route to that table, to a next hop that is no machine of the kit.
    async fn add_route(&self, _destination: IpNet) -> Result<(), Stop> {
        Err(Stop::cannot_play("this cloud has no routes"))
    }

    /// Waits. By default with tokio's clock, which tests pause.
    async fn wait(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
