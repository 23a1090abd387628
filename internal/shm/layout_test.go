package shm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestLayout asks the C compiler what the header says and compares it with our constants.
func TestLayout(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to read include/hightide_channel.h with")
	}
	var program, want strings.Builder
	program.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include \"hightide_channel.h\"\nint main(void) {\n")
	check := func(expression string, value uint64) {
		fmt.Fprintf(&program, "printf(\"%%s = %%llu\\n\", %q, (unsigned long long)(%s));\n", expression, expression)
		fmt.Fprintf(&want, "%s = %d\n", expression, value)
	}
	for name, off := range map[string]int{
		"magic": offMagic, "abi": offABI, "role": offRole, "pid": offPID, "header_bytes": offHeaderBytes,
		"process_start": offProcessStart, "ring_bytes": offRingBytes, "created_mono_ns": offCreatedMono,
		"created_wall_ns": offCreatedWall, "head": offHead, "dropped_records": offDroppedRecords,
		"dropped_bytes": offDroppedBytes, "tail": offTail, "engine_pid": offEnginePID,
		"engine_beat_ns": offEngineBeat, "control_seq": offControlSeq, "stop_at_step": offStopAtStep,
		"scan_seq": offScanSeq, "malloc_seq": offMallocSeq, "waiting": offWaiting, "heap_sampled": offHeapSampled, "heap_mean_now": offHeapMeanNow,
		"heap_untracked": offHeapUntracked, "heap_flags": offHeapFlags, "heap_peak_rss": offHeapPeakRSS,
		"alert_state": offAlertState, "alert_count": offAlertCount, "alert_value": offAlertValue,
	} {
		check("offsetof(struct ht_header, "+name+")", uint64(off))
	}
	for name, value := range map[string]uint64{
		"HT_CHANNEL_MAGIC": Magic, "HT_CHANNEL_ABI": ABI, "HT_HEADER_BYTES": HeaderBytes, "HT_BUSY": busy,
		"HT_MAX_FRAMES": MaxFrames, "HT_PAD": uint64(kindPad), "HT_JSON": uint64(kindJSON), "HT_EDGE": uint64(kindEdge),
		"HT_COUNTERS": uint64(kindCounters), "HT_STEP": uint64(kindStep), "HT_HEAP_CODE": uint64(kindCode),
		"HT_HEAP_ALLOC": uint64(kindAlloc), "HT_HEAP_FREE": uint64(kindFree), "HT_HEAP_THREAD": uint64(kindThread),
		"HT_HEAP_MALLOC": uint64(kindMalloc),
		"HT_ROLE_AGENT":  uint64(RoleAgent), "HT_ROLE_HEAP": uint64(RoleHeap),
		"HT_MALLOC": uint64(OriginMalloc), "HT_MMAP": uint64(OriginMmap), "HT_MMAP_SHARED": uint64(OriginShared),
		"HT_HEAP_FREE_THREADED": uint64(HeapFreeThreaded), "HT_HEAP_BYPASSED": uint64(HeapBypassed),
		"HT_HEAP_LATE": uint64(HeapLate), "sizeof(struct ht_counter)": counterBytes,
		"HT_ALERTS": MaxAlerts, "HT_ALERT_TAKEN": alertTaken, "HT_ALERT_REFUSED": alertRefused,
		"sizeof(struct ht_frame)": frameBytes, "sizeof(struct ht_record)": recordBytes,
	} {
		check(name, value)
	}
	for number, phase := range mem.Phases {
		if phase == mem.PhaseNone {
			phase = "none"
		}
		check("HT_PHASE_"+strings.ToUpper(string(phase)), uint64(number))
	}
	program.WriteString("return 0; }\n")
	dir := t.TempDir()
	source := filepath.Join(dir, "layout.c")
	if err := os.WriteFile(source, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "layout")
	if out, err := exec.Command(gcc, "-I", "../../include", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("C says\n%s\nGo says\n%s", got, want.String())
	}
}
