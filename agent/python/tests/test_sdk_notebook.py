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

        plain = [textwrap.dedent(cell).strip() if cell.startswith("\n ") else cell for cell in cells]
        (tmp_path / "cells.json").write_text(json.dumps(plain))
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


def rows(text: str) -> List[List[str]]:
    return [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)][1:]


def test_a_cell_its_picture_and_its_line(kernel: Any) -> None:
    """Cells and lines are those that the reader sees; the magic is the first line of its cell."""
    loaded, _, first, shot, fails, after, whole, plain = kernel(
        "%load_ext hightide",
        """
        def make(n):
            return b"x" * (n << 20)
        """,
        """
        %%hightide my notebook
        import time, hightide
        with hightide.span("encode"):
            held = make(150)
            other = b"y" * (40 << 20)
            time.sleep(0.5)
        print("done")
        """,
        "%hightide_snapshot here",
        "%%hightide\n\nraise KeyError('mine')",
        "held = other = None\n1",
        "%hightide",
        "held2 = b'x'\nprint(hightide.init() == hightide.report().id, len(hightide.runs()), hightide.report().text)",
    )
    assert not loaded
    assert printed(first).endswith("done\n")
    text = page(first)
    assert "<svg" in text and "cell [3]" in text and "http://www.w3.org/2000/svg" in text
    assert not re.search(r"(src|href)=", text), "it must need nothing else"
    assert ">encode</t" in text
    told = rows(text)
    assert told[0][:4] == ["cell [2]:2", "make", "return b&quot;x&quot; * (n &lt;&lt; 20)", "150 MiB"], text
    assert told[1][0] == "cell [3]:5" and told[1][2:4] == ["other = b&quot;y&quot; * (40 &lt;&lt; 20)", "40 MiB"], text
    peaks = re.findall(r"([\d.]+ MiB)</b> peak RSS", text) + re.findall(r">([\d.]+ MiB)</text>", text)
    assert len(peaks) == 2 and peaks[0] == peaks[1], "one peak in words and picture"
    known = "too short to tell growth over time", "No steady growth is seen at its lines so far"  # of a second and more
    assert any(sentence in text for sentence in known) and "Nothing" not in text
    assert re.search(r"hightide: [\d.]+ MiB resident", printed(shot))
    error, again = [o for o in fails if o["output_type"] == "error"]
    assert error["traceback"] and not again["traceback"], "shown once"
    assert (error["ename"], error["evalue"]) == ("KeyError", "'mine'") and "cell [5]" in page(fails)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error["traceback"]))
    assert "Cell In[5], line 3" in shown, shown
    assert after[0]["data"]["text/plain"] == "1"
    assert page(whole).startswith("<iframe srcdoc=")
    assert "True 1 " in printed(plain)
    assert re.search(r"cell \[2\]:2 +make +150 MiB", printed(plain)), "the engine calls cells so too"
    assert not re.search(r"ipykernel_\d|\d{6,}\.py", printed(plain))


def test_lines_of_a_magic_in_a_cell(kernel: Any) -> None:
    """A magic's code is the lines of the cell that has it, also where blank lines stand before it or between them."""
    cells = [
        "%%hightide\n%%time\n\nheld1 = b'a' * (30 << 20)\n\nheld2 = bytearray(31 << 20)\n",
        "%%hightide\n%%capture out\n\n%%time\n\nheld3 = b'a' * (33 << 20)\n\nheld4 = bytearray(34 << 20)\n",
        "%%hightide\nkept = []\nfor n in range(2):\n    %time kept.append(b'c' * (40 << 20))",
        "%%time\n\nplain = b'd' * (50 << 20)",
        "\n\nblank = b'e' * (60 << 20)",
        "%%hightide\n%%time\n\nx = 1\nraise KeyError('mine')",
        "def fails():\n    %time 1 / 0\nfails()",
        "%%hightide\n%%timeit -n1 -r1 -q timed = []\ntimed.append(b'f' * (70 << 20)); globals()['timed'] = timed",
    ]
    outputs = kernel("%load_ext hightide", *cells, "import hightide; print(hightide.report().text)")
    _, one, captured, line, _, _, fails, inner, _, told = outputs
    first = [row[:3] for row in rows(page(one))]
    assert first == [
        ["cell [2]:6", "&lt;module&gt;", "held2 = bytearray(31 &lt;&lt; 20)"],
        ["cell [2]:4", "&lt;module&gt;", "held1 = b&#x27;a&#x27; * (30 &lt;&lt; 20)"],
    ], page(one)
    assert [row[0] for row in rows(page(captured))][:2] == ["cell [3]:8", "cell [3]:6"], page(captured)
    assert rows(page(line))[0][0] == "cell [4]:4", page(line)
    assert "%time kept.append" in rows(page(line))[0][2], page(line)
    text = printed(told)
    assert re.search(r"cell \[5\]:3 .*\b50(\.0)? MiB", text), text
    assert re.search(r"cell \[6\]:3 .*\b60(\.0)? MiB", text), text
    assert re.search(r"cell \[9\]:3 .*\b70(\.0)? MiB", text), text
    assert not re.search(r"<timed|<magic|ipykernel_\d", text), text
    for outputs_of, where, code in (
        (fails, "Cell In[7], line 5", "raise KeyError"),
        (inner, "Cell In[8], line 2", "'1 / 0'"),
    ):
        error = next(o for o in outputs_of if o["output_type"] == "error")
        shown = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error["traceback"]))
        assert where in shown and code in shown, shown


def test_a_cell_that_leaks(kernel: Any) -> None:
    _, cell = kernel(
        "%load_ext hightide",
        """
        %%hightide
        import time, hightide
        kept = []
        for _ in range(120):
            kept.append(b"x" * (2 << 20))
            hightide.step()
            time.sleep(0.03)
        """,
    )
    assert re.search(r"<b><code>kept</code> \(cell \[2\]:5\) keeps [\d.]+ MiB per step</b>", page(cell)), page(cell)


def test_without_the_program_the_cell_runs(kernel: Any) -> None:
    (_, cell) = kernel(
        "import os; os.environ['HIGHTIDE_BINARY'] = '/nonexistent'\n%load_ext hightide",
        "%%hightide\nprint(6 * 7)",
    )
    assert "42" in printed(cell) and printed(cell).count("this program is not recorded") == 1
    assert "peak RSS" in page(cell)
