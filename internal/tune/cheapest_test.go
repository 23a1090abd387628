package tune

import (
	"strings"
	"testing"

	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// large is a training of 60 GiB, half of which its eight blocks keep.
func large() *program {
	r := &Recorded{Highest: 60 * mem.GiB, Middle: 60 * mem.GiB, FLOPs: 8000}
	for i := range 8 {
		name := string(rune('a' + i))
		at := 30*mem.GiB + mem.Bytes(i)*4*mem.GiB
		r.Blocks = append(r.Blocks, Block{Name: name, Kept: 4 * mem.GiB, Out: mem.GiB / 4, FLOPs: 1000, Forward: at, Backward: at})
	}
	p := gpt()
	p.recorded, p.tight, p.weights, p.moved, p.saves = r, mem.GiB, 0, 0, nil
	p.refuses = map[string]string{"offload": "nothing to move", "states_on_host": "nothing to move", "compile_budget": "not compiled"}
	return p
}

// cheapest tunes for the least money with a fake of imagined runs on each GPU, and says which GPUs ran.
func cheapest(t *testing.T, p *program, o Options) (*Result, []string, error) {
	t.Helper()
	o.Command, o.Goal = []string{"python", "train.py"}, Cost
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	var ran []string
	r, err := Cheapest(t.Context(), o, func(name string) (Host, error) {
		g, err := gpus.Builtin().Named(name)
		ran = append(ran, name)
		p.total = g.Total
		return Host{Try: p.try}, err
	})
	return r, ran, err
}

// TestCheapestGPU: the cheapest GPU with a plan is found; those with too little memory for the smallest peak are not searched.
func TestCheapestGPU(t *testing.T) {
	p := large()
	r, ran, err := cheapest(t, p, Options{GPU: "t4,h100-sxm,a6000,a100-40g,h200"})
	if err != nil || r.Recommended == nil {
		t.Fatalf("%v, %+v", err, r)
	}
	builtin := gpus.Builtin()
	a6000, _ := builtin.Named("rtx-a6000")
	if got := strings.Join(ran, " "); got != "rtx-a6000 rtx-a6000" && got != "t4 rtx-a6000" || r.Price != a6000.Price || r.Goal != Cost {
		t.Errorf("ran %s; %v USD an hour, and the A6000 costs %v", got, r.Price, a6000.Price)
	}
	if !strings.Contains(r.Answer, "That is rtx-a6000 for $") || p.runs != r.Runs || r.Runs > 40 {
		t.Errorf("%q, %d of %d runs", r.Answer, r.Runs, p.runs)
	}
	if t4, _ := builtin.Named("t4"); t4.Price < a6000.Price && !strings.Contains(strings.Join(r.Notes, "\n"), "t4 is cheaper and was passed over: ") {
		t.Errorf("nothing is said of the T4: %q", r.Notes)
	}
}

// TestCheapestMachine: a machine that is rented has its own price.
func TestCheapestMachine(t *testing.T) {
	r, _, err := cheapest(t, large(), Options{GPU: "a100-40g,a100-80g", Instances: true})
	if err != nil || r.Recommended == nil {
		t.Fatalf("%v, %+v", err, r)
	}
	least := 0.0
	for _, m := range gpus.Instances() {
		if (m.GPU == "a100-80g" || m.GPU == "a100-40g") && (least == 0 || m.Price < least) {
			least = m.Price
		}
	}
	if r.Price != least || r.Machine == "" || !strings.Contains(r.Answer, r.Machine) {
		t.Errorf("%q: %v for %v, want %v", r.Answer, r.Machine, r.Price, least)
	}
}

// TestCheapestNone: where no plan fits, the last GPU is searched all the same, and the answer says so.
func TestCheapestNone(t *testing.T) {
	r, ran, err := cheapest(t, large(), Options{GPU: "t4,l4"})
	if err != nil || r.Recommended != nil || r.Price != 0 || len(ran) != 2 || !strings.HasPrefix(r.Answer, "No plan") {
		t.Errorf("%v, ran %v: %+v", err, ran, r)
	}
	if _, _, err := cheapest(t, large(), Options{GPU: "rtx5070"}); err == nil || !strings.Contains(err.Error(), "no price is known of rtx5070") {
		t.Errorf("%v", err)
	}
}
