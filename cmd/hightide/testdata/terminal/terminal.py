"""Drive hightide through a pseudo-terminal with a job-control shell, as a person would.

usage: terminal.py CASE, with hightide on PATH; prints what was seen, exits 1 with the reason.
"""

import os
import pty
import select
import signal
import sys
import time

PYTHON = sys.executable


class Terminal:
    """A shell in a pseudo-terminal of 24 rows and 100 columns."""

    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", PS1="$ ", LC_ALL="C.UTF-8")
            os.execvp(command[0], command)
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.text = ""

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    return

    def until(self, words, seconds=20):
        end = time.monotonic() + seconds
        while words not in self.text:
            if time.monotonic() > end:
                sys.exit(f"waited for {words!r} in vain, saw {self.text!r}")
            self.read(0.1)
        at = self.text.index(words) + len(words)
        seen, self.text = self.text[:at], self.text[at:]
        return seen

    def type(self, text):
        os.write(self.fd, text.encode())


def shell():
    t = Terminal("bash", "--norc", "--noprofile", "-i")
    t.until("$ ")
    return t


def interrupt():
    """Ctrl-C reaches the program once; its handler decides."""
    t = shell()
    t.type(
        'hightide run -q -- %s -c "\nimport signal, time\nn = []\nsignal.signal(signal.SIGINT, lambda *a: n.append(1))\n'
        "print('re'+'ady', flush=True)\nwhile not n: time.sleep(0.05)\ntime.sleep(0.3)\nprint('seen', len(n))\nraise SystemExit(6)\"\n"
        % PYTHON
    )
    t.until("ready")
    t.type("\x03")
    t.until("seen 1")
    t.type("echo code $?\n")
    t.until("code 6")


def interrupt_default():
    """Ctrl-C ends a program that does not mind it, and the shell hears of a signal."""
    t = shell()
    t.type("hightide run -q -- sh -c 'echo re''ady; sleep 20'\n")
    t.until("ready")
    t.type("\x03")
    t.type("echo code $?\n")
    t.until("code 130", 5)


def stop():
    """Ctrl-Z stops the job, fg goes on with it, in the foreground as before."""
    t = shell()
    t.type(
        "hightide run -q -- %s -c \"import time\nprint('re'+'ady', flush=True)\nfor i in range(20): time.sleep(0.1)\nprint('en'+'ded', input())\"\n"
        % PYTHON
    )
    t.until("ready")
    t.type("\x1a")
    t.until("Stopped", 5)
    t.type("echo shell'' is back\n")
    t.until("shell is back")
    t.type("fg\n")
    time.sleep(2.5)
    t.type("typed\n")
    t.until("ended typed")
    t.type("echo code $?\n")
    t.until("code 0")


def ignores_stop():
    """A program that ignores Ctrl-Z is not stopped by our stopping."""
    t = shell()
    t.type(
        "hightide run -q -- %s -c \"import signal, time\nsignal.signal(signal.SIGTSTP, signal.SIG_IGN)\nprint('re'+'ady', flush=True)\ntime.sleep(1.5)\nprint('en'+'ded')\"\n"
        % PYTHON
    )
    t.until("ready")
    t.type("\x1a")
    seen = t.until("ended")
    if "Stopped" in seen:
        sys.exit("the shell thinks that the job stopped")


def status_line():
    """The status line stands at the foot, is taken away, and leaves the scrolling region whole."""
    t = shell()
    t.type("hightide run -- sh -c 'echo abo''ve; sleep 1.5; echo aft''er'\n")
    seen = t.until("Again:")
    if "hightide 1s" not in seen or "RSS" not in seen:
        sys.exit(f"no status line in {seen!r}")
    if "\x1b[1;23r" not in seen or "\x1b[r" not in seen:
        sys.exit(f"the scrolling region was not set and reset: {seen!r}")
    if seen.index("\x1b[r") < seen.rindex("\x1b[1;23r"):
        sys.exit("the scrolling region was reset before it was set last")


def status_line_in_background():
    """In the background nothing is drawn: the foot belongs to whoever is in the foreground."""
    t = shell()
    t.type("hightide run -- sleep 1 & wait; echo co''de $?\n")
    seen = t.until("code 0")
    if "\x1b[1;23r" in seen:
        sys.exit(f"drawn in the background: {seen!r}")


def terminal_is_the_programs():
    """The program sees the terminal: isatty, its size, the foreground process group."""
    t = shell()
    t.type(
        "hightide run -q -- %s -c \"import os, sys; print('tty', *[os.isatty(n) for n in (0, 1, 2)], os.tcgetpgrp(0) == os.getpgrp(), os.get_terminal_size().columns)\"\n"
        % PYTHON
    )
    t.until("tty True True True True 100")


def plan_runs_what_is_there():
    """On a terminal a use is run where what runs it is there; else the answer says what is missing."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w") as file:
            file.write(
                '{"model_type": "llama", "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,'
                ' "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 128}'
            )
        t = shell()
        t.type(f"hightide plan {folder} --gpu l4 --python {folder}/python; echo co''de $?\n")
        seen = t.until("code 0")
        for words in ("the cheapest GPU that fits is l4", "Looking for vLLM", "Nothing was imagined: there is no vLLM"):
            if words not in seen:
                sys.exit(f"no {words!r} in {seen!r}")
        t.type(f"hightide plan {folder} --gpu l4 --imagine off; echo co''de $?\n")
        seen = t.until("code 0")
        if "Looking for" in seen or "imagined:" in seen:
            sys.exit(f"something was looked for: {seen!r}")


CASES = {
    f.__name__: f
    for f in (
        interrupt,
        interrupt_default,
        stop,
        ignores_stop,
        status_line,
        status_line_in_background,
        terminal_is_the_programs,
        plan_runs_what_is_there,
    )
}

if __name__ == "__main__":
    signal.alarm(60)
    CASES[sys.argv[1]]()
    print("ok")
