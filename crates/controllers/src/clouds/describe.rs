//! Completes instances that a list shows as summaries. All who ask within a moment share one call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Instance, Priority};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::ProviderCell;

/// How long the first who asks waits for others.
const GATHER: Duration = Duration::from_millis(20);

type Answer = Result<Instance, CloudError>;

/// Asks a cloud for the details of instances, in batches.
pub(crate) struct Descriptions {
    provider: Arc<ProviderCell>,
    waiting: Mutex<Vec<Waiting>>,
    /// Held by the one who asks for all.
    asking: tokio::sync::Mutex<()>,
}

struct Waiting {
    instance: Instance,
    priority: Priority,
    answer: oneshot::Sender<Answer>,
}

impl Descriptions {
    pub(super) fn new(provider: Arc<ProviderCell>) -> Self {
        Self {
            provider,
            waiting: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// The instance with everything that its Node is given.
    pub(crate) async fn describe(&self, instance: Instance, priority: Priority) -> Answer {
        if !instance.is_summary {
            return Ok(instance);
        }
        let mut answer = self.enqueue(&instance, priority);
        loop {
            let _asking = self.asking.lock().await;
            match answer.try_recv() {
                Ok(answer) => return answer,
                // Whoever asked for all was cancelled.
                Err(TryRecvError::Closed) => answer = self.enqueue(&instance, priority),
                Err(TryRecvError::Empty) => {}
            }
            tokio::time::sleep(GATHER).await;
            self.ask_for_all().await;
        }
    }

    fn enqueue(&self, instance: &Instance, priority: Priority) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.lock().push(Waiting {
            instance: instance.clone(),
            priority,
            answer: sender,
        });
        receiver
    }

    async fn ask_for_all(&self) {
        let mut waiting = std::mem::take(&mut *self.lock());
        waiting.retain(|one| !one.answer.is_closed());
        let Some(priority) = waiting.iter().map(|one| one.priority).max() else {
            return;
        };
        let provider = self.provider.current();
        let (instances, senders): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .map(|one| (one.instance, one.answer))
            .unzip();
        let answers = match provider.instances() {
            Some(capable) => capable.describe(instances, priority).await,
            None => Vec::new(),
        };
        let mut answers = answers.into_iter();
        for sender in senders {
            let answer = answers.next().unwrap_or_else(|| Err(unanswered()));
            // One that no longer waits needs no answer.
            let _ = sender.send(answer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unanswered() -> CloudError {
    CloudError::new(
        "describe instances",
        ErrorKind::Incomplete,
        "the cloud did not describe all instances that it was asked for",
    )
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use cloudkeel_api::{CloudProvider, Doubt, Existence, Instances, NodeFacts, Sighting, Sweep};

    use super::*;

    /// Describes instances in a second, and writes down what it was asked for.
    #[derive(Default)]
    struct Slow {
        asked: Mutex<Vec<(Vec<String>, Priority)>>,
        forgets_one: bool,
    }

    impl CloudProvider for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn instances(&self) -> Option<&dyn Instances> {
            Some(self)
        }
    }

    #[async_trait]
    impl Instances for Slow {
        async fn sweep(&self) -> Result<Sweep, CloudError> {
            Err(CloudError::unsupported("list", "not here"))
        }
        async fn find(&self, node: &NodeFacts, _: Option<&Sighting>) -> Existence {
            let looked_for = node.name.clone();
            Existence::Unknown(Doubt::NoMatch { looked_for })
        }
        async fn describe(&self, mut instances: Vec<Instance>, priority: Priority) -> Vec<Answer> {
            let names = instances.iter().map(|instance| instance.name.clone());
            self.asked.lock().unwrap().push((names.collect(), priority));
            tokio::time::sleep(Duration::from_secs(1)).await;
            if self.forgets_one {
                instances.pop();
            }
            let complete = |mut instance: Instance| {
                instance.is_summary = false;
                instance.zone = Some(format!("zone of {}", instance.name));
                Ok(instance)
            };
            instances.into_iter().map(complete).collect()
        }
    }

    fn descriptions(slow: Slow) -> (Arc<Slow>, Descriptions) {
        let slow = Arc::new(slow);
        let provider: Arc<dyn CloudProvider> = Arc::<Slow>::clone(&slow);
        let cell = Arc::new(ProviderCell::new(provider));
        (slow, Descriptions::new(cell))
    }

    fn summary(name: &str) -> Instance {
        let id = format!("slow://{name}").parse().unwrap();
        Instance {
            is_summary: true,
            ..Instance::new(id, name)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_together_share_a_call_with_the_highest_priority() {
        let (slow, descriptions) = descriptions(Slow::default());
        let asks = [
            ("a", Priority::Background),
            ("b", Priority::Urgent),
            ("c", Priority::Normal),
        ];
        let asks = asks.map(|(name, priority)| descriptions.describe(summary(name), priority));
        for (answer, name) in futures::future::join_all(asks)
            .await
            .into_iter()
            .zip(["a", "b", "c"])
        {
            let described = answer.unwrap();
            assert_eq!(described.zone, Some(format!("zone of {name}")));
            assert!(!described.is_summary);
        }
        let asked = slow.asked.lock().unwrap();
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(*asked, [(names, Priority::Urgent)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_complete_costs_no_call() {
        let (slow, descriptions) = descriptions(Slow::default());
        let complete = Instance::new("slow://1".parse().unwrap(), "a");
        let answer = descriptions
            .describe(complete.clone(), Priority::Normal)
            .await;
        assert_eq!(answer.unwrap(), complete);
        assert!(slow.asked.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_waits_for_a_call_that_was_cancelled_asks_again() {
        let (slow, descriptions) = descriptions(Slow::default());
        let mut first = Box::pin(descriptions.describe(summary("a"), Priority::Normal));
        let mut second = Box::pin(descriptions.describe(summary("b"), Priority::Normal));
        assert!(futures::poll!(&mut first).is_pending());
        assert!(futures::poll!(&mut second).is_pending());
        tokio::time::advance(GATHER).await;
        assert!(futures::poll!(&mut first).is_pending(), "it asks for both");
        drop(first);
        assert_eq!(second.await.unwrap().name, "b");
        assert_eq!(slow.asked.lock().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_instance_without_a_description_is_an_error_and_not_a_summary() {
        let slow = Slow {
            forgets_one: true,
            ..Slow::default()
        };
        let (_, descriptions) = descriptions(slow);
        let answer = descriptions.describe(summary("a"), Priority::Normal).await;
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Incomplete);
    }
}
