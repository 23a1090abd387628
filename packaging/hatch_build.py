"""What the wheel's builder cannot know: the platform the binary runs on, and the README's place."""

from __future__ import annotations

import os
import platform
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parent.parent

# By system and processor, as Go calls them. Linux: the program is static, and the C libraries inside it need no symbol
# newer than GLIBC_2.17 (heap/tools/check-symbols); scripts/wheel_test.py has auditwheel confirm the tag. macOS: the
# oldest that programs of Go 1.26 run on.
TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
}
# HIGHTIDE_TARGET and HIGHTIDE_PROGRAM: whose wheel it is, and its program; without them that of this machine's build.
TARGET = os.environ.get("HIGHTIDE_TARGET") or ("linux/arm64" if platform.machine() == "aarch64" else "linux/amd64")
BINARY = Path(os.environ.get("HIGHTIDE_PROGRAM") or ROOT / "bin" / "hightide")


class BuildHook(BuildHookInterface[Any]):
    """Tags the wheel and adds the licence and the program, which stands beside the environment's python: no interpreter
    starts before it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not BINARY.exists():
            raise FileNotFoundError(f"{BINARY} is not built: run 'make wheel' from the project's root")
        # Hatchling packs at zlib's default and has no setting: the best takes two seconds more, and 0.1 MB less
        zlib.Z_DEFAULT_COMPRESSION = zlib.Z_BEST_COMPRESSION  # type: ignore[misc]
        build_data["tag"] = f"py3-none-{TAGS[TARGET]}"
        build_data["pure_python"] = False
        build_data["force_include"][str(ROOT / "LICENSE")] = "hightide/LICENSE"
        build_data["shared_scripts"][str(BINARY)] = "hightide.exe" if TARGET.startswith("windows") else "hightide"


class MetadataHook(MetadataHookInterface):
    """Takes the README's text, which stands one folder up."""

    def update(self, metadata: dict[str, Any]) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
