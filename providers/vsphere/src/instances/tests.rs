use cloudkeel_api::IpFamily;
use jiff::Timestamp;

use super::*;
use crate::config::NodeNetworks;
use crate::wire::GuestNic;

const UUID: &str = "56492e42-22ad-3911-6d72-59cc8f26bc90";
const SWAPPED: &str = "422e4956-ad22-1139-6d72-59cc8f26bc90";

pub(crate) fn details() -> VmDetails {
    VmDetails {
        cpus: 2,
        memory_mb: 4096,
        guest_id: "ubuntu64Guest".to_owned(),
        nics: vec![GuestNic {
            network: "VM Network".to_owned(),
            addresses: vec!["10.0.0.1".to_owned()],
        }],
        guest_info: BTreeMap::new(),
        host: None,
        pool: None,
        zone: Ok(zone::Zone::default()),
    }
}

pub(crate) fn machine(host_name: &str) -> Vm {
    Vm {
        reference: ObjectRef::new("VirtualMachine", "vm-1"),
        uuid: VmUuid::parse(UUID).unwrap(),
        name: "vm-of-node".to_owned(),
        host_name: Some(host_name.to_owned()),
        power_state: "poweredOn".to_owned(),
        is_template: false,
        details: Some(details()),
    }
}

fn rules() -> Rules {
    Rules {
        addresses: AddressRules {
            families: vec![IpFamily::V4],
            networks: NodeNetworks::default(),
        },
        zones: None,
        labels: BTreeMap::from([("site".to_owned(), "a".to_owned())]),
        keeps_missing: false,
    }
}

#[test]
fn a_machine_becomes_what_its_node_is_given() {
    let mut vm = machine("node-1");
    let zone = zone::Zone {
        zone: Some("z".to_owned()),
        region: Some("r".to_owned()),
    };
    vm.details.as_mut().unwrap().zone = Ok(zone);
    let shown = rules().instance(&vm);
    let ip = "10.0.0.1".parse().unwrap();
    let expected = Instance {
        system_uuid: Some(UUID.to_owned()),
        state: InstanceState::Running,
        instance_type: Some("vsphere-vm.cpu-2.mem-4gb.os-ubuntu".to_owned()),
        zone: Some("z".to_owned()),
        region: Some("r".to_owned()),
        addresses: vec![
            NodeAddress::hostname("node-1"),
            NodeAddress::internal(ip),
            NodeAddress::external(ip),
        ],
        labels: BTreeMap::from([("site".to_owned(), "a".to_owned())]),
        ..Instance::new(format!("vsphere://{UUID}").parse().unwrap(), "node-1")
    };
    assert_eq!(shown, expected);
}

#[test]
fn power_states_are_those_of_the_go_ccm() {
    for (state, expected) in [
        ("poweredOn", InstanceState::Running),
        ("poweredOff", InstanceState::ShutDown),
        ("suspended", InstanceState::ShutDown),
        ("", InstanceState::Unknown),
    ] {
        let mut vm = machine("node-1");
        state.clone_into(&mut vm.power_state);
        assert_eq!(rules().instance(&vm).state, expected, "{state}");
    }
}

#[test]
fn a_machine_that_lacks_something_holds_its_node_back_with_the_reason() {
    let mut nameless = machine("");
    nameless.host_name = None;
    let mut without_address = machine("node-1");
    without_address.details.as_mut().unwrap().nics.clear();
    let mut without_zone = machine("node-1");
    without_zone.details.as_mut().unwrap().zone = Err("no tags".to_owned());
    let mut unreadable = machine("node-1");
    unreadable.details.as_mut().unwrap().guest_info = BTreeMap::from([
        ("guestinfo.metadata".to_owned(), "%".to_owned()),
        (
            "guestinfo.metadata.encoding".to_owned(),
            "base64".to_owned(),
        ),
    ]);
    for (case, vm, expected) in [
        ("no host name", nameless, "VMware Tools"),
        ("no address", without_address, "no network interface"),
        ("no zone", without_zone, "no tags"),
        ("metadata", unreadable, "guestinfo.metadata"),
    ] {
        let shown = rules().instance(&vm);
        let why = shown.not_ready.unwrap();
        assert!(why.contains(expected), "{case}: {why}");
        assert_eq!(shown.state, InstanceState::Running, "{case}: it exists");
    }
}

#[test]
fn templates_and_machines_with_one_uuid_are_no_nodes() {
    let other = |reference: &str, uuid: &str, is_template| Vm {
        reference: ObjectRef::new("VirtualMachine", reference),
        uuid: VmUuid::parse(uuid).unwrap(),
        is_template,
        ..machine("node-1")
    };
    let third = "00000000-0000-0000-0000-000000000003";
    let left = |machines: Vec<Vm>| {
        let left = without_namesakes(machines).into_iter();
        left.map(|vm| vm.reference.id).collect::<Vec<_>>()
    };
    let one = || other("vm-1", UUID, false);
    assert_eq!(left(vec![one(), other("vm-2", UUID, true)]), ["vm-1"]);
    let clones = vec![
        one(),
        other("vm-2", SWAPPED, false),
        other("vm-3", third, false),
    ];
    assert_eq!(left(clones), ["vm-3"]);
}

fn list(machines: &[Vm]) -> InstanceList {
    let instances = machines.iter().map(|vm| rules().instance(vm));
    InstanceList::complete(ScopeFingerprint::new("s"), Timestamp::UNIX_EPOCH, instances)
}

#[tokio::test]
async fn a_node_is_identified_by_either_byte_order_or_by_its_name() {
    let list = list(&[machine("node-1")]);
    let context = ProviderContext::detached("x");
    let config = crate::config::tests::two_vcenters();
    let apis: Vec<_> = config
        .vcenters
        .iter()
        .map(|vcenter| Arc::new(Api::new(vcenter, &context, &crate::Wiring::default()).unwrap()))
        .collect();
    let instances = instances(&config, &apis, &ScopeFingerprint::new("s"), &context);
    let node = |name: &str, id: Option<&str>, uuid: Option<&str>| NodeFacts {
        name: name.to_owned(),
        provider_id: id.map(|id| format!("vsphere://{id}").parse().unwrap()),
        system_uuid: uuid.map(str::to_owned),
        ..NodeFacts::default()
    };
    let upper = UUID.to_uppercase();
    for (case, node, is_found) in [
        ("by ID", node("x", Some(UUID), None), true),
        ("by the other order", node("x", Some(SWAPPED), None), true),
        ("in upper case", node("x", Some(&upper), None), true),
        ("by system UUID", node("x", None, Some(UUID)), true),
        ("by the guest's order", node("x", None, Some(SWAPPED)), true),
        ("by name", node("node-1", None, Some("7")), true),
        ("by nothing", node("node-2", None, None), false),
        (
            "an ID that is not there, whatever the name",
            node(
                "node-1",
                Some("00000000-0000-0000-0000-000000000001"),
                Some(UUID),
            ),
            false,
        ),
    ] {
        use cloudkeel_api::Instances as _;
        let found = instances.identify(&node, &list);
        assert_eq!(
            matches!(found, Match::One(_)),
            is_found,
            "{case}: {found:?}"
        );
    }
}
