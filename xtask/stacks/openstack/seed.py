"""What every run finds: users and the catalogue first, then flavors, an image, networks and a router."""
import os
import sys
import time

import openstack

from configuration import COMPUTES, REGION, SERVICE_PASSWORD, write


def connect(layout, name):
    return openstack.connect(auth_url=layout.keystone, username=name, password=name, project_name=name,
                             user_domain_name="Default", project_domain_name="Default", region_name=REGION)


def catalog(layout):
    identity = connect(layout, "admin").identity

    def user(name, password, roles):
        project = identity.create_project(name=name, domain_id="default")
        made = identity.create_user(name=name, password=password, domain_id="default",
                                    default_project_id=project.id)
        for role in roles:
            found = identity.find_role(role) or identity.create_role(name=role)
            identity.assign_project_role_to_user(project, made, found)

    user("service", SERVICE_PASSWORD, ("admin", "service"))
    identity.create_role(name="load-balancer_admin")
    # The rights that the provider's page asks for, and no more.
    user("demo", "demo", ("member", "reader", "load-balancer_member"))
    paths = {"compute": ("nova", "/v2.1"), "placement": ("placement", ""), "image": ("glance", ""),
             "network": ("neutron", ""), "load-balancer": ("octavia", "")}
    for kind, (name, path) in paths.items():
        service = identity.create_service(type=kind, name=name)
        for interface in ("public", "internal"):
            identity.create_endpoint(service_id=service.id, interface=interface, region_id=REGION,
                                     url=layout.url(name) + path)


def cloud(layout):
    admin, demo = connect(layout, "admin"), connect(layout, "demo")
    for number, (name, cpus, memory) in enumerate((("m1.tiny", 1, 512), ("m1.small", 2, 2048)), 1):
        admin.compute.create_flavor(name=name, vcpus=cpus, ram=memory, disk=1, id=str(number))
    for name, tags in (("image", []), ("amphora", ["amphora"])):
        admin.image.create_image(name=name, disk_format="raw", container_format="bare", tags=tags,
                                 visibility="public", data=b"0" * 1024, allow_duplicates=True)
    public = admin.network.create_network(name="public", is_router_external=True, provider_network_type="flat",
                                          provider_physical_network="external")
    admin.network.create_subnet(name="public-v4", network_id=public.id, ip_version=4, cidr="203.0.113.0/24",
                                gateway_ip="203.0.113.1", is_dhcp_enabled=False)
    management = admin.network.create_network(name="management")
    admin.network.create_subnet(name="management-v4", network_id=management.id, ip_version=4,
                                cidr="192.168.200.0/24", is_dhcp_enabled=False)
    private = demo.network.create_network(name="private")
    subnet = demo.network.create_subnet(name="private-v4", network_id=private.id, ip_version=4, cidr="10.6.0.0/16")
    router = demo.network.create_router(name="router", external_gateway_info={"network_id": public.id})
    demo.network.add_interface_to_router(router, subnet_id=subnet.id)
    ids = {"management_network": management.id, "public_network": public.id, "private_network": private.id,
           "private_subnet": subnet.id, "router": router.id}
    for name, value in ids.items():
        write(f"{layout.data}/ids/{name}", value)
    wait_for_computes(admin)
    for number, host in enumerate(COMPUTES, 1):
        group = admin.compute.create_aggregate(name=f"az{number}", availability_zone=f"az{number}")
        admin.compute.add_host_to_aggregate(group, host)


def wait_for_computes(admin):
    for _ in range(120):
        up = {service.host for service in admin.compute.services(binary="nova-compute") if service.state == "up"}
        if set(COMPUTES) <= up and set(COMPUTES) <= {known.name for known in admin.compute.hypervisors()}:
            return
        time.sleep(1)
    sys.exit(f"computes did not come up: {os.linesep.join(sorted(up))}")
