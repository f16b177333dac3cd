//! A cloud that hides some of its machines, in lists and in look-ups.

use crate::lab::{Lab, MINUTE, TEN_MINUTES};

#[tokio::test(start_paused = true)]
async fn a_zone_that_a_cloud_hides_costs_no_node_as_long_as_one_of_its_kubelets_is_alive() {
    for (case, zone, cut_off) in [
        ("a third, one of which is cut off", 7, 1),
        ("a third, most of which is cut off", 7, 6),
        ("two, one of which is cut off", 2, 1),
    ] {
        let lab = Lab::settled(20).await;
        lab.machines.iter().for_each(|it| lab.live(&it.name));
        let zone = lab.machines.iter().take(zone).map(|it| it.id).collect();
        lab.cloud.change_settings(|settings| settings.hidden = zone);
        (0..cut_off).for_each(|index| lab.silence(index));
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{case}");
        assert!(lab.are_deletions_stopped(), "{case}");
        lab.cloud
            .change_settings(|settings| settings.hidden.clear());
        lab.pass(MINUTE * 3).await;
        assert!(!lab.are_deletions_stopped(), "{case}");
        lab.lose([19]);
        lab.pass(MINUTE).await;
        assert_eq!(lab.deleted(), [lab.name(19)], "{case}");
    }
}
