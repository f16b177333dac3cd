"""Serves moto on a free port of loopback, with what tests need besides AWS.

It prints the variables of the tests and an empty line once it is ready, and ends when its standard input does.

    POST   /kit/clouds                        a new account; answers with the IDs in it
    POST   /kit/clouds/<account>/<change>     a change behind the provider's back: [argument, ...]
    GET    /kit/clouds/<account>              everything that is in it
    POST   /kit/identity                      ["i-..."]: which instance the metadata service speaks of
    GET    /kit/container                     credentials, as EKS Pod Identity gives them

An account is chosen by the header x-moto-account-id.
"""
import io
import json
import os
import sys
import threading
import time
import traceback
from http import HTTPStatus

# A thousand images in each account would take longer than all tests.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"

import waitress
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

import as_aws
import clouds

ERROR = "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors><RequestID>moto</RequestID></Response>"
TOKEN = "metadata-token"

# What a credential of another account shows.
ELSEWHERE = "199999999999"


class Server:
    def __init__(self):
        self.aws = DomainDispatcherApplication(create_backend_app)
        self.clouds, self.instance = {ELSEWHERE: clouds.Cloud(ELSEWHERE)}, None
        self.clouds[ELSEWHERE].add_instance("theirs")

    def __call__(self, environ, start_response):
        path, method = environ.get("PATH_INFO", ""), environ["REQUEST_METHOD"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"], as_aws.request.body = io.BytesIO(body), body
        try:
            if path.startswith("/kit/"):
                answer = self.control(method, path.split("/")[2:], json.loads(body or b"[]"), environ)
                return reply(start_response, 200, json.dumps(answer), "application/json")
            if path.startswith("/latest/"):
                return self.metadata(path, environ, start_response)
            return list(self.aws(environ, start_response))
        except NotImplementedError as missing:
            return reply(start_response, 400, ERROR.format("InvalidAction", missing), "text/xml")
        except Exception as error:
            traceback.print_exc()
            return reply(start_response, 500, ERROR.format("InternalError", repr(error)), "text/xml")

    def control(self, method, path, arguments, environ):
        match (method, path):
            case ("POST", ["clouds"]):
                cloud = clouds.Cloud(*arguments)
                self.clouds[cloud.account] = cloud
                return cloud.facts()
            case ("GET", ["clouds", account]):
                return self.clouds[account].state()
            case ("POST", ["clouds", account, change]):
                return getattr(self.clouds[account], change)(*arguments)
            case ("POST", ["identity"]):
                self.instance = arguments[0]
                return None
            case ("GET", ["container"]) if "HTTP_AUTHORIZATION" in environ:
                return {**temporary_keys("pod"), "AccountId": DEFAULT_ACCOUNT_ID}
            case other:
                raise ValueError(f"no such control: {other}")

    def metadata(self, path, environ, start_response):
        """moto's knows one instance only, and no identity document."""
        if path == "/latest/api/token":
            lifetime = [("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")]
            return reply(start_response, 200, TOKEN, "text/plain", lifetime)
        if environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN") != TOKEN:
            return reply(start_response, 401, "", "text/plain")
        role = {"Code": "Success", "Type": "AWS-HMAC", **temporary_keys("role")}
        facts = {"meta-data/iam/security-credentials/": "node",
                 "meta-data/iam/security-credentials/node": json.dumps(role)}
        found = [(account, region, backend.get_instance_by_id(self.instance)) for account, regions in ec2_backends.items()
                 for region, backend in regions.items() if self.instance and backend.get_instance_by_id(self.instance)]
        for account, region, instance in found:
            document = {"instanceId": instance.id, "region": region, "accountId": account,
                        "availabilityZone": instance.placement.zone}
            facts["dynamic/instance-identity/document"] = json.dumps(document)
        answer = facts.get(path.removeprefix("/latest/"))
        return reply(start_response, 200 if answer else 404, answer or "", "text/plain")


def temporary_keys(who):
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    return {"AccessKeyId": who, "SecretAccessKey": "secret", "Token": "token", "Expiration": soon}


def reply(start_response, status, text, kind, headers=()):
    data = text.encode()
    length = [("Content-Type", kind), ("Content-Length", str(len(data)))]
    start_response(f"{status} {HTTPStatus(status).phrase}", [*length, *headers])
    return [data]


def main():
    server = waitress.create_server(Server(), host="127.0.0.1", port=0, threads=8, ident=None)
    threading.Thread(target=server.run, daemon=True).start()
    print(f"MOTO_URL=http://127.0.0.1:{server.effective_port}\n", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
