//! A request as a value: built by a provider, compared in tests, sent by the client.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::{CloudError, ErrorKind, Priority, REDACTED, Secret};
use http::header::{CONTENT_TYPE, IF_MATCH};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use crate::body::Body;
use crate::path::{Param, STRICT, fill};
use crate::redact::Redactor;
use crate::url::{BaseUrl, LinkPolicy};

/// How much of a body is printed.
const SHOWN_CHARS: usize = 1000;

/// One call to a cloud. Building it cannot fail; what is wrong with it is said when it is sent.
///
/// The path is a template, so that the stable name for metrics and the real path come from one
/// string and values are always encoded:
///
/// ```
/// # use cloudkeel_http::Request;
/// let request = Request::get("/servers/{id}").param("id", 42);
/// assert_eq!(request.operation(), "GET /servers/{id}");
/// assert_eq!(request.path().unwrap(), "/servers/42");
/// ```
#[derive(Clone, PartialEq)]
pub struct Request {
    method: Method,
    target: Target,
    operation: Cow<'static, str>,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Option<Body>,
    priority: Priority,
    idempotent: Option<bool>,
    mutating: Option<bool>,
    anonymous: bool,
    confidential: bool,
    accepted: Vec<StatusCode>,
    limits: Limits,
}

/// Timeouts of a request; `None` means the client's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    pub(crate) total: Option<Duration>,
    pub(crate) attempt: Option<Duration>,
    pub(crate) budget_wait: Option<Duration>,
}

#[derive(Clone, PartialEq)]
enum Target {
    Template {
        template: Cow<'static, str>,
        params: Vec<Param>,
    },
    Link(String),
}

impl Request {
    /// A request for a path template such as `/servers/{id}`.
    pub fn new(method: Method, template: impl Into<Cow<'static, str>>) -> Self {
        let template = template.into();
        let operation = format!("{method} {template}");
        let params = Vec::new();
        Self::to(
            method,
            Target::Template { template, params },
            operation.into(),
        )
    }

    /// Reads.
    pub fn get(template: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Method::GET, template)
    }

    /// Creates or acts; retried after an ambiguous failure only if [`idempotent`](Self::idempotent).
    pub fn post(template: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Method::POST, template)
    }

    /// Replaces.
    pub fn put(template: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Method::PUT, template)
    }

    /// Changes a part.
    pub fn patch(template: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Method::PATCH, template)
    }

    /// Removes.
    pub fn delete(template: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Method::DELETE, template)
    }

    /// Reads a link from an earlier response: a URL, or a path from the root of the base URL's host. It is rejected
    /// if it leads to a host that must not see the credential.
    pub fn follow(operation: impl Into<Cow<'static, str>>, link: impl Into<String>) -> Self {
        Self::to(Method::GET, Target::Link(link.into()), operation.into())
    }

    fn to(method: Method, target: Target, operation: Cow<'static, str>) -> Self {
        Self {
            method,
            target,
            operation,
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            priority: Priority::default(),
            idempotent: None,
            mutating: None,
            anonymous: false,
            confidential: false,
            accepted: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Fills `{name}` of the path template with one path segment.
    ///
    /// An empty value is an error when the request is sent: `DELETE /servers/{id}` must never become
    /// `DELETE /servers/`.
    #[must_use]
    pub fn param(self, name: &'static str, value: impl fmt::Display) -> Self {
        self.with_param(name, value.to_string(), false)
    }

    /// Fills `{name}` with several segments, such as an Azure resource ID. Slashes are kept.
    #[must_use]
    pub fn param_path(self, name: &'static str, value: impl fmt::Display) -> Self {
        let value = value.to_string();
        let value = value.trim_matches('/').to_owned();
        self.with_param(name, value, true)
    }

    fn with_param(mut self, name: &'static str, value: String, keep_slashes: bool) -> Self {
        if let Target::Template { params, .. } = &mut self.target {
            params.push(Param {
                name,
                value,
                keep_slashes,
            });
        }
        self
    }

    /// Adds a query parameter; the same name may come several times.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.query.push((name.into(), value.to_string()));
        self
    }

    /// Sets a query parameter in place of earlier values of that name.
    #[must_use]
    pub fn set_query(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.query.retain(|(present, _)| present != name);
        self.query(name, value)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Lets the cloud reject the change if the resource is no longer at this version.
    #[must_use]
    pub fn if_match(self, etag: impl Into<String>) -> Self {
        self.header(IF_MATCH.as_str(), etag)
    }

    /// Sends JSON.
    #[must_use]
    pub fn json(self, body: Value) -> Self {
        self.body(Body::Json(body))
    }

    /// Sends URL-encoded pairs.
    #[must_use]
    pub fn form<N: Into<String>, V: Into<Secret>>(
        self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let pairs = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        self.body(Body::Form(pairs.collect()))
    }

    /// Sets a pair of the form in place of earlier values of that name. Starts a form where there is none.
    #[must_use]
    pub fn set_form(mut self, name: &str, value: impl Into<Secret>) -> Self {
        let mut pairs = match self.body.take() {
            Some(Body::Form(pairs)) => pairs,
            _ => Vec::new(),
        };
        pairs.retain(|(present, _)| present != name);
        pairs.push((name.to_owned(), value.into()));
        self.body(Body::Form(pairs))
    }

    /// Sends any body.
    #[must_use]
    pub fn body(mut self, body: Body) -> Self {
        self.body = Some(body);
        self
    }

    /// Names the operation in metrics, logs and errors, in place of method and template.
    #[must_use]
    pub fn named(mut self, operation: impl Into<Cow<'static, str>>) -> Self {
        self.operation = operation.into();
        self
    }

    /// Its priority when the request budget runs low.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Whether it is idempotent, in place of what the method implies.
    #[must_use]
    pub const fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = Some(idempotent);
        self
    }

    /// Marks it as read-only although its method does not look so, such as a search by `POST`.
    #[must_use]
    pub const fn read_only(mut self) -> Self {
        self.mutating = Some(false);
        self
    }

    /// Sends it without the client's credential, as a login must be.
    #[must_use]
    pub const fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Keeps both bodies out of logs and errors, as those of a login whose response is a bare token.
    #[must_use]
    pub const fn confidential(mut self) -> Self {
        self.confidential = true;
        self
    }

    /// Accepts this status, as every 2xx is.
    #[must_use]
    pub fn accept(mut self, status: StatusCode) -> Self {
        self.accepted.push(status);
        self
    }

    /// Limits the whole call: waiting for the budget, all attempts and the pauses between them.
    #[must_use]
    pub const fn within(mut self, total: Duration) -> Self {
        self.limits.total = Some(total);
        self
    }

    /// Also limits the whole call by this.
    #[must_use]
    pub(crate) fn at_most(self, total: Duration) -> Self {
        let bound = self.limits.total.map_or(total, |bound| bound.min(total));
        self.within(bound)
    }

    /// Limits each attempt.
    #[must_use]
    pub const fn attempt_timeout(mut self, attempt: Duration) -> Self {
        self.limits.attempt = Some(attempt);
        self
    }

    /// How long it may wait for the request budget before it fails as throttled, so that the work
    /// queue can do something else meanwhile.
    #[must_use]
    pub const fn budget_wait(mut self, longest: Duration) -> Self {
        self.limits.budget_wait = Some(longest);
        self
    }

    /// The same request for another link, as the next page of a listing.
    #[must_use]
    pub(crate) fn with_link(mut self, link: String) -> Self {
        self.target = Target::Link(link);
        self.query.clear();
        self
    }

    /// Its method.
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// Its stable name, with IDs left out.
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Its JSON body, if it has one.
    pub const fn json_body(&self) -> Option<&Value> {
        match &self.body {
            Some(Body::Json(value)) => Some(value),
            _ => None,
        }
    }

    /// The last value of a query parameter.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.query.iter().rev();
        pairs.find_map(|(present, value)| (present == name).then_some(value.as_str()))
    }

    /// The secret values in its body.
    pub(crate) fn secrets(&self, redactor: &Redactor) -> Vec<String> {
        let body = self.body.as_ref();
        body.map_or_else(Vec::new, |body| body.secrets(redactor))
    }

    /// The body as it may be logged.
    pub(crate) fn shown_body(&self, redactor: &Redactor, max_chars: usize) -> Option<String> {
        let body = self.body.as_ref()?;
        Some(if self.confidential {
            REDACTED.to_owned()
        } else {
            body.shown(redactor, max_chars)
        })
    }

    pub(crate) const fn is_confidential(&self) -> bool {
        self.confidential
    }

    pub(crate) const fn urgency(&self) -> Priority {
        self.priority
    }

    pub(crate) const fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    pub(crate) const fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn accepts(&self, status: StatusCode) -> bool {
        status.is_success() || self.accepted.contains(&status)
    }

    /// Whether it could change anything in the cloud.
    pub fn is_mutating(&self) -> bool {
        self.mutating.unwrap_or_else(|| !self.method.is_safe())
    }

    /// Whether it may be retried when its outcome is unknown.
    pub fn is_idempotent(&self) -> bool {
        self.idempotent
            .unwrap_or_else(|| self.method.is_idempotent() || !self.is_mutating())
    }

    /// The path with all parameters filled in and encoded, without base URL and query.
    pub fn path(&self) -> Result<String, CloudError> {
        match &self.target {
            Target::Link(link) => Ok(link.clone()),
            Target::Template { template, params } => {
                fill(template, params).map_err(|why| self.refuse(&why))
            }
        }
    }

    /// The request on the wire, without the client's own headers and the credential.
    pub fn to_http(&self, base: &BaseUrl) -> Result<http::Request<Bytes>, CloudError> {
        self.to_http_under(base, &LinkPolicy::default())
    }

    pub(crate) fn to_http_under(
        &self,
        base: &BaseUrl,
        links: &LinkPolicy,
    ) -> Result<http::Request<Bytes>, CloudError> {
        let mut wire = http::Request::new(Bytes::new());
        *wire.method_mut() = self.method.clone();
        *wire.uri_mut() = self.uri(base, links)?;
        for (name, value) in &self.headers {
            let name: HeaderName = name
                .parse()
                .map_err(|_| self.refuse(&format!("{name:?} is not a header name")))?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| self.refuse(&format!("the value of header {name} is not text")))?;
            wire.headers_mut().append(name, value);
        }
        if let Some(body) = &self.body {
            wire.headers_mut()
                .entry(CONTENT_TYPE)
                .or_insert_with(|| body.content_type());
            *wire.body_mut() = body.to_bytes();
        }
        Ok(wire)
    }

    fn uri(&self, base: &BaseUrl, links: &LinkPolicy) -> Result<Uri, CloudError> {
        let mut path = self.path()?;
        self.append_query(&mut path);
        match &self.target {
            Target::Template { .. } => base.join(&path).map_err(|why| self.refuse(&why)),
            Target::Link(link) => links.resolve(base, &path).map_err(|why| {
                let link = Redactor::default().url(link);
                let message = format!("the cloud's link {link:?} is not followed: {why}");
                CloudError::new(self.operation.clone(), ErrorKind::Malformed, message)
            }),
        }
    }

    fn append_query(&self, path: &mut String) {
        for (name, value) in &self.query {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.extend(utf8_percent_encode(name, STRICT));
            path.push('=');
            path.extend(utf8_percent_encode(value, STRICT));
        }
    }

    fn refuse(&self, why: &str) -> CloudError {
        CloudError::invalid(self.operation.clone(), why)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redactor = Redactor::default();
        let mut path = self.path().unwrap_or_else(|error| error.to_string());
        self.append_query(&mut path);
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Request")
            .field("operation", &self.operation)
            .field("method", &self.method)
            .field("path", &redactor.url(&path))
            .field("headers", &names)
            .field("body", &self.shown_body(&redactor, SHOWN_CHARS))
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
