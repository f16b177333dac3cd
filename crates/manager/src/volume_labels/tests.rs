use cloudkeel_api::{CloudProvider, PatchOperation, SystemClock, Volumes};
use cloudkeel_controllers::clouds::Availability;
use serde_json::{Value, json};

use super::*;

/// A cloud that has one disk in two zones, or fails.
struct Disks(Result<(), ErrorKind>);

impl CloudProvider for Disks {
    fn name(&self) -> &'static str {
        "disks"
    }
    fn volumes(&self) -> Option<&dyn Volumes> {
        Some(self)
    }
}

#[async_trait]
impl Volumes for Disks {
    fn recognize(&self, name: &str, source: &str, content: &Value) -> Option<VolumeRef> {
        let disk = content.get("volumeHandle").filter(|_| source == "csi")?;
        Some(VolumeRef {
            name: name.to_owned(),
            disk: disk.as_str()?.to_owned(),
        })
    }

    async fn place(&self, _: &VolumeRef) -> Result<VolumePlace, CloudError> {
        match self.0 {
            Ok(()) => Ok(place()),
            Err(ErrorKind::Timeout) => std::future::pending().await,
            Err(kind) => Err(CloudError::new("get volume", kind, "no")),
        }
    }
}

fn place() -> VolumePlace {
    VolumePlace {
        zones: vec!["b".to_owned(), "a".to_owned()],
        region: Some("r".to_owned()),
    }
}

fn cloud(answer: Result<(), ErrorKind>) -> Arc<Cloud> {
    Cloud::new("one", Arc::new(Disks(answer)), None, Arc::new(SystemClock))
}

fn request(volume: &Value) -> AdmissionRequest {
    let request = json!({"uid": "u", "operation": "CREATE", "name": "pv", "object": volume});
    serde_json::from_value(request).unwrap()
}

fn volume() -> Value {
    json!({"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "d", "volumeHandle": "disk-1"}}})
}

async fn review(clouds: Vec<Arc<Cloud>>, volume: &Value) -> Admission {
    let webhook = VolumeLabels::of(&clouds);
    webhook.review(&request(volume)).await.unwrap()
}

/// What the API server makes of it.
fn applied(volume: &Value, patch: &[PatchOperation]) -> Value {
    let mut volume = volume.clone();
    for operation in patch {
        let PatchOperation::Add { path, value } = operation else {
            panic!("{operation:?}");
        };
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = volume.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(key.replace("~1", "/"), value.clone());
    }
    volume
}

#[tokio::test(start_paused = true)]
async fn a_new_volume_gets_the_labels_and_the_affinity_of_its_disk_once() {
    let Admission::Allow { patch, warnings } = review(vec![cloud(Ok(()))], &volume()).await else {
        panic!("it is denied");
    };
    assert_eq!(warnings, [""; 0]);
    let labelled = applied(&volume(), &patch);
    let labels = json!({
        "topology.kubernetes.io/zone": "a__b", "topology.kubernetes.io/region": "r",
    });
    assert_eq!(labelled["metadata"]["labels"], labels);
    let expected = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]},
        {"key": "topology.kubernetes.io/region", "operator": "In", "values": ["r"]},
    ]}]}});
    assert_eq!(labelled["spec"]["nodeAffinity"], expected);
    let again = review(vec![cloud(Err(ErrorKind::Other))], &labelled).await;
    assert_eq!(again, allowed(Vec::new()), "the cloud is not asked again");
    assert_eq!(plan::patch(&labelled, &place()), []);
}

#[test]
fn what_a_volume_has_is_kept_but_for_labels_that_are_wrong() {
    let mut given = volume();
    given["metadata"]["labels"] = json!({"mine": "1", "topology.kubernetes.io/zone": "wrong"});
    let host = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]});
    given["spec"]["nodeAffinity"] =
        json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}, {}]}});
    let labelled = applied(&given, &plan::patch(&given, &place()));
    assert_eq!(labelled["metadata"]["labels"]["mine"], "1");
    assert_eq!(
        labelled["metadata"]["labels"]["topology.kubernetes.io/zone"],
        "a__b"
    );
    let terms = &labelled["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    let keys = |term: usize| {
        let expressions = terms[term]["matchExpressions"].as_array().unwrap().iter();
        expressions
            .map(|it| it["key"].as_str().unwrap())
            .collect::<Vec<_>>()
    };
    let topology = [
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
    ];
    assert_eq!(
        keys(0),
        [&["kubernetes.io/hostname"][..], &topology].concat()
    );
    assert_eq!(
        keys(1),
        topology,
        "every term, because one of them is enough"
    );
    let own = json!([{"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]);
    given["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = own.clone();
    let labelled = applied(&given, &plan::patch(&given, &place()));
    assert_eq!(
        labelled["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"], own,
        "the client's own choice of zones stays"
    );
}

fn missing() -> Arc<Cloud> {
    cloud(Err(ErrorKind::NotFound))
}

fn unavailable() -> Arc<Cloud> {
    let availability = Arc::<Availability>::default();
    availability.failed(jiff::Timestamp::UNIX_EPOCH, ErrorKind::Timeout, "no answer");
    let (provider, clock) = (Arc::new(Nothing), Arc::new(SystemClock));
    Cloud::configured("two", provider, (None, Vec::new()), clock, availability)
}

#[tokio::test(start_paused = true)]
async fn only_a_disk_that_does_not_exist_is_denied() {
    let Admission::Deny { why } = review(vec![missing()], &volume()).await else {
        panic!("it is allowed");
    };
    assert!(why.contains("disk-1"), "{why}");
    let mut provisioned = volume();
    provisioned["metadata"]["annotations"] = json!({"pv.kubernetes.io/provisioned-by": "d"});
    let fails = |kind| vec![cloud(Err(kind))];
    for (case, clouds, volume, warned) in [
        ("just made", vec![missing()], provisioned, true),
        ("down", fails(ErrorKind::Unavailable), volume(), true),
        ("mute", fails(ErrorKind::Timeout), volume(), true),
        ("rejects", fails(ErrorKind::Denied), volume(), true),
        ("elsewhere", vec![missing(), cloud(Ok(()))], volume(), false),
        (
            "maybe elsewhere",
            vec![missing(), unavailable()],
            volume(),
            true,
        ),
        (
            "of a cloud that is down",
            vec![unavailable()],
            volume(),
            true,
        ),
        ("of no cloud", vec![missing(), unavailable()], nfs(), false),
    ] {
        let Admission::Allow { warnings, .. } = review(clouds, &volume).await else {
            panic!("{case}: it is denied");
        };
        assert_eq!(!warnings.is_empty(), warned, "{case}: {warnings:?}");
    }
}

fn nfs() -> Value {
    json!({"metadata": {"name": "pv"}, "spec": {"nfs": {"server": "s"}}})
}

/// Stands in for what could not be built.
struct Nothing;

impl CloudProvider for Nothing {
    fn name(&self) -> &'static str {
        "disks"
    }
}

#[tokio::test(start_paused = true)]
async fn other_operations_are_left_alone() {
    let mut update = request(&volume());
    update.operation = "UPDATE".to_owned();
    let webhook = VolumeLabels::of(&[cloud(Err(ErrorKind::NotFound))]);
    assert_eq!(webhook.review(&update).await.unwrap(), allowed(Vec::new()));
}
