//! Random lives of a cluster: whatever happened, in the end everything is as the model says, and then
//! nothing moves any more.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_controllers::service::ServiceSettings;
use cloudkeel_testkit::simulated_cloud::wire::{Balancer, NewBalancer};
use cloudkeel_testkit::simulated_cloud::{Fault, Operation, Settings};
use serde_json::json;
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE};
use crate::support::gate::What;

const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Repeatable jitter.
struct Jitter(u64);

impl Jitter {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }
}

/// What a Service wants.
#[derive(Debug, Clone)]
struct Wanted {
    port: u16,
    is_balanced: bool,
}

/// The world as it should become.
struct Model {
    lab: Lab,
    jitter: Jitter,
    services: BTreeMap<String, Wanted>,
    nodes: BTreeMap<String, bool>,
    /// Services that lost their finalizer by force, by UID: their balancers may be left over if no manager
    /// was there to see it.
    robbed: BTreeSet<String>,
    foreign: Balancer,
    is_running: bool,
    history: Vec<String>,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

impl Model {
    async fn new(seed: u64) -> Self {
        let mut jitter = Jitter(seed);
        let cloud = Settings {
            seed,
            action_duration: Duration::from_secs(jitter.roll(3) as u64 * 7),
            ..Settings::default()
        };
        let settings = ServiceSettings {
            workers: 1 + jitter.roll(4),
            seed,
            ..ServiceSettings::default()
        };
        let lab = Lab::with(2, cloud, settings).await;
        let new = json!({"name": "theirs", "families": ["IPv4"], "listeners": [], "targets": []});
        let new: NewBalancer = serde_json::from_value(new).unwrap();
        let foreign = lab.cloud.add_balancer(new).unwrap();
        let nodes = ["node-000", "node-001"].map(|name| (name.to_owned(), true));
        Self {
            lab,
            jitter,
            services: BTreeMap::new(),
            nodes: nodes.into(),
            robbed: BTreeSet::new(),
            foreign,
            is_running: true,
            history: Vec::new(),
        }
    }

    async fn live(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.jitter.roll(12) {
                0..3 => self.change_a_service(),
                3 => self.remove_a_service(),
                4..6 => self.change_the_nodes(),
                6..8 => self.break_something(),
                8 => self.meddle(),
                9 => self.change_the_process().await,
                _ => {}
            }
            let pause = *self.jitter.pick(&[0, 1, 50, 1000, 3000, 20_000, 90_000]);
            self.lab.pass(Duration::from_millis(pause)).await;
            self.check_what_always_holds();
        }
    }

    fn note(&mut self, what: String) {
        self.history.push(what);
    }

    fn change_a_service(&mut self) {
        let name = *self.jitter.pick(&NAMES);
        let port = u16::try_from(80 + self.jitter.roll(4)).unwrap();
        let is_balanced = self.jitter.roll(4) > 0;
        let kind = if is_balanced {
            "LoadBalancer"
        } else {
            "ClusterIP"
        };
        let ports = json!([{"name": "p", "protocol": "TCP", "port": port}]);
        let desired = json!({"spec": {"type": kind, "ports": ports}});
        let world = self.lab.api.world();
        match world.service(name) {
            None => world.create_service(name, &desired),
            Some(there) if there["metadata"]["deletionTimestamp"].is_null() => {
                world.change_service(name, &desired);
            }
            Some(_) => return,
        }
        self.note(format!("{name} becomes {kind} on {port}"));
        let wanted = Wanted { port, is_balanced };
        self.services.insert(name.to_owned(), wanted);
    }

    fn remove_a_service(&mut self) {
        let name = *self.jitter.pick(&NAMES);
        let world = self.lab.api.world();
        let Some(there) = world.service(name) else {
            return;
        };
        let by_force = self.jitter.roll(3) == 0;
        world.delete_service(name);
        if by_force && world.service(name).is_some() {
            let uid = there["metadata"]["uid"].as_str().unwrap().to_owned();
            world.change_service(name, &json!({"metadata": {"finalizers": null}}));
            self.robbed.insert(uid);
        }
        self.services.remove(name);
        self.note(format!("{name} is deleted, by force: {by_force}"));
    }

    fn change_the_nodes(&mut self) {
        let name = format!("extra-{}", self.jitter.roll(4));
        match self.nodes.get(&name).copied() {
            None => {
                self.lab.add_node(&name);
                self.nodes.insert(name.clone(), true);
                self.note(format!("{name} joins"));
            }
            Some(_) if self.jitter.roll(3) == 0 => {
                self.lab.api.world().remove(&name);
                self.nodes.remove(&name);
                self.note(format!("{name} goes"));
            }
            Some(serves) => {
                let label = serves.then_some("true");
                let patch = json!({"metadata": {"labels": {EXCLUDE: label}}});
                self.lab.api.world().change(&name, &patch);
                self.nodes.insert(name.clone(), !serves);
                self.note(format!("{name} serves: {}", !serves));
            }
        }
    }

    fn break_something(&mut self) {
        let operations = [
            Operation::ListBalancers,
            Operation::CreateBalancer,
            Operation::ChangeTargets,
            Operation::SetListeners,
            Operation::DeleteBalancer,
        ];
        let faults = [
            Fault::status(500),
            Fault::status(409),
            Fault::too_many_calls(Some(30)),
            Fault::BrokenBefore,
            Fault::BrokenAfter,
            Fault::MalformedJson,
            Fault::EmptyBody,
        ];
        if self.jitter.roll(3) == 0 {
            let status = *self.jitter.pick(&[409, 500, 503]);
            self.lab.api.refuse(What::WriteService, status);
            return self.note(format!("the API server refuses with {status}"));
        }
        let operation = *self.jitter.pick(&operations);
        let fault = self.jitter.pick(&faults).clone();
        let times = 1 + self.jitter.roll(4) as u64;
        self.note(format!("{operation} meets {fault:?} {times} times"));
        self.lab.cloud.faults().times(operation, times, fault);
    }

    /// Another client changes a balancer of ours by hand.
    fn meddle(&mut self) {
        let ours: Vec<_> = self.ours().into_iter().collect();
        if ours.is_empty() {
            return;
        }
        let balancer = self.jitter.pick(&ours).clone();
        match self.jitter.roll(3) {
            0 => {
                self.lab.cloud.drop_balancer(balancer.id).unwrap();
                self.note(format!("balancer {} is taken away", balancer.id));
            }
            1 => {
                let edit = |balancer: &mut Balancer| balancer.listeners.clear();
                self.lab.cloud.edit_balancer(balancer.id, edit).unwrap();
                self.note(format!("balancer {} loses its listeners", balancer.id));
            }
            _ => {
                let edit = |balancer: &mut Balancer| balancer.targets.clear();
                self.lab.cloud.edit_balancer(balancer.id, edit).unwrap();
                self.note(format!("balancer {} loses its targets", balancer.id));
            }
        }
    }

    async fn change_the_process(&mut self) {
        if self.is_running {
            self.lab.stop().await;
            self.note("the process dies".to_owned());
        } else {
            self.lab.start();
            self.note("a process begins".to_owned());
        }
        self.is_running = !self.is_running;
    }

    fn ours(&self) -> Vec<Balancer> {
        let mut balancers = self.lab.cloud.balancers();
        balancers.retain(|balancer| balancer.id != self.foreign.id);
        balancers
    }

    fn check_what_always_holds(&self) {
        let foreign = self.lab.cloud.balancer(self.foreign.id).unwrap();
        assert_eq!(foreign.labels, self.foreign.labels, "{:#?}", self.history);
        assert_eq!(foreign.targets, self.foreign.targets);
        let held: BTreeSet<String> = NAMES
            .iter()
            .filter_map(|name| self.lab.api.world().service(name))
            .filter(|service| {
                let finalizers = service["metadata"]["finalizers"].as_array();
                finalizers.is_some_and(|all| all.contains(&json!(crate::lab::FINALIZER)))
            })
            .map(|service| service["metadata"]["uid"].as_str().unwrap().to_owned())
            .collect();
        for balancer in self.ours() {
            let uid = &balancer.labels["cloudkeel.dev/service-uid"];
            let is_held = held.contains(uid) || self.robbed.contains(uid);
            assert!(
                is_held,
                "{balancer:?} has no finalizer: {:#?}",
                self.history
            );
        }
    }

    /// Nothing goes wrong any more, and there is time for everything.
    async fn come_to_rest(&mut self) {
        self.lab.cloud.faults().clear();
        if !self.is_running {
            self.lab.start();
        }
        self.lab.pass(MINUTE * 60).await;
    }

    fn check_the_end(&self) {
        let history = format!("{:#?}", self.history);
        let expected: Vec<&str> = self.services.keys().map(String::as_str).collect();
        assert_eq!(self.lab.api.world().services(), expected, "{history}");
        let serving = self.nodes.iter().filter(|(_, serves)| **serves);
        let serving: Vec<&str> = serving.map(|(name, _)| name.as_str()).collect();
        for (name, wanted) in &self.services {
            let balancer = self.lab.balancer(name);
            assert_eq!(balancer.is_some(), wanted.is_balanced, "{name}: {history}");
            assert_eq!(
                self.lab.has_finalizer(name),
                wanted.is_balanced,
                "{name}: {history}"
            );
            let published = balancer.as_ref().map(|b| b.addresses[0].to_string());
            assert_eq!(self.lab.address(name), published, "{name}: {history}");
            let Some(balancer) = balancer else { continue };
            let ports: Vec<_> = balancer.listeners.iter().map(|l| l.port).collect();
            assert_eq!(ports, [wanted.port], "{name}: {history}");
            let mut serving = serving.clone();
            serving.sort_unstable();
            assert_eq!(self.lab.targets(name), serving, "{name}: {history}");
        }
        let balanced = self.services.values().filter(|wanted| wanted.is_balanced);
        let left_over = self.ours().into_iter().filter(|balancer| {
            self.robbed
                .contains(&balancer.labels["cloudkeel.dev/service-uid"])
        });
        let expected = balanced.count() + left_over.count();
        assert_eq!(self.ours().len(), expected, "{history}");
    }

    async fn check_the_rest(&self) {
        self.lab.forget();
        self.lab.pass(MINUTE * 30).await;
        let calls = self.lab.cloud.calls();
        assert_eq!(calls.mutations(), 0, "{calls:?}: {:#?}", self.history);
        assert_eq!(self.lab.api.writes(), [], "{:#?}", self.history);
    }
}

async fn live_through(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        eprintln!("seed {seed}");
        let mut model = Model::new(seed).await;
        model.live(60).await;
        model.come_to_rest().await;
        model.check_the_end();
        model.check_the_rest().await;
    }
}

#[tokio::test(start_paused = true)]
async fn random_histories_end_as_the_model_says() {
    live_through(0..15).await;
}

#[tokio::test(start_paused = true)]
async fn more_random_histories_end_as_the_model_says() {
    live_through(15..30).await;
}

#[tokio::test(start_paused = true)]
async fn histories_that_once_failed_end_as_the_model_says() {
    live_through(1005..1006).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes minutes: cargo xtask test --tier long"]
async fn very_many_random_histories_end_as_the_model_says() {
    live_through(1000..2000).await;
}
