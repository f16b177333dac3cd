use super::*;

#[test]
fn every_form_that_was_ever_written_is_read() {
    let instance = |id: &str| Ok(AwsId::Instance(id.to_owned()));
    let fargate = |name: &str| Ok(AwsId::Fargate(name.to_owned()));
    for (text, expected) in [
        ("aws:///eu-west-1a/i-0abc", instance("i-0abc")),
        ("aws:////i-0abc", instance("i-0abc")),
        ("i-0abc", instance("i-0abc")),
        ("aws:///eu-west-1a/fargate-10.0.0.7", fargate("10.0.0.7")),
        (
            "aws:///eu-west-1a/fargate-ip-10-0-0-7.ec2.internal",
            fargate("ip-10-0-0-7.ec2.internal"),
        ),
    ] {
        assert_eq!(text.parse::<AwsId>(), expected, "{text}");
    }
}

#[test]
fn what_is_no_id_says_what_would_be_right() {
    for (text, is_foreign) in [
        ("hcloud://7", true),
        ("gce://p/z/i-1", true),
        ("node-1", true),
        ("aws:///eu-west-1a/", false),
        ("aws:///eu-west-1a/x-1", false),
        ("aws:///eu-west-1a/i-", false),
        ("aws:///eu-west-1a/fargate-", false),
    ] {
        let error = text.parse::<AwsId>().unwrap_err();
        assert_eq!(matches!(error, IdError::Foreign(_)), is_foreign, "{text}");
        assert!(error.to_string().contains("aws://"), "{error}");
    }
}

#[test]
fn ids_are_written_as_the_go_ccm_writes_them() {
    let id = AwsId::Instance("i-1".to_owned()).provider_id("us-east-1a");
    assert_eq!(id.as_str(), "aws:///us-east-1a/i-1");
    let id = AwsId::Fargate("10.0.0.7".to_owned()).provider_id("us-east-1a");
    assert_eq!(id.as_str(), "aws:///us-east-1a/fargate-10.0.0.7");
    for name in ["10.0.0.7", "ip-10-0-0-7.ec2.internal"] {
        assert_eq!(AwsId::fargate_address(name), "10.0.0.7");
    }
}
