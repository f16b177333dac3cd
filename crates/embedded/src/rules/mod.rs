//! What the API server does with each kind of object besides keeping it: defaults, allocation,
//! what a request may change, and what it must not.

mod event;
mod events_group;
mod lease;
mod meta;
mod namespace;
mod node;
mod plain;
mod service;

use serde_json::Value;

pub(crate) use event::Events;
pub(crate) use events_group::EventsOfTheirGroup;
pub(crate) use lease::Leases;
pub(crate) use meta::{faults_of_new_metadata, faults_of_updated_metadata};
pub(crate) use namespace::Namespaces;
pub(crate) use node::Nodes;
pub(crate) use plain::{ConfigMaps, EndpointSlices, Plain, Pods, Secrets};
pub(crate) use service::Services;

use crate::generator::Generator;
use crate::refusal::Fault;
use crate::store::Store;

/// Which part of an object a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
    /// The `spec.finalizers` of a namespace.
    Finalize,
}

/// What rules may look at and take from.
pub(crate) struct Surroundings<'a> {
    pub(crate) store: &'a Store,
    pub(crate) generator: &'a mut Generator,
    /// Whether Services get addresses of both families.
    pub(crate) dual_stack: bool,
}

/// The behaviour of one kind of objects. Objects have been through their type before.
pub(crate) trait Rules: Sync {
    /// Fills in what has a fixed default.
    fn fill_in(&self, _object: &mut Value) {}

    /// Takes what a new object needs, and drops what its author may not say.
    fn create(&self, _new: &mut Value, _around: &mut Surroundings<'_>) -> Result<(), Vec<Fault>> {
        Ok(())
    }

    /// Takes what a changed object needs, and restores what this part may not change.
    fn update(
        &self,
        _part: Part,
        _new: &mut Value,
        _old: &Value,
        _around: &mut Surroundings<'_>,
    ) -> Result<(), Vec<Fault>> {
        Ok(())
    }

    /// What is wrong with an object.
    fn faults(&self, _part: Part, _new: &Value, _old: Option<&Value>) -> Vec<Fault> {
        Vec::new()
    }

    /// The fields that selectors may name besides those of the metadata.
    fn selectable(&self, _object: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// From the form of this resource to the stored one.
    fn stored(&self, object: Value) -> Value {
        object
    }

    /// From the stored form to the one of this resource.
    fn shown(&self, object: &Value) -> Value {
        object.clone()
    }
}

/// Status and the rest are written apart.
fn keep_apart(part: Part, new: &mut Value, old: &Value) {
    let kept = match part {
        Part::Main => "status",
        Part::Status | Part::Finalize => "spec",
    };
    crate::object::copy(kept, old, new);
}
