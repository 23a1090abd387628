package store

import (
	"slices"
	"testing"

	"hightide/internal/fleet"
	"hightide/internal/testkit"
)

// TestTeamFleet: a machine's report counts once, its newest state is shown, and months add up over sessions.
func TestTeamFleet(t *testing.T) {
	team, err := OpenTeam(testkit.StartPostgres(t).New(t), "file://"+t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	used := fleet.Used{Month: "2999-01", Project: "ranker", Person: "anna", GPU: "A10", Held: 100, Idle: 40, Reserved: 7, Unused: 3}
	send := func(machine, session string, number, time int64) {
		t.Helper()
		r := fleet.Report{Session: session, Number: number, State: fleet.State{Time: time, Every: 1}, Used: []fleet.Used{used}}
		if err := team.TakeReport(t.Context(), machine, r); err != nil {
			t.Fatal(err)
		}
	}
	send("gpu-1", "a", 1, 10)
	send("gpu-1", "a", 1, 11) // its answer was lost
	send("gpu-1", "a", 2, 12)
	send("gpu-1", "b", 1, 13) // hightide watch lost its folder
	send("gpu-2", "a", 1, 14)
	all, sums, now, err := team.Machines(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "gpu-1" || all[0].State.Time != 13 || all[1].State.Time != 14 {
		t.Fatalf("%+v, %v", all, err)
	}
	want := used
	want.Held, want.Idle, want.Reserved, want.Unused = 400, 160, 28, 12
	if !slices.Equal(sums, []fleet.Used{want}) {
		t.Errorf("%+v; want %+v", sums, want)
	}
	if heard := all[0].Heard; heard > now || now-heard > 60e9 {
		t.Errorf("heard at %d, now %d", heard, now)
	}
}
