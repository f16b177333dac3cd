//! Whose balancer is it? The same judgement for every cloud, from marks that each cloud keeps in its
//! own way. Pure.

use super::Claim;
use crate::{CloudError, ErrorKind, names};

const OPERATION: &str = "observe load balancer";

/// Whose balancer it is, by its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// This Service's.
    Us,
    /// Nobody has marked it.
    Nobody,
    /// Somebody else's, in words.
    Other(String),
}

/// A balancer, as far as a claim to it is concerned.
pub trait Claimable {
    /// The cloud's word for such a thing.
    const THING: &'static str;

    /// The cloud's ID.
    fn id(&self) -> String;

    /// Its name.
    fn name(&self) -> &str;
}

/// The balancers that could matter to a claim.
#[derive(Debug, Clone)]
pub struct Candidates<B> {
    /// Those with the Service's mark.
    pub marked: Vec<B>,
    /// The one that a person asked to take over.
    pub asked_for: Option<B>,
    /// Those with the name that ours has or would have.
    pub namesakes: Vec<B>,
}

impl<B> Default for Candidates<B> {
    fn default() -> Self {
        Self {
            marked: Vec::new(),
            asked_for: None,
            namesakes: Vec::new(),
        }
    }
}

/// What becomes of an unmarked balancer that has the name that ours would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namesakes {
    /// A name proves nothing: it is in the way.
    InTheWay,
    /// A setting says that it is to be taken over, whoever marked it.
    TakenOver,
}

/// Which balancer is a Service's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged<B> {
    /// Those with our mark: at most one, unless they are to go.
    pub ours: Vec<B>,
    /// The one that is to be taken over.
    pub adoptable: Option<B>,
}

impl<B> Default for Judged<B> {
    fn default() -> Self {
        Self {
            ours: Vec::new(),
            adoptable: None,
        }
    }
}

impl<B> Judged<B> {
    /// This one is ours.
    pub fn ours(balancer: B) -> Self {
        Self {
            ours: vec![balancer],
            ..Self::default()
        }
    }

    /// This one is to be taken over.
    pub fn adoptable(balancer: B) -> Self {
        Self {
            adoptable: Some(balancer),
            ..Self::default()
        }
    }

    /// The one balancer that is ours or will be.
    pub fn balancer(&self) -> Option<&B> {
        self.ours.first().or(self.adoptable.as_ref())
    }
}

impl<B: Claimable> Candidates<B> {
    /// What matters to a claim among all balancers of a cloud.
    pub fn among(all: &[B], claim: &Claim, name: &str, is_marked: impl Fn(&B) -> bool) -> Self
    where
        B: Clone,
    {
        let those = |fits: &dyn Fn(&B) -> bool| {
            let found = all.iter().filter(|balancer| fits(balancer));
            found.cloned().collect()
        };
        let asked_for = |id: &String| all.iter().find(|balancer| balancer.id() == *id).cloned();
        Self {
            marked: those(&is_marked),
            asked_for: claim.adopt.as_ref().and_then(asked_for),
            namesakes: those(&|balancer| balancer.name() == name),
        }
    }

    /// What goes with its Service: all that is ours by its marks. Neither a namesake nor a balancer
    /// that was never taken over keeps a Service from going.
    pub fn going(mut self, owner_of: impl Fn(&B) -> Owner) -> Judged<B> {
        self.marked
            .retain(|balancer| owner_of(balancer) == Owner::Us);
        Judged {
            ours: self.marked,
            ..Judged::default()
        }
    }

    /// Which of them is this Service's. `NotOurs` if somebody else's is in the way, `Invalid` if the
    /// Service has several or asks for one that it cannot have.
    pub fn judge(
        self,
        claim: &Claim,
        namesakes: Namesakes,
        owner_of: impl Fn(&B) -> Owner,
    ) -> Result<Judged<B>, CloudError> {
        if let Some((balancer, who)) = self.marked.iter().find_map(|b| match owner_of(b) {
            Owner::Other(who) => Some((b, who)),
            Owner::Us | Owner::Nobody => None,
        }) {
            return Err(not_ours(balancer, &who));
        }
        match (self.marked.as_slice(), &claim.adopt) {
            ([], None) => take_by_name(claim, self.namesakes, namesakes, owner_of),
            ([], Some(id)) => take_on_request(id, self.asked_for, owner_of),
            ([balancer], Some(id)) if balancer.id() != *id => Err(has_another(claim, balancer, id)),
            ([_], _) => Ok(Judged {
                ours: self.marked,
                ..Judged::default()
            }),
            (several, _) => Err(has_several(claim, several)),
        }
    }
}

fn take_by_name<B: Claimable>(
    claim: &Claim,
    found: Vec<B>,
    namesakes: Namesakes,
    owner_of: impl Fn(&B) -> Owner,
) -> Result<Judged<B>, CloudError> {
    if namesakes == Namesakes::TakenOver {
        return take_over(claim, found);
    }
    let is_ours = |balancer: &B| owner_of(balancer) == Owner::Us;
    let (ours, others): (Vec<B>, Vec<B>) = found.into_iter().partition(is_ours);
    match (ours.as_slice(), others.first()) {
        ([], None) => Ok(Judged::default()),
        ([], Some(namesake)) => Err(match owner_of(namesake) {
            Owner::Other(who) => not_ours(namesake, &who),
            Owner::Us | Owner::Nobody => unmarked(claim, namesake),
        }),
        ([_], _) => Ok(Judged {
            ours,
            ..Judged::default()
        }),
        (several, _) => Err(has_several(claim, several)),
    }
}

/// Where names are not unique, a name does not say which one is meant.
fn take_over<B: Claimable>(claim: &Claim, mut found: Vec<B>) -> Result<Judged<B>, CloudError> {
    if found.len() > 1 {
        return Err(which_one(claim, &found));
    }
    Ok(found.pop().map_or_else(Judged::default, Judged::adoptable))
}

fn take_on_request<B: Claimable>(
    id: &str,
    asked_for: Option<B>,
    owner_of: impl Fn(&B) -> Owner,
) -> Result<Judged<B>, CloudError> {
    let Some(balancer) = asked_for else {
        let message = format!("there is no {} {id:?} to adopt", B::THING);
        return Err(CloudError::invalid(OPERATION, message));
    };
    match owner_of(&balancer) {
        Owner::Other(who) => Err(not_ours(&balancer, &who)),
        Owner::Us => Ok(Judged::ours(balancer)),
        Owner::Nobody => Ok(Judged::adoptable(balancer)),
    }
}

fn not_ours<B: Claimable>(balancer: &B, who: &str) -> CloudError {
    let (thing, id, name) = (B::THING, balancer.id(), balancer.name());
    let message = format!("{thing} {id} ({name:?}) belongs to {who}, so it is left alone");
    CloudError::new(OPERATION, ErrorKind::NotOurs, message)
}

fn unmarked<B: Claimable>(claim: &Claim, balancer: &B) -> CloudError {
    let (thing, id, name) = (B::THING, balancer.id(), balancer.name());
    let (service, adopt) = (&claim.service, names::ADOPT.name());
    let message = format!(
        "{thing} {id} is called {name:?} but does not carry the mark of {service}: rename it, or \
         annotate the Service with {adopt}: \"{id}\" to take it over"
    );
    CloudError::new(OPERATION, ErrorKind::NotOurs, message)
}

fn which_one<B: Claimable>(claim: &Claim, several: &[B]) -> CloudError {
    let (thing, ids) = (B::THING, ids_of(several));
    let (service, adopt) = (&claim.service, names::ADOPT.name());
    let message = format!(
        "{thing}s {ids} all have the name that {service} asks for: rename all but one, or annotate the \
         Service with {adopt} and the ID of the one to take over"
    );
    CloudError::new(OPERATION, ErrorKind::NotOurs, message)
}

fn has_another<B: Claimable>(claim: &Claim, balancer: &B, asked_for: &str) -> CloudError {
    let (thing, id) = (B::THING, balancer.id());
    let (service, adopt) = (&claim.service, names::ADOPT.name());
    let message = format!(
        "{service} has {thing} {id} already, so it cannot adopt {asked_for}: take the {adopt} \
         annotation away"
    );
    CloudError::invalid(OPERATION, message)
}

fn has_several<B: Claimable>(claim: &Claim, several: &[B]) -> CloudError {
    let (thing, ids, service) = (B::THING, ids_of(several), &claim.service);
    let message = format!("{thing}s {ids} all carry the mark of {service}: delete all but one");
    CloudError::invalid(OPERATION, message)
}

fn ids_of<B: Claimable>(several: &[B]) -> String {
    let ids: Vec<_> = several.iter().map(Claimable::id).collect();
    ids.join(" and ")
}

#[cfg(test)]
mod tests;
