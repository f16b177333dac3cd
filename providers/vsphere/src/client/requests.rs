//! Calls of the SOAP API as elements. vCenter reads the elements of a call in one order only.

use std::borrow::Cow;

use bytes::Bytes;
use cloudkeel_http::{Body, Request};
use cloudkeel_toolkit::xml::Element;

use crate::id::VmUuid;
use crate::wire::{ObjectRef, ServiceContent};

/// The oldest version of the API that is spoken: that of vCenter 6.5.
const ACTION: &str = "urn:vim25/6.5";

/// A call as a request. Everything that is called only reads.
pub(crate) fn request(call: Element) -> Request {
    let operation: Cow<'static, str> = call.name.clone().into();
    let envelope = Element::new("Envelope")
        .attribute("xmlns", "http://schemas.xmlsoap.org/soap/envelope/")
        .attribute("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
        .with(Element::new("Body").with(call));
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{envelope}");
    Request::post("/sdk")
        .named(operation)
        .header("SOAPAction", ACTION)
        .header("Accept", "text/xml")
        .body(Body::Raw {
            content_type: "text/xml; charset=\"utf-8\"",
            bytes: Bytes::from(text),
        })
        .read_only()
}

fn call(method: &str, this: &ObjectRef) -> Element {
    Element::new(method)
        .attribute("xmlns", "urn:vim25")
        .with(this.element("_this"))
}

pub(crate) fn service_content() -> Element {
    let this = ObjectRef::new("ServiceInstance", "ServiceInstance");
    call("RetrieveServiceContent", &this)
}

pub(crate) fn login(content: &ServiceContent, user: &str, password: &str) -> Element {
    call("Login", &content.session_manager)
        .with(Element::of("userName", user))
        .with(Element::of("password", password))
}

pub(crate) fn logout(content: &ServiceContent) -> Element {
    call("Logout", &content.session_manager)
}

/// All machines with this BIOS UUID, in a datacenter or in all.
pub(crate) fn find_all_by_uuid(
    content: &ServiceContent,
    datacenter: Option<&ObjectRef>,
    uuid: VmUuid,
) -> Element {
    call("FindAllByUuid", &content.search_index)
        .with_all(datacenter.map(|it| it.element("datacenter")))
        .with(Element::of("uuid", uuid))
        .with(Element::of("vmSearch", true))
        .with(Element::of("instanceUuid", false))
}

/// Which properties of which objects.
pub(crate) struct Selection<'a> {
    /// Kinds of objects, and their properties.
    pub(crate) properties: Vec<(&'static str, Vec<&'static str>)>,
    /// Where to begin.
    pub(crate) objects: Vec<&'a ObjectRef>,
    /// Where to go from there.
    pub(crate) traversal: Vec<Element>,
}

pub(crate) fn retrieve(
    content: &ServiceContent,
    selection: &Selection<'_>,
    page_size: u32,
) -> Element {
    let kinds = selection.properties.iter().map(|(kind, paths)| {
        let paths = paths.iter().map(|path| Element::of("pathSet", path));
        let kind = Element::new("propSet").with(Element::of("type", kind));
        kind.with(Element::of("all", false)).with_all(paths)
    });
    let objects = selection.objects.iter().map(|object| {
        let object = Element::new("objectSet").with(object.element("obj"));
        object
            .with(Element::of("skip", false))
            .with_all(selection.traversal.clone())
    });
    let specification = Element::new("specSet")
        .with_all(kinds)
        .with_all(objects)
        // What has been deleted meanwhile is left out, and the rest is answered.
        .with(Element::of("reportMissingObjectsInResults", true));
    let options = Element::new("options").with(Element::of("maxObjects", page_size));
    call("RetrievePropertiesEx", &content.property_collector)
        .with(specification)
        .with(options)
}

pub(crate) fn continue_retrieve(content: &ServiceContent, token: &str) -> Element {
    call("ContinueRetrievePropertiesEx", &content.property_collector)
        .with(Element::of("token", token))
}

/// One step from objects of a kind along a property, and the steps after it.
fn step(name: &str, kind: &str, path: &str, next: impl IntoIterator<Item = Element>) -> Element {
    Element::new("selectSet")
        .attribute("xsi:type", "TraversalSpec")
        .with(Element::of("name", name))
        .with(Element::of("type", kind))
        .with(Element::of("path", path))
        .with(Element::of("skip", false))
        .with_all(next)
}

/// A step by its name.
fn again(name: &str) -> Element {
    Element::new("selectSet").with(Element::of("name", name))
}

/// From a folder to all datacenters and machines in it, also those in vApps.
pub(crate) fn down_from_folder() -> Element {
    let in_vapp = step(
        "vApps in vApp",
        "VirtualApp",
        "resourcePool",
        [again("machines of vApp"), again("vApps in vApp")],
    );
    let vapp = step("machines of vApp", "VirtualApp", "vm", []);
    let datacenter = step("datacenter", "Datacenter", "vmFolder", [again("folder")]);
    let next = [again("folder"), datacenter, vapp, in_vapp];
    step("folder", "Folder", "childEntity", next)
}

/// From a datacenter to all machines in it.
pub(crate) fn down_from_datacenter() -> Element {
    step("begin", "Datacenter", "vmFolder", [down_from_folder()])
}

/// From an object to everything above it.
pub(crate) fn up() -> Vec<Element> {
    vec![
        step("parent", "ManagedEntity", "parent", [again("parent")]),
        step("vApp", "VirtualMachine", "parentVApp", [again("parent")]),
    ]
}

/// From a folder to all datacenters in it.
pub(crate) fn down_to_datacenters() -> Element {
    step("folder", "Folder", "childEntity", [again("folder")])
}
