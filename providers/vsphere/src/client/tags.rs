//! Tags, which only the REST API shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_api::CloudError;
use cloudkeel_http::{Client, Request};
use cloudkeel_toolkit::json::null_as_default;
use futures::future::try_join_all;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::wire::ObjectRef;

/// How long the names of a tag and its category are kept.
const KEPT: Duration = Duration::from_mins(1);

/// A tag with the name of its category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) category: String,
    pub(crate) name: String,
}

/// The tags of objects, by their references.
pub(crate) type AttachedTags = BTreeMap<String, Vec<Tag>>;

/// The tagging API of one vCenter.
pub(crate) struct Tagging {
    client: Client,
    names: Mutex<BTreeMap<String, (Instant, Tag)>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ObjectId {
    id: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Serialize)]
struct ObjectIds {
    object_ids: Vec<ObjectId>,
}

#[derive(Deserialize)]
struct Answer<T> {
    value: T,
}

#[derive(Deserialize)]
struct Association {
    object_id: ObjectId,
    #[serde(default, deserialize_with = "null_as_default")]
    tag_ids: Vec<String>,
}

#[derive(Deserialize)]
struct TagModel {
    name: String,
    category_id: String,
}

#[derive(Deserialize)]
struct CategoryModel {
    name: String,
}

impl Tagging {
    pub(crate) const fn new(client: Client) -> Self {
        Self {
            client,
            names: Mutex::new(BTreeMap::new()),
        }
    }

    /// The tags that are attached to each of these objects.
    pub(crate) async fn attached(
        &self,
        objects: impl Iterator<Item = &ObjectRef>,
    ) -> Result<AttachedTags, CloudError> {
        let object_ids = objects.map(|object| ObjectId {
            id: object.id.clone(),
            kind: object.kind.clone(),
        });
        let body = ObjectIds {
            object_ids: object_ids.collect(),
        };
        let request = Request::post("/rest/com/vmware/cis/tagging/tag-association")
            .query("~action", "list-attached-tags-on-objects")
            .json(cloudkeel_toolkit::json::body(&body))
            .read_only();
        let found: Option<Vec<Association>> = self.get(request).await?;
        let found = found.unwrap_or_default();
        let ids: BTreeSet<_> = found.iter().flat_map(|it| &it.tag_ids).collect();
        let names = try_join_all(ids.into_iter().map(|id| async move {
            let tag = self.tag(id).await?;
            Ok::<_, CloudError>((id, tag))
        }));
        let names: BTreeMap<_, _> = names.await?.into_iter().collect();
        let tags_of = |association: &Association| {
            let tags = association.tag_ids.iter();
            let tags = tags.filter_map(|id| names.get(id).cloned()).collect();
            (association.object_id.id.clone(), tags)
        };
        Ok(found.iter().map(tags_of).collect())
    }

    async fn tag(&self, id: &str) -> Result<Tag, CloudError> {
        if let Some(tag) = self.known(id) {
            return Ok(tag);
        }
        let read = |kind: &'static str, id: &str| Request::get(kind).param("id", id);
        let tag: TagModel = self
            .get(read("/rest/com/vmware/cis/tagging/tag/id:{id}", id))
            .await?;
        let path = "/rest/com/vmware/cis/tagging/category/id:{id}";
        let category: CategoryModel = self.get(read(path, &tag.category_id)).await?;
        let tag = Tag {
            category: category.name,
            name: tag.name,
        };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(id.to_owned(), (Instant::now(), tag.clone()));
        Ok(tag)
    }

    fn known(&self, id: &str) -> Option<Tag> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|_, (read, _)| read.elapsed() < KEPT);
        names.get(id).map(|(_, tag)| tag.clone())
    }

    async fn get<T: DeserializeOwned>(&self, request: Request) -> Result<T, CloudError> {
        let Answer { value } = self.client.fetch(request).await?;
        Ok(value)
    }
}
