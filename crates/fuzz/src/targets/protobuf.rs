//! The same Nodes as the API server sends them in protobuf.

use super::cluster::watch;
use super::owned;
use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[Target::new(
    "protobuf",
    "lists and watch events of Nodes in protobuf",
    seeds,
    || {
        owned(&[
            "k8s\0",
            "Node",
            "NodeList",
            "Status",
            "BOOKMARK",
            "ERROR",
            ";stream=watch",
        ])
    },
    watch,
)
.share(20)];

fn seeds() -> Vec<Vec<u8>> {
    let status = [field(2, b"Failure"), field(4, b"Expired"), vec![6 << 3, 42]].concat();
    let list = [field(1, &field(2, b"9")), field(2, &node())].concat();
    let events = [
        event(b"ADDED", &object(b"Node", &node())),
        event(b"DELETED", &object(b"Node", &node())),
        event(b"ERROR", &object(b"Status", &status)),
    ];
    vec![
        answer("", &object(b"NodeList", &list)),
        answer("", &object(b"Status", &status)),
        answer(";stream=watch", &events.concat()),
    ]
}

fn answer(parameters: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("200\nContent-Type: application/vnd.kubernetes.protobuf{parameters}\n\n");
    [head.as_bytes(), body].concat()
}

fn event(kind: &[u8], object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind), field(2, &field(1, object))].concat();
    let length = u32::try_from(event.len()).expect("seeds are short");
    [&length.to_be_bytes(), event.as_slice()].concat()
}

fn object(kind: &[u8], raw: &[u8]) -> Vec<u8> {
    let kind = [field(1, b"v1"), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, raw)].concat()
}

fn node() -> Vec<u8> {
    let label = [field(1, b"a"), field(2, b"b")].concat();
    let time = field(8, &[1 << 3, 0x80, 0x94, 0xeb, 0xdc, 0x03]);
    let metadata = [
        field(1, b"n"),
        field(5, b"u"),
        field(6, b"7"),
        time,
        field(11, &label),
    ];
    let taint = [field(1, b"k"), field(3, b"NoSchedule")].concat();
    let spec = [
        field(3, b"hcloud://1"),
        field(5, &taint),
        field(7, b"10.244.0.0/24"),
    ];
    let condition = [field(1, b"Ready"), field(2, b"True")].concat();
    let address = [field(1, b"InternalIP"), field(2, b"10.0.0.1")].concat();
    let status = [
        field(4, &condition),
        field(5, &address),
        field(7, &field(2, b"4c4c")),
    ];
    [
        field(1, &metadata.concat()),
        field(2, &spec.concat()),
        field(3, &status.concat()),
    ]
    .concat()
}

/// A field whose value has a length, which takes two bytes here however short it is.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("seeds are short");
    let low = u8::try_from(length & 127).unwrap_or_default() | 128;
    let high = u8::try_from(length >> 7).expect("seeds are short");
    [&[number << 3 | 2, low, high], value].concat()
}
