//! What goes wrong, and that no Node is deleted for it: only `Gone` may lead to a deletion.

use cloudkeel_api::{CloudProvider as _, Existence, NodeFacts, Shared};
use cloudkeel_provider_vsphere::VSphereProvider;
use cloudkeel_testkit::conformance::{CommonFault, FaultMatch};
use cloudkeel_testkit::vcsim::VCenterSpec;
use serde_json::json;

use crate::lab::{Lab, instances, known_besides, names, present};

/// What every way to ask says about these Nodes, with an instance that was known before.
async fn answers(
    provider: &VSphereProvider,
    nodes: &[NodeFacts],
    before: &Before,
) -> Vec<Existence> {
    let shared = Shared::of_each(nodes);
    let known = before.0.as_ref();
    let mut answers = instances(provider).find_many(&shared, known).await;
    for node in nodes {
        answers.push(instances(provider).find(node, known).await);
    }
    answers
}

struct Before(Option<cloudkeel_api::KnownInstance>);

async fn before(provider: &VSphereProvider, of: &NodeFacts) -> Before {
    let list = instances(provider).list().await.unwrap();
    Before(known_besides(&list, of))
}

fn none_is_gone(answers: &[Existence]) {
    for answer in answers {
        assert!(!matches!(answer, Existence::Gone(_)), "{answer:?}");
    }
}

fn all_are_unknown(answers: &[Existence]) {
    for answer in answers {
        assert!(matches!(answer, Existence::Unknown(_)), "{answer:?}");
    }
}

/// Nodes of which the second has no machine any more.
async fn scene(lab: &Lab) -> (VSphereProvider, Vec<NodeFacts>, Before) {
    let nodes = lab.add_nodes(0, 1..4).await;
    let provider = lab.connect().await;
    let before = before(&provider, &nodes[1].1).await;
    lab.vcenters[0].destroy(&nodes[1].0.id).await.unwrap();
    let nodes = nodes.into_iter().map(|(_, node)| node).collect();
    (provider, nodes, before)
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_refused_login_makes_nothing_gone() {
    let lab = Lab::new(1).await;
    let (provider, nodes, before) = scene(&lab).await;
    let vcenter = &lab.vcenters[0];
    let faults = json!({"password": "another", "expire": true});
    vcenter.set_faults(faults).await.unwrap();
    all_are_unknown(&answers(&provider, &nodes, &before).await);
    assert!(instances(&provider).list().await.is_err());
    let calls = vcenter.calls().await.unwrap();
    assert_eq!(
        calls["Login"], 2,
        "a wrong password is not tried again and again"
    );
    assert!(lab.try_connect().await.is_err());

    vcenter
        .set_faults(json!({"password": "pass"}))
        .await
        .unwrap();
    provider.check().await.unwrap();
    let found = instances(&provider)
        .find(&nodes[1], before.0.as_ref())
        .await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_missing_secret_makes_nothing_gone() {
    let mut lab = Lab::new(1).await;
    let vcenter = &mut lab.settings["vcenter"]["vc0"];
    for (key, value) in [
        ("user", json!(null)),
        ("password", json!(null)),
        ("secretName", json!("creds")),
        ("secretNamespace", json!("kube-system")),
    ] {
        vcenter[key] = value;
    }
    let host = lab.vcenters[0].host();
    let pairs = [
        (format!("{host}.username"), "user"),
        (format!("{host}.password"), "pass"),
    ];
    lab.secrets.set("kube-system/creds", &pairs);
    let (provider, nodes, before) = scene(&lab).await;
    lab.secrets.0.lock().unwrap().clear();
    lab.vcenters[0]
        .set_faults(json!({"expire": true}))
        .await
        .unwrap();
    all_are_unknown(&answers(&provider, &nodes, &before).await);
    let error = instances(&provider).list().await.unwrap_err();
    assert!(
        error.to_string().contains("Secret kube-system/creds"),
        "{error}"
    );
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_session_that_expires_in_the_middle_of_a_list_costs_nothing() {
    let mut lab = Lab::new(1).await;
    lab.page_size = Some(2);
    lab.add_nodes(0, 1..6).await;
    let provider = lab.connect().await;
    let all = ["node-1", "node-2", "node-3", "node-4", "node-5"];
    let continued = || FaultMatch::operation("ContinueRetrievePropertiesEx".to_owned());
    let by = std::time::Duration::from_millis(500);
    lab.interposer.once(continued(), CommonFault::Slow { by });
    let expire = async {
        while lab.interposer.calls_of("ContinueRetrievePropertiesEx") == 0 {
            tokio::task::yield_now().await;
        }
        lab.vcenters[0].set_faults(json!({"expire": true})).await
    };
    let reader = instances(&provider);
    let (list, expired) = tokio::join!(reader.list(), expire);
    expired.unwrap();
    assert_eq!(names(&list.unwrap()), all);
    assert_eq!(lab.interposer.calls_of("Login"), 2, "it had expired");

    // As vCenter answers a session that does not know where another one stopped.
    let lost = "<Envelope><Body><Fault><faultstring>lost</faultstring><detail><InvalidPropertyFault/></detail>\
                </Fault></Body></Envelope>";
    let fault = CommonFault::Status {
        status: 500,
        body: Some(lost.to_owned()),
        retry_after_seconds: None,
    };
    lab.interposer.once(continued(), fault.clone());
    let before = lab.interposer.calls_of("RetrievePropertiesEx");
    assert_eq!(names(&reader.list().await.unwrap()), all);
    let lists = lab.interposer.calls_of("RetrievePropertiesEx") - before;
    assert_eq!(lists, 2, "it began again");
    lab.interposer.times(continued(), 2, fault);
    assert!(reader.list().await.is_err(), "never a short list");
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn one_vcenter_that_is_down_says_nothing_and_the_other_goes_on() {
    let lab = Lab::new(2).await;
    let ours = lab.add_nodes(0, 1..4).await;
    let theirs = lab.add_nodes(1, 11..14).await;
    let provider = lab.connect().await;
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(list.instances().len(), 6);
    let known = known_besides(&list, &ours[0].1);
    lab.vcenters[0].destroy(&ours[0].0.id).await.unwrap();
    lab.vcenters[1]
        .set_faults(json!({"down": true}))
        .await
        .unwrap();

    let list = instances(&provider).list().await.unwrap();
    assert_eq!(names(&list), ["node-2", "node-3"]);
    let blind: Vec<_> = list
        .blind_spots()
        .iter()
        .map(|it| it.part.clone())
        .collect();
    let down = &lab.vcenters[1];
    let part = format!("vCenter {}:{}", down.host(), down.port());
    assert_eq!(blind, [part], "what is not seen is said");
    // It could be in the other one.
    let doubtful = instances(&provider).find(&ours[0].1, known.as_ref()).await;
    assert!(matches!(doubtful, Existence::Unknown(_)), "{doubtful:?}");
    present(instances(&provider).find(&ours[1].1, known.as_ref()).await);
    for (_, node) in &theirs {
        let answer = instances(&provider).find(node, known.as_ref()).await;
        assert!(matches!(answer, Existence::Unknown(_)), "{answer:?}");
    }
    // A restart does not wait for it either.
    let restarted = lab.connect().await;
    assert_eq!(
        names(&instances(&restarted).list().await.unwrap()),
        ["node-2", "node-3"]
    );

    lab.vcenters[1]
        .set_faults(json!({"down": false}))
        .await
        .unwrap();
    restarted.check().await.unwrap();
    assert!(instances(&restarted).list().await.unwrap().is_complete());
    let gone = instances(&restarted).find(&ours[0].1, known.as_ref()).await;
    assert!(matches!(gone, Existence::Gone(_)), "{gone:?}");
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_machine_that_moves_between_hosts_stays_the_same() {
    let lab = Lab::new(1).await;
    let nodes = lab.add_nodes(0, 1..3).await;
    let provider = lab.connect().await;
    let before = present(instances(&provider).find(&nodes[0].1, None).await);
    let vcenter = &lab.vcenters[0];
    for host in ["DC0_C0_H1", "DC0_C0_H0"] {
        vcenter
            .change(&nodes[0].0.id, json!({"host": host}))
            .await
            .unwrap();
        let after = present(instances(&provider).find(&nodes[0].1, None).await);
        assert_eq!(after, before, "{host}");
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_template_with_the_same_names_is_no_node_and_a_clone_makes_none_gone() {
    let lab = Lab::new(1).await;
    let nodes = lab.add_nodes(0, 1..3).await;
    let provider = lab.connect().await;
    let before = before(&provider, &nodes[0].1).await;
    let vcenter = &lab.vcenters[0];
    let twin = |name: &str, uuid: &str, is_template: bool| {
        json!({"name": name, "uuid": uuid, "hostName": "node-1", "off": true, "template": is_template,
               "nics": [{"network": "VM Network", "addresses": ["10.9.9.9"], "device": 4000}]})
    };
    let uuid = &nodes[0].0.uuid;
    vcenter.add(twin("template", uuid, true)).await.unwrap();
    let other = "00000000-0000-4000-8000-000000000001";
    vcenter.add(twin("template-2", other, true)).await.unwrap();
    let found = present(instances(&provider).find(&nodes[0].1, None).await);
    assert_eq!(found.addresses[1].address, "10.0.0.1", "not the template");
    let by_name = NodeFacts {
        provider_id: None,
        ..nodes[0].1.clone()
    };
    let found = present(instances(&provider).find(&by_name, None).await);
    assert_eq!(found.addresses[1].address, "10.0.0.1");
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(names(&list), ["node-1", "node-2"]);

    // A clone that kept the UUID: either could be the Node.
    vcenter.add(twin("clone", uuid, false)).await.unwrap();
    let both: Vec<_> = nodes.iter().map(|(_, node)| node.clone()).collect();
    let said = answers(&provider, &both[..1], &before).await;
    all_are_unknown(&said);
    assert!(
        format!("{said:?}").contains("several virtual machines"),
        "{said:?}"
    );
    none_is_gone(&answers(&provider, &both, &before).await);
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_machine_that_was_made_a_template_is_not_gone() {
    let lab = Lab::new(1).await;
    let nodes = lab.add_nodes(0, 1..3).await;
    let provider = lab.connect().await;
    let before = before(&provider, &nodes[0].1).await;
    let fields = json!({"off": true, "template": true});
    lab.vcenters[0]
        .change(&nodes[0].0.id, fields)
        .await
        .unwrap();
    let found = instances(&provider)
        .find(&nodes[0].1, before.0.as_ref())
        .await;
    assert_eq!(present(found).state, cloudkeel_api::InstanceState::ShutDown);
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn with_skip_node_deletion_nothing_is_ever_gone() {
    let mut lab = Lab::new(1).await;
    lab.settings["skipNodeDeletion"] = json!(true);
    let (provider, nodes, before) = scene(&lab).await;
    let said = answers(&provider, &nodes[1..2], &before).await;
    all_are_unknown(&said);
    assert!(
        format!("{said:?}").contains("SKIP_NODE_DELETION"),
        "{said:?}"
    );
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_datacenter_that_is_not_there_is_an_error_and_no_empty_list() {
    let mut lab = Lab::with(vec![VCenterSpec::default()]).await;
    lab.settings["vcenter"]["vc0"]["datacenters"] = json!(["DC0", "DC7"]);
    lab.add_nodes(0, 1..3).await;
    let error = lab.try_connect().await.err().unwrap().to_string();
    assert!(
        error.contains("\"DC7\"") && error.contains("/DC0"),
        "{error}"
    );
}
