"""What hightide serve costs while 50 machines send what they record and 200 people look at it.

    python bench/team.py [--quick]

The machines and the viewers are TestTeamLoad in bench/team_test.go: the client's own code, in a process of its own. PostgreSQL is another
process. Processor time and memory are the kernel's. It needs scripts/setup team and make build.
"""

from __future__ import annotations

import argparse
import json
import re

from common import ROOT, MiB, Row, must, publish, run


def load(seconds: int) -> list[Row]:
    done = must(
        run(
            ["go", "test", "-count=1", "-v", "-run", "^TestTeamLoad$", "./bench"],
            {"HIGHTIDE_TEAM_SECONDS": str(seconds)},
            ROOT,
        )
    )
    got = json.loads(re.findall(r"team (\{.*\})", done.stdout)[-1])
    cores, peak, slowest = got["cores"], got["peak_bytes"], got["slowest"]
    return [
        Row("50 machines send, 200 watch: processor of the server", f"{cores:.2f} cores", "<= 1", cores <= 1),
        Row("  memory of the server, highest", f"{peak / MiB:.0f} MiB", "<= 500 MiB", peak <= 500 * MiB),
        Row(
            "  pieces a second that the slowest viewer gets, of 5 that are sent",
            f"{slowest:.1f}",
            ">= 4.5",
            slowest >= 4.5,
        ),
        Row("  processor of PostgreSQL", f"{got['database_cores']:.2f} cores"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    publish("team", load(5 if parser.parse_args().quick else 60), None)


if __name__ == "__main__":
    main()
