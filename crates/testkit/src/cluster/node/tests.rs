use super::*;

fn built(builder: &NodeBuilder) -> (ObjectMeta, NodeSpec, NodeStatus) {
    let node = builder.build(Timestamp::UNIX_EPOCH);
    (node.metadata, node.spec.unwrap(), node.status.unwrap())
}

#[test]
fn a_kubelet_registers_its_node_for_the_cloud_to_initialise() {
    let (metadata, spec, status) = built(&NodeBuilder::new("n1"));
    let labels = metadata.labels.unwrap();
    for (key, value) in [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", "n1"),
        ("kubernetes.io/os", "linux"),
    ] {
        assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
    }
    let annotations: Vec<_> = metadata.annotations.unwrap().into_keys().collect();
    assert_eq!(
        annotations,
        ["volumes.kubernetes.io/controller-managed-attach-detach"]
    );
    let taints = spec.taints.unwrap();
    let taints: Vec<_> = taints
        .iter()
        .map(|taint| (&*taint.key, taint.value.as_deref(), &*taint.effect))
        .collect();
    assert_eq!(taints, [(UNINITIALIZED_TAINT, Some("true"), "NoSchedule")]);
    assert_eq!((spec.provider_id, spec.pod_cidrs), (None, None));
    assert!(status.capacity.unwrap().contains_key("cpu"));
    assert_eq!(status.images.unwrap().len(), 50);
}

#[test]
fn without_a_node_ip_the_host_name_is_the_only_address() {
    let address = |kind: &str, address: &str| NodeAddress {
        type_: kind.to_owned(),
        address: address.to_owned(),
    };
    let [v4, v6] = ["10.1.0.4", "fd00::4"].map(|ip| ip.parse::<IpAddr>().unwrap());
    for (case, builder, annotation, addresses) in [
        (
            "none",
            NodeBuilder::new("n1"),
            None,
            vec![address("Hostname", "n1")],
        ),
        (
            "one",
            NodeBuilder::new("n1").node_ip(v4),
            Some("10.1.0.4"),
            vec![address("InternalIP", "10.1.0.4"), address("Hostname", "n1")],
        ),
        (
            "both families",
            NodeBuilder::new("n1").node_ip(v4).node_ip(v6),
            Some("10.1.0.4,fd00::4"),
            vec![
                address("InternalIP", "10.1.0.4"),
                address("InternalIP", "fd00::4"),
                address("Hostname", "n1"),
            ],
        ),
    ] {
        let (metadata, _, status) = built(&builder);
        let annotations = metadata.annotations.unwrap();
        assert_eq!(
            annotations.get(PROVIDED_NODE_IP).map(String::as_str),
            annotation,
            "{case}"
        );
        assert_eq!(status.addresses.unwrap(), addresses, "{case}");
    }
}

#[test]
fn options_end_up_where_a_controller_reads_them() {
    let builder = NodeBuilder::new("n1")
        .initialized()
        .provider_id("cloud://1")
        .pod_cidr("10.244.1.0/24")
        .pod_cidr("fd00:1::/64")
        .label("team", "red")
        .label("kubernetes.io/hostname", "overridden")
        .annotation("note", "x");
    let (metadata, spec, status) = built(&builder);
    assert_eq!(metadata.labels.as_ref().unwrap()["team"], "red");
    assert_eq!(
        metadata.labels.as_ref().unwrap()["kubernetes.io/hostname"],
        "overridden"
    );
    assert_eq!(metadata.annotations.unwrap()["note"], "x");
    assert_eq!(spec.provider_id.as_deref(), Some("cloud://1"));
    assert_eq!(spec.pod_cidr.as_deref(), Some("10.244.1.0/24"));
    assert_eq!(spec.pod_cidrs.unwrap(), ["10.244.1.0/24", "fd00:1::/64"]);
    assert_eq!(spec.taints, None);
    let info = status.node_info.unwrap();
    assert_eq!(info.machine_id, info.system_uuid.replace('-', ""));
}
