"""What every rendering of the chart promises, beyond the schemas of Kubernetes."""
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
# What stands for a ConfigMap that the chart does not make.
OF_SOMEBODY_ELSE = "[[auth.tokens]]\nname = 'ci'\ntoken = '0123456789012345'\n"
PROBES = {"startupProbe": "/startupz", "readinessProbe": "/readyz", "livenessProbe": "/livez"}
# The keys in which the containers `check` and `trunkline` may differ.
OWN_KEYS = {"name", "args", "terminationMessagePolicy", "ports", *PROBES}


def of(documents, kind):
    return [document for document in documents if document["kind"] == kind]


def config_map(documents):
    return next(map for map in of(documents, "ConfigMap") if "chart.toml" in map["data"])["data"]


def literals(container):
    """The variables of a container that have their value in the object."""
    return {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable}


def seconds(text):
    return int(text.removesuffix("s"))


def broken(documents):
    """Every promise that these objects break."""
    deployment = of(documents, "Deployment")[0]["spec"]
    template = deployment["template"]
    pod = template["spec"]
    gateway = pod["containers"][0]
    chart = tomllib.loads(config_map(documents)["chart.toml"])
    ports = {port["name"]: port["containerPort"] for port in gateway["ports"]}

    for spec in [pod] + [test["spec"] for test in of(documents, "Pod")]:
        context = spec["securityContext"]
        if not context.get("runAsNonRoot") or context.get("seccompProfile") != {"type": "RuntimeDefault"}:
            yield "a pod is not restricted"
        if spec.get("automountServiceAccountToken") is not False:
            yield "a pod has a token of the cluster"
        for container in spec.get("initContainers", []) + spec["containers"]:
            if container.get("securityContext") != RESTRICTED:
                yield f"the container {container['name']} is not restricted"

    for init in pod.get("initContainers", []):
        differing = sorted(key for key in {*init, *gateway} - OWN_KEYS if init.get(key) != gateway.get(key))
        if differing or init["args"] != ["check", *gateway["args"][1:]]:
            yield f"the container {init['name']} differs from {gateway['name']}: {', '.join(differing) or init['args']}"

    for name, variable in {"http": "TRUNKLINE_SERVER__LISTEN", "admin": "TRUNKLINE_ADMIN__LISTEN"}.items():
        listen = literals(gateway).get(variable, "")
        if not listen.endswith(f":{ports[name]}"):
            yield f"the container's port {name} is {ports[name]}, and the gateway listens at {listen}"
    for probe, path in PROBES.items():
        if gateway[probe]["httpGet"] != {"path": path, "port": "admin"}:
            yield f"{probe} asks {gateway[probe]['httpGet']}"

    shutdown = chart["server"]["shutdown"]
    needs = seconds(shutdown["pre_stop_delay"]) + seconds(shutdown["grace"]) + 10
    if pod["terminationGracePeriodSeconds"] < needs:
        yield f"terminationGracePeriodSeconds is {pod['terminationGracePeriodSeconds']}: the end takes up to {needs} s"

    claims = {one["name"] for one in pod["volumes"] if "persistentVolumeClaim" in one}
    state = next((one["mountPath"] for one in gateway["volumeMounts"] if one["name"] == "state"), None)
    if state != literals(gateway).get("XDG_STATE_HOME") or (state and ("state" not in claims or deployment["strategy"] != {"type": "Recreate"})):
        yield f"the state folder is {state}, on {claims}, and pods take turns by {deployment['strategy']}"

    labels = template["metadata"]["labels"]
    selectors = [deployment["selector"]["matchLabels"]]
    selectors += [service["spec"]["selector"] for service in of(documents, "Service")]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of(documents, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of(documents, "NetworkPolicy")]
    for selector in selectors:
        if set(selector) != {"app.kubernetes.io/name", "app.kubernetes.io/instance"} or not selector.items() <= labels.items():
            yield f"a selector is {selector}"
        if any(selector.items() <= pod["metadata"]["labels"].items() for pod in of(documents, "Pod")):
            yield "a Service would lead to the test's pod"

    services = {service["metadata"]["name"]: service for service in of(documents, "Service")}
    for name, service in services.items():
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in ports:
                yield f"the Service {name} leads to the port {port['targetPort']}"
    endpoint = next(service for service in services.values() if service["metadata"]["labels"]["app.kubernetes.io/component"] == "endpoint")
    paths = [chart["server"]["path"], "/sse", "/message", "/ws"]
    for path in (path for ingress in of(documents, "Ingress") for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]):
        backend = path["backend"]["service"]
        if backend != {"name": endpoint["metadata"]["name"], "port": {"name": "http"}} or path["path"] not in paths:
            yield f"the Ingress leads from {path['path']} to {backend}"
    for backend in (one for route in of(documents, "HTTPRoute") for rule in route["spec"]["rules"] for one in rule["backendRefs"]):
        if backend != {"name": endpoint["metadata"]["name"], "port": endpoint["spec"]["ports"][0]["port"]}:
            yield f"the HTTPRoute leads to {backend}"
    for monitor in of(documents, "ServiceMonitor"):
        selector = monitor["spec"]["selector"]["matchLabels"].items()
        found = [name for name, service in services.items() if selector <= service["metadata"]["labels"].items()]
        if len(found) != 1 or "admin" not in [port["name"] for port in services[found[0]]["spec"]["ports"]]:
            yield f"the ServiceMonitor finds {found}"

    secrets = {secret["metadata"]["name"]: secret["data"] for secret in of(documents, "Secret")}
    for variable in gateway["env"]:
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        if reference and secrets and reference["key"] not in secrets.get(reference["name"], {}):
            yield f"{variable['name']} is taken from a Secret that is not there: {reference}"


def configuration(documents, gateway):
    """Judges the configuration as the init container does; without an init container, as the gateway's container would."""
    if not gateway:
        yield "no gateway is built, so the configuration is not checked (TRUNKLINE_BIN)"
        return
    files = {"config.toml": OF_SOMEBODY_ELSE, **config_map(documents)}
    pod = of(documents, "Deployment")[0]["spec"]["template"]["spec"]
    container = pod.get("initContainers", pod["containers"])[0]
    done, written = check(container, files, gateway)
    if done.returncode or written:
        yield f"trunkline check: {done.stdout}{done.stderr}{' '.join(written)}"
    files["chart.toml"] = files["chart.toml"].replace("pre_stop_delay", "pre_stop_delays")
    done, _ = check(container, files, gateway)
    if done.returncode != 3 or "chart.toml:" not in done.stdout:
        yield f"trunkline check accepts an unknown key: {done.stdout}{done.stderr}"


def check(container, files, gateway):
    """Runs `trunkline check` with the arguments and variables of a container; returns its end and the files that it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        config, home = Path(folder, "config"), Path(folder, "home")
        config.mkdir()
        home.mkdir()
        for name, text in files.items():
            Path(config, name).write_text(text)
        before = set(Path(folder).rglob("*"))
        referred = re.findall(r"\$\{([A-Z0-9_]+)\}", "".join(files.values()))
        env = {name: value.replace("/var/lib/trunkline", str(home)) for name, value in literals(container).items()}
        env |= {name: "0123456789" * 5 for name in referred}
        arguments = [argument.replace("/etc/trunkline", str(config)) for argument in container["args"][1:]]
        done = subprocess.run([gateway, "check", *arguments], capture_output=True, text=True, env=env)
        return done, sorted(str(path) for path in set(Path(folder).rglob("*")) - before)
