//! The instance type: CPUs, memory and the guest's operating system, in the words of the Go CCM.

use crate::wire::VmDetails;

/// The instance type of a machine, for its Node's label.
pub(crate) fn instance_type(details: &VmDetails) -> String {
    let (cpus, memory) = (details.cpus, details.memory_mb / 1024);
    let os = guest_os(&details.guest_id);
    format!("vsphere-vm.cpu-{cpus}.mem-{memory}gb.os-{os}")
}

/// The identifiers that the Go CCM knows, without `Guest`. What follows `=` is how it calls them, where that is not
/// the identifier without `64` or `_64`.
const KNOWN: &str = "\
    asianux3 asianux3_64 asianux4 asianux4_64 asianux5_64 asianux7_64 \
    centos centos64=centos64 centos6 centos6_64 centos7 centos7_64 coreos64 \
    darwin darwin64 darwin10=darwin darwin10_64=darwin darwin11=darwin darwin11_64=darwin darwin12_64=darwin \
    darwin13_64=darwin darwin14_64=darwin darwin15_64=darwin darwin16_64=darwin \
    debian4 debian4_64 debian5 debian5_64 debian6 debian6_64 debian7 debian7_64 debian8 debian8_64 debian9 \
    debian9_64 debian10 debian10_64 dos eComStation eComStation2 fedora fedora64 freebsd freebsd64 \
    genericLinux=linux mandrake mandriva mandriva64 netware4 netware5 netware6 nld9 oes openServer5 openServer6 \
    opensuse opensuse64 oracleLinux oracleLinux64 oracleLinux6 oracleLinux6_64 oracleLinux7 oracleLinux7_64 os2 \
    other otherLinux=linux otherLinux64=linux other24xLinux=linux other24xLinux64=linux other26xLinux=linux \
    other26xLinux64=linux other3xLinux=linux other3xLinux64=linux redhat=rhel \
    rhel2 rhel3 rhel3_64 rhel4 rhel4_64 rhel5 rhel5_64 rhel6 rhel6_64 rhel7 rhel7_64 rhel8_64 rhel9_64 rhel10_64 \
    sjds sles sles64=sles64 sles10 sles10_64 sles11 sles11_64 sles12 sles12_64 \
    solaris6 solaris7 solaris8 solaris9 solaris10 solaris10_64 solaris11_64 suse suse64 \
    turboLinux=turbolinux turboLinux64=turbolinux ubuntu ubuntu64 unixWare7=unixware7 \
    vmkernel vmkernel5 vmkernel6 vmkernel65 vmwarePhoton64=photon win31 win95 win98 winMe=winme winNT=winnt \
    win2000AdvServ=win2000advserv win2000Pro=win2000pro win2000Serv=win2000serv \
    winLonghorn=winlonghorn winLonghorn64=winlonghorn winNetBusiness=winnetbusiness \
    winNetDatacenter=winnetdatacenter winNetDatacenter64=winnetdatacenter \
    winNetEnterprise=winnetenterprise winNetEnterprise64=winnetenterprise \
    winNetStandard=winnetstandard winNetStandard64=winnetstandard winNetWeb=winnetweb \
    winVista=winvista winVista64=winvista winXPHome=winxphome winXPPro=winxppro winXPPro64=winxppro \
    windows7=win7 windows7_64=win7 windows7Server64=win7server windows8=win8 windows8_64=win8 \
    windows8Server64=win8server windows9=win10 windows9_64=win10 windows9Server64=win10server \
    windowsHyperV=winhyperv";

/// How the Go CCM calls a guest's operating system; what it does not know is `unknown`.
fn guest_os(guest_id: &str) -> &str {
    // The one identifier whose suffix comes last.
    if guest_id == "otherGuest64" {
        return "other";
    }
    let Some(stem) = guest_id.strip_suffix("Guest") else {
        return "unknown";
    };
    let mut known = KNOWN.split_whitespace();
    let found = known.find_map(|entry| match entry.split_once('=') {
        Some((id, called)) => (id == stem).then_some(called),
        None => (entry == stem).then(|| {
            let short = stem.strip_suffix("64").unwrap_or(stem);
            short.strip_suffix('_').unwrap_or(short)
        }),
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
        let ids = KNOWN.split_whitespace();
        let mut ids: Vec<_> = ids.map(|entry| entry.split('=').next()).collect();
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
