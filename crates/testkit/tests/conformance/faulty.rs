//! The local provider with every capability, and with one mutation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudkeel_api::{
    BackgroundController, CloudError, CloudProvider, ErrorKind, Instance, Instances,
    LoadBalancerSpec, LoadBalancers, ProviderId, Recognition, Routes, ScopeFingerprint, Volumes,
    Webhook,
};
use cloudkeel_testkit::conformance::SimulatedAdapter;
use cloudkeel_testkit::simulated_cloud::{Fault, SimulatedCloud};

use crate::faulty_extras::{controllers, webhooks};
use crate::mutant::Mutant;
use crate::shared::{SHARE, SharedBalancers};

/// A provider that does one thing wrong and all others right.
pub(crate) struct Faulty {
    pub(crate) correct: Arc<dyn CloudProvider>,
    pub(crate) cloud: SimulatedCloud,
    pub(crate) mutant: Mutant,
    /// Tells processes apart.
    pub(crate) process: u64,
    /// How many attempts have failed or been made, as the mutant counts them.
    pub(crate) count: AtomicU64,
    /// Whether something began that has not ended.
    pub(crate) busy: AtomicBool,
    /// What was asked for last.
    pub(crate) last_spec: Mutex<Option<LoadBalancerSpec>>,
    /// The instances that were seen.
    pub(crate) seen: Mutex<BTreeMap<ProviderId, Instance>>,
    /// Which Services share balancers.
    pub(crate) shared: SharedBalancers,
}

impl Faulty {
    pub(crate) fn instances_of_correct(&self) -> &dyn Instances {
        self.correct.instances().unwrap()
    }

    pub(crate) fn balancers_of_correct(&self) -> &dyn LoadBalancers {
        self.correct.load_balancers().unwrap()
    }

    pub(crate) fn routes_of_correct(&self) -> &dyn Routes {
        self.correct.routes().unwrap()
    }

    /// Does some work. This mutant is busy for good if the work is dropped before it ends.
    pub(crate) async fn exclusively<T>(
        &self,
        mutant: Mutant,
        work: impl Future<Output = T>,
    ) -> Result<T, CloudError> {
        if self.mutant != mutant {
            return Ok(work.await);
        }
        if self.busy.swap(true, Ordering::Relaxed) {
            return Err(CloudError::new("begin", ErrorKind::Busy, "still at it"));
        }
        // The work may need no await.
        tokio::task::yield_now().await;
        let done = work.await;
        self.busy.store(false, Ordering::Relaxed);
        Ok(done)
    }

    /// Whether a call has met a fault that does harm.
    pub(crate) fn has_met_a_fault(&self) -> bool {
        let log = self.cloud.call_log();
        let mut faults = log.iter().filter_map(|call| call.fault.as_ref());
        faults.any(|fault| !matches!(fault, Fault::Slow { .. }))
    }

    /// Whether this fault is being played.
    pub(crate) fn is_played(&self, fits: impl Fn(&Fault) -> bool) -> bool {
        let rules = self.cloud.faults().rules();
        rules.iter().any(|rule| fits(&rule.fault))
    }

    /// Whether reads lag.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_played(|fault| matches!(fault, Fault::Stale { .. }))
    }

    /// The mutated form of the check of a credential.
    fn mutated_check(
        &self,
        checked: Result<ScopeFingerprint, CloudError>,
    ) -> Result<ScopeFingerprint, CloudError> {
        let refused = |message: &str| {
            Err(CloudError::new(
                "check",
                ErrorKind::Unauthenticated,
                message,
            ))
        };
        match (checked, self.mutant) {
            (Ok(_), Mutant::NamesItsScopeAnew) => {
                Ok(ScopeFingerprint::new(self.process.to_string()))
            }
            (Ok(_), Mutant::NeverRecovers) if self.busy.load(Ordering::Relaxed) => refused("again"),
            (Err(_), Mutant::NeverRecovers) => {
                self.busy.store(true, Ordering::Relaxed);
                refused("once")
            }
            (Err(_), Mutant::TakesDeniedForUnauthenticated) => refused("no"),
            (Err(error), Mutant::ShowsItsTokenInErrors) => {
                let message = format!("{} was refused", SimulatedCloud::TOKEN);
                Err(CloudError::new("check", error.kind(), message))
            }
            (Err(error), Mutant::ShowsItsTokenInBase64) => {
                let header = STANDARD.encode(format!("user:{}", SimulatedCloud::TOKEN));
                let message = format!("Basic {header} was refused");
                Err(CloudError::new("check", error.kind(), message))
            }
            (checked, Mutant::LogsItsTokenUrlEncoded) => {
                let token = SimulatedCloud::TOKEN.replace('-', "%2D");
                tracing::debug!("GET /v1/scope?token={token}");
                checked
            }
            (checked, Mutant::LogsItsToken) => {
                tracing::debug!(token = SimulatedCloud::TOKEN, "checked");
                checked
            }
            (checked, _) => checked,
        }
    }
}

#[async_trait]
impl CloudProvider for Faulty {
    fn name(&self) -> &str {
        self.correct.name()
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.correct.recognize(id)
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        if self.mutant == Mutant::ChecksNothing {
            return Ok(ScopeFingerprint::new("somewhere"));
        }
        let checked = self.exclusively(Mutant::StaysBusyWhenCheckIsDropped, self.correct.check());
        self.mutated_check(checked.await?)
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

    fn volumes(&self) -> Option<&dyn Volumes> {
        Some(self)
    }

    fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
        webhooks(self)
    }

    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        controllers(self)
    }
}

/// Clouds that are seen by this mutant.
pub(crate) fn adapter(mutant: Mutant) -> SimulatedAdapter {
    let processes = Arc::new(AtomicU64::new(0));
    let adapter = SimulatedAdapter::new("faulty", move |cloud, context| {
        let process = processes.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let correct = Arc::new(cloud.provider(&context).await?);
            Ok(Arc::new(Faulty {
                correct,
                cloud,
                mutant,
                process,
                count: AtomicU64::new(0),
                busy: AtomicBool::new(false),
                last_spec: Mutex::default(),
                seen: Mutex::default(),
                shared: SharedBalancers::default(),
            }) as Arc<dyn CloudProvider>)
        })
    });
    adapter
        .with_settings(|settings| settings.features.sctp = true)
        .with_samples(|samples| {
            samples.annotations = vec![("local.cloudkeel.dev/lb-type", "large")];
            samples.node_selector = Some("test/node-selector");
            samples.share = Some(|id| BTreeMap::from([(SHARE.to_owned(), id.to_owned())]));
        })
}
