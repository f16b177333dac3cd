"""Clouds for the conformance kit: each is an account of its own, changed and observed behind the provider's back."""
import itertools
import threading

from moto.ec2.models import ec2_backends
from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends
from moto.moto_api._internal import mock_random

import as_aws

REGION = "us-east-1"
ZONES = ("us-east-1a", "us-east-1b")
CLUSTER = "kit"
OWNED = {f"kubernetes.io/cluster/{CLUSTER}": "owned"}
OTHER_CLUSTER = {"kubernetes.io/cluster/another": "owned"}
numbers = itertools.count(200000000000)
draws = itertools.count()
drawing = threading.Lock()


def key_values(tags):
    return [{"Key": key, "Value": value} for key, value in tags.items()]


class Cloud:
    """An account with a VPC in two zones, as an installer would leave it."""

    def __init__(self, account=None):
        self.account, self.region = account or str(next(numbers)), REGION
        self.ec2 = ec2_backends[self.account][REGION]
        self.elb = elb_backends[self.account][REGION]
        self.elbv2 = elbv2_backends[self.account][REGION]
        self.order, self.added = [], 0
        # Calls that were not asked about yet, and all that succeeded.
        self.calls, self.done = [], []
        shared = {f"kubernetes.io/cluster/{CLUSTER}": "shared"}
        vpc = self.ec2.create_vpc("10.0.0.0/16", tags=key_values(shared))
        self.vpc = vpc.id
        gateway = self.ec2.create_internet_gateway()
        self.ec2.attach_internet_gateway(gateway.id, vpc.id)
        outside = self.ec2.create_route_table(vpc.id)
        self.ec2.create_route(outside.id, "0.0.0.0/0", gateway_id=gateway.id)
        inside = self.ec2.create_route_table(vpc.id, tags=key_values(OWNED))
        self.table = inside.id
        self.subnets = {"public": [], "private": []}
        for place, zone in enumerate(ZONES):
            for kind, role, block, table in (("public", "elb", f"10.0.{place}.0/24", outside),
                                             ("private", "internal-elb", f"10.0.{16 * (place + 1)}.0/20", inside)):
                subnet = self.ec2.create_subnet(vpc.id, block, availability_zone=zone)
                self.ec2.create_tags([subnet.id], {**shared, f"kubernetes.io/role/{role}": "1"})
                self.ec2.associate_route_table(table.id, subnet_id=subnet.id)
                self.subnets[kind].append(subnet.id)
        self.nodes = self.ec2.create_security_group("nodes", "nodes", vpc.id, tags=OWNED).id
        self.own = self.ec2.create_security_group("brought", "of the operator", vpc.id).id

    def facts(self):
        return {"account": self.account, "vpc": self.vpc, "table": self.table, "nodes": self.nodes, "brought": self.own,
                "subnets": self.subnets, "cluster": CLUSTER, "region": REGION}

    def find(self, name):
        """The youngest instance of a name that is not destroyed."""
        found = [i for i in self.order if self.ec2.get_instance_by_id(i) and self.name_of(i) == name]
        return self.ec2.get_instance_by_id(found[-1])

    def name_of(self, instance):
        return self.ec2.get_instance_by_id(instance).private_dns_name

    def add_instance(self, name, instance_type="m5.large", tags=None):
        subnet = self.subnets["private"][self.added % len(ZONES)]
        self.added += 1
        with drawing:
            # The first instance of every account has the same ID, and so on: checks compare accounts.
            mock_random.seed(self.added)
            made = self.ec2.run_instances(
                "ami-12345678", 1, b"", [], instance_type=instance_type, is_instance_type_default=False, subnet_id=subnet,
                security_group_ids=[self.nodes], tags={"instance": OWNED if tags is None else tags}, region_name=REGION,
                placement=None, key_name=None, nics={}, ebs_optimized=None, monitoring_state="disabled",
                associate_public_ip=False, private_ip=None, block_device_mappings=None)
            # All accounts draw from one generator. Begun again, it would give two listeners of a balancer one ID.
            mock_random.seed(f"draw {next(draws)}")
        instance = made.instances[0]
        instance.given_name = name
        self.order.append(instance.id)

    def destroy(self, name):
        instance = self.find(name)
        self.ec2.terminate_instances([instance.id])
        for key, reservation in list(self.ec2.reservations.items()):
            reservation.instances = [i for i in reservation.instances if i.id != instance.id]
            if not reservation.instances:
                del self.ec2.reservations[key]
        self.order.remove(instance.id)

    def terminate(self, name):
        instance = self.find(name)
        self.ec2.terminate_instances([instance.id])
        self.order.remove(instance.id)

    def switch_off(self, name):
        self.ec2.stop_instances([self.find(name).id])

    def modify(self, name):
        self.find(name).instance_type = "m5.xlarge"

    def add_classic(self, name, tags):
        ports = [{"Protocol": "tcp", "LoadBalancerPort": 1, "InstancePort": 1, "InstanceProtocol": "tcp"}]
        balancer = self.elb.create_load_balancer(name=name, zones=[], ports=ports, subnets=self.subnets["public"],
                                                 security_groups=[self.own])
        for key, value in tags.items():
            balancer.add_tag(key, value)
        balancer.listeners = []

    def add_network(self, name, tags):
        self.elbv2.create_load_balancer(name, [], self.subnets["public"], None, "internet-facing", "network", tags=key_values(tags))

    def add_balancer(self, name, kind, owner):
        tags = OTHER_CLUSTER if owner == "another" else {}
        (self.add_classic if kind == "classic" else self.add_network)(name, tags)

    def groups_of(self, arn):
        return [g for g in self.elbv2.target_groups.values() if arn in g.load_balancer_arns]

    def damage(self, balancer):
        if balancer in self.elb.load_balancers:
            classic = self.elb.load_balancers[balancer]
            classic.listeners.pop()
            classic.instance_sparse_ids = []
            return
        listeners = self.elbv2.load_balancers[balancer].listeners
        for group in self.groups_of(balancer):
            group.targets.clear()
        listeners.popitem()

    def add_listener(self, balancer, port):
        if balancer in self.elb.load_balancers:
            self.elb.create_load_balancer_listeners(balancer, [
                {"Protocol": "TCP", "LoadBalancerPort": port, "InstancePort": 31999, "InstanceProtocol": "TCP"}])
            return
        group = self.groups_of(balancer)[0]
        actions = [{"Type": "forward", "TargetGroupArn": group.arn}]
        self.elbv2.create_listener(balancer, "TCP", port, None, [], actions)

    def add_target(self, balancer, name):
        instance = self.find(name).id
        if balancer in self.elb.load_balancers:
            self.elb.register_instances(balancer, [instance])
            return
        for group in self.groups_of(balancer):
            group.register([{"Id": instance}])

    def add_label(self, balancer, key, value):
        if balancer in self.elb.load_balancers:
            self.elb.load_balancers[balancer].add_tag(key, value)
        else:
            self.elbv2.tagging_service.tag_resource(balancer, [{"Key": key, "Value": value}])

    def remove_labels(self, balancer):
        if balancer in self.elb.load_balancers:
            self.elb.load_balancers[balancer].tags.clear()
        else:
            tagging = self.elbv2.tagging_service
            tagging.delete_all_tags_for_resource(balancer)

    def add_route(self, destination):
        gateways = self.ec2.describe_internet_gateways()
        self.ec2.create_route(self.table, destination, gateway_id=gateways[-1].id)

    def lose_balancer(self, balancer):
        """As another client deletes it: its target groups stay."""
        self.elbv2.delete_load_balancer(balancer)

    def untag_nodes(self):
        """The group of the Nodes, which is their only one, has no tag of the cluster."""
        self.ec2.delete_tags([self.nodes], dict.fromkeys(OWNED))

    def protect(self, balancer):
        self.elbv2.load_balancers[balancer].attrs["deletion_protection.enabled"] = "true"

    def add_volume(self):
        return self.ec2.create_volume(size=1, zone_name=ZONES[0]).id

    def add_fargate(self, address):
        """A Fargate Node is an attached network interface. moto wants an instance for it, so it is that of another one."""
        subnet = self.ec2.get_subnet(self.subnets["private"][0])
        interface = self.ec2.create_network_interface(subnet, address, group_ids=[self.nodes])
        self.add_instance("of-fargate", tags={})
        self.ec2.attach_network_interface(interface.id, self.find("of-fargate").id, 1)
        return interface.id

    def remove_fargate(self, interface):
        self.ec2.detach_network_interface(self.ec2.enis[interface].attachment_id)

    def add_address(self):
        self.ec2.allocate_address("vpc")

    def add_user(self, policy):
        """A user with exactly this policy; its keys. From now on signatures and policies are checked."""
        as_aws.checked.add(self.account)
        iam = iam_backends[self.account]["aws"]
        iam.create_user(REGION, "ccm")
        iam.put_user_policy("ccm", "ccm", policy)
        key = iam.create_access_key("ccm")
        return {"id": key.access_key_id, "secret": key.secret_access_key}

    def quota(self, count):
        as_aws.limits[self.account] = count

    def fail_checks(self, name):
        """The instance of this name does not answer any more."""
        as_aws.unhealthy.add((self.account, self.find(name).id))

    def state(self):
        table = self.ec2.route_tables[self.table]
        groups = [g for of_vpc in self.ec2.groups.values() for g in of_vpc.values()]
        balancers = [*self.elb.load_balancers.values(), *self.elbv2.load_balancers.values()]
        in_use = {group for balancer in balancers for group in balancer.security_groups}
        return {
            "instances": [self.instance(i) for i in self.order if self.ec2.get_instance_by_id(i)],
            "classic": [self.classic(b) for b in self.elb.load_balancers.values()],
            "network": [self.network(b) for b in self.elbv2.load_balancers.values()],
            # What is left behind: it belongs to no balancer that is there.
            "target_groups": [g.name for g in self.elbv2.target_groups.values() if not g.load_balancer_arns],
            "routes": [{"destination": r.destination_cidr_block, "hop": r.instance.id if r.instance else "elsewhere"}
                       for r in table.routes if not r.local],
            "volumes": [{"id": v.id, "zone": v.zone.name} for v in self.ec2.volumes.values() if not v.attachment],
            "security_groups": [g.name for g in groups if g.id not in in_use],
            "node_rules": [self.text_of(rule) for g in groups if g.id == self.nodes for rule in g.ingress_rules
                           if rule.source_group.get("GroupId") not in in_use and not self.is_of_balancer(rule)],
        }

    @staticmethod
    def text_of(rule):
        return f"{rule.ip_protocol} {rule.from_port} {rule.ip_range} {rule.source_group}"

    def is_of_balancer(self, rule):
        names = {b.name for b in self.elbv2.load_balancers.values()}
        description = rule.ip_range.get("Description", "")
        return description.split("=")[-1] in names or (description.endswith("/mtu") and bool(names))

    def instance(self, instance_id):
        instance = self.ec2.get_instance_by_id(instance_id)
        zones = {z.name: z.zone_id for z in self.ec2.describe_availability_zones()}
        return {"id": instance.id, "name": instance.private_dns_name, "ip": instance.private_ip, "type": instance.instance_type,
                "zone": instance.placement.zone, "zone_id": zones[instance.placement.zone],
                "tags": {t["key"]: t["value"] for t in instance.get_tags()}}

    def ranges(self, groups):
        """Who may connect: the networks of the groups that were made for a balancer."""
        known = [g for of_vpc in self.ec2.groups.values() for g in of_vpc.values() if g.id in groups]
        return self.networks(rule for g in known for rule in g.ingress_rules)

    @staticmethod
    def networks(rules):
        return sorted({rule.ip_range["CidrIp"] for rule in rules if rule.ip_range} - {"0.0.0.0/0"})

    def client_ranges(self, name):
        """Of a network balancer, those that Nodes let in."""
        nodes = [g for of_vpc in self.ec2.groups.values() for g in of_vpc.values() if g.id == self.nodes]
        description = f"kubernetes.io/rule/nlb/client={name}"
        return self.networks(rule for g in nodes for rule in g.ingress_rules if rule.ip_range.get("Description") == description)

    def classic(self, b):
        check = b.health_check
        policies = {int(p.instance_port): list(p.policy_names) for p in b.backends}
        return {"name": b.name, "internal": b.scheme == "internal", "dns": b.dns_name, "tags": b.tags, "targets": b.instance_ids,
                "ranges": self.ranges(b.security_groups), "groups": list(b.security_groups), "subnets": sorted(b.subnets),
                "listeners": [{"port": int(l.load_balancer_port), "node_port": int(l.instance_port), "protocol": l.protocol}
                              for l in b.listeners],
                "check": {"target": check.target, "interval": int(check.interval), "timeout": int(check.timeout),
                          "unhealthy": int(check.unhealthy_threshold)} if check else None,
                "proxy": any(policies.get(int(l.instance_port)) for l in b.listeners),
                "idle": int(next(iter(b.attributes["connection_settings"].values())))}

    def network(self, b):
        groups = {g.arn: g for g in self.elbv2.target_groups.values()}
        tags = {t["Key"]: t["Value"] for t in self.elbv2.tagging_service.list_tags_for_resource(b.arn)["Tags"]}
        listeners, targets, types = [], set(), set()
        for listener in b.listeners.values():
            group = groups[listener.default_actions[0].data["TargetGroupArn"]]
            targets |= set(group.targets)
            types.add(group.target_type)
            listeners.append({"port": int(listener.port), "node_port": int(group.port), "protocol": listener.protocol,
                              "check": {"protocol": group.health_check_protocol, "port": group.health_check_port,
                                        "path": group.health_check_path, "interval": int(group.health_check_interval_seconds),
                                        "timeout": int(group.health_check_timeout_seconds or 0),
                                        "unhealthy": int(group.unhealthy_threshold_count)}})
        return {"arn": b.arn, "name": b.name, "internal": b.scheme == "internal", "dns": b.dns_name, "tags": tags,
                "ranges": self.client_ranges(b.name), "listeners": listeners, "targets": sorted(targets),
                "target_types": sorted(types), "cross_zone": b.attrs.get("load_balancing.cross_zone.enabled")}
