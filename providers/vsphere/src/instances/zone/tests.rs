use super::*;
use crate::client::tags::Tag;
use crate::instances::tests::machine;

/// Objects as `child<parent`, tags as `object:category=name`.
fn inventory(objects: &str, tags: &str) -> Inventory {
    let mut parents = BTreeMap::new();
    for object in objects.split_whitespace() {
        let (child, parent) = object.split_once('<').unwrap();
        parents.insert(child.to_owned(), ObjectRef::new("ManagedEntity", parent));
    }
    let mut attached = AttachedTags::new();
    for tag in tags.split_whitespace() {
        let (object, tag) = tag.split_once(':').unwrap();
        let (category, name) = tag.split_once('=').unwrap();
        attached.entry(object.to_owned()).or_default().push(Tag {
            category: category.to_owned(),
            name: name.to_owned(),
        });
    }
    Inventory {
        parents,
        tags: attached,
    }
}

const TREE: &str = "host<cluster cluster<hosts hosts<dc dc<root pool<cluster vm<vms vms<dc";

fn found(tags: &str) -> Result<String, String> {
    let mut vm = machine("node-1");
    vm.reference = ObjectRef::new("VirtualMachine", "vm");
    let details = vm.details.as_mut().unwrap();
    details.host = Some(ObjectRef::new("HostSystem", "host"));
    details.pool = Some(ObjectRef::new("ResourcePool", "pool"));
    let categories = ZoneCategories {
        zone: "z".to_owned(),
        region: "r".to_owned(),
    };
    let zone = inventory(TREE, tags).zone_of(&vm, &categories)?;
    Ok(format!("{} {}", zone.zone.unwrap(), zone.region.unwrap()))
}

#[test]
fn tags_are_found_on_the_way_up_from_host_pool_or_machine() {
    for (case, tags, expected) in [
        ("both on the host", "host:z=a host:r=b", "a b"),
        ("cluster and datacenter", "cluster:z=a dc:r=b", "a b"),
        ("both on the root", "root:z=a root:r=b", "a b"),
        ("other categories", "host:x=y host:z=a dc:r=b", "a b"),
        ("the pool", "pool:z=a pool:r=b", "a b"),
        ("the machine", "vm:z=a vms:r=b", "a b"),
        (
            "the host comes first",
            "vm:z=x vm:r=y host:z=a dc:r=b",
            "a b",
        ),
        (
            "a higher tag replaces a lower one",
            "host:z=x cluster:z=a cluster:r=b",
            "a b",
        ),
        (
            "but not once both are found",
            "host:z=a host:r=b dc:z=x dc:r=y",
            "a b",
        ),
        (
            "one walk has both",
            "pool:z=a host:r=y dc:r=b vm:z=x",
            "a b",
        ),
    ] {
        assert_eq!(found(tags).as_deref(), Ok(expected), "{case}");
    }
}

#[test]
fn one_tag_alone_is_none() {
    for tags in ["", "host:z=a", "dc:r=b", "host:z=a vms:x=b"] {
        let why = found(tags).unwrap_err();
        assert!(
            why.contains("no tags of the categories \"z\" and \"r\""),
            "{why}"
        );
    }
}

#[test]
fn an_inventory_that_runs_in_circles_ends() {
    let inventory = inventory("a<b b<a", "");
    let categories = ZoneCategories {
        zone: "z".to_owned(),
        region: "r".to_owned(),
    };
    let found = inventory.climb(&ObjectRef::new("Folder", "a"), &categories);
    assert_eq!(found, Zone::default());
}
