"""Runs one OpenStack project as one process on loopback: services.py NAME STATE PORT

The APIs are the projects' own WSGI applications. Nova and Octavia also run their RPC services (conductor, scheduler,
computes; controller worker) in the same process, over the in-process transport of oslo.messaging: no broker.
"""
import os
import sys

NAME, STATE, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
from configuration import COMPUTES  # noqa: E402
ETC = f"{STATE}/etc/{NAME}"


def serve(application, threads=6):
    from waitress import serve
    serve(application, host="127.0.0.1", port=PORT, threads=threads, ident=None,
          clear_untrusted_proxy_headers=True)


def keystone():
    os.environ["OS_KEYSTONE_CONFIG_DIR"] = ETC
    from keystone.wsgi.api import application
    serve(application)


def placement():
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = ETC
    from placement.wsgi.api import application
    serve(application, 4)


def glance():
    os.environ["OS_GLANCE_CONFIG_DIR"] = ETC
    from glance.wsgi.api import application
    serve(application, 4)


def neutron():
    os.environ["OS_NEUTRON_CONFIG_DIR"] = ETC
    os.environ["OS_NEUTRON_CONFIG_FILES"] = "neutron.conf;ml2_conf.ini"
    from neutron.wsgi.api import application
    serve(application, 8)


def octavia():
    sys.argv = ["octavia", "--config-file", f"{ETC}/octavia.conf"]
    from octavia.api import app
    application = app.setup_app(argv=sys.argv)
    from octavia.controller.queue.v2 import consumer
    from oslo_config import cfg
    consumer.ConsumerService(0, cfg.CONF).run()
    serve(application)


def nova():
    os.environ["OS_NOVA_CONFIG_DIR"] = ETC
    from nova import monkey_patch
    monkey_patch.patch()
    import shlex
    import eventlet
    import eventlet.wsgi
    import os_brick
    import os_vif
    from oslo_privsep import priv_context
    from nova.api.openstack import wsgi_app
    from nova.compute import rpcapi as compute_rpcapi
    from nova.conductor import rpcapi as conductor_rpcapi
    from nova.scheduler import rpcapi as scheduler_rpcapi
    import nova.conf
    from nova import objects, service, utils
    from nova.virt import fake
    conf = nova.conf.CONF
    objects.register_all()
    fake.ManyNodesDriver = many_nodes_driver()
    application = wsgi_app.init_application("osapi_compute")
    priv_context.init(root_helper=shlex.split(utils.get_root_helper()))
    os_brick.setup(conf)
    os_vif.initialize()
    objects.Service.enable_min_version_cache()

    def start(binary, topic, host=None):
        started = service.Service.create(binary=binary, topic=topic, host=host)
        started.start()
        return started

    kept = [start("nova-conductor", conductor_rpcapi.RPC_TOPIC),
            start("nova-scheduler", scheduler_rpcapi.RPC_TOPIC)]
    listening = eventlet.listen(("127.0.0.1", PORT))
    for host in COMPUTES:
        conf.set_override("host", host)
        kept.append(start("nova-compute", compute_rpcapi.RPC_TOPIC, host))
    conf.clear_override("host")
    # In a copied database all of them were last seen long ago.
    for each in kept:
        each.servicegroup_api._driver._report_state(each)
    eventlet.wsgi.server(listening, application, log_output=False)


def many_nodes_driver():
    """Several fake hypervisors in one process, each with a UUID made from its name."""
    import uuid
    from nova import context, objects
    from nova.compute import power_state
    from nova.virt import fake

    class ManyNodesDriver(fake.PredictableNodeUUIDDriver):
        vcpus, memory_mb, local_gb = 1000, 800000, 600000

        def get_nodenames_by_uuid(self, refresh=False):
            return {str(uuid.uuid5(uuid.NAMESPACE_DNS, name)): name for name in self.get_available_nodes()}

        def init_host(self, host):
            super().init_host(host)
            for known in objects.InstanceList.get_by_host(context.get_admin_context(), host):
                state = known.power_state or power_state.RUNNING
                self.instances[known.uuid] = fake.FakeInstance(known.name, state, known.uuid)

    return ManyNodesDriver


sys.argv = [NAME]
globals()[NAME]()
