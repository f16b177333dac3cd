//! Runs cases on both servers and holds the transcripts side by side.

use std::fmt::Write as _;
use std::time::Duration;

use cloudkeel_embedded::EmbeddedApi;
use cloudkeel_testkit::control_plane::ControlPlane;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::bench::Bench;
use crate::normalise::Marks;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a Bench) -> BoxFuture<'a, ()>,
}

/// A table of cases from async functions over a [`Bench`].
macro_rules! cases {
    ($($name:ident),+ $(,)?) => {
        &[$($crate::compare::Case {
            name: stringify!($name),
            run: |bench| Box::pin($name(bench)),
        }),+]
    };
}
pub(crate) use cases;

/// What a server says to a case.
async fn transcript(client: Client, case: &Case) -> Vec<(String, Value)> {
    let bench = Bench::new(client, &case.name.replace('_', "-")).await;
    (case.run)(&bench).await;
    let mut marks = Marks::default();
    let asked = bench.transcript().into_iter();
    asked
        .map(|(asked, answer)| (asked, marks.normalise(&answer)))
        .collect()
}

/// Waits until the real server has made its own first objects, which it does after it has begun to listen.
async fn furnished(client: &Client) {
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for _ in 0..300 {
        let service = services.get_opt("kubernetes").await.expect("an answer");
        let count = namespaces
            .list(&ListParams::default())
            .await
            .expect("a list")
            .items
            .len();
        if service.is_some() && count >= 4 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the real API server has not made its first objects in 30 seconds");
}

/// Runs every case on both servers, prints the table, and fails if a row differs.
pub(crate) async fn agree(group: &str, cases: &[Case]) {
    let real = ControlPlane::shared().await;
    furnished(&real.client()).await;
    let embedded = EmbeddedApi::new();
    let (mut table, mut differences) = (String::new(), String::new());
    for case in cases {
        let ours = transcript(embedded.client("semantics"), case).await;
        let theirs = transcript(real.client(), case).await;
        assert!(!ours.is_empty(), "{} asks nothing", case.name);
        let difference = difference(&ours, &theirs);
        let verdict = if difference.is_some() {
            "DIFFERS"
        } else {
            "agrees"
        };
        let steps = ours.len();
        writeln!(table, "{verdict:8} {group:10} {steps:3} {}", case.name).expect("a line");
        if let Some(difference) = difference {
            writeln!(differences, "\n## {}\n{difference}", case.name).expect("a line");
        }
    }
    println!("{table}");
    assert!(differences.is_empty(), "{group}: {differences}");
}

/// The first answer that is not the same.
fn difference(ours: &[(String, Value)], theirs: &[(String, Value)]) -> Option<String> {
    let mut told = String::new();
    for ((asked, ours), (_, theirs)) in ours.iter().zip(theirs) {
        if ours != theirs {
            writeln!(told, "{asked}").expect("a line");
            describe("", ours, theirs, &mut told);
            return Some(told);
        }
    }
    (ours.len() != theirs.len()).then(|| format!("{} and {} answers", ours.len(), theirs.len()))
}

fn describe(path: &str, ours: &Value, theirs: &Value, told: &mut String) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (a, b) = (a.get(key), b.get(key));
                let (a, b) = (a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null));
                describe(&format!("{path}.{key}"), a, b, told);
            }
        }
        _ if ours == theirs => {}
        _ => writeln!(
            told,
            "  {path}
    embedded: {ours}
    real:     {theirs}"
        )
        .expect("a line"),
    }
}
