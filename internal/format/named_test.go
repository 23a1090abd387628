package format

import (
	"errors"
	"strings"
	"testing"
)

// TestUnread: a text of a kind that is known and not read is refused by its name, with what is read instead.
func TestUnread(t *testing.T) {
	for text, what := range map[string]string{
		`{"allocated_bytes.all.current": 100, "allocated_bytes.all.peak": 200}`: "memory_stats()",
		"[ Top 10 ]\ntrain.py:12: size=120 MiB, count=1000, average=123 " +
			"KiB\n": "tracemalloc",
		"# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n":       "psrecord",
		"DCGM_FI_DEV_FB_USED{gpu=\"0\"} 4000\n":                         "DCGM",
		"\"Step\",\"run - system/gpu.0.memoryAllocatedBytes\"\n1,100\n": "Weights & Biases",
		"2026/04/25 16:20:28.887, 2 %, 0 %, 3767 MiB, 16381 MiB, 30, 31.73 " +
			"W\n": "without its header",
		"\n==============NVSMI LOG==============\n\nTimestamp : " +
			"Thu\n": "nvidia-smi -q",
		"<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM " +
			"\"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n": "nvidia-smi -q",
		"GPU 0: NVIDIA A10 (UUID: " +
			"GPU-1234)\n": "nvidia-smi -L",
		"|                  PyTorch CUDA memory summary, device ID 0                 " +
			"|\n": "memory_summary()",
		"======= ROCm System Management Interface =======\nGPU  Temp  VRAM%\n0  35c  " +
			"3%\n": "rocm-smi without bytes",
		"GPU  XCP  POWER  VRAM_USED  VRAM_TOTAL\n0  0  150 W  20.1 GB  191.7 GB\n": "amd-smi",
		"Line #    Mem usage    Increment  Occurrences   Line Contents\n     4     14.0 " +
			"MiB\n": "memory_profiler by line",
		"              total        used        free      shared  buff/cache   available\nMem:  1 2 " +
			"3\n": "answer of free",
		"USER         PID %CPU %MEM    VSZ   RSS TTY\nroot 1 0.0 " +
			"0.1\n": "top or ps",
		"\tMaximum resident set size (kbytes): 123456\n": "GNU time",
	} {
		_, err := Decode(strings.NewReader(text), "x")
		var unread *UnreadError
		if !errors.As(err, &unread) || !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), what) ||
			unread.Instead == "" {
			t.Errorf("%q: %v, want %q", text, err, what)
		}
	}
}

// TestMessageBesideATable: of a text with a table of GPUs and an out-of-memory message the message is explained.
func TestMessageBesideATable(t *testing.T) {
	const table = "| NVIDIA-SMI 450.51.06    Driver Version: 450.51.06 |\n|   0  A100-SXM4-40GB      On   | " +
		"00000000:01:00.0 Off |  0 |\n| N/A   28C    P0    99W / 400W |  36414MiB / 40537MiB |   9% Default |\n"
	const message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 MiB. GPU 0 has a total " +
		"capacity of 7.79 GiB of which 14.31 MiB is free.\n"
	for name, text := range map[string]string{"above": table + message, "below": message + table, "far below": table +
		strings.Repeat("a line of a log\n", 10_000) + message} {
		d, err := Decode(strings.NewReader(text), "x")
		if err != nil || d.OOM == nil || d.OOM.Requested.Or(0) != 6<<20 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	if d, err := Decode(strings.NewReader(table), "x"); err != nil || d.OOM != nil || !strings.Contains(strings.Join(d.Words, " "), "35.6 GiB of 39.6 GiB") {
		t.Errorf("the table alone: %+v, %v", d, err)
	}
}
