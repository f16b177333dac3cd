//! The accounts that a cluster has machines in: one, two or three of the same cloud.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Permission, Settings, SimulatedCloud};

use crate::fixtures::{add_foreign_resources, settings};
use crate::rng::Rng;

/// So many seeds in a hundred have several accounts.
const SEVERAL_ACCOUNTS: u32 = 30;

/// So many in a hundred of these have three.
const THREE_ACCOUNTS: u32 = 30;

/// Numbers that an account is ahead of the one before it, so that none of its machines has the number of one there.
const FAR_AHEAD: usize = 500;

/// One of the accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Account {
    First,
    Second,
    Third,
}

impl Account {
    pub(crate) const ALL: [Self; 3] = [Self::First, Self::Second, Self::Third];

    /// The name of its cloud in the configuration.
    pub(crate) const fn cloud_name(self) -> &'static str {
        match self {
            Self::First => "local",
            Self::Second => "second",
            Self::Third => "third",
        }
    }

    /// The token that the configuration has for it at first.
    pub(crate) const fn token(self) -> &'static str {
        match self {
            Self::First => SimulatedCloud::TOKEN,
            Self::Second => "second-token",
            Self::Third => "third-token",
        }
    }

    /// The account that a token was made for.
    pub(crate) fn of_token(token: &str) -> Self {
        let is_of = |account: &Self| {
            let rest = token.strip_prefix(account.token());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let account = Self::ALL.into_iter().find(is_of);
        account.unwrap_or(Self::First)
    }
}

/// Which accounts a run has, and how a Node says whose it is. Both accounts name their project the same, so provider
/// IDs never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One account.
    One,
    /// Several, whose machines may have the same numbers: each begins so many later than the one before it. Every Node
    /// has the label of its cloud.
    Labelled { accounts: usize, ahead: usize },
    /// Two, whose machines have numbers of their own. Nodes have no label.
    Unlabelled,
}

impl Layout {
    /// The layout that belongs to a seed. It has choices of its own, so that the plans of seeds with one account do not
    /// depend on it.
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x2ACC);
        if !rng.chance(SEVERAL_ACCOUNTS) {
            return Self::One;
        }
        match rng.between(0, 9) {
            0..=1 => Self::Unlabelled,
            place => Self::Labelled {
                accounts: if rng.chance(THREE_ACCOUNTS) { 3 } else { 2 },
                // Some machines mostly have a number that another account has too, and some have not.
                ahead: match place {
                    2 => FAR_AHEAD,
                    _ => rng.one_of(&[0, 1, 1, 1, 2]).unwrap_or_default(),
                },
            },
        }
    }

    /// How many accounts there are.
    pub(crate) const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Labelled { accounts, .. } => accounts,
            Self::Unlabelled => 2,
        }
    }

    pub(crate) const fn has_several(self) -> bool {
        self.count() > 1
    }

    pub(crate) fn accounts(self) -> &'static [Account] {
        Account::ALL.get(..self.count()).unwrap_or(&Account::ALL)
    }

    /// The accounts besides this one.
    pub(crate) fn others(self, account: Account) -> impl Iterator<Item = Account> {
        let all = self.accounts().iter().copied();
        all.filter(move |other| *other != account)
    }

    /// The account of a machine: each has the same share of them.
    pub(crate) const fn account_of(self, machine: usize) -> Account {
        match machine % self.count() {
            1 => Account::Second,
            2 => Account::Third,
            _ => Account::First,
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
    all: Vec<SimulatedCloud>,
    /// The account that the token of each account sees.
    reached: Arc<[AtomicUsize; 3]>,
    /// How often the token of each account was rotated.
    rotated: Arc<[AtomicUsize; 3]>,
}

impl Clouds {
    pub(crate) fn new(layout: Layout, rng: &mut Rng) -> Self {
        let first = settings(rng);
        // Both are accounts of one cloud, so they can do the same.
        let features = first.features;
        let more = (1..layout.count()).map(|_| Settings {
            features,
            ..settings(rng)
        });
        let all: Vec<_> = more.collect();
        let all = [first].into_iter().chain(all);
        Self {
            layout,
            all: all.map(SimulatedCloud::new).collect(),
            reached: Arc::new([0, 1, 2].map(AtomicUsize::new)),
            rotated: Arc::default(),
        }
    }

    /// Puts in what is there before the cluster is.
    pub(crate) fn add_fixtures(&self) -> Result<()> {
        for account in self.layout.accounts() {
            add_foreign_resources(self.of(*account))?;
            self.set_project(*account, SimulatedCloud::PROJECT);
        }
        let ahead = match self.layout {
            Layout::One => 0,
            Layout::Labelled { ahead, .. } => ahead,
            Layout::Unlabelled => FAR_AHEAD,
        };
        let passing = |number| MachineSpec::named(format!("passing-{number}"));
        for (place, cloud) in self.all.iter().enumerate() {
            for machine in cloud.add_machines(ahead * place, passing)? {
                cloud.destroy(machine.id)?;
            }
        }
        Ok(())
    }

    /// The cloud of an account that the layout has.
    pub(crate) fn of(&self, account: Account) -> &SimulatedCloud {
        &self.all[account as usize]
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &SimulatedCloud> {
        self.all.iter()
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
            let token = self.token(*owner);
            let cloud = self.of(account);
            cloud.grant(&token, project, Permission::ReadWrite);
        }
    }

    /// The token that the configuration has for an account now.
    pub(crate) fn token(&self, account: Account) -> String {
        match self.rotated[account as usize].load(Ordering::SeqCst) {
            0 => account.token().to_owned(),
            times => format!("{}-{times}", account.token()),
        }
    }

    /// Gives an account a new token, which every cloud takes. The old one is good until it is revoked.
    pub(crate) fn rotate_token(&self, account: Account) {
        self.rotated[account as usize].fetch_add(1, Ordering::SeqCst);
    }

    /// Whether a token is one that was replaced by a newer one.
    pub(crate) fn is_outdated(&self, token: &str) -> bool {
        self.token(Account::of_token(token)) != token
    }

    /// Replaces the token of an account by that of another, or puts it back.
    pub(crate) fn replace_token(&self, account: Account, by: Option<Account>) {
        let reached = by.unwrap_or(account) as usize;
        self.reached[account as usize].store(reached, Ordering::SeqCst);
    }

    /// The account that the token of an account sees now.
    pub(crate) fn reached_by(&self, account: Account) -> Account {
        let reached = self.reached[account as usize].load(Ordering::SeqCst);
        Account::ALL.get(reached).copied().unwrap_or(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_three_seeds_in_ten_have_several_accounts() {
        let layouts: Vec<_> = (0..1000).map(Layout::of_seed).collect();
        let with = |count| layouts.iter().filter(|it| it.count() == count).count();
        assert!(
            (250..350).contains(&(with(2) + with(3))),
            "{} {}",
            with(2),
            with(3)
        );
        assert!(with(3) > 40, "{}", with(3));
        let unlabelled = |layout: &&Layout| **layout == Layout::Unlabelled;
        assert!(layouts.iter().filter(unlabelled).count() > 30);
    }

    #[test]
    fn every_account_has_the_same_share_of_the_machines() {
        let labelled = |accounts| Layout::Labelled { accounts, ahead: 0 };
        assert_eq!(labelled(3).account_of_node("node-5"), Account::Third);
        let two = labelled(2);
        assert_eq!(two.account_of_node("node-0"), Account::First);
        assert_eq!(two.account_of_node("node-3"), Account::Second);
        assert_eq!(Layout::One.account_of_node("node-3"), Account::First);
    }

    #[tokio::test]
    async fn a_replaced_token_sees_the_other_account() {
        let clouds = Clouds::new(Layout::Unlabelled, &mut Rng::new(1));
        clouds.replace_token(Account::First, Some(Account::Second));
        assert_eq!(clouds.reached_by(Account::First), Account::Second);
        assert_eq!(clouds.reached_by(Account::Second), Account::Second);
        clouds.replace_token(Account::First, None);
        assert_eq!(clouds.reached_by(Account::First), Account::First);
    }

    #[tokio::test]
    async fn a_rotated_token_is_of_the_same_account_and_the_old_one_is_outdated() {
        let clouds = Clouds::new(Layout::Unlabelled, &mut Rng::new(1));
        let old = clouds.token(Account::Second);
        clouds.rotate_token(Account::Second);
        let new = clouds.token(Account::Second);
        assert_eq!(Account::of_token(&new), Account::Second);
        assert!(clouds.is_outdated(&old) && !clouds.is_outdated(&new));
    }
}
