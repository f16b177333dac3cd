//! Tags.

use cloudkeel_emulation::Answer;
use cloudkeel_emulation::history::View;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Performed, one, shown};
use crate::refusal::Refusal;
use crate::state::AccountContext;

#[derive(Deserialize)]
pub(super) struct NewTag {
    name: String,
}

#[derive(Deserialize)]
pub(super) struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    resource_id: String,
    resource_type: String,
}

/// Letters, digits, `:`, `-` and `_`.
pub(super) fn check_tag(name: &str) -> Result<(), Refusal> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ":-_".contains(c);
    if name.is_empty() || name.len() > 255 || !name.chars().all(is_allowed) {
        let message = format!("invalid characters in tag name {name:?}");
        return Err(Refusal::invalid(message));
    }
    Ok(())
}

impl AccountContext<'_> {
    fn shown_tag(&self, name: &str) -> Value {
        let balancers = self.account.balancers.values(View::Now);
        let count = balancers
            .filter(|balancer| balancer.tags.iter().any(|tag| tag == name))
            .count();
        json!({"name": name, "resources": {"count": count, "load_balancers": {"count": count}}})
    }

    /// One that there is already is shown as it is.
    pub(super) fn create_tag(&mut self, new: &NewTag) -> Performed {
        check_tag(&new.name)?;
        self.account.tags.insert(new.name.clone());
        Ok(shown(
            StatusCode::CREATED,
            "tag",
            &self.shown_tag(&new.name),
        ))
    }

    fn check_exists(&self, name: &str) -> Result<(), Refusal> {
        let found = self.account.tags.contains(name);
        found.then_some(()).ok_or_else(Refusal::not_found)
    }

    pub(super) fn get_tag(&self, name: &str) -> Performed {
        self.check_exists(name)?;
        Ok(one("tag", &self.shown_tag(name)))
    }

    pub(super) fn delete_tag(&mut self, name: &str) -> Performed {
        self.check_exists(name)?;
        self.account.tags.remove(name);
        self.account.balancers.edit_where(
            self.now,
            |balancer| balancer.tags.iter().any(|tag| tag == name),
            |balancer| balancer.tags.retain(|tag| tag != name),
        );
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn tag_resources(
        &mut self,
        name: &str,
        request: &Resources,
        is_added: bool,
    ) -> Performed {
        self.check_exists(name)?;
        for resource in &request.resources {
            let balancers = &mut self.account.balancers;
            if resource.resource_type != "load_balancer" {
                let kind = &resource.resource_type;
                return Err(Refusal::invalid(format!("resource type {kind} is invalid")));
            }
            let changed = balancers.edit(&resource.resource_id, self.now, |balancer| {
                balancer.tags.retain(|tag| tag != name);
                balancer.tags.extend(is_added.then(|| name.to_owned()));
            });
            changed.ok_or_else(Refusal::not_found)?;
        }
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}
