use std::sync::Mutex;

use super::*;

/// A route by its ID, destination and gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row(u64, &'static str, &'static str);

/// A table that writes down what it is asked, and refuses what the test says.
#[derive(Default)]
struct Table {
    rows: Mutex<Vec<Row>>,
    /// Gateways that are only known to a young read.
    young: Vec<&'static str>,
    refuses: Option<(u64, ErrorKind)>,
    asked: Mutex<Vec<String>>,
}

impl Table {
    fn with(rows: &[Row]) -> Self {
        Self {
            rows: Mutex::new(rows.to_vec()),
            ..Self::default()
        }
    }

    fn ask(&self, question: String) {
        self.asked.lock().unwrap().push(question);
    }
}

#[async_trait]
impl RouteTable for Table {
    type Row = Row;
    type Hops = bool;

    async fn rows(&self) -> Result<Vec<Row>, CloudError> {
        self.ask("rows".to_owned());
        Ok(self.rows.lock().unwrap().clone())
    }

    async fn hops(&self, age: Duration) -> Result<bool, CloudError> {
        self.ask(format!("hops {}s", age.as_secs()));
        Ok(age < FRESH)
    }

    fn name(&self, row: &Row) -> String {
        row.0.to_string()
    }

    fn destination(&self, row: &Row) -> IpNet {
        row.1.parse().unwrap()
    }

    fn hop(&self, row: &Row, _: &bool) -> String {
        row.2.to_owned()
    }

    fn node<'a>(
        &self,
        row: &Row,
        _: &bool,
        nodes: &'a [Shared<NodeFacts>],
    ) -> Option<&'a NodeFacts> {
        node_by_address(nodes, row.2.parse().unwrap())
    }

    fn is_blackhole(&self, _: &Row, _: &bool) -> bool {
        false
    }

    fn follows_addresses(&self, _: &Row) -> bool {
        true
    }

    fn row(
        &self,
        destination: IpNet,
        node: RouteNode<'_>,
        young: &bool,
    ) -> Result<Row, CloudError> {
        if matches!(destination, IpNet::V6(_)) {
            return Err(CloudError::unsupported(CREATE, "IPv4 only"));
        }
        let hop = node.addresses[0].to_string();
        let hop = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
            .into_iter()
            .find(|known| *known == hop);
        let hop = hop.filter(|hop| *young || !self.young.contains(hop));
        let missing = || CloudError::new(CREATE, ErrorKind::NotFound, "no instance");
        let destinations = ["10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24"];
        let destination = destinations
            .into_iter()
            .find(|d| *d == destination.to_string());
        Ok(Row(0, destination.unwrap(), hop.ok_or_else(missing)?))
    }

    fn is_same(&self, wanted: &Row, present: &Row) -> bool {
        (wanted.1, wanted.2) == (present.1, present.2)
    }

    async fn change(&self, change: &RowChange<Row>) -> Result<(), CloudError> {
        let (verb, row) = match change {
            RowChange::Remove(row) => ("remove", row),
            RowChange::Add(row) => ("add", row),
        };
        self.ask(format!("{verb} {}", row.1));
        match self.refuses {
            Some((id, kind)) if id == row.0 => Err(CloudError::new("change", kind, "refused")),
            _ => Ok(()),
        }
    }
}

const FIRST: Row = Row(1, "10.244.1.0/24", "10.0.0.1");
const SECOND: Row = Row(2, "10.244.2.0/24", "10.0.0.2");

fn create(destination: &str, gateway: &str) -> RouteChange {
    RouteChange::Create(Route {
        name: String::new(),
        destination: destination.parse().unwrap(),
        target: RouteTarget::Node {
            name: "node".to_owned(),
            uid: "u".to_owned(),
            provider_id: None,
            addresses: vec![gateway.parse().unwrap()],
        },
        blackhole: false,
        follows_addresses: true,
    })
}

fn delete(row: &Row) -> RouteChange {
    RouteChange::Delete(Route {
        name: row.0.to_string(),
        destination: row.1.parse().unwrap(),
        target: RouteTarget::Elsewhere {
            hop: row.2.to_owned(),
        },
        blackhole: false,
        follows_addresses: true,
    })
}

async fn apply(table: Table, changes: &[RouteChange]) -> (Vec<Result<(), ErrorKind>>, Vec<String>) {
    let routes = TableRoutes(table);
    let results = routes.apply(changes).await;
    let results = results
        .into_iter()
        .map(|r| r.map_err(|e| e.kind()))
        .collect();
    let asked = routes.0.asked.into_inner().unwrap();
    (results, asked)
}

#[tokio::test]
async fn what_is_so_already_costs_no_change() {
    let changes = [create("10.244.1.0/24", "10.0.0.1"), delete(&SECOND)];
    let (results, asked) = apply(Table::with(&[FIRST]), &changes).await;
    assert_eq!(results, [Ok(()), Ok(())]);
    assert_eq!(asked, ["rows", "hops 120s"]);
}

#[tokio::test]
async fn removals_come_first_and_free_their_destination() {
    let changes = [create("10.244.2.0/24", "10.0.0.3"), delete(&SECOND)];
    let (results, asked) = apply(Table::with(&[FIRST, SECOND]), &changes).await;
    assert_eq!(results, [Ok(()), Ok(())]);
    assert_eq!(asked[2..], ["remove 10.244.2.0/24", "add 10.244.2.0/24"]);
}

#[tokio::test]
async fn a_destination_that_another_route_has_is_a_conflict() {
    let changes = [
        create("10.244.1.0/24", "10.0.0.2"),
        create("10.244.3.0/24", "10.0.0.3"),
    ];
    let (results, asked) = apply(Table::with(&[FIRST]), &changes).await;
    assert_eq!(results, [Err(ErrorKind::Conflict), Ok(())]);
    assert_eq!(asked[2..], ["add 10.244.3.0/24"]);
}

#[tokio::test]
async fn a_refusal_stops_what_depends_on_it_and_a_lock_stops_all() {
    let changes = [
        delete(&FIRST),
        delete(&SECOND),
        create("10.244.1.0/24", "10.0.0.3"),
        create("10.244.3.0/24", "10.0.0.3"),
    ];
    for (kind, expected) in [
        (
            ErrorKind::Denied,
            [
                Err(ErrorKind::Denied),
                Ok(()),
                Err(ErrorKind::Conflict),
                Ok(()),
            ],
        ),
        (
            ErrorKind::NotFound,
            [Ok(()), Ok(()), Err(ErrorKind::Conflict), Ok(())],
        ),
        (ErrorKind::Busy, [Err(ErrorKind::Busy); 4]),
    ] {
        let table = Table {
            refuses: Some((1, kind)),
            ..Table::with(&[FIRST, SECOND])
        };
        assert_eq!(apply(table, &changes).await.0, expected, "{kind}");
    }
}

#[tokio::test]
async fn hops_are_read_anew_for_an_instance_that_is_too_young() {
    let changes = [create("10.244.3.0/24", "10.0.0.3")];
    let table = Table {
        young: vec!["10.0.0.3"],
        ..Table::default()
    };
    let (results, asked) = apply(table, &changes).await;
    assert_eq!(results, [Ok(())]);
    assert_eq!(
        asked,
        ["rows", "hops 120s", "hops 10s", "add 10.244.3.0/24"]
    );
    let changes = [create("fd00::/64", "10.0.0.3")];
    let (results, asked) = apply(Table::default(), &changes).await;
    assert_eq!(results, [Err(ErrorKind::Unsupported)]);
    assert_eq!(
        asked,
        ["rows", "hops 120s"],
        "age does not matter to a family"
    );
}

#[tokio::test]
async fn routes_lead_to_nodes_or_elsewhere() {
    let node = Shared::from(NodeFacts {
        name: "node-1".to_owned(),
        addresses: vec![cloudkeel_api::NodeAddress::internal([10, 0, 0, 1].into())],
        ..NodeFacts::default()
    });
    let routes = TableRoutes(Table::with(&[FIRST, SECOND]));
    let found = routes.list(&[node]).await.unwrap();
    let targets: Vec<_> = found.iter().map(|route| route.target.node_name()).collect();
    assert_eq!(targets, [Some("node-1"), None]);
    assert_eq!(TableRoutes(Table::default()).list(&[]).await.unwrap(), []);
}
