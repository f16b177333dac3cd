//! Tags that a Service asks for, beside those that say whose its balancer is.

use cloudkeel_api::KeyValue;

use super::Labels;

/// Tags by which clouds, Go CCMs and other tools recognise whose a resource is. Those with a slash at their end stand for all that
/// begin so.
const RESERVED: [&str; 3] = [
    "kubernetes.io/cluster/",
    "kubernetes.io/service-name",
    "KubernetesCluster",
];

/// Tags as `key=value,key2=,key3`. They cannot say whose a resource is.
///
/// ```
/// # use cloudkeel_api::KeyValue as _;
/// # use cloudkeel_toolkit::ExtraTags;
/// let tags = ExtraTags::parse("team=web, public").unwrap().0;
/// assert_eq!((tags["team"].as_str(), tags["public"].as_str()), ("web", ""));
/// assert!(ExtraTags::parse("kubernetes.io/cluster/x=owned").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtraTags(pub Labels);

impl KeyValue for ExtraTags {
    const TYPE: &'static str = "text";

    fn parse(text: &str) -> Result<Self, String> {
        let pairs = text.split(',').map(str::trim);
        let pairs = pairs.filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let tags = pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
        let tags: Labels = tags.collect();
        match tags.keys().find(|key| is_reserved(key)) {
            Some(key) => Err(format!(
                "tags other than {key:?}, which says whose the load balancer is"
            )),
            None => Ok(Self(tags)),
        }
    }
}

fn is_reserved(key: &str) -> bool {
    let is_it = |reserved: &&str| match reserved.strip_suffix('/') {
        Some(_) => key.starts_with(*reserved),
        None => key == *reserved,
    };
    RESERVED.iter().any(is_it)
}
