//! The accounts that a cluster has machines in: one, or two of the same cloud.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Permission, Settings, SimulatedCloud};

use crate::draw::Draw;
use crate::furnish::{furnish_cloud, settings};

/// So many seeds in a hundred have two accounts.
const TWO_ACCOUNTS: u32 = 30;

/// Numbers that the second account is ahead, so that none of its machines has the number of one in the first.
const FAR_AHEAD: usize = 500;

/// One of the accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Account {
    First,
    Second,
}

impl Account {
    pub(crate) const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// The name of its cloud in the configuration.
    pub(crate) const fn cloud_name(self) -> &'static str {
        match self {
            Self::First => "local",
            Self::Second => "second",
        }
    }

    /// The token that the configuration has for it.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::First => SimulatedCloud::TOKEN,
            Self::Second => "second-token",
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// Which accounts a run has, and how a Node says whose it is. Both accounts name their project the same, so provider
/// IDs never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One account.
    One,
    /// Two, whose machines may have the same numbers: the second begins so many later. Every Node has the label of its
    /// cloud.
    Labelled { ahead: usize },
    /// Two, whose machines have numbers of their own. Nodes have no label.
    Unlabelled,
}

impl Layout {
    /// The layout that belongs to a seed. It has choices of its own, so that the plans of seeds with one account do not
    /// depend on it.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut draw = Draw::new(seed ^ 0x2ACC);
        if !draw.chance(TWO_ACCOUNTS) {
            return Self::One;
        }
        match draw.between(0, 9) {
            0..=1 => Self::Unlabelled,
            2 => Self::Labelled { ahead: FAR_AHEAD },
            // Some machines then have a number that the other account has too, and some have not.
            _ => Self::Labelled {
                ahead: draw.one_of(&[0, 1, 1, 1, 2]).unwrap_or_default(),
            },
        }
    }

    pub(crate) const fn has_two(self) -> bool {
        !matches!(self, Self::One)
    }

    pub(crate) const fn accounts(self) -> &'static [Account] {
        if self.has_two() {
            &Account::BOTH
        } else {
            &[Account::First]
        }
    }

    /// The account of a machine: half of them are in each.
    pub(crate) const fn account_of(self, machine: usize) -> Account {
        if self.has_two() && machine % 2 == 1 {
            Account::Second
        } else {
            Account::First
        }
    }

    /// The account of the machine of a Node.
    pub(crate) fn account_of_node(self, node: &str) -> Account {
        let machine = node.strip_prefix("node-").and_then(|it| it.parse().ok());
        self.account_of(machine.unwrap_or_default())
    }

    /// The label that a Node of this account has.
    pub(crate) fn label_of(self, account: Account) -> Option<&'static str> {
        matches!(self, Self::Labelled { .. }).then(|| account.cloud_name())
    }

    /// Whether the routes of Nodes are made: where nothing says whose a Node is, it has none.
    pub(crate) const fn has_routes(self) -> bool {
        !matches!(self, Self::Unlabelled)
    }

    /// Whether Services are served. Without labels no machine is known to be the default cloud's, so nothing tells its
    /// balancers apart from those of another project.
    pub(crate) const fn has_services(self) -> bool {
        !matches!(self, Self::Unlabelled)
    }
}

/// The clouds of a run, as they really are. Clones are the same clouds.
#[derive(Clone)]
pub(crate) struct Clouds {
    pub(crate) layout: Layout,
    first: SimulatedCloud,
    second: Option<SimulatedCloud>,
    /// Whether the token of each account is replaced by the other's.
    replaced: Arc<[AtomicBool; 2]>,
}

impl Clouds {
    pub(crate) fn new(layout: Layout, draw: &mut Draw) -> Self {
        let first = settings(draw);
        // Both are accounts of one cloud, so they can do the same.
        let features = first.features;
        let second = layout.has_two().then(|| Settings {
            features,
            ..settings(draw)
        });
        let (first, second) = (SimulatedCloud::new(first), second.map(SimulatedCloud::new));
        Self {
            layout,
            first,
            second,
            replaced: Arc::default(),
        }
    }

    /// Puts in what is there before the cluster is.
    pub(crate) fn furnish(&self) -> Result<()> {
        for account in self.layout.accounts() {
            furnish_cloud(self.of(*account))?;
            self.set_project(*account, SimulatedCloud::PROJECT);
        }
        let ahead = match self.layout {
            Layout::One => 0,
            Layout::Labelled { ahead } => ahead,
            Layout::Unlabelled => FAR_AHEAD,
        };
        let passing = |number| MachineSpec::named(format!("passing-{number}"));
        let second = self.of(Account::Second);
        for machine in second.add_machines(ahead, passing)? {
            second.destroy(machine.id)?;
        }
        Ok(())
    }

    pub(crate) fn of(&self, account: Account) -> &SimulatedCloud {
        let second = self.second.as_ref();
        second
            .filter(|_| account == Account::Second)
            .unwrap_or(&self.first)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &SimulatedCloud> {
        [&self.first].into_iter().chain(&self.second)
    }

    /// The cloud that a machine is in.
    pub(crate) fn of_machine(&self, machine: usize) -> &SimulatedCloud {
        self.of(self.layout.account_of(machine))
    }

    /// The cloud that the machine of a Node is in.
    pub(crate) fn of_node(&self, node: &str) -> &SimulatedCloud {
        self.of(self.layout.account_of_node(node))
    }

    /// Every token of the configuration sees this project of an account.
    pub(crate) fn set_project(&self, account: Account, project: &str) {
        for owner in self.layout.accounts() {
            let cloud = self.of(account);
            cloud.grant(owner.token(), project, Permission::ReadWrite);
        }
    }

    /// Replaces the token of an account by the other's, or puts it back.
    pub(crate) fn replace_token(&self, account: Account, replaced: bool) {
        self.replaced[account as usize].store(replaced, Ordering::SeqCst);
    }

    /// The account that the token of an account sees now.
    pub(crate) fn reached_by(&self, account: Account) -> Account {
        if self.replaced[account as usize].load(Ordering::SeqCst) {
            account.other()
        } else {
            account
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_three_seeds_in_ten_have_two_accounts() {
        let layouts: Vec<_> = (0..1000).map(Layout::of_seed).collect();
        let two = layouts.iter().filter(|layout| layout.has_two()).count();
        assert!((250..350).contains(&two), "{two}");
        let unlabelled = |layout: &&Layout| **layout == Layout::Unlabelled;
        assert!(layouts.iter().filter(unlabelled).count() > 30);
    }

    #[test]
    fn half_of_the_machines_are_in_the_second_account() {
        let two = Layout::Labelled { ahead: 0 };
        assert_eq!(two.account_of_node("node-0"), Account::First);
        assert_eq!(two.account_of_node("node-3"), Account::Second);
        assert_eq!(Layout::One.account_of_node("node-3"), Account::First);
    }

    #[tokio::test]
    async fn a_replaced_token_sees_the_other_account() {
        let clouds = Clouds::new(Layout::Unlabelled, &mut Draw::new(1));
        clouds.replace_token(Account::First, true);
        assert_eq!(clouds.reached_by(Account::First), Account::Second);
        assert_eq!(clouds.reached_by(Account::Second), Account::Second);
        clouds.replace_token(Account::First, false);
        assert_eq!(clouds.reached_by(Account::First), Account::First);
    }
}
