package store

import (
	"encoding/hex"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// TestTeamHostileTexts: a run is kept and found whatever stands in its texts, however long they are and however little
// they compress: PostgreSQL's indices take none of more than 2,700 bytes.
func TestTeamHostileTexts(t *testing.T) {
	server := testkit.StartPostgres(t)
	s, _ := machine(t, server.New(t), t.TempDir(), t.TempDir())
	long := "<img src=x onerror=alert(1)>\x00\x1b[31m\xff" + hex.EncodeToString([]byte(noise(7, 20_000)))
	info := example
	info.Name, info.Host, info.Command = long, mem.Host{Name: long}, []string{"python", long}
	info.Tags = map[string]string{"project": long, long: "value"}
	w, err := s.Create(info)
	must(t, err)
	must(t, w.Write(mem.Event{Time: 2, Kind: long, Text: long}))
	place := mem.Place{Kind: "leak", File: long + ".py", Line: 3, Function: long}
	must(t, w.Write(mem.Found{Findings: 1, Places: []mem.Place{place}}))
	must(t, w.Write(mem.End{Time: 1e9, ExitCode: mem.Some(0)}))
	must(t, w.Close())
	runs, err := s.List(Filter{Finding: "leak"})
	if err != nil || len(runs) != 1 || !strings.HasPrefix(runs[0].Name, "<img src=x") || len(runs[0].Tags) != 2 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if _, run, err := Load(s, w.ID()); err != nil || len(run.Info.Name) < len(long) {
		t.Errorf("the recording has not all of its name: %v", err)
	}
}
