"""The configuration files of all services, for one folder and one set of ports."""
import getpass
import os
import shutil
import uuid

SERVICES = ("keystone", "placement", "glance", "nova", "neutron", "octavia")
SERVICE_PASSWORD = "service-password"
REGION = "RegionOne"
COMPUTES = ("compute1", "compute2")


class Layout:
    """Where everything is: software that was installed once, and the state of this run."""

    def __init__(self, software, state, ports):
        self.software, self.state, self.ports = software, state, ports
        self.etc, self.log, self.run = (os.path.join(state, name) for name in ("etc", "log", "run"))
        self.data = os.path.join(state, "data")

    def url(self, service):
        return f"http://127.0.0.1:{self.ports[service]}"

    @property
    def keystone(self):
        return self.url("keystone") + "/v3"

    @property
    def socket(self):
        return os.path.join(self.run, "mysql.sock")

    def remembered(self, name):
        """An ID that the seed wrote down."""
        path = os.path.join(self.data, "ids", name)
        return open(path).read() if os.path.exists(path) else ""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def database(layout, name):
    # Octavia kept connections long after their requests: with 15 of them it stopped answering.
    options = f"unix_socket={layout.socket}&charset=utf8mb4"
    return (f"connection = mysql+pymysql://root@localhost/{name}?{options}\n"
            "max_pool_size = 5\nmax_overflow = 100\n")


def service_login(layout, section):
    return (f"[{section}]\nauth_url = {layout.keystone}\nauth_type = password\nusername = service\n"
            f"password = {SERVICE_PASSWORD}\nproject_name = service\nuser_domain_name = Default\n"
            f"project_domain_name = Default\nregion_name = {REGION}\n")


def token_check(layout):
    return (service_login(layout, "keystone_authtoken")
            + f"www_authenticate_uri = {layout.keystone}\nservice_token_roles_required = true\n")


def render(layout):
    for folder in ("run", "log", "data/glance/images", "data/glance/staging", "data/glance/tasks",
                   "data/nova/instances", "data/lock", "data/ids"):
        os.makedirs(os.path.join(layout.state, folder), exist_ok=True)
    for name in ("mariadb",) + SERVICES:
        globals()[f"_{name}"](layout)
    write(f"{layout.etc}/clouds.yaml", _clouds(layout))


def _mariadb(layout):
    base = f"{layout.software}/mariadb/usr"
    write(f"{layout.etc}/my.cnf", f"""[mariadbd]
user={getpass.getuser()}
basedir={base}
datadir={layout.data}/mysql
lc-messages-dir={base}/share/mysql
plugin-dir={base}/lib/mysql/plugin
socket={layout.socket}
pid-file={layout.run}/mariadb.pid
log-error={layout.log}/mariadb.log
skip-networking
skip-log-bin
skip-grant-tables
skip-name-resolve
innodb_buffer_pool_size=64M
innodb_log_file_size=32M
innodb_flush_log_at_trx_commit=0
innodb_doublewrite=0
performance_schema=OFF
max_connections=700
character-set-server=utf8mb4
""")


def _keystone(layout):
    etc = f"{layout.etc}/keystone"
    write(f"{etc}/keystone.conf", f"""[DEFAULT]
log_file = {layout.log}/keystone.log
public_endpoint = {layout.url("keystone")}
[database]
{database(layout, "keystone")}
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = {layout.data}/fernet-keys
[fernet_receipts]
key_repository = {layout.data}/fernet-keys
[credential]
key_repository = {layout.data}/credential-keys
[cache]
enabled = true
backend = dogpile.cache.memory
[identity]
password_hash_algorithm = bcrypt
password_hash_rounds = 4
""")


def _placement(layout):
    write(f"{layout.etc}/placement/placement.conf", f"""[DEFAULT]
log_file = {layout.log}/placement.log
[api]
auth_strategy = keystone
[placement_database]
{database(layout, "placement")}
{token_check(layout)}
""")


def _glance(layout):
    etc, data = f"{layout.etc}/glance", f"{layout.data}/glance"
    write(f"{etc}/glance-api.conf", f"""[DEFAULT]
log_file = {layout.log}/glance.log
transport_url = fake:///
enabled_backends = files:file
node_staging_uri = file://{data}/staging
enabled_import_methods = []
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = {data}/images
[os_glance_staging_store]
filesystem_store_datadir = {data}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {data}/tasks
[database]
{database(layout, "glance")}
[paste_deploy]
flavor = keystone
[oslo_concurrency]
lock_path = {layout.data}/lock
{token_check(layout)}
""")
    shutil.copy(f"{layout.software}/venv/etc/glance/glance-api-paste.ini", etc)


def _nova(layout):
    etc, data = f"{layout.etc}/nova", f"{layout.data}/nova"
    if not os.path.exists(f"{data}/compute_id"):
        # It only has to exist: the driver in services.py names its nodes itself.
        write(f"{data}/compute_id", str(uuid.uuid4()))
    ratios = "".join(f"{begin}{what}_allocation_ratio = 1000\n"
                     for begin in ("", "initial_") for what in ("cpu", "ram", "disk"))
    user = service_login(layout, "service_user") + "send_service_user_token = true\n"
    write(f"{etc}/nova.conf", f"""[DEFAULT]
log_file = {layout.log}/nova.log
state_path = {data}
host = compute1
my_ip = 127.0.0.1
transport_url = fake:///
compute_driver = fake.ManyNodesDriver
instances_path = {data}/instances
reserved_host_memory_mb = 0
{ratios}heal_instance_info_cache_interval = 600
sync_power_state_interval = -1
reclaim_instance_interval = 604800
[api]
auth_strategy = keystone
[api_database]
{database(layout, "nova_api")}
[database]
{database(layout, "nova")}
[conductor]
workers = 1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 5
[filter_scheduler]
enabled_filters = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter
track_instance_changes = false
[quota]
instances = -1
cores = -1
ram = -1
[vnc]
enabled = false
[glance]
api_servers = {layout.url("glance")}
[oslo_concurrency]
lock_path = {layout.data}/lock
{user}
{token_check(layout)}
{service_login(layout, "placement")}
{service_login(layout, "neutron")}
""")
    shutil.copy(f"{layout.software}/venv/etc/nova/api-paste.ini", etc)


def _neutron(layout):
    etc = f"{layout.etc}/neutron"
    kinds = ("network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule")
    quotas = "".join(f"quota_{kind} = -1\n" for kind in kinds)
    write(f"{etc}/neutron.conf", f"""[DEFAULT]
log_file = {layout.log}/neutron.log
state_path = {layout.data}/neutron
transport_url = fake:///
core_plugin = ml2
service_plugins = router,segments,port_forwarding,tag
api_paste_config = {etc}/api-paste.ini
auth_strategy = keystone
dhcp_agent_notification = false
network_auto_schedule = false
router_auto_schedule = false
notify_nova_on_port_status_changes = true
notify_nova_on_port_data_changes = true
send_events_interval = 1
rpc_response_timeout = 5
max_routes = 500
[database]
{database(layout, "neutron")}
[quotas]
{quotas}
[oslo_concurrency]
lock_path = {layout.data}/lock
{token_check(layout)}
{service_login(layout, "nova")}
""")
    write(f"{etc}/ml2_conf.ini", """[ml2]
type_drivers = flat,vxlan,local
tenant_network_types = vxlan
mechanism_drivers = without_agents
extension_drivers = port_security
[ml2_type_flat]
flat_networks = *
[ml2_type_vxlan]
vni_ranges = 1:10000
""")
    shutil.copy(f"{layout.software}/venv/etc/neutron/api-paste.ini", etc)


def _octavia(layout):
    kinds = ("load_balancer", "listener", "member", "pool", "health_monitor")
    quotas = "".join(f"default_{kind}_quota = -1\n" for kind in kinds)
    write(f"{layout.etc}/octavia/octavia.conf", f"""[DEFAULT]
log_file = {layout.log}/octavia.log
transport_url = fake:///
host = octavia1
[api_settings]
auth_strategy = keystone
enabled_provider_drivers = amphora:Amphora without machines,octavia:the same
default_provider_driver = amphora
api_base_uri = {layout.url("octavia")}
[database]
{database(layout, "octavia")}
[oslo_messaging]
topic = octavia_prov
rpc_thread_pool_size = 2
{token_check(layout)}
{service_login(layout, "service_auth")}
[neutron]
region_name = {REGION}
valid_interfaces = public
[nova]
region_name = {REGION}
enable_anti_affinity = false
[glance]
region_name = {REGION}
[controller_worker]
amphora_driver = amphora_noop_driver
compute_driver = compute_with_ports
image_driver = image_glance_driver
volume_driver = volume_noop_driver
network_driver = allowed_address_pairs_driver
distributor_driver = distributor_noop_driver
loadbalancer_topology = SINGLE
client_ca = {layout.data}/ca.pem
amp_flavor_id = 1
amp_image_tag = amphora
amp_active_wait_sec = 1
amp_active_retries = 60
amp_boot_network_list = {layout.remembered("management_network")}
workers = 1
[task_flow]
engine = serial
jobboard_enabled = false
[certificates]
cert_generator = local_cert_generator
cert_manager = local_cert_manager
ca_certificate = {layout.data}/ca.pem
ca_private_key = {layout.data}/ca.key
server_certs_key_passphrase = insecure-key-do-not-use-this-key
[health_manager]
heartbeat_key = unused
[quotas]
{quotas}
""")


def _clouds(layout):
    def entry(name):
        return (f"  {name}:\n    region_name: {REGION}\n    auth:\n      auth_url: {layout.keystone}\n"
                f"      username: {name}\n      password: {name}\n      project_name: {name}\n"
                "      user_domain_name: Default\n      project_domain_name: Default\n")
    return "clouds:\n" + entry("admin") + entry("demo")
