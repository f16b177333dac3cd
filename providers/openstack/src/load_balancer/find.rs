//! Which load balancer is a Service's.

use cloudkeel_api::{BalancerRef, CloudError, ErrorKind, Ingress};
use cloudkeel_toolkit::{Candidates, Namesakes, Owner};

use super::OpenStackBalancers;
use super::observe::Role;
use super::owner::{Candidate, is_named_for, other_services, owner_of, service_name};
use super::source::Source;
use crate::annotations as key;
use crate::wire::balancer::LoadBalancer;

const OPERATION: &str = "observe load balancer";

impl OpenStackBalancers {
    /// The load balancer of a Service, and others that carry its UID. `NotOurs` if another owner's has its name.
    pub(super) async fn find(
        &self,
        balancer_ref: &BalancerRef,
        source: Source<'_>,
    ) -> Result<(Option<(Role, LoadBalancer)>, Vec<LoadBalancer>), CloudError> {
        if let Some(id) = written_id(balancer_ref).filter(|_| balancer_ref.adopt.is_none()) {
            let balancer = source
                .with_id(id)
                .await
                .map_err(|error| missing(error, id))?;
            let found = self.classify_written(balancer, balancer_ref)?;
            return Ok((Some(found), Vec::new()));
        }
        let plain = |balancer| Candidate {
            balancer,
            floating_ip: None,
        };
        let mut labelled = source.labelled(&balancer_ref.service).await?;
        let surplus = self
            .split_surplus(&mut labelled, balancer_ref, source)
            .await?;
        let mut candidates = Candidates {
            labelled: labelled.into_iter().map(plain).collect(),
            ..Candidates::default()
        };
        if candidates.labelled.is_empty() {
            match &balancer_ref.adopt {
                Some(id) => match source.with_id(id).await {
                    Ok(balancer) => candidates.requested = Some(plain(balancer)),
                    Err(error)
                        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {}
                    Err(error) => return Err(error),
                },
                None => candidates.namesakes = self.namesakes(balancer_ref, source).await?,
            }
        }
        let owner_of = |candidate: &Candidate| owner_of(candidate, balancer_ref, self.cluster());
        let classified = candidates.classify(balancer_ref, Namesakes::Refused, owner_of)?;
        let ours = classified
            .ours
            .into_iter()
            .next()
            .map(|ours| (Role::Owner, ours.balancer));
        let found = ours.or_else(|| {
            classified
                .adoptable
                .map(|other| (Role::Adopter, other.balancer))
        });
        Ok((found, surplus))
    }

    /// Of several that carry the Service's UID, the one that its status points at stays, else the oldest.
    async fn split_surplus(
        &self,
        labelled: &mut Vec<LoadBalancer>,
        balancer_ref: &BalancerRef,
        source: Source<'_>,
    ) -> Result<Vec<LoadBalancer>, CloudError> {
        if labelled.len() < 2 {
            return Ok(Vec::new());
        }
        let published: Vec<_> = balancer_ref.ingress.iter().map(Ingress::place).collect();
        let mut ranked = Vec::new();
        for balancer in labelled.drain(..) {
            let floating = source.floating_ip(balancer.vip_port_id.as_ref()).await?;
            let addresses = [
                balancer.vip_address,
                floating.map(|ip| ip.floating_ip_address),
            ];
            let mut addresses = addresses.into_iter().flatten().map(|ip| ip.to_string());
            let is_published = addresses.any(|address| published.contains(&address));
            let is_leaving = balancer.provisioning_status == "PENDING_DELETE";
            let rank = (
                is_leaving,
                !is_published,
                balancer.created_at.clone(),
                balancer.id.clone(),
            );
            ranked.push((rank, balancer));
        }
        ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut ranked = ranked.into_iter().map(|(_, balancer)| balancer);
        labelled.extend(ranked.next());
        Ok(ranked.collect())
    }

    /// Those of the Service's name, with their floating IPs: the Service may point at one by its status.
    async fn namesakes(
        &self,
        balancer_ref: &BalancerRef,
        source: Source<'_>,
    ) -> Result<Vec<Candidate>, CloudError> {
        let names = [
            service_name(balancer_ref),
            balancer_ref.service.default_balancer_name(),
        ];
        let mut candidates = Vec::new();
        for balancer in source.named(&names.each_ref().map(String::as_str)).await? {
            let floating_ip = if balancer_ref.ingress.is_empty() {
                None
            } else {
                source.floating_ip(balancer.vip_port_id.as_ref()).await?
            };
            candidates.push(Candidate {
                balancer,
                floating_ip: floating_ip.map(|ip| ip.floating_ip_address),
            });
        }
        Ok(candidates)
    }

    /// A load balancer that the Service names by annotation: its own, or one that it shares.
    fn classify_written(
        &self,
        balancer: LoadBalancer,
        balancer_ref: &BalancerRef,
    ) -> Result<(Role, LoadBalancer), CloudError> {
        let candidate = Candidate {
            balancer,
            floating_ip: None,
        };
        let owner = owner_of(&candidate, balancer_ref, self.cluster());
        let balancer = candidate.balancer;
        match owner {
            Owner::Us => Ok((Role::Owner, balancer)),
            // A Service that was copied from another cluster must not take its load balancer over.
            Owner::Other(who) if is_named_for(&balancer, balancer_ref) => {
                let message = format!(
                    "load balancer {} ({:?}) belongs to {who}, so it is left alone: take the {} annotation away",
                    balancer.id,
                    balancer.name,
                    key::LOAD_BALANCER_ID.name()
                );
                Err(CloudError::new(OPERATION, ErrorKind::NotOurs, message))
            }
            Owner::Other(_) | Owner::Unowned => Ok((Role::Sharer, balancer)),
        }
    }

    pub(super) async fn find_for_removal(
        &self,
        balancer_ref: &BalancerRef,
        source: Source<'_>,
    ) -> Result<Vec<(Role, LoadBalancer)>, CloudError> {
        let labelled = source.labelled(&balancer_ref.service).await?;
        let mut found: Vec<_> = labelled
            .into_iter()
            .map(|balancer| (Role::Owner, balancer))
            .collect();
        if let Some(id) = written_id(balancer_ref) {
            match source.with_id(id).await {
                Ok(balancer) if found.iter().any(|(_, known)| known.id == balancer.id) => {}
                Ok(balancer) => found.extend(self.classify_written(balancer, balancer_ref).ok()),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {}
                Err(error) => return Err(error),
            }
        } else if found.is_empty() {
            for candidate in self.namesakes(balancer_ref, source).await? {
                if owner_of(&candidate, balancer_ref, self.cluster()) == Owner::Us {
                    found.push((Role::Owner, candidate.balancer));
                }
            }
        }
        let name = service_name(balancer_ref);
        // Where the Service was never served, there is nothing to take away.
        found.retain(|(role, balancer)| *role == Role::Owner || balancer.tags.contains(&name));
        Ok(found)
    }
}

/// How many Services share a load balancer once this one does too.
pub(super) fn sharers(balancer: &LoadBalancer, name: &str) -> usize {
    other_services(&balancer.tags, name).count() + 1
}

/// The ID that a Service carries.
pub(super) fn written_id(balancer_ref: &BalancerRef) -> Option<&str> {
    let id = balancer_ref.annotations.get(key::LOAD_BALANCER_ID.name());
    id.map(String::as_str).filter(|id| !id.is_empty())
}

fn missing(error: CloudError, id: &str) -> CloudError {
    if !error.is_not_found() {
        return error;
    }
    let annotation = key::LOAD_BALANCER_ID.name();
    let message = format!(
        "{annotation}: {id:?}: there is no such load balancer: take the annotation away to get a new one"
    );
    CloudError::invalid(OPERATION, message)
}
