package format

import (
	"fmt"

	"hightide/internal/words"
)

// unread are texts that people give and that are not read, by what each has in it: what it is, and what tells more.
// Add yours here.
var unread = []struct {
	match         *words.Pattern
	what, instead string
}{
	{words.Lazy(`^\s*\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3},.* \d+ MiB`),
		"nvidia-smi's CSV without its header: nothing says which column is used memory and which is free",
		"put the header in front, such as `timestamp, index, memory.used [MiB], memory.free [MiB]`, in the order of " +
			"--query-gpu; log with --format=csv, not csv,noheader"},
	{words.Lazy(`used_(?:gpu_)?memory \[`), "nvidia-smi's list of processes",
		"log whole GPUs: `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -l 1`; of " +
			"processes `nvidia-smi pmon -s m -o DT` is read"},
	{words.Lazy(`"allocated_bytes\.all\.`), "torch.cuda.memory_stats(), which has sums and no lines", dump},
	{words.Lazy(`size=[\d.]+ \w+, count=\d+, average=`),
		"a list of tracemalloc, which sees Python's own allocations alone", logHost},
	{words.Lazy(`(?m)^# Elapsed time\s+CPU`), "a log of psrecord", logHost},
	{words.Lazy(`\bDCGM_FI_\w+`), "an answer of DCGM's exporter", logSMI},
	{words.Lazy(`system[/.]gpu\.\d+\.`), "an export of Weights & Biases", logSMI},
	{words.Lazy(`=+NVSMI LOG=+|<nvidia_smi_log>`), "the answer of nvidia-smi -q", logSMI},
	{words.Lazy(`(?m)^GPU \d+: .* \(UUID: GPU-`), "the list of nvidia-smi -L, which has no memory", logSMI},
	{words.Lazy(`(?m)^#\s*Entity\b`), "a table of dcgmi dmon", logSMI},
	{words.Lazy(`PyTorch CUDA memory summary`), "torch.cuda.memory_summary(), which has sums and no lines", dump},
	{words.Lazy(`(?i)AMD-SMI|\bamd-smi\b|VRAM_USED|\bvram_used\b`), "a table of amd-smi", logROCm},
	{words.Lazy(`(?i)ROCm (?:System Management Interface|SMI)`), "a table of rocm-smi without bytes", logROCm},
	{words.Lazy(`\| Device ID\s+\||GPU Memory Used \(MiB\)\s+\|`), "a table of xpu-smi",
		"log with `xpu-smi dump -d -1 -m 18`"},
	{words.Lazy(`\bNVITOP\b|\bnvtop\b`), "a screen of nvitop or nvtop", logSMI},
	{words.Lazy(`(?m)^Line #\s+Mem usage`), "a table of memory_profiler by line",
		"`mprof run` writes a file that is read; `hightide run -- COMMAND` tells lines without @profile"},
	{words.Lazy(`(?m)^\s+total\s+used\s+free\s+shared`), "the answer of free", logHost},
	{words.Lazy(`(?m)^top - \d\d:\d\d|USER\s+PID\s+%CPU\s+%MEM|PID\s+USER\s+PR\s+NI`), "a table of top or ps", logHost},
	{words.Lazy(`\bJobID\b.*\bMaxRSS\b`), "a table of sacct", logHost},
	{words.Lazy(`Maximum resident set size \(kbytes\):`), "the answer of GNU time -v", logHost},
}

const (
	dump = "dump a snapshot: torch.cuda.memory._dump_snapshot(\"f.pickle\"), after " +
		"torch.cuda.memory._record_memory_history()"
	logSMI = "log with `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv -l 1`; its plain " +
		"table is read, too"
	logROCm = "`rocm-smi --showmeminfo vram` is read, plain or with --json"
	logHost = "`hightide monitor` writes readings over time, `hightide run -- COMMAND` tells the lines"
)

// UnreadError says that a text is of a known kind that is not read, and what is instead.
type UnreadError struct{ What, Instead string }

func (e *UnreadError) Error() string {
	return fmt.Sprintf("this is %s; hightide does not read it", e.What)
}

// Unwrap implements errors.Unwrap.
func (e *UnreadError) Unwrap() error { return ErrUnknown }

// named is the error that names a text's kind; nil: it is of no kind that is known.
func namedUnread(head []byte) error {
	for _, u := range unread {
		if u.match.Regexp().Match(head) {
			return &UnreadError{u.what, u.instead}
		}
	}
	return nil
}
