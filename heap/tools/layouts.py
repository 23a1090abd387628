"""Derive the interpreter layouts that common/layouts.h holds, from CPython's own headers.

For each Python named on the command line (or found in pyenv) a C program is compiled against its
internal headers with Py_BUILD_CORE. What offsetof says is written as one row of the table. The
table is committed, so building the library needs no Python. Run again to add a version:

    python3 heap/tools/layouts.py [PYTHON or INCLUDE-FOLDER]... > common/layouts.h

The committed table holds 3.8 to 3.14; 3.14's row comes from Debian's libpython3.14-dev.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

NONE = "HT_NO_FIELD"

COMMON = {
    "tstate_thread": "offsetof(PyThreadState, thread_id)",
    "code_filename": "offsetof(PyCodeObject, co_filename)",
    "code_firstline": "offsetof(PyCodeObject, co_firstlineno)",
    "object_type": "offsetof(PyObject, ob_type)",
    "bytes_size": "offsetof(PyVarObject, ob_size)",
    "bytes_data": "offsetof(PyBytesObject, ob_sval)",
    "text_length": "offsetof(PyASCIIObject, length)",
    "text_state": "offsetof(PyASCIIObject, state)",
    "text_ascii": "sizeof(PyASCIIObject)",
    "text_compact": "sizeof(PyCompactUnicodeObject)",
}

# What _Py_DebugOffsets (3.13+) says itself, at run time, about the interpreter at hand.
DEBUG = {
    "runtime_size": "runtime_state.size",
    "runtime_finalizing": "runtime_state.finalizing",
    "tstate_thread": "thread_state.thread_id",
    "tstate_frame": "thread_state.current_frame",
    "frame_previous": "interpreter_frame.previous",
    "frame_code": "interpreter_frame.executable",
    "frame_instruction": "interpreter_frame.instr_ptr",
    "frame_owner": "interpreter_frame.owner",
    "code_filename": "code_object.filename",
    "code_name": "code_object.qualname",
    "code_lines": "code_object.linetable",
    "code_firstline": "code_object.firstlineno",
    "code_start": "code_object.co_code_adaptive",
    "object_type": "pyobject.ob_type",
    "bytes_size": "bytes_object.ob_size",
    "bytes_data": "bytes_object.ob_sval",
    "text_length": "unicode_object.length",
    "text_state": "unicode_object.state",
    "text_ascii": "unicode_object.asciiobject_size",
}


def fields(minor: int) -> dict[str, str]:
    """Name -> C expression for one minor version; the order is the struct's."""
    new_frames = minor >= 11
    row = dict(COMMON)
    row["runtime_size"] = "sizeof(_PyRuntimeState)"
    row["runtime_key"] = (
        "offsetof(_PyRuntimeState, autoTSSkey)" if minor >= 12 else "offsetof(_PyRuntimeState, gilstate.autoTSSkey)"
    )
    row["runtime_finalizing"] = (
        "offsetof(_PyRuntimeState, finalizing)" if minor == 8 else "offsetof(_PyRuntimeState, _finalizing)"
    )
    if minor >= 13:
        row["tstate_frame"], row["cframe_frame"] = "offsetof(PyThreadState, current_frame)", NONE
    elif new_frames:
        row["tstate_frame"] = "offsetof(PyThreadState, cframe)"
        row["cframe_frame"] = "offsetof(_PyCFrame, current_frame)"
    else:
        row["tstate_frame"], row["cframe_frame"] = "offsetof(PyThreadState, frame)", NONE
    frame = "_PyInterpreterFrame" if new_frames else "PyFrameObject"
    row["frame_previous"] = f"offsetof({frame}, {'previous' if new_frames else 'f_back'})"
    row["frame_code"] = f"offsetof({frame}, {'f_executable' if minor >= 13 else 'f_code'})"
    instruction = "instr_ptr" if minor >= 13 else "prev_instr" if new_frames else "f_lasti"
    row["frame_instruction"] = f"offsetof({frame}, {instruction})"
    row["frame_owner"] = f"offsetof({frame}, owner)" if new_frames else NONE
    shim = "FRAME_OWNED_BY_INTERPRETER" if minor >= 14 else "FRAME_OWNED_BY_CSTACK"
    row["owner_shim"] = shim if minor >= 12 else "255"
    row["code_tags"] = "Py_TAG_BITS" if minor >= 14 else "0"
    row["instruction"] = (
        "HT_INSTRUCTION_POINTER" if new_frames else "HT_LASTI_UNITS" if minor == 10 else "HT_LASTI_BYTES"
    )
    row["code_name"] = f"offsetof(PyCodeObject, {'co_qualname' if new_frames else 'co_name'})"
    row["code_lines"] = f"offsetof(PyCodeObject, {'co_linetable' if minor >= 10 else 'co_lnotab'})"
    row["code_start"] = "offsetof(PyCodeObject, co_code_adaptive)" if new_frames else NONE
    row["code_traceable"] = "offsetof(PyCodeObject, _co_firsttraceable)" if new_frames else NONE
    row["text_legacy"] = "offsetof(PyUnicodeObject, data)" if minor < 12 else NONE
    if minor >= 13:
        row |= {f"debug.{name}": f"offsetof(_Py_DebugOffsets, {path})" for name, path in DEBUG.items()}
    return row


def program(minor: int) -> str:
    internal = ["pycore_frame.h"] if minor >= 11 else ["../frameobject.h"]
    internal += ["pycore_interpframe_structs.h", "pycore_stackref.h"] if minor >= 14 else []
    internal += ["pycore_runtime.h"] if minor >= 9 else ["pycore_pystate.h"]
    includes = "\n".join(f'#include "{name}"' for name in internal)
    prints = []
    for name, expression in fields(minor).items():
        symbolic = expression.startswith("HT_")
        value = f'"{expression}"' if symbolic else f"({expression})"
        form = "%s" if symbolic else "%zu"
        cast = "" if symbolic else "(size_t)"
        prints.append(f'    printf(".{name} = {form}, ", {cast}{value});')
    return (
        "#define Py_BUILD_CORE 1\n#include <stddef.h>\n#include <stdio.h>\n#include <Python.h>\n"
        f"{includes}\nint main(void) {{\n" + "\n".join(prints) + "\n    return 0;\n}\n"
    )


def layout(include: pathlib.Path, minor: int) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch, "layout.c")
        source.write_text(program(minor))
        binary = source.with_suffix("")
        subprocess.run(
            [
                "gcc",
                "-w",
                f"-I{include}",
                f"-I{include}/internal",
                f"-I{include.parent}",
                "-o",
                str(binary),
                str(source),
            ],
            check=True,
        )
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout.strip()


def facts(python: str) -> tuple[int, str, pathlib.Path]:
    if pathlib.Path(python).is_dir():
        text = pathlib.Path(python, "patchlevel.h").read_text()
        version = re.search(r'PY_VERSION\s+"([^"]+)"', text)
        assert version, f"{python}/patchlevel.h names no version"
        return int(version[1].split(".")[1]), version[1], pathlib.Path(python)
    code = "import sys,sysconfig;print(sys.version_info[1],sys.version.split()[0],sysconfig.get_path('include'))"
    out = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return int(out[0]), out[1], pathlib.Path(out[2])


def wrapped(row: str) -> str:
    lines, line = [], "   "
    for word in row.replace(" = ", "=").rstrip(",").split(", "):
        word = word.replace("=", " = ") + ","
        if len(line) + len(word) > 110:
            lines.append(line)
            line = "   "
        line += " " + word
    return "\n".join([*lines, line])


def main() -> None:
    pythons = sys.argv[1:]
    if not pythons:
        root = pathlib.Path.home() / ".pyenv" / "versions"
        pythons = [str(path) for path in root.glob("3.*/bin/python3")]
    rows = sorted(facts(python) for python in pythons)
    print("/* Generated by heap/tools/layouts.py from CPython's headers; do not edit. See layout.h. */")
    for minor, version, include in rows:
        if 8 <= minor <= 14:
            print(f"{{ /* {version} */\n    .python = 0x03{minor:02x},")
            print(wrapped(layout(include, minor)) + "\n},")


if __name__ == "__main__":
    main()
