"""Makes moto answer as AWS does, where a cloud-controller-manager can see a difference.

Importing this module patches moto in memory. Each patch says what moto does and what AWS does. The AWS side is
from its documentation and from what the Go CCM relies on; nothing was compared with a live account. A patch that a newer
moto makes unnecessary should be deleted.

Nothing here depends on time, so that tests with a paused clock see the same every time: a deleted balancer holds its
security groups for one more attempt, and a deregistered target is shown as draining once.
"""
import ipaddress
import re
import threading
import zlib

from moto import settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError, InvalidInstanceIdError
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance
from moto.ec2.models.route_tables import Route
from moto.ec2.responses import EC2Response
from moto.elb import models as elb
from moto.elb.exceptions import ELBClientError
from moto.elb.responses import ELBResponse
from moto.elbv2 import models as elbv2
from moto.elbv2.exceptions import DuplicateListenerError, DuplicateLoadBalancerName
from moto.elbv2.exceptions import ELBClientError as ELBV2ClientError
from moto.elbv2.responses import ELBV2Response
from moto.iam.access_control import IAMRequestBase

NETWORK_PROTOCOLS = ("TCP", "UDP", "TLS", "TCP_UDP")
HAS_TOPOLOGY = re.compile(r"^(hpc|trn|p)[0-9]")
INSTANCE_ID = re.compile(r"i-([0-9a-f]{8}|[0-9a-f]{17})")


def patch(owner, name):
    """The decorated function replaces owner.name, and gets the original as its first argument."""
    original = getattr(owner, name)

    def replace(function):
        setattr(owner, name, lambda *args, **kwargs: function(original, *args, **kwargs))
    return replace


def is_alive(instance):
    return instance is not None and instance.state not in ("terminated", "shutting-down")


# Signatures and IAM policies

settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
# The accounts in which they are checked.
checked = set()
# The body of the request that this thread serves.
request = threading.local()


@patch(ActionAuthenticatorMixin, "_authenticate_and_authorize_action")
def authorize(original, self, *args, **kwargs):
    """moto checks all accounts or none."""
    if self.current_account in checked:
        original(self, *args, **kwargs)


@patch(IAMRequestBase, "__init__")
def sign_the_body(original, self, *args, **kwargs):
    """moto signs the parameters as Python would write them, not the body that was sent."""
    original(self, *args, **kwargs)
    self._body = request.body


# EC2

# moto names an instance after its address. The kit names it, as a DHCP domain of one's own would.
Instance.private_dns_name = property(
    lambda self: getattr(self, "given_name", None) or f"ip-{self.private_ip.replace('.', '-')}.ec2.internal")


def describe_instance_topology(self):
    """moto has no such action. AWS lists network nodes of HPC types, and leaves the others out."""
    wanted = self._get_param("InstanceIds", [])
    instances = [i for r in self.ec2_backend.describe_instances() for i in r.instances]
    return ActionResult({"Instances": [
        {"InstanceId": i.id, "InstanceType": i.instance_type, "AvailabilityZone": i.placement.zone,
         "NetworkNodes": [f"nn-{layer}{i.placement.zone[-1]}" + "0" * 15 for layer in range(3)]}
        for i in instances if is_alive(i) and HAS_TOPOLOGY.match(i.instance_type) and (not wanted or i.id in wanted)]})


EC2Response.describe_instance_topology = describe_instance_topology


def add_pages(owner, action, key, size, token, following, most):
    """moto returns these lists whole, whatever page is asked for. AWS refuses pages that are too large."""
    @patch(owner, action)
    def page(original, self):
        if int(self._get_param(size) or most) > most:
            raise EC2ClientError("InvalidParameterValue", f"Value ( {self._get_param(size)} ) for parameter {size} is invalid")
        items = list(original(self).result[key])
        start = int(self._get_param(token) or 0)
        end = start + int(self._get_param(size) or most)
        return ActionResult({key: items[start:end], following: str(end) if end < len(items) else None})


for listed, list_key, largest in (("security_groups", "SecurityGroups", 1000), ("subnets", "Subnets", 1000),
                                  ("route_tables", "RouteTables", 100), ("network_interfaces", "NetworkInterfaces", 1000)):
    add_pages(EC2Response, f"describe_{listed}", list_key, "MaxResults", "NextToken", "NextToken", largest)
for listed, list_key in (("target_groups", "TargetGroups"), ("listeners", "Listeners")):
    add_pages(ELBV2Response, f"describe_{listed}", list_key, "PageSize", "Marker", "NextMarker", 400)

# moto leaves a route to a terminated instance `active`, and does not name the interface of an instance.
Route.state = property(lambda self: "blackhole" if self.instance and not is_alive(self.instance) else "active")
Route.network_interface_id = property(
    lambda self: self.interface.id if self.interface
    else self.instance.nics[0].id if self.instance and is_alive(self.instance) else None)


# moto deletes a security group that is in use. AWS refuses that while a rule, an interface or a balancer has it.
held = {}


def hold_groups(original, self, key):
    balancer = self.load_balancers.get(key)
    held.update({group: 1 for group in (balancer.security_groups if balancer else [])})
    return original(self, key)


patch(elb.ELBBackend, "delete_load_balancer")(hold_groups)
patch(elbv2.ELBv2Backend, "delete_load_balancer")(hold_groups)


@patch(EC2Backend, "delete_security_group")
def delete_security_group(original, self, name=None, group_id=None):
    groups = [g for of_vpc in self.groups.values() for g in of_vpc.values()]
    rules = [rule for g in groups if g.id != group_id for rule in g.ingress_rules + g.egress_rules]
    balancers = [b for service in (elb.elb_backends, elbv2.elbv2_backends)
                 for b in service[self.account_id][self.region_name].load_balancers.values()]
    interfaces = [i for i in self.enis.values() if i.instance is None or is_alive(i.instance)]
    held[group_id], is_held = max(held.get(group_id, 0) - 1, 0), held.get(group_id, 0) > 0
    if group_id and (is_held or any((rule.source_group or {}).get("GroupId") == group_id for rule in rules)
                     or any(group_id in b.security_groups for b in balancers)
                     or any(group_id in [g.id for g in i.group_set] for i in interfaces)):
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    return original(self, name, group_id)


@patch(EC2Backend, "do_resources_exist")
def do_resources_exist(original, self, ids):
    """moto tags instances that do not exist."""
    missing = [i for i in ids if i.startswith("i-") and self.get_instance_by_id(i) is None]
    if missing:
        raise InvalidInstanceIdError(missing)
    return original(self, ids)


@patch(EC2Backend, "get_reservations_by_instance_ids")
def get_reservations(original, self, ids, *args, **kwargs):
    """moto calls a malformed ID missing, which reads as a proof, and fails if one is given twice."""
    for malformed in (i for i in ids if not INSTANCE_ID.fullmatch(i)):
        raise EC2ClientError("InvalidInstanceID.Malformed", f'Invalid id: "{malformed}"')
    return original(self, list(dict.fromkeys(ids)), *args, **kwargs)


@patch(EC2Response, "describe_instances")
def describe_instances(original, self):
    """moto makes pages of 100 of a look-up by ID."""
    ids = self._get_param("InstanceIds", [])
    if not ids or self._get_param("MaxResults"):
        return original(self)
    found = self.ec2_backend.get_reservations_by_instance_ids(ids, filters=self._filters_from_querystring())
    return ActionResult({"Reservations": found})


@patch(NetworkInterface, "get_filter_value")
def get_filter_value(original, self, name, method_name=None):
    """moto fails on this filter."""
    if name == "attachment.status":
        return "attached" if self.attachment_id else "detached"
    return original(self, name, method_name)


# Classic load balancers

elb.FakeListener.instance_protocol = property(lambda self: getattr(self, "back_end", self.protocol))


def members(balancer):
    """moto lists instances twice that were registered twice, and keeps terminated ones."""
    ids = dict.fromkeys(balancer.instance_sparse_ids + balancer.instance_autoscaling_ids)
    backend = getattr(balancer, "backend", None)
    ec2 = ec2_backends[balancer.account_id][backend.region_name] if backend else None
    return [i for i in ids if ec2 is None or is_alive(ec2.get_instance_by_id(i))]


elb.LoadBalancer.instance_ids = property(members)


def remember_back_ends(balancer, ports):
    wanted = {int(p["LoadBalancerPort"]): p.get("InstanceProtocol") for p in ports}
    for listener in balancer.listeners:
        if wanted.get(int(listener.load_balancer_port)):
            listener.back_end = wanted[int(listener.load_balancer_port)].upper()


@patch(elb.ELBBackend, "create_load_balancer")
def create_classic(original, self, *args, **kwargs):
    """moto forgets the health check, the zones and the protocol towards the targets."""
    limit = limits.get(self.account_id)
    if limit is not None and len(self.load_balancers) >= limit:
        raise ELBClientError("TooManyLoadBalancers", "The quota for the number of load balancers has been reached.")
    balancer = original(self, *args, **kwargs)
    ec2 = ec2_backends[self.account_id][self.region_name]
    balancer.backend = self
    balancer.availability_zones = sorted({ec2.get_subnet(s).availability_zone for s in balancer.subnets})
    inside = "internal-" if balancer.scheme == "internal" else ""
    number = zlib.crc32(balancer.name.encode())
    balancer.dns_name = f"{inside}{balancer.name}-{number:010d}.{self.region_name}.elb.amazonaws.com"
    port = balancer.listeners[0].instance_port
    balancer.health_check = elb.FakeHealthCheck("5", "10", "2", "30", f"TCP:{port}")
    remember_back_ends(balancer, kwargs["ports"])
    return balancer


limits = {}

# Quotas of a new account. moto has others, and none of classic balancers.
CLASSIC_QUOTAS = {"classic-load-balancers": 20, "classic-listeners": 100, "classic-registered-instances": 1000}
NETWORK_QUOTAS = {"network-load-balancers": 50, "listeners-per-network-load-balancer": 50, "target-groups": 3000,
                  "targets-per-network-load-balancer": 3000, "targets-per-availability-zone-per-network-load-balancer": 500}


def account_limits(quotas):
    rows = [{"Name": name, "Max": str(most)} for name, most in quotas.items()]
    return lambda self: ActionResult({"Limits": rows})


ELBResponse.describe_account_limits = account_limits(CLASSIC_QUOTAS)
ELBV2Response.describe_account_limits = account_limits(NETWORK_QUOTAS)

# Targets that fail their checks: accounts and IDs or addresses. moto finds all of them healthy.
unhealthy = set()


@patch(elb.ELBBackend, "describe_instance_health")
def describe_instance_health(original, self, *args, **kwargs):
    rows = original(self, *args, **kwargs)
    failed = {"State": "OutOfService"}
    return [{**row, **(failed if (self.account_id, row["InstanceId"]) in unhealthy else {})} for row in rows]


@patch(elb.ELBBackend, "create_load_balancer_listeners")
def create_listeners(original, self, name, ports):
    """moto knows no quota, and no policies of a port that was added later."""
    if len(self.get_load_balancer(name).listeners) + len(ports) > CLASSIC_QUOTAS["classic-listeners"]:
        raise ELBClientError("TooManyListeners", "The quota for listeners has been reached for this load balancer.")
    balancer = original(self, name, ports)
    remember_back_ends(balancer, ports)
    known = {int(b.instance_port) for b in balancer.backends}
    balancer.backends += [elb.FakeBackend(p["InstancePort"]) for p in ports if int(p["InstancePort"]) not in known]
    return balancer


def delete_listeners(self, name, ports):
    """moto deletes none of several ports, and doubles the rest."""
    balancer = self.get_load_balancer(name)
    gone = {int(port) for port in ports}
    balancer.listeners = [l for l in balancer.listeners if int(l.load_balancer_port) not in gone]
    return balancer


elb.ELBBackend.delete_load_balancer_listeners = delete_listeners


@patch(elb.ELBBackend, "register_instances")
def register_instances(original, self, name, ids, *args, **kwargs):
    """moto registers instances that do not exist."""
    ec2 = ec2_backends[self.account_id][self.region_name]
    missing = [i for i in ids if not is_alive(ec2.get_instance_by_id(i))]
    if missing:
        raise ELBClientError("InvalidInstance", f"Could not find EC2 instance {missing[0]}.")
    return original(self, name, ids, *args, **kwargs)


DESYNC = ("elb.http.desyncmitigationmode", "defensive")


@patch(elb.LoadBalancer, "get_default_attributes")
def default_attributes(original):
    """moto's draining has no timeout."""
    draining = {"enabled": False, "timeout": 300}
    return {**original(), "connection_draining": draining, "additional_attributes": [DESYNC]}


@patch(elb.ELBBackend, "modify_load_balancer_attributes")
def modify_attributes(original, self, name, **kwargs):
    """moto adds the desync attribute once more at each change."""
    original(self, name, **kwargs)
    attributes = self.get_load_balancer(name).attributes
    attributes["additional_attributes"] = list(dict(attributes["additional_attributes"]).items()) or [DESYNC]


# Network load balancers

@patch(elbv2.ELBv2Backend, "create_load_balancer")
def create_network(original, self, name, *args, **kwargs):
    """moto takes a name twice, forgets the addresses, and gives a network balancer ARN and DNS name of another kind."""
    if any(b.name == name for b in self.load_balancers.values()):
        raise DuplicateLoadBalancerName()
    balancer = original(self, name, *args, **kwargs)
    balancer.scheme = balancer.scheme or "internet-facing"
    balancer.mappings = kwargs.get("subnet_mappings") or []
    balancer.attrs["access_logs.s3.enabled"] = "false"
    if balancer.type == "network":
        tags = self.tagging_service.list_tags_for_resource(balancer.arn)["Tags"]
        self.tagging_service.delete_all_tags_for_resource(balancer.arn)
        del self.load_balancers[balancer.arn]
        balancer.arn = balancer.arn.replace(":loadbalancer/app/", ":loadbalancer/net/")
        self.load_balancers[balancer.arn] = balancer
        self.tagging_service.tag_resource(balancer.arn, tags)
        number = balancer.arn.rsplit("/", 1)[1]
        balancer.dns_name = f"{name}-{number}.elb.{self.region_name}.amazonaws.com"
    return balancer


@patch(elbv2.ELBv2Backend, "create_listener")
def create_listener(original, self, load_balancer_arn, protocol, port, ssl_policy, *args, **kwargs):
    """moto takes a port twice, knows no quota, and gives every listener an SSL policy."""
    balancer = self.load_balancers.get(load_balancer_arn)
    if balancer and len(balancer.listeners) >= NETWORK_QUOTAS["listeners-per-network-load-balancer"]:
        raise ELBV2ClientError("TooManyListeners", "The quota for listeners has been reached for this load balancer.")
    if balancer and any(int(l.port) == int(port) for l in balancer.listeners.values()):
        raise DuplicateListenerError()
    policy = ssl_policy if protocol in ("TLS", "HTTPS") else None
    return original(self, load_balancer_arn, protocol, port, policy, *args, **kwargs)


@patch(elbv2.ELBv2Backend, "modify_listener")
def modify_listener(original, self, arn, port=None, protocol=None, ssl_policy=None, certificates=None, actions=None):
    """moto refuses TLS and UDP here."""
    is_plain = protocol not in NETWORK_PROTOCOLS
    known = (protocol if is_plain else None, ssl_policy, certificates if is_plain else [])
    listener = original(self, arn, port, *known, actions or [])
    if not is_plain:
        listener.protocol = protocol
        if certificates:
            listener.certificate = certificates[0]["CertificateArn"]
            listener.certificates = [c["CertificateArn"] for c in certificates]
        if protocol != "TLS":
            listener.ssl_policy, listener.certificate, listener.certificates = None, None, []
    return listener


def balancers_of(group):
    """moto does not follow listeners that change their group."""
    balancers = elbv2.elbv2_backends[group.account_id][group.region_name].load_balancers.values()
    leads_to = {b.arn: {a.data.get("TargetGroupArn") for l in b.listeners.values() for a in l.default_actions}
                for b in balancers}
    return [arn for arn, groups in leads_to.items() if group.arn in groups]


elbv2.FakeTargetGroup.load_balancer_arns = property(balancers_of, lambda group, value: None)


@patch(elbv2.ELBv2Backend, "create_target_group")
def create_target_group(original, self, name, **kwargs):
    """moto refuses a name that is taken. AWS returns the group if it is the same. moto also lacks attributes."""
    same = [g for g in self.target_groups.values() if g.name == name and g.protocol == kwargs.get("protocol")
            and str(g.port) == str(kwargs.get("port"))]
    if same:
        return same[0]
    group = original(self, name, **kwargs)
    if group.protocol in NETWORK_PROTOCOLS:
        keeps = group.target_type == "instance" or group.protocol in ("UDP", "TCP_UDP")
        group.attributes.update({"preserve_client_ip.enabled": "true" if keeps else "false",
                                 "proxy_protocol_v2.enabled": "false"})
    return group


PRIVATE = [ipaddress.ip_network(n) for n in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")]


def check_target(group, target):
    """What AWS refuses as a target of a group of this type."""
    text, zone = target["Id"], target.get("AvailabilityZone")
    if group.target_type == "instance":
        if not INSTANCE_ID.fullmatch(text):
            raise ELBV2ClientError("InvalidTarget", f"Instance ID '{text}' is not valid")
        if zone:
            raise ELBV2ClientError("ValidationError", "An Availability Zone cannot be specified for instances")
        return
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ELBV2ClientError("ValidationError", f"The IP address '{text}' is not a valid IPv4 address") from None
    subnets = [s for of_zone in group.ec2_backend.subnets.values() for s in of_zone.values() if s.vpc_id == group.vpc_id]
    if any(address in ipaddress.ip_network(s.cidr_block) for s in subnets):
        return
    if not any(address in network for network in PRIVATE):
        raise ELBV2ClientError("InvalidTarget", f"The IP address '{text}' is not within the ranges of targets")
    if zone is None:
        raise ELBV2ClientError("ValidationError", f"You must specify an Availability Zone for the IP address '{text}'")
    if group.protocol in ("UDP", "TCP_UDP"):
        raise ELBV2ClientError("InvalidTarget", f"The IP address '{text}' is outside the VPC")


@patch(elbv2.FakeTargetGroup, "register")
def register(original, self, targets):
    """moto takes any text for a target, and forgets its zone."""
    for target in targets:
        check_target(self, target)
    original(self, targets)
    for target in targets:
        self.targets[target["Id"]]["AvailabilityZone"] = target.get("AvailabilityZone")


@patch(elbv2.FakeTargetGroup, "health_for")
def health_for(original, self, target, ec2_backend):
    status = original(self, target, ec2_backend)
    status.zone = self.targets.get(target["Id"], {}).get("AvailabilityZone")
    if (self.account_id, target["Id"]) in unhealthy:
        status.status = "unhealthy"
    return status


def target_of(status):
    zone = getattr(status, "zone", None)
    return {"Id": status.instance_id, "Port": status.port, **({"AvailabilityZone": zone} if zone else {})}


elbv2.FakeHealthStatus.target = property(target_of)


@patch(elbv2.FakeTargetGroup, "deregister")
def deregister(original, self, targets):
    """moto refuses targets that are not registered. AWS takes them, and shows those that were as draining."""
    leaving = {t["Id"]: self.targets[t["Id"]] for t in targets if t["Id"] in self.targets}
    original(self, [t for t in targets if t["Id"] in self.targets])
    self.__dict__.setdefault("draining", {}).update(leaving)


@patch(elbv2.ELBv2Backend, "describe_target_health")
def describe_target_health(original, self, arn, targets):
    rows = original(self, arn, targets)
    group = self.target_groups[arn]
    for target_id, target in list(getattr(group, "draining", {}).items()):
        del group.draining[target_id]
        if not targets and target_id not in group.targets:
            rows.append(elbv2.FakeHealthStatus(
                target_id, target["Port"], group.health_check_port, "draining",
                "Target.DeregistrationInProgress", "Target deregistration is in progress"))
    return rows
