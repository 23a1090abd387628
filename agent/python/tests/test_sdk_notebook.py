"""The notebook extension, in a real kernel."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any, Dict, List

import pytest

from test_sdk_engine import environment

CACHE = Path(os.environ.get("HIGHTIDE_CACHE", Path.home() / ".cache" / "hightide"))
PYTHON = CACHE / "notebook" / "bin" / "python"

RUNNER = """
import json, sys
import nbformat
from nbclient import NotebookClient
cells = [nbformat.v4.new_code_cell(text) for text in json.load(open(sys.argv[1]))]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True).execute()
json.dump(notebook, open(sys.argv[2], "w"))
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    """kernel(cells…) runs them in a kernel and gives each one's outputs."""
    if not PYTHON.exists():
        pytest.skip("no notebook environment: scripts/setup notebook makes one")

    def run(*cells: str) -> List[List[Dict[str, Any]]]:
        import json

        (tmp_path / "cells.json").write_text(json.dumps([textwrap.dedent(cell).strip() for cell in cells]))
        (tmp_path / "runner.py").write_text(RUNNER)
        env = environment(tmp_path)
        env.update(PYDEVD_DISABLE_FILE_VALIDATION="1", HOME=str(tmp_path), IPYTHONDIR=str(tmp_path / "ipython"))
        command = [str(PYTHON), "runner.py", "cells.json", "out.json"]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        outputs: List[List[Dict[str, Any]]] = [
            cell["outputs"] for cell in json.loads((tmp_path / "out.json").read_text())["cells"]
        ]
        return outputs

    return run


def page(outputs: List[Dict[str, Any]]) -> str:
    (found,) = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    return found if isinstance(found, str) else "".join(found)


def printed(outputs: List[Dict[str, Any]]) -> str:
    return "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream")


def test_a_cell_its_picture_and_its_line(kernel: Any) -> None:
    loaded, first, shot, fails, after, whole, plain = kernel(
        "%load_ext hightide",
        """
        %%hightide my notebook
        import time, hightide
        with hightide.span("encode"):
            held = b"x" * (150 << 20)
            time.sleep(0.5)
        print("done")
        """,
        "%hightide_snapshot here",
        "%%hightide\nraise KeyError('mine')",
        "held = None\n1",
        "%hightide",
        "held2 = b'x'\nprint(hightide.init() == hightide.report().id, len(hightide.runs()))",
    )
    assert not loaded
    assert printed(first).endswith("done\n")
    text = page(first)
    assert "<svg" in text and "cell [2]:" in text and "http://www.w3.org/2000/svg" in text
    assert not re.search(r"(src|href)=", text), "it must need nothing else"
    assert ">encode</t" in text
    assert re.search(r"<td>cell \[2\]:3</td><td>[^<]*</td><td>150 MiB</td>", text), text
    assert re.search(r"hightide: [\d.]+ MiB resident", printed(shot))
    error, again = [o for o in fails if o["output_type"] == "error"]
    assert error["traceback"] and not again["traceback"], "shown once"
    assert (error["ename"], error["evalue"]) == ("KeyError", "'mine'") and "cell [" in page(fails)
    assert after[0]["data"]["text/plain"] == "1"
    assert page(whole).startswith("<iframe srcdoc=")
    assert "True 1\n" in printed(plain)


def test_without_the_program_the_cell_runs(kernel: Any) -> None:
    (_, cell) = kernel(
        "import os; os.environ['HIGHTIDE_BINARY'] = '/nonexistent'\n%load_ext hightide",
        "%%hightide\nprint(6 * 7)",
    )
    assert "42" in printed(cell) and printed(cell).count("this program is not recorded") == 1
    assert "at the highest" in page(cell)
