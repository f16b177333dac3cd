//! Everything that changes, behind one lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::access::Identity;
use crate::generator::Generator;
use crate::kinds::Kind;
use crate::object::{items, name, namespace, put};
use crate::rules::Surroundings;
use crate::store::{Commit, Store, Verb};

/// A secret that stands for an identity.
pub(crate) struct Token {
    pub(crate) identity: Identity,
    pub(crate) expires: Option<Timestamp>,
}

pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) generator: Generator,
    pub(crate) tokens: BTreeMap<String, Token>,
    /// Whether Services get addresses of both families.
    pub(crate) dual_stack: bool,
}

/// Who changes something, and how.
#[derive(Clone)]
pub(crate) struct Author {
    pub(crate) by: Arc<str>,
    pub(crate) verb: Verb,
    pub(crate) subresource: Option<String>,
    pub(crate) at: Timestamp,
    /// When the request was sent.
    pub(crate) sent_at: Timestamp,
    /// Everything is done but the change itself.
    pub(crate) dry_run: bool,
}

impl Author {
    /// The API's own controllers.
    pub(crate) fn internal(by: &str, verb: Verb, at: Timestamp) -> Self {
        Self {
            by: by.into(),
            verb,
            subresource: None,
            at,
            sent_at: at,
            dry_run: false,
        }
    }

    /// The same with the options of a deletion, which may ask for a dry run too.
    pub(crate) fn with(mut self, options: &Value) -> Self {
        self.dry_run |= !items(options, &["dryRun"]).is_empty();
        self
    }

    pub(crate) fn time(&self) -> String {
        wire_time(self.at)
    }
}

/// A moment as objects have it.
pub(crate) fn wire_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl State {
    pub(crate) fn new(seed: u64, history_limit: usize) -> Self {
        Self {
            store: Store::new(history_limit),
            generator: Generator::new(seed),
            tokens: BTreeMap::new(),
            dual_stack: false,
        }
    }

    pub(crate) fn surroundings(&mut self) -> Surroundings<'_> {
        Surroundings {
            store: &self.store,
            generator: &mut self.generator,
            dual_stack: self.dual_stack,
        }
    }

    /// Writes an object down under the next version.
    pub(crate) fn write(&mut self, kind: &Kind, mut object: Value, author: &Author) -> Arc<Value> {
        let key = kind.key(namespace(&object), name(&object));
        let before = self.store.get(kind.storage, &key).cloned();
        if author.dry_run {
            return Arc::new(object);
        }
        let version = self.store.next_version();
        put(
            &mut object,
            &["metadata", "resourceVersion"],
            version.to_string(),
        );
        let object = Arc::new(object);
        let commit = self.describe(kind, &object, author, (before, Some(Arc::clone(&object))));
        self.store.commit(&key, commit);
        object
    }

    /// Removes an object; it comes back as it was last, under the version that removed it.
    pub(crate) fn erase(&mut self, kind: &Kind, object: &Value, author: &Author) -> Value {
        let mut last = object.clone();
        if author.dry_run {
            return last;
        }
        let key = kind.key(namespace(object), name(object));
        let before = self.store.get(kind.storage, &key).cloned();
        let commit = self.describe(kind, object, author, (before, None));
        put(
            &mut last,
            &["metadata", "resourceVersion"],
            commit.version.to_string(),
        );
        self.store.commit(&key, commit);
        last
    }

    fn describe(
        &self,
        kind: &Kind,
        object: &Value,
        author: &Author,
        (before, after): (Option<Arc<Value>>, Option<Arc<Value>>),
    ) -> Commit {
        Commit {
            version: self.store.next_version(),
            at: author.at,
            sent_at: author.sent_at,
            by: Arc::clone(&author.by),
            verb: author.verb,
            resource: kind.storage,
            subresource: author.subresource.clone(),
            namespace: namespace(object).to_owned(),
            name: name(object).to_owned(),
            before,
            after,
        }
    }

    /// What exists at the start: the namespaces and the API's own Service.
    pub(crate) fn create_first_objects(&mut self, at: Timestamp) {
        let author = Author::internal("kube-apiserver", Verb::Create, at);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let body = json!({"metadata": {"name": name}});
            self.create_first("namespaces", "", body, &author);
        }
        let spec = json!({
            "clusterIP": "10.0.0.1",
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
        });
        let labels = json!({"component": "apiserver", "provider": "kubernetes"});
        let service = json!({"metadata": {"name": "kubernetes", "labels": labels}, "spec": spec});
        self.create_first("services", "default", service, &author);
    }

    fn create_first(&mut self, storage: &str, namespace: &str, body: Value, author: &Author) {
        let Some(kind) = Kind::stored(storage) else {
            return;
        };
        if let Err(refusal) = self.create(kind, namespace, body, author) {
            tracing::error!(%refusal, storage, "a first object was refused");
        }
    }
}
