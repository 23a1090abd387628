package matrix

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"
)

// What another project's dashboard reads, https://github.com/YaxitaAmin/Virtual_memory_profiling_MLmodels: a folder
// for each cell, named framework_size_bBATCH_mode_device, with the samples of one run and what it was.

// The files of such a folder.
const (
	SeedSamples  = "memory_data.csv"
	SeedMetadata = "metadata.json"
)

// SeedFolder is a cell with the run that stands for it: the one whose RSS is in the middle.
type SeedFolder struct {
	Name  string
	Cell  Cell
	Trial Trial
}

// SeedFolders are the cells of which there is a recording.
func SeedFolders(r *Result) ([]SeedFolder, error) {
	at, err := seedAxesOf(r.Axes)
	if err != nil {
		return nil, err
	}
	trials := map[string][]Trial{}
	for _, t := range r.Trials {
		if _, ok := t.Figures[RSS]; ok && t.State == Done && t.Run != "" {
			trials[t.Cell] = append(trials[t.Cell], t)
		}
	}
	var folders []SeedFolder
	for _, c := range r.Cells {
		all := trials[c.Key]
		if len(all) == 0 {
			continue
		}
		sort.SliceStable(all, func(i, j int) bool { return all[i].Figures[RSS].Max < all[j].Figures[RSS].Max })
		words := seedRow(r.Axes, at, c.Values)
		for i, w := range words { // its reader cuts names at underscores
			words[i] = strings.NewReplacer("_", "-", "/", "-").Replace(w)
		}
		words[2] = "b" + words[2]
		folders = append(folders, SeedFolder{strings.Join(words, "_"), c, all[len(all)/2]})
	}
	return folders, nil
}

// WriteSeedSamples writes the samples of a run of the process tree. They are seconds since it began, MB of 2^20
// bytes, faults since it began, percent of one processor since the last sample.
func WriteSeedSamples(w io.Writer, run *mem.Run) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"timestamp", "rss", "vms", "page_faults", "major_faults", "minor_faults", "swap",
		"cpu_percent"}); err != nil {
		return err
	}
	rss := run.Find(0, mem.SeriesTreeRSS)
	if rss == nil {
		out.Flush()
		return out.Error()
	}
	vms, swap, cpu := over(run, mem.SeriesVMS), over(run, mem.SeriesSwap), over(run, mem.SeriesCPU)
	major, minor := over(run, mem.SeriesMajorFaults), over(run, mem.SeriesMinorFaults)
	last := int64(0)
	for i, at := range rss.Times {
		percent := 0.0
		if i > 0 && at > last {
			percent = float64(max(cpu.at(at)-cpu.at(last), 0)) / float64(at-last) * 100
		}
		last = at
		row := []string{plain(float64(at-run.Start()) / 1e9), megabytes(rss.Values[i]), megabytes(vms.at(at)),
			strconv.FormatInt(major.at(at)+minor.at(at), 10),
			strconv.FormatInt(major.at(at), 10), strconv.FormatInt(minor.at(at), 10), megabytes(swap.at(at)),
			strconv.FormatFloat(percent, 'f', 1, 64)}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func megabytes(n int64) string { return plain(float64(n) / float64(mem.MiB)) }

// curve of a quantity, summed over processes.
type curve struct{ times, values []int64 }

func over(run *mem.Run, name mem.Quantity) curve {
	times, values, _ := sums(run, name)
	return curve{times, values}
}

// at is the last value until then; 0: there is none.
func (c curve) at(time int64) int64 {
	n := sort.Search(len(c.times), func(i int) bool { return c.times[i] > time })
	if n == 0 {
		return 0
	}
	return c.values[n-1]
}

// WriteSeedMetadata writes what a cell was.
func WriteSeedMetadata(w io.Writer, r *Result, f SeedFolder, host *mem.Host) error {
	at, err := seedAxesOf(r.Axes)
	if err != nil {
		return err
	}
	row := seedRow(r.Axes, at, f.Cell.Values)
	var batch any = row[2]
	if n, err := strconv.ParseInt(row[2], 10, 64); err == nil {
		batch = n
	}
	text, err := json.MarshalIndent(map[string]any{
		"framework": row[0], "model_size": row[1], "batch_size": batch, "mode": row[3], "device": row[4],
		"timestamp": time.Unix(0, f.Trial.StartWall).UTC().Format("2006-01-02T15:04:05.000000"),
		"system_info": map[string]any{"cpu_cores": host.CPUs, "memory_total": gigabytes(host.Memory.Or(0)),
			"platform": "Linux-" + host.Kernel,
			"hostname": host.Name},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", SeedMetadata, err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

func gigabytes(n int64) float64 { return float64(n*100/(1<<30)) / 100 }
