package torch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/pickle"
)

type expected struct {
	Segments, Blocks, Events, Frames, Lines, Annotations int
	Reserved, Allocated, Requested                       mem.Bytes
	Actions                                              map[string]int
	EventBytes                                           mem.Bytes `json:"event_bytes"`
	AddressSum                                           uint64    `json:"address_sum"`
	LastTime                                             int64     `json:"last_time_us"`
	DistinctStacks                                       int       `json:"distinct_stacks"`
}

func describe(s *mem.AllocatorSnapshot) expected {
	e := expected{Segments: len(s.Segments), Annotations: len(s.Annotations), Actions: map[string]int{}}
	totals := s.Totals(-1)
	e.Reserved, e.Allocated, e.Requested = totals.Reserved, totals.Allocated, totals.Requested
	for _, segment := range s.Segments {
		e.Blocks += len(segment.Blocks)
	}
	distinct := map[uint32]bool{}
	for _, t := range s.Traces {
		e.Events += t.Len()
		for i := range t.Action {
			e.Actions[mem.ActionNames[t.Action[i]]]++
			e.EventBytes += t.Size[i]
			if t.Action[i] != mem.ActionOOM {
				e.AddressSum += t.Address[i]
			}
			if t.Time != nil {
				e.LastTime = max(e.LastTime, t.Time[i]/1000)
			}
			distinct[t.Stack[i]] = true
			for _, frame := range s.Stacks.Frames(t.Stack[i]) {
				e.Frames++
				e.Lines += frame.Line
			}
		}
	}
	e.DistinctStacks = len(distinct)
	return e
}

// TestTorchReal compares with what Python's own pickle says of the same files.
func TestTorchReal(t *testing.T) {
	files, _ := filepath.Glob("../../../testdata/real/*.pickle")
	if len(files) < 3 {
		t.Fatalf("found %d real snapshots, want at least 3", len(files))
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path + ".expected.json")
			if err != nil {
				t.Fatal(err)
			}
			var want expected
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			s, err := Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(describe(s))
			wanted, _ := json.Marshal(want)
			if !bytes.Equal(got, wanted) {
				t.Errorf("got  %s\nwant %s", got, wanted)
			}
		})
	}
}

// TestTorchTruncated: every cut of a real file is an error with a position, never a snapshot.
func TestTorchTruncated(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/real/mosaic-synthetic.pickle")
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut < len(data)-1; cut += 997 {
		s, err := Read(bytes.NewReader(data[:cut]))
		var where *pickle.Error
		if s != nil || !errors.As(err, &where) || !errors.Is(err, pickle.ErrTruncated) {
			t.Fatalf("cut at %d: %v, %v", cut, s, err)
		}
	}
}

// FuzzTorch: a snapshot or an error, never both, and what it says is consistent.
func FuzzTorch(f *testing.F) {
	f.Add([]byte("\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\x0ddevice_traces\x94]\x94u."))
	data, err := os.ReadFile("../../../testdata/real/mosaic-synthetic.pickle")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:20000])
	for _, version := range []string{"1.11", "1.13", "2.0", "2.1"} {
		old, err := os.ReadFile("../../../testdata/imagined/version-" + version + ".pickle")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(old)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(bytes.NewReader(data))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v: want one of them", s, err)
		}
		if s != nil {
			describe(s)
		}
	})
}

// TestEventsWithoutAKey: an event that does not say how much or where would move the peak.
func TestEventsWithoutAKey(t *testing.T) {
	const event = `{"action": "alloc", "addr": 512, "size": 1024, "stream": 0, "frames": []}`
	for _, test := range []struct{ event, fault string }{
		{event, ""},
		{strings.Replace(event, `"size": 1024, `, "", 1), "an event without size"},
		{strings.Replace(event, `"size": 1024, `, `"size": -5, `, 1), "an event whose size is -5 bytes"},
		{strings.Replace(event, `"size": 1024, `, `"size": 9223372036854775808, `, 1),
			"an event whose size is 2^63 bytes or more"},
		{strings.Replace(event, `"addr": 512, `, "", 1), "an event without addr"},
		{strings.Replace(event, `"addr"`, `"device_free"`, 1), ""},
	} {
		_, err := ReadJSON(strings.NewReader(`{"segments": [], "device_traces": [[` + test.event + `]]}`))
		if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: %v, want %q", test.event, err, test.fault)
		}
	}
	for _, empty := range []string{"\x80\x04}.", "\x80\x04]."} { // {}, []
		if _, err := Read(strings.NewReader(empty)); (err == nil) != (empty[2] == ']') {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// TestVersions: of each PyTorch from 1.11 on, a file that it wrote itself gives the same blocks, lines and sizes.
func TestVersions(t *testing.T) {
	files, _ := filepath.Glob("../../../testdata/imagined/version-*.pickle")
	if len(files) < 19 {
		t.Fatalf("%d files, want one of each version from 1.11 on", len(files))
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var lines []string
		for _, segment := range s.Segments {
			for _, b := range segment.Blocks {
				if b.State == mem.BlockInactive {
					continue
				}
				line := fmt.Sprintf("%d of %d", int64(b.Requested), int64(b.Size))
				if frames := s.Stacks.Frames(b.Stack); len(frames) > 0 {
					line += fmt.Sprintf(" at %s:%d %s", frames[0].File, frames[0].Line, frames[0].Function)
				}
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		want := []string{"25165724 of 25165824 at version.py:32 weights", "5242880 of 5242880 at version.py:36 activations"}
		version := strings.TrimSuffix(filepath.Base(path), ".pickle")
		bare := version == "version-1.11" || version == "version-1.12" // which record no lines
		if bare {
			want = []string{"25165824 of 25165824", "5242880 of 5242880"}
		}
		wrote, _ := mem.ParseVersion(strings.TrimPrefix(version, "version-"))
		if v := s.Versions; wrote.Before(v.First) || v.Last != (mem.Version{}) && v.Last.Before(wrote) {
			t.Errorf("%s is said to be of %v", path, v)
		}
		if !slices.Equal(lines, want) || s.NoRequests != bare || len(s.Unknown) > 0 {
			t.Errorf("%s: %q, requests unknown %v, keys unknown %q; want %q, %v", path, lines, s.NoRequests, s.Unknown, want,
				bare)
		}
	}
}
