"""What a cloud-controller-manager left in an account: the calls by which it came about, and the state that they led to.

Both name things by what they are called, not by their IDs, so that they hold in another account, where the same calls make
the same things again: `{group nodes}`, `{subnet public 0}`, `{balancer web}`.
"""
import hashlib
import json
import re
import urllib.parse
import urllib.request

from moto.acm.models import acm_backends

# The `--cluster-name` of every recording.
CLUSTER_NAME = "kubernetes"


def certificate(cloud):
    """A certificate that listeners may have: ARNs have to exist. One in each account."""
    acm = acm_backends[cloud.account][cloud.region]
    if not acm._certificates:
        acm.request_certificate("example.com", "", [], [])
    return next(iter(acm._certificates))


def names_of(services):
    """What is named after the UID of a Service."""
    for service, uid in services.items():
        namespace, name = service.split("/")
        yield "a" + uid.replace("-", "")[:31], f"{{balancer {name}}}"
        digest = hashlib.sha256((CLUSTER_NAME + name + namespace + uid).encode()).hexdigest()[:10]
        short = [re.sub("[^a-zA-Z0-9]", "", text)[:8] for text in (namespace, name)]
        yield f"k8s-{short[0]}-{short[1]}-{digest}", f"{{managed {name}}}"


def ids_of(cloud):
    yield cloud.vpc, "{vpc}"
    yield cloud.table, "{table}"
    yield cloud.account, "{account}"
    yield certificate(cloud), "{certificate}"
    for kind, subnets in cloud.subnets.items():
        for place, subnet in enumerate(subnets):
            yield subnet, f"{{subnet {kind} {place}}}"
    for group in groups(cloud):
        yield group.id, f"{{group {group.name}}}"
    for instance in (cloud.ec2.get_instance_by_id(i) for i in cloud.order):
        yield instance.id, f"{{instance {instance.private_dns_name}}}"
        yield instance.private_ip, f"{{ip {instance.private_dns_name}}}"
    for place, address in enumerate(cloud.ec2.addresses):
        yield address.allocation_id, f"{{eip {place}}}"
    for balancer in cloud.elb.load_balancers.values():
        yield balancer.dns_name, f"{{dns {balancer.name}}}"
    for balancer in cloud.elbv2.load_balancers.values():
        yield balancer.dns_name, f"{{dns {balancer.name}}}"
        yield balancer.arn, f"{{network {balancer.name}}}"
        for listener in balancer.listeners.values():
            yield listener.arn, f"{{listener {balancer.name} {listener.port}}}"
    for group in cloud.elbv2.target_groups.values():
        yield group.arn, f"{{target group {group.name}}}"


def replace(pairs, text):
    """Each of the first by the second; none within a longer word."""
    pairs = dict(pairs)
    longest_first = sorted(pairs, key=len, reverse=True)
    if not pairs:
        return text
    words = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, longest_first)) + r")(?![\w.])")
    return words.sub(lambda found: pairs[found[1]], text)


def name(cloud, services, value):
    """IDs become names."""
    text = replace(ids_of(cloud), json.dumps(value))
    for found, symbol in names_of(services):
        text = text.replace(found, symbol)
    return json.loads(text)


def resolve(cloud, services, value):
    """Names become IDs."""
    text = json.dumps(value)
    for found, symbol in names_of(services):
        text = text.replace(symbol, found)
    for found, symbol in ids_of(cloud):
        text = text.replace(symbol, found)
    return json.loads(text)


def left(cloud, services):
    """Everything that is there of load balancers and routes, and the calls that changed something."""
    changes = [call for call in cloud.done if is_change(call)]
    return {"calls": name(cloud, services, changes), "state": in_order(name(cloud, services, state(cloud)))}


def is_change(call):
    return not call["Action"].startswith(("Describe", "Get", "AssumeRole"))


def replay(cloud, services, calls, url):
    """Makes the same calls again. Answers of those that make something give its ID to later ones."""
    for call in calls:
        call = resolve(cloud, services, call)
        service = "ec2" if call["Version"].startswith("2016") else "elasticloadbalancing"
        key = f"AWS4-HMAC-SHA256 Credential={cloud.account}/20260101/{cloud.region}/{service}/aws4_request, Signature=0"
        body = urllib.parse.urlencode(call).encode()
        headers = {"Authorization": key, "Content-Type": "application/x-www-form-urlencoded"}
        urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()


def groups(cloud):
    return [group for of_vpc in cloud.ec2.groups.values() for group in of_vpc.values() if group.name != "default"]


def state(cloud):
    return {
        "security groups": [security_group(group) for group in groups(cloud)],
        "classic": [classic(balancer) for balancer in cloud.elb.load_balancers.values()],
        "network": [network(cloud, balancer) for balancer in cloud.elbv2.load_balancers.values()],
        "target groups": [target_group(cloud, group) for group in cloud.elbv2.target_groups.values()],
        "routes": [{"to": route.destination_cidr_block, "by": route.instance.id}
                   for route in cloud.ec2.route_tables[cloud.table].routes if route.instance],
        "forwarding": [i for i in cloud.order if not is_checked(cloud.ec2.get_instance_by_id(i))],
    }


def is_checked(instance):
    return str(instance.source_dest_check).lower() == "true"


def in_order(value):
    """No list of a state has an order that matters."""
    if isinstance(value, dict):
        return {key: in_order(of) for key, of in value.items()}
    return sorted(map(in_order, value), key=json.dumps) if isinstance(value, list) else value


def security_group(group):
    rules = [{"protocol": rule.ip_protocol, "from": rule.from_port, "to": rule.to_port, "range": rule.ip_range,
              "group": rule.source_group.get("GroupId")} for rule in group.ingress_rules]
    tags = {tag["key"]: tag["value"] for tag in group.get_tags()}
    return {"name": group.name, "about": group.description, "tags": tags, "rules": rules}


def classic(balancer):
    listeners = [{"port": int(l.load_balancer_port), "protocol": l.protocol, "to": int(l.instance_port),
                  "speaks": l.instance_protocol, "certificate": l.ssl_certificate_id, "policies": list(l.policy_names)}
                 for l in balancer.listeners]
    check = balancer.health_check
    policies = [{"name": p.policy_name, "type": p.policy_type_name, "attributes": texts(policy_attributes(p))} for p in balancer.policies]
    back_ends = [{"port": int(b.instance_port), "policies": list(b.policy_names)} for b in balancer.backends]
    return {"name": balancer.name, "scheme": balancer.scheme, "subnets": list(balancer.subnets),
            "groups": list(balancer.security_groups), "tags": balancer.tags, "listeners": listeners,
            "policies": policies, "back ends": back_ends, "targets": list(balancer.instance_ids),
            "check": {key: str(value) for key, value in vars(check).items()}, "attributes": {key: plain(of) for key, of in balancer.attributes.items()}}


def plain(attribute):
    """moto keeps what was sent beside what was there, under another spelling."""
    if not isinstance(attribute, dict):
        return texts(attribute)
    sent_last = sorted(attribute.items(), key=lambda pair: pair[0][0].isupper())
    return {key.replace("_", "").lower(): texts(value) for key, value in sent_last}


def policy_attributes(policy):
    return {key: value for key, value in vars(policy).items() if key not in ("policy_name", "policy_type_name")}


def texts(value):
    """Numbers and flags as text: moto keeps them as they were sent."""
    if isinstance(value, dict):
        return {key: texts(of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [texts(of) for of in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def tags_of(cloud, arn):
    return {tag["Key"]: tag["Value"] for tag in cloud.elbv2.tagging_service.list_tags_for_resource(arn)["Tags"]}


def network(cloud, balancer):
    listeners = [{"port": int(l.port), "protocol": l.protocol, "certificates": certificates(l), "policy": l.ssl_policy,
                  "to": [action.data.get("TargetGroupArn") for action in l.default_actions], "tags": tags_of(cloud, l.arn)}
                 for l in balancer.listeners.values()]
    return {"name": balancer.name, "scheme": balancer.scheme, "subnets": [s.id for s in balancer.subnets],
            "groups": list(balancer.security_groups), "tags": tags_of(cloud, balancer.arn), "listeners": listeners,
            "attributes": texts(balancer.attrs), "addresses": getattr(balancer, "mappings", [])}


def certificates(listener):
    return [c["CertificateArn"] if isinstance(c, dict) else c for c in listener.certificates or []]


def target_group(cloud, group):
    check = {key.removeprefix("health_check_"): value for key, value in vars(group).items()
             if key.startswith("health_check_") or key.endswith("_threshold_count")}
    return {"name": group.name, "protocol": group.protocol, "port": int(group.port), "type": group.target_type,
            "tags": tags_of(cloud, group.arn), "check": texts(check), "attributes": texts(group.attributes),
            "targets": list(group.targets), "of": list(group.load_balancer_arns)}
