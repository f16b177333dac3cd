//! The verbs on objects.

use serde_json::{Value, json};

use super::EmbeddedApi;
use super::answer::Answer;
use super::remove::{Conditions, Removed, success};
use super::state::Author;
use super::watch::Watch;
use super::write::{check_uid, decode};
use crate::access::Identity;
use crate::kinds::Kind;
use crate::object::{name, namespace, resource_version, uid};
use crate::patch::{self, Language};
use crate::refusal::Refusal;
use crate::request::{Incoming, Target, View};
use crate::selector::Selection;
use crate::store::Verb;
use crate::table::Table;

impl EmbeddedApi {
    fn author(&self, who: &Identity, verb: Verb, request: &Incoming, target: &Target) -> Author {
        Author {
            by: who.name.as_str().into(),
            verb,
            subresource: target.subresource.clone(),
            at: self.now(),
            dry_run: request.query.dry_run,
            sent_at: request.sent_at,
        }
    }

    /// One object as the request wants to see it.
    fn show(&self, request: &Incoming, kind: &Kind, object: &Value) -> Value {
        match request.accepted.view {
            View::Object => kind.rules.shown(object),
            View::Metadata => metadata_only(object),
            View::Table => {
                let include = request.query.include_object.as_deref();
                let table = Table::new(kind, self.now(), include);
                let metadata = json!({"resourceVersion": resource_version(object)});
                table.of(&[object], &metadata)
            }
        }
    }

    pub(super) fn get(&self, request: &Incoming, target: &Target) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let state = self.state();
        let object = state.store.get(kind.storage, &target.key());
        let object = object.ok_or_else(|| Refusal::not_found(kind, target.name()))?;
        Ok(Answer::ok(self.show(request, kind, object)))
    }

    pub(super) fn list(&self, request: &Incoming, target: &Target) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let query = &request.query;
        let selection = selection(request, target)?;
        let page = self.state().list(target, query, &selection)?;
        let metadata = page.metadata();
        let objects: Vec<&Value> = page.items.iter().map(|object| &**object).collect();
        let objects = objects.into_iter();
        Ok(Answer::ok(match request.accepted.view {
            View::Object => json!({
                "kind": format!("{}List", kind.kind),
                "apiVersion": kind.api_version(),
                "metadata": metadata,
                "items": objects.map(|object| in_list(kind, object)).collect::<Vec<_>>(),
            }),
            View::Metadata => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": objects.map(metadata_only).collect::<Vec<_>>(),
            }),
            View::Table => {
                let table = Table::new(kind, self.now(), query.include_object.as_deref());
                table.of(&objects.collect::<Vec<_>>(), &metadata)
            }
        }))
    }

    pub(super) fn watch(&self, request: &Incoming, target: &Target) -> Result<Answer, Refusal> {
        let mut selection = selection(request, target)?;
        if let Some(name) = &target.name {
            selection = selection.only(name);
        }
        let watch = Watch::new(self, request, target, selection)?;
        Ok(Answer::Watch(Box::new(watch)))
    }

    pub(super) fn create(
        &self,
        who: &Identity,
        request: &Incoming,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind;
        if kind.namespaced && target.namespace.is_none() {
            return Err(Refusal::method_not_allowed());
        }
        let author = self.author(who, Verb::Create, request, target);
        let (object, warnings) = decode(kind, request.json()?, request.query.field_validation)?;
        let object =
            self.state()
                .create_decoded(kind, target.namespace(), None, object, &author)?;
        Ok(Answer::with(201, self.show(request, kind, &object)).warning(warnings))
    }

    pub(super) fn replace(
        &self,
        who: &Identity,
        request: &Incoming,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let author = self.author(who, Verb::Update, request, target);
        let (object, warnings) = decode(kind, request.json()?, request.query.field_validation)?;
        let mut state = self.state();
        let is_free = state.store.get(kind.storage, &target.key()).is_none();
        if is_free && kind.create_on_update && target.subresource.is_none() {
            let object = state.create_decoded(
                kind,
                target.namespace(),
                target.name.as_deref(),
                object,
                &author,
            )?;
            return Ok(Answer::with(201, self.show(request, kind, &object)).warning(warnings));
        }
        let object = state.update(target, &author, &mut |old| {
            check_uid(kind, uid(&object), old)?;
            Ok(object.clone())
        })?;
        Ok(Answer::ok(self.show(request, kind, &object)).warning(warnings))
    }

    pub(super) fn patch(
        &self,
        who: &Identity,
        request: &Incoming,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let author = self.author(who, Verb::Patch, request, target);
        let language = Language::of(&request.content_type)?;
        let patch = request.json()?;
        let mut warnings = Vec::new();
        let object = self.state().update(target, &author, &mut |old| {
            let shown = kind.rules.shown(old);
            let patched = patch::apply(kind, language, &shown, patch.clone())?;
            let (object, reported) = decode(kind, patched, request.query.field_validation)
                .map_err(|refusal| Refusal::spoiled(&refusal))?;
            warnings = reported;
            Ok(object)
        })?;
        Ok(Answer::ok(self.show(request, kind, &object)).warning(warnings))
    }

    pub(super) fn delete(
        &self,
        who: &Identity,
        request: &Incoming,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let options = request.json()?;
        let author = self.author(who, Verb::Delete, request, target);
        let author = author.with(&options);
        let removed =
            self.state()
                .delete(kind, &target.key(), &Conditions::of(&options), &author)?;
        Ok(Answer::ok(match removed {
            Removed::Waiting(object) => self.show(request, kind, &object),
            Removed::Gone(object) if kind.returns_deleted => self.show(request, kind, &object),
            Removed::Gone(object) => success(kind, &object),
        }))
    }

    pub(super) fn delete_many(
        &self,
        who: &Identity,
        request: &Incoming,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let is_everywhere = kind.namespaced && target.namespace.is_none();
        if is_everywhere || !kind.deletes_collections() {
            return Err(Refusal::method_not_allowed());
        }
        let options = request.json()?;
        let author = self.author(who, Verb::DeleteCollection, request, target);
        let author = author.with(&options);
        let selection = selection(request, target)?;
        let conditions = Conditions::of(&options);
        let mut state = self.state();
        let page = state.list(target, &request.query, &selection)?;
        for object in &page.items {
            let key = kind.key(namespace(object), name(object));
            state.delete(kind, &key, &conditions, &author)?;
        }
        let items = page.items.iter().map(|object| in_list(kind, object));
        Ok(Answer::ok(json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": page.metadata(),
            "items": items.collect::<Vec<_>>(),
        })))
    }
}

fn selection(request: &Incoming, target: &Target) -> Result<Selection, Refusal> {
    let query = &request.query;
    Selection::new(
        target.kind,
        target.namespace.as_deref(),
        query.label_selector.as_deref(),
        query.field_selector.as_deref(),
    )
}

/// An object of which only the metadata was asked for.
pub(super) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// An object in a list, whose kind the list has already.
fn in_list(kind: &Kind, object: &Value) -> Value {
    let mut object = kind.rules.shown(object);
    for field in ["apiVersion", "kind"] {
        crate::object::fields(&mut object).remove(field);
    }
    object
}
