//! What becomes of a balancer that is taken over.

use super::*;
use crate::load_balancer::SERVICE_UID;

#[test]
fn adopting_labels_first_and_keeps_other_labels() {
    let mut want = spec(&[80, 443], &[1]);
    want.balancer_ref.adopt = Some("7".into());
    let foreign = Balancer {
        name: "by-hand".into(),
        labels: BTreeMap::from([("team".into(), "a".into())]),
        ..built(&spec(&[80], &[1]))
    };
    let have = Observed {
        found: Classified::adoptable(foreign.clone()),
        ..Observed::default()
    };
    let steps = steps(&want, &have);
    let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "adopt balancer 7",
            "set listeners of balancer 7 to 80/tcp, 443/tcp",
            "change name of balancer 7",
        ]
    );
    let after = apply(Some(foreign), &steps).unwrap();
    assert_eq!(after.labels["team"], "a");
    assert_eq!(after.labels[SERVICE_UID], "u-1");
    assert_eq!(super::steps(&want, &ours(after)), []);
}
