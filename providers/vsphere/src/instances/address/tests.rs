use super::*;

/// NICs by network: `net_a=10.0.0.1 fd00::1; net_b=…`.
fn nics(text: &str) -> Vec<GuestNic> {
    let nics = text.split(';').map(str::trim).filter(|nic| !nic.is_empty());
    let nic = |nic: &str| {
        let (network, addresses) = nic.split_once('=').unwrap();
        GuestNic {
            network: network.to_owned(),
            addresses: addresses.split_whitespace().map(str::to_owned).collect(),
        }
    };
    nics.map(nic).collect()
}

fn cidrs(text: &str) -> Vec<IpNet> {
    text.split_whitespace()
        .map(|it| it.parse().unwrap())
        .collect()
}

/// Settings as `internal-cidr=…, external-name=…`.
fn rules(families: &[IpFamily], settings: &str) -> AddressRules {
    let mut networks = NodeNetworks::default();
    for setting in settings
        .split(',')
        .map(str::trim)
        .filter(|it| !it.is_empty())
    {
        let (key, value) = setting.split_once('=').unwrap();
        match key {
            "internal-cidr" => networks.internal_cidrs = cidrs(value),
            "external-cidr" => networks.external_cidrs = cidrs(value),
            "internal-name" => networks.internal_name = Some(value.to_owned()),
            "external-name" => networks.external_name = Some(value.to_owned()),
            "not-internal" => networks.exclude_internal = cidrs(value),
            "not-external" => networks.exclude_external = cidrs(value),
            other => panic!("{other}"),
        }
    }
    AddressRules {
        families: families.to_vec(),
        networks,
    }
}

fn shown(found: Result<Vec<NodeAddress>, String>) -> String {
    match found {
        Ok(addresses) => {
            let shown = addresses.iter().map(|address| {
                let kind = match address.kind {
                    cloudkeel_api::AddressKind::InternalIp => "in",
                    _ => "ex",
                };
                format!("{kind} {}", address.address)
            });
            shown.collect::<Vec<_>>().join(", ")
        }
        Err(why) => format!("error: {why}"),
    }
}

const V4: &[IpFamily] = &[IpFamily::V4];
const V6: &[IpFamily] = &[IpFamily::V6];
const BOTH: &[IpFamily] = &[IpFamily::V6, IpFamily::V4];

const TWO: &str = "net_a=10.10.1.22; net_b=172.15.108.11";
const DUAL: &str = "net_a=10.10.1.22 fd01::1; net_b=172.15.108.11 fd02::1";

/// A case, the families, the settings, what the guest reports, and what is chosen.
type Case = (
    &'static str,
    &'static [IpFamily],
    &'static str,
    &'static str,
    &'static str,
);

const CASES: &[Case] = &[
    (
        "the first by default",
        V4,
        "",
        TWO,
        "in 10.10.1.22, ex 10.10.1.22",
    ),
    (
        "a NIC without addresses",
        V4,
        "",
        "a=; b=10.0.0.1",
        "in 10.0.0.1, ex 10.0.0.1",
    ),
    (
        "local and wrong ones are no candidates",
        V4,
        "",
        "a=blarg 127.0.0.6 169.254.0.1 0.0.0.0 224.0.0.1 10.10.1.22 10.10.1.23",
        "in 10.10.1.22, ex 10.10.1.22",
    ),
    (
        "the same in IPv6",
        V6,
        "",
        "a=::1 fe80::1 :: ff02::1 10.0.0.1 fd01::1",
        "in fd01::1, ex fd01::1",
    ),
    (
        "by network",
        V4,
        "internal-cidr=172.15.0.0/16, external-cidr=10.10.0.0/16",
        TWO,
        "in 172.15.108.11, ex 10.10.1.22",
    ),
    (
        "the first network that has one",
        V4,
        "internal-cidr=192.0.2.0/24 172.15.0.0/16 10.10.0.0/16, external-cidr=10.0.0.0/8",
        TWO,
        "in 172.15.108.11, ex 10.10.1.22",
    ),
    (
        "only one of them",
        V4,
        "internal-cidr=172.15.0.0/16",
        TWO,
        "in 172.15.108.11",
    ),
    (
        "only the other",
        V4,
        "external-cidr=172.15.0.0/16",
        TWO,
        "ex 172.15.108.11",
    ),
    (
        "no network has one",
        V4,
        "internal-cidr=192.0.2.0/24, external-cidr=198.51.100.0/24",
        TWO,
        "in 10.10.1.22, ex 10.10.1.22",
    ),
    (
        "by name, without regard to case",
        V4,
        "internal-name=NET_B, external-name=net_a",
        TWO,
        "in 172.15.108.11, ex 10.10.1.22",
    ),
    (
        "a network comes before a name",
        V4,
        "internal-name=net_b, internal-cidr=10.10.0.0/16, external-name=net_b",
        TWO,
        "in 10.10.1.22, ex 172.15.108.11",
    ),
    (
        "one name that is missing",
        V4,
        "internal-name=net_x, external-name=net_b",
        TWO,
        "ex 172.15.108.11",
    ),
    (
        "both names are missing",
        V4,
        "internal-name=net_x, external-name=net_y",
        TWO,
        "error: it is in neither of the networks \"net_x\" and \"net_y\", but in net_a, net_b",
    ),
    (
        "one missing name is no error",
        V4,
        "internal-name=net_x",
        TWO,
        "in 10.10.1.22, ex 10.10.1.22",
    ),
    (
        "excluded networks",
        V4,
        "not-internal=10.10.0.0/16",
        TWO,
        "in 172.15.108.11, ex 10.10.1.22",
    ),
    (
        "exclusion comes first",
        V4,
        "internal-cidr=10.0.0.0/8, not-internal=10.10.1.22/32, external-name=net_a",
        "net_a=10.10.1.22 10.10.1.23",
        "in 10.10.1.23, ex 10.10.1.22",
    ),
    (
        "everything is excluded",
        V4,
        "not-internal=0.0.0.0/0, not-external=0.0.0.0/0",
        "a=10.0.0.1",
        "error: no suitable IPv4 address among those that its guest reports: 10.0.0.1",
    ),
    (
        "another family",
        V6,
        "",
        TWO,
        "error: no suitable IPv6 address among those that its guest reports: 10.10.1.22, 172.15.108.11",
    ),
    (
        "two families in their order",
        BOTH,
        "",
        DUAL,
        "in fd01::1, ex fd01::1, in 10.10.1.22, ex 10.10.1.22",
    ),
    (
        "two families by network",
        BOTH,
        "internal-cidr=fd02::/64 172.15.0.0/16, external-cidr=fd01::/64 10.10.0.0/16",
        DUAL,
        "in fd02::1, ex fd01::1, in 172.15.108.11, ex 10.10.1.22",
    ),
    (
        "one of two families is missing",
        BOTH,
        "",
        TWO,
        "error: no suitable IPv6 address among those that its guest reports: 10.10.1.22, 172.15.108.11",
    ),
    (
        "no NIC",
        V4,
        "",
        "",
        "error: its guest reports no network interface",
    ),
    (
        "no address",
        V4,
        "",
        "a=",
        "error: no suitable IPv4 address among those that its guest reports: none",
    ),
];

#[test]
fn addresses_are_chosen_as_the_go_ccm_chooses_them() {
    for (case, families, settings, given, expected) in CASES {
        let found = rules(families, settings).choose(&nics(given), &[]);
        assert_eq!(shown(found), *expected, "{case}");
    }
}

#[test]
fn static_addresses_come_first_and_the_others_keep_their_order() {
    let given = nics("net_a=10.0.0.9 10.0.0.1 10.0.0.2");
    let preferred = ["10.0.0.2".parse().unwrap(), "10.0.0.7".parse().unwrap()];
    let found = rules(V4, "").choose(&given, &preferred);
    assert_eq!(shown(found), "in 10.0.0.2, ex 10.0.0.2");
    let excluded = rules(V4, "not-internal=10.0.0.2/32").choose(&given, &preferred);
    assert_eq!(shown(excluded), "in 10.0.0.9, ex 10.0.0.2");
}
