//! A Node as the body of a PUT: what the API server wrote, with the changes in place. It costs the API server a tenth
//! less than a patch.

use std::collections::BTreeMap;

use bytes::{Buf as _, Bytes};
use cloudkeel_api::ProviderId;
use prost::DecodeError;
use prost::Message as _;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use super::transcode::MAGIC;
use super::wire::{Envelope, NodeSpec, ObjectMeta, RawNode, Taint, TypeMeta};
use crate::node::plan::NodeChanges;
use crate::view::{Base64, NodeView, Original};

/// Fields of the metadata that a PUT sets or leaves out: version, labels, managed fields.
const OF_METADATA: [u32; 3] = [6, 11, 17];
/// The taints, which a PUT sets. A provider ID stays as it is unless another one follows it.
const OF_SPEC: [u32; 1] = [5];

/// What a PUT has to send back.
pub(super) fn original(metadata: &[u8], spec: &[u8]) -> Result<Original, DecodeError> {
    Ok(Original {
        metadata: Base64(without(metadata, &OF_METADATA)?.into()),
        spec: Base64(without(spec, &OF_SPEC)?.into()),
    })
}

/// The Node after the changes, in protobuf. `None` if its original is not known, or if the taints stay: only a change
/// of them is tied to the version anyway.
pub(in crate::runtime) fn replacement(node: &NodeView, changes: &NodeChanges) -> Option<Vec<u8>> {
    let original = node.original.as_ref()?;
    let taints = changes.taints.as_ref()?.iter();
    let new_id = changes.provider_id.as_ref();
    let mut labels: BTreeMap<String, String> = node.facts.labels.clone();
    labels.extend(changes.labels.clone());
    // Concatenated messages of protobuf are one message, in which the last value of a field counts.
    let metadata = ObjectMeta {
        resource_version: node.resource_version.clone(),
        labels,
        ..ObjectMeta::default()
    };
    let spec = NodeSpec {
        provider_id: new_id.map(ProviderId::to_string).unwrap_or_default(),
        taints: taints.map(Taint::from).collect(),
        ..NodeSpec::default()
    };
    let written = RawNode {
        metadata: [&*original.metadata.0, &metadata.encode_to_vec()]
            .concat()
            .into(),
        spec: [&*original.spec.0, &spec.encode_to_vec()].concat().into(),
        status: Bytes::new(),
    };
    let kind = TypeMeta {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
    };
    let raw = written.encode_to_vec().into();
    Some([MAGIC, &Envelope { kind, raw }.encode_to_vec()].concat())
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
