//! Disks, webhooks and background controllers, with one mutation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    Admission, AdmissionRequest, BackgroundContext, BackgroundController, CloudError,
    CloudProvider, ErrorKind, NodeFacts, PatchOperation, ServiceFacts, Shared, VolumePlace,
    VolumeRef, Volumes, Webhook,
};
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;
use cloudkeel_testkit::simulated_cloud::wire::NewBalancer;
use serde_json::{Value, json};

use crate::faulty::Faulty;
use crate::mutant::Mutant;

#[async_trait]
impl Volumes for Faulty {
    fn recognize(&self, name: &str, source: &str, content: &Value) -> Option<VolumeRef> {
        let found = self.correct.volumes()?.recognize(name, source, content);
        match self.mutant {
            Mutant::RecognizesEveryDisk => found.or_else(|| {
                let (name, disk) = (name.to_owned(), source.to_owned());
                Some(VolumeRef { name, disk })
            }),
            _ => found,
        }
    }

    async fn place(&self, volume: &VolumeRef) -> Result<VolumePlace, CloudError> {
        let place = self.correct.volumes().unwrap().place(volume);
        let place = self
            .exclusively(Mutant::StaysBusyWhenPlaceIsDropped, place)
            .await?;
        match (place, self.mutant) {
            (Ok(place), Mutant::PlacesWithoutZones) => Ok(VolumePlace {
                zones: Vec::new(),
                ..place
            }),
            (Err(error), Mutant::InventsDisks) if error.is_not_found() => {
                Ok(VolumePlace::default())
            }
            (Err(_), Mutant::TakesErrorsForMissingDisks) => Err(CloudError::new(
                "place",
                ErrorKind::NotFound,
                "no such disk",
            )),
            (place, _) => place,
        }
    }
}

/// Two webhooks that do nothing but say so.
pub(crate) fn webhooks(faulty: &Faulty) -> Vec<Arc<dyn Webhook>> {
    let mutant = faulty.mutant;
    let second = match mutant {
        Mutant::WebhooksShareAName => "first",
        _ => "second",
    };
    let webhook = |name| {
        let reviews = AtomicU64::new(0);
        Arc::new(Annotating {
            name,
            mutant,
            reviews,
        }) as Arc<dyn Webhook>
    };
    vec![webhook("first"), webhook(second)]
}

struct Annotating {
    name: &'static str,
    mutant: Mutant,
    reviews: AtomicU64,
}

#[async_trait]
impl Webhook for Annotating {
    fn name(&self) -> &'static str {
        self.name
    }

    fn path(&self) -> &'static str {
        match self.name {
            "first" => "/first",
            _ => "/second",
        }
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        let number = self.reviews.fetch_add(1, Ordering::Relaxed);
        let value = match self.mutant {
            Mutant::WebhooksHaveSideEffects => json!(number.to_string()),
            Mutant::WebhooksPanic => request.object["metadata"]["name"].as_str().unwrap().into(),
            Mutant::WebhooksExpectServices if request.object["metadata"].is_object() => {
                let ports = request.object["spec"]["ports"].as_array().unwrap();
                json!(ports.len().to_string())
            }
            _ => json!("reviewed"),
        };
        let patch = match request.object.get("metadata") {
            Some(_) => vec![PatchOperation::Add {
                path: "/metadata/annotations".to_owned(),
                value: json!({"test/reviewed": value}),
            }],
            None => Vec::new(),
        };
        Ok(Admission::Allow {
            patch,
            warnings: Vec::new(),
        })
    }
}

/// Two controllers that label Nodes with what their instances are.
pub(crate) fn controllers(faulty: &Faulty) -> Vec<Arc<dyn BackgroundController>> {
    let mutant = faulty.mutant;
    let second = match mutant {
        Mutant::ControllersShareAName => "types",
        _ => "more-types",
    };
    let controller = |name| {
        Arc::new(Labelling {
            name,
            mutant,
            provider: Arc::clone(&faulty.correct),
            cloud: faulty.cloud.clone(),
            nodes: OnceLock::new(),
            services: OnceLock::new(),
            has_failed: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
        }) as Arc<dyn BackgroundController>
    };
    vec![controller("types"), controller(second)]
}

struct Labelling {
    name: &'static str,
    mutant: Mutant,
    provider: Arc<dyn CloudProvider>,
    cloud: SimulatedCloud,
    /// The Nodes and Services that it saw first.
    nodes: OnceLock<Vec<Shared<NodeFacts>>>,
    services: OnceLock<Vec<ServiceFacts>>,
    has_failed: AtomicBool,
    rounds: AtomicU64,
}

impl Labelling {
    async fn label(&self, context: &BackgroundContext) -> Result<(), CloudError> {
        let list = self.provider.instances().unwrap().list().await?;
        let round = self.rounds.fetch_add(1, Ordering::Relaxed);
        let (mut nodes, mut services) = (context.nodes.snapshot(), context.services.snapshot());
        match self.mutant {
            Mutant::ControllersKnowTheFirstNodes => {
                nodes.clone_from(self.nodes.get_or_init(|| nodes.clone()));
            }
            Mutant::ControllersKnowTheFirstServices => {
                services.clone_from(self.services.get_or_init(|| services.clone()));
            }
            _ => {}
        }
        for service in services {
            let seen = BTreeMap::from([("test/seen".to_owned(), Some("yes".to_owned()))]);
            let writer = &context.writer;
            writer.annotate_service(&service.service, &seen).await?;
        }
        for node in nodes {
            let instance = node.provider_id.as_ref().and_then(|id| list.get(id));
            let mut value = instance.and_then(|instance| instance.instance_type.clone());
            if self.mutant == Mutant::ControllersNeverRest {
                value = Some(round.to_string());
            }
            let labels = BTreeMap::from([("test/type".to_owned(), value)]);
            context.writer.label_node(&node, &labels).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl BackgroundController for Labelling {
    fn name(&self) -> &'static str {
        self.name
    }

    fn watches_services(&self) -> bool {
        true
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        while !context.stop.is_cancelled() {
            let gives_up = self.mutant == Mutant::ControllersGiveUpInOutages;
            if !(gives_up && self.has_failed.load(Ordering::Relaxed)) {
                let failed = self.label(&context).await.is_err();
                let failed_before = self.has_failed.fetch_or(failed, Ordering::Relaxed);
                if failed && !failed_before && self.mutant == Mutant::ControllersLeakInOutages {
                    let left_over = NewBalancer {
                        name: "left-over".to_owned(),
                        ..NewBalancer::default()
                    };
                    self.cloud.add_balancer(left_over).unwrap();
                }
            }
            if self.mutant == Mutant::ControllersEndEarly {
                return Ok(());
            }
            let pause = tokio::time::sleep(Duration::from_mins(1));
            tokio::select! {
                () = context.stop.cancelled() => {}
                () = pause => {}
            }
        }
        Ok(())
    }
}
