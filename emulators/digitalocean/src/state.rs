//! The state of the cloud: accounts and what they hold.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use cloudkeel_emulation::history::{Table, View};
use cloudkeel_emulation::ids::Ids;
use cloudkeel_emulation::rate_limit::{Buckets, Windows};
use cloudkeel_emulation::{EmulatedClock, Gateway, Tokens};
use tokio::time::Instant;

use crate::fault::Fault;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::resources::{Certificate, Droplet, DropletStatus, Firewall, LoadBalancer, REGIONS};
use crate::settings::Settings;

/// Everything that the emulator knows. Reached only under its lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) tokens: Tokens,
    pub(crate) gateway: Gateway<Operation, Fault>,
    pub(crate) buckets: Buckets,
    pub(crate) bursts: Windows<String>,
    pub(crate) accounts: BTreeMap<String, Account>,
    pub(crate) clock: EmulatedClock,
    pub(crate) counters: Counters,
}

/// What is given out once and never again.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) ids: Ids,
    v4: u32,
    v6: u16,
}

impl Counters {
    /// From a network that is set aside for tests.
    pub(crate) fn public_ipv4(&mut self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + self.next_v4())
    }

    pub(crate) fn private_ipv4(&mut self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 110, 0, 0)) + self.next_v4())
    }

    pub(crate) const fn ipv6(&mut self) -> Ipv6Addr {
        self.v6 = self.v6.wrapping_add(1);
        Ipv6Addr::new(0x2001, 0xdb8, 2, self.v6, 0, 0, 0, 1)
    }

    const fn next_v4(&mut self) -> u32 {
        self.v4 += 1;
        self.v4
    }
}

/// What belongs together and is seen by one token.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) uuid: String,
    pub(crate) droplets: Table<Droplet>,
    pub(crate) balancers: Table<LoadBalancer, String>,
    pub(crate) certificates: Table<Certificate, String>,
    pub(crate) firewalls: Table<Firewall, String>,
    pub(crate) tags: BTreeSet<String>,
}

/// One account with everything that is needed to change it.
#[derive(Debug)]
pub(crate) struct AccountContext<'a> {
    pub(crate) account: &'a mut Account,
    pub(crate) settings: &'a Settings,
    pub(crate) counters: &'a mut Counters,
    pub(crate) clock: EmulatedClock,
    pub(crate) now: Instant,
    /// Which moment a read shows.
    pub(crate) view: View,
}

impl State {
    pub(crate) fn new(settings: Settings, clock: EmulatedClock, now: Instant) -> Self {
        Self {
            tokens: Tokens::default(),
            gateway: Gateway::new(settings.seed, now),
            buckets: Buckets::default(),
            bursts: Windows::default(),
            accounts: BTreeMap::new(),
            clock,
            counters: Counters {
                ids: Ids::after(3_000_000),
                v4: 0,
                v6: 0,
            },
            settings,
        }
    }

    pub(crate) fn add_account(&mut self, name: &str) {
        let (keep, uuid) = (self.settings.history, self.counters.ids.uuid());
        let account = self.accounts.entry(name.to_owned());
        account.or_insert_with(|| Account {
            uuid,
            droplets: Table::remembering(keep),
            balancers: Table::remembering(keep),
            certificates: Table::remembering(keep),
            firewalls: Table::remembering(keep),
            tags: BTreeSet::new(),
        });
    }

    /// The account of that name with all that is needed to change it.
    pub(crate) fn context(
        &mut self,
        account: &str,
        now: Instant,
    ) -> Result<AccountContext<'_>, Refusal> {
        let found = self.accounts.get_mut(account);
        Ok(AccountContext {
            account: found.ok_or_else(Refusal::not_found)?,
            settings: &self.settings,
            counters: &mut self.counters,
            clock: self.clock,
            now,
            view: View::Now,
        })
    }

    /// Load balancers become active at their own moments.
    pub(crate) fn advance(&mut self, now: Instant) {
        for account in self.accounts.values_mut() {
            let due = account.balancers.iter().filter_map(|(id, balancer)| {
                let until = balancer.busy_until.filter(|until| *until <= now)?;
                Some((id, until))
            });
            let due: Vec<_> = due.collect();
            for (id, until) in due {
                let counters = &mut self.counters;
                account
                    .balancers
                    .edit(&id, until, |balancer| activate(balancer, counters));
            }
        }
    }
}

/// What was asked for is done. A new load balancer gets its addresses now.
pub(crate) fn activate(balancer: &mut LoadBalancer, counters: &mut Counters) {
    balancer.busy_until = None;
    if balancer.status != "new" {
        return;
    }
    "active".clone_into(&mut balancer.status);
    balancer.ip = match (balancer.network.as_str(), balancer.ip.is_empty()) {
        (_, false) => balancer.ip.clone(),
        ("INTERNAL", true) => counters.private_ipv4().to_string(),
        (_, true) => counters.public_ipv4().to_string(),
    };
    if balancer.network_stack == "DUALSTACK" {
        balancer.ipv6 = counters.ipv6().to_string();
    }
}

impl AccountContext<'_> {
    pub(crate) fn time(&self) -> String {
        let time = self.clock.time_at(self.now);
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Adds a running droplet with an address of each kind.
    pub(crate) fn add_droplet(&mut self, name: &str) -> Droplet {
        let [region, ..] = REGIONS;
        let droplet = Droplet {
            id: self.counters.ids.number(),
            name: name.to_owned(),
            status: DropletStatus::Active,
            size_slug: "s-1vcpu-2gb".to_owned(),
            region,
            private_ipv4: Some(self.counters.private_ipv4()),
            public_ipv4: Some(self.counters.public_ipv4()),
            public_ipv6: Some(self.counters.ipv6()),
            created_at: self.time(),
        };
        let droplets = &mut self.account.droplets;
        droplets.put(droplet.id, droplet.clone(), self.now);
        droplet
    }
}

impl Account {
    /// Removes a droplet, also from load balancers.
    pub(crate) fn forget_droplet(&mut self, id: u64, at: Instant) {
        self.droplets.remove(&id, at);
        self.balancers.edit_where(
            at,
            |balancer| balancer.droplet_ids.contains(&id),
            |balancer| balancer.droplet_ids.retain(|other| *other != id),
        );
    }
}
