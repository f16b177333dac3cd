//! Source ranges.

use super::*;

#[test]
fn source_ranges_are_read_as_upstream_reads_them() {
    let by_field = |ranges: &[&str]| service(json!({"spec": {"loadBalancerSourceRanges": ranges}}));
    let by_annotation = |text| annotated(&[(SOURCE_RANGES_ANNOTATION, text)]);
    let mut both = by_field(&["10.0.0.0/8"]);
    both.annotations
        .insert(SOURCE_RANGES_ANNOTATION.to_owned(), "nonsense".to_owned());
    for (case, view, expected) in [
        ("none", by_field(&[]), &[][..]),
        (
            "field",
            by_field(&["10.0.0.0/8", "2001:db8::/32"]),
            &["10.0.0.0/8", "2001:db8::/32"],
        ),
        (
            "order is kept",
            by_field(&["11.0.0.0/8", "10.0.0.0/8"]),
            &["11.0.0.0/8", "10.0.0.0/8"],
        ),
        ("host bits go", by_field(&["10.1.2.3/8"]), &["10.0.0.0/8"]),
        (
            "doubles go",
            by_field(&["10.0.0.0/8", "10.9.9.9/8"]),
            &["10.0.0.0/8"],
        ),
        ("spaces go", by_field(&[" 10.0.0.0/8 "]), &["10.0.0.0/8"]),
        (
            "leading zeros",
            by_field(&["010.000.0.0/8"]),
            &["10.0.0.0/8"],
        ),
        ("everybody", by_field(&["0.0.0.0/0"]), &["0.0.0.0/0"]),
        ("single", by_field(&["255.0.0.0/32"]), &["255.0.0.0/32"]),
        (
            "annotation",
            by_annotation("10.0.0.0/8, 11.0.0.0/8"),
            &["10.0.0.0/8", "11.0.0.0/8"],
        ),
        ("blank annotation", by_annotation("  "), &[]),
        ("the field wins", both, &["10.0.0.0/8"]),
    ] {
        let found: Vec<_> = spec(&view)
            .source_ranges
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected, "{case}");
    }
    for text in [
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0.0/+8",
        "10.0.0.0/8,",
        "10.0.0.0/8,,11.0.0.0/8",
        "x/8",
        "::/129",
        "10.0.0/8",
    ] {
        let found = problems(&by_annotation(text));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(SOURCE_RANGES_ANNOTATION), "{found:?}");
    }
    assert_eq!(
        problems(&by_field(&["10.0.0.0/8", "x", "y"])),
        [
            "spec.loadBalancerSourceRanges: \"x\": expected a network such as `10.0.0.0/24`",
            "spec.loadBalancerSourceRanges: \"y\": expected a network such as `10.0.0.0/24`",
        ]
    );
}
