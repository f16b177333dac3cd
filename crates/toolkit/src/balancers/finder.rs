//! Finds a Service's balancer: the same order of look-ups for every cloud, each made by the cloud's own function.

use async_trait::async_trait;

use cloudkeel_api::{BalancerRef, CloudError, ErrorKind, ServiceRef};

use super::{Candidates, Classified, CloudBalancer, Namesakes, Owner, SharedList};

/// What a driver says of its cloud so that balancers are found and classified as everywhere.
#[async_trait]
pub trait BalancerFinder: Send + Sync {
    /// A balancer as the cloud shows it.
    type Balancer: CloudBalancer + Clone + Send + Sync;

    /// Asks for all that carry the Service's owner label, whatever else they carry.
    async fn labelled(&self, service: &ServiceRef) -> Result<Vec<Self::Balancer>, CloudError>;

    /// Asks for the one of this ID, as a person wrote it. [`NotFound`](cloudkeel_api::ErrorKind::NotFound) if
    /// there is none, [`Invalid`](cloudkeel_api::ErrorKind::Invalid) if it cannot be an ID.
    async fn with_id(&self, id: &str) -> Result<Self::Balancer, CloudError>;

    /// Asks for all of this name.
    async fn named(&self, name: &str) -> Result<Vec<Self::Balancer>, CloudError>;

    /// Asks for all of them. Only needed with a shared list.
    async fn all(&self) -> Result<Vec<Self::Balancer>, CloudError> {
        let message = "this cloud's balancers are not listed";
        Err(CloudError::unsupported("list load balancers", message))
    }

    /// One list for all callers at once, where the cloud lists its balancers in few pages.
    fn shared_list(&self) -> Option<&SharedList<Self::Balancer>> {
        None
    }

    /// Whether a balancer carries the Service's owner label, whatever else it carries. Pure.
    fn is_labelled(&self, balancer: &Self::Balancer, service: &ServiceRef) -> bool;

    /// Whose balancer it is, by all its owner labels. Pure.
    fn owner(&self, balancer: &Self::Balancer, balancer_ref: &BalancerRef) -> Owner;

    /// The ID of its balancer that the provider has written to a Service, if it does that. Lists may be empty for a
    /// while, so a balancer that is to be deleted is looked up by its ID before it counts as gone.
    fn written_id<'a>(&self, balancer_ref: &'a BalancerRef) -> Option<&'a str> {
        let _ = balancer_ref;
        None
    }

    /// What becomes of a balancer that only has the right name.
    fn namesakes(&self) -> Namesakes {
        Namesakes::Refused
    }

    /// The balancer of a Service that should have one of this name. A settled Service costs one
    /// look-up: only one without a labelled balancer needs a second.
    async fn find(
        &self,
        balancer_ref: &BalancerRef,
        name: &str,
    ) -> Result<Classified<Self::Balancer>, CloudError> {
        let lookups = if balancer_ref.ingress.is_empty() {
            2
        } else {
            1
        };
        let shared = self.shared_list().filter(|_| balancer_ref.adopt.is_none());
        let pending = shared.map(|list| (list, list.begin(lookups)));
        if let Some((list, pending)) = &pending
            && pending.list_is_cheaper()
        {
            let all = list.all(|| self.all()).await?;
            return self.find_among(&all, balancer_ref, name);
        }
        let mut candidates = Candidates {
            labelled: self.labelled(&balancer_ref.service).await?,
            ..Candidates::default()
        };
        if candidates.labelled.is_empty() {
            match &balancer_ref.adopt {
                None => candidates.namesakes = self.named(name).await?,
                Some(id) => match self.with_id(id).await {
                    Ok(balancer) => candidates.requested = Some(balancer),
                    // `classify` reports what cannot be adopted.
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                },
            }
        }
        self.classify(balancer_ref, candidates)
    }

    /// The same without a look-up, where all balancers of the cloud are known.
    fn find_among(
        &self,
        all: &[Self::Balancer],
        balancer_ref: &BalancerRef,
        name: &str,
    ) -> Result<Classified<Self::Balancer>, CloudError> {
        let is_labelled =
            |balancer: &Self::Balancer| self.is_labelled(balancer, &balancer_ref.service);
        self.classify(
            balancer_ref,
            Candidates::among(all, balancer_ref, name, is_labelled),
        )
    }

    /// The balancers of a Service that is being deleted, with one look-up if the cloud shows any.
    async fn find_for_removal(
        &self,
        balancer_ref: &BalancerRef,
    ) -> Result<Classified<Self::Balancer>, CloudError> {
        let service = &balancer_ref.service;
        let mut labelled = self.labelled(service).await?;
        if let Some(id) = self
            .written_id(balancer_ref)
            .filter(|_| labelled.is_empty())
        {
            match self.with_id(id).await {
                Ok(balancer) if self.is_labelled(&balancer, service) => labelled.push(balancer),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {}
                Err(error) => return Err(error),
            }
        }
        let candidates = Candidates {
            labelled,
            ..Candidates::default()
        };
        Ok(candidates.for_removal(|balancer| self.owner(balancer, balancer_ref)))
    }

    /// Which of the candidates is this Service's. Pure.
    fn classify(
        &self,
        balancer_ref: &BalancerRef,
        candidates: Candidates<Self::Balancer>,
    ) -> Result<Classified<Self::Balancer>, CloudError> {
        candidates.classify(balancer_ref, self.namesakes(), |balancer| {
            self.owner(balancer, balancer_ref)
        })
    }
}

#[cfg(test)]
mod tests;
