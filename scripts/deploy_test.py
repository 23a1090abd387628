"""Hold compose.yaml and the Helm chart against what reads them, and start the server as they say.

    python3 scripts/deploy_test.py                       what scripts/setup deploy and team install
    python3 scripts/deploy_test.py --objects PROGRAM     also with a real versitygw, as compose.yaml starts it

There is neither a container engine nor a cluster: images are not built, and nothing is applied. Helm's own program reads
the chart; compose-go and the types of Kubernetes' API read what comes out. The server then runs here, with the arguments,
the variables and the files that it would have there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import inturn
import tomllib
from teamserver import HIGHTIDE, PASSWORD, Database, Server, database, free_port, server
from torchversions import CACHE, ROOT

TEAM = ROOT / "packaging" / "team"
HELM, CHECK = CACHE / "tools" / "go" / "helm", CACHE / "tools" / "go" / "deploycheck"
SECRETS = {"DATABASE_PASSWORD": PASSWORD, "OBJECTS_KEY_ID": "the key's id", "OBJECTS_KEY": "the key of the bucket"}
WHOLE = {
    "image.repository": "hightide",
    "store": "postgres://hightide@db.example.org/hightide?sslmode=verify-full",
    "objects": "s3://our-runs",
}
IN_A_FOLDER = {**WHOLE, "objects": "file:///var/lib/hightide/objects", "persistence.enabled": "true"}
EVERYTHING = {
    **IN_A_FOLDER,
    "secret": "hightide-keys",
    "files": "hightide-files",
    "tls": "hightide-tls",
    "persistence.storageClass": "fast",
    "ingress.enabled": "true",
    "ingress.host": "runs.example.org",
    "ingress.tlsSecret": "runs-tls",
    "ingress.className": "nginx",
    "networkPolicy.enabled": "true",
    "serviceAccountName": "hightide",
    "podLabels.team": "ml",
    "podAnnotations.owner": "ml",
    "nodeSelector.disk": "ssd",
    "imagePullSecrets[0].name": "pull",
    "tolerations[0].key": "ml",
    "tolerations[0].operator": "Exists",
}


def compose(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(CHECK), "compose", str(TEAM / "compose.yaml")],
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
    )


def helm(verb: str, values: dict[str, str], *more: str) -> subprocess.CompletedProcess[str]:
    words = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    name = ["runs"] if verb == "template" else ["--strict"]
    command = [str(HELM), verb, *name, str(TEAM / "helm"), "--kube-version", "1.31", *words, *more]
    return subprocess.run(command, capture_output=True, text=True)


def rendered(values: dict[str, str], *more: str) -> dict[str, Any]:
    """The chart's objects by their kind, as Kubernetes reads them."""
    made = helm("template", values, *more)
    assert made.returncode == 0, made.stderr
    read = subprocess.run([str(CHECK), "kubernetes"], input=made.stdout, capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    objects = json.loads(read.stdout)
    kinds = {one["kind"]: one for one in objects}
    assert len(kinds) == len(objects), [one["kind"] for one in objects]
    return kinds


def answers(address: str) -> int:
    """The status of what is asked; 0: nobody answers."""
    trusting = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(address, timeout=60, context=trusting) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0


def compose_needs_each_secret() -> None:
    """Without one of them nothing starts, and who starts it learns which is missing. None stands in the file."""
    assert compose(SECRETS).returncode == 0, compose(SECRETS).stderr
    for name in SECRETS:
        refused = compose({other: value for other, value in SECRETS.items() if other != name})
        assert refused.returncode == 1 and name in refused.stderr, refused.stderr
    services = json.loads(compose(SECRETS).stdout)["services"]
    held = [
        (name, value)
        for service in services.values()
        for name, value in service["environment"].items()
        if re.search("PASSWORD|SECRET|KEY", name)
    ]
    assert len(held) == 6 and all(value in SECRETS.values() for _, value in held), held
    assert all(service.get("healthcheck") and service.get("volumes") for service in services.values()), services
    assert [port["host_ip"] for port in services["server"]["ports"]] == ["127.0.0.1"], services["server"]["ports"]


@contextmanager
def object_store(program: str | None, service: dict[str, Any], folder: Path) -> Iterator[str]:
    """Where objects are, as the server's variable says: in versitygw by the command of compose.yaml, or in a folder."""
    if not program:
        yield f"file://{folder}/objects"
        return
    port = free_port()
    script = service["command"][0].replace("/objects", f"{folder}/objects").replace("7070", str(port))
    words = [*service["entrypoint"], script.replace("exec versitygw", f"exec {program}")]
    with subprocess.Popen(words, env={**os.environ, **service["environment"]}, stdout=subprocess.DEVNULL) as process:
        try:
            asks = service["healthcheck"]["test"][-1].replace("7070", str(port))
            until(lambda: answers(asks) == 200, process)
            yield f"s3://runs?endpoint=127.0.0.1:{port}&region=us-east-1&insecure=true"
        finally:
            process.terminate()


def until(state: Any, process: subprocess.Popen[Any]) -> None:
    """Wait for a state, as long as the process that is to reach it lives."""
    while not state():
        assert process.poll() is None, f"it ended with {process.returncode}"
        time.sleep(0.05)


def own_port(folder: Path, text: str) -> Path:
    """The team's file with a port that is free."""
    assert text.count('"0.0.0.0:7333"') == 1, text
    file = folder / "team.toml"
    file.write_text(text.replace("0.0.0.0:7333", "127.0.0.1:0"))
    return file


def compose_starts_a_server(kept: Database, program: str | None) -> None:
    """The server takes a run with compose's variables and file, and compose's question tells ready from not ready."""
    services = json.loads(compose(SECRETS).stdout)["services"]
    service = services["server"]
    image = (TEAM / "Containerfile").read_text()
    words = json.loads(re.findall(r"^CMD (.*)$", image, re.MULTILINE)[0])
    with tempfile.TemporaryDirectory() as name, object_store(program, services["objects"], Path(name)) as objects:
        folder = Path(name)
        file = own_port(folder, (TEAM / "team.toml").read_text())
        env = {**service["environment"], "HIGHTIDE_DATA": f"{folder}/data"}
        env["HIGHTIDE_STORE"] = env["HIGHTIDE_STORE"].replace("@database/", f"@127.0.0.1:{kept.port}/")
        assert env["HIGHTIDE_STORE"] == kept.address, env
        if program:
            host = re.findall("endpoint=([^&]*)", objects)[0]
            assert env["HIGHTIDE_OBJECTS"].replace("objects:7070", host) == objects, env
        env["HIGHTIDE_OBJECTS"] = objects
        at = words.index("/etc/hightide/team.toml")
        with server(env, [*words[:at], file, *words[at + 1 :]]) as s:
            test = [word.replace("7333", s.address.rsplit(":")[-1]) for word in service["healthcheck"]["test"][1:]]
            assert subprocess.run(test).returncode == 0, test
            takes_a_run(s, folder)
        assert subprocess.run(test, stderr=subprocess.DEVNULL).returncode != 0, "nobody answers, and it says ready"


def takes_a_run(s: Server, folder: Path) -> None:
    """A run is sent by a member, and the server has it."""
    own = {"PATH": os.environ["PATH"], "HIGHTIDE_DATA": f"{folder}/laptop", "HIGHTIDE_KEY": s.key("anna", "push")}
    ran = [str(HIGHTIDE), "run", "--quiet", "--push", "--server", s.address, "--project", "ranker", "--", "true"]
    done = subprocess.run(ran, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run([str(HIGHTIDE), "ls", "--json"], env=dict(s.of), capture_output=True, text=True)
    runs = json.loads(listed.stdout)["runs"]
    assert [(run["tags"]["project"], run["state"]) for run in runs] == [("ranker", "finished")], runs


def helm_accepts_the_chart() -> None:
    for values in (WHOLE, IN_A_FOLDER, EVERYTHING):
        linted = helm("lint", values)
        assert linted.returncode == 0, linted.stdout
        rendered(values)
    assert set(rendered(WHOLE)) == {"ConfigMap", "Service", "Deployment"}
    assert set(rendered(IN_A_FOLDER)) == {"ConfigMap", "Service", "Deployment", "PersistentVolumeClaim"}
    assert len(rendered(EVERYTHING)) == 6


def helm_refuses_what_cannot_be() -> None:
    """By the schema of its values: before anything is made in a cluster, and with the name of what is wrong."""
    for wrong, names in (
        ({"image.repository": ""}, "repository"),
        ({"store": "postgres://hightide:secret@db/hightide"}, "store"),
        ({"store": ""}, "store"),
        ({"objects": "gs://our-runs"}, "objects"),
        ({"objects": "file:///var/lib/hightide/objects"}, "persistence"),  # it would be lost with the pod
        ({"replicas": "2"}, "replicas"),
        ({"ingress.enabled": "true"}, "host"),
        ({"service.port": "70000"}, "port"),
        ({"persistence.size": "much"}, "size"),
    ):
        refused = helm("template", {**WHOLE, **wrong})
        assert refused.returncode != 0 and names in refused.stderr, (wrong, refused.stderr)


def the_chart_keeps_to_the_rules() -> None:
    """What Kubernetes' own profile Restricted asks of a pod; secrets are named and never written."""
    pod = rendered(EVERYTHING)["Deployment"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] and pod["automountServiceAccountToken"] is False, pod
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", pod
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }, container
    assert [variable["name"] for variable in container["env"]] == [
        "HIGHTIDE_DATA",
        "HIGHTIDE_STORE",
        "HIGHTIDE_OBJECTS",
    ]
    assert container["envFrom"] == [{"secretRef": {"name": "hightide-keys"}}], container
    strategy = rendered(WHOLE)["Deployment"]["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}, strategy
    assert rendered(IN_A_FOLDER)["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    for kind, one in rendered(EVERYTHING).items():
        if kind == "Service":
            labels = rendered(EVERYTHING)["Deployment"]["spec"]["template"]["metadata"]["labels"]
            assert one["spec"]["selector"].items() <= labels.items(), one


def the_chart_starts_a_server(kept: Database, values: dict[str, str]) -> None:
    """With the arguments, the variables and the file of the pod, the server passes each probe of it."""
    objects = rendered(values)
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = objects["ConfigMap"]["data"]["team.toml"]
        assert tomllib.loads(text)["projects"] == {"ranker": {"members": ["anna"]}}, text
        file = own_port(folder, text)
        if "tls" in values:
            certificate(folder / "tls")
        env = {one["name"]: one["value"].replace("/var/lib/hightide", name) for one in container["env"]}
        env |= {"PGPASSWORD": PASSWORD, "HIGHTIDE_STORE": kept.address}
        words = [str(file) if word == "/etc/hightide/team.toml" else word for word in container["args"]]
        with server(env, words) as s:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                asks = container[probe]["httpGet"]
                assert s.address.startswith(asks["scheme"].lower() + "://"), (s.address, asks)
                assert answers(s.address + asks["path"]) == 200, probe


def certificate(folder: Path) -> None:
    folder.mkdir()
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", metavar="PROGRAM", help="versitygw, to keep objects as compose.yaml does")
    program = parser.parse_args().objects
    if not HELM.exists() or not CHECK.exists():
        sys.exit("scripts/setup deploy installs Helm and what reads compose.yaml")
    with database() as kept:
        return inturn.run(
            [
                ("compose needs each secret", compose_needs_each_secret),
                ("compose starts a server", partial(compose_starts_a_server, kept, program)),
                ("Helm accepts the chart", helm_accepts_the_chart),
                ("Helm refuses what cannot be", helm_refuses_what_cannot_be),
                ("the chart keeps to the rules", the_chart_keeps_to_the_rules),
                ("the chart starts a server", partial(the_chart_starts_a_server, kept, IN_A_FOLDER)),
                ("the chart starts a server with TLS", partial(the_chart_starts_a_server, kept, EVERYTHING)),
            ]
        )


if __name__ == "__main__":
    sys.exit(main())
