"""The alerts and the dashboard: their expressions, their metrics, their runbook."""
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

# Variables of the dashboard, and what stands for them where an expression is parsed.
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "${__range_s}": "3600"}
# Metrics that Prometheus itself makes.
OF_PROMETHEUS = {"up"}


def expressions(panels):
    """Title and expression of every query below."""
    for panel in panels:
        yield from expressions(panel.get("panels", []))
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def metrics_of(expression):
    """The names of series in an expression: what is no function, keyword, label or text."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^]]*\]', " ", expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    words = re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\w*\s*\()", bare)
    return {word for word in words if word.startswith("trunkline_") or word.startswith("process_") or word == "up"}


def documented(page):
    """The metrics of docs/observability.md, with the series of histograms."""
    found = set(OF_PROMETHEUS)
    for name, kind in re.findall(r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \|", page, flags=re.M):
        found |= {name + ending for ending in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return found


def broken(root):
    import yaml

    chart = root / "helm/trunkline/files"
    alerts = [rule for group in yaml.safe_load((chart / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
    dashboard = json.loads((chart / "dashboard.json").read_text())
    page = (root / "docs/observability.md").read_text()
    runbook = (root / "docs/runbook.md").read_text()
    known = documented(page)

    queries = list(expressions(dashboard["panels"]))
    for where, expression in [(rule["alert"], rule["expr"]) for rule in alerts] + queries:
        for name in sorted(metrics_of(expression) - known):
            yield f"{where}: docs/observability.md has no metric {name}"
    yield from about_dashboard(dashboard)

    headings = re.findall(r"^## (\w+)$", runbook, flags=re.M)
    names = [rule["alert"] for rule in alerts]
    if headings != names:
        yield f"docs/runbook.md has the headings {headings}, the alerts are {names}"
    for rule in alerts:
        expected = f"docs/runbook.md#{rule['alert'].lower()}"
        if rule["annotations"].get("runbook_url") != expected:
            yield f"{rule['alert']}: runbook_url is not {expected}"
        if rule["labels"].get("severity") not in ("critical", "warning", "info"):
            yield f"{rule['alert']}: no severity"
    yield from with_promtool(root, chart, names, queries)


def about_dashboard(dashboard):
    ids = [panel["id"] for panel in every(dashboard["panels"])]
    if len(ids) != len(set(ids)):
        yield "dashboard: two panels have one id"
    for panel in every(dashboard["panels"]):
        if panel["type"] == "row":
            continue
        if panel.get("datasource", {}).get("uid") != "${datasource}":
            yield f"dashboard: {panel['title']}: a datasource is fixed"
        if not panel.get("description"):
            yield f"dashboard: {panel['title']}: no description"


def every(panels):
    for panel in panels:
        yield panel
        yield from every(panel.get("panels", []))


def with_promtool(root, chart, names, queries):
    promtool = shutil.which("promtool")
    if not promtool:
        yield "promtool is missing (Debian: prometheus): rules and their tests do not run"
        return
    tests = root / "tests/chart/alerts.test.yaml"
    text = tests.read_text()
    yield from (f"{name}: no test in {tests.relative_to(root)}" for name in names if f"alertname: {name}\n" not in text)
    with tempfile.TemporaryDirectory() as folder:
        # Each query of the dashboard as a recording rule: promtool parses those.
        recorded = []
        for number, (_, expression) in enumerate(queries):
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            recorded.append({"record": f"q{number}", "expr": re.sub(r'"\$\w+"', '".*"', expression)})
        parsed = Path(folder, "dashboard.yaml")
        parsed.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": recorded}]}))
        commands = [("check", "rules", chart / "alerts.yaml"), ("check", "rules", parsed), ("test", "rules", tests)]
        for command in commands:
            done = subprocess.run([promtool, *map(str, command)], capture_output=True, text=True, cwd=root)
            if done.returncode:
                yield f"promtool {' '.join(map(str, command))}: {done.stdout}{done.stderr}"
