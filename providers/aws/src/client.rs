//! The APIs of AWS: how calls are sent, signed and read.

mod call;
mod credentials;
mod metadata;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Priority, ProviderContext};
use cloudkeel_http::{
    Backoff, Client, HttpSettings, HyperTransport, Next, Page, Response, RetryPolicy, Transport,
};
use cloudkeel_toolkit::xml::Element;
use cloudkeel_toolkit::{HasId, Instruments, Wiring};

pub(crate) use self::call::{Call, Service};
use self::credentials::Keys;
pub(crate) use self::metadata::Metadata;
use crate::config::Config;
use crate::error::refusals;

/// How long an answer may take, as in the Go CCM.
const ATTEMPT: Duration = Duration::from_secs(30);

/// As many items as a page of EC2 may have: more is refused.
fn largest_page(call: &Call) -> u16 {
    match call.action {
        "DescribeRouteTables" => 100,
        _ => 1000,
    }
}

/// The account, in one region.
#[derive(Clone)]
pub(crate) struct Api {
    clients: Arc<BTreeMap<Service, Client>>,
}

impl Api {
    pub(crate) async fn new(
        config: &Config,
        region: &str,
        context: &ProviderContext,
        wiring: &Wiring,
    ) -> Result<Self, CloudError> {
        let http = HttpSettings::from_env()?;
        // One pool of connections for all services, and for what fetches credentials.
        let transport: Arc<dyn Transport> = match &wiring.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(HyperTransport::new(http.clone())?),
        };
        let wiring = Wiring {
            transport: Some(Arc::clone(&transport)),
            ..wiring.clone()
        };
        let own = Keys::of_chain(config, region, &transport, &context.clock).await;
        let build = |service: Service, keys: &Keys| {
            let endpoint = config.endpoint(service, region);
            let client =
                wiring.client(&endpoint.url, context, http.clone(), Instruments::default())?;
            client
                .authorizer(keys.signing(service, &endpoint.signing_region, &context.clock))
                .error_map(refusals())
                .retry(retry())
                .header("accept", "text/xml")
                .build()
        };
        let sts = build(Service::Sts, &own)?;
        let keys = match &config.role_arn {
            Some(role) => Keys::of_role(sts.clone(), role, config, &context.clock),
            None => own,
        };
        let mut clients = BTreeMap::from([(Service::Sts, sts)]);
        for service in Service::ALL {
            if service != Service::Sts {
                clients.insert(service, build(service, &keys)?);
            }
        }
        Ok(Self {
            clients: Arc::new(clients),
        })
    }

    fn client(&self, service: Service) -> Result<&Client, CloudError> {
        let client = self.clients.get(&service);
        client.ok_or_else(|| CloudError::invalid("call AWS", "there is no client for this service"))
    }

    /// Sends a call. Its answer is checked to be the one of this call.
    pub(crate) async fn send(&self, call: &Call) -> Result<Element, CloudError> {
        self.send_with(call, Priority::Normal).await
    }

    pub(crate) async fn send_with(
        &self,
        call: &Call,
        priority: Priority,
    ) -> Result<Element, CloudError> {
        let request = call.request().priority(priority);
        let response = self.client(call.service)?.send(request).await?;
        response.decode(|body| answer(call, body))
    }

    /// All items of a list, to its last page. `path` leads to the items; a body without that list is malformed.
    pub(crate) async fn all<T: FromXml + HasId<Id = String>>(
        &self,
        call: &Call,
        path: &'static str,
        priority: Priority,
    ) -> Result<Vec<T>, CloudError> {
        let (param, element) = call.service.page_token();
        let client = self.client(call.service)?;
        let pager = client
            .pages(call.request().priority(priority))
            .after_marker(move |first, marker| first.set_form(param, marker));
        let read = |response: &Response| {
            let root = response.decode(|body| answer(call, body))?;
            let items = list_at(&root, path).map_err(|why| response.malformed(&why))?;
            let next = root.text_at(element).map(str::to_owned);
            Ok(Page {
                items,
                next: Next::marker(next),
                total: None,
            })
        };
        let listing = pager.collect(HasId::id, read).await?;
        Ok(listing.items)
    }

    /// The same with the largest pages that EC2 has.
    pub(crate) async fn all_of_ec2<T: FromXml + HasId<Id = String>>(
        &self,
        call: Call,
        path: &'static str,
        priority: Priority,
    ) -> Result<Vec<T>, CloudError> {
        let page = largest_page(&call);
        let call = call.set("MaxResults", page);
        self.all(&call, path, priority).await
    }
}

/// Something that is read from an answer.
pub(crate) trait FromXml: Sized {
    /// Reads it. The error says what is missing.
    fn from_xml(element: &Element) -> Result<Self, String>;
}

/// Three retries, as the SDKs have them.
fn retry() -> RetryPolicy {
    RetryPolicy {
        attempts: 4,
        backoff: Backoff {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
        },
        attempt: ATTEMPT,
        ..RetryPolicy::default()
    }
}

/// The content of an answer: its root has to be that of the action, whatever else is a document.
fn answer(call: &Call, body: &[u8]) -> Result<Element, String> {
    let action = call.action;
    let root = Element::parse(body)?;
    if root.name != format!("{action}Response") {
        let name = &root.name;
        return Err(format!("it is a <{name}>, expected <{action}Response>"));
    }
    let inner = format!("{action}Result");
    let content = root.children.iter().position(|child| child.name == inner);
    let mut root = root;
    Ok(match content {
        Some(place) => root.children.swap_remove(place),
        None => root,
    })
}

/// The items at a path such as `reservationSet/item`, whose list has to be there even if it is empty.
pub(crate) fn list_at<T: FromXml>(root: &Element, path: &str) -> Result<Vec<T>, String> {
    let list = path.split('/').next().unwrap_or(path);
    if root.at(list).is_none() {
        return Err(format!("<{}> has no <{list}>", root.name));
    }
    root.all_at(path).map(T::from_xml).collect()
}

#[cfg(test)]
pub(crate) mod tests;
