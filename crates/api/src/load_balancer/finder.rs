//! How a Service's balancer is found: the same way through every cloud, by look-ups that each cloud
//! makes in its own way.

use async_trait::async_trait;

use super::{Candidates, Claim, Claimable, Judged, Namesakes, Owner, ServiceRef, SharedList};
use crate::CloudError;

/// What a driver tells of its cloud so that balancers are found and judged as everywhere.
#[async_trait]
pub trait BalancerFinder: Send + Sync {
    /// A balancer as the cloud shows it.
    type Balancer: Claimable + Clone + Send + Sync;

    /// Asks for all that carry the Service's mark, whatever else they carry.
    async fn marked(&self, service: &ServiceRef) -> Result<Vec<Self::Balancer>, CloudError>;

    /// Asks for the one of this ID, as a person wrote it. [`NotFound`](crate::ErrorKind::NotFound) if
    /// there is none, [`Invalid`](crate::ErrorKind::Invalid) if it cannot be an ID.
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

    /// Whether a balancer carries the Service's mark, whatever else it carries. Pure.
    fn is_marked(&self, balancer: &Self::Balancer, service: &ServiceRef) -> bool;

    /// Whose balancer it is, by all its marks. Pure.
    fn owner(&self, balancer: &Self::Balancer, claim: &Claim) -> Owner;

    /// What becomes of a balancer that only has the right name.
    fn namesakes(&self) -> Namesakes {
        Namesakes::InTheWay
    }

    /// The balancer of a Service that should have one of this name. A settled Service costs one
    /// look-up: only one without a marked balancer needs a second.
    async fn find(&self, claim: &Claim, name: &str) -> Result<Judged<Self::Balancer>, CloudError> {
        let lookups = if claim.ingress.is_empty() { 2 } else { 1 };
        let shared = self.shared_list().filter(|_| claim.adopt.is_none());
        let asking = shared.map(|list| (list, list.ask(lookups)));
        if let Some((list, asking)) = &asking
            && asking.is_worth_a_list()
        {
            let all = list.all(|| self.all()).await?;
            return self.find_among(&all, claim, name);
        }
        let mut candidates = Candidates {
            marked: self.marked(&claim.service).await?,
            ..Candidates::default()
        };
        if candidates.marked.is_empty() {
            match &claim.adopt {
                None => candidates.namesakes = self.named(name).await?,
                Some(id) => match self.with_id(id).await {
                    Ok(balancer) => candidates.asked_for = Some(balancer),
                    // What cannot be adopted is the judgement's to tell.
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                },
            }
        }
        self.judge(claim, candidates)
    }

    /// The same without a look-up, where all balancers of the cloud are known.
    fn find_among(
        &self,
        all: &[Self::Balancer],
        claim: &Claim,
        name: &str,
    ) -> Result<Judged<Self::Balancer>, CloudError> {
        let is_marked = |balancer: &Self::Balancer| self.is_marked(balancer, &claim.service);
        self.judge(claim, Candidates::among(all, claim, name, is_marked))
    }

    /// The balancers of a Service that goes, with one look-up.
    async fn find_going(&self, claim: &Claim) -> Result<Judged<Self::Balancer>, CloudError> {
        let candidates = Candidates {
            marked: self.marked(&claim.service).await?,
            ..Candidates::default()
        };
        Ok(candidates.going(|balancer| self.owner(balancer, claim)))
    }

    /// Which of the candidates is this Service's. Pure.
    fn judge(
        &self,
        claim: &Claim,
        candidates: Candidates<Self::Balancer>,
    ) -> Result<Judged<Self::Balancer>, CloudError> {
        candidates.judge(claim, self.namesakes(), |balancer| {
            self.owner(balancer, claim)
        })
    }
}

#[cfg(test)]
mod tests;
