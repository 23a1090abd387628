"""The examples of docs/steps.md, each with the scheduler that it is for; 'scripts/setup steps ray' gets them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from test_frameworks import CACHE, HIGHTIDE, ROOT

STEPS = CACHE / "steps" / "bin"
RAY = CACHE / "ray" / "bin"
SAID = 49152.0  # what the step of each example returns


def ran(folder: Path, scheduler: str, *command: object, **env: str) -> str:
    """Run the example of a scheduler in the folder that it is put into, and return what was printed."""
    page = (ROOT / "docs" / "steps.md").read_text("utf-8")
    (example,) = re.findall(rf"^## {scheduler}\n\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert example.count('"/mnt/recordings"') == 1
    (folder / "dags").mkdir()
    (folder / "dags" / "example.py").write_text(example.replace("/mnt/recordings", str(folder / "recordings")))
    own = {key: value for key, value in os.environ.items() if not key.startswith(("HIGHTIDE", "PYTHON", "AIRFLOW"))}
    env = {
        "HOME": str(folder), "USER": "someone", "HIGHTIDE_BINARY": str(HIGHTIDE), "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{ROOT / 'agent/python/src'}", "HIGHTIDE_DATA": str(folder / "elsewhere"), **env,
    }  # fmt: skip
    done = subprocess.run([str(word) for word in command], cwd=folder / "dags", env={**own, **env}, text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def report(folder: Path, name: str) -> dict[str, Any]:
    """The report of the one recording; its line holds what the step took."""
    listed = subprocess.run(
        [HIGHTIDE, "ls", "--json", "--data-dir", folder / "recordings"], check=True, capture_output=True
    )
    (run,) = json.loads(listed.stdout)["runs"]
    assert run["name"] == name and run["state"] == "finished", run
    shown = subprocess.run(
        [HIGHTIDE, "report", run["id"], "--json", "--data-dir", folder / "recordings"], check=True, capture_output=True
    )
    found: dict[str, Any] = json.loads(shown.stdout)
    text = (folder / "dags" / "example.py").read_text().splitlines()
    (line,) = [number for number, words in enumerate(text, 1) if "held = b" in words]
    (lines,) = [table for table in found["tables"] if table["name"] == "span-lines"]
    columns = [column["name"] for column in lines["columns"]]
    row = dict(zip(columns, lines["rows"][0], strict=True))
    assert row["line"].endswith(f"example.py:{line}") and 47 << 20 < row["bytes"] < 50 << 20, row
    return found


def test_metaflow(tmp_path: Path) -> None:
    said = ran(tmp_path, "Metaflow", STEPS / "python", "example.py", "run")
    assert f"loss {SAID}" in said and "(hightide report" in said, said
    report(tmp_path, "Training.train")


def test_flyte(tmp_path: Path) -> None:
    said = ran(tmp_path, "Flyte", STEPS / "pyflyte", "run", "example.py", "training")
    assert str(SAID) in said and "(hightide report" in said, said
    report(tmp_path, "train")


def test_airflow(tmp_path: Path) -> None:
    """By what Airflow has for trying a DAG: the task runs in this process, under its own runner."""
    env = {"AIRFLOW_HOME": str(tmp_path / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    env["AIRFLOW__CORE__DAGS_FOLDER"] = str(tmp_path / "dags")
    tried = "from airflow.utils.db import initdb; initdb(); import example; print(example.training.test().state)"
    said = ran(tmp_path, "Airflow", STEPS / "python", "-c", tried, **env)
    assert said.rstrip().endswith("success") and f"Returned value was: {SAID}" in said, said
    tags = report(tmp_path, "train")["run"]["tags"]
    assert tags["dag"] == "training" and tags["task"] == "train" and tags["try"] == "1", tags
    assert tags["dag_run"].startswith("manual__"), tags


def test_ray(tmp_path: Path) -> None:
    said = ran(tmp_path, "Ray", RAY / "python", "example.py")
    assert f"loss {SAID}" in said and "(hightide report" in said, said
    (process,) = report(tmp_path, "train")["processes"]
    assert "ray" in str(process["command"]), process
