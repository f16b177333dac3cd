//! The bodies of the writes to Services on the real API server, which decides what a strategic merge makes of them,
//! and on the embedded one, which has to agree.

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use cloudkeel_api::{
        Ingress, IpMode, LoadBalancerStatus, Options, Outcome, Plan, ServiceChanges,
    };
    use cloudkeel_controllers::service::status::StatusUpdate;
    use cloudkeel_controllers::service::{conditions, status};
    use cloudkeel_controllers::view::{ServiceView, View as _};
    use cloudkeel_controllers::wellknown::CLEANUP_FINALIZER;
    use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace};
    use cloudkeel_testkit::either_api::{EitherApi, RunningApi};
    use cloudkeel_testkit::on_both_apis;
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Service;
    use kube::Api;
    use kube::api::{Patch, PatchParams};
    use serde_json::{Value, json};

    const OTHERS: &str = "example.com/other";

    on_both_apis![
        the_finalizer_comes_and_goes_and_those_of_others_stay,
        a_release_that_arrives_late_is_refused,
        a_status_that_was_written_needs_no_second_write,
        conditions_ride_along_and_leave_with_the_balancer,
        a_service_that_changes_its_type_loses_all_of_it_in_one_write,
        what_was_meant_for_another_service_of_the_same_name_is_refused,
    ];

    struct Web {
        api: Api<Service>,
        namespace: TestNamespace,
        _server: RunningApi,
    }

    impl Web {
        /// A Service with a finalizer and a condition that are not ours.
        async fn on(server: EitherApi) -> Self {
            let server = server.run().await;
            let client = server.client();
            let namespace = TestNamespace::create(&client, "patches").await.unwrap();
            ServiceBuilder::new(namespace.name(), "web")
                .port("http", 80)
                .annotation("keep", "me")
                .finalizer(OTHERS)
                .create(&client)
                .await
                .unwrap();
            let web = Self {
                api: Api::namespaced(client, namespace.name()),
                namespace,
                _server: server,
            };
            web.write(&json!({"status": {"conditions": [{
                "type": "example.com/Other", "status": "True", "reason": "Other", "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }]}}))
            .await
            .unwrap();
            web
        }

        async fn write(&self, body: &Value) -> Result<ServiceView, kube::Error> {
            let patch = Patch::Strategic(body);
            let parameters = PatchParams::default();
            let written = self.api.patch_status("web", &parameters, &patch).await?;
            Ok(ServiceView::of(&written))
        }

        async fn view(&self) -> ServiceView {
            ServiceView::of(&self.api.get("web").await.unwrap())
        }

        async fn condition_types(&self) -> Vec<String> {
            let status = self.api.get("web").await.unwrap().status.unwrap();
            let conditions = status.conditions.unwrap_or_default();
            conditions.into_iter().map(|found| found.type_).collect()
        }

        async fn end(self) {
            let patch = json!({"metadata": {"finalizers": null}});
            let parameters = PatchParams::default();
            let patch = Patch::Merge(patch);
            self.api.patch("web", &parameters, &patch).await.unwrap();
            self.namespace.delete().await.unwrap();
        }
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn settled(ips: &[&str]) -> StatusUpdate {
        let ingress = ips.iter().map(|ip| Ingress::Ip {
            ip: ip.parse::<IpAddr>().unwrap(),
            mode: IpMode::Vip,
        });
        let outcome = Outcome::Settled {
            status: LoadBalancerStatus::of("7", ingress.collect()),
            changes: ServiceChanges {
                annotations: [
                    ("example.com/id".to_owned(), Some("7".to_owned())),
                    ("example.com/old".to_owned(), None),
                ]
                .into(),
                ..ServiceChanges::default()
            },
            done: Plan::default(),
        };
        StatusUpdate::of(&outcome, "fsn", &Options::default())
    }

    async fn the_finalizer_comes_and_goes_and_those_of_others_stay(on: EitherApi) {
        let web = Web::on(on).await;
        let added = web.write(&status::add_finalizer(&web.view().await)).await;
        let added = added.unwrap();
        assert!(added.has_finalizer(CLEANUP_FINALIZER) && added.has_finalizer(OTHERS));
        let again = web.write(&status::add_finalizer(&added)).await.unwrap();
        assert_eq!(again.resource_version, added.resource_version, "no change");

        let removed = web.write(&status::release(&added, now()).unwrap()).await;
        let removed = removed.unwrap();
        assert_eq!(removed.finalizers, [OTHERS]);
        assert_eq!(status::release(&removed, now()), None);
        web.end().await;
    }

    async fn a_release_that_arrives_late_is_refused(on: EitherApi) {
        let web = Web::on(on).await;
        let added = web.write(&status::add_finalizer(&web.view().await)).await;
        let added = added.unwrap();
        let late = status::release(&added, now()).unwrap();
        let published = settled(&["192.0.2.1"]).patch(&web.view().await, now());
        web.write(&published.unwrap()).await.unwrap();
        let is_conflict =
            |error: &kube::Error| matches!(error, kube::Error::Api(it) if it.code == 409);
        for outdated in [late, status::add_finalizer(&added)] {
            let refused = web.write(&outdated).await;
            assert!(refused.as_ref().is_err_and(is_conflict), "{refused:?}");
        }
        assert!(web.view().await.has_finalizer(CLEANUP_FINALIZER));
        web.end().await;
    }

    async fn a_status_that_was_written_needs_no_second_write(on: EitherApi) {
        let web = Web::on(on).await;
        let mut view = web.view().await;
        for ips in [
            &["192.0.2.1"][..],
            &["192.0.2.1", "2001:db8::1"],
            &["2001:db8::1"],
            &[],
        ] {
            let update = settled(ips);
            let patch = update.patch(&view, now()).unwrap();
            view = web.write(&patch).await.unwrap();
            assert_eq!(view.ingress.len(), ips.len(), "the list is replaced");
            assert_eq!(update.patch(&view, now()), None, "{ips:?}");
            assert_eq!(view.annotations["example.com/id"], "7");
            assert_eq!(view.annotations["keep"], "me");
        }
        web.end().await;
    }

    async fn conditions_ride_along_and_leave_with_the_balancer(on: EitherApi) {
        let web = Web::on(on).await;
        let view = web.write(&status::add_finalizer(&web.view().await)).await;
        let patch = settled(&["192.0.2.1"]).patch(&view.unwrap(), now());
        let view = web.write(&patch.unwrap()).await.unwrap();
        assert!(conditions::cloud_on(&view).is_some());
        let expected = [
            "example.com/Other",
            conditions::ACCEPTED,
            conditions::PROGRAMMED,
        ];
        let mut types = web.condition_types().await;
        types.sort_unstable_by_key(|kind| !kind.starts_with("example"));
        assert_eq!(types, expected);

        let view = web.write(&status::release(&view, now()).unwrap()).await;
        let view = view.unwrap();
        assert!(view.ingress.is_empty() && view.finalizers == [OTHERS]);
        assert_eq!(web.condition_types().await, ["example.com/Other"]);
        web.end().await;
    }

    async fn a_service_that_changes_its_type_loses_all_of_it_in_one_write(on: EitherApi) {
        let web = Web::on(on).await;
        let view = web.write(&status::add_finalizer(&web.view().await)).await;
        let patch = settled(&["192.0.2.1"]).patch(&view.unwrap(), now());
        web.write(&patch.unwrap()).await.unwrap();
        let retype = Patch::Merge(json!({"spec": {"type": "ClusterIP"}}));
        let parameters = PatchParams::default();
        web.api.patch("web", &parameters, &retype).await.unwrap();

        let view = web.view().await;
        let view = web.write(&status::release(&view, now()).unwrap()).await;
        let view = view.unwrap();
        let ours = view.conditions.iter().map(|it| it.type_.as_str());
        let mut ours = ours.filter(|kind| kind.starts_with("cloudkeel.dev/"));
        assert!(view.ingress.is_empty() && ours.next().is_none());
        assert_eq!(view.finalizers, [OTHERS]);
        assert_eq!(status::release(&view, now()), None);
        web.end().await;
    }

    async fn what_was_meant_for_another_service_of_the_same_name_is_refused(on: EitherApi) {
        let web = Web::on(on).await;
        let mut stale = web.view().await;
        stale.service.uid = "00000000-0000-0000-0000-000000000000".to_owned();
        for (case, body) in [
            ("finalizer", Some(status::add_finalizer(&stale))),
            ("status", settled(&["192.0.2.1"]).patch(&stale, now())),
        ] {
            let refused = web.write(&body.unwrap()).await;
            let Err(kube::Error::Api(status)) = refused else {
                panic!("{case}: {refused:?}");
            };
            assert!([409, 422].contains(&status.code), "{case}: {status:?}");
        }
        web.end().await;
    }
}
