use std::path::PathBuf;

use cloudkeel_api::FlagValues;
use serde_json::json;

use super::*;
use crate::client::Service;

const FILE: &str = r#"
[Global]
zone = us-east-1a
VPC = vpc-1
SubnetID = subnet-1
KubernetesClusterID = x
NodeIPFamilies = ipv6
NodeIPFamilies = ipv4
DisableSecurityGroupIngress = true
ClusterServiceLoadBalancerHealthProbeMode = Shared
SomethingOld = 1

[ServiceOverride "1"]
Service = EC2
Region = us-east-1
URL = http://127.0.0.1:5000/
SigningRegion = us-west-2
[ServiceOverride "2"]
Service = ec2imds
Region = any
URL = http://127.0.0.1:5001
SigningRegion = any
"#;

fn file(text: &str) -> ProviderInput {
    ProviderInput {
        config: ConfigSource::File {
            path: PathBuf::from("cloud.conf"),
            text: text.to_owned(),
        },
        ..ProviderInput::default()
    }
}

#[test]
fn the_file_of_the_go_ccm_is_read() {
    let config = Config::read(&file(FILE)).unwrap();
    assert_eq!(config.configured_region().as_deref(), Some("us-east-1"));
    assert_eq!(config.families(), [IpFamily::V6, IpFamily::V4]);
    assert!(config.disable_security_group_ingress && config.is_off_instance());
    assert_eq!(config.probe_mode, Some(ProbeMode::Shared));
    let ec2 = config.endpoint(Service::Ec2, "us-east-1");
    assert_eq!(
        (&*ec2.url, &*ec2.signing_region),
        ("http://127.0.0.1:5000", "us-west-2")
    );
    assert_eq!(config.metadata_endpoint(), Some("http://127.0.0.1:5001"));
    let empty =
        "[Global]\nNLBSecurityGroupMode =\nClusterServiceLoadBalancerHealthProbeMode = \"\"\n";
    assert_eq!(Config::read(&file(empty)).unwrap(), Config::default());
    let defaults = Config::read(&ProviderInput::default()).unwrap();
    assert_eq!(defaults, Config::default());
    assert!(!defaults.is_off_instance());
}

#[test]
fn our_own_form_says_the_same() {
    let own = json!({
        "region": "cn-north-1",
        "vpc": "vpc-1",
        "clusterId": "x",
        "roleArn": "arn:aws:iam::1:role/r",
        "nodeIpFamilies": ["ipv6", "ipv4"],
        "endpoints": {"sts": "https://sts.example.com"},
        "tagging": {"tags": {"a": "1"}},
    });
    let input = ProviderInput {
        config: ConfigSource::Own(own),
        ..ProviderInput::default()
    };
    let config = Config::read(&input).unwrap();
    assert!(config.is_off_instance());
    assert_eq!(config.families(), [IpFamily::V6, IpFamily::V4]);
    assert_eq!(
        config.endpoint(Service::Sts, "cn-north-1").url,
        "https://sts.example.com"
    );
    assert_eq!(
        config.endpoint(Service::Elb, "cn-north-1").url,
        "https://elasticloadbalancing.cn-north-1.amazonaws.com.cn"
    );
    assert_eq!(config.tags, [("a".to_owned(), "1".to_owned())].into());
}

#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    let text = "[Global]\nZone = nowhere\nKubernetesClusterTag = a\nKubernetesClusterID = b\n\
                NodeIPFamilies = ipv5\nSupportedTopologyInstanceTypePattern = (\n\
                [ServiceOverride \"1\"]\nService = EC2\nURL = u\nSigningRegion = r\n";
    let mut input = file(text);
    input.flags = FlagValues::from([("resources".to_owned(), vec!["volume".to_owned()])]);
    input.env = [("AWS_ACCESS_KEY_ID".to_owned(), "k".to_owned())].into();
    let problems = Config::read(&input).unwrap_err().to_string();
    for part in [
        "Zone: \"nowhere\": expected a zone such as `eu-west-1a`",
        "KubernetesClusterID: \"b\" differs from \"a\"",
        "NodeIPFamilies",
        "SupportedTopologyInstanceTypePattern: \"(\": expected a regular expression",
        "ServiceOverride \"1\": Region is required",
        "--resources: \"volume\": expected `instance`",
        "give both this and",
    ] {
        assert!(problems.contains(part), "{part} in\n{problems}");
    }
}

#[test]
fn regions_are_found_in_zones() {
    for (zone, region) in [
        ("eu-west-1a", Some("eu-west-1")),
        ("us-gov-east-1b", Some("us-gov-east-1")),
        ("us-west-2-lax-1a", Some("us-west-2")),
        ("west", None),
    ] {
        assert_eq!(region_of_zone(zone).as_deref(), region, "{zone}");
    }
}
