package observe

import (
	"syscall"
	"testing"

	"hightide/internal/mem"
)

func TestParseCrash(t *testing.T) {
	const main = "Thread 0x00007f0000000001 (most recent call first):\n  File \"/home/a/train.py\", line 30 in main\n"
	for name, test := range map[string]struct {
		text   string
		signal syscall.Signal
		said   string
		where  *mem.Location
	}{
		"a library called by the program": {
			"Fatal Python error: Bus error\n\n" + main + "\nCurrent thread 0x00007f0000000002 (most recent call first):\n" +
				"  File \"/env/lib/python3.11/site-packages/torch/a.py\", line 7 in copy\n" +
				"  File \"/home/a/load.py\", line 12 in load\n\n" + main,
			syscall.SIGBUS, "bus error", &mem.Location{File: "/home/a/load.py", Line: 12, Function: "load"},
		},
		"one thread": {
			"Fatal Python error: Segmentation fault\n\nStack (most recent call first):\n  File \"<string>\", line 4 in deep\n",
			syscall.SIGSEGV, "segmentation fault", &mem.Location{File: "<string>", Line: 4, Function: "deep"},
		},
		"a thread without Python": {
			"Fatal Python error: Aborted\n\nThread 0x2 (most recent call first):\n  File \"/home/a/other.py\", line 1 in wait\n\n" +
				main + "\nExtension modules: numpy.core (total: 1)\n",
			syscall.SIGABRT, "aborted in a thread that ran no Python; the main thread was at this line",
			&mem.Location{File: "/home/a/train.py", Line: 30, Function: "main"},
		},
		"a name of a thread, 3.14": {
			"Fatal Python error: Floating-point exception\n\nCurrent thread 0x3 [python] (most recent call first):\n" +
				"  File \"/home/a b/\\\"x\\\".py\", line 2 in f\n\nCurrent thread's C stack trace (most recent call first):\n" +
				"  Binary file \"/usr/bin/python\", at _Py_DumpStack+0x3e [0x5a]\n",
			syscall.SIGFPE, "floating-point exception", &mem.Location{File: `/home/a b/\"x\".py`, Line: 2, Function: "f"},
		},
		"no line":   {"Fatal Python error: Illegal instruction\n\n", syscall.SIGILL, "illegal instruction", nil},
		"nothing":   {"", 0, "", nil},
		"cut short": {"Fatal Python err", 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, ok := parseCrash([]byte(test.text))
			if ok != (test.signal != 0) || found.signal != test.signal || found.text != test.said {
				t.Fatalf("got %+v, %v", found, ok)
			}
			if (found.where == nil) != (test.where == nil) || found.where != nil && *found.where != *test.where {
				t.Errorf("at %+v, not %+v", found.where, test.where)
			}
		})
	}
}

func FuzzParseCrash(f *testing.F) {
	f.Add([]byte("Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File \"a\", line 1 in b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, ok := parseCrash(text)
		if ok && found.signal == 0 {
			t.Errorf("a crash without a signal: %+v", found)
		}
	})
}
