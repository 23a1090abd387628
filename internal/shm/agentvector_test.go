package shm

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"hightide/internal/mem"
)

// describe writes a record of an agent's channel as testdata/channel/agent.json has it, where -1
// says that something was not read.
func describe(t *testing.T, r Record) map[string]any {
	absent := func(o mem.Optional) any { return float64(o.Or(-1)) }
	d := map[string]any{"time": float64(r.When())}
	switch r := r.(type) {
	case *JSON:
		var message any
		if err := json.Unmarshal(r.Data, &message); err != nil {
			t.Errorf("message %q: %v", r.Data, err)
		}
		d["kind"], d["json"] = "json", message
	case *Edge:
		leave := 0.0
		if r.Leave {
			leave = 1
		}
		d["kind"], d["phase"], d["leave"], d["module"], d["tid"] = "edge", string(r.Phase), leave, float64(r.Module),
			float64(r.Thread)
		d["step"], d["rss"], d["allocated"], d["reserved"] = float64(r.Step), absent(r.RSS), absent(r.DeviceAllocated),
			absent(r.DeviceReserved)
	case *Counters:
		values := []any{}
		for _, c := range r.Counters {
			values = append(values, []any{float64(c.Series), float64(c.Value)})
		}
		d["kind"], d["values"] = "counters", values
	case *Step:
		flags := 0.0
		if r.Skipped {
			flags = 1
		}
		d["kind"], d["step"], d["duration"], d["micro"], d["flags"] = "step", float64(r.Step), float64(r.Duration),
			float64(r.MicroSteps), flags
		d["rss"], d["allocated"] = absent(r.RSS), absent(r.DeviceAllocated)
	default:
		t.Errorf("a %T in an agent's channel", r)
	}
	return d
}

// TestAgentVector reads what the agent's writer in Python made, beside a description made without us.
func TestAgentVector(t *testing.T) {
	text, err := os.ReadFile("../../testdata/channel/agent.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Header struct {
			PID, Start, State, Word uint64
			Mono                    int64
		}
		Records []map[string]any
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	c, err := Open(mapped(t, "../../testdata/channel/agent.ring"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Role != RoleAgent || uint64(c.PID) != want.Header.PID || c.ProcessStart != want.Header.Start ||
		c.CreatedMono != want.Header.Mono {
		t.Errorf("%+v", c.Header)
	}
	var got []map[string]any
	if err := read(c, true, func(r Record) { got = append(got, describe(t, r)) }); err != nil {
		t.Fatal(err)
	}
	if c.Malformed+c.Unknown+c.Holes != 0 || len(got) != len(want.Records) {
		t.Fatalf("%d records, want %d; %+v", len(got), len(want.Records), c.Stats)
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want.Records[i]) {
			t.Errorf("record %d: got %v\nwant %v", i, got[i], want.Records[i])
		}
	}
}
