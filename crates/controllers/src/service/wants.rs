//! Which Services are served here, by which cloud, and which are to be cleaned up. Pure.

use cloudkeel_api::TargetBy;

use super::conditions;
use crate::view::ServiceView;
use crate::wellknown::CLEANUP_FINALIZER;

/// What the configuration says about the balancers of one cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// The cloud's name.
    pub cloud: String,
    /// Services without a class are its own.
    pub default: bool,
    /// Services of this class are its own.
    pub class: Option<String>,
    /// Its balancers send traffic to Nodes of these clouds; empty means its own.
    pub target_clouds: Vec<String>,
    /// How its own Nodes are reached; another cloud's always by address.
    pub by: TargetBy,
}

impl Serving {
    /// Whether any Service could ever be this cloud's.
    const fn serves_any(&self) -> bool {
        self.default || self.class.is_some()
    }
}

/// The classes that are served here, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes(Vec<Serving>);

impl Classes {
    /// From the clouds of the configuration. At most one is the default, and no class has two.
    pub fn new(clouds: Vec<Serving>) -> Self {
        Self(clouds)
    }

    /// The settings of a cloud.
    pub fn of_cloud(&self, cloud: &str) -> Option<&Serving> {
        self.0.iter().find(|serving| serving.cloud == cloud)
    }

    /// The cloud that serves a class: the one that has it, or the default for none. A class that
    /// nobody here has is another controller's.
    fn serving(&self, class: Option<&str>) -> Option<&Serving> {
        self.0.iter().find(|serving| match class {
            Some(class) => serving.class.as_deref() == Some(class),
            None => serving.default,
        })
    }
}

/// Which cloud serves a Service, if it is one of ours at all: by its type and class, whether or not
/// it is being deleted.
pub fn owner_of_service<'a>(service: &ServiceView, classes: &'a Classes) -> Option<&'a Serving> {
    service
        .is_load_balancer
        .then(|| classes.serving(service.class.as_deref()))
        .flatten()
}

/// Whether a Service should have a balancer of ours. One that is being deleted should not: nothing
/// new could be protected by a finalizer any more.
pub fn wants_balancer(service: &ServiceView, classes: &Classes) -> bool {
    !service.deleting && owner_of_service(service, classes).is_some()
}

/// Whether a Service waits for its balancer to be removed: it carries the finalizer, and is being
/// deleted or has another type by now.
pub fn needs_cleanup(service: &ServiceView) -> bool {
    service.has_finalizer(CLEANUP_FINALIZER) && (service.deleting || !service.is_load_balancer)
}

/// Who has to clean up after a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleanup<'a> {
    /// The clouds that may have its balancer. Each is asked to remove what carries the Service's mark,
    /// which is nothing where it never had one. The one that served it is among them even if it has no
    /// load balancers any more: only it could say that nothing is left.
    pub clouds: Vec<&'a str>,
    /// Whether the finalizer goes even if none of them had anything. If not, it goes only after
    /// something was removed: another controller may have put it there and rely on it.
    pub finalizer_is_ours: bool,
}

/// Which clouds may have a balancer of this Service that is to be removed.
///
/// While the type is `LoadBalancer` the class cannot change, so it names the cloud. Another type has
/// no class any more, so it may have been any cloud. A class that nobody here serves is upstream's
/// blind spot: every cloud-controller-manager takes the finalizer off such a Service when it is
/// deleted, although another one may have put it there. The same holds for a cloud without load
/// balancers, beside which another component gives Services theirs.
pub fn cleanup_of<'a>(
    service: &ServiceView,
    classes: &'a Classes,
    has_balancers: impl Fn(&str) -> bool,
) -> Cleanup<'a> {
    let is_able = |serving: &&Serving| has_balancers(&serving.cloud);
    let tells = conditions::cloud_on(service);
    let served_by = tells.and_then(|cloud| classes.of_cloud(cloud));
    let owner = owner_of_service(service, classes).filter(is_able);
    let may_have_it = |serving: &&Serving| owner.map_or(serving.serves_any(), |o| o == *serving);
    let mut clouds: Vec<&Serving> = classes.0.iter().filter(may_have_it).collect();
    clouds.retain(is_able);
    clouds.sort_by_key(|serving| !serving.default);
    let retyped_from_default = !service.is_load_balancer && clouds.iter().any(|s| s.default);
    let finalizer_is_ours = owner.is_some()
        || match tells {
            // Another cloudkeel in this cluster knows better whether its balancer is gone.
            Some(_) => served_by.is_some(),
            None => retyped_from_default,
        };
    let not_yet = served_by.filter(|serving| !clouds.contains(serving));
    clouds.extend(not_yet);
    Cleanup {
        clouds: clouds
            .iter()
            .map(|serving| serving.cloud.as_str())
            .collect(),
        finalizer_is_ours,
    }
}

#[cfg(test)]
mod tests;
