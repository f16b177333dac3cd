//! Nodes that are of the cloud, but whose machines it is not configured to look for.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, CloudProvider, Doubt, Existence, InstanceList, Instances, KnownInstance, Match,
    NodeFacts,
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
    async fn list(&self) -> Result<InstanceList, CloudError> {
        self.machines().list().await
    }
    async fn find(&self, node: &NodeFacts, known_instance: Option<&KnownInstance>) -> Existence {
        match &node.provider_id {
            Some(id) if node.name.starts_with("dedicated-") => Existence::Unknown(Doubt::NotOurs {
                id: id.clone(),
                why: "there is no login".to_owned(),
            }),
            _ => self.machines().find(node, known_instance).await,
        }
    }
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        self.machines().identify(node, list)
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
async fn new_nodes_need_no_confirmation_by_nodes_that_cannot_be_looked_up() {
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
async fn a_ready_node_that_the_cloud_cannot_look_up_stops_no_deletion_and_is_kept_itself() {
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
    assert!(!lab.are_deletions_stopped());
}
