//! The instance type: CPUs, memory and the guest's operating system, in the words of the Go CCM.

use crate::wire::VmDetails;

/// The instance type of a machine, for its Node's label.
pub(crate) fn instance_type(details: &VmDetails) -> String {
    let (cpus, memory) = (details.cpus, details.memory_mb / 1024);
    let os = guest_os(&details.guest_id);
    format!("vsphere-vm.cpu-{cpus}.mem-{memory}gb.os-{os}")
}

/// The names that the Go CCM knows, without `Guest` and, before it, `64` or `_64`: each with how it is called, and
/// with the suffixes that it comes with.
const KNOWN: &[(&[&str], &str, &[Suffix])] = {
    use Suffix::{Plain, S64, U64};
    const BOTH: &[Suffix] = &[Plain, S64];
    const BOTH_U: &[Suffix] = &[Plain, U64];
    &[
        (&["asianux3", "asianux4"], "", BOTH_U),
        (&["asianux5", "asianux7"], "", &[U64]),
        (&["centos"], "", &[Plain]),
        (&["centos"], "centos64", &[S64]),
        (&["centos6", "centos7"], "", BOTH_U),
        (&["coreos"], "", &[S64]),
        (&["darwin"], "", BOTH),
        (&["darwin10", "darwin11"], "darwin", BOTH_U),
        (
            &["darwin12", "darwin13", "darwin14", "darwin15", "darwin16"],
            "darwin",
            &[U64],
        ),
        (
            &[
                "debian4",
                "debian5",
                "debian6",
                "debian7",
                "debian8",
                "debian9",
                "debian10",
                "oracleLinux6",
                "oracleLinux7",
                "rhel3",
                "rhel4",
                "rhel5",
                "rhel6",
                "rhel7",
                "sles10",
                "sles11",
                "sles12",
                "solaris10",
            ],
            "",
            BOTH_U,
        ),
        (&["rhel8", "rhel9", "rhel10", "solaris11"], "", &[U64]),
        (
            &[
                "dos",
                "eComStation",
                "eComStation2",
                "mandrake",
                "netware4",
                "netware5",
                "netware6",
                "nld9",
                "oes",
                "openServer5",
                "openServer6",
                "os2",
                "rhel2",
                "sjds",
                "sles",
                "solaris6",
                "solaris7",
                "solaris8",
                "solaris9",
                "vmkernel",
                "vmkernel5",
                "vmkernel6",
                "vmkernel65",
            ],
            "",
            &[Plain],
        ),
        (
            &[
                "fedora",
                "freebsd",
                "mandriva",
                "opensuse",
                "suse",
                "ubuntu",
                "oracleLinux",
            ],
            "",
            BOTH,
        ),
        (&["turboLinux"], "turbolinux", BOTH),
        (&["sles"], "sles64", &[S64]),
        (&["other"], "", &[Plain]),
        (
            &[
                "otherLinux",
                "other24xLinux",
                "other26xLinux",
                "other3xLinux",
            ],
            "linux",
            BOTH,
        ),
        (&["genericLinux"], "linux", &[Plain]),
        (&["redhat"], "rhel", &[Plain]),
        (&["unixWare7"], "unixware7", &[Plain]),
        (&["vmwarePhoton"], "photon", &[S64]),
        (&["win31"], "", &[Plain]),
        (&["win95", "win98"], "", &[Plain]),
        (&["winMe"], "winme", &[Plain]),
        (&["winNT"], "winnt", &[Plain]),
        (&["win2000AdvServ"], "win2000advserv", &[Plain]),
        (&["win2000Pro"], "win2000pro", &[Plain]),
        (&["win2000Serv"], "win2000serv", &[Plain]),
        (&["winLonghorn"], "winlonghorn", BOTH),
        (&["winNetBusiness"], "winnetbusiness", &[Plain]),
        (&["winNetDatacenter"], "winnetdatacenter", BOTH),
        (&["winNetEnterprise"], "winnetenterprise", BOTH),
        (&["winNetStandard"], "winnetstandard", BOTH),
        (&["winNetWeb"], "winnetweb", &[Plain]),
        (&["winVista"], "winvista", BOTH),
        (&["winXPHome"], "winxphome", &[Plain]),
        (&["winXPPro"], "winxppro", BOTH),
        (&["windows7"], "win7", BOTH_U),
        (&["windows8"], "win8", BOTH_U),
        (&["windows9"], "win10", BOTH_U),
        (&["windows7Server"], "win7server", &[U64]),
        (&["windows8Server"], "win8server", &[U64]),
        (&["windows9Server"], "win10server", &[U64]),
        (&["windowsHyperV"], "winhyperv", &[Plain]),
    ]
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
    Plain,
    S64,
    U64,
}

/// How the Go CCM calls a guest's operating system; what it does not know is `unknown`.
fn guest_os(guest_id: &str) -> &str {
    // The one name whose suffix comes last.
    if guest_id == "otherGuest64" {
        return "other";
    }
    let Some(stem) = guest_id.strip_suffix("Guest") else {
        return "unknown";
    };
    let known = |stem: &str, suffix: Suffix| {
        let mut rows = KNOWN.iter();
        let row =
            rows.find(|(names, _, suffixes)| names.contains(&stem) && suffixes.contains(&suffix));
        row.map(|(_, called, _)| *called)
    };
    let forms = [
        (Some(stem), Suffix::Plain),
        (stem.strip_suffix("_64"), Suffix::U64),
        // `windows7Server64` has no underscore, and means the same.
        (stem.strip_suffix("64"), Suffix::S64),
        (
            stem.strip_suffix("64").filter(|it| it.ends_with("Server")),
            Suffix::U64,
        ),
    ];
    let mut forms = forms.into_iter();
    let found = forms.find_map(|(stem, suffix)| {
        let stem = stem?;
        let called = known(stem, suffix)?;
        Some(if called.is_empty() { stem } else { called })
    });
    found.unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_called_as_the_go_ccm_calls_them() {
        for (id, expected) in [
            ("ubuntu64Guest", "ubuntu"),
            ("ubuntuGuest", "ubuntu"),
            ("debian10_64Guest", "debian10"),
            ("debian11_64Guest", "unknown"),
            ("centos64Guest", "centos64"),
            ("centos7_64Guest", "centos7"),
            ("centos8_64Guest", "unknown"),
            ("rhel7_64Guest", "rhel7"),
            ("rhel9_64Guest", "rhel9"),
            ("rhel9Guest", "unknown"),
            ("redhatGuest", "rhel"),
            ("sles64Guest", "sles64"),
            ("sles12_64Guest", "sles12"),
            ("darwin16_64Guest", "darwin"),
            ("otherLinux64Guest", "linux"),
            ("other3xLinux64Guest", "linux"),
            ("other4xLinux64Guest", "unknown"),
            ("genericLinuxGuest", "linux"),
            ("otherGuest", "other"),
            ("otherGuest64", "other"),
            ("vmwarePhoton64Guest", "photon"),
            ("windows9_64Guest", "win10"),
            ("windows9Server64Guest", "win10server"),
            ("windows8Server64Guest", "win8server"),
            ("windows2019srv_64Guest", "unknown"),
            ("winNetEnterprise64Guest", "winnetenterprise"),
            ("oracleLinux7_64Guest", "oracleLinux7"),
            ("solaris11_64Guest", "solaris11"),
            ("eComStation2Guest", "eComStation2"),
            ("turboLinux64Guest", "turbolinux"),
            ("", "unknown"),
            ("Guest", "unknown"),
        ] {
            assert_eq!(guest_os(id), expected, "{id}");
        }
    }

    #[test]
    fn all_names_of_the_go_ccm_are_known_once() {
        let mut ids: Vec<String> = Vec::new();
        for (names, _, suffixes) in KNOWN {
            for name in *names {
                for suffix in *suffixes {
                    ids.push(format!("{name} {suffix:?}"));
                }
            }
        }
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
        // And `otherGuest64`.
        assert_eq!(count + 1, 151);
    }

    #[test]
    fn memory_is_in_whole_gigabytes() {
        let details = VmDetails {
            cpus: 4,
            memory_mb: 8191,
            guest_id: "ubuntu64Guest".to_owned(),
            ..crate::instances::tests::details()
        };
        assert_eq!(
            instance_type(&details),
            "vsphere-vm.cpu-4.mem-7gb.os-ubuntu"
        );
    }
}
