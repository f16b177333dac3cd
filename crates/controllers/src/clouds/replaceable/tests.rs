use cloudkeel_api::{Capability, SystemClock};
use tokio::sync::Notify;

use super::*;

/// A cloud with one number to tell it by, and machines if it is asked to have some.
struct Numbered {
    number: u32,
    has_machines: bool,
    may_answer: Arc<Notify>,
}

fn numbered(number: u32, has_machines: bool) -> (Arc<Notify>, Arc<dyn CloudProvider>) {
    let may_answer = Arc::new(Notify::new());
    let cloud = Numbered {
        number,
        has_machines,
        may_answer: Arc::clone(&may_answer),
    };
    (may_answer, Arc::new(cloud))
}

#[async_trait]
impl CloudProvider for Numbered {
    fn name(&self) -> &'static str {
        "numbered"
    }
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        Ok(ScopeFingerprint::new(self.number.to_string()))
    }
    fn instances(&self) -> Option<&dyn Instances> {
        self.has_machines.then_some(self)
    }
    fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
        vec![Arc::new(Says(self.number))]
    }
}

#[async_trait]
impl Instances for Numbered {
    async fn sweep(&self) -> Result<Sweep, CloudError> {
        self.may_answer.notified().await;
        let scope = ScopeFingerprint::new(self.number.to_string());
        Ok(Sweep::complete(
            scope,
            cloudkeel_api::Clock::now(&SystemClock),
            [],
        ))
    }
    async fn find(&self, node: &NodeFacts, _: Option<&Sighting>) -> Existence {
        Existence::Unknown(Doubt::NoMatch {
            looked_for: node.name.clone(),
        })
    }
}

struct Says(u32);

#[async_trait]
impl Webhook for Says {
    fn name(&self) -> &'static str {
        "says"
    }
    fn path(&self) -> &'static str {
        "/says"
    }
    async fn review(&self, _: &AdmissionRequest) -> Result<Admission, CloudError> {
        Ok(Admission::Deny {
            why: self.0.to_string(),
        })
    }
}

fn request() -> AdmissionRequest {
    serde_json::from_value(serde_json::json!({"uid": "u", "operation": "CREATE"})).unwrap()
}

#[tokio::test]
async fn a_call_is_finished_by_the_provider_that_began_it() {
    let (may_answer, first) = numbered(1, true);
    let cloud = Replaceable::new(first);
    let sweeping = cloud.sweep();
    tokio::pin!(sweeping);
    assert!(futures::poll!(&mut sweeping).is_pending());
    let (_, second) = numbered(2, true);
    let before = cloud.replace(second);
    assert_eq!(before.check().await.unwrap().as_str(), "1");
    assert_eq!(cloud.check().await.unwrap().as_str(), "2");
    may_answer.notify_one();
    assert_eq!(sweeping.await.unwrap().scope().as_str(), "1");
}

#[tokio::test]
async fn a_capability_that_went_away_is_unsupported_and_never_gone() {
    let (_, first) = numbered(1, true);
    let cloud = Replaceable::new(first);
    let instances = CloudProvider::instances(&cloud).unwrap();
    let (_, without_machines) = numbered(2, false);
    cloud.replace(without_machines);
    let error = instances.sweep().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let answers = instances.find_many(&[NodeFacts::default()], None).await;
    assert!(matches!(answers.as_slice(), [Existence::Unknown(_)]));
    assert_eq!(cloud.capabilities(), [Capability::Webhooks]);
}

#[tokio::test]
async fn a_webhook_that_is_served_already_asks_the_provider_in_use() {
    let (_, first) = numbered(1, false);
    let cloud = Replaceable::new(first);
    let served = cloud.webhooks().remove(0);
    for number in [1, 2] {
        cloud.replace(numbered(number, false).1);
        let expected = Admission::Deny {
            why: number.to_string(),
        };
        assert_eq!(served.review(&request()).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn replacements_are_told() {
    let cloud = Replaceable::new(numbered(1, false).1);
    let mut told = cloud.replacements();
    assert!(!told.has_changed().unwrap());
    cloud.replace(numbered(2, false).1);
    told.changed().await.unwrap();
    assert_eq!(*told.borrow(), 1);
}
