//! A bug panics outside of the work on an object. The work on objects, loops and requests are tested where they are.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, Capability, CloudError, CloudProvider, Descriptor, NodeFacts, ProviderContext,
    ProviderFactory, ProviderId, ProviderInput, Recognition, Registry, Route, RouteChange, Routes,
    Shared,
};
use cloudkeel_manager::run::RunError;
use serde_json::json;

use crate::simulated::Simulated;

/// A cloud whose provider panics in the handler of the Node watch, when it sees a certain ID.
struct Buggy;

impl CloudProvider for Buggy {
    fn name(&self) -> &'static str {
        "buggy"
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        assert_ne!(id.as_str(), "buggy:///trap", "planted");
        Recognition::Ours
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }
}

#[async_trait]
impl Routes for Buggy {
    async fn list(&self, _: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        Ok(Vec::new())
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        changes.iter().map(|_| Ok(())).collect()
    }
}

#[async_trait]
impl ProviderFactory for Buggy {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            name: "buggy",
            summary: "A provider with a bug.",
            replaces: &[],
            capabilities: vec![Capability::Routes],
            keys: Vec::new(),
        }
    }

    async fn build(
        &self,
        _: ProviderInput,
        _: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        Ok(Arc::new(Self))
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_in_a_watch_the_manager_releases_its_lease_and_ends() {
    let mut simulated = Simulated::new();
    let registry = Registry::new().with(Buggy).expect("one provider");
    let flags = [
        "cloudkeel",
        "--cloud-provider=buggy",
        "--secure-port=0",
        "--controllers=node-route-controller",
        "--cluster-cidr=10.244.0.0/16",
    ];
    let manager = simulated.run("first", registry, &flags);
    simulated.advance(Duration::from_mins(1)).await;
    assert_eq!(simulated.leader().0, "first");

    let spec = json!({"providerID": "buggy:///trap", "podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24"]});
    simulated.register("trap", &spec);
    let ended = tokio::time::timeout(Duration::from_mins(1), manager).await;
    let ended = ended.expect("it does not hang").expect("it ends in order");
    let Err(RunError::Panicked(why)) = ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains("planted"), "{why}");
    assert_eq!(simulated.leader().0, "", "the lease is released");
}
