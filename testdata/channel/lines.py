"""Writes lines-X.Y.json: what the running interpreter itself says about lines of code objects.

    for v in 3.8.18 3.9.18 3.10.13 3.11.7 3.12.1 3.13.0; do
        ~/.pyenv/versions/$v/bin/python3 testdata/channel/lines.py testdata/channel
    done

Each case is a code object: its raw line table, its first line, and the line of every instruction
as code.co_lines() (3.10 and later) or dis.findlinestarts (before) gives it, run-length coded as
[instructions, line or null]. "frames" are [case, lasti, line] of real tracebacks, which tie what an
interpreter frame holds (in bytes) to the tables. Standard library only.
"""

import asyncio
import dis
import json
import os
import sys
import types

SOURCE = '''
"""A docstring."""
import os

@staticmethod
def decorated(
    a=1,
    *, b=2,
): return (a +
           b)

def jumps(n):
    total = 0
    for i in range(n):
        if i % 2:
            continue
        try:
            total += i
            if total > 7: break
        except ValueError as error:
            raise RuntimeError(
                "x"
            ) from error
        finally:
            total -= 1
    else:
        total = [
            x
            for x in range(3)
            if x
        ]
    while True:
        with open(os.devnull) as f, \\
             open(os.devnull) as g:
            return f, g, lambda: (
                total)

async def co():
    async for x in y():
        async with x:
            await x

def y():
    yield 1
    yield from (
        1,
        2,
    )

class C(object):
    x = 1
    def m(self):
        return __class__

def far():
    a = 1
''' + "\n" * 400 + '''
    b = f(a,
''' + "\n" * 150 + '''
       a)
    return b

def long():
''' + "".join("    v%d = (v%d, %d)\n" % (i, i, i) for i in range(300)) + '''
    return [v1,
      v2, ''' + "v3, " * 400 + ''']
'''

FAILING = '''
def outer(x):
    y = [
        inner(i)
        for i in x
    ]
    return y

def inner(i):
    """Fails on the third line
    of an expression."""
    return (i +
            1 +
            i.missing)

def generator():
    yield 1
    outer([1])

def run():
    for _ in generator():
        pass
'''


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def line_of_each_instruction(code):
    count = len(code.co_code) // 2
    lines = [None] * count
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for i in range(start // 2, min(end // 2, count)):
                lines[i] = line
        return lines
    starts = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for i in range(count):
        line = starts.get(2 * i, line)
        lines[i] = line
    return lines


def runs(lines):
    result = []
    for line in lines:
        if result and result[-1][1] == line:
            result[-1][0] += 1
        else:
            result.append([1, line])
    return result


def main(folder):
    compiled = list(codes(compile(SOURCE, "sample.py", "exec")))
    failing = compile(FAILING, "failing.py", "exec")
    compiled += codes(failing)
    for module in (json.decoder, asyncio.base_events):
        with open(module.__file__, encoding="utf-8") as f:
            compiled += list(codes(compile(f.read(), "stdlib.py", "exec")))[:40]

    frames = []
    scope = {}
    exec(failing, scope)
    try:
        scope["run"]()
    except AttributeError as error:
        trace = error.__traceback__.tb_next
        while trace:
            frames.append([compiled.index(trace.tb_frame.f_code), trace.tb_lasti, trace.tb_lineno])
            trace = trace.tb_next

    table = "co_linetable" if hasattr(compiled[0], "co_linetable") else "co_lnotab"
    vector = {
        "python": sys.version_info[0] << 8 | sys.version_info[1],
        "version": sys.version.split()[0],
        "cases": [
            {
                "name": code.co_name,
                "first": code.co_firstlineno,
                "table": getattr(code, table).hex(),
                "lines": runs(line_of_each_instruction(code)),
            }
            for code in compiled
        ],
        "frames": frames,
    }
    path = os.path.join(folder, "lines-%d.%d.json" % sys.version_info[:2])
    with open(path, "w", encoding="utf-8") as f:
        json.dump(vector, f, separators=(",", ":"))
        f.write("\n")
    print(path, len(compiled), "code objects,", len(frames), "frames")


main(sys.argv[1])
