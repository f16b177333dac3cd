//! From protobuf to JSON.

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use serde::Serialize;

use super::BoxError;
use super::wire::{Envelope, Node, NodeList, PartialObjectMetadata, Status, TypeMeta, WatchEvent};

/// What stands before every object that comes alone.
const MAGIC: &[u8] = b"k8s\0";

/// An object that comes alone, or inside of an event.
pub(super) fn object(bytes: &[u8]) -> Result<Bytes, BoxError> {
    let mut json = BytesMut::new().writer();
    write_object(&mut json, bytes)?;
    Ok(json.into_inner().freeze())
}

/// An event of a watch, as a line.
pub(super) fn event(frame: &[u8]) -> Result<Bytes, BoxError> {
    let event = WatchEvent::decode(frame)?;
    let mut json = BytesMut::new().writer();
    std::io::Write::write_all(&mut json, b"{\"type\":")?;
    serde_json::to_writer(&mut json, &event.kind)?;
    std::io::Write::write_all(&mut json, b",\"object\":")?;
    write_object(&mut json, &event.object.raw)?;
    std::io::Write::write_all(&mut json, b"}\n")?;
    Ok(json.into_inner().freeze())
}

fn write_object(json: &mut impl std::io::Write, bytes: &[u8]) -> Result<(), BoxError> {
    let envelope = bytes
        .strip_prefix(MAGIC)
        .ok_or("this is no Kubernetes object in protobuf")?;
    let Envelope { kind, raw } = Envelope::decode(envelope)?;
    match kind.kind.as_str() {
        "Node" => write(json, &kind, &Node::decode(raw.as_slice())?),
        "NodeList" => write(json, &kind, &NodeList::decode(raw.as_slice())?),
        "PartialObjectMetadata" => {
            write(json, &kind, &PartialObjectMetadata::decode(raw.as_slice())?)
        }
        "Status" => write(json, &kind, &Status::decode(raw.as_slice())?),
        other => Err(format!("Nodes or metadata were asked for, and {other:?} came").into()),
    }
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
