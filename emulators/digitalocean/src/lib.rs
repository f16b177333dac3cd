//! The DigitalOcean API on loopback: the calls that cloud controller managers make, with paging, the statuses of load
//! balancers, tags, firewalls, rate limits, lagging reads and faults by script. What you would do in the control panel
//! (droplets, certificates) is a function of [`DigitalOceanCloud`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use cloudkeel_emulator_digitalocean::{DigitalOceanCloud, Fault, Operation, Settings};
//!
//! let cloud = DigitalOceanCloud::new(Settings::default());
//! cloud.add_droplet("node-1");
//! cloud.faults().once(Operation::UpdateLoadBalancer, Fault::status(422));
//! let served = cloud.serve_on_loopback().await?;
//! println!("DO_OVERRIDE_URL={} DO_ACCESS_TOKEN={}", served.api_url(), DigitalOceanCloud::TOKEN);
//! # Ok(())
//! # }
//! ```
//!
//! Time is tokio's, so a paused runtime owns it; wall-clock time starts at a fixed moment and follows.

mod control;
mod fault;
mod gateway;
mod operation;
mod refusal;
mod resources;
mod rest;
mod settings;
mod state;

use std::sync::{Arc, Mutex, PoisonError};

use cloudkeel_emulation::EmulatedClock;
use jiff::Timestamp;
use tokio::time::Instant;

pub use self::control::Served;
pub use self::fault::Fault;
pub use self::gateway::{CallCounts, FaultMatch, FaultRule, Faults, LoggedCall};
pub use self::operation::Operation;
pub use self::refusal::Refusal;
pub use self::resources::{
    BalancerFirewall, Certificate, Droplet, DropletStatus, Firewall, ForwardingRule, HealthCheck,
    LoadBalancer, REGIONS, Region, StickySessions,
};
pub use self::settings::Settings;
use self::state::{Account, AccountContext, State};
pub use cloudkeel_emulation::{
    CallOutcome, Consistency, InProcess, Latency, Permission, RateLimit,
};

/// An emulated DigitalOcean. Clones are the same cloud.
#[derive(Debug, Clone)]
pub struct DigitalOceanCloud(Arc<Mutex<State>>);

impl DigitalOceanCloud {
    /// The account that every emulator has from the start.
    pub const ACCOUNT: &str = "default";
    /// The token that may do everything in it.
    pub const TOKEN: &str = "dop_v1_emulatoremulatoremulatoremulatoremulatoremulatoremulator0000";
    /// The VPC that everything is in.
    pub const VPC: &str = "c33931f2-a26a-4e61-b85c-4e95a2ec431b";
    /// The time of a new emulator: 2026-01-01T00:00:00Z.
    const EPOCH: i64 = 1_767_225_600;

    /// A new cloud with nothing in it but one account and one token, at a fixed time. Must be called inside the
    /// runtime if that pauses its clock.
    pub fn new(settings: Settings) -> Self {
        let epoch = Timestamp::from_second(Self::EPOCH).unwrap_or_default();
        Self::starting_at(settings, epoch)
    }

    /// The same, at another time.
    pub fn starting_at(settings: Settings, epoch: Timestamp) -> Self {
        let clock = EmulatedClock::starting_at(epoch);
        let state = State::new(settings, clock, Instant::now());
        let cloud = Self(Arc::new(Mutex::new(state)));
        cloud.add_project(Self::ACCOUNT);
        cloud.grant(Self::TOKEN, Self::ACCOUNT, Permission::ReadWrite);
        cloud
    }

    /// Reads the state, or changes it, at this moment. The lock is never held across an await.
    fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        state.advance(now);
        act(&mut state, now)
    }

    /// The same for one account, which there has to be.
    fn in_account<R: Default>(
        &self,
        account: &str,
        act: impl FnOnce(&mut AccountContext<'_>) -> R,
    ) -> R {
        self.with(|state, now| match state.context(account, now) {
            Ok(mut context) => act(&mut context),
            Err(_) => R::default(),
        })
    }

    fn read<T>(&self, read: impl FnOnce(&Account) -> Vec<T>) -> Vec<T> {
        self.in_account(Self::ACCOUNT, |context| read(context.account))
    }

    /// Adds an account, which no token sees yet.
    pub fn add_project(&self, name: &str) {
        self.with(|state, _| state.add_account(name));
    }

    /// Adds a running droplet with one address of each kind to the first account.
    pub fn add_droplet(&self, name: &str) -> u64 {
        self.add_droplet_in(Self::ACCOUNT, name)
    }

    /// Adds a running droplet to an account.
    pub fn add_droplet_in(&self, account: &str, name: &str) -> u64 {
        self.in_account(account, |context| context.add_droplet(name).id)
    }

    /// The droplets of the first account, as they really are.
    pub fn droplets(&self) -> Vec<Droplet> {
        self.read(|account| account.droplets.to_vec())
    }

    /// Changes anything about a droplet of the first account. `false` if there is none.
    pub fn change_droplet(&self, id: u64, change: impl FnOnce(&mut Droplet)) -> bool {
        self.in_account(Self::ACCOUNT, |context| {
            let droplets = &mut context.account.droplets;
            droplets.edit(&id, context.now, change).is_some()
        })
    }

    /// Removes a droplet of the first account, at once, also from load balancers.
    pub fn destroy_droplet(&self, id: u64) {
        self.in_account(Self::ACCOUNT, |context| {
            context.account.forget_droplet(id, context.now);
        });
    }

    /// The load balancers of the first account, as they really are.
    pub fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.read(|account| account.balancers.to_vec())
    }

    /// Adds an active load balancer with one port and no droplets, without the API. Returns its ID.
    pub fn add_load_balancer(&self, name: &str, tags: &[String]) -> String {
        self.in_account(Self::ACCOUNT, |context| {
            context.add_plain_balancer(name, tags)
        })
    }

    /// Changes anything about a load balancer of the first account. `false` if there is none.
    pub fn change_load_balancer(&self, id: &str, change: impl FnOnce(&mut LoadBalancer)) -> bool {
        self.in_account(Self::ACCOUNT, |context| {
            let balancers = &mut context.account.balancers;
            let changed = balancers.edit(&id.to_owned(), context.now, change);
            changed.is_some()
        })
    }

    /// Adds a certificate of this type, `lets_encrypt` or `custom`. Returns its ID.
    pub fn add_certificate(&self, name: &str, kind: &str) -> String {
        self.in_account(Self::ACCOUNT, |context| {
            let id = context.counters.ids.uuid();
            let certificate = Certificate {
                id: id.clone(),
                name: name.to_owned(),
                kind: kind.to_owned(),
                state: "verified".to_owned(),
                dns_names: vec!["example.com".to_owned()],
                not_after: "2027-01-01T00:00:00Z".to_owned(),
                sha1_fingerprint: "0".repeat(40),
                created_at: context.time(),
            };
            let certificates = &mut context.account.certificates;
            certificates.put(id.clone(), certificate, context.now);
            id
        })
    }

    /// Removes a certificate.
    pub fn remove_certificate(&self, id: &str) {
        self.in_account(Self::ACCOUNT, |context| {
            let certificates = &mut context.account.certificates;
            certificates.remove(&id.to_owned(), context.now);
        });
    }

    /// The firewalls of the first account, as they really are.
    pub fn firewalls(&self) -> Vec<Firewall> {
        self.read(|account| account.firewalls.to_vec())
    }

    /// Changes anything about the firewalls of the first account.
    pub fn change_firewalls(&self, change: impl Fn(&mut Firewall)) {
        self.in_account(Self::ACCOUNT, |context| {
            let firewalls = &mut context.account.firewalls;
            firewalls.edit_where(context.now, |_| true, change);
        });
    }

    /// The tags of the first account.
    pub fn tags(&self) -> Vec<String> {
        self.read(|account| account.tags.iter().cloned().collect())
    }
}
