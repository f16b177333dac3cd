//! Balancers of a JSON API that are found in one list, and carry their owner in a tag.

use cloudkeel_api::{
    BalancerRef, CloudError, DesiredState, OwnedResource, Priority, ServiceFacts, ServiceRef,
};

use super::ownership::owner_of_unlabelled;
use super::{Classified, CloudBalancer, Labels, Owner, OwnerTag, is_referenced};
use crate::{Resource, RestApi, SharedRead};

/// A balancer with tags.
pub trait TaggedBalancer: CloudBalancer + Resource<Id = String> + Clone + Send + Sync {
    /// Its tags.
    fn tags(&self) -> &[String];
}

/// The balancers of a cloud that looks them up neither by tag nor by name. One without an owner tag, as a Go CCM makes it, is
/// the Service's if the Service points at it.
#[derive(Debug)]
pub struct TaggedBalancers<B> {
    /// How its owner is written.
    pub tag: OwnerTag,
    /// The annotation with the ID of its balancer that a Service carries.
    pub id_annotation: &'static str,
    /// The UID of this cluster.
    pub cluster: Option<String>,
    /// One list serves all callers.
    pub list: SharedRead<Vec<B>>,
}

impl<B: TaggedBalancer> TaggedBalancers<B> {
    /// Those of an account, as the cluster with this UID sees them.
    pub fn new(tag: OwnerTag, id_annotation: &'static str, cluster: Option<String>) -> Self {
        Self {
            tag,
            id_annotation,
            cluster,
            list: SharedRead::default(),
        }
    }

    fn labels(&self, balancer: &B) -> Labels {
        self.tag.labels(balancer.tags())
    }

    /// Whose balancer it is.
    pub fn owner(&self, balancer: &B, balancer_ref: &BalancerRef) -> Owner {
        let cluster = self.cluster.as_deref();
        let labels = self.labels(balancer);
        match OwnerTag::LABELS.owner(&labels, balancer_ref, cluster) {
            Owner::Unowned if self.is_referenced(balancer, balancer_ref) => {
                match owner_of_unlabelled(balancer, balancer_ref) {
                    Owner::Unowned => Owner::Us,
                    owner => owner,
                }
            }
            owner => owner,
        }
    }

    fn is_referenced(&self, balancer: &B, balancer_ref: &BalancerRef) -> bool {
        let addresses = balancer.addresses();
        let places: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let id = CloudBalancer::id(balancer);
        is_referenced(balancer_ref, self.id_annotation, &id, &places)
    }

    fn is_labelled(&self, balancer: &B, service: &ServiceRef) -> bool {
        OwnerTag::LABELS.is_labelled(&self.labels(balancer), service)
    }

    /// Whether a balancer is a Service's by its tag. Without one, whether the Service points at it by its ID, or else whether it
    /// has the Service's default name.
    pub fn is_of(&self, balancer: &B, service: &ServiceFacts) -> bool {
        if self.tag.among(balancer.tags()).is_some() {
            return self.is_labelled(balancer, &service.service);
        }
        match id_among(&service.annotations, self.id_annotation) {
            Some(id) => *id == CloudBalancer::id(balancer),
            None => balancer.name() == service.service.default_balancer_name(),
        }
    }

    /// The ID of its balancer that a Service carries.
    pub fn id_of<'a>(&self, balancer_ref: &'a BalancerRef) -> Option<&'a String> {
        id_among(&balancer_ref.annotations, self.id_annotation)
    }

    /// All of them, by a list that begins after this call.
    pub async fn all(
        &self,
        api: &RestApi,
        priority: Priority,
    ) -> Result<std::sync::Arc<Vec<B>>, CloudError> {
        self.list.fresh(|| api.every(priority)).await
    }

    /// The balancer that the Service names by its ID, else all of them.
    pub async fn visible(
        &self,
        api: &RestApi,
        balancer_ref: &BalancerRef,
    ) -> Result<Vec<B>, CloudError> {
        let is_adopting = balancer_ref.adopt.is_some();
        if let Some(id) = self.id_of(balancer_ref).filter(|_| !is_adopting)
            // If it is gone, another may have been created since, whose ID was not written.
            && let Some(balancer) = api.find::<B>(id, Priority::Normal).await?
            // It may be another Service's, as in a copied manifest.
            && self.owner(&balancer, balancer_ref) == Owner::Us
        {
            return Ok(vec![balancer]);
        }
        Ok(self.all(api, Priority::Normal).await?.to_vec())
    }

    /// The Service's balancer among these: see [`Classified::among`].
    pub fn find_among(
        &self,
        all: &[B],
        desired: DesiredState<'_>,
        name: &str,
    ) -> Result<Classified<B>, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let owner_of = |balancer: &B| self.owner(balancer, balancer_ref);
        let is_labelled = |balancer: &B| {
            self.is_labelled(balancer, &balancer_ref.service) || owner_of(balancer) == Owner::Us
        };
        Classified::among(all, desired, name, is_labelled, owner_of)
    }

    /// Those with this cluster's UID in their tag.
    pub async fn owned(&self, api: &RestApi) -> Result<Vec<OwnedResource>, CloudError> {
        let cluster = OwnerTag::LABELS.cluster(self.cluster.as_ref())?;
        let all: Vec<B> = api.every(Priority::Background).await?;
        let labels_of = |balancer: &B| self.labels(balancer);
        Ok(OwnerTag::LABELS.owned_among(&all, labels_of, cluster))
    }
}

fn id_among<'a>(
    annotations: &'a std::collections::BTreeMap<String, String>,
    key: &str,
) -> Option<&'a String> {
    annotations.get(key).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests;
