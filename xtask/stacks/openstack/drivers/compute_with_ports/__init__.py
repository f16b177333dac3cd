"""A compute driver of Octavia without machines whose ports are really Neutron's.

The stock one keeps its ports to itself, so that the addresses of load balancers would exist nowhere.
"""
from types import SimpleNamespace

from octavia.common import clients
from octavia.compute.drivers.noop_driver import driver


class ComputeWithPorts(driver.NoopComputeDriver):

    def attach_network_or_port(self, compute_id, network_id=None, ip_address=None, port_id=None):
        network = clients.NeutronAuth.get_neutron_client().network
        if port_id is None:
            port_id = network.create_port(network_id=network_id).id
        port = network.update_port(port_id, device_id=compute_id)
        return SimpleNamespace(net_id=port.network_id, port_id=port.id, fixed_ips=port.fixed_ips)

    def detach_port(self, compute_id, port_id):
        network = clients.NeutronAuth.get_neutron_client().network
        port = network.find_port(port_id)
        if port is None:
            return
        # As Nova does: a port that it did not create is released, not deleted.
        if port.name.startswith("octavia-"):
            network.update_port(port, device_id="")
        else:
            network.delete_port(port)
