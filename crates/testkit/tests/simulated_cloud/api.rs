//! The REST API by hand: who gets in, pages, filters, conditions, refusals.

use cloudkeel_testkit::simulated_cloud::{MachineSpec, Permission, SimulatedCloud};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Rest, cloud_with};

#[tokio::test(start_paused = true)]
async fn a_token_opens_its_project_as_far_as_it_may() {
    let cloud = cloud_with(1);
    cloud.add_project("other");
    cloud
        .add_machine(MachineSpec::named("there").in_project("other"))
        .unwrap();
    cloud.grant("reader", "other", Permission::ReadOnly);
    cloud.grant("denied", "other", Permission::Nothing);
    let new = || json!({"name": "m"});
    for (case, token, method, body, status, code) in [
        (
            "no token",
            "",
            Method::GET,
            Value::Null,
            401,
            "unauthorized",
        ),
        (
            "unknown token",
            "x",
            Method::GET,
            Value::Null,
            401,
            "unauthorized",
        ),
        (
            "no permission",
            "denied",
            Method::GET,
            Value::Null,
            403,
            "forbidden",
        ),
        ("may read", "reader", Method::GET, Value::Null, 200, ""),
        (
            "may not write",
            "reader",
            Method::POST,
            new(),
            403,
            "forbidden",
        ),
        (
            "may all",
            SimulatedCloud::TOKEN,
            Method::POST,
            new(),
            201,
            "",
        ),
    ] {
        let rest = Rest::with_token(&cloud, token);
        let answer = rest.call(method, "/v1/machines", body, None).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_project_shows_other_machines_and_gets_404s() {
    let cloud = cloud_with(1);
    let here = cloud.machines()[0].id;
    cloud.add_project("other");
    let there = cloud
        .add_machine(MachineSpec::named("there").in_project("other"))
        .unwrap();
    cloud.grant("t2", "other", Permission::ReadWrite);
    let rest = Rest::with_token(&cloud, "t2");
    let list = rest.get("/v1/machines").await;
    assert_eq!(list.ids(), [there.id]);
    assert_eq!(list.header("x-project"), "other");
    let missing = rest.get(&format!("/v1/machines/{here}")).await;
    assert_eq!((missing.status, missing.code()), (404, "not_found"));
    assert_eq!(missing.header("x-project"), "other");
    assert_eq!(rest.get("/v1/scope").await.body["project"], "other");
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_that_say_how_many_there_are() {
    let cloud = cloud_with(120);
    let rest = Rest::of(&cloud);
    let all: Vec<u64> = cloud.machines().iter().map(|m| m.id).collect();
    let mut path = "/v1/machines".to_owned();
    let mut seen = Vec::new();
    let mut sizes = Vec::new();
    loop {
        let page = rest.get(&path).await;
        assert_eq!(page.body["page"]["total"], 120);
        sizes.push(page.ids().len());
        seen.extend(page.ids());
        match page.body["page"]["next"].as_str() {
            Some(next) => next.clone_into(&mut path),
            None => break,
        }
    }
    assert_eq!(sizes, [50, 50, 20]);
    assert_eq!(seen, all);

    let beyond = rest.get("/v1/machines?page=9").await;
    assert_eq!((beyond.status, beyond.ids().len()), (200, 0));
    let greedy = rest.get("/v1/machines?perPage=1000").await;
    assert_eq!(greedy.body["page"]["perPage"], 50, "the server clamps");
    let modest = rest.get("/v1/machines?perPage=7&page=2").await;
    assert_eq!(modest.ids(), all[7..14]);
}

#[tokio::test(start_paused = true)]
async fn machines_are_found_by_id_name_hostname_and_uuid() {
    let cloud = cloud_with(3);
    let special = MachineSpec::named("db")
        .hostname("db-0")
        .uuid("ABCD")
        .label("tier", "db");
    let special = cloud.add_machine(special).unwrap().id;
    let first = cloud.machines()[0].id;
    let rest = Rest::of(&cloud);
    for (query, expected) in [
        (
            format!("id={special}&id={first}&id=9999"),
            vec![first, special],
        ),
        ("name=db".into(), vec![special]),
        ("hostname=db-0".into(), vec![special]),
        ("uuid=abcd".into(), vec![special]),
        ("label=tier%3Ddb".into(), vec![special]),
        ("name=db&label=tier%3Dweb".into(), vec![]),
    ] {
        let list = rest.get(&format!("/v1/machines?{query}")).await;
        assert_eq!(list.ids(), expected, "{query}");
        assert_eq!(list.body["page"]["total"], expected.len(), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_has_an_id_and_every_refusal_a_code() {
    let cloud = cloud_with(1);
    let rest = Rest::of(&cloud);
    for (number, path, status, code) in [
        (1, "/v1/machines", 200, ""),
        (2, "/v1/machines/999", 404, "not_found"),
        (3, "/v1/machines/first", 400, "invalid"),
        (4, "/v1/machines?page=x", 400, "invalid"),
        (5, "/v2/machines", 404, "invalid"),
        (6, "/control/faults", 404, "invalid"),
    ] {
        let answer = rest.get(path).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{path}");
        assert_eq!(
            answer.header("x-request-id"),
            format!("req-{number:06}"),
            "{path}"
        );
    }
    let wrong = rest
        .call(Method::PATCH, "/v1/machines", Value::Null, None)
        .await;
    assert_eq!(
        (wrong.status, wrong.code()),
        (404, "invalid"),
        "wrong method"
    );
}

async fn balancer(rest: &Rest, body: Value) -> Answer {
    rest.post("/v1/balancers", body).await
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_made_changed_on_condition_and_deleted() {
    let cloud = cloud_with(2);
    let ids: Vec<u64> = cloud.machines().iter().map(|m| m.id).collect();
    let rest = Rest::of(&cloud);
    let listener = json!({"protocol": "tcp", "port": 80, "targetPort": 30080});
    let made = balancer(
        &rest,
        json!({"name": "web", "listeners": [listener], "targets": [{"machine": ids[0]}]}),
    )
    .await;
    assert_eq!(made.status, 201);
    let made_balancer = &made.body["balancer"];
    assert_eq!(made_balancer["state"], "active");
    assert_eq!(made_balancer["addresses"], json!(["198.18.0.1"]));
    assert_eq!(
        made_balancer["listeners"][0]["healthCheck"]["intervalSeconds"],
        5
    );
    let path = format!("/v1/balancers/{}", made_balancer["id"]);
    let etag = made.header("etag").to_owned();

    let targets = json!({"add": [{"machine": ids[1]}], "drain": [{"machine": ids[0]}]});
    let to_targets = format!("{path}/targets");
    let changed = rest
        .call(Method::POST, &to_targets, targets, Some(&etag))
        .await;
    assert_eq!(changed.status, 200);
    let now = changed.body["balancer"]["targets"].clone();
    let expected = json!([
        {"machine": ids[0], "state": "draining"},
        {"machine": ids[1], "state": "serving"},
    ]);
    assert_eq!(now, expected);
    assert_ne!(changed.header("etag"), etag);

    let patch = json!({"algorithm": "source-ip"});
    let stale = rest
        .call(Method::PATCH, &path, patch.clone(), Some(&etag))
        .await;
    assert_eq!((stale.status, stale.code()), (412, "conflict"));
    let etag = changed.header("etag");
    let fresh = rest
        .call(Method::PATCH, &path, patch.clone(), Some(etag))
        .await;
    assert_eq!(fresh.body["balancer"]["algorithm"], "source-ip");
    let same = rest.call(Method::PATCH, &path, patch, None).await;
    assert_eq!(same.header("etag"), fresh.header("etag"), "nothing changed");

    let gone = rest.call(Method::DELETE, &path, Value::Null, None).await;
    assert_eq!(gone.status, 200);
    assert_eq!(rest.get(&path).await.status, 404);
    let again = rest.call(Method::DELETE, &path, Value::Null, None).await;
    assert_eq!((again.status, again.code()), (404, "not_found"));
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_with_its_field() {
    let cloud = cloud_with(1);
    let rest = Rest::of(&cloud);
    let taken = balancer(&rest, json!({"name": "taken"})).await;
    assert_eq!(taken.status, 201);
    let tcp = |port: u16| json!({"protocol": "tcp", "port": port, "targetPort": 1});
    for (case, body, status, code, field) in [
        ("no name", json!({}), 422, "invalid", "name"),
        (
            "same name",
            json!({"name": "taken"}),
            409,
            "already_exists",
            "",
        ),
        (
            "type",
            json!({"name": "a", "type": "huge"}),
            422,
            "invalid",
            "type",
        ),
        (
            "port 0",
            json!({"name": "a", "listeners": [tcp(0)]}),
            422,
            "invalid",
            "listeners",
        ),
        (
            "port twice",
            json!({"name": "a", "listeners": [tcp(1), tcp(1)]}),
            422,
            "invalid",
            "listeners",
        ),
        (
            "no machine",
            json!({"name": "a", "targets": [{"machine": 999}]}),
            422,
            "invalid",
            "targets",
        ),
        (
            "foreign address",
            json!({"name": "a", "address": "192.0.2.1"}),
            422,
            "invalid",
            "address",
        ),
        (
            "taken address",
            json!({"name": "a", "address": "198.18.0.1"}),
            409,
            "already_exists",
            "",
        ),
        (
            "unknown field",
            json!({"name": "a", "colour": "red"}),
            400,
            "invalid",
            "",
        ),
    ] {
        let answer = balancer(&rest, body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{case}");
        let named = answer.body["error"]["field"].as_str().unwrap_or_default();
        assert_eq!(named, field, "{case}");
    }
    assert_eq!(cloud.balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_less_capable_cloud_refuses_what_it_cannot_do() {
    let cloud = cloud_with(1);
    cloud.change_settings(|settings| {
        let can = &mut settings.features;
        (can.udp, can.drain, can.targets_by_address) = (false, false, false);
        (can.mixed_protocols, can.dual_stack) = (false, false);
    });
    let id = cloud.machines()[0].id;
    let rest = Rest::of(&cloud);
    for (case, field, value) in [
        (
            "UDP",
            "listeners",
            json!([{"protocol": "udp", "port": 1, "targetPort": 1}]),
        ),
        (
            "draining",
            "targets",
            json!([{"machine": id, "state": "draining"}]),
        ),
        ("by address", "targets", json!([{"ip": "10.0.0.1"}])),
        ("two families", "families", json!(["IPv4", "IPv6"])),
    ] {
        let answer = balancer(&rest, json!({"name": "a", field: value})).await;
        assert_eq!((answer.status, answer.code()), (422, "invalid"), "{case}");
    }
    assert_eq!(rest.get("/v1/scope").await.body["features"]["udp"], false);
}

#[tokio::test(start_paused = true)]
async fn addresses_follow_family_and_reach_and_are_given_back() {
    let cloud = cloud_with(0);
    let rest = Rest::of(&cloud);
    let addresses = |answer: &Answer| answer.body["balancer"]["addresses"].clone();
    let both = balancer(&rest, json!({"name": "a", "families": ["IPv4", "IPv6"]})).await;
    assert_eq!(addresses(&both), json!(["198.18.0.1", "2001:db8:1::1"]));
    let requested = balancer(&rest, json!({"name": "b", "address": "198.18.0.77"})).await;
    assert_eq!(addresses(&requested), json!(["198.18.0.77"]));
    let path = format!("/v1/balancers/{}", requested.body["balancer"]["id"]);
    let inside = rest
        .call(Method::PATCH, &path, json!({"internal": true}), None)
        .await;
    assert_eq!(addresses(&inside), json!(["10.200.0.1"]));
    let again = balancer(&rest, json!({"name": "c", "address": "198.18.0.77"})).await;
    assert_eq!(
        addresses(&again),
        json!(["198.18.0.77"]),
        "it was free again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_protected_balancer_stays() {
    let cloud = cloud_with(0);
    let rest = Rest::of(&cloud);
    let made = balancer(&rest, json!({"name": "a", "protected": true})).await;
    let path = format!("/v1/balancers/{}", made.body["balancer"]["id"]);
    let kept = rest.call(Method::DELETE, &path, Value::Null, None).await;
    assert_eq!((kept.status, kept.code()), (403, "protected"));
    assert_eq!(cloud.balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_destroyed_machine_leaves_no_target_and_a_blackhole() {
    let cloud = cloud_with(2);
    let ids: Vec<u64> = cloud.machines().iter().map(|m| m.id).collect();
    let rest = Rest::of(&cloud);
    let targets = json!([{"machine": ids[0]}, {"machine": ids[1]}]);
    balancer(&rest, json!({"name": "a", "targets": targets})).await;
    let route = json!({"destination": "10.244.0.0/24", "hop": {"machine": ids[0]}});
    assert_eq!(rest.post("/v1/routes", route).await.status, 201);

    let path = format!("/v1/machines/{}", ids[0]);
    let gone = rest.call(Method::DELETE, &path, Value::Null, None).await;
    assert_eq!(gone.status, 204);
    assert_eq!(cloud.balancers()[0].targets.len(), 1);
    assert!(cloud.routes()[0].blackhole);
    assert_eq!(rest.get(&path).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn routes_are_changed_in_batches_deletions_first_each_by_itself() {
    let cloud = cloud_with(2);
    let ids: Vec<u64> = cloud.machines().iter().map(|m| m.id).collect();
    let rest = Rest::of(&cloud);
    let route = |net: &str, machine: u64| json!({"destination": net, "hop": {"machine": machine}});
    let first = rest
        .post("/v1/routes", route("10.244.0.0/24", ids[0]))
        .await;
    let batch = json!({
        "create": [
            route("10.244.0.0/24", ids[1]),
            route("10.244.0.0/24", ids[0]),
            route("10.244.1.1/24", ids[0]),
            route("10.244.2.0/24", 999),
        ],
        "delete": [first.body["id"], 999],
    });
    let answer = rest.post("/v1/routes/batch", batch).await;
    assert_eq!(answer.status, 200);
    let codes = |list: &str| -> Vec<String> {
        let results = answer.body[list].as_array().unwrap().iter();
        results
            .map(|result| {
                result["error"]["code"]
                    .as_str()
                    .unwrap_or("done")
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(codes("deleted"), ["done", "not_found"]);
    assert_eq!(
        codes("created"),
        ["done", "already_exists", "invalid", "not_found"]
    );
    assert_eq!(cloud.routes().len(), 1);
}
