//! Nodes that are of the cloud, but whose machines it was never told how to look for.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, CloudProvider, Doubt, Existence, Instances, Match, NodeFacts, Sighting, Sweep,
};
use serde_json::json;

use crate::lab::{Lab, MINUTE, TEN_MINUTES};

/// A cloud with dedicated servers for which it has no login.
struct NoLogin(Arc<dyn CloudProvider>);

impl NoLogin {
    fn machines(&self) -> &dyn Instances {
        self.0.instances().unwrap()
    }
}

#[async_trait]
impl Instances for NoLogin {
    async fn sweep(&self) -> Result<Sweep, CloudError> {
        self.machines().sweep().await
    }
    async fn find(&self, node: &NodeFacts, sighting: Option<&Sighting>) -> Existence {
        match &node.provider_id {
            Some(id) if node.name.starts_with("dedicated-") => Existence::Unknown(Doubt::NotOurs {
                id: id.clone(),
                why: "there is no login".to_owned(),
            }),
            _ => self.machines().find(node, sighting).await,
        }
    }
    fn identify<'a>(&self, node: &NodeFacts, sweep: &'a Sweep) -> Match<'a> {
        self.machines().identify(node, sweep)
    }
}

/// Five Ready Nodes on dedicated servers.
async fn lab() -> Lab {
    let lab = Lab::through(NoLogin).await;
    for number in 0..5 {
        let spec = json!({"providerID": format!("local://demo/{}", 9000 + number)});
        let name = format!("dedicated-{number}");
        lab.add_node_with(&name, "True", &json!({"spec": spec}));
    }
    lab
}

#[tokio::test(start_paused = true)]
async fn newcomers_need_nobody_to_vouch_who_cannot() {
    for newcomers in [1, 8] {
        let mut lab = lab().await;
        lab.add_machines(newcomers);
        for machine in &lab.machines {
            lab.add_node(&machine.name, "True");
        }
        lab.pass(MINUTE).await;
        for machine in &lab.machines {
            assert!(!lab.is_tainted(&machine.name), "{}", machine.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_ready_node_that_nobody_can_look_for_stops_no_deletion_and_is_kept_itself() {
    let mut lab = lab().await;
    lab.add_machines(3);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "True");
    }
    lab.pass(MINUTE).await;
    lab.lose([0]);
    let silent = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    lab.api.world().change("dedicated-0", &silent);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.deleted(), [lab.name(0)]);
    assert!(!lab.is_halted());
}
