//! Writes a Node's networks and finds out what became of it.

use ipnet::IpNet;

use crate::runtime::{NodeWriter, WriteError};
use crate::view::NodeView;

/// How often a write is tried at once.
const TRIES: usize = 3;

/// What became of a write.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The Node has networks now: these, or those that somebody else wrote first.
    Has(Box<NodeView>),
    /// There is no such Node any more.
    Gone,
    /// Certainly not written.
    Refused(WriteError),
    /// Perhaps written, perhaps still on its way.
    Unknown(WriteError),
}

/// Writes the networks of a Node that has none.
///
/// The API server never changes networks that are set, so writing the same again is harmless, and
/// what somebody else wrote first stays.
pub(super) async fn write(writer: &NodeWriter, node: &NodeView, cidrs: &[IpNet]) -> Outcome {
    let mut is_in_doubt = false;
    let mut tries_left = TRIES;
    let error = loop {
        tries_left -= 1;
        let error = match writer.write_pod_cidrs(node, cidrs).await {
            Ok(written) => return Outcome::Has(Box::new(written)),
            Err(WriteError::Gone) => return Outcome::Gone,
            Err(error) => error,
        };
        is_in_doubt |= may_have_arrived(&error);
        if tries_left == 0 || !is_worth_another_try(&error) {
            break error;
        }
    };
    match writer.read(&node.facts.name).await {
        Ok(found) if found.facts.uid != node.facts.uid => Outcome::Gone,
        Ok(found) if !found.facts.pod_cidrs.is_empty() => Outcome::Has(Box::new(found)),
        Err(WriteError::Gone) => Outcome::Gone,
        // A request that timed out here may be carried out after this very read, so a Node without
        // networks does not end the doubt.
        _ if is_in_doubt => Outcome::Unknown(error),
        _ => Outcome::Refused(error),
    }
}

/// Whether the API server may have carried out a write that failed. A refusal says that it did not;
/// a timeout, a broken connection or an internal error says nothing.
fn may_have_arrived(error: &WriteError) -> bool {
    match error {
        WriteError::Conflict | WriteError::Gone => false,
        WriteError::Api(kube::Error::Api(status)) => status.code >= 500 || status.code == 408,
        WriteError::Api(_) => true,
    }
}

/// A refusal stays one.
fn is_worth_another_try(error: &WriteError) -> bool {
    matches!(error, WriteError::Conflict) || may_have_arrived(error)
}
