//! The other Services of the cluster: a balancer without owner labels may be one of theirs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Ingress, ServiceRef};

/// Another Service that the same cloud serves.
#[derive(Debug, Clone, Copy)]
pub struct OtherService<'a> {
    /// Namespace, name and UID.
    pub service: &'a ServiceRef,
    /// `metadata.annotations`
    pub annotations: &'a BTreeMap<String, String>,
    /// What its status publishes.
    pub ingress: &'a [Ingress],
}

/// Searches the Services of the cluster.
pub trait ServiceSearch: Send + Sync {
    /// The first that fits.
    fn find(&self, fits: &dyn Fn(OtherService<'_>) -> bool) -> Option<ServiceRef>;
}

/// The Services beside the one whose balancer it is about. Without a search there are none.
///
/// ```
/// # use cloudkeel_api::OtherServices;
/// assert_eq!(OtherServices::default().find(|_| true), None);
/// ```
#[derive(Clone, Default)]
pub struct OtherServices(Option<Arc<dyn ServiceSearch>>);

impl OtherServices {
    /// None.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Those that this search finds.
    pub fn new(search: Arc<dyn ServiceSearch>) -> Self {
        Self(Some(search))
    }

    /// The first that fits.
    pub fn find(&self, fits: impl Fn(OtherService<'_>) -> bool) -> Option<ServiceRef> {
        self.0.as_ref()?.find(&fits)
    }
}

impl fmt::Debug for OtherServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherServices")
    }
}

/// They are no part of what a Service asks for.
impl PartialEq for OtherServices {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for OtherServices {}
