//! The other Services that a cloud serves: none of their balancers may be adopted.

use std::sync::Arc;

use cloudkeel_api::{OtherService, OtherServices, ServiceRef, ServiceSearch};

use super::controller::ServiceController;
use super::owner::{Classes, owner_of_service};
use super::spec::ingress_of;
use crate::runtime::Cache;
use crate::view::ServiceView;

/// Searches the Services of one cloud but one.
struct Search {
    services: Arc<Cache<ServiceView>>,
    classes: Classes,
    cloud: String,
    /// The UID of the Service whose balancer it is about.
    uid: String,
}

impl ServiceSearch for Search {
    fn find(&self, fits: &dyn Fn(OtherService<'_>) -> bool) -> Option<ServiceRef> {
        let is_fitting = |view: &Arc<ServiceView>| {
            let owner = owner_of_service(view, &self.classes);
            let is_served = owner.is_some_and(|owner| owner.cloud == self.cloud);
            is_served && view.service.uid != self.uid && {
                let ingress = ingress_of(view);
                fits(OtherService {
                    service: &view.service,
                    annotations: &view.annotations,
                    ingress: &ingress,
                })
            }
        };
        let found = self.services.all().into_iter().find(is_fitting);
        found.map(|view| view.service.clone())
    }
}

impl ServiceController {
    /// The Services beside this one that a cloud serves, those that are being deleted among them.
    pub(super) fn others(&self, service: &ServiceRef, cloud: &str) -> OtherServices {
        OtherServices::new(Arc::new(Search {
            services: Arc::clone(&self.parts.services),
            classes: self.parts.classes.clone(),
            cloud: cloud.to_owned(),
            uid: service.uid.clone(),
        }))
    }
}
