"""What MkDocs does not know of our pages: one for each command, as the command itself says it, one of all that the
Python package has, the examples to be saved, and that other files of the sources are not part of the site."""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import site_sdk  # noqa: E402

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def commands() -> list[str]:
    """The commands that the help lists."""
    said = subprocess.run([ROOT / "bin" / "hightide", "--help"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^  ([a-z]+)  ", said.split("Available Commands:")[1].split("Flags:")[0], re.MULTILINE)


def on_config(config: Any) -> Any:
    """The commands stand under Reference, behind the page on all of them, and so do names of the package."""
    (reference,) = (part["Reference"] for part in config.nav if "Reference" in part)
    reference.insert(1, {"Each command": [{f"hightide {name}": f"reference/{name}.md"} for name in commands()]})
    python = next(i for i, part in enumerate(reference) if "Python" in part)
    reference.insert(python + 1, {"Python, by name": "reference/python.md"})
    return config


def on_files(files: Any, config: Any) -> Any:
    for name in commands():
        said = subprocess.run([ROOT / "bin" / "hightide", name, "--help"], check=True, capture_output=True, text=True)
        page = f"# hightide {name}\n\n```text\n{said.stdout.rstrip()}\n```\n"
        files.append(File.generated(config, f"reference/{name}.md", content=page))
    files.append(File.generated(config, "reference/python.md", content=site_sdk.page()))
    for example in sorted((ROOT / "examples").rglob("*.*")):
        if example.suffix != ".pyc":
            name = example.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, content=example.read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """An example lies on the site; links to other files of the sources are their words alone."""
    folder = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        place, _, anchor = target.partition("#")
        if picture or "://" in target or not place:
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, place))
        if path.startswith("../examples/"):
            return f"[{words}]({posixpath.relpath(path.removeprefix('../'), folder or '.')})"
        return found[0] if files.get_file_from_path(path) else words

    return LINK.sub(link, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The one script that the theme would fetch lies with the site."""
    return own_script(output, posixpath.dirname(page.url))


def on_post_template(output: str, template_name: str, config: Any) -> str:
    return own_script(output, "")


def own_script(html: str, folder: str) -> str:
    path = posixpath.relpath("assets/iframe-worker.js", folder or ".")
    return html.replace("https://unpkg.com/iframe-worker/shim", path)
