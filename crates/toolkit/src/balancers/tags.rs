//! The tags of balancers, where a tag is an object of its own: what is put on a balancer, taken off, and deleted.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{BalancerRef, CloudError, Priority, ServiceFacts, StepAction};

use super::{Classified, CloudBalancer, OwnerTag, SHARED_TAG, TaggedBalancer, TaggedBalancers};
use crate::{Cause, RestApi, Schedule, ServiceFollower};

/// The pause between two passes of [`TagSync`].
const PERIOD: Duration = Duration::from_mins(15);
/// Clusters of one account do not all begin at the same time.
const MAX_DELAY: Duration = Duration::from_mins(10);

/// How a cloud keeps tags.
#[async_trait]
pub trait TagApi: Deref<Target = RestApi> + Send + Sync {
    /// The name of the controller [`TagSync`].
    const SYNC: &'static str;

    /// Puts a tag on balancers, and creates it if it is not there.
    async fn tag(&self, tag: &str, balancers: &[String]) -> Result<(), CloudError>;

    /// Takes a tag off a balancer.
    async fn untag(&self, tag: &str, balancer: &str) -> Result<(), CloudError>;

    /// Deletes a tag, wherever it is.
    async fn delete_tag(&self, tag: &str) -> Result<(), CloudError>;

    /// Whether a tag is there and on nothing.
    async fn is_left(&self, tag: &str) -> Result<bool, CloudError>;
}

/// What can be done about tags, as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagStep {
    /// Puts the tags of its owner and of the cluster on a balancer that lacks them.
    Adopt {
        /// Which balancer.
        id: String,
        /// What it lacks.
        tags: Vec<String>,
    },
    /// Puts on the tag of a balancer that other clients use too.
    Share {
        /// Which balancer.
        id: String,
    },
    /// Takes that tag off.
    Unshare {
        /// Which balancer.
        id: String,
    },
    /// Takes the owner tag off a balancer, which stays. No other balancer has it.
    Release {
        /// Which balancer.
        id: String,
        /// The tag.
        tag: String,
    },
    /// Deletes the owner tag of a balancer that is gone.
    Delete {
        /// The tag.
        tag: String,
    },
}

impl TagStep {
    /// A balancer that the Service asks for gets the tags that it lacks, also if the Service points at it already; any other
    /// one only that which says whether it is shared.
    pub fn to_tag<B: TaggedBalancer>(
        balancer_ref: &BalancerRef,
        wanted: &[String],
        balancer: &B,
    ) -> Vec<Self> {
        let (id, present) = (CloudBalancer::id(balancer), balancer.tags());
        let is_asked = balancer_ref.adopt.is_some();
        let lacking = wanted.iter().filter(|tag| !present.contains(tag));
        let lacking = lacking.filter(|tag| is_asked && *tag != SHARED_TAG);
        let tags: Vec<_> = lacking.cloned().collect();
        let is_shared = |tags: &[String]| tags.iter().any(|tag| tag == SHARED_TAG);
        let mark = match (is_shared(present), is_shared(wanted)) {
            (false, true) => Some(Self::Share { id: id.clone() }),
            (true, false) => Some(Self::Unshare { id: id.clone() }),
            _ => None,
        };
        let adopt = (!tags.is_empty()).then_some(Self::Adopt { id, tags });
        mark.into_iter().chain(adopt).collect()
    }

    /// Without its owner tag it is no longer the Service's. One that never had it needs nothing.
    pub fn to_release<B: TaggedBalancer>(tag: OwnerTag, balancer: &B) -> Option<Self> {
        let tag = tag.among(balancer.tags())?.clone();
        let id = CloudBalancer::id(balancer);
        Some(Self::Release { id, tag })
    }

    /// What kind of step it is.
    pub const fn action(&self) -> StepAction {
        match self {
            Self::Delete { .. } => StepAction::Delete,
            _ => StepAction::Change,
        }
    }

    /// Does it.
    pub async fn execute(&self, api: &impl TagApi) -> Result<(), CloudError> {
        match self {
            Self::Adopt { id, tags } => {
                for tag in tags {
                    api.tag(tag, std::slice::from_ref(id)).await?;
                }
                Ok(())
            }
            Self::Share { id } => api.tag(SHARED_TAG, std::slice::from_ref(id)).await,
            Self::Unshare { id } => api.untag(SHARED_TAG, id).await,
            Self::Release { tag, .. } => {
                let released = api.delete_tag(tag).await;
                released.map_err(CloudError::vanished)
            }
            Self::Delete { tag } => api.delete_tag(tag).await,
        }
    }
}

impl fmt::Display for TagStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopt { id, .. } => write!(f, "adopt load balancer {id}"),
            Self::Share { id } => write!(f, "put tag {SHARED_TAG} on load balancer {id}"),
            Self::Unshare { id } => write!(f, "take tag {SHARED_TAG} off load balancer {id}"),
            Self::Release { id, .. } => write!(f, "release load balancer {id}"),
            Self::Delete { tag } => write!(f, "delete tag {tag}"),
        }
    }
}

impl<B: TaggedBalancer> TaggedBalancers<B> {
    /// The owner tag of a Service that goes. It outlives its balancer, so it is deleted too. While it is on something, a list
    /// that does not show that is wrong.
    pub async fn left_tag(
        &self,
        api: &impl TagApi,
        balancer_ref: &BalancerRef,
        found: &Classified<B>,
    ) -> Result<Option<String>, CloudError> {
        let mut tags = found.ours.iter().map(TaggedBalancer::tags);
        if let Some(tag) = tags.find_map(|tags| self.tag.among(tags)) {
            return Ok(Some(tag.clone()));
        }
        let tag = self.tag.of(balancer_ref, self.cluster.as_deref());
        Ok(api.is_left(&tag).await?.then_some(tag))
    }
}

/// Puts the cluster's tag on the balancers of its Services, also on those that were created without it.
#[derive(Debug)]
pub struct TagSync<A, B> {
    /// The cloud.
    pub api: A,
    /// Its balancers.
    pub balancers: TaggedBalancers<B>,
    /// The tag of this cluster.
    pub tag: String,
}

#[async_trait]
impl<A: TagApi, B: TaggedBalancer> ServiceFollower for TagSync<A, B> {
    const NAME: &'static str = A::SYNC;

    fn schedule(&self) -> Schedule {
        Schedule::spread(PERIOD, MAX_DELAY, &self.tag)
    }

    /// One list for all Services, and one call for all that lack the tag.
    async fn reconcile(&self, services: &[ServiceFacts], _: Cause) -> Result<(), CloudError> {
        let served = services.iter().filter(|it| it.has_managed_balancer());
        let served: Vec<_> = served.collect();
        if served.is_empty() {
            return Ok(());
        }
        let all = self.balancers.all(&self.api, Priority::Background).await?;
        let is_served = |it: &B| served.iter().any(|of| self.balancers.is_of(it, of));
        let lacking = all.iter().filter(|it| !it.tags().contains(&self.tag));
        let untagged = lacking.filter(|it| is_served(it)).map(CloudBalancer::id);
        let untagged: Vec<_> = untagged.collect();
        if untagged.is_empty() {
            return Ok(());
        }
        self.api.tag(&self.tag, &untagged).await
    }
}

#[cfg(test)]
mod tests;
