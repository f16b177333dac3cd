//! Balancers follow the Nodes: a burst of changes becomes one comparison, and only Services whose targets
//! really differ are enqueued.

use std::sync::Arc;

use tokio::time::Instant;
use tracing::{debug, error};

use super::desired::target_rules;
use super::keys::TargetKeys;
use crate::log_messages::TARGETS_PANICKED;
use crate::runtime::{Urgency, contain};
use crate::service::controller::{ServiceController, ServiceObserver, at};
use crate::service::owner::owner_of_service;
use crate::service::record::Record;
use crate::service::spec::balancer_ref_of;

impl ServiceController {
    /// Compares whenever a burst of changes has ended, or a target is drained.
    pub(crate) async fn follow_nodes(&self) {
        // One that begins anew after a panic has missed a change.
        let mut next_drained = self.compare_targets();
        loop {
            tokio::select! {
                biased;
                () = self.node_changes.ended() => {}
                () = at(next_drained) => {}
            }
            next_drained = self.compare_targets();
        }
    }

    /// Enqueues the Services whose targets differ from those that their balancers have. What is applied
    /// is worked out anew by the worker. Returns when the next target is drained.
    pub(crate) fn compare_targets(&self) -> Option<Instant> {
        let mut behind = Vec::new();
        let mut next: Option<Instant> = None;
        let mut update = None;
        let mut panics = Vec::new();
        self.records.for_each(|key, record| {
            if record.paused.is_some() {
                return;
            }
            let (differs, due) = match contain(|| self.compare(record)) {
                Ok(compared) => compared.unwrap_or_default(),
                Err(panic) => {
                    // The Nodes of all other Services are followed; the worker meets the panic again and retries.
                    error!(service = key, panic, "{TARGETS_PANICKED}");
                    panics.push((key.to_owned(), panic));
                    (true, None)
                }
            };
            if differs {
                behind.push(key.to_owned());
                let update = update.get_or_insert_with(|| Arc::new(self.node_update()));
                record.node_updates.push(Arc::clone(update));
            }
            next = [next, due].into_iter().flatten().min();
        });
        for (key, panic) in panics {
            self.queue.note_panic(key, &panic);
        }
        debug!(services = behind.len(), "syncing nodes to load balancers");
        for key in behind {
            self.queue.add(key, Urgency::Refresh);
        }
        next
    }

    fn node_update(&self) -> NodeUpdate {
        NodeUpdate {
            began: Instant::now(),
            observer: Arc::clone(&self.parts.observer),
        }
    }

    /// Whether a Service's targets differ, and when the next of them is drained. `None` if that is not
    /// known now; a selector that cannot be read is reported by the worker.
    fn compare(&self, record: &mut Record) -> Option<(bool, Option<Instant>)> {
        let current = Arc::clone(record.current_targets()?);
        let service = Arc::clone(&record.seen);
        let owner = owner_of_service(&service, &self.parts.classes)?;
        let provider = self.provider_of(&owner.cloud)?;
        let balancers = provider.load_balancers()?;
        let profile = balancers.profile(&balancer_ref_of(&service, &self.parts.cluster));
        let features = profile.features;
        let rules = target_rules(&service, owner, balancers, features);
        let rules = rules.ok()?;
        let chosen = self.chosen(&rules).keys;
        if record.removed_since.is_empty() && features.drain {
            // What is removed now starts to drain when the worker comes to it.
            return Some((chosen != current, None));
        }
        let (draining, next) = self.draining(&service, &rules, &chosen, record);
        let mut keys = TargetKeys::clone(&chosen);
        keys.extend(draining);
        Some((keys != *current, next))
    }
}

/// A change of Nodes. Every Service whose balancer has yet to follow it holds it; when the last one lets it
/// go, the time is observed.
pub(crate) struct NodeUpdate {
    began: Instant,
    observer: Arc<dyn ServiceObserver>,
}

impl Drop for NodeUpdate {
    fn drop(&mut self) {
        self.observer.nodes_followed(self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Followed(Mutex<Vec<Duration>>);

    impl ServiceObserver for Followed {
        fn hosts_updated(&self, _took: Duration, _failed: bool) {}
        fn nodes_followed(&self, took: Duration) {
            self.0.lock().unwrap().push(took);
        }
        fn published(&self, _cloud: &str, _took: Duration) {}
        fn drifted(&self, _cloud: &str) {}
        fn left_over(&self, _cloud: &str, _balancers: usize) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_lasts_until_the_last_service_has_followed() {
        let followed = Arc::new(Followed::default());
        let update = || {
            let observer = Arc::<Followed>::clone(&followed);
            let began = Instant::now();
            Arc::new(NodeUpdate { began, observer })
        };
        let seconds = |seconds| tokio::time::advance(Duration::from_secs(seconds));
        let first = update();
        let mut a = vec![Arc::clone(&first)];
        let mut b = vec![first];
        seconds(2).await;
        b.push(update());
        seconds(3).await;
        a.clear();
        assert!(followed.0.lock().unwrap().is_empty());
        b.clear();
        let took = [Duration::from_secs(5), Duration::from_secs(3)];
        assert_eq!(*followed.0.lock().unwrap(), took);
    }
}
