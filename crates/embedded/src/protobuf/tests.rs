use super::*;

fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "n", "uid": "u", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"zone": "a", "empty": ""},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "q", "controller": true}],
            "finalizers": ["x/y"],
        },
        "spec": {
            "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"], "providerID": "local://1",
            "unschedulable": true,
            "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:01Z"}],
        },
        "status": {
            "capacity": {"cpu": "4"},
            "addresses": [{"type": "InternalIP", "address": "10.9.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:02.5Z"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"systemUUID": "s"},
        },
    })
}

#[test]
fn an_object_survives_the_way_there_and_back() {
    let list = json!({
        "apiVersion": "v1", "kind": "NodeList",
        "metadata": {"resourceVersion": "9", "continue": "c", "remainingItemCount": 2},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    });
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": "TooManyRequests",
        "message": "wait", "code": 429,
        "details": {"retryAfterSeconds": 5, "causes": [{"reason": "r", "field": "f"}]},
    });
    for object in [node(), list, status] {
        let bytes = encode_object(&object).expect("a kind that is spoken");
        assert_eq!(decode_object(&bytes), Ok(object));
    }
}

#[test]
fn a_kind_that_is_not_spoken_is_neither_written_nor_read() {
    let service = json!({"apiVersion": "v1", "kind": "Service"});
    assert_eq!(encode_object(&service), None);
    assert!(!speaks("v1", "Service") && speaks("v1", "Node"));
    let mut bytes = encode_object(&node()).expect("a Node");
    let place = bytes
        .windows(4)
        .position(|part| part == b"Node")
        .expect("its kind");
    bytes[place] = b'M';
    let refused = decode_object(&bytes).expect_err("an unknown kind");
    assert!(refused.to_string().contains("\"Mode\""), "{refused}");
}

#[test]
fn bytes_that_are_cut_off_are_refused_and_never_panic() {
    let bytes = encode_object(&node()).expect("a Node");
    let refused = (0..bytes.len()).filter(|end| decode_object(&bytes[..*end]).is_err());
    assert!(refused.count() > bytes.len() / 2);
    assert!(decode_object(b"{}").is_err_and(|why| why.to_string().contains("protobuf")));
}

#[test]
fn an_event_comes_behind_its_length() {
    let event = encode_event("ADDED", &node()).expect("a Node");
    let (length, rest) = event.split_at(4);
    let length: [u8; 4] = length.try_into().expect("four bytes");
    assert_eq!(u32::from_be_bytes(length) as usize, rest.len());
    assert!(rest.windows(5).any(|part| part == b"ADDED"));
}
