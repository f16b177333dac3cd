//! A vCenter of two machines that always says the same. The simulator of vCenters is a Go program, and fuzzing
//! needs none.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{CloudError, CloudProvider, ConfigSource, ProviderInput};
use cloudkeel_http::{Transport, TransportError};
use cloudkeel_provider_vsphere::{Config, VSphereProvider, Wiring};
use http::{Request, Response};
use serde_json::json;

use super::answers::{Cloud, context};

const UUIDS: [&str; 2] = [
    "56492e42-22ad-3911-6d72-59cc8f26bc90",
    "56492e42-22ad-3911-6d72-59cc8f26bc91",
];

#[derive(Default)]
pub(super) struct VSphere;

#[async_trait]
impl Cloud for VSphere {
    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(Answers)
    }

    async fn connect(&self, wiring: Wiring) -> Result<Arc<dyn CloudProvider>, CloudError> {
        let settings = json!({
            "vcenter": {"a": {"server": "vc.test", "user": "u", "password": "p"}},
            "labels": {"zone": "zone", "region": "region"},
        });
        let input = ProviderInput {
            config: ConfigSource::Own(settings),
            ..ProviderInput::default()
        };
        let config = Config::read(&input).expect("good settings");
        let provider = VSphereProvider::connect(&config, &context("vsphere"), wiring).await?;
        Ok(Arc::new(provider))
    }
}

struct Answers;

#[async_trait]
impl Transport for Answers {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let path = request.uri().path();
        let text = if path.starts_with("/rest/") {
            rest(path)
        } else {
            soap(&String::from_utf8_lossy(request.body()))
        };
        let answer = Response::builder().header("Set-Cookie", "vmware_soap_session=\"s\"; Path=/");
        Ok(answer.body(Bytes::from(text)).expect("an answer"))
    }
}

fn rest(path: &str) -> String {
    let value = match path.rsplit('/').next() {
        Some("session") => json!("rest-session"),
        Some("tag-association") => json!([
            {"object_id": {"id": "host-1", "type": "HostSystem"}, "tag_ids": ["urn:zone", "urn:region"]},
            {"object_id": {"id": "group-d1", "type": "Folder"}, "tag_ids": null},
        ]),
        Some(last) if path.contains("/tag/") => {
            json!({"name": "a", "category_id": if last.contains("zone") { "zone" } else { "region" }})
        }
        last => {
            json!({"name": last.unwrap_or_default().trim_start_matches("id%3A").trim_start_matches("id:")})
        }
    };
    json!({"value": value}).to_string()
}

fn soap(call: &str) -> String {
    let has = |method: &str| call.contains(&format!("<{method} "));
    let answer = if has("RetrieveServiceContent") {
        "<rootFolder type=\"Folder\">group-d1</rootFolder>\
         <propertyCollector type=\"PropertyCollector\">pc</propertyCollector>\
         <about><instanceUuid>i-1</instanceUuid></about>\
         <sessionManager type=\"SessionManager\">sm</sessionManager>\
         <searchIndex type=\"SearchIndex\">si</searchIndex>"
            .to_owned()
    } else if has("FindAllByUuid") {
        let asked = UUIDS.iter().position(|uuid| call.contains(uuid));
        let found = asked.map(|index| format!("vm-{index}"));
        return envelope(&found.map_or_else(String::new, |id| {
            format!("<returnval type=\"VirtualMachine\">{id}</returnval>")
        }));
    } else if has("ContinueRetrievePropertiesEx") {
        machine(1)
    } else if call.contains("<type>ManagedEntity</type>") {
        let parents = [
            ("HostSystem", "host-1"),
            ("VirtualMachine", "vm-0"),
            ("VirtualMachine", "vm-1"),
        ];
        let parents = parents.map(|(kind, id)| object(kind, id, &[("parent", "group-d1")]));
        format!("{}{}", parents.concat(), object("Folder", "group-d1", &[]))
    } else if call.contains("summary.config.numCpu") {
        let machines = (0..UUIDS.len()).filter(|index| call.contains(&format!(">vm-{index}<")));
        machines.map(machine).collect()
    } else if call.contains("<type>VirtualMachine</type>") {
        let datacenter = object("Datacenter", "datacenter-2", &[("name", "DC0")]);
        format!("{datacenter}{}<token>next</token>", machine(0))
    } else {
        object(
            "Datacenter",
            "datacenter-2",
            &[("name", "DC0"), ("parent", "group-d1")],
        )
    };
    envelope(&format!("<returnval>{answer}</returnval>"))
}

fn envelope(answer: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>\
         <Response xmlns=\"urn:vim25\">{answer}</Response></e:Body></e:Envelope>"
    )
}

fn object(kind: &str, id: &str, properties: &[(&str, &str)]) -> String {
    let properties = properties.iter().map(|(name, value)| {
        let kind = if *name == "parent" {
            " type=\"Folder\""
        } else {
            ""
        };
        format!("<propSet><name>{name}</name><val{kind}>{value}</val></propSet>")
    });
    let properties: String = properties.collect();
    format!("<objects><obj type=\"{kind}\">{id}</obj>{properties}</objects>")
}

fn machine(index: usize) -> String {
    let uuid = UUIDS.get(index).copied().unwrap_or_default();
    let (name, id) = (format!("node-{index}"), format!("vm-{index}"));
    let nic = format!(
        "<GuestNicInfo><network>VM Network</network><ipAddress>10.0.0.{index}</ipAddress>\
         <deviceConfigId>4000</deviceConfigId></GuestNicInfo>"
    );
    object(
        "VirtualMachine",
        &id,
        &[
            ("name", &name),
            ("config.uuid", uuid),
            ("config.template", "false"),
            ("guest.hostName", &name),
            ("runtime.powerState", "poweredOn"),
            ("summary.config.numCpu", "2"),
            ("summary.config.memorySizeMB", "4096"),
            ("summary.config.guestId", "ubuntu64Guest"),
            ("guest.net", &nic),
        ],
    )
    .replace(
        "</objects>",
        "<propSet><name>runtime.host</name><val type=\"HostSystem\">host-1</val></propSet></objects>",
    )
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{Existence, Priority};

    use super::super::{node_of, paused};
    use super::*;

    #[test]
    fn a_good_life_shows_both_machines_with_their_zone() {
        paused().block_on(async {
            let provider = VSphere.provider(VSphere.transport()).await.unwrap();
            let instances = provider.instances().unwrap();
            let list = instances.list().await.unwrap();
            assert_eq!(list.instances().len(), 2);
            let all = list.instances().cloned().collect();
            for instance in instances.describe(all, Priority::Normal).await {
                let instance = instance.unwrap();
                assert_eq!(instance.zone.as_deref(), Some("a"), "{instance:?}");
                let found = instances.find(&node_of(&instance), None).await;
                assert!(matches!(found, Existence::Present(_)), "{found:?}");
            }
        });
    }
}
