//! Logins and logouts.

use cloudkeel_api::CloudProvider as _;
use serde_json::json;

use crate::lab::{Lab, instances, names};

const REST: &str = "POST /rest/com/vmware/cis/session";

async fn count(lab: &Lab, call: &str) -> u64 {
    let calls = lab.vcenters[0].calls().await.unwrap();
    calls.get(call).copied().unwrap_or_default()
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn there_is_one_session_of_each_kind_and_both_are_ended() {
    let mut lab = Lab::new(1).await;
    lab.settings["labels"] = json!({"zone": "z", "region": "r"});
    lab.add_nodes(0, 1..4).await;
    let provider = lab.connect().await;
    for _ in 0..5 {
        let list = instances(&provider).list().await.unwrap();
        let all = list.instances().cloned().collect();
        instances(&provider)
            .describe(all, cloudkeel_api::Priority::Normal)
            .await;
    }
    assert_eq!(
        (count(&lab, "Login").await, count(&lab, REST).await),
        (1, 1)
    );
    provider.close().await;
    let rest_logout = "DELETE /rest/com/vmware/cis/session";
    assert_eq!(
        (count(&lab, "Logout").await, count(&lab, rest_logout).await),
        (1, 1)
    );
    provider.close().await;
    assert_eq!(count(&lab, "Logout").await, 1, "once is enough");
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn an_expired_session_is_replaced_in_the_same_call() {
    let mut lab = Lab::new(1).await;
    lab.settings["labels"] = json!({"zone": "z", "region": "r"});
    lab.vcenters[0].tag("z", "a", "/DC0").await.unwrap();
    lab.vcenters[0].tag("r", "b", "/DC0").await.unwrap();
    let nodes = lab.add_nodes(0, 1..4).await;
    let provider = lab.connect().await;
    instances(&provider).find(&nodes[0].1, None).await;
    lab.vcenters[0]
        .set_faults(json!({"expire": true}))
        .await
        .unwrap();
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(names(&list), ["node-1", "node-2", "node-3"]);
    let found = crate::lab::present(instances(&provider).find(&nodes[0].1, None).await);
    assert_eq!(found.zone.as_deref(), Some("a"), "REST logs in again too");
    assert_eq!(
        (count(&lab, "Login").await, count(&lab, REST).await),
        (2, 2)
    );
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_new_password_in_the_secret_is_used_at_the_next_login() {
    let mut lab = Lab::new(1).await;
    let vcenter = &mut lab.settings["vcenter"]["vc0"];
    vcenter["secretName"] = json!("creds");
    vcenter["secretNamespace"] = json!("kube-system");
    let host = lab.vcenters[0].host().to_owned();
    let secret = |password: &'static str| {
        [
            (format!("{host}.username"), "user"),
            (format!("{host}.password"), password),
        ]
    };
    lab.secrets.set("kube-system/creds", &secret("pass"));
    lab.add_nodes(0, 1..3).await;
    let provider = lab.connect().await;
    lab.secrets.set("kube-system/creds", &secret("rotated"));
    let rotation = json!({"password": "rotated", "expire": true});
    lab.vcenters[0].set_faults(rotation).await.unwrap();
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(list.instances().len(), 2);
    assert_eq!(count(&lab, "Login").await, 2, "none was refused");
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_failed_start_leaves_no_session() {
    let mut lab = Lab::new(1).await;
    lab.settings["vcenter"]["vc0"]["datacenters"] = json!(["DC7"]);
    assert!(lab.try_connect().await.is_err());
    assert_eq!(
        (count(&lab, "Login").await, count(&lab, "Logout").await),
        (1, 1)
    );
}
