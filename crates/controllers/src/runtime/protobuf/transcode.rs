//! From protobuf to JSON.

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use serde::Serialize;

use super::BoxError;
use super::replace::original;
use super::wire::{
    Envelope, ListMeta, Node, NodeList, NodeSpec, NodeStatus, ObjectMeta, PartialObjectMetadata,
    RawNode, Status, TypeMeta, WatchEvent,
};
use crate::wellknown::UNINITIALIZED_TAINT;

/// What stands before every object that comes alone.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// An object that comes alone, or inside of an event.
pub(super) fn object(bytes: &Bytes) -> Result<Bytes, BoxError> {
    let mut json = BytesMut::new().writer();
    write_object(&mut json, bytes)?;
    Ok(json.into_inner().freeze())
}

/// An event of a watch, as a line.
pub(super) fn event(frame: Bytes) -> Result<Bytes, BoxError> {
    let event = WatchEvent::decode(frame)?;
    let mut json = BytesMut::new().writer();
    std::io::Write::write_all(&mut json, b"{\"type\":")?;
    serde_json::to_writer(&mut json, &event.kind)?;
    std::io::Write::write_all(&mut json, b",\"object\":")?;
    write_object(&mut json, &event.object.raw)?;
    std::io::Write::write_all(&mut json, b"}\n")?;
    Ok(json.into_inner().freeze())
}

fn write_object(json: &mut impl std::io::Write, bytes: &Bytes) -> Result<(), BoxError> {
    if !bytes.starts_with(MAGIC) {
        return Err("this is no Kubernetes object in protobuf".into());
    }
    let Envelope { kind, raw } = Envelope::decode(bytes.slice(MAGIC.len()..))?;
    match kind.kind.as_str() {
        "Node" => write(json, &kind, &node(raw)?),
        "NodeList" => write(json, &kind, &list(raw)?),
        "PartialObjectMetadata" => write(json, &kind, &PartialObjectMetadata::decode(raw)?),
        "Status" => write(json, &kind, &Status::decode(raw)?),
        other => Err(format!("Nodes or metadata were asked for, and {other:?} came").into()),
    }
}

#[derive(Serialize)]
struct List {
    metadata: ListMeta,
    items: Vec<Node>,
}

fn list(raw: Bytes) -> Result<List, BoxError> {
    let NodeList { metadata, items } = NodeList::decode(raw)?;
    let items = items.into_iter().map(node).collect::<Result<_, _>>()?;
    Ok(List { metadata, items })
}

/// Nodes that wait to be initialised are kept as they came, because they will be written soon.
fn node(raw: Bytes) -> Result<Node, BoxError> {
    let raw = RawNode::decode(raw)?;
    let spec = NodeSpec::decode(raw.spec.clone())?;
    let is_waiting = spec.has_taint(UNINITIALIZED_TAINT);
    let original = is_waiting.then(|| original(&raw.metadata, &raw.spec));
    Ok(Node {
        metadata: ObjectMeta::decode(raw.metadata)?,
        spec,
        status: NodeStatus::decode(raw.status)?,
        original: original.transpose()?,
    })
}

fn write(
    json: &mut impl std::io::Write,
    kind: &TypeMeta,
    object: &impl Serialize,
) -> Result<(), BoxError> {
    #[derive(Serialize)]
    struct Typed<'a, T> {
        #[serde(flatten)]
        kind: &'a TypeMeta,
        #[serde(flatten)]
        object: &'a T,
    }
    serde_json::to_writer(json, &Typed { kind, object })?;
    Ok(())
}
