//! "Did you mean …?"

/// The candidate that was probably meant, if one is near enough.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&given, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// Below this, a guess confuses more than it helps.
const LIKE_ENOUGH: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_their_word_and_nonsense_finds_none() {
        let known = ["hcloud", "openstack", "vsphere", "aws"];
        for (given, expected) in [
            ("hclod", Some("hcloud")),
            ("HCLOUD", Some("hcloud")),
            ("openstak", Some("openstack")),
            ("vpshere", Some("vsphere")),
            ("qqq", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), expected, "{given}");
        }
    }
}
