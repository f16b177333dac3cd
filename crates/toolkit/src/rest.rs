//! The usual calls of a JSON API: resources are listed, read, created, replaced and deleted by name and ID.

use std::fmt::Display;
use std::hash::Hash;

use cloudkeel_api::{CloudError, Priority};
use cloudkeel_http::{Client, Request};
use serde::Serialize;

use crate::json::{self, Paging, Resource};

/// An API whose resources stand under `<root>/<name of many>/<id>`.
#[derive(Debug, Clone)]
pub struct RestApi {
    client: Client,
    root: &'static str,
    per_page: usize,
    paging: Paging,
    /// A kind of large resources, and how many of them come on a page.
    large: Option<(&'static str, usize)>,
}

impl RestApi {
    /// An API below this path, whose lists come in pages of at most this size.
    pub const fn new(client: Client, root: &'static str, per_page: usize, paging: Paging) -> Self {
        Self {
            client,
            root,
            per_page,
            paging,
            large: None,
        }
    }

    /// The same, with smaller pages for a kind whose resources are large.
    #[must_use]
    pub const fn with_pages<T: Resource>(mut self, per_page: usize) -> Self {
        self.large = Some((T::MANY, per_page));
        self
    }

    /// The client.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    fn many<T: Resource>(&self) -> String {
        format!("{}/{}", self.root, T::MANY)
    }

    fn one<T: Resource>(&self) -> String {
        format!("{}/{{id}}", self.many::<T>())
    }

    /// Asks for all resources of a kind.
    pub fn list<T: Resource>(&self) -> Request {
        let large = self.large.filter(|(many, _)| *many == T::MANY);
        let per_page = large.map_or(self.per_page, |(_, per_page)| per_page);
        Request::get(self.many::<T>())
            .query("page", 1)
            .query("per_page", per_page)
    }

    /// All resources that a request asks for. Complete, or an error.
    pub async fn all<T: Resource>(&self, request: Request) -> Result<Vec<T>, CloudError>
    where
        T::Id: Hash,
    {
        let next_page = |response: &_, rest: &_| self.paging.read(response, rest);
        json::all(&self.client, request, next_page).await
    }

    /// All resources of a kind. Complete, or an error.
    pub async fn every<T: Resource>(&self, priority: Priority) -> Result<Vec<T>, CloudError>
    where
        T::Id: Hash,
    {
        self.all(self.list::<T>().priority(priority)).await
    }

    /// One resource, if it is there.
    pub async fn find<T: Resource>(
        &self,
        id: &T::Id,
        priority: Priority,
    ) -> Result<Option<T>, CloudError>
    where
        T::Id: Display,
    {
        match self.get(id, priority).await {
            Err(error) if error.is_not_found() => Ok(None),
            found => found.map(Some),
        }
    }

    /// One resource. Only [`NotFound`](cloudkeel_api::ErrorKind::NotFound) says that there is none.
    pub async fn get<T: Resource>(&self, id: &T::Id, priority: Priority) -> Result<T, CloudError>
    where
        T::Id: Display,
    {
        let request = Request::get(self.one::<T>()).param("id", id);
        let response = self.client.send(request.priority(priority)).await?;
        let found: T = json::one(&response)?;
        if found.id() != *id {
            let (name, other) = (T::ONE, found.id());
            let why = format!("asked for {name} {id}, got {name} {other}");
            return Err(response.malformed(&why));
        }
        Ok(found)
    }

    /// Asks for a new resource.
    pub fn create_request<T: Resource>(&self, body: &impl Serialize) -> Request {
        Request::post(self.many::<T>()).json(json::body(body))
    }

    /// Creates a resource and returns it as the answer shows it. Not repeated after a lost answer: the next observation
    /// shows whether it is there.
    pub async fn create<T: Resource>(&self, body: &impl Serialize) -> Result<T, CloudError> {
        let request = self.create_request::<T>(body).priority(Priority::Urgent);
        json::one(&self.client.send(request).await?)
    }

    /// Asks for a resource to be replaced.
    pub fn replace_request<T: Resource>(&self, id: &T::Id, body: &impl Serialize) -> Request
    where
        T::Id: Display,
    {
        let request = Request::put(self.one::<T>()).param("id", id);
        request.json(json::body(body))
    }

    /// Replaces a resource and returns it as the answer shows it.
    pub async fn replace<T: Resource>(
        &self,
        id: &T::Id,
        body: &impl Serialize,
    ) -> Result<T, CloudError>
    where
        T::Id: Display,
    {
        let request = self.replace_request::<T>(id, body);
        json::one(&self.client.send(request).await?)
    }

    /// Deletes a resource.
    pub async fn delete<T: Resource>(&self, id: &T::Id) -> Result<(), CloudError>
    where
        T::Id: Display,
    {
        self.send(Request::delete(self.one::<T>()).param("id", id))
            .await
    }

    /// Sends a request whose answer does not matter.
    pub async fn send(&self, request: Request) -> Result<(), CloudError> {
        self.client.send(request).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_http::testing::{Reply, Script};
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Server {
        id: u64,
        #[serde(default)]
        tags: Vec<String>,
    }

    crate::resources! {
        Server, id: u64 = "server", "servers";
    }

    const PAGING: Paging = Paging {
        next: "/next",
        total: "/total",
    };

    const SERVER: Server = Server {
        id: 7,
        tags: Vec::new(),
    };

    #[tokio::test]
    async fn resources_are_found_by_their_names_and_null_is_no_value() {
        let one = || Reply::json(200, &json!({"server": {"id": 7, "tags": null}}));
        let many = Reply::json(200, &json!({"servers": [{"id": 7, "tags": null}]}));
        let none = Reply::json(
            404,
            &json!({"error": {"code": "not_found", "message": "no"}}),
        );
        let script = Script::new([many, one(), none, one(), one(), Reply::status(204)]);
        let refusals = cloudkeel_http::CodeTable::new("/error/code", "/error/message");
        let client = Client::builder("https://x")
            .transport(std::sync::Arc::<Script>::clone(&script))
            .error_map(refusals.not_found("not_found"))
            .build()
            .unwrap();
        let api = RestApi::new(client, "/v2", 50, PAGING);
        let all: Vec<Server> = api.every(Priority::Normal).await.unwrap();
        assert_eq!(all, [SERVER]);
        let found = api.find::<Server>(&7, Priority::Normal).await.unwrap();
        assert_eq!(found, Some(SERVER));
        let found = api.find::<Server>(&8, Priority::Normal).await.unwrap();
        assert_eq!(found, None);
        let body = json!({"name": "n", "size": null});
        assert_eq!(api.create::<Server>(&body).await.unwrap(), SERVER);
        assert_eq!(api.replace::<Server>(&7, &body).await.unwrap(), SERVER);
        api.delete::<Server>(&7).await.unwrap();
        let seen = script.seen();
        let line = |it: &http::Request<bytes::Bytes>| {
            let path = it.uri().path_and_query().unwrap();
            let body = String::from_utf8_lossy(it.body()).into_owned();
            format!("{} {path} {body}", it.method()).trim().to_owned()
        };
        let expected = [
            "GET /v2/servers?page=1&per_page=50",
            "GET /v2/servers/7",
            "GET /v2/servers/8",
            r#"POST /v2/servers {"name":"n"}"#,
            r#"PUT /v2/servers/7 {"name":"n"}"#,
            "DELETE /v2/servers/7",
        ];
        assert_eq!(seen.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn large_resources_come_in_smaller_pages() {
        let script = Script::new([Reply::json(200, &json!({"servers": []}))]);
        let client = Client::builder("https://x")
            .transport(std::sync::Arc::<Script>::clone(&script))
            .build()
            .unwrap();
        let api = RestApi::new(client, "/v2", 200, PAGING).with_pages::<Server>(50);
        let none: Vec<Server> = api.every(Priority::Normal).await.unwrap();
        assert_eq!(none, []);
        assert_eq!(script.seen()[0].uri().query(), Some("page=1&per_page=50"));
    }
}
