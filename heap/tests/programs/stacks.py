# Allocates with sizes that tell the allocations apart, through libc, so with the GIL released, and
# writes down what the interpreter itself says about the stack: argv[1], JSON, size -> frames.
import asyncio
import ctypes
import functools
import json
import os
import sys
import threading

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
expected = {}
sizes = iter(range(5 << 20, 6 << 20))
lock = threading.Lock()


def stack(frame):
    found = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        found.append([os.path.basename(code.co_filename), name, frame.f_lineno])
        frame = frame.f_back
    return found


def note(size, frame):
    expected[size] = stack(frame)
    return size


def alloc():
    with lock:
        size = next(sizes)
    libc.malloc(note(size, sys._getframe()))


def plain():
    alloc()


def several_lines():
    return max(
        1,
        alloc() or 2,
        3,
    )


def generator():
    yield alloc()
    yield [alloc() for _ in range(2)]


async def coroutine():
    await asyncio.sleep(0)
    alloc()
    await asyncio.gather(inner(), inner())


async def inner():
    await asyncio.sleep(0.001)
    alloc()


class Méthode:
    @property
    def attribut(self):
        alloc()
        return 1

    @staticmethod
    def naïve(*args):
        return (lambda: alloc())()

    def __del__(self):
        alloc()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def through_c(x):
    alloc()
    return x


def recurse(depth):
    return recurse(depth - 1) if depth else alloc()


def caught():
    try:
        raise ValueError
    except ValueError:
        alloc()
    finally:
        alloc()


def long_function():
    pass
    # The next line is far from the first one: line deltas larger than one entry holds.
    {}






























































































































































    alloc()


def in_thread(n):
    def leaf():
        for _ in range(20):
            alloc()

    exec(compile("\n" * n + "leaf()", "thread%d.py" % n, "exec"), {"leaf": leaf})


def many_code_objects():
    # Code objects come and go at the same addresses.
    for n in range(300):
        space = {"alloc": alloc}
        exec(compile("\n" * (n % 97) + "def f%d():\n  alloc()\nf%d()" % (n % 7, n % 7), "made.py", "exec"), space)


def main():
    plain()
    several_lines()
    list(generator())
    asyncio.run(coroutine())
    Méthode().attribut
    Méthode.naïve()
    sorted([3, 1, 2], key=through_c)
    functools.reduce(lambda a, b: alloc(), [1, 2, 3])
    for depth in (10, 50, 61, 62, 63, 64, 65, 200):
        recurse(depth)
    caught()
    long_function()
    threads = [threading.Thread(target=in_thread, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    many_code_objects()
    json.dump(expected, open(sys.argv[1], "w"))


main()
