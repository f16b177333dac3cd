use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;

/// A cloud that refuses the port 81, and cannot say anything about 82.
#[derive(Default)]
struct Review {
    asked: AtomicUsize,
}

#[async_trait]
impl BalancerReview for Review {
    const NAME: &'static str = "review";
    const PATH: &'static str = "/review";
    const CLOUD: &'static str = "X";
    type Request = Vec<u16>;

    async fn request(&self, service: &LoadBalancerSpec) -> Result<Option<Vec<u16>>, CloudError> {
        match service.balancer_ref.annotations.get("x/alone") {
            Some(text) if text == "perhaps" => {
                return Err(CloudError::invalid("read annotations", "x/alone: no bool"));
            }
            Some(_) => return Ok(None),
            None => {}
        }
        let ports: Vec<u16> = service.listeners.iter().map(|it| it.port).collect();
        match ports.as_slice() {
            [] => Err(CloudError::invalid("plan", "it has no port")),
            [83, ..] => std::future::pending().await,
            _ => Ok(Some(ports)),
        }
    }

    async fn validate(
        &self,
        _: &LoadBalancerSpec,
        _: Option<&LoadBalancerSpec>,
        request: &Vec<u16>,
    ) -> Result<(), CloudError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match request.as_slice() {
            [81, ..] => Err(CloudError::invalid("validate", "not this port")),
            [82, ..] => Err(CloudError::new("validate", ErrorKind::Unavailable, "down")),
            _ => Ok(()),
        }
    }
}

fn service(port: Option<u16>, alone: Option<&str>) -> Value {
    let ports: Vec<_> = port.iter().map(|port| json!({"port": port})).collect();
    let mut annotations = BTreeMap::new();
    annotations.extend(alone.map(|text| ("x/alone", text)));
    json!({"metadata": {"annotations": annotations}, "spec": {"type": "LoadBalancer", "ports": ports}})
}

fn in_words(admission: &Admission) -> String {
    match admission {
        Admission::Deny { why } => format!("denied: {why}"),
        Admission::Allow { patch, warnings } => {
            assert!(patch.is_empty(), "{patch:?}");
            let warning = warnings.first();
            warning.map_or_else(String::new, |text| format!("warning: {text}"))
        }
    }
}

#[tokio::test]
async fn a_cloud_is_asked_only_about_what_it_has_to_decide() {
    let good = service(Some(80), None);
    let cluster_ip = json!({"metadata": {}, "spec": {"type": "ClusterIP"}});
    let nothing = Value::Null;
    for (case, operation, object, old, expected, asked) in [
        ("a good one", "CREATE", &good, &nothing, "", 1),
        ("it is deleted", "DELETE", &good, &nothing, "", 0),
        ("no load balancer", "CREATE", &cluster_ip, &nothing, "", 0),
        ("nothing changes", "UPDATE", &good, &good, "", 0),
        (
            "another port",
            "UPDATE",
            &good,
            &service(Some(443), None),
            "",
            1,
        ),
        (
            "left alone",
            "CREATE",
            &service(Some(81), Some("yes")),
            &nothing,
            "",
            0,
        ),
        (
            "perhaps left alone",
            "CREATE",
            &service(Some(80), Some("perhaps")),
            &nothing,
            "denied: failed to build load balancer request: x/alone: no bool",
            0,
        ),
        (
            "wrong by itself",
            "CREATE",
            &service(None, None),
            &nothing,
            "denied: failed to build load balancer request: it has no port",
            0,
        ),
        (
            "refused",
            "CREATE",
            &service(Some(81), None),
            &nothing,
            "denied: X refuses this load balancer: not this port",
            1,
        ),
        (
            "no answer",
            "CREATE",
            &service(Some(82), None),
            &nothing,
            "warning: the load balancer was not checked: down",
            1,
        ),
    ] {
        let webhook = ReviewWebhook(Review::default());
        let request = request_of(operation, object.clone(), old.clone());
        let said = in_words(&webhook.review(&request).await.unwrap());
        assert_eq!(said, expected, "{case}");
        assert_eq!(webhook.0.asked.into_inner(), asked, "{case}");
    }
}

fn request_of(operation: &str, object: Value, old_object: Value) -> AdmissionRequest {
    AdmissionRequest {
        uid: "1".to_owned(),
        operation: operation.to_owned(),
        namespace: Some("ns".to_owned()),
        name: "web".to_owned(),
        object,
        old_object,
    }
}

#[tokio::test]
async fn a_service_that_was_wrong_and_is_mended_is_asked_about() {
    let webhook = ReviewWebhook(Review::default());
    let request = request_of("UPDATE", service(Some(80), None), service(None, None));
    assert_eq!(in_words(&webhook.review(&request).await.unwrap()), "");
    assert_eq!(webhook.0.asked.into_inner(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_does_not_wait_for_a_cloud_that_does_not_answer() {
    let request = request_of("CREATE", service(Some(83), None), Value::Null);
    let webhook = ReviewWebhook(Review::default());
    let error = webhook.review(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}
