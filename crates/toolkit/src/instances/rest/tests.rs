use cloudkeel_api::{CollectedEvents, ErrorKind, NodeAddress};
use cloudkeel_http::testing::{Reply, Script};
use cloudkeel_http::{Client, CodeTable};
use serde_json::{Value, json};

use super::*;
use crate::Paging;

#[derive(Debug, Clone, serde::Deserialize)]
struct Server {
    id: u64,
    name: String,
    ip: IpAddr,
}

crate::resources! {
    Server, id: u64 = "server", "servers";
}

struct Servers;

impl RestInstance for Servers {
    type Id = u64;
    type Item = Server;

    fn parse_id(&self, id: &ProviderId) -> Result<u64, IdError> {
        IdError::number(id, "x", "a server")
    }

    fn instance(&self, server: &Server) -> Instance {
        Instance {
            addresses: vec![NodeAddress::internal(server.ip)],
            aliases: [server.ip.to_string()].into(),
            ..Instance::new(ProviderId::new("x", &server.id.to_string()), &server.name)
        }
    }
}

const PAGING: Paging = Paging {
    next: "/next",
    total: "/total",
};

fn server(id: u64, name: &str) -> Value {
    json!({"id": id, "name": name, "ip": format!("192.0.2.{id}")})
}

fn servers(script: &Arc<Script>) -> RestInstances<Box<RestApi>, Servers> {
    let refusals = CodeTable::new("/code", "/message").not_found("not_found");
    let client = Client::builder("https://x")
        .transport(Arc::<Script>::clone(script))
        .error_map(refusals)
        .build()
        .unwrap();
    let api = Box::new(RestApi::new(client, "", 50, PAGING));
    RestInstances {
        resources: Arc::new(ListedResources::new(api)),
        rules: Servers,
        scope: ScopeFingerprint::new("project 7"),
        events: Arc::new(EventRecorder::new(Arc::new(CollectedEvents::default()))),
    }
}

fn named(name: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        ..NodeFacts::default()
    }
}

#[tokio::test]
async fn a_node_is_searched_by_name_or_by_an_address_and_only_a_whole_match_counts() {
    let all = json!({"servers": [server(1, "web"), server(2, "web-2")]});
    for (name, path) in [
        ("web", "/servers?page=1&per_page=50&name=web"),
        ("192.0.2.1", "/servers?page=1&per_page=50"),
    ] {
        let script = Script::new([Reply::json(200, &all)]);
        let found = servers(&script).search(&named(name)).await.unwrap();
        let ids: Vec<_> = found.items.iter().map(|server| server.id).collect();
        assert_eq!(ids, [1], "{name}");
        let seen = script.seen();
        assert_eq!(seen[0].uri().path_and_query().unwrap(), path);
    }
}

#[tokio::test]
async fn what_a_look_up_shows_is_known_and_a_missing_one_is_not_found() {
    let listed = json!({"servers": [server(1, "web")]});
    let missing = json!({"code": "not_found", "message": "no"});
    let script = Script::new([
        Reply::json(200, &listed),
        Reply::json(200, &json!({"server": server(2, "db")})),
        Reply::json(404, &missing),
    ]);
    let servers = servers(&script);
    assert_eq!(servers.list().await.unwrap().items.len(), 1);
    assert_eq!(servers.get(&2).await.unwrap().name, "db");
    let age = std::time::Duration::from_mins(1);
    let known = servers.resources.no_older_than(age).await.unwrap();
    assert_eq!(known.len(), 2, "without another list");
    let LookupError::Cloud(error) = servers.get(&3).await.unwrap_err() else {
        panic!("it is another scope");
    };
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn an_id_of_another_cloud_says_what_is_wrong() {
    let script = Script::new([]);
    let why = servers(&script).parse_id(&"y://1".parse().unwrap());
    assert_eq!(why.unwrap_err(), "\"y://1\" does not begin with `x://`");
}
