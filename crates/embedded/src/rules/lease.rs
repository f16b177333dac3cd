//! Leases: numbers that make sense.

use serde_json::Value;

use super::{Part, Rules};
use crate::object::put_default;
use crate::refusal::Fault;

pub(crate) struct Leases;

impl Rules for Leases {
    fn fill_in(&self, object: &mut Value) {
        if object["spec"].is_null() {
            put_default(object, &["spec"], serde_json::json!({}));
        }
    }

    fn faults(&self, _part: Part, new: &Value, _old: Option<&Value>) -> Vec<Fault> {
        let mut faults = Vec::new();
        let spec = &new["spec"];
        if spec["leaseDurationSeconds"]
            .as_i64()
            .is_some_and(|seconds| seconds <= 0)
        {
            faults.push(Fault::invalid(
                "spec.leaseDurationSeconds",
                &spec["leaseDurationSeconds"],
                "must be greater than 0",
            ));
        }
        if spec["leaseTransitions"]
            .as_i64()
            .is_some_and(|count| count < 0)
        {
            faults.push(Fault::invalid(
                "spec.leaseTransitions",
                &spec["leaseTransitions"],
                "must be greater than or equal to 0",
            ));
        }
        faults
    }
}
