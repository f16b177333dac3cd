use super::*;

const INVENTORY: &str = "<Envelope><Body><R><returnval>\
    <objects><obj type='Folder'>group-d1</obj><propSet><name>name</name><val>Datacenters</val></propSet></objects>\
    <objects><obj type='Folder'>group-d2</obj><propSet><name>name</name><val>EU</val></propSet>\
    <propSet><name>parent</name><val type='Folder'>group-d1</val></propSet></objects>\
    <objects><obj type='Datacenter'>datacenter-3</obj><propSet><name>name</name><val>DC</val></propSet>\
    <propSet><name>parent</name><val type='Folder'>group-d2</val></propSet></objects>\
    <objects><obj type='Datacenter'>datacenter-4</obj><propSet><name>name</name><val>DC</val></propSet>\
    <propSet><name>parent</name><val type='Folder'>group-d1</val></propSet></objects>\
    </returnval></R></Body></Envelope>";

fn chosen(entries: &[&str]) -> Result<String, String> {
    let page = ObjectPage::read(&answer(INVENTORY.as_bytes()).unwrap()).unwrap();
    let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
    let root = ObjectRef::new("Folder", "group-d1");
    let chosen = choose_datacenters(&page.objects, &root, &entries)?;
    let chosen: Vec<_> = chosen.into_iter().map(|it| it.id).collect();
    Ok(chosen.join(" "))
}

#[test]
fn datacenters_are_chosen_by_name_path_or_reference() {
    for (entries, expected) in [
        (&[][..], "datacenter-3 datacenter-4"),
        (&["DC"], "datacenter-3 datacenter-4"),
        (&["/EU/DC"], "datacenter-3"),
        (&["EU/DC"], "datacenter-3"),
        (&["/DC"], "datacenter-4"),
        (&["Datacenter:datacenter-3"], "datacenter-3"),
        (&["/DC", "EU/DC", "DC"], "datacenter-3 datacenter-4"),
    ] {
        assert_eq!(chosen(entries).as_deref(), Ok(expected), "{entries:?}");
    }
    let error = chosen(&["/DC", "US"]).unwrap_err();
    assert_eq!(
        error,
        "datacenters: \"US\": expected a datacenter of this vCenter, which has /EU/DC, /DC"
    );
}

#[test]
fn a_call_is_written_as_vcenter_reads_it() {
    let content = ServiceContent {
        root_folder: ObjectRef::new("Folder", "group-d1"),
        property_collector: ObjectRef::new("PropertyCollector", "pc"),
        session_manager: ObjectRef::new("SessionManager", "sm"),
        search_index: ObjectRef::new("SearchIndex", "si"),
        instance_uuid: String::new(),
    };
    let login = requests::login(&content, "a&b", "<p>");
    assert_eq!(
        login.to_string(),
        "<Login xmlns=\"urn:vim25\"><_this type=\"SessionManager\">sm</_this><userName>a&amp;b</userName>\
         <password>&lt;p&gt;</password></Login>"
    );
    let uuid = VmUuid::parse("56492e42-22ad-3911-6d72-59cc8f26bc90").unwrap();
    let datacenter = ObjectRef::new("Datacenter", "datacenter-3");
    assert_eq!(
        requests::find_all_by_uuid(&content, Some(&datacenter), uuid).to_string(),
        "<FindAllByUuid xmlns=\"urn:vim25\"><_this type=\"SearchIndex\">si</_this>\
         <datacenter type=\"Datacenter\">datacenter-3</datacenter>\
         <uuid>56492e42-22ad-3911-6d72-59cc8f26bc90</uuid><vmSearch>true</vmSearch>\
         <instanceUuid>false</instanceUuid></FindAllByUuid>"
    );
    let selection = Selection {
        properties: vec![("Folder", vec!["name"])],
        objects: vec![&content.root_folder],
        traversal: vec![requests::down_to_datacenters()],
    };
    assert_eq!(
        requests::retrieve(&content, &selection, 7).to_string(),
        "<RetrievePropertiesEx xmlns=\"urn:vim25\"><_this type=\"PropertyCollector\">pc</_this><specSet><propSet>\
         <type>Folder</type><all>false</all><pathSet>name</pathSet></propSet><objectSet>\
         <obj type=\"Folder\">group-d1</obj><skip>false</skip><selectSet xsi:type=\"TraversalSpec\">\
         <name>folder</name><type>Folder</type><path>childEntity</path><skip>false</skip><selectSet>\
         <name>folder</name></selectSet></selectSet></objectSet>\
         <reportMissingObjectsInResults>true</reportMissingObjectsInResults></specSet>\
         <options><maxObjects>7</maxObjects></options></RetrievePropertiesEx>"
    );
}
