use cloudkeel_toolkit::HasId;

use super::*;

fn read<T: FromXml>(text: &str) -> Result<T, String> {
    T::from_xml(&Element::parse(text.as_bytes()).unwrap())
}

#[test]
fn rules_that_were_joined_are_taken_apart() {
    let group: SecurityGroup = read(
        "<item><groupId>sg-1</groupId><groupName>n</groupName><ipPermissions>\
         <item><ipProtocol>tcp</ipProtocol><fromPort>80</fromPort><toPort>80</toPort>\
         <groups><item><groupId>sg-2</groupId></item></groups>\
         <ipRanges><item><cidrIp>10.0.0.0/8</cidrIp><description>d</description></item>\
         <item><cidrIp>0.0.0.0/0</cidrIp></item></ipRanges>\
         <ipv6Ranges><item><cidrIpv6>::/0</cidrIpv6></item></ipv6Ranges></item>\
         <item><ipProtocol>-1</ipProtocol><groups><item><groupId>sg-1</groupId></item></groups></item>\
         </ipPermissions><tagSet><item><key>k</key><value/></item></tagSet></item>",
    )
    .unwrap();
    let shown: Vec<_> = group
        .rules
        .iter()
        .map(|(rule, description)| {
            format!(
                "{} {:?} {:?} {description:?}",
                rule.protocol, rule.from, rule.source
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "-1 None Group(\"sg-1\") None",
            "tcp Some(80) Cidr(\"0.0.0.0/0\") None",
            "tcp Some(80) Cidr(\"10.0.0.0/8\") Some(\"d\")",
            "tcp Some(80) Group(\"sg-2\") None",
            "tcp Some(80) Other(\"::/0\") None",
        ]
    );
    assert_eq!(group.tags, [("k".to_owned(), String::new())].into());
}

#[test]
fn an_instance_is_read_with_its_interfaces_in_their_order() {
    let instance: Ec2Instance = read(
        "<item><instanceId>i-1</instanceId><instanceState><name>running</name></instanceState>\
         <placement><availabilityZone>a</availabilityZone></placement><dnsName/>\
         <sourceDestCheck>false</sourceDestCheck><networkInterfaceSet>\
         <item><networkInterfaceId>eni-2</networkInterfaceId><attachment><deviceIndex>1</deviceIndex></attachment></item>\
         <item><networkInterfaceId>eni-3</networkInterfaceId></item>\
         <item><networkInterfaceId>eni-1</networkInterfaceId><attachment><deviceIndex>0</deviceIndex></attachment></item>\
         </networkInterfaceSet></item>",
    )
    .unwrap();
    let order: Vec<_> = instance.interfaces.iter().map(HasId::id).collect();
    assert_eq!(order, ["eni-1", "eni-2", "eni-3"]);
    assert_eq!(
        (instance.public_dns_name, instance.source_dest_check),
        (None, false)
    );
    let error = read::<Ec2Instance>("<item><instanceId>i-1</instanceId></item>").unwrap_err();
    assert_eq!(error, "<item> has no instanceState/name");
}

#[test]
fn a_classic_balancer_without_a_check_has_none() {
    let balancer: classic::ClassicBalancer = read(
        "<member><LoadBalancerName>a1</LoadBalancerName><ListenerDescriptions><member><Listener>\
         <LoadBalancerPort>443</LoadBalancerPort><Protocol>ssl</Protocol><InstancePort>30443</InstancePort>\
         <InstanceProtocol>tcp</InstanceProtocol></Listener><PolicyNames><member>p</member></PolicyNames></member>\
         </ListenerDescriptions><HealthCheck/></member>",
    )
    .unwrap();
    assert_eq!(balancer.check, None);
    assert_eq!(balancer.listeners[0].protocol, "SSL");
    assert_eq!(balancer.listener_policies[&443], ["p".to_owned()].into());
}
