//! Runs cases on both servers and holds the transcripts side by side.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_embedded::{Attributes, Authorizer, Builder, EmbeddedApi, Identity};
use cloudkeel_testkit::control_plane::ControlPlane;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::bench::Bench;
use crate::normalise::Placeholders;
use crate::page;

/// A user without any role.
pub(crate) const STRANGER: &str = "stranger";

/// What a server does that has no roles but that of its administrators.
struct AdministratorsOnly;

impl Authorizer for AdministratorsOnly {
    fn allows(&self, who: &Identity, _what: &Attributes) -> bool {
        who.groups.iter().any(|group| group == "system:masters")
    }
}

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
async fn transcript((client, stranger): (Client, Client), case: &Case) -> Vec<(String, Value)> {
    let bench = Bench::new(client, stranger, &case.name.replace('_', "-")).await;
    (case.run)(&bench).await;
    normalised(bench)
}

/// What was asked and answered, with placeholders.
pub(crate) fn normalised(bench: Bench) -> Vec<(String, Value)> {
    let mut placeholders = Placeholders::default();
    let asked = bench.transcript().into_iter();
    asked
        .map(|(asked, answer)| (asked, placeholders.normalise(&answer)))
        .collect()
}

/// Waits until the real server has made its own first objects, which it does after it has begun to listen.
pub(crate) async fn wait_for_first_objects(client: &Client) {
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

/// An embedded API with the roles of a real one.
pub(crate) fn embedded() -> Builder {
    EmbeddedApi::builder().authorizer(Arc::new(AdministratorsOnly))
}

/// Runs every case on both servers, prints the table, and fails if a row differs.
pub(crate) async fn agree(group: &str, cases: &[Case]) {
    agree_on(
        ControlPlane::shared().await,
        &embedded().build(),
        group,
        cases,
    )
    .await;
}

/// The same on these servers.
pub(crate) async fn agree_on(
    real: &ControlPlane,
    embedded: &EmbeddedApi,
    group: &str,
    cases: &[Case],
) {
    wait_for_first_objects(&real.client()).await;
    let mut comparison = Comparison::new(group);
    for case in cases {
        let stranger = embedded.client_as(Identity::new(STRANGER, &[]), None);
        let ours = transcript((embedded.client("semantics"), stranger), case).await;
        let stranger = real.client_for(STRANGER, &[]);
        let theirs = transcript((real.client(), stranger), case).await;
        comparison.add(case.name, &ours, &theirs);
    }
    comparison.finish();
}

/// Transcripts of both servers, case by case.
pub(crate) struct Comparison<'a> {
    group: &'a str,
    table: String,
    differences: String,
    cases: usize,
    answers: usize,
}

impl<'a> Comparison<'a> {
    pub(crate) const fn new(group: &'a str) -> Self {
        Self {
            group,
            table: String::new(),
            differences: String::new(),
            cases: 0,
            answers: 0,
        }
    }

    pub(crate) fn add(&mut self, case: &str, ours: &[(String, Value)], theirs: &[(String, Value)]) {
        assert!(!ours.is_empty(), "{case} asks nothing");
        let difference = difference(ours, theirs);
        let verdict = if difference.is_some() {
            "DIFFERS"
        } else {
            "agrees"
        };
        let (group, steps) = (self.group, ours.len());
        writeln!(self.table, "{verdict:8} {group:10} {steps:3} {case}").expect("a line");
        if let Some(difference) = difference {
            writeln!(self.differences, "\n## {case}\n{difference}").expect("a line");
        }
        self.cases += 1;
        self.answers += steps;
    }

    /// Prints the table, and fails if a case differs or the page says other numbers.
    pub(crate) fn finish(self) {
        println!("{}", self.table);
        let (group, differences) = (self.group, &self.differences);
        assert!(differences.is_empty(), "{group}: {differences}");
        let row = page::row_of(group);
        let counted = (self.cases, self.answers);
        assert_eq!(row, Some(counted), "docs/embedded.md: the row of `{group}`");
    }
}

/// The first answer that is not the same.
fn difference(ours: &[(String, Value)], theirs: &[(String, Value)]) -> Option<String> {
    let mut reported = String::new();
    for ((asked, ours), (_, theirs)) in ours.iter().zip(theirs) {
        if ours != theirs {
            writeln!(reported, "{asked}").expect("a line");
            describe("", ours, theirs, &mut reported);
            return Some(reported);
        }
    }
    (ours.len() != theirs.len()).then(|| format!("{} and {} answers", ours.len(), theirs.len()))
}

fn describe(path: &str, ours: &Value, theirs: &Value, reported: &mut String) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (a, b) = (a.get(key), b.get(key));
                let (a, b) = (a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null));
                describe(&format!("{path}.{key}"), a, b, reported);
            }
        }
        _ if ours == theirs => {}
        _ => writeln!(
            reported,
            "  {path}
    embedded: {ours}
    real:     {theirs}"
        )
        .expect("a line"),
    }
}
