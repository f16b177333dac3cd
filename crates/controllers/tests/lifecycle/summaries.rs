//! A cloud whose list is cheap: names and state of all instances, and the rest only of those that are asked for.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, CloudProvider, Existence, Instance, InstanceList, Instances, KnownInstance, Match,
    NodeFacts, Priority, SystemClock,
};
use cloudkeel_testkit::simulated_cloud::wire::MachineAddress;

use crate::lab::{Lab, MINUTE, SECOND};

/// Lists summaries, and describes them when it is asked to.
struct Cheap {
    own: Arc<dyn CloudProvider>,
    described: Arc<Mutex<Vec<(usize, Priority)>>>,
    is_ready: Arc<AtomicBool>,
}

impl Cheap {
    fn instances(&self) -> &dyn Instances {
        self.own.instances().unwrap()
    }
}

#[async_trait]
impl Instances for Cheap {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        let full = self.instances().list().await?;
        let summary = |instance: &Instance| Instance {
            state: instance.state,
            system_uuid: instance.system_uuid.clone(),
            is_summary: true,
            ..Instance::new(instance.id.clone(), &instance.name)
        };
        let summaries: Vec<_> = full.instances().map(summary).collect();
        let now = cloudkeel_api::Clock::now(&SystemClock);
        Ok(InstanceList::complete(full.scope().clone(), now, summaries))
    }
    async fn find(&self, node: &NodeFacts, known_instance: Option<&KnownInstance>) -> Existence {
        self.instances().find(node, known_instance).await
    }
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        self.instances().identify(node, list)
    }
    async fn describe(
        &self,
        instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        let asked = (instances.len(), priority);
        self.described.lock().unwrap().push(asked);
        let full = self.instances().list().await.unwrap();
        let describe = |instance: Instance| {
            let mut instance = full.get(&instance.id).unwrap().clone();
            if !self.is_ready.load(Ordering::SeqCst) {
                instance.not_ready = Some("its guest reports no address".to_owned());
            }
            Ok(instance)
        };
        instances.into_iter().map(describe).collect()
    }
}

struct Scene {
    lab: Lab,
    described: Arc<Mutex<Vec<(usize, Priority)>>>,
    is_ready: Arc<AtomicBool>,
}

async fn scene() -> Scene {
    let described = Arc::<Mutex<Vec<_>>>::default();
    let is_ready = Arc::new(AtomicBool::new(true));
    let (asked, ready) = (Arc::clone(&described), Arc::clone(&is_ready));
    let lab = Lab::through(|own| Cheap {
        own,
        described: asked,
        is_ready: ready,
    })
    .await;
    Scene {
        lab,
        described,
        is_ready,
    }
}

#[tokio::test(start_paused = true)]
async fn many_newcomers_are_described_in_few_calls_and_get_everything() {
    let Scene {
        mut lab, described, ..
    } = scene().await;
    lab.add_machines(30);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "True");
    }
    lab.pass(MINUTE).await;
    for machine in &lab.machines {
        assert!(!lab.is_tainted(&machine.name), "{}", machine.name);
        let node = lab.api.world().node(&machine.name).unwrap();
        let addresses = node["status"]["addresses"].as_array().unwrap();
        assert!(addresses.len() > 1, "{addresses:?}");
        assert!(node["metadata"]["labels"]["topology.kubernetes.io/zone"].is_string());
    }
    let described = described.lock().unwrap();
    let urgent = described.iter().filter(|(_, p)| *p == Priority::Urgent);
    let (calls, instances) = urgent.fold((0, 0), |(calls, all), (n, _)| (calls + 1, all + n));
    assert_eq!(instances, 30);
    assert!(calls <= 5, "{calls} calls: {described:?}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_never_written_and_a_change_is_found_by_describing() {
    let Scene { mut lab, .. } = scene().await;
    lab.add_machines(1);
    lab.add_node(lab.name(0), "True");
    lab.pass(MINUTE).await;
    let addresses = || lab.api.world().node(lab.name(0)).unwrap()["status"]["addresses"].clone();
    let before = addresses();
    lab.pass(MINUTE * 15).await;
    assert_eq!(addresses(), before, "a summary shows no address");
    let moved = MachineAddress::private([10, 7, 7, 7].into());
    lab.cloud
        .set_addresses(lab.machines[0].id, vec![moved])
        .unwrap();
    lab.pass(MINUTE * 15).await;
    assert!(
        addresses().to_string().contains("10.7.7.7"),
        "{}",
        addresses()
    );
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_not_ready_holds_its_node_back_with_the_reason() {
    let Scene {
        mut lab, is_ready, ..
    } = scene().await;
    is_ready.store(false, Ordering::SeqCst);
    // A few newcomers would be looked up one by one, and a look-up is complete.
    lab.add_machines(10);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "True");
    }
    lab.pass(MINUTE).await;
    assert!(lab.is_tainted(lab.name(0)));
    let events = lab.api.events("InitializationDelayed");
    assert!(!events.is_empty());
    assert!(
        events[0].message.contains("its guest reports no address"),
        "{events:?}"
    );
    is_ready.store(true, Ordering::SeqCst);
    lab.pass(MINUTE * 6 + SECOND).await;
    assert!(!lab.is_tainted(lab.name(0)));
}
