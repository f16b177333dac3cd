use super::*;

#[test]
fn the_number_of_the_network_must_be_the_whole_number() {
    let metadata = "- ip: 10.0.0.2\n  alias_ips: []\n  network_id: 422\n  network_name: kube\n";
    assert!(says_attached(metadata, 422));
    assert!(!says_attached(metadata, 42));
    assert!(!says_attached("[]\n", 422));
    assert!(!says_attached("network_id: 422", 422));
}

#[test]
fn two_tokens_have_two_fingerprints_that_do_not_show_them() {
    let of = |token: &str| fingerprint(&Config::new(token), "https://x/v1", None);
    assert_ne!(of("hunter2"), of("hunter3"));
    assert!(!of("hunter2").as_str().contains("hunter"));
}
