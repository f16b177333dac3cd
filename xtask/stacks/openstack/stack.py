"""Keystone, placement, Glance, Nova, Neutron and Octavia on loopback.

    stack.py prepare SOFTWARE STATE    makes the state that every run begins with
    stack.py serve SOFTWARE STATE      serves it until standard input ends
"""
import glob
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from configuration import REGION, SERVICES, Layout, render

HERE = os.path.dirname(os.path.abspath(__file__))
DATABASES = ("keystone", "placement", "glance", "nova", "nova_api", "nova_cell0", "neutron", "octavia")
START_SECONDS = 240


def say(text):
    print(text, file=sys.stderr, flush=True)


def free_ports():
    """One port for each service, all different because all are held at once."""
    held = {name: socket.socket() for name in SERVICES}
    for each in held.values():
        each.bind(("127.0.0.1", 0))
    ports = {name: each.getsockname()[1] for name, each in held.items()}
    for each in held.values():
        each.close()
    return ports


class Stack:
    def __init__(self, software, state):
        self.layout = Layout(software, state, free_ports())
        self.children = []
        places = ("lib", "usr/lib")
        self.libraries = ":".join(path for place in places for path in glob.glob(f"{software}/mariadb/{place}/*-linux-gnu"))
        self.python = f"{software}/venv/bin/python"

    def environment(self):
        path = f"{HERE}/drivers:{HERE}"
        return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore",
                "PATH": f"{self.layout.software}/venv/bin:{os.environ['PATH']}"}

    def start(self, name, command, environment=None):
        log = open(f"{self.layout.log}/{name}.out", "w")
        child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                 env=environment or self.environment())
        self.children.append((name, child))
        return child

    def run(self, *command):
        say("  " + " ".join(os.path.basename(word) for word in command[:1] + command[-2:]))
        log = open(f"{self.layout.log}/prepare.log", "a")
        subprocess.run(command, check=True, stdout=log, stderr=log, env=self.environment())

    def mariadb(self):
        binary = f"{self.layout.software}/mariadb/usr"
        environment = {**os.environ, "LD_LIBRARY_PATH": self.libraries}
        if not os.path.isdir(f"{self.layout.data}/mysql"):
            subprocess.run([f"{binary}/bin/mariadb-install-db", f"--defaults-file={self.layout.etc}/my.cnf",
                            f"--basedir={binary}", f"--datadir={self.layout.data}/mysql", "--skip-test-db",
                            "--auth-root-authentication-method=normal"], check=True, env=environment,
                           stdout=open(f"{self.layout.log}/install-db.log", "w"), stderr=subprocess.STDOUT)
        command = [f"{binary}/sbin/mariadbd", f"--defaults-file={self.layout.etc}/my.cnf"]
        child = self.start("mariadb", command, environment)
        deadline = time.monotonic() + START_SECONDS
        while not self.sql("select 1", check=False):
            if child.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"MariaDB did not start: see {self.layout.log}")
            time.sleep(0.2)

    def sql(self, statement, check=True):
        client = f"{self.layout.software}/mariadb/usr/bin/mariadb"
        done = subprocess.run([client, "-S", self.layout.socket, "-e", statement], check=check,
                              env={**os.environ, "LD_LIBRARY_PATH": self.libraries},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def service(self, name):
        command = [self.python, f"{HERE}/services.py", name, self.layout.state, str(self.layout.ports[name])]
        return self.start(name, command)

    def wait(self, *names):
        deadline = time.monotonic() + START_SECONDS
        for name in names:
            child = dict(self.children)[name]
            while not answers(self.layout.url(name)):
                if child.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{name} did not start: see {self.layout.log}/{name}.out")
                time.sleep(0.1)

    def stop(self):
        for _, child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
        for _, child in reversed(self.children):
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()


def answers(url):
    try:
        urllib.request.urlopen(url + "/", timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def migrate(stack):
    layout = stack.layout
    for name in DATABASES:
        stack.sql(f"create database {name} character set utf8mb3")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=test",
                    "-keyout", f"{layout.data}/ca.key", "-out", f"{layout.data}/ca.pem"],
                   check=True, stderr=subprocess.DEVNULL)
    user = ("--keystone-user", str(os.getuid()), "--keystone-group", str(os.getgid()))
    keystone = ("keystone-manage", "--config-file", f"{layout.etc}/keystone/keystone.conf")
    for keys in ("fernet-keys", "credential-keys"):
        os.makedirs(f"{layout.data}/{keys}", mode=0o700)
    stack.run(*keystone, "db_sync")
    stack.run(*keystone, "fernet_setup", *user)
    stack.run(*keystone, "credential_setup", *user)
    stack.run(*keystone, "bootstrap", "--bootstrap-password", "admin", "--bootstrap-region-id", REGION,
              "--bootstrap-public-url", layout.keystone, "--bootstrap-internal-url", layout.keystone)
    stack.run("placement-manage", "--config-file", f"{layout.etc}/placement/placement.conf", "db", "sync")
    stack.run("glance-manage", "--config-file", f"{layout.etc}/glance/glance-api.conf", "db_sync")
    neutron = f"{layout.etc}/neutron"
    stack.run("neutron-db-manage", "--config-file", f"{neutron}/neutron.conf", "--config-file",
              f"{neutron}/ml2_conf.ini", "upgrade", "heads")
    stack.run("octavia-db-manage", "--config-file", f"{layout.etc}/octavia/octavia.conf", "upgrade", "head")
    nova = ("nova-manage", "--config-file", f"{layout.etc}/nova/nova.conf")
    stack.run(*nova, "api_db", "sync")
    template = "mysql+pymysql://root@localhost/{}?{{query}}"
    stack.run(*nova, "cell_v2", "map_cell0", "--database_connection", template.format("nova_cell0"))
    stack.run(*nova, "db", "sync")
    stack.run(*nova, "cell_v2", "create_cell", "--name", "cell1", "--transport-url", "fake:///",
              "--database_connection", template.format("nova"))


def prepare(stack):
    import seed
    render(stack.layout)
    stack.mariadb()
    migrate(stack)
    stack.service("keystone")
    stack.wait("keystone")
    seed.catalog(stack.layout)
    for name in ("placement", "glance", "neutron"):
        stack.service(name)
    stack.wait("placement")
    stack.service("nova")
    stack.wait("glance", "neutron", "nova")
    seed.cloud(stack.layout)


def serve(stack):
    layout = stack.layout
    render(layout)
    stack.mariadb()
    # The ports are others than those of the run that made this state.
    names = {"identity": "keystone", "compute": "nova", "placement": "placement", "image": "glance",
             "network": "neutron", "load-balancer": "octavia"}
    for kind, name in names.items():
        stack.sql("update keystone.endpoint e join keystone.service s on e.service_id = s.id set e.url = "
                  f"regexp_replace(e.url, '^http://[^/]*', '{layout.url(name)}') where s.type = '{kind}'")
    for name in ("keystone", "placement", "glance", "neutron", "octavia", "nova"):
        stack.service(name)
    stack.wait(*SERVICES)
    print(f"OPENSTACK_AUTH_URL={layout.keystone}")
    for name in ("public_network", "private_network", "private_subnet", "router"):
        print(f"OPENSTACK_{name.upper()}={layout.remembered(name)}")
    print(flush=True)
    sys.stdin.read()


def main():
    command, software, state = sys.argv[1:]
    if re.search(r"\s", software + state):
        sys.exit("the folders of the stack must not have white space in their names")
    stack = Stack(software, state)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        {"prepare": prepare, "serve": serve}[command](stack)
    finally:
        stack.stop()


main()
