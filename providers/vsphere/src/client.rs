//! One vCenter: how its inventory is listed and searched.

mod requests;
mod session;
pub(crate) mod tags;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, ProviderContext};
use cloudkeel_http::{
    Auth, Client, HeaderAuth, HttpSettings, RetryPolicy, TokenCache, set_secret_header,
};
use cloudkeel_toolkit::xml::Element;
use cloudkeel_toolkit::{Instruments, SharedRead, Wiring};
use http::HeaderName;
use http::header::COOKIE;

use self::requests::Selection;
use self::session::{Credentials, REST_SESSION, RestLogin, SoapLogin, SoapSession};
use self::tags::Tagging;
use crate::config::VCenterConfig;
use crate::error::{rest_refusals, soap_refusals};
use crate::id::VmUuid;
use crate::wire::{DETAILS, Object, ObjectPage, ObjectRef, SUMMARY, ServiceContent, Vm, answer};

/// How long the references of datacenters are kept. Their names hardly ever change.
const DATACENTERS_KEPT: Duration = Duration::from_mins(5);

/// How many objects one call names.
const OBJECTS_PER_CALL: usize = 500;

/// The name that vCenter shows for our sessions, beginning as that of the Go CCM.
const USER_AGENT: &str = concat!(
    "k8s-cloud-provider-vsphere cloudkeel/",
    env!("CARGO_PKG_VERSION")
);

/// The machines of a vCenter.
#[derive(Debug, Default)]
pub(crate) struct VmList {
    pub(crate) machines: Vec<Vm>,
    /// Names and states of machines that show no UUID, because their host or storage is away.
    pub(crate) unidentified: Vec<String>,
}

/// One vCenter, seen with one login.
pub(crate) struct Api {
    client: Client,
    sessions: Arc<TokenCache<SoapSession>>,
    login: Arc<SoapLogin>,
    rest_login: Arc<RestLogin>,
    pub(crate) tags: Tagging,
    datacenter_names: Vec<String>,
    datacenters: SharedRead<Vec<ObjectRef>>,
    page_size: u32,
}

impl Api {
    pub(crate) fn new(
        config: &VCenterConfig,
        context: &ProviderContext,
        wiring: &Wiring,
    ) -> Result<Self, CloudError> {
        let http = HttpSettings {
            tls: config.tls(),
            ..HttpSettings::from_env()?
        };
        let anonymous = wiring
            .client(&config.url(), context, http, Instruments::default())?
            .error_map(soap_refusals())
            .user_agent(USER_AGENT)
            .retry(RetryPolicy {
                attempts: config.attempts,
                attempt: config.attempt_timeout,
                ..RetryPolicy::default()
            })
            .build()?;
        let secrets = Arc::clone(&context.secrets);
        let credentials = Arc::new(Credentials::new(config, secrets));
        let login = Arc::new(SoapLogin {
            client: anonymous.clone(),
            credentials: Arc::clone(&credentials),
            current: Mutex::default(),
            instance_uuid: OnceLock::new(),
        });
        let source = Arc::<SoapLogin>::clone(&login);
        let sessions = Arc::new(TokenCache::new(source, Arc::clone(&context.clock)));
        let with_cookie = Auth::renewed(
            Arc::clone(&sessions),
            |session: &SoapSession, request: &mut http::Request<bytes::Bytes>| {
                set_secret_header(request, &COOKIE, session.cookie.expose())
            },
        );
        let rest = anonymous.derive().error_map(rest_refusals());
        let rest_login = Arc::new(RestLogin {
            client: rest.clone().build()?,
            credentials,
            current: Mutex::default(),
        });
        let source = Arc::<RestLogin>::clone(&rest_login);
        let rest_sessions = Arc::new(TokenCache::new(source, Arc::clone(&context.clock)));
        let header = HeaderName::from_static(REST_SESSION);
        let rest = rest.authorizer(HeaderAuth::header_from(header, rest_sessions));
        Ok(Self {
            client: anonymous.derive().authorizer(with_cookie).build()?,
            sessions,
            login,
            rest_login,
            tags: Tagging::new(rest.build()?),
            datacenter_names: config.datacenters.clone(),
            datacenters: SharedRead::default(),
            page_size: config.page_size,
        })
    }

    /// Logs in, and finds the datacenters.
    pub(crate) async fn check(&self) -> Result<(), CloudError> {
        self.sessions.forget_failure();
        let content = self.content().await?;
        let all = self.read_datacenters(&content).await?;
        if all.is_empty() {
            return Err(no_datacenter());
        }
        Ok(())
    }

    /// Ends all sessions.
    pub(crate) async fn close(&self) {
        self.login.log_out().await;
        self.rest_login.log_out().await;
    }

    async fn content(&self) -> Result<ServiceContent, CloudError> {
        Ok(self.sessions.token().await?.value.content)
    }

    async fn call(&self, call: Element) -> Result<Element, CloudError> {
        let response = self.client.send(requests::request(call)).await?;
        response.decode(answer)
    }

    /// Everything that a selection shows.
    async fn retrieve(
        &self,
        content: &ServiceContent,
        selection: &Selection<'_>,
    ) -> Result<Vec<Object>, CloudError> {
        match self.retrieve_once(content, selection).await {
            // A new session does not know where the old one stopped.
            Err(error) if error.kind() == ErrorKind::Invalid => {
                self.retrieve_once(content, selection).await
            }
            answer => answer,
        }
    }

    async fn retrieve_once(
        &self,
        content: &ServiceContent,
        selection: &Selection<'_>,
    ) -> Result<Vec<Object>, CloudError> {
        let mut call = requests::retrieve(content, selection, self.page_size);
        let mut objects = Vec::new();
        loop {
            let request = requests::request(call);
            let response = self.client.send(request).await?;
            let page = response.decode(|body| ObjectPage::read(&answer(body)?))?;
            let is_empty = page.objects.is_empty();
            objects.extend(page.objects);
            match page.token {
                None => return Ok(objects),
                Some(_) if is_empty => {
                    return Err(response.malformed("an empty page announces another"));
                }
                Some(token) => call = requests::continue_retrieve(content, &token),
            }
        }
    }

    /// The configured datacenters, or all of them.
    async fn datacenters(
        &self,
        content: &ServiceContent,
    ) -> Result<Arc<Vec<ObjectRef>>, CloudError> {
        let read = || self.read_datacenters(content);
        self.datacenters.no_older_than(DATACENTERS_KEPT, read).await
    }

    async fn read_datacenters(
        &self,
        content: &ServiceContent,
    ) -> Result<Vec<ObjectRef>, CloudError> {
        let selection = Selection {
            properties: vec![
                ("Datacenter", vec!["name", "parent"]),
                ("Folder", vec!["name", "parent"]),
            ],
            objects: vec![&content.root_folder],
            traversal: vec![requests::down_to_datacenters()],
        };
        let objects = self.retrieve(content, &selection).await?;
        choose_datacenters(&objects, &content.root_folder, &self.datacenter_names)
            .map_err(|why| CloudError::invalid("find datacenters", why))
    }

    /// Where searches and lists begin: `None` is the whole inventory.
    async fn places(&self, content: &ServiceContent) -> Result<Vec<Option<ObjectRef>>, CloudError> {
        if self.datacenter_names.is_empty() {
            return Ok(vec![None]);
        }
        let datacenters = self.datacenters(content).await?;
        Ok(datacenters.iter().cloned().map(Some).collect())
    }

    /// All machines, with what a list shows of them.
    pub(crate) async fn list(&self) -> Result<VmList, CloudError> {
        let content = self.content().await?;
        let places = self.places(&content).await?;
        let places: Vec<_> = places.iter().flatten().collect();
        let (objects, traversal) = match places.as_slice() {
            [] => (vec![&content.root_folder], requests::down_from_folder()),
            _ => (places.clone(), requests::down_from_datacenter()),
        };
        let selection = Selection {
            properties: vec![
                ("VirtualMachine", SUMMARY.to_vec()),
                ("Datacenter", vec!["name"]),
            ],
            objects,
            traversal: vec![traversal],
        };
        let objects = self.retrieve(&content, &selection).await?;
        let is_datacenter = |object: &&Object| object.reference.kind == "Datacenter";
        let datacenters = objects.iter().filter(is_datacenter).count();
        // An answer without them is not about the inventory: that of a session without rights, for example.
        if datacenters < places.len().max(1) {
            return Err(no_datacenter());
        }
        let mut list = VmList::default();
        let machines = objects.iter().filter(|object| !is_datacenter(object));
        for object in machines {
            match Vm::read(object, false) {
                Ok(machine) => list.machines.push(machine),
                Err(unidentified) => list.unidentified.push(unidentified),
            }
        }
        Ok(list)
    }

    /// The references of all machines with a UUID, in either byte order.
    pub(crate) async fn find(&self, uuid: VmUuid) -> Result<Vec<ObjectRef>, CloudError> {
        let content = self.content().await?;
        let places = self.places(&content).await?;
        for uuid in [uuid, uuid.swapped()] {
            let mut found = BTreeSet::new();
            for place in &places {
                let call = requests::find_all_by_uuid(&content, place.as_ref(), uuid);
                let answer = self.call(call).await?;
                let references = answer.all_at("returnval").map(ObjectRef::read);
                for reference in references {
                    let malformed =
                        |why| CloudError::new("FindAllByUuid", ErrorKind::Malformed, why);
                    found.insert(reference.map_err(malformed)?);
                }
            }
            if !found.is_empty() {
                return Ok(found.into_iter().collect());
            }
        }
        Ok(Vec::new())
    }

    /// The machines of these references that still exist, with everything that a Node is given but their zones.
    pub(crate) async fn details(&self, machines: &[ObjectRef]) -> Result<Vec<Vm>, CloudError> {
        let content = self.content().await?;
        let mut found = Vec::new();
        for machines in machines.chunks(OBJECTS_PER_CALL) {
            let selection = Selection {
                properties: vec![("VirtualMachine", [SUMMARY, DETAILS].concat())],
                objects: machines.iter().collect(),
                traversal: Vec::new(),
            };
            let objects = self.retrieve(&content, &selection).await?;
            let details = objects.iter().map(|object| Vm::read(object, true));
            found.extend(details.filter_map(Result::ok));
        }
        Ok(found)
    }

    /// These objects and everything above them, with the references of their parents.
    pub(crate) async fn ancestors(
        &self,
        objects: &BTreeSet<ObjectRef>,
    ) -> Result<Vec<Object>, CloudError> {
        let content = self.content().await?;
        let selection = Selection {
            properties: vec![
                ("ManagedEntity", vec!["parent"]),
                ("VirtualMachine", vec!["parent", "parentVApp"]),
            ],
            objects: objects.iter().collect(),
            traversal: requests::up(),
        };
        self.retrieve(&content, &selection).await
    }
}

fn no_datacenter() -> CloudError {
    let message = "vCenter shows no datacenter: the user needs the read-only role on the root folder or the \
                   datacenters, propagated";
    CloudError::new("list virtual machines", ErrorKind::Incomplete, message)
}

/// The datacenters that entries of the configuration name: by name, by inventory path, or by reference.
fn choose_datacenters(
    objects: &[Object],
    root: &ObjectRef,
    entries: &[String],
) -> Result<Vec<ObjectRef>, String> {
    let names: BTreeMap<&str, _> = objects
        .iter()
        .map(|object| {
            let parent = object.reference_at("parent").map(|parent| parent.id);
            (&*object.reference.id, (object.text("name"), parent))
        })
        .collect();
    let path_of = |object: &Object| {
        let mut path = String::new();
        let mut id = Some(object.reference.id.clone());
        // An inventory is not deeper than it has objects.
        for _ in 0..=names.len() {
            let Some((name, parent)) = id.as_deref().and_then(|id| names.get(id)) else {
                break;
            };
            if id.as_deref() == Some(&root.id) {
                break;
            }
            path = format!("/{}{path}", name.unwrap_or_default());
            id = parent.clone();
        }
        path
    };
    let all = objects
        .iter()
        .filter(|it| it.reference.kind == "Datacenter");
    let all: Vec<_> = all.collect();
    if entries.is_empty() {
        return Ok(all.iter().map(|it| it.reference.clone()).collect());
    }
    let mut chosen = BTreeSet::new();
    for entry in entries {
        let is_meant = |object: &&&Object| {
            let path = path_of(object);
            object.text("name") == Some(entry.as_str())
                || path.trim_start_matches('/') == entry.trim_start_matches('/')
                || object.reference.to_string() == *entry
        };
        let before = chosen.len();
        chosen.extend(all.iter().filter(is_meant).map(|it| it.reference.clone()));
        if chosen.len() == before && !all.iter().any(|it| is_meant(&it)) {
            let known: Vec<_> = all.iter().map(|it| path_of(it)).collect();
            let known = known.join(", ");
            return Err(format!(
                "datacenters: {entry:?}: expected a datacenter of this vCenter, which has {known}"
            ));
        }
    }
    Ok(chosen.into_iter().collect())
}

#[cfg(test)]
mod tests;
