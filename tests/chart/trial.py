"""A pod without a cluster: the gateway with the rendered configuration, asked by the rendered probes and by the rendered test pod."""
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from promises import PROBES, config_map, literals, of

TOKEN = "0123456789" * 5


def broken(documents, gateway):
    """What goes wrong when the rendered gateway is started on loopback, asked, and ended."""
    pod = of(documents, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    test = of(documents, "Pod")[0]["spec"]["containers"][0]
    clients, admin = (f"127.0.0.1:{free_port()}" for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in config_map(documents).items():
            Path(folder, name).write_text(text)
        env = literals(pod) | {variable["name"]: TOKEN for variable in pod["env"] if "valueFrom" in variable}
        env |= {"HOME": folder, "TRUNKLINE_SERVER__LISTEN": clients, "TRUNKLINE_ADMIN__LISTEN": admin}
        arguments = [argument.replace("/etc/trunkline", folder) for argument in pod["args"]]
        with open(Path(folder, "log"), "w+") as log:
            process = subprocess.Popen([gateway, *arguments], env=env, stdin=subprocess.DEVNULL, stderr=log)
            try:
                yield from asked(pod, test, clients, admin)
            finally:
                process.terminate()
            # It still serves for `pre_stop_delay`.
            status = process.wait(timeout=60)
            if status:
                log.seek(0)
                yield f"the gateway ended with {status}: {log.read()}"


def asked(pod, test, clients, admin):
    for probe, path in PROBES.items():
        if not until_answered(f"http://{admin}{pod[probe]['httpGet']['path']}"):
            yield f"{probe}: {path} does not answer with 200"
            return
    for token, expected in ((TOKEN, True), ("not-the-token-of-anybody", False)):
        env = {"PATH": "/usr/bin:/bin", "ADMIN": f"http://{admin}", "ENDPOINT": f"http://{clients}/mcp", "TOKEN": token}
        done = subprocess.run(test["command"], env=env, capture_output=True, text=True, timeout=60)
        if (done.returncode == 0) != expected:
            yield f"the test pod ends with {done.returncode}: {done.stdout}{done.stderr}"


def until_answered(url):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            return urllib.request.urlopen(url, timeout=5).status == 200
        except urllib.error.HTTPError:
            return False
        except OSError:
            time.sleep(0.05)
    return False


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
