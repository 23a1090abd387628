"""Whether every panel of docs/grafana.json gets data: its queries, asked of a real Prometheus that scrapes a real hightide ui.

    python bench/dashboard.py /usr/bin/prometheus [-- COMMAND]

COMMAND is what is recorded meanwhile, as `hightide imagine … -- python train.py`; without it, a small program. Queries without data are
named: a program without a GPU has no figures of devices.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from server import TRAINING, server

from common import HIGHTIDE, ROOT

VARIABLES = {"$run": ".*", "$__rate_interval": "10s"}


def asked(port: int, query: str) -> int:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url) as answer:
        return len(json.load(answer)["data"]["result"])


def main() -> None:
    binary, command = sys.argv[1], sys.argv[3:]
    port = 19090
    queries = [
        (panel["title"], target["expr"])
        for panel in json.loads((ROOT / "docs/grafana.json").read_text())["panels"]
        for target in panel.get("targets", [])
    ]
    with tempfile.TemporaryDirectory() as name, server(Path(name), "--metrics-token-file", f"{name}/token") as (
        address,
        _,
    ):
        config = Path(name) / "prometheus.yml"
        config.write_text(
            f"scrape_configs: [{{job_name: hightide, scrape_interval: 1s, authorization: {{credentials_file: {name}/token}}, "
            f"static_configs: [{{targets: ['{address}']}}]}}]\n"
        )
        recorded = command or [str(HIGHTIDE), "run", "--quiet", "--", sys.executable, "-c", TRAINING, "60"]
        training = subprocess.Popen(recorded, env={**os.environ, "HIGHTIDE_DATA": name}, stdout=subprocess.DEVNULL)
        prometheus = subprocess.Popen(
            [
                binary,
                f"--config.file={config}",
                f"--storage.tsdb.path={name}/tsdb",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=subprocess.DEVNULL,
        )
        seen: dict[tuple[str, str], int] = {}
        try:
            end = time.monotonic() + 75
            while time.monotonic() < end and len(seen) < len(queries):
                time.sleep(2)
                for one in queries:
                    try:
                        if found := asked(port, one[1]):
                            seen[one] = found
                    except OSError:  # it is not up yet
                        pass
        finally:
            prometheus.kill()
            training.kill()
    for one in queries:
        print(f"{seen.get(one, 0):3} series  {one[0]}: {one[1]}")
    print(f"{len(seen)} of {len(queries)} queries have data")


if __name__ == "__main__":
    main()
