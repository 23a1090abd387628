"""The project's own tools: setting up again installs nothing, broken links are found, counts are right."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check  # noqa: E402
import vulnerabilities  # noqa: E402


def run(*command: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **variables})


def test_second_setup_does_nothing() -> None:
    """Silent, and with proxies that lead nowhere: nothing was asked of any registry."""
    nowhere = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], "127.0.0.1:9")
    done = run("scripts/setup", "torch", "tools", "go", "staticcheck", **nowhere)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_setup_fails_in_one_line() -> None:
    done = run("scripts/setup", "torch", HIGHTIDE_CACHE="/proc/nowhere")
    assert done.returncode == 4
    assert "setup: cannot write /proc/nowhere" in done.stderr.splitlines()[-1]


def test_setup_names_a_missing_python(tmp_path: Path) -> None:
    for tool in ("bash", "dirname", "mkdir", "flock", "sha256sum", "cut", "cat"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    done = run(tmp_path / "bash", "scripts/setup", "torch", HIGHTIDE_CACHE=str(tmp_path / "cache"), PATH=str(tmp_path))
    assert done.returncode == 4
    assert done.stderr.startswith("setup: no Python 3.11 to 3.13 on PATH")


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading, `code` too\n\n# A heading, code too\n")
    (tmp_path / "page.md").write_text(
        "[ok](there.md) [ok](there.md#a-heading-code-too) [ok](there.md#a-heading-code-too-1)\n"
        "[gone](nowhere.md) [no heading](there.md#other) [web](https://example.org/x)\n"
        "```\n[not a link](code.md)\n```\n![picture](missing.png) `[code](x.md)`\n"
        "`go test ./room -run There` `go test ./room -run Renamed -update` `go test ./room -run xx`\n"
        "`room/it_test.go` `room/renamed.go` `elsewhere/file.go` `room/made.json`\n"
        "[a link that goes\non](over.md) [ok](there.md)\n"
    )
    (tmp_path / ".gitignore").write_text("made.json\n")
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "it_test.go").write_text("package room\n\nfunc TestThere() {}\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    done = run(sys.executable, "scripts/links.py", tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "page.md:2: nowhere.md: no such file",
        "page.md:2: there.md#other: no such heading",
        "page.md:6: missing.png: no such file",
        "page.md:9: over.md: no such file",
        "page.md:7: Renamed: no such test",
        "page.md:8: room/renamed.go: no such file",
        "2 files, 6 broken links",
    ]


def test_long_sentences_and_private_words_are_found(tmp_path: Path) -> None:
    text, code, word = tmp_path / "page.md", tmp_path / "code.go", "glan" + "ces"  # else it is found here, too
    text.write_text(
        f"# A heading {'word ' * 40}\n\nShort. {'Word ' * 31}end. {'Word ' * 29}end.\n\n"
        f"- The `{word}` are code, the {word} are not.\n\n```\n{'word ' * 40}\n```\n"
    )
    code.write_text(f"// {'word ' * 40}\nvar {word}, {word}s int\n")
    done = run(sys.executable, "scripts/prose.py", text, code)
    assert done.returncode == 1
    assert re.findall(r"(\w+\.\w+:\d+): (\S+ \S+ \S+)", done.stdout) == [
        ("page.md:3", "a sentence of"),
        ("page.md:5", f'"{word}" is a'),
        ("code.go:2", f'"{word}" is a'),
    ]
    assert done.stdout.splitlines()[-1] == "2 files, 3 faults"


def test_closing_lines_are_counted() -> None:
    def counts(count: Any) -> "tuple[int, int, int]":
        return (count.passed, count.failed, count.skipped)

    assert counts(check.count_words("12 passed, 1 skipped in 3.21s\n")) == (12, 0, 1)
    assert counts(check.count_words("==== 1 failed, 2 passed, 1 error in 61.00s (0:01:01) ====\n")) == (2, 2, 0)
    assert counts(check.count_words("      Tests  21 passed (21)\n")) == (21, 0, 0)
    assert counts(check.count_words("5 passed, 0 failed\n")) == (5, 0, 0)
    events = '{"Action":"pass","Test":"A"}\n{"Action":"fail","Test":"B"}\n{"Action":"pass","Test":"A/sub"}\n'
    assert counts(check.count_go(events + '{"Action":"fail","Package":"p"}\n')) == (1, 1, 0)


def test_raced_tests_exist() -> None:
    """A name that matches nothing would have `go test` skip nothing, and run nothing; one of another package's, too much."""
    packages = check.go_packages()
    texts = {package: "".join(check.go_sources(ROOT / package, tests=True)) for package in packages}
    for package, names in check.RACED.items():
        for name in names:
            top, _, script = name.partition("/")
            plain = [p for p, raced in packages.items() if not raced or p in check.RACED]
            assert [p for p in plain if f"func {top}(" in texts[p]] == [package], name
            assert not script or (ROOT / "cmd" / "hightide" / "testdata" / "script" / f"{script}.txtar").is_file(), name


def test_goroutines_are_raced() -> None:
    packages = check.go_packages()
    assert packages["./internal/observe"] and packages["./internal/store"] and not packages["./internal/mem"]
    assert not packages["./bench"], "a program in a raw string is not the package's"


def test_busy_ends_with_its_checks() -> None:
    def children() -> int:
        return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    before = children()
    with check.busy(2):
        assert children() == before + 2
    assert children() == before


def test_seeds_and_corpora_match_something() -> None:
    """What a test globs for in the repository is there, and each corpus belongs to a fuzz target."""
    missing = []
    for file in [f for top in ("internal", "cmd", "bench") for f in (ROOT / top).rglob("*_test.go")]:
        text = file.read_text("utf-8")
        for pattern in re.findall(r'filepath\.Glob\("((?:\.\./|testdata)[^"]*)"\)', text):
            if not list(file.parent.glob(pattern)):
                missing.append(f"{file.relative_to(ROOT)}: {pattern}")
    for corpus in (ROOT / "internal").rglob("testdata/fuzz/*"):
        tests = check.go_sources(corpus.parents[2], tests=True)
        if not any(f"func {corpus.name}(" in text for text in tests) or not list(corpus.iterdir()):
            missing.append(str(corpus.relative_to(ROOT)))
    assert not missing


def test_what_failed_is_run_once_more(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """A test that fails once is named as unsteady, one that fails twice has failed; --strict asks once."""
    monkeypatch.setattr(check, "LOGS", tmp_path)
    (tmp_path / "go.mod").write_text("module shaky\n\ngo 1.26.0\n")
    (tmp_path / "shaky_test.go").write_text(
        'package shaky\n\nimport ("os"; "testing")\n\nfunc TestFine(*testing.T) {}\n\nfunc TestShaky(t *testing.T) {\n'
        '\tt.Run("of a minute", func(t *testing.T) { if _, err := os.Stat("fine"); err == nil { t.Error("again") } })\n'
        '\tt.Run("a+b", func(t *testing.T) {\n\t\tif _, err := os.Stat("ran"); err != nil {\n'
        '\t\t\tos.WriteFile("ran", nil, 0o600)\n\t\t\tos.WriteFile("fine", nil, 0o600)\n\t\t\tt.Error("at first")\n\t\t}\n'
        "\t})\n}\n"
    )
    (tmp_path / "test_shaky.py").write_text(
        "import pathlib, pytest\n\ndef test_fine(): pass\n\n@pytest.mark.parametrize('how', ['a b', 'c / d'])\n"
        "def test_shaky(how):\n    mark = pathlib.Path(__file__).parent / f'ran {how[0]}'\n"
        "    before = mark.exists()\n    mark.touch()\n    assert before, 'at first'\n\ndef test_wrong(): assert False\n"
    )
    go = ["go", "-C", tmp_path, "test", "-json", "-vet=off", "."]
    python = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path]
    steady = check.Runner(1, strict=False)
    assert steady.run(check.Check("python", python, count=check.count_words, again=check.again_pytest)) == check.Count(
        passed=1, failed=3
    ), "where one fails again, all have failed"
    (tmp_path / "test_shaky.py").write_text((tmp_path / "test_shaky.py").read_text().replace("assert False", "pass"))
    for mark in tmp_path.glob("ran *"):
        mark.unlink()
    assert steady.run(check.Check("python", python, count=check.count_words, again=check.again_pytest)) == check.Count(
        passed=4, unsteady=2
    )
    assert "2 passed only when run again" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    go_check = check.Check("go", go, count=check.count_go, again=check.again_go)
    assert check.Runner(1, strict=True).run(go_check) == check.Count(passed=1, failed=1)
    (tmp_path / "ran").unlink()
    (tmp_path / "fine").unlink()
    assert steady.run(go_check) == check.Count(passed=2, unsteady=1)


def test_unasked_is_not_none_found() -> None:
    """A database that does not answer is said, and counts as skipped."""
    nowhere = {"GOVULNDB": "http://127.0.0.1:9", "npm_config_registry": "http://127.0.0.1:9"}
    done = run(sys.executable, "scripts/vulnerabilities.py", **nowhere)
    assert done.stdout == (
        "Go: not looked for: the database did not answer\n"
        "web: not looked for: the database did not answer\n"
        "0 passed, 0 failed, 2 skipped\n"
    )
    assert done.returncode == 0
    assert check.count_words(done.stdout) == check.Count(skipped=2)


def test_reached_vulnerabilities() -> None:
    """What govulncheck prints of a module that is merely there, and of one whose function is called."""
    there = '{"finding": {"osv": "GO-1", "fixed_version": "v2", "trace": [{"module": "m", "version": "v1"}]}}'
    called = there.replace("GO-1", "GO-2").replace('"v1"', '"v1", "package": "m/p", "function": "F"')
    printed = f'{{"config": {{}}}}\n{there}\n{called}\n'
    assert vulnerabilities.reached(vulnerabilities.objects(printed)) == {"GO-2": ("m", "v1", "v2")}
