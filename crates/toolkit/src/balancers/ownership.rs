//! Which Service does a balancer belong to, and is one adopted, or a new one created? The rules are the same for every
//! cloud, whether it keeps owner labels or tags. Pure.

use std::net::IpAddr;

use cloudkeel_api::{
    AnnotationKey, BalancerRef, CloudError, DesiredState, ErrorKind, Ingress, OtherService,
    ServiceRef, names,
};

const OPERATION: &str = "observe load balancer";

/// Whose balancer it is, by its owner labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// This Service's.
    Us,
    /// It carries no owner labels.
    Unowned,
    /// Another owner's, in words.
    Other(String),
}

/// A balancer, as far as finding its owner is concerned.
pub trait CloudBalancer {
    /// What the cloud calls it.
    const NOUN: &'static str = "load balancer";

    /// The annotation, if there is one, with which a Service leaves its balancer to others.
    const DISOWNED_BY: Option<&'static str> = None;

    /// The cloud's ID.
    fn id(&self) -> String;

    /// Its name.
    fn name(&self) -> &str;

    /// Where clients find it. None until it has one, or where the cloud does not say.
    fn addresses(&self) -> Vec<IpAddr> {
        Vec::new()
    }

    /// The UID of the Service in its owner labels.
    fn service_uid(&self) -> Option<&str> {
        None
    }

    /// Whether its name says that it was made for a Service.
    fn is_named_for(&self, service: &ServiceRef) -> bool {
        self.name() == service.default_balancer_name()
    }

    /// Its noun, ID and name, for people.
    fn in_words(&self) -> String {
        format!("{} {} ({})", Self::NOUN, self.id(), self.name())
    }
}

/// The balancers that could be a Service's.
#[derive(Debug, Clone)]
pub struct Candidates<B> {
    /// Those with the Service's owner label.
    pub labelled: Vec<B>,
    /// The one that a person asked to adopt.
    pub requested: Option<B>,
    /// Those with the name that ours has or would have.
    pub namesakes: Vec<B>,
}

impl<B> Default for Candidates<B> {
    fn default() -> Self {
        Self {
            labelled: Vec::new(),
            requested: None,
            namesakes: Vec::new(),
        }
    }
}

/// What becomes of a balancer without owner label that has the name that ours would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namesakes {
    /// A name proves nothing: it is an error.
    Refused,
    /// A setting says that it is adopted, whatever its owner labels say.
    Adopted,
}

/// Which balancer is a Service's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified<B> {
    /// Those with our owner label: at most one, unless they are to be deleted.
    pub ours: Vec<B>,
    /// The one that is to be adopted.
    pub adoptable: Option<B>,
}

impl<B> Default for Classified<B> {
    fn default() -> Self {
        Self {
            ours: Vec::new(),
            adoptable: None,
        }
    }
}

impl<B> Classified<B> {
    /// This one is ours.
    pub fn ours(balancer: B) -> Self {
        Self {
            ours: vec![balancer],
            ..Self::default()
        }
    }

    /// This one is to be adopted.
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

impl<B: CloudBalancer + Clone> Classified<B> {
    /// The Service's balancer among all of a cloud that has no look-ups by label or name: the one that should be there, or
    /// all that are deleted or released with the Service. `is_labelled` says whether a balancer carries the Service's owner
    /// label, whatever else it carries.
    pub fn among(
        all: &[B],
        desired: DesiredState<'_>,
        name: &str,
        is_labelled: impl Fn(&B) -> bool,
        owner_of: impl Fn(&B) -> Owner,
    ) -> Result<Self, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let candidates = Candidates::among(all, balancer_ref, name, is_labelled);
        match desired {
            DesiredState::Present(_) => {
                candidates.classify(balancer_ref, Namesakes::Refused, owner_of)
            }
            DesiredState::Absent(_) | DesiredState::Released(_) => {
                Ok(candidates.for_removal(owner_of))
            }
        }
    }
}

impl<B: CloudBalancer> Candidates<B> {
    /// The candidates among all balancers of a cloud.
    pub fn among(
        all: &[B],
        balancer_ref: &BalancerRef,
        name: &str,
        is_labelled: impl Fn(&B) -> bool,
    ) -> Self
    where
        B: Clone,
    {
        let those = |fits: &dyn Fn(&B) -> bool| {
            let found = all.iter().filter(|balancer| fits(balancer));
            found.cloned().collect()
        };
        let requested = |id: &String| all.iter().find(|balancer| balancer.id() == *id).cloned();
        Self {
            labelled: those(&is_labelled),
            requested: balancer_ref.adopt.as_ref().and_then(requested),
            namesakes: those(&|balancer| balancer.name() == name),
        }
    }

    /// What is deleted with its Service: all that is ours by its owner labels. Neither a namesake nor a balancer
    /// that was never adopted keeps a Service from being deleted.
    pub fn for_removal(mut self, owner_of: impl Fn(&B) -> Owner) -> Classified<B> {
        self.labelled
            .retain(|balancer| owner_of(balancer) == Owner::Us);
        Classified {
            ours: self.labelled,
            ..Classified::default()
        }
    }

    /// Which of them is this Service's. `NotOurs` if another owner's is in the way, `Invalid` if the
    /// Service has several or asks for one that it cannot have.
    pub fn classify(
        self,
        balancer_ref: &BalancerRef,
        namesakes: Namesakes,
        owner_of: impl Fn(&B) -> Owner,
    ) -> Result<Classified<B>, CloudError> {
        let owner_of = |balancer: &B| match owner_of(balancer) {
            Owner::Unowned => owner_of_unlabelled(balancer, balancer_ref),
            owner => owner,
        };
        if let Some((balancer, who)) = self.labelled.iter().find_map(|b| match owner_of(b) {
            Owner::Other(who) => Some((b, who)),
            Owner::Us | Owner::Unowned => None,
        }) {
            return Err(not_ours(balancer, &who));
        }
        match (self.labelled.as_slice(), &balancer_ref.adopt) {
            ([], None) => take_by_name(balancer_ref, self.namesakes, namesakes, owner_of),
            ([], Some(id)) => take_on_request(id, self.requested, owner_of),
            ([balancer], Some(id)) if balancer.id() != *id => {
                Err(has_another(balancer_ref, balancer, id))
            }
            ([_], _) => Ok(Classified {
                ours: self.labelled,
                ..Classified::default()
            }),
            (several, _) => Err(has_several(balancer_ref, several)),
        }
    }
}

fn take_by_name<B: CloudBalancer>(
    balancer_ref: &BalancerRef,
    found: Vec<B>,
    namesakes: Namesakes,
    owner_of: impl Fn(&B) -> Owner,
) -> Result<Classified<B>, CloudError> {
    if namesakes == Namesakes::Adopted {
        return adopt_by_name(balancer_ref, found);
    }
    let is_ours = |balancer: &B| owner_of(balancer) == Owner::Us;
    let (ours, others): (Vec<B>, Vec<B>) = found.into_iter().partition(is_ours);
    match (ours.as_slice(), others.first()) {
        ([], None) => Ok(Classified::default()),
        ([], Some(namesake)) => Err(match owner_of(namesake) {
            Owner::Other(who) => not_ours(namesake, &who),
            Owner::Us | Owner::Unowned => unlabelled(balancer_ref, namesake),
        }),
        ([_], _) => Ok(Classified {
            ours,
            ..Classified::default()
        }),
        (several, _) => Err(has_several(balancer_ref, several)),
    }
}

/// Where names are not unique, a name does not say which one is meant.
fn adopt_by_name<B: CloudBalancer>(
    balancer_ref: &BalancerRef,
    mut found: Vec<B>,
) -> Result<Classified<B>, CloudError> {
    if found.len() > 1 {
        return Err(which_one(balancer_ref, &found));
    }
    match found.pop() {
        None => Ok(Classified::default()),
        Some(balancer) => match owner_of_unlabelled(&balancer, balancer_ref) {
            Owner::Other(who) => Err(not_ours(&balancer, &who)),
            Owner::Us | Owner::Unowned => Ok(Classified::adoptable(balancer)),
        },
    }
}

/// Whose a balancer is that has no owner labels, or whose labels do not count: a person who may write one Service must not
/// take the balancer of another with it.
pub(super) fn owner_of_unlabelled<B: CloudBalancer>(
    balancer: &B,
    balancer_ref: &BalancerRef,
) -> Owner {
    if balancer.is_named_for(&balancer_ref.service) {
        return Owner::Unowned;
    }
    let places: Vec<_> = balancer
        .addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    let publishes = |ingress: &[Ingress]| ingress.iter().any(|at| places.contains(&at.place()));
    let has_left_it = |other: OtherService<'_>| {
        B::DISOWNED_BY.is_some_and(|key| {
            let key = AnnotationKey::<bool>::new(key, "");
            key.readable(other.annotations) == Some(true)
        })
    };
    let other = balancer_ref.others.find(|other| {
        let is_its_uid = |uid: &str| uid == other.service.uid;
        let has_it = publishes(other.ingress)
            || balancer.is_named_for(other.service)
            || balancer.service_uid().is_some_and(is_its_uid);
        has_it && !has_left_it(other)
    });
    other.map_or(Owner::Unowned, |service| {
        Owner::Other(format!(
            "Service {service}, which has its address or its name"
        ))
    })
}

fn take_on_request<B: CloudBalancer>(
    id: &str,
    requested: Option<B>,
    owner_of: impl Fn(&B) -> Owner,
) -> Result<Classified<B>, CloudError> {
    let Some(balancer) = requested else {
        let message = format!("there is no {} {id:?} to adopt", B::NOUN);
        return Err(CloudError::invalid(OPERATION, message));
    };
    match owner_of(&balancer) {
        Owner::Other(who) => Err(not_ours(&balancer, &who)),
        Owner::Us => Ok(Classified::ours(balancer)),
        Owner::Unowned => Ok(Classified::adoptable(balancer)),
    }
}

fn not_ours<B: CloudBalancer>(balancer: &B, who: &str) -> CloudError {
    let (noun, id, name) = (B::NOUN, balancer.id(), balancer.name());
    let message = format!("{noun} {id} ({name:?}) belongs to {who}, so it is left alone");
    CloudError::new(OPERATION, ErrorKind::NotOurs, message)
}

fn unlabelled<B: CloudBalancer>(balancer_ref: &BalancerRef, balancer: &B) -> CloudError {
    let (noun, id, name) = (B::NOUN, balancer.id(), balancer.name());
    let (service, adopt) = (&balancer_ref.service, names::ADOPT.name());
    let message = format!(
        "{noun} {id} is called {name:?} but does not carry the owner label of {service}: rename it, or \
         annotate the Service with {adopt}: \"{id}\" to take it over"
    );
    CloudError::new(OPERATION, ErrorKind::NotOurs, message)
}

fn which_one<B: CloudBalancer>(balancer_ref: &BalancerRef, several: &[B]) -> CloudError {
    let (noun, ids) = (B::NOUN, ids_of(several));
    let (service, adopt) = (&balancer_ref.service, names::ADOPT.name());
    let message = format!(
        "{noun}s {ids} all have the name that {service} asks for: rename all but one, or annotate the \
         Service with {adopt} and the ID of the one to adopt"
    );
    CloudError::new(OPERATION, ErrorKind::NotOurs, message)
}

fn has_another<B: CloudBalancer>(
    balancer_ref: &BalancerRef,
    balancer: &B,
    requested: &str,
) -> CloudError {
    let (noun, id) = (B::NOUN, balancer.id());
    let (service, adopt) = (&balancer_ref.service, names::ADOPT.name());
    let message = format!(
        "{service} has {noun} {id} already, so it cannot adopt {requested}: remove the \
         {adopt} annotation"
    );
    CloudError::invalid(OPERATION, message)
}

fn has_several<B: CloudBalancer>(balancer_ref: &BalancerRef, several: &[B]) -> CloudError {
    let (noun, ids, service) = (B::NOUN, ids_of(several), &balancer_ref.service);
    let message =
        format!("{noun}s {ids} all carry the owner label of {service}: delete all but one");
    CloudError::invalid(OPERATION, message)
}

fn ids_of<B: CloudBalancer>(several: &[B]) -> String {
    let ids: Vec<_> = several.iter().map(CloudBalancer::id).collect();
    ids.join(" and ")
}

#[cfg(test)]
mod tests;
