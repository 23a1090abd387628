package launch

import (
	"syscall"
	"testing"
)

// TestWitness: what came to the group is told from what did not, once, and a killed witness knows nothing.
func TestWitness(t *testing.T) {
	w := startWitness()
	if w == nil {
		t.Skip("it is not built: make -C internal/launch")
	}
	defer w.end()
	if group, known := w.saw(syscall.SIGINT); group || !known {
		t.Fatalf("before: %v, %v", group, known)
	}
	pid := w.pid // which is 0 once it is gone, and that would be our own group
	_ = syscall.Kill(pid, syscall.SIGTERM)
	if group, known := w.saw(syscall.SIGINT); group || !known {
		t.Errorf("another signal: %v, %v", group, known)
	}
	if group, known := w.saw(syscall.SIGTERM); !group || !known {
		t.Errorf("that one: %v, %v", group, known)
	}
	delete(w.last, syscall.SIGTERM)
	if group, known := w.saw(syscall.SIGTERM); group || !known {
		t.Errorf("it came once: %v, %v", group, known)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if group, known := w.saw(syscall.SIGTERM); group || known {
		t.Errorf("killed: %v, %v", group, known)
	}
	if group, known := w.saw(syscall.SIGTERM); group || known {
		t.Errorf("and gone: %v, %v", group, known)
	}
}
