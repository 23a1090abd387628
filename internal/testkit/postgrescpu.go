package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// CPU is the processor time that the server's processes have used, those that have ended included, to 10 ms.
func (p *Postgres) CPU(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	postmaster, _, _ := strings.Cut(string(text), "\n")
	ticks := 0
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		text, err := os.ReadFile(path) // gone: its parent has its time
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the state on
		own := strings.HasPrefix(path, "/proc/"+postmaster+"/")
		if !own && fields[1] != postmaster {
			continue
		}
		for _, field := range fields[11 : 11+map[bool]int{true: 4, false: 2}[own]] { // user, system, of ended children
			n, _ := strconv.Atoi(field)
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100
}

// OwnCPU is the processor time that this process has used.
func OwnCPU(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
