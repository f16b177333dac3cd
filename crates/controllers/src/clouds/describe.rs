//! Completes instances that a list shows as summaries. Concurrent callers share one call.

use cloudkeel_api::{CloudError, ErrorKind, Instance, Priority};

use super::Cloud;
use crate::runtime::Batch;

type Answer = Result<Instance, CloudError>;

/// Requests for the details of instances, which are sent in batches.
pub(super) type Descriptions = Batch<(Instance, Priority), Answer>;

impl Cloud {
    /// The instance with everything that its Node is given.
    pub(crate) async fn describe(&self, instance: Instance, priority: Priority) -> Answer {
        if !instance.is_summary {
            return Ok(instance);
        }
        let request = (instance, priority);
        let answer = self.descriptions.ask(request, |all| self.describe_all(all));
        answer.await.unwrap_or_else(|| {
            let why = "the cloud did not describe all instances that it was asked for";
            let kind = ErrorKind::Incomplete;
            Err(CloudError::new("describe instances", kind, why))
        })
    }

    /// The most urgent of the requests decides how urgent the call is.
    async fn describe_all(&self, all: Vec<(Instance, Priority)>) -> Vec<Answer> {
        let (instances, priorities): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let priority = priorities.into_iter().max().unwrap_or_default();
        match self.provider().instances() {
            Some(capable) => capable.describe(instances, priority).await,
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use async_trait::async_trait;
    use cloudkeel_api::{
        CloudProvider, Doubt, Existence, InstanceList, Instances, KnownInstance, NodeFacts,
        SystemClock,
    };
    use parking_lot::Mutex;

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
        async fn list(&self) -> Result<InstanceList, CloudError> {
            Err(CloudError::unsupported("list", "not here"))
        }
        async fn find(&self, node: &NodeFacts, _: Option<&KnownInstance>) -> Existence {
            let looked_for = node.name.clone();
            Existence::Unknown(Doubt::NoMatch { looked_for })
        }
        async fn describe(&self, mut instances: Vec<Instance>, priority: Priority) -> Vec<Answer> {
            let names = instances.iter().map(|instance| instance.name.clone());
            self.asked.lock().push((names.collect(), priority));
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

    fn cloud(slow: Slow) -> (Arc<Slow>, Arc<Cloud>) {
        let slow = Arc::new(slow);
        let provider: Arc<dyn CloudProvider> = Arc::<Slow>::clone(&slow);
        let cloud = Cloud::new("slow", provider, None, Arc::new(SystemClock));
        (slow, cloud)
    }

    fn summary(name: &str) -> Instance {
        let id = format!("slow://{name}").parse().unwrap();
        Instance {
            is_summary: true,
            ..Instance::new(id, name)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_a_call_with_the_highest_priority() {
        let (slow, cloud) = cloud(Slow::default());
        let asks = [
            ("a", Priority::Background),
            ("b", Priority::Urgent),
            ("c", Priority::Normal),
        ];
        let asks = asks.map(|(name, priority)| cloud.describe(summary(name), priority));
        for (answer, name) in futures::future::join_all(asks)
            .await
            .into_iter()
            .zip(["a", "b", "c"])
        {
            let described = answer.unwrap();
            assert_eq!(described.zone, Some(format!("zone of {name}")));
            assert!(!described.is_summary);
        }
        let asked = slow.asked.lock();
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(*asked, [(names, Priority::Urgent)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_complete_costs_no_call() {
        let (slow, cloud) = cloud(Slow::default());
        let complete = Instance::new("slow://1".parse().unwrap(), "a");
        let answer = cloud.describe(complete.clone(), Priority::Normal).await;
        assert_eq!(answer.unwrap(), complete);
        assert!(slow.asked.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_waits_for_a_cancelled_call_asks_again() {
        let (slow, cloud) = cloud(Slow::default());
        let mut first = Box::pin(cloud.describe(summary("a"), Priority::Normal));
        let mut second = Box::pin(cloud.describe(summary("b"), Priority::Normal));
        assert!(futures::poll!(&mut first).is_pending());
        assert!(futures::poll!(&mut second).is_pending());
        tokio::time::advance(Duration::from_millis(20)).await;
        assert!(futures::poll!(&mut first).is_pending(), "it asks for both");
        drop(first);
        assert_eq!(second.await.unwrap().name, "b");
        assert_eq!(slow.asked.lock().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_instance_without_a_description_is_an_error_and_not_a_summary() {
        let slow = Slow {
            forgets_one: true,
            ..Slow::default()
        };
        let (_, cloud) = cloud(slow);
        let answer = cloud.describe(summary("a"), Priority::Normal).await;
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Incomplete);
    }
}
