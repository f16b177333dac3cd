//! Nodes of vSphere, of Hetzner and of the local cloud in one cluster, each owned by its own cloud.

use cloudkeel_emulator_hetzner::{HetznerCloud, ServerSpec, Settings};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::vcsim::{SimulatedVCenter, VCenterSpec};
use serde_json::json;

use crate::cluster::{register, wait_for_initialized};
use crate::harness::{TOKEN, World};

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn three_clouds_share_a_cluster_and_each_node_has_its_own() {
    let world = World::on(EitherApi::Embedded).await;
    let vcenter = SimulatedVCenter::new(VCenterSpec::default()).await;
    let vcenter = vcenter.expect("a vCenter");
    let hetzner = HetznerCloud::new(Settings::default());
    let served = hetzner
        .serve_on_loopback()
        .await
        .expect("a port on loopback");
    let mut expected = Vec::new();
    for index in 0..2 {
        let names = ["on-vsphere", "on-hetzner", "local"].map(|cloud| format!("{cloud}-{index}"));
        let [on_vsphere, on_hetzner, local] = &names;
        let vm = vcenter
            .add_vm(on_vsphere, &[&format!("10.0.0.{}", index + 1)])
            .await;
        let uuid = vm.expect("a virtual machine").uuid;
        let server = hetzner.add_server(ServerSpec::named(on_hetzner));
        let server = server.expect("a server").id;
        let machine = world.machine(local);
        let ids = [
            format!("vsphere://{uuid}"),
            format!("hcloud://{server}"),
            format!("local://{}/{machine}", world.id),
        ];
        expected.extend(names.into_iter().zip(ids));
    }
    let file = json!({
        "apiVersion": "cloudkeel.dev/v1",
        "kind": "CloudConfig",
        "clouds": [
            {"name": "onprem", "provider": "vsphere", "config": {"vcenter": {"a": {
                "server": vcenter.host(), "port": vcenter.port(), "insecureFlag": true, "user": "user",
                "password": "pass",
            }}}},
            {"name": "hetzner", "provider": "hcloud", "config": {"token": HetznerCloud::TOKEN,
                "endpoint": served.api_url()}},
            {"name": "lab", "provider": "local", "config": {"endpoint": world.url(), "token": TOKEN}},
        ],
    });
    std::fs::write(world.config(), file.to_string()).expect("the file is written");
    let mut manager = world.start(&[]);
    for (name, _) in &expected {
        register(&world, name).await;
    }
    for (name, id) in &expected {
        let node = wait_for_initialized(&world, name).await;
        let spec = node.spec.unwrap_or_default();
        assert_eq!(spec.provider_id.as_deref(), Some(id.as_str()), "{name}");
    }
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}
