use serde_json::json;

use super::*;

#[test]
fn only_disks_of_our_driver_are_ours() {
    for (case, source, content, disk) in [
        (
            "ours",
            "csi",
            json!({"driver": DRIVER, "volumeHandle": "vol-1"}),
            Some("vol-1"),
        ),
        (
            "another driver",
            "csi",
            json!({"driver": "x", "volumeHandle": "vol-1"}),
            None,
        ),
        ("no handle", "csi", json!({"driver": DRIVER}), None),
        ("another kind", "hostPath", json!({"path": "/x"}), None),
    ] {
        let found = recognize("pv-1", source, &content).map(|volume| volume.disk);
        assert_eq!(found.as_deref(), disk, "{case}");
    }
}
