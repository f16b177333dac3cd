"""Serves moto on a free port of loopback, with what tests need besides AWS.

It prints the variables of the tests and an empty line once it is ready, and ends when its standard input does.

    POST   /kit/clouds                        a new account; answers with the IDs in it
    POST   /kit/clouds/<account>/<change>     a change behind the provider's back: [argument, ...]
    GET    /kit/clouds/<account>              everything that is in it
    GET    /kit/clouds/<account>/calls        the calls since the last time that this was asked
    POST   /kit/records/<account>/<function>  of record.py: [argument, ...]
    POST   /kit/identity                      ["i-..."]: which instance the metadata service speaks of
    GET    /kit/container                     credentials, as EKS Pod Identity gives them

An account is chosen by the header x-moto-account-id, or by a key whose ID is the account's number, as a program has it
that knows nothing of moto.
"""
import io
import json
import os
import re
import sys
import threading
import time
import traceback
import urllib.parse
from http import HTTPStatus

# A thousand images in each account would take longer than all tests.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"

import waitress
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

import as_aws
import clouds
import record

ERROR = "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors><RequestID>moto</RequestID></Response>"
TOKEN = "metadata-token"

# What a credential of another account shows.
ELSEWHERE = "199999999999"

KEY_OF_ACCOUNT = re.compile(r"Credential=(\d{12})/")


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
            return list(self.aws(environ, self.noting(environ, body, start_response)))
        except NotImplementedError as missing:
            return reply(start_response, 400, ERROR.format("InvalidAction", missing), "text/xml")
        except Exception as error:
            traceback.print_exc()
            return reply(start_response, 500, ERROR.format("InternalError", repr(error)), "text/xml")

    def noting(self, environ, body, start_response):
        """Finds the account of a call, and keeps the call there."""
        key = KEY_OF_ACCOUNT.search(environ.get("HTTP_AUTHORIZATION", ""))
        if key:
            environ["HTTP_X_MOTO_ACCOUNT_ID"] = key[1]
        cloud = self.clouds.get(environ.get("HTTP_X_MOTO_ACCOUNT_ID"))
        if not cloud:
            return start_response
        call = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
        cloud.calls.append(call)

        def note(status, *answer):
            if status.startswith("2"):
                cloud.done.append(call)
            return start_response(status, *answer)
        return note

    def control(self, method, path, arguments, environ):
        match (method, path):
            case ("POST", ["clouds"]):
                cloud = clouds.Cloud(*arguments)
                self.clouds[cloud.account] = cloud
                return cloud.facts()
            case ("GET", ["clouds", account]):
                return self.clouds[account].state()
            case ("GET", ["clouds", account, "calls"]):
                calls, self.clouds[account].calls = self.clouds[account].calls, []
                return calls
            case ("POST", ["records", account, "replay"]):
                return record.replay(self.clouds[account], *arguments, self.url)
            case ("POST", ["records", account, ("left" | "name" | "resolve") as function]):
                return getattr(record, function)(self.clouds[account], *arguments)
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
        found = [(account, region, backend.get_instance_by_id(self.instance)) for account, regions in list(ec2_backends.items())
                 for region, backend in list(regions.items()) if self.instance and backend.get_instance_by_id(self.instance)]
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
    aws = Server()
    server = waitress.create_server(aws, host="127.0.0.1", port=0, threads=8, ident=None)
    aws.url = f"http://127.0.0.1:{server.effective_port}"
    threading.Thread(target=server.run, daemon=True).start()
    print(f"MOTO_URL={aws.url}")
    # A program that the tests run besides it.
    print("".join(f"{name}={os.environ[name]}\n" for name in ["GO_AWS_CCM"] if name in os.environ), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
