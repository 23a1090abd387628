"""The examples of docs/cloud.md, each with the variables and folders that its service makes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_frameworks import CACHE

ROOT = Path(__file__).resolve().parents[2]
CLOUD = ROOT / "examples" / "cloud"
HIGHTIDE = ROOT / "bin" / "hightide"
HOLDS = "held = bytearray(32 << 20)\nprint('done')\n"
GROWS = "import time\nheld = []\nwhile True:\n    held.append(bytearray(8 << 20))\n    time.sleep(0.05)\n"


def environment(folder: Path, **more: str) -> dict[str, str]:
    own = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HIGHTIDE", "SLURM", "SM_", "AIP_", "AZUREML_", "RAY_"))
    }
    path = f"{HIGHTIDE.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**own, "HOME": str(folder), "PATH": path, **more}


def shown(data: Path, run: str) -> dict[str, Any]:
    """The report of a run, by whoever has the folder."""
    done = subprocess.run(
        [HIGHTIDE, "show", run, "--json", "--data-dir", data], check=True, capture_output=True, text=True
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_slurm(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HOLDS)
    env = environment(tmp_path, SLURM_JOB_ID="4711", SLURM_JOB_NAME="train", SLURM_SUBMIT_DIR=str(tmp_path))
    subprocess.run(["bash", CLOUD / "slurm.sh", "train.py"], cwd=tmp_path, env=env, check=True, capture_output=True)
    report = shown(tmp_path / "hightide", "train-4711")
    assert report["run"]["tags"] == {"job": "4711"} and report["headline"]["exit_code"] == 0, report["headline"]


def test_slurm_prolog(tmp_path: Path) -> None:
    """A cluster whose prologs and epilog are the examples: a job that knows nothing of it writes where it is to, and its
    report lies beside once it has ended. One that records nothing leaves nothing."""
    needed = ("slurmctld", "slurmd", "munged", "sbatch")
    if any(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None for name in needed):
        pytest.skip("no Slurm: scripts/setup slurm installs it")
    jobs = tmp_path / "jobs"
    (tmp_path / "train.py").write_text(HOLDS + "import sys\nsys.exit(3)\n")
    (tmp_path / "job.sh").write_text("#!/bin/bash\nhightide run -q --name mine -- python train.py\n")
    (tmp_path / "none.sh").write_text("#!/bin/bash\ntrue\n")
    env = environment(tmp_path, HIGHTIDE_JOBS=str(jobs))
    # slurmd gives the scripts an environment of its own: where the folder is, and hightide, is written into copies
    for script in ("prolog.sh", "task_prolog.sh", "epilog.sh"):
        text = (CLOUD / "slurm" / script).read_text().replace("/shared/hightide", str(jobs))
        (tmp_path / script).write_text(text.replace("/usr/local/bin", str(HIGHTIDE.parent)))
        (tmp_path / script).chmod(0o755)
    more = tmp_path / "more.conf"
    more.write_text(
        f"Prolog={tmp_path}/prolog.sh\nTaskProlog={tmp_path}/task_prolog.sh\nEpilog={tmp_path}/epilog.sh\nPrologFlags=Alloc\n"
    )
    with tempfile.TemporaryDirectory(prefix="slurm", dir="/tmp") as folder:  # a short path: it holds a socket
        cluster = ROOT / "scripts" / "slurm-cluster"
        env["SLURM_CONF"] = f"{folder}/slurm.conf"

        def ended(script: str) -> str:
            """The number of a job, once it and its epilog have ended."""
            submitted = ["sbatch", "--parsable", "--wait", "--chdir", str(tmp_path), script]
            number = subprocess.run(submitted, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True).stdout.strip()
            assert number, script
            while subprocess.run(
                ["squeue", "--noheader", "--states=all", "--format=%T", "--jobs", number],
                env=env, capture_output=True, text=True,
            ).stdout.strip() == "COMPLETING":  # fmt: skip
                time.sleep(0.1)
            return number

        try:
            subprocess.run([cluster, "start", folder, "1"], env={**env, "SLURM_CLUSTER_MORE": str(more)}, check=True)
            recorded, nothing = ended("job.sh"), ended("none.sh")
        finally:
            subprocess.run([cluster, "stop", folder], env=env, check=True)
    said = (tmp_path / f"slurm-{recorded}.out").read_text()
    text = (jobs / recorded / "report-node1.txt").read_text()
    assert "mine: python train.py" in text and "exit code 3" in text, (text, said)
    report = shown(jobs / recorded, "mine")
    assert report["headline"]["exit_code"] == 3 and (jobs / recorded).stat().st_mode & 0o777 == 0o700, report
    assert not (jobs / nothing).exists()


def test_sagemaker(tmp_path: Path) -> None:
    """What the service packs is read back elsewhere."""
    out = tmp_path / "opt" / "ml" / "output" / "data"
    out.mkdir(parents=True)
    (tmp_path / "train.py").write_text(HOLDS)
    env = environment(tmp_path, SM_OUTPUT_DATA_DIR=str(out), TRAINING_JOB_NAME="job-1")
    command = ["bash", str(CLOUD / "sagemaker.sh"), "train.py", "--epochs", "3"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    there = tmp_path / "elsewhere"
    there.mkdir()
    subprocess.run(["tar", "czf", there / "output.tar.gz", "."], cwd=out, check=True)
    subprocess.run(["tar", "xzf", "output.tar.gz"], cwd=there, check=True)
    report = shown(there / "hightide", "last")
    assert report["run"]["tags"] == {"job": "job-1"}, report["run"]
    assert report["run"]["command"][1:] == ["train.py", "--epochs", "3"], report["run"]


# Vertex AI mounts buckets under /gcs: in a user namespace, a root folder that has one beside what this machine has.
WITH_GCS = """
    mount -t tmpfs none root
    for at in /*; do
        if [ -L "$at" ]; then cp -P "$at" root; elif [ -d "$at" ]; then mkdir "root$at"; mount --rbind "$at" "root$at"; fi
    done
    mkdir root/gcs
    mount --bind buckets root/gcs
    exec chroot root sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
"""


def test_vertex(tmp_path: Path) -> None:
    """The recording is one file in the bucket, also of a program that fails; it is read from there."""
    out = tmp_path / "buckets" / "ours" / "run 7" / "checkpoints"
    for folder in ("root", "buckets/ours"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "train.py").write_text(HOLDS + "import sys\nsys.exit(3)\n")
    places = {"AIP_MODEL_DIR": "gs://ours/run 7/model/", "AIP_CHECKPOINT_DIR": "gs://ours/run 7/checkpoints/"}
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", WITH_GCS, "sh",
         "bash", CLOUD / "vertex.sh", "train.py", "--epochs", "3"],
        cwd=tmp_path, env=environment(tmp_path, CLOUD_ML_JOB_ID="4711", **places), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 3 and done.stdout.startswith("done\n"), done
    assert [file.name for file in out.iterdir()] == ["4711.hightide"]
    report = shown(tmp_path / "elsewhere", str(out / "4711.hightide"))
    assert report["run"]["name"] == "4711" and report["headline"]["exit_code"] == 3, report["headline"]
    assert report["run"]["command"][1:] == ["train.py", "--epochs", "3"], report["run"]


def test_azureml(tmp_path: Path) -> None:
    """What lies in outputs/ is copied, and read elsewhere."""
    (tmp_path / "train.py").write_text(HOLDS)
    env = environment(tmp_path, AZUREML_RUN_ID="calm_sun_1", AZUREML_EXPERIMENT_ID="e")
    command = ["bash", str(CLOUD / "azureml.sh"), "train.py", "--epochs", "3"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    shutil.copytree(tmp_path / "outputs", tmp_path / "downloaded")
    report = shown(tmp_path / "elsewhere", str(tmp_path / "downloaded" / "calm_sun_1.hightide"))
    assert report["run"]["name"] == "calm_sun_1" and report["headline"]["exit_code"] == 0, report["headline"]
    assert report["headline"]["peak"]["host_rss_bytes"] > 32 << 20, report["headline"]


TASKS = """
import os, ray, hightide
@ray.remote
@hightide.recorded(folder=os.environ["RECORDINGS"])
def work():
    return sum(b"\\1" * (48 << 20))
ray.init()
print(ray.get(work.remote()))
"""


def test_ray_job(tmp_path: Path) -> None:
    """The program of a job and a task of it, by the variables that Ray's job manager sets; Ray itself is real."""
    ray = CACHE / "ray" / "bin"
    (tmp_path / "train.py").write_text(TASKS)
    metadata = {"metadata": {"job_submission_id": "raysubmit_abc", "job_name": "raysubmit_abc"}}
    env = environment(
        tmp_path, RAY_JOB_CONFIG_JSON_ENV_VAR=json.dumps(metadata), RECORDINGS=str(tmp_path / "recordings"),
        HIGHTIDE_BINARY=str(HIGHTIDE), PYTHONPATH=str(ROOT / "agent/python/src"),
    )  # fmt: skip
    env["PATH"] = f"{ray}:{env['PATH']}"
    command = ["bash", str(CLOUD / "ray_job.sh"), "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and str(48 << 20) in done.stdout, done.stdout + done.stderr
    report = shown(tmp_path / "recordings", "raysubmit_abc")
    assert report["headline"]["exit_code"] == 0, report["headline"]
    spans = [row for table in report["tables"] if table["name"] == "spans" for row in table["rows"]]
    assert [span[0] for span in spans] == ["work"], spans


@contextlib.contextmanager
def limited(mebibytes: int) -> Iterator[Path]:
    """A control group with so much memory, as a kubelet makes one; its file of processes."""
    groups = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().split())
    first = "memory" in groups  # version 1
    top = Path("/sys/fs/cgroup/memory" if first else "/sys/fs/cgroup")
    group = top / groups.get("memory", groups.get("", "/")).lstrip("/") / f"hightide-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(mebibytes << 20))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control group with a limit can be made here: {error}")
    try:
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def test_kubernetes(tmp_path: Path) -> None:
    """A pod that the kernel kills for its memory: another one tells why, from the volume."""
    job = yaml.safe_load((CLOUD / "kubernetes.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
    volume = tmp_path / "recordings"
    words = {"$(POD_NAME)": "train-abc12", container["volumeMounts"][0]["mountPath"]: str(volume)}
    command = [words.get(word, word) for word in container["command"]]
    (tmp_path / "train.py").write_text(GROWS)
    with limited(limit) as processes:
        enters = f'echo $$ > "{processes}" && exec "$@"'
        done = subprocess.run(
            ["sh", "-c", enters, "sh", *command],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
        )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr  # as the program ended
    report = shown(volume, "train-abc12")
    (killed,) = [finding for finding in report["findings"] if finding["kind"] == "oom"]
    assert "the control group ran out of memory" in killed["text"] and f"{limit} MiB" in killed["text"], killed
    assert any("train.py:4" in str(table) for table in report["tables"]), report["tables"]


def test_a_whole_pod_is_killed(tmp_path: Path) -> None:
    """hightide ends with the program, without a word: what was recorded until then is told."""
    (tmp_path / "train.py").write_text(GROWS + "    len(held) == 60 and print('grown', flush=True)\n")
    with limited(4096) as processes:
        enters = f'echo $$ > "{processes}" && exec hightide run --quiet --data-dir recordings -- python train.py'
        pod = subprocess.Popen(
            ["sh", "-c", enters], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
        )
        assert pod.stdout is not None and pod.stdout.readline() == "grown\n"
        while alive := processes.read_text().split():
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            pod.poll()
        pod.stdout.close()
        pod.wait()
    report = shown(tmp_path / "recordings", "last")
    assert "exit_code" not in report["headline"] and report["headline"]["peak"]["host_rss_bytes"] > 100 << 20
    assert any("train.py:4" in str(finding) for finding in report["findings"]), report["findings"]
