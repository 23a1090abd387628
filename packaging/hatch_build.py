"""What the wheel's builder cannot know: the platform the binary runs on, and the README's place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parent.parent

# The program is static, and the C library inside it needs no symbol newer than GLIBC_2.17
# (heap/tools/check-symbols); scripts/wheel_test.py has auditwheel confirm the tag.
TAG = "py3-none-manylinux_2_17_x86_64"


class BuildHook(BuildHookInterface[Any]):
    """Tags the wheel and adds the licence and the C library."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        binary = ROOT / "bin" / "hightide"
        if not binary.exists():
            raise FileNotFoundError(f"{binary} is not built: run 'make wheel' from the project's root")
        build_data["tag"] = TAG
        build_data["pure_python"] = False
        build_data["force_include"][str(ROOT / "LICENSE")] = "hightide/LICENSE"


class MetadataHook(MetadataHookInterface):
    """Takes the README's text, which stands one folder up."""

    def update(self, metadata: dict[str, Any]) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
