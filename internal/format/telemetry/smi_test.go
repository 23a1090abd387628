package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
)

const smiHead = "timestamp, name, index, memory.total [MiB], memory.used [MiB]\n"

// TestReadSMI: what each GPU had in use; a reading that nvidia-smi did not have is absent.
func TestReadSMI(t *testing.T) {
	text := smiHead +
		"2026/11/23 10:00:00.000, NVIDIA H100, 0, 81559 MiB, 20000 MiB\n2026/11/23 10:00:00.002, NVIDIA A10, 1, 23028 " +
		"MiB, [N/A]\n" +
		"2026/11/23 10:00:01.000, NVIDIA H100, 0, 81559 MiB, 30000 MiB\n2026/11/23 10:00:01.002, NVIDIA A10, 1, 23028 " +
		"MiB, 5 MiB\n"
	for _, text := range []string{text, strings.ReplaceAll(text, " MiB", "")} {
		if !IsSMI([]byte(text)) || Is([]byte(text)) {
			t.Error("it is not known by its header")
		}
		run, err := ReadSMI(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Processes) != 0 || len(run.Series) != 2 || len(run.Info.Host.GPUs) != 2 ||
			run.Info.Host.GPUs[1].Name != "NVIDIA A10" {
			t.Fatalf("processes %v, series %v, GPUs %v", run.Processes, run.Series, run.Info.Host.GPUs)
		}
		first, second := run.Series[0], run.Series[1]
		if first.Name != mem.SeriesDeviceUsed || first.Device != "gpu:0" || first.Values[1] != 30000<<20 ||
			first.Times[1]-first.Times[0] != 1e9 {
			t.Errorf("series %+v", first)
		}
		if second.Device != "gpu:1" || len(second.Values) != 1 || second.Values[0] != 5<<20 {
			t.Errorf("series %+v: want the one reading there is", second)
		}
	}
}

// TestReadSMITimes: scripts around nvidia-smi write the time since 1970, and ISO 8601. Without memory.total what is
// used and free tells it.
func TestReadSMITimes(t *testing.T) {
	for _, times := range [][2]string{{"1714060828.887", "1714060829.887"}, {"1714060828887", "1714060829887"},
		{"1714060828", "1714060829"}, {"1714060828887000000", "1714060829887000000"},
		{"2026-01-03T15:00:00.5", "2026-01-03T15:00:01.5"}, {"2026-01-03 15:00:00", "2026-01-03 15:00:01"},
		{"2026-01-03T15:00:00Z", "2026-01-03T15:00:01Z"}} {
		run, err := ReadSMI(strings.NewReader("timestamp, memory.used [MiB], memory.free [MiB]\n" + times[0] +
			", 3767 MiB, 16381 MiB\n" + times[1] + ", 20137 MiB, 11 MiB\n"))
		if err != nil {
			t.Errorf("%s: %v", times[0], err)
			continue
		}
		s := run.Series[0]
		if since := s.Times[1] - s.Times[0]; since < 1e9-1000 || since > 1e9+1000 || s.Values[1] != 20137<<20 ||
			run.Info.Host.GPUs[0].Memory.Or(0) != 20148<<20 {
			t.Errorf("%s: %v %v, %+v", times[0], s.Times, s.Values, run.Info.Host.GPUs)
		}
	}
}

// TestReadSMIDamaged: a log that was cut, appended to, saved by a spreadsheet, or of a GPU that did not answer, is
// read as far as it goes, and what is missing is told.
func TestReadSMIDamaged(t *testing.T) {
	const head, row = "timestamp, index, memory.used [MiB], memory.total [MiB]\n",
		"2026/01/03 15:00:0%d.000, 0, %s, 24564 MiB\n"
	line := func(second int, used string) string { return fmt.Sprintf(row, second, used) }
	for name, test := range map[string]struct {
		text  string
		want  []int64 // MiB
		notes string
	}{
		"cut": {head + line(0, "4000 MiB") + line(1, "4100 MiB") + "2026/01/03 15:00:02.000, 0, 40",
			[]int64{4000, 4100}, "the last line, which ends in the middle"},
		"appended to": {head + line(0, "4000 MiB") + head + line(1, "4100 MiB"), []int64{4000, 4100}, ""},
		"semicolons":  {strings.ReplaceAll(head+line(0, "4000 MiB")+line(1, "4100 MiB"), ",", ";"), []int64{4000, 4100}, ""},
		"fractions":   {strings.ReplaceAll(head, "MiB", "GiB") + line(0, "4.5 GiB"), []int64{4608}, ""},
		"no answer": {head + line(0, "4000 MiB") + line(1, "[Unknown Error]") + line(2, "[GPU is lost]"), []int64{4000},
			"2 of 3 readings, for which nvidia-smi had no figure"},
	} {
		run, err := ReadSMI(strings.NewReader(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		notes := ""
		for _, e := range run.Events {
			notes += e.Text
		}
		var got []int64
		for _, v := range run.Series[0].Values {
			got = append(got, v>>20)
		}
		if !slices.Equal(got, test.want) || notes != test.notes {
			t.Errorf("%s: %v, %q; want %v, %q", name, got, notes, test.want, test.notes)
		}
	}
	if _, err := ReadSMI(strings.NewReader(head + line(0, "[N/A]"))); err == nil || !strings.Contains(err.Error(), "no figure for any of the 1 readings") {
		t.Error(err)
	}
}

// TestReadSMIRefuses: rows that cannot be told apart and what is not a size are refused with their line; what is only
// not said is told.
func TestReadSMIRefuses(t *testing.T) {
	const head = "timestamp, memory.used [MiB]\n"
	for text, says := range map[string]string{
		head + "2026/11/23 10:00:00.000, 1 MiB\n2026/11/23 10:00:00.000, 2 MiB\n": "line 3: two rows of one moment",
		head + "2026/11/23 10:00:00.000, many\n":                                  `line 2: "many" is not a size`,
		head + "2026/11/23 10:00:00.000, 99999999999999 MiB\n":                    "is not a size",
		head + "yesterday, 1 MiB\n":                                               `line 2: "yesterday" is not a moment`,
		"timestamp, memory.used [pages]\n":                                        "no unit that is known",
		head:                                                                      "no readings",
	} {
		if run, err := ReadSMI(strings.NewReader(text)); err == nil || run != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	run, err := ReadSMI(strings.NewReader(head + "2026/11/23 10:00:00.000, 1 MiB\n2026/11/23 10:00:01.000, 2 MiB\n"))
	if err != nil || len(run.Events) != 1 || !strings.Contains(run.Events[0].Text, "taken for one GPU") {
		t.Errorf("%v, %+v", err, run)
	}
}
