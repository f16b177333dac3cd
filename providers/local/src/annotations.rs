//! The local cloud's own annotations. They win over the neutral ones.

use cloudkeel_api::{AnnotationKey, Documented, KeyDoc};

/// The prefix of all of them, and of machine labels that become Node labels.
pub const PREFIX: &str = "local.cloudkeel.dev/";

/// Service annotation: size of the balancer.
pub const TYPE: AnnotationKey<String> = AnnotationKey::new(
    "local.cloudkeel.dev/lb-type",
    "The size of the load balancer: `small`, `medium` or `large`. Left alone if not given.",
);

/// Service annotation: protection against deletion.
pub const PROTECTED: AnnotationKey<bool> = AnnotationKey::new(
    "local.cloudkeel.dev/lb-protected",
    "Whether the cloud refuses to delete the load balancer. Left alone if not given. A protected \
     one is released, not deleted, when its Service goes.",
);

/// Service annotation, written by the provider: the cloud's ID of the balancer.
pub const BALANCER_ID: AnnotationKey<String> = AnnotationKey::new(
    "local.cloudkeel.dev/lb-id",
    "Written by cloudkeel: the ID of the load balancer in the cloud.",
);

/// Every annotation, for the reference page and for finding typos.
pub(crate) fn docs() -> Vec<KeyDoc> {
    let keys: [&dyn Documented; 3] = [&TYPE, &PROTECTED, &BALANCER_ID];
    keys.into_iter().map(Documented::doc).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_annotations_stand_under_the_prefix_and_say_what_they_do() {
        for doc in docs() {
            assert!(doc.name.starts_with(PREFIX), "{}", doc.name);
            assert!(doc.help.ends_with('.'), "{}", doc.name);
        }
    }
}
