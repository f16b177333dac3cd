//! Objects as vCenter's SOAP API shows them.

use std::collections::BTreeMap;
use std::fmt;

use cloudkeel_toolkit::has_id;
use cloudkeel_toolkit::xml::Element;

use crate::id::VmUuid;
use crate::instances::zone::Zone;

has_id!(Vm.uuid: VmUuid);

/// A reference to an object of the inventory, such as `VirtualMachine:vm-42`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectRef {
    pub(crate) kind: String,
    pub(crate) id: String,
}

impl ObjectRef {
    pub(crate) fn new(kind: &str, id: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            id: id.to_owned(),
        }
    }

    pub(crate) fn read(element: &Element) -> Result<Self, String> {
        let kind = element.attributes.get("type");
        match kind.filter(|_| !element.text.is_empty()) {
            Some(kind) => Ok(Self::new(kind, &element.text)),
            None => Err(format!("<{}> is no reference to an object", element.name)),
        }
    }

    fn read_at(element: &Element, path: &str) -> Result<Self, String> {
        let found = element.at(path);
        Self::read(found.ok_or_else(|| format!("<{}> has no {path}", element.name))?)
    }

    /// As an element of a request.
    pub(crate) fn element(&self, name: &str) -> Element {
        Element::of(name, &self.id).attribute("type", &*self.kind)
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

/// The answer to a call: the element inside the body of the envelope.
pub(crate) fn answer(body: &[u8]) -> Result<Element, String> {
    let mut envelope = Element::parse(body)?;
    let bodies = envelope.children.iter_mut();
    let mut bodies = bodies.filter(|child| child.name == "Body");
    let body = bodies.next().ok_or("the envelope has no body")?;
    let mut answers = std::mem::take(&mut body.children).into_iter();
    answers.next().ok_or_else(|| "the body is empty".to_owned())
}

/// The managers of a vCenter, and which vCenter it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceContent {
    pub(crate) root_folder: ObjectRef,
    pub(crate) property_collector: ObjectRef,
    pub(crate) session_manager: ObjectRef,
    pub(crate) search_index: ObjectRef,
    pub(crate) instance_uuid: String,
}

impl ServiceContent {
    pub(crate) fn read(answer: &Element) -> Result<Self, String> {
        let manager = |name: &str| ObjectRef::read_at(answer, &format!("returnval/{name}"));
        Ok(Self {
            root_folder: manager("rootFolder")?,
            property_collector: manager("propertyCollector")?,
            session_manager: manager("sessionManager")?,
            search_index: manager("searchIndex")?,
            instance_uuid: answer.value_at("returnval/about/instanceUuid")?,
        })
    }
}

/// An object with the properties that were asked for and that it has.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) reference: ObjectRef,
    properties: BTreeMap<String, Element>,
}

impl Object {
    fn read(element: &Element) -> Result<Self, String> {
        let mut properties = BTreeMap::new();
        for property in element.all_at("propSet") {
            let name: String = property.value_at("name")?;
            properties.insert(name, property.at("val").cloned().unwrap_or_default());
        }
        Ok(Self {
            reference: ObjectRef::read_at(element, "obj")?,
            properties,
        })
    }

    /// A property that is a text; an empty one counts as none.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let value = self.properties.get(name)?.text.as_str();
        (!value.is_empty()).then_some(value)
    }

    pub(crate) fn reference_at(&self, name: &str) -> Option<ObjectRef> {
        ObjectRef::read(self.properties.get(name)?).ok()
    }

    fn number(&self, name: &str) -> u64 {
        let text = self.text(name);
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn elements(&self, name: &str) -> &[Element] {
        let property = self.properties.get(name);
        property.map_or(&[], |property| &property.children)
    }
}

/// A part of an answer of the property collector, and what leads to the next.
#[derive(Debug)]
pub(crate) struct ObjectPage {
    pub(crate) objects: Vec<Object>,
    pub(crate) token: Option<String>,
}

impl ObjectPage {
    pub(crate) fn read(answer: &Element) -> Result<Self, String> {
        let objects = answer.all_at("returnval/objects").map(Object::read);
        Ok(Self {
            objects: objects.collect::<Result<_, _>>()?,
            token: answer.text_at("returnval/token").map(str::to_owned),
        })
    }
}

/// What a list reads of each machine.
pub(crate) const SUMMARY: &[&str] = &[
    "name",
    "config.uuid",
    "config.template",
    "guest.hostName",
    "runtime.powerState",
    "runtime.connectionState",
    // What is left of a machine whose host or storage is away.
    "summary.config.uuid",
];

/// What is read of the machines of Nodes, besides that.
pub(crate) const DETAILS: &[&str] = &[
    "config.extraConfig",
    "guest.net",
    "resourcePool",
    "runtime.host",
    "summary.config.guestId",
    "summary.config.memorySizeMB",
    "summary.config.numCpu",
];

/// A virtual machine.
#[derive(Debug, Clone)]
pub(crate) struct Vm {
    pub(crate) reference: ObjectRef,
    pub(crate) uuid: VmUuid,
    /// Its name in the inventory.
    pub(crate) name: String,
    /// The name that its guest reports, if its tools run.
    pub(crate) host_name: Option<String>,
    pub(crate) power_state: String,
    pub(crate) is_template: bool,
    /// `None` if a list showed it.
    pub(crate) details: Option<VmDetails>,
}

/// What a Node is given.
#[derive(Debug, Clone)]
pub(crate) struct VmDetails {
    pub(crate) cpus: u64,
    pub(crate) memory_mb: u64,
    pub(crate) guest_id: String,
    pub(crate) nics: Vec<GuestNic>,
    /// Entries of the extra configuration that begin with `guestinfo.`.
    pub(crate) guest_info: BTreeMap<String, String>,
    pub(crate) host: Option<ObjectRef>,
    pub(crate) pool: Option<ObjectRef>,
    /// Where it is, or why that is not known.
    pub(crate) zone: Result<Zone, String>,
}

/// A network interface as the guest reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GuestNic {
    pub(crate) network: String,
    pub(crate) addresses: Vec<String>,
}

impl Vm {
    /// The machine, or its name and state if it shows no UUID.
    pub(crate) fn read(object: &Object, has_details: bool) -> Result<Self, String> {
        let name = object.text("name").unwrap_or(&object.reference.id);
        let uuid = object
            .text("config.uuid")
            .or_else(|| object.text("summary.config.uuid"));
        let Some(uuid) = uuid.and_then(VmUuid::parse) else {
            let state = object.text("runtime.connectionState").unwrap_or("unknown");
            return Err(format!("{name} ({state})"));
        };
        Ok(Self {
            reference: object.reference.clone(),
            uuid,
            name: name.to_owned(),
            host_name: object.text("guest.hostName").map(str::to_owned),
            power_state: object
                .text("runtime.powerState")
                .unwrap_or_default()
                .to_owned(),
            is_template: object.text("config.template") == Some("true"),
            details: has_details.then(|| VmDetails::read(object)),
        })
    }
}

impl VmDetails {
    fn read(object: &Object) -> Self {
        let nics = object.elements("guest.net").iter();
        // Interfaces that are no device of the machine belong to containers and bridges in its guest.
        let nics = nics.filter(|nic| nic.text_at("deviceConfigId") != Some("-1"));
        let entries = object.elements("config.extraConfig").iter();
        let entries = entries.filter_map(|entry| {
            let key = entry.text_at("key")?;
            let value = entry.text_at("value")?;
            let is_guests = key.starts_with("guestinfo.");
            is_guests.then(|| (key.to_owned(), value.to_owned()))
        });
        Self {
            cpus: object.number("summary.config.numCpu"),
            memory_mb: object.number("summary.config.memorySizeMB"),
            guest_id: object
                .text("summary.config.guestId")
                .unwrap_or_default()
                .to_owned(),
            nics: nics.map(GuestNic::read).collect(),
            guest_info: entries.collect(),
            host: object.reference_at("runtime.host"),
            pool: object.reference_at("resourcePool"),
            zone: Ok(Zone::default()),
        }
    }
}

impl GuestNic {
    fn read(element: &Element) -> Self {
        let addresses = element.all_at("ipAddress");
        Self {
            network: element.text_at("network").unwrap_or_default().to_owned(),
            addresses: addresses.map(|address| address.text.clone()).collect(),
        }
    }
}
