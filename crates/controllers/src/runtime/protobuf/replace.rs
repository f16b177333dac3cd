//! A Node that is written back whole: what the API server wrote, with what changes in its place.
//!
//! The API server has less work with it than with a patch, for which it takes the whole Node apart.

use std::collections::BTreeMap;

use bytes::Buf as _;
use cloudkeel_api::ProviderId;
use prost::DecodeError;
use prost::Message as _;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::transcode::MAGIC;
use super::wire::{ChangedMetadata, ChangedSpec, Envelope, Taint, TypeMeta, WrittenNode};
use crate::node::plan::NodeChanges;
use crate::view::{NodeView, Original, Text};

/// Fields of the metadata that a write says anew, or does not say: version, labels, managed fields.
const OF_METADATA: [u32; 3] = [6, 11, 17];
/// The taints, which a write says anew. A provider ID stays as it is unless another one follows it.
const OF_SPEC: [u32; 1] = [5];

/// Keeps what a write has to give back.
pub(super) fn original(metadata: &[u8], spec: &[u8]) -> Result<Original, DecodeError> {
    Ok(Original {
        metadata: Text(without(metadata, &OF_METADATA)?),
        spec: Text(without(spec, &OF_SPEC)?),
    })
}

/// The Node after the changes, in protobuf. Nothing if it cannot be said in full, or if the taints stay: only a
/// change of them is tied to the version anyway.
pub(in crate::runtime) fn replacement(node: &NodeView, changes: &NodeChanges) -> Option<Vec<u8>> {
    let original = node.original.as_ref()?;
    let taints = changes.taints.as_ref()?.iter();
    let taints: Option<Vec<Taint>> = taints.map(Taint::of).collect();
    let new_id = changes.provider_id.as_ref();
    let mut labels: BTreeMap<String, String> = node.facts.labels.clone();
    labels.extend(changes.labels.clone());
    // Messages of protobuf one after the other are one message, in which the last word counts.
    let metadata = ChangedMetadata {
        resource_version: node.resource_version.clone(),
        labels,
    };
    let spec = ChangedSpec {
        provider_id: new_id.map(ProviderId::to_string).unwrap_or_default(),
        taints: taints?,
    };
    let written = WrittenNode {
        metadata: [original.metadata.0.as_slice(), &metadata.encode_to_vec()].concat(),
        spec: [original.spec.0.as_slice(), &spec.encode_to_vec()].concat(),
    };
    let envelope = Envelope {
        kind: TypeMeta::node(),
        raw: written.encode_to_vec().into(),
    };
    Some([MAGIC, &envelope.encode_to_vec()].concat())
}

/// A message without some of its fields, and with all others as they came.
fn without(message: &[u8], fields: &[u32]) -> Result<Vec<u8>, DecodeError> {
    let mut kept = Vec::with_capacity(message.len());
    let mut rest = message;
    while rest.has_remaining() {
        let begin = rest;
        let (field, kind) = decode_key(&mut rest)?;
        skip_field(kind, field, &mut rest, DecodeContext::default())?;
        if !fields.contains(&field) {
            let (whole, _) = begin.split_at(begin.len() - rest.len());
            kept.extend_from_slice(whole);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_taken_out_and_put_back_is_the_same_message(
            fields in prop::collection::vec((1_u32..20, prop::collection::vec(any::<u8>(), 0..200)), 0..20),
        ) {
            let encoded = |wanted: &dyn Fn(u32) -> bool| -> Vec<u8> {
                let mut message = Vec::new();
                for (field, value) in fields.iter().filter(|(field, _)| wanted(*field)) {
                    prost::encoding::bytes::encode(*field, value, &mut message);
                }
                message
            };
            let kept = without(&encoded(&|_| true), &OF_METADATA).unwrap();
            prop_assert_eq!(kept, encoded(&|field| !OF_METADATA.contains(&field)));
        }

        #[test]
        fn nothing_that_comes_makes_it_panic(message in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(kept) = without(&message, &OF_SPEC) {
                prop_assert!(kept.len() <= message.len());
            }
        }
    }
}
