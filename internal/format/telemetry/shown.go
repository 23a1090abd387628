package telemetry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// Shown is what a tool for people showed of a machine's GPUs: nvidia-smi's table, gpustat, rocm-smi --showmeminfo.
// Such a text has one moment or several, and most have no time.
type Shown struct {
	Tool      string
	Time      int64 // ns of the clock on the wall; 0: not shown
	GPUs      []ShownGPU
	Processes []ShownProcess // nil: none is shown
	Listed    bool           // whether processes are listed at all
}

// ShownGPU is a GPU of such a text.
type ShownGPU struct {
	Number      int64
	Name        string
	Used, Total mem.Bytes
}

// ShownProcess is a process of such a text.
type ShownProcess struct {
	GPU, PID int64
	Name     string
	Used     mem.Bytes
}

var (
	tableGPU     = words.Lazy(`^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM|ERR!)\s*\|`)
	tableMemory  = words.Lazy(`\|\s*(\d+)MiB\s*/\s*(\d+)MiB\s*\|`)
	tableProcess = words.Lazy(`^\|\s+(\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d+)\s+(?:M\+)?(?:C\+G|C|G|M)\s+(\S.*?)\s+(?:(\d+)MiB|N/A)\s*\|`)
	tableTime    = words.Lazy(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}`)
	smiTitle     = words.Lazy(`\| NVIDIA-SMI \S+`)
	gpustatLine  = words.Lazy(`^\[(\d+)\] (.+?) *\|.*\| *(\d+) / (\d+) MB *\|(.*)`)
	gpustatUser  = words.Lazy(`([\w.@/:-]+)\((\d+)M\)`)
	rocmLine     = words.Lazy(`^GPU\[(\d+)\]\s*: VRAM Total (Used )?Memory \(B\): (\d+)`)
)

// IsShown finds such a text.
func IsShown(head []byte) bool {
	if len(head) > 0 && head[0] == '{' {
		return strings.Contains(string(head), `"VRAM Total Used Memory (B)"`)
	}
	return len(shownIn(string(head))) > 0
}

// ReadShown reads all that a text shows, by time.
func ReadShown(r io.Reader) ([]Shown, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxShown))
	if err != nil {
		return nil, err
	}
	if len(text) > 0 && text[0] == '{' {
		return rocmJSON(text)
	}
	all := shownIn(string(text))
	if len(all) == 0 {
		return nil, errors.New("it shows no GPU with its memory")
	}
	return all, nil
}

// maxShown bounds such a text, in bytes.
const maxShown = 64 << 20

// shownIn reads line by line.
func shownIn(text string) []Shown {
	r := shownReader{gpu: -1}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || len(line) > 400 {
			continue
		}
		if found := tableTime.Regexp().FindString(line); found != "" {
			if t, err := time.Parse(time.ANSIC, found); err == nil {
				r.at = t.UnixNano()
			}
		}
		switch line[0] {
		case '|':
			r.table(line)
		case '[':
			r.gpustat(line)
		case 'G':
			r.rocm(line)
		}
	}
	return slices.DeleteFunc(r.all, func(s Shown) bool { return len(s.GPUs) == 0 })
}

type shownReader struct {
	all     []Shown
	at      int64  // the time that stood last before what comes
	gpu     int64  // whose second line comes; -1: none
	name    string // its
	listing bool   // processes, not GPUs
}

// moment is the one that is shown now; fresh: another begins.
func (r *shownReader) moment(tool string, fresh bool) *Shown {
	if fresh || len(r.all) == 0 || r.all[len(r.all)-1].Tool != tool {
		r.all = append(r.all, Shown{Tool: tool, Time: r.at})
		r.at = 0
	}
	return &r.all[len(r.all)-1]
}

// table takes a line of nvidia-smi's table.
func (r *shownReader) table(line string) {
	switch {
	case smiTitle.MatchString(line):
		r.moment("nvidia-smi", true)
		r.listing = false
	case strings.HasPrefix(line, "| Processes"):
		r.listing = true
		r.moment("nvidia-smi", false).Listed = true
	case strings.HasPrefix(line, "| MIG devices"):
		r.gpu = -1
	case r.listing:
		if m := tableProcess.FindStringSubmatch(line); m != nil {
			s := r.moment("nvidia-smi", false)
			s.Processes = append(s.Processes, ShownProcess{number(m[1]), number(m[2]), m[3], mib(m[4])})
		}
	default:
		if m := tableGPU.FindStringSubmatch(line); m != nil {
			r.gpu, r.name = number(m[1]), m[2]
		} else if m := tableMemory.FindStringSubmatch(line); m != nil && r.gpu >= 0 {
			s := r.moment("nvidia-smi", false)
			s.GPUs = append(s.GPUs, ShownGPU{r.gpu, r.name, mib(m[1]), mib(m[2])})
			r.gpu = -1
		}
	}
}

func (r *shownReader) gpustat(line string) {
	m := gpustatLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	s := r.moment("gpustat", number(m[1]) == 0)
	s.Listed = true
	s.GPUs = append(s.GPUs, ShownGPU{number(m[1]), m[2], mib(m[3]), mib(m[4])})
	for _, u := range gpustatUser.Regexp().FindAllStringSubmatch(m[5], 100) {
		s.Processes = append(s.Processes, ShownProcess{GPU: number(m[1]), Name: u[1], Used: mib(u[2])})
	}
}

func (r *shownReader) rocm(line string) {
	m := rocmLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	bytes, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil || bytes > int64(mem.MaxSize) {
		return
	}
	r.moment("rocm-smi", number(m[1]) == 0 && m[2] == "").putFigure(number(m[1]), m[2] != "", mem.Bytes(bytes))
}

// number of a GPU or process; what is too long to be one is -1.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return -1
	}
	return n
}

// putFigure takes one of two figures of a GPU.
func (s *Shown) putFigure(number int64, used bool, bytes mem.Bytes) {
	i := slices.IndexFunc(s.GPUs, func(g ShownGPU) bool { return g.Number == number })
	if i < 0 {
		i = len(s.GPUs)
		s.GPUs = append(s.GPUs, ShownGPU{Number: number})
	}
	if used {
		s.GPUs[i].Used = bytes
	} else {
		s.GPUs[i].Total = bytes
	}
}

func mib(text string) mem.Bytes {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > int64(mem.MaxSize>>20) {
		return 0
	}
	return mem.Bytes(n) * mem.MiB
}

// rocmJSON reads rocm-smi --showmeminfo vram --json.
func rocmJSON(text []byte) ([]Shown, error) {
	var cards map[string]map[string]any
	if err := json.Unmarshal(text, &cards); err != nil {
		return nil, err
	}
	s := Shown{Tool: "rocm-smi"}
	for name, figures := range cards {
		n, err := strconv.ParseInt(strings.TrimPrefix(name, "card"), 10, 32)
		if err != nil {
			continue
		}
		for key, used := range map[string]bool{"VRAM Total Memory (B)": false, "VRAM Total Used Memory (B)": true} {
			if bytes, err := strconv.ParseInt(fmt.Sprint(figures[key]), 10, 64); err == nil && bytes >= 0 && bytes <= int64(mem.MaxSize) {
				s.putFigure(n, used, mem.Bytes(bytes))
			}
		}
	}
	if len(s.GPUs) == 0 {
		return nil, errors.New("it shows no GPU with its memory")
	}
	slices.SortFunc(s.GPUs, func(a, b ShownGPU) int { return cmp.Compare(a.Number, b.Number) })
	return []Shown{s}, nil
}

// OverTime is a recording of several moments that have their times; nil: they are too few, or have none.
func OverTime(all []Shown) *mem.Run {
	var events []Event
	last := int64(0)
	for i := range all {
		if all[i].Time <= last {
			return nil
		}
		last = all[i].Time
		for _, g := range all[i].GPUs {
			events = append(events, Event{Time: size(all[i].Time), Collector: smiCollector, Device: size(g.Number),
				Used: size(int64(g.Used)), Total: size(int64(g.Total))})
		}
	}
	if len(all) < 2 {
		return nil
	}
	out, err := recordingOf(events)
	if err != nil {
		return nil
	}
	return out
}

// Words says what the last moment shows.
func (s *Shown) Words(moments int) []string {
	first := fmt.Sprintf("%s shows one moment, so this says nothing of a peak or of growth.", s.Tool)
	if moments > 1 {
		first = fmt.Sprintf("%s shows %d moments without their times; this is the last, and says nothing of growth.",
			s.Tool, moments)
	}
	out := []string{first}
	for _, g := range s.GPUs {
		line := fmt.Sprintf("GPU %d", g.Number)
		if g.Name != "" {
			line += " (" + g.Name + ")"
		}
		if g.Total > 0 && g.Used <= g.Total {
			line += fmt.Sprintf(" has %v of %v in use, by all programs together: %v are free", g.Used, g.Total, g.Total-g.Used)
		} else {
			line += fmt.Sprintf(" has %v in use, by all programs together", g.Used)
		}
		out = append(out, line+"."+s.holders(&g))
	}
	return append(out, "To see which lines of a program take it: `hightide run -- COMMAND`.")
}

// leastUnnamed is what a GPU may have in use beyond its processes for the driver's sake.
const leastUnnamed = 700 * mem.MiB

// holders says which processes hold a GPU's memory, and how much no process that is shown does.
func (s *Shown) holders(g *ShownGPU) string {
	if !s.Listed {
		return ""
	}
	var named, silent []string
	var sum mem.Bytes
	for _, p := range s.Processes {
		if p.GPU != g.Number {
			continue
		}
		if p.Used == 0 {
			silent = append(silent, fmt.Sprintf("%d (%s)", p.PID, p.Name))
			continue
		}
		sum += p.Used
		who := p.Name
		if p.PID > 0 {
			who = fmt.Sprintf("process %d (%s)", p.PID, p.Name)
		}
		named = append(named, fmt.Sprintf("%s %v", who, p.Used))
	}
	text := ""
	if n := len(named); n > 5 {
		named = append(named[:5], fmt.Sprintf("and %d more", n-5))
	}
	if len(named) > 0 {
		text = " Of it " + strings.Join(named, ", ") + "."
	}
	if len(silent) > 0 { // as on Windows
		return text + fmt.Sprintf(" What each of these holds is not shown: %s.",
			strings.Join(silent[:min(len(silent), 5)], ", "))
	}
	if rest := g.Used - sum; rest > leastUnnamed {
		text += fmt.Sprintf(" %v of it are of no process that is shown: of another container or user, of one that is "+
			"about to end, or the driver does not tell.", rest)
	}
	return text
}
