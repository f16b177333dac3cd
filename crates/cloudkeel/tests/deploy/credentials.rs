//! `--use-service-account-credentials`: controllers write as accounts of their own, with the roles that
//! every cluster has built in.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudkeel_testkit::cluster::{Kubelet, unique_name, wait_for_node_gone};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::DeleteParams;

use crate::account::Account;
use crate::harness::{DEADLINE, Manager};
use crate::kubectl::Kubectl;
use crate::nodes::{
    FAST_DELETION, join, lose, member, stop_reporting, wait_for_event, wait_for_initialized,
};
use crate::permissions::{Grant, granted_to, manifests, parse, permissions, without};
use crate::services::Served;
use crate::trial::{Trial, own_grants, warnings, warns};

/// What the installation of this name grants, as kustomize puts it together.
pub(crate) async fn installed() -> Vec<Grant> {
    let kubectl = Kubectl::new().await;
    let folder = manifests().join("service-account-credentials");
    let said = kubectl.run(["kustomize".as_ref(), folder.as_os_str()]).ok();
    granted_to("cloudkeel", &parse(&said.stdout))
}

fn flags() -> Vec<&'static str> {
    let mut flags = FAST_DELETION.to_vec();
    flags.push("--use-service-account-credentials");
    flags
}

async fn forget_the_account(trial: &Trial) {
    let accounts: Api<ServiceAccount> = Api::namespaced(trial.world.client.clone(), "kube-system");
    let deleted = accounts
        .delete("node-controller", &DeleteParams::default())
        .await;
    match deleted {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => panic!("{error}"),
    }
}

/// One after the other, for all of it is about the one account kube-system/node-controller.
#[tokio::test]
async fn controllers_write_as_their_own_account_and_no_other_could() {
    let grants = installed().await;
    only_the_controllers_account_can_write(&grants).await;
    for (permission, expected) in [
        (
            "cloudkeel:service-account-credentials serviceaccounts get",
            "cannot get or create ServiceAccount kube-system/node-controller",
        ),
        (
            "cloudkeel:service-account-credentials serviceaccounts/token create",
            "cannot get a token for ServiceAccount kube-system/node-controller",
        ),
        (
            "cloudkeel:service-account-credentials serviceaccounts create",
            "cannot get or create ServiceAccount kube-system/node-controller",
        ),
    ] {
        let trial = Trial::new(&without(&grants, permission)).await;
        if permission.ends_with("serviceaccounts create") {
            forget_the_account(&trial).await;
        }
        let mut manager = trial.start(&flags());
        assert_eq!(manager.ended().await.code(), Some(1), "{permission}");
        assert!(manager.log().contains(expected), "{}", manager.log());
    }
    for permission in [
        "nodes list",
        "nodes watch",
        "services list",
        "services watch",
    ] {
        let (resource, verb) = permission.split_once(' ').expect("two words");
        let verb = format!("cannot {verb} resource \"{resource}\"");
        let permission = format!("cloudkeel:informers {permission}");
        let trial = Trial::new(&without(&grants, &permission)).await;
        let manager = trial.start(&flags());
        let warned = warns(&manager, &["watch failed", &verb]).await;
        assert!(warned.is_ok(), "{permission}: {warned:?}");
    }
}

async fn only_the_controllers_account_can_write(grants: &[Grant]) {
    let trial = Trial::new(grants).await;
    let world = &trial.world;
    for verb in ["create", "update", "patch", "delete"] {
        for resource in ["nodes", "services", "services/status"] {
            let may = trial.account.may_anywhere(verb, "", resource).await;
            assert!(!may, "the manager's own account may {verb} {resource}");
        }
    }
    let [gone, alive, stays] = ["gone", "alive", "stays"].map(unique_name);
    let machine = join(world, &gone).await;
    let other = member(world, &alive).await;
    join(world, &stays).await;
    let manager = trial.start(&flags());
    wait_for_initialized(world, &gone).await;
    wait_for_initialized(world, &stays).await;
    wait_for_event(world, "default", &gone, "Synced", 1).await;
    let controller = Account::existing(&world.client, "node-controller");
    assert!(controller.may_anywhere("delete", "", "nodes").await);
    let leases = controller.may_anywhere("get", "coordination.k8s.io", "leases");
    assert!(
        !leases.await,
        "so the manager itself reads the leases of kubelets"
    );

    let served = Served::new(world).await;
    served.address().await;
    served.wait_for_event("EnsuredLoadBalancer").await;
    served.delete().await;
    lose(world, &gone, machine).await;
    wait_for_node_gone(&world.client, &gone, DEADLINE).await;
    assert_quiet(&manager);
    let kubelet = Kubelet::new(&world.client, &alive);
    let _live = kubelet.live(Duration::from_millis(200));
    world.cloud.destroy(other).expect("the machine is there");
    stop_reporting(world, &alive).await;
    wait_for_event(world, "default", &alive, "NodeKept", 1).await;
    world.node(&alive).await;
}

fn assert_quiet(manager: &Manager) {
    let warnings = warnings(manager);
    assert!(warnings.is_empty(), "{warnings:#?}");
}

/// What is checked above, and what the other roles have rows for, is all there is.
#[tokio::test]
async fn the_installation_grants_nothing_that_is_not_checked() {
    let common = permissions(&own_grants(&["cluster", "election", "events", "serving"]));
    let own: BTreeSet<_> = permissions(&installed().await)
        .difference(&common)
        .cloned()
        .collect();
    let expected = [
        "cloudkeel:heartbeats leases get",
        "cloudkeel:heartbeats leases list",
        "cloudkeel:informers events create",
        "cloudkeel:informers events patch",
        "cloudkeel:informers nodes list",
        "cloudkeel:informers nodes watch",
        "cloudkeel:informers services list",
        "cloudkeel:informers services watch",
        "cloudkeel:service-account-credentials serviceaccounts create",
        "cloudkeel:service-account-credentials serviceaccounts get",
        "cloudkeel:service-account-credentials serviceaccounts/token create",
    ];
    assert_eq!(own, expected.map(str::to_owned).into());
}
