//! An account of AWS that always answers the same.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{CloudError, CloudProvider};
use cloudkeel_http::{Transport, TransportError};
use cloudkeel_provider_aws::{AwsProvider, Config, Wiring};
use http::{Request, Response};

use super::answers::{Cloud, context};

/// The account.
#[derive(Default)]
pub(super) struct Aws;

const TAGS: &str =
    "<tagSet><item><key>kubernetes.io/cluster/x</key><value>owned</value></item></tagSet>";

/// The content of an answer; what is asked for otherwise is done.
fn content(action: &str, is_classic: bool) -> String {
    match action {
        "DescribeSubnets" => format!(
            "<subnetSet><item><subnetId>subnet-1</subnetId><availabilityZone>us-east-1a</availabilityZone>\
             <cidrBlock>10.0.0.0/24</cidrBlock>{TAGS}</item></subnetSet>"
        ),
        "DescribeAvailabilityZones" => "<availabilityZoneInfo><item><zoneName>us-east-1a</zoneName><zoneId>use1-az1</zoneId>\
             <zoneType>availability-zone</zoneType></item></availabilityZoneInfo>".to_owned(),
        "DescribeInstances" => format!("<reservationSet>{}{}</reservationSet>", instance(1), instance(2)),
        "DescribeInstanceTopology" => "<instanceSet/>".to_owned(),
        "DescribeRouteTables" => "<routeTableSet><item><routeTableId>rtb-1</routeTableId><associationSet><item><main>true</main>\
             </item></associationSet><routeSet><item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock>\
             <gatewayId>igw-1</gatewayId><state>active</state></item><item><destinationCidrBlock>10.244.0.0/24\
             </destinationCidrBlock><instanceId>i-00000001</instanceId><state>active</state></item></routeSet></item>\
             </routeTableSet>".to_owned(),
        "DescribeSecurityGroups" => format!(
            "<securityGroupInfo><item><groupId>sg-1</groupId><groupName>nodes</groupName><ipPermissions><item>\
             <ipProtocol>tcp</ipProtocol><fromPort>22</fromPort><toPort>22</toPort><ipRanges><item><cidrIp>10.0.0.0/8\
             </cidrIp></item></ipRanges></item></ipPermissions>{TAGS}</item></securityGroupInfo>"
        ),
        "DescribeLoadBalancers" if is_classic => "<LoadBalancerDescriptions><member><LoadBalancerName>au1</LoadBalancerName>\
             <DNSName>au1-1.us-east-1.elb.amazonaws.com</DNSName><Scheme>internet-facing</Scheme><ListenerDescriptions>\
             <member><Listener><Protocol>TCP</Protocol><LoadBalancerPort>80</LoadBalancerPort><InstanceProtocol>TCP\
             </InstanceProtocol><InstancePort>30080</InstancePort></Listener></member></ListenerDescriptions><Subnets>\
             <member>subnet-1</member></Subnets><SecurityGroups><member>sg-1</member></SecurityGroups><Instances><member>\
             <InstanceId>i-00000001</InstanceId></member></Instances><HealthCheck><Target>TCP:30080</Target><Interval>10\
             </Interval><Timeout>5</Timeout><HealthyThreshold>2</HealthyThreshold><UnhealthyThreshold>6</UnhealthyThreshold>\
             </HealthCheck></member></LoadBalancerDescriptions>".to_owned(),
        "DescribeTags" => "<TagDescriptions><member><LoadBalancerName>au1</LoadBalancerName><Tags><member>\
             <Key>kubernetes.io/cluster/x</Key><Value>owned</Value></member></Tags></member></TagDescriptions>".to_owned(),
        "DescribeLoadBalancerAttributes" => "<LoadBalancerAttributes><ConnectionSettings><IdleTimeout>60</IdleTimeout>\
             </ConnectionSettings></LoadBalancerAttributes>".to_owned(),
        "CreateSecurityGroup" => "<groupId>sg-2</groupId>".to_owned(),
        _ => "<return>true</return>".to_owned(),
    }
}

fn instance(number: u8) -> String {
    format!(
        "<item><instancesSet><item><instanceId>i-0000000{number}</instanceId><instanceState><name>running</name>\
         </instanceState><instanceType>m5.large</instanceType><placement><availabilityZone>us-east-1a</availabilityZone>\
         </placement><vpcId>vpc-1</vpcId><privateDnsName>node-{number}</privateDnsName><groupSet><item><groupId>sg-1\
         </groupId></item></groupSet><networkInterfaceSet><item><networkInterfaceId>eni-{number}</networkInterfaceId>\
         <status>in-use</status><privateIpAddress>10.0.0.{number}</privateIpAddress></item></networkInterfaceSet>{TAGS}\
         </item></instancesSet></item>"
    )
}

#[async_trait]
impl Transport for Aws {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let field = |name: &str| {
            let mut pairs = body.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(key, _)| *key == name);
            found.map_or("", |(_, value)| value).to_owned()
        };
        let (action, version) = (field("Action"), field("Version"));
        let content = content(&action, version.starts_with("2012"));
        let is_ec2 = version.starts_with("2016");
        let content = if is_ec2 {
            content
        } else {
            format!("<{action}Result>{content}</{action}Result>")
        };
        let text = format!("<{action}Response xmlns=\"aws\">{content}</{action}Response>");
        Ok(Response::new(Bytes::from(text)))
    }
}

#[async_trait]
impl Cloud for Aws {
    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(Self)
    }

    async fn connect(&self, wiring: Wiring) -> Result<Arc<dyn CloudProvider>, CloudError> {
        let config = Config {
            zone: Some("us-east-1a".to_owned()),
            vpc: Some("vpc-1".to_owned()),
            subnet_id: Some("subnet-1".to_owned()),
            cluster_id: Some("x".to_owned()),
            access_key_id: Some("key".to_owned()),
            secret_access_key: Some("secret".into()),
            ..Config::default()
        };
        let provider = AwsProvider::connect(&config, &context("aws"), wiring).await?;
        Ok(Arc::new(provider))
    }
}
