use super::*;

fn data(pairs: &[(&str, &str)]) -> Data {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), Secret::new(*value)))
        .collect()
}

fn found(pairs: &[(&str, &str)], server: &str) -> Result<(String, String), String> {
    let login = find(&data(pairs), server)?;
    Ok((login.0, login.1.expose().to_owned()))
}

const CSI: &str = r#"[Global]
cluster-id = "prod"
[VirtualCenter "vc.example.com"]
insecure-flag = "true"
user = "admin@vsphere.local"
password = "pa\"ss"
port = "443"
datacenters = "DC0, DC1"
"#;

#[test]
fn every_form_of_a_secret_is_read() {
    for (case, pairs, server) in [
        (
            "by server",
            &[
                ("vc.example.com.username", "admin@vsphere.local"),
                ("vc.example.com.password", "pa\"ss"),
            ][..],
            "vc.example.com",
        ),
        (
            "from files",
            &[
                ("vc.example.com.username", "admin@vsphere.local\n"),
                ("vc.example.com.password", "pa\"ss\n"),
            ],
            "vc.example.com",
        ),
        (
            "by an ID",
            &[
                ("server_a", "fd00::2"),
                ("username_a", "other"),
                ("password_a", "other"),
                ("server_b", "fd00::1"),
                ("username_b", "admin@vsphere.local"),
                ("password_b", "pa\"ss"),
            ],
            "fd00::1",
        ),
        (
            "of the CSI driver",
            &[("csi-vsphere.conf", CSI)],
            "vc.example.com",
        ),
    ] {
        let expected = ("admin@vsphere.local".to_owned(), "pa\"ss".to_owned());
        assert_eq!(found(pairs, server), Ok(expected), "{case}");
    }
}

#[test]
fn a_secret_without_the_server_says_what_it_has() {
    let other = [("vc2.username", "hunter2"), ("vc2.password", "hunter2")];
    let error = found(&other, "vc1").unwrap_err();
    assert_eq!(
        error,
        "expected the keys `vc1.username` and `vc1.password`, found vc2.password, vc2.username"
    );
    assert!(found(&[("csi-vsphere.conf", CSI)], "vc1").is_err());
    let half = [("vc1.username", "u"), ("vc1.password", "\n")];
    assert!(found(&half, "vc1").unwrap_err().contains("is empty"));
    let manager = [("vc1.vc-session-manager-url", "https://x")];
    assert!(
        found(&manager, "vc1")
            .unwrap_err()
            .contains("session manager")
    );
}

#[test]
fn a_folder_is_read_like_a_secret() {
    let folder = tempfile::TempDir::new().unwrap();
    for (name, text) in [
        ("vc1.username", "u\n"),
        ("vc1.password", "p"),
        ("..data", "x"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let data = read_directory(folder.path()).unwrap();
    assert_eq!(data.len(), 2);
    let (user, password) = find(&data, "vc1").unwrap();
    assert_eq!((&*user, password.expose()), ("u", "p"));
}
