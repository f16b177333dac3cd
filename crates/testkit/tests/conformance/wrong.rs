//! The local provider, with one sin.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, CloudProvider, Instances, LoadBalancerSpec, LoadBalancers, ProviderId, Recognition,
    Routes, ScopeFingerprint,
};
use cloudkeel_testkit::conformance::SimulatedSetup;
use cloudkeel_testkit::simulated_cloud::{Fault, SimulatedCloud};

use crate::sin::Sin;

/// A provider that does one thing wrong and all others right.
pub(crate) struct Wrong {
    pub(crate) right: Arc<dyn CloudProvider>,
    pub(crate) cloud: SimulatedCloud,
    pub(crate) sin: Sin,
    /// Tells processes apart.
    pub(crate) process: u64,
    /// How many attempts have failed or been made, as the sin counts them.
    pub(crate) count: AtomicU64,
    /// What was asked for last.
    pub(crate) last_wish: Mutex<Option<LoadBalancerSpec>>,
}

impl Wrong {
    pub(crate) fn instances_of_right(&self) -> &dyn Instances {
        self.right.instances().unwrap()
    }

    pub(crate) fn balancers_of_right(&self) -> &dyn LoadBalancers {
        self.right.load_balancers().unwrap()
    }

    /// Whether a call has met a fault that does harm.
    pub(crate) fn has_met_a_fault(&self) -> bool {
        let log = self.cloud.call_log();
        let mut faults = log.iter().filter_map(|call| call.fault.as_ref());
        faults.any(|fault| !matches!(fault, Fault::Slow { .. }))
    }

    pub(crate) fn routes_of_right(&self) -> &dyn Routes {
        self.right.routes().unwrap()
    }
}

#[async_trait]
impl CloudProvider for Wrong {
    fn name(&self) -> &str {
        self.right.name()
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.right.recognize(id)
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        let scope = self.right.check().await?;
        Ok(match self.sin {
            Sin::NamesItsScopeAnew => ScopeFingerprint::new(self.process.to_string()),
            _ => scope,
        })
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(self)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }
}

/// Clouds that are seen by a provider with this sin.
pub(crate) fn setup(sin: Sin) -> SimulatedSetup {
    let processes = Arc::new(AtomicU64::new(0));
    SimulatedSetup::new("wrong", move |cloud, context| {
        let process = processes.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let right = cloud.provider(&context).await;
            let right = Arc::new(right.map_err(|error| error.to_string())?);
            let count = AtomicU64::new(0);
            Ok(Arc::new(Wrong {
                right,
                cloud,
                sin,
                process,
                count,
                last_wish: Mutex::default(),
            }) as Arc<dyn CloudProvider>)
        })
    })
}
