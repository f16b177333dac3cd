//! Machines from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use cloudkeel_provider_local::wire::{AddressScope, MachineAddress, NewMachine};
use serde::Deserialize;

/// Why the file is of no use.
#[derive(Debug, thiserror::Error)]
#[error("--machines: {path:?}: {why}")]
pub struct MachinesFileError {
    path: PathBuf,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachinesFile {
    machines: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    addresses: Vec<Address>,
    #[serde(rename = "type")]
    kind: Option<String>,
    zone: Option<String>,
    uuid: Option<String>,
    hostname: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// An address alone is private.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Address {
    Plain(IpAddr),
    Scoped { ip: IpAddr, scope: AddressScope },
}

/// The machines of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<NewMachine>, MachinesFileError> {
    let wrong = |why: String| MachinesFileError {
        path: path.to_owned(),
        why,
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong(format!("expected a readable file: {error}")))?;
    parse(&text).map_err(wrong)
}

fn parse(text: &str) -> Result<Vec<NewMachine>, String> {
    let file: MachinesFile = serde_saphyr::from_str(text)
        .map_err(|error| format!("expected a list of `machines`: {error}"))?;
    let mut names = BTreeSet::new();
    for machine in &file.machines {
        if machine.name.is_empty() {
            return Err("a machine needs a name".to_owned());
        }
        if !names.insert(&machine.name) {
            return Err(format!("two machines are called {:?}", machine.name));
        }
    }
    Ok(file.machines.into_iter().map(NewMachine::from).collect())
}

impl From<Entry> for NewMachine {
    fn from(entry: Entry) -> Self {
        let addresses = entry.addresses.into_iter().map(|address| match address {
            Address::Plain(ip) => MachineAddress::private(ip),
            Address::Scoped { ip, scope } => MachineAddress { scope, ip },
        });
        Self {
            name: entry.name,
            kind: entry.kind,
            zone: entry.zone,
            uuid: entry.uuid,
            hostname: entry.hostname,
            addresses: Some(addresses.collect()),
            labels: entry.labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_as_much_as_it_wants() {
        let machines = parse(
            "machines:\n\
             - name: one\n  addresses: [10.0.0.1, {ip: 192.0.2.1, scope: public}]\n  type: big\n  zone: attic\n\
             - name: two\n",
        )
        .unwrap();
        let [one, two] = &*machines else {
            panic!("two machines: {machines:?}");
        };
        assert_eq!(one.kind.as_deref(), Some("big"));
        assert_eq!(one.zone.as_deref(), Some("attic"));
        let private = MachineAddress::private([10, 0, 0, 1].into());
        let public = MachineAddress::public([192, 0, 2, 1].into());
        assert_eq!(one.addresses, Some(vec![private, public]));
        assert_eq!(two.addresses, Some(vec![]));
    }

    #[test]
    fn what_makes_no_sense_is_reported() {
        for (case, text, expected) in [
            ("empty", "", "expected a list of `machines`"),
            (
                "unknown key",
                "machines: [{name: a, adresses: []}]",
                "adresses",
            ),
            (
                "twice",
                "machines: [{name: a}, {name: a}]",
                "two machines are called \"a\"",
            ),
            (
                "nameless",
                "machines: [{name: ''}]",
                "a machine needs a name",
            ),
            (
                "bad address",
                "machines: [{name: a, addresses: [x]}]",
                "machines",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{case}: {error}");
        }
    }
}
