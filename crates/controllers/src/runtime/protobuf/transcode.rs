//! From protobuf to JSON.

use bytes::Bytes;
use prost::Message as _;
use serde::Serialize;

use super::BoxError;
use super::replace::original;
use super::wire::{
    Envelope, ListMeta, Node, NodeList, NodeSpec, NodeStatus, ObjectMeta, RawNode, Status,
    TypeMeta, WatchEvent,
};
use crate::wellknown::UNINITIALIZED_TAINT;

/// The prefix of every object.
pub(super) const MAGIC: &[u8] = b"k8s\0";

#[derive(Serialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Serialize)]
struct Object {
    #[serde(flatten)]
    kind: TypeMeta,
    #[serde(flatten)]
    content: Content,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Node(Box<Node>),
    List {
        metadata: ListMeta,
        items: Vec<Node>,
    },
    Status(Status),
}

/// An object that is a whole answer.
pub(super) fn object(bytes: &Bytes) -> Result<Bytes, BoxError> {
    let json = serde_json::to_vec(&read(bytes)?)?;
    Ok(json.into())
}

/// An event of a watch, as a line.
pub(super) fn event(frame: Bytes) -> Result<Bytes, BoxError> {
    let WatchEvent { kind, object } = WatchEvent::decode(frame)?;
    let object = read(&object.raw)?;
    let mut json = serde_json::to_vec(&Event { kind, object })?;
    json.push(b'\n');
    Ok(json.into())
}

fn read(bytes: &Bytes) -> Result<Object, BoxError> {
    if !bytes.starts_with(MAGIC) {
        return Err("not a Kubernetes object in protobuf".into());
    }
    let Envelope { kind, raw } = Envelope::decode(bytes.slice(MAGIC.len()..))?;
    let content = match kind.kind.as_str() {
        "Node" => Content::Node(Box::new(node(raw)?)),
        "NodeList" => {
            let NodeList { metadata, items } = NodeList::decode(raw)?;
            let items = items.into_iter().map(node).collect::<Result<_, _>>()?;
            Content::List { metadata, items }
        }
        "Status" => Content::Status(Status::decode(raw)?),
        other => return Err(format!("expected a Node, not {other:?}").into()),
    };
    Ok(Object { kind, content })
}

/// Nodes that wait to be initialised keep their original, because they will be written soon.
fn node(raw: Bytes) -> Result<Node, BoxError> {
    let raw = RawNode::decode(raw)?;
    let spec = NodeSpec::decode(raw.spec.clone())?;
    let mut taints = spec.taints.iter();
    let is_waiting = taints.any(|taint| taint.key == UNINITIALIZED_TAINT);
    let original = is_waiting.then(|| original(&raw.metadata, &raw.spec));
    Ok(Node {
        metadata: ObjectMeta::decode(raw.metadata)?,
        spec,
        status: NodeStatus::decode(raw.status)?,
        original: original.transpose()?,
    })
}
