//! Short texts: identifiers, selectors, durations, headers, addresses of clouds.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use cloudkeel_api::{LabelSelector, ProviderId, format_go_duration, parse_go_duration};
use cloudkeel_controllers::{ControllerSelection, check_webhooks};
use cloudkeel_http::{BaseUrl, ProxySettings, Redactor, budget, retry_after};
use cloudkeel_provider_hetzner::HetznerId;
use cloudkeel_provider_local::LocalId;
use cloudkeel_provider_vsphere::VmUuid;
use jiff::Timestamp;
use serde_json::json;

use super::message::Message;
use super::{bytes, just, no_words, owned, text};
use crate::target::{Check, Target};

pub(super) const TARGETS: &[Target] = &[
    Target::new(
        "label-selector",
        "label selectors of configuration and annotations",
        || {
            bytes(&[
                "pool=web,!gpu,zone in (a,b)",
                "a notin (b),c",
                "x!=y",
                "a==b",
                "",
            ])
        },
        || owned(&[" in ", " notin ", "(", ")", "!=", "==", "!"]),
        || Box::new(reads_what_it_prints::<LabelSelector>),
    ),
    Target::new(
        "provider-id",
        "provider IDs of Nodes, of every cloud",
        || {
            bytes(&[
                "hcloud://123",
                "hrobot://7",
                "local://demo/9",
                "hcloud://bm-7",
                "vsphere://56492e42-22ad-3911-6d72-59cc8f26bc90",
            ])
        },
        || {
            owned(&[
                "hcloud://",
                "hrobot://",
                "hcloud://bm-",
                "local://",
                "vsphere://",
                "://",
                "/",
            ])
        },
        || Box::new(read_provider_id),
    ),
    Target::new(
        "duration",
        "durations in the form of Go",
        || {
            bytes(&[
                "1h30m",
                "1.5s",
                "100ms",
                "2562047h47m16.854775807s",
                "0",
                "-1s",
            ])
        },
        || owned(&["ns", "us", "µs", "ms", "s", "m", "h"]),
        || Box::new(read_duration),
    ),
    Target::new(
        "controllers",
        "lists of controllers and webhooks",
        || bytes(&["*,-node-route-controller", "cloud-node,service", "-*", "*"]),
        || owned(&["*", "-", "service-lb-controller", "node-ipam-controller"]),
        || just(read_controllers),
    ),
    Target::new(
        "limit-headers",
        "rate-limit and Retry-After headers",
        || {
            bytes(&[
                "x\nRetry-After: 120\n",
                "x\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\n",
                "x\nRateLimit-Limit: 3600\nRateLimit-Remaining: 0\nRateLimit-Reset: 1767225700\n",
                "x\nX-RateLimit-Limit: 10, 10;w=1\nX-RateLimit-Remaining: 3\nX-RateLimit-Reset: 5\n",
                "x\nRateLimit: limit=100, remaining=50, reset=5\n",
            ])
        },
        || {
            owned(&[
                "RateLimit",
                "Retry-After: ",
                "Reset: ",
                "limit=",
                "remaining=",
            ])
        },
        || just(read_headers),
    ),
    Target::new(
        "addresses-of-clouds",
        "base URLs and proxy variables",
        || {
            bytes(&[
                "https://api.hetzner.cloud/v1",
                "http://[::1]:80/a?b",
                "http://user:pw@proxy:3128",
                ".example.com,10.0.0.0/8,[::1]:443,*",
            ])
        },
        || owned(&["http://", "https://", "socks5://", "@", "[::1]"]),
        || Box::new(read_addresses),
    ),
    Target::new(
        "redaction",
        "texts that are about to be logged",
        || {
            bytes(&[
                r#"{"a": "b", "token": 1}"#,
                "a=b&token=c",
                "https://u:p@h/?sig=x",
                "\\\"",
            ])
        },
        || {
            owned(&[
                "password",
                "token",
                "secret",
                "Authorization: Bearer ",
                "\"",
                "=",
                "&",
            ])
        },
        || Box::new(hide),
    ),
    Target::new(
        "netlink",
        "answers of the kernel about routes",
        netlink_examples,
        no_words,
        || Box::new(read_netlink),
    ),
];

/// What was understood and printed is understood in the same way.
fn reads_what_it_prints<T>(input: &[u8]) -> Check
where
    T: FromStr<Err: Debug> + Display + PartialEq + Debug,
{
    let Ok(read) = text(input).parse::<T>() else {
        return Ok(());
    };
    let printed = read.to_string();
    match printed.parse::<T>() {
        Ok(again) if again == read => Ok(()),
        other => Err(format!("print: {read:?} prints {printed:?}: {other:?}")),
    }
}

fn read_provider_id(input: &[u8]) -> Check {
    reads_what_it_prints::<ProviderId>(input)?;
    reads_what_it_prints::<HetznerId>(input)?;
    reads_what_it_prints::<LocalId>(input)?;
    let Ok(id) = text(input).parse::<ProviderId>() else {
        return Ok(());
    };
    let (hetzner, local) = (HetznerId::read(&id).ok(), LocalId::read(&id).ok());
    let vsphere = VmUuid::read(&id).ok();
    let clouds = [hetzner.is_some(), local.is_some(), vsphere.is_some()];
    if clouds.iter().filter(|is_its| **is_its).count() > 1 {
        return Err(format!("two clouds: {id}"));
    }
    if let Some(uuid) = vsphere
        && VmUuid::read(&uuid.provider_id()).ok() != Some(uuid.swapped())
    {
        return Err(format!("spelling: {id} became {uuid}"));
    }
    let again = hetzner.map(HetznerId::provider_id);
    let again = again.or(local.map(|id| id.provider_id()));
    match again {
        Some(again) if HetznerId::read(&again).ok() != hetzner => {
            Err(format!("spelling: {id} became {again}"))
        }
        _ => Ok(()),
    }
}

fn read_duration(input: &[u8]) -> Check {
    let Some(read) = parse_go_duration(&text(input)) else {
        return Ok(());
    };
    let printed = format_go_duration(read);
    if parse_go_duration(&printed) == Some(read) {
        return Ok(());
    }
    Err(format!("print: {read:?} prints {printed:?}"))
}

fn read_controllers(input: &[u8]) {
    let items: Vec<String> = text(input).split(',').map(str::to_owned).collect();
    let selection = ControllerSelection::new(&items, &["own-controller"]);
    if let Err(errors) = &selection {
        for error in errors {
            let _ = error.to_string();
        }
    }
    let _ = check_webhooks(&items, &["own-webhook"]);
}

fn read_headers(input: &[u8]) {
    let headers = Message::read(input).headers;
    let received = Timestamp::from_second(1_767_225_600).unwrap_or_default();
    let _ = format!("{:?}", budget(&headers, received));
    let _ = retry_after(&headers, received);
    let _ = Redactor::default().headers(&headers);
}

fn read_addresses(input: &[u8]) -> Check {
    let text = text(input);
    if let Ok(url) = BaseUrl::parse(&text) {
        let printed = url.to_string();
        if BaseUrl::parse(&printed).is_err() {
            return Err(format!("print: {text:?} became {printed:?}"));
        }
    }
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
        let _ = ProxySettings::from_variables(|asked| (asked == name).then(|| text.to_string()));
    }
    Ok(())
}

/// Whatever stands around it, the value of a secret field is not shown.
fn hide(input: &[u8]) -> Check {
    const HIDDEN: &str = "hunter2";
    let (redactor, given) = (Redactor::with_fields(["pet"]), text(input));
    let _ = redactor.url(&given);
    if given.contains(HIDDEN) {
        return Ok(());
    }
    let document = json!({"a": &*given, "pet": format!("{given}{HIDDEN}"), "b": &*given});
    let shown = [
        redactor.json(&document).to_string(),
        redactor.text(&document.to_string()),
    ];
    match shown.into_iter().find(|shown| shown.contains(HIDDEN)) {
        Some(shown) => Err(format!("a secret is shown: {shown}")),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn netlink_examples() -> Vec<Vec<u8>> {
    let routes = [("10.244.1.0/24", "192.168.1.7"), ("fd00:1::/64", "fd00::7")];
    let write = |(to, via): (&str, &str)| {
        let (to, via) = (to.parse().ok()?, via.parse().ok()?);
        Some(cloudkeel_local_cloud::write_netlink(to, via))
    };
    routes.into_iter().filter_map(write).collect()
}

#[cfg(target_os = "linux")]
fn read_netlink(input: &[u8]) -> Check {
    let (routes, errors) = cloudkeel_local_cloud::read_netlink(input);
    // The shortest message has sixteen bytes.
    if (routes.len() + errors.len()) > input.len() / 8 {
        return Err(format!("more than was sent: {routes:?} {errors:?}"));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn netlink_examples() -> Vec<Vec<u8>> {
    bytes(&["elsewhere there is no netlink"])
}

#[cfg(not(target_os = "linux"))]
fn read_netlink(_input: &[u8]) -> Check {
    Ok(())
}
