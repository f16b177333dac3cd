//! What a Service's status says.

use cloudkeel_api::{Ingress, IpMode};

use super::super::certificate::Certificates;
use super::*;

type Row = (
    &'static str,
    &'static [(&'static str, &'static str)],
    bool,
    &'static [&'static str],
);

#[test]
fn addresses_are_shown_in_order_and_as_asked_for() {
    const TABLE: &[Row] = &[
        (
            "usual",
            &[],
            true,
            &["192.0.2.1", "2001:db8::1", "10.0.0.100"],
        ),
        (
            "no IPv6",
            &[("ipv6-disabled", "true")],
            true,
            &["192.0.2.1", "10.0.0.100"],
        ),
        (
            "no private ones",
            &[("disable-private-ingress", "true")],
            true,
            &["192.0.2.1", "2001:db8::1"],
        ),
        ("no public side", &[], false, &["10.0.0.100"]),
        (
            "nothing at all",
            &[("disable-private-ingress", "true")],
            false,
            &[],
        ),
        (
            "hostname",
            &[("hostname", "x.example")],
            true,
            &["x.example"],
        ),
    ];
    for (case, pairs, public, expected) in TABLE {
        let mut desired = spec(&[80], &[]);
        annotate(&mut desired, pairs);
        let mut have = attached(balancer());
        have.public_net.enabled = *public;
        let report = report(DesiredState::Present(&desired), &ours(have), &in_network());
        let shown = report.status.ingress.iter().map(|ingress| match ingress {
            Ingress::Ip { ip, mode } => {
                assert_eq!(*mode, IpMode::Vip, "{case}");
                ip.to_string()
            }
            Ingress::Hostname(name) => name.clone(),
        });
        assert_eq!(shown.collect::<Vec<_>>(), *expected, "{case}");
        assert_eq!(report.status.id.as_deref(), Some("42"), "{case}");
        assert_eq!(report.busy, None, "{case}");
        assert!(
            report.changes.annotations.is_empty(),
            "{case}: nothing is written"
        );
    }
}

#[test]
fn proxy_protocol_shows_in_the_mode_of_addresses() {
    let mode = |annotation: Option<&str>, default| {
        let mut desired = spec(&[80], &[]);
        annotate(
            &mut desired,
            &annotation.map_or(vec![], |on| vec![("uses-proxyprotocol", on)]),
        );
        let mut facts = facts();
        facts.defaults.uses_proxy_protocol = default;
        let report = report(DesiredState::Present(&desired), &ours(balancer()), &facts);
        match report.status.ingress[0] {
            Ingress::Ip { mode, .. } => mode,
            Ingress::Hostname(_) => panic!("an address"),
        }
    };
    assert_eq!(mode(None, None), IpMode::Vip);
    assert_eq!(mode(None, Some(true)), IpMode::Proxy);
    assert_eq!(mode(Some("true"), None), IpMode::Proxy);
    assert_eq!(mode(Some("false"), Some(true)), IpMode::Vip);
}

#[test]
fn a_balancer_without_its_address_is_being_built() {
    let mut have = balancer();
    have.public_net.ipv4.ip = None;
    let report = report(
        DesiredState::Present(&spec(&[80], &[])),
        &ours(have),
        &facts(),
    );
    assert!(report.busy.unwrap().why.contains("being built"));
}

#[test]
fn a_certificate_is_waited_for_only_when_all_else_is_done() {
    let mut desired = spec(&[443], &[1]);
    annotate(
        &mut desired,
        &[
            ("protocol", "https"),
            ("certificate-type", "managed"),
            ("http-managed-certificate-domains", "a.example"),
        ],
    );
    let mut have = ours(balancer());
    have.certificates = Certificates::Pending("n".into());
    let busy = |have: &Observed| report(DesiredState::Present(&desired), have, &facts()).busy;
    assert_eq!(busy(&have), None, "there is a target to add");
    have.found.ours[0].targets = vec![server_target(1, false)];
    assert!(busy(&have).unwrap().why.contains("certificate n"));
}
