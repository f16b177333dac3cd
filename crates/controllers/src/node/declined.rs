//! Labels of the cloud that are not written: which, and why.

use std::collections::BTreeMap;

use tracing::debug;

use super::NodeController;
use super::labels::Declined;
use crate::view::NodeView;

impl NodeController {
    /// Reports labels that the API server would refuse, once. Those that are left out by rule are of interest
    /// only to people who look for them.
    pub(super) fn report_declined(&self, node: &NodeView, declined: &[Declined]) {
        let name = &node.facts.name;
        for label in declined {
            match label {
                Declined::Reserved { key } => {
                    debug!(
                        node = name,
                        key, "label of the cloud is in a reserved domain"
                    );
                }
                Declined::Taken { key, offered, kept } => {
                    debug!(
                        node = name,
                        key, offered, kept, "label of the cloud is set already"
                    );
                }
                Declined::Invalid { .. } => {}
            }
        }
        self.report_once(node, "InvalidLabel", message(declined));
    }
}

/// Keys, values and rules of the labels that the API server would refuse, if there are any.
fn message(declined: &[Declined]) -> Option<String> {
    let mut by_rule = BTreeMap::<String, Vec<String>>::new();
    for label in declined {
        if let Declined::Invalid {
            key,
            value,
            problem,
        } = label
        {
            let labels = by_rule.entry(problem.to_string()).or_default();
            labels.push(format!("{key}={value:?}"));
        }
    }
    let parts = by_rule.iter();
    let parts: Vec<_> = parts
        .map(|(rule, labels)| format!("{}: {rule}", labels.join(", ")))
        .collect();
    (!parts.is_empty()).then(|| {
        let parts = parts.join("; ");
        format!("Labels of the cloud that Kubernetes does not allow are not written: {parts}")
    })
}
