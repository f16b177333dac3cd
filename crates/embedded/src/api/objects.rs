//! The verbs on objects.

use serde_json::{Value, json};

use super::EmbeddedApi;
use super::answer::Answer;
use super::remove::{Conditions, Removed, success};
use super::watch::Watch;
use super::world::Author;
use super::write::{check_uid, decode};
use crate::access::Identity;
use crate::kinds::Kind;
use crate::object::{name, namespace, resource_version, uid};
use crate::patch::{self, Language};
use crate::refusal::Refusal;
use crate::request::{Incoming, Target};
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
        }
    }

    /// One object as the request wants to see it.
    fn show(&self, request: &Incoming, kind: &Kind, object: &Value) -> Value {
        if request.wants_table {
            let include = request.query.include_object.as_deref();
            let table = Table::new(kind, self.now(), include);
            return table.of(
                &[object],
                &json!({"resourceVersion": resource_version(object)}),
            );
        }
        kind.rules.shown(object)
    }

    pub(super) fn get(&self, request: &Incoming, target: &Target) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let world = self.world();
        let object = world.store.get(kind.storage, &target.key());
        let object = object.ok_or_else(|| Refusal::not_found(kind, target.name()))?;
        Ok(Answer::ok(self.show(request, kind, object)))
    }

    pub(super) fn list(&self, request: &Incoming, target: &Target) -> Result<Answer, Refusal> {
        let kind = target.kind;
        let query = &request.query;
        let selection = selection(request, target)?;
        let page = self.world().list(target, query, &selection)?;
        let metadata = page.metadata();
        let objects: Vec<&Value> = page.items.iter().map(|object| &**object).collect();
        if request.wants_table {
            let table = Table::new(kind, self.now(), query.include_object.as_deref());
            return Ok(Answer::ok(table.of(&objects, &metadata)));
        }
        let items: Vec<_> = objects
            .into_iter()
            .map(|object| in_list(kind, object))
            .collect();
        Ok(Answer::ok(json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": metadata,
            "items": items,
        })))
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
            self.world()
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
        let mut world = self.world();
        let is_free = world.store.get(kind.storage, &target.key()).is_none();
        if is_free && kind.create_on_update && target.subresource.is_none() {
            let object = world.create_decoded(
                kind,
                target.namespace(),
                target.name.as_deref(),
                object,
                &author,
            )?;
            return Ok(Answer::with(201, self.show(request, kind, &object)).warning(warnings));
        }
        let object = world.update(target, &author, &mut |old| {
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
        let object = self.world().update(target, &author, &mut |old| {
            let shown = kind.rules.shown(old);
            let patched = patch::apply(kind, language, &shown, patch.clone())?;
            let (object, told) = decode(kind, patched, request.query.field_validation)
                .map_err(|refusal| Refusal::spoiled(&refusal))?;
            warnings = told;
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
            self.world()
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
        let mut world = self.world();
        let page = world.list(target, &request.query, &selection)?;
        for object in &page.items {
            let key = kind.key(namespace(object), name(object));
            world.delete(kind, &key, &conditions, &author)?;
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

/// An object in a list, whose kind the list has told already.
fn in_list(kind: &Kind, object: &Value) -> Value {
    let mut object = kind.rules.shown(object);
    for field in ["apiVersion", "kind"] {
        crate::object::fields(&mut object).remove(field);
    }
    object
}
