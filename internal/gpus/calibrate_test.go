package gpus

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/pythons"
)

// TestCalibration: what a card says becomes a row that the catalogue takes.
func TestCalibration(t *testing.T) {
	text := []byte(`{"torch":"2.15.0+cu130","gpus":[{"index":0,"name":"NVIDIA A10","compute_capability":"8.6","multiprocessors":72,"total_bytes":23609475072,"used_bytes":900000000,"reserved_bytes":23068672}]}`)
	c, err := readCalibration(text, pythons.Interpreter{Path: "/usr/bin/python3"},
		map[string]int64{"nvidia:0": 500000000}, map[string]int64{"nvidia:0": 500000000})
	if err != nil || len(c.GPUs) != 1 || c.GPUs[0].Overhead != mem.Some(900000000-500000000-23068672) ||
		c.GPUs[0].Like != "a10" {
		t.Fatalf("%+v %v", c, err)
	}
	own := Builtin()
	if err := own.Parse("own.toml", []byte(c.TOML())); err != nil {
		t.Fatalf("%v in\n%s", err, c.TOML())
	}
	if g := own.GPUs[len(own.GPUs)-1]; g.Total != 23609475072 || g.Overhead != 376931328 || g.SMs != 72 {
		t.Errorf("%+v", g)
	}
	// Another process came or went meanwhile: what ours took cannot be told.
	c, err = readCalibration(text, pythons.Interpreter{}, map[string]int64{"nvidia:0": 500000000},
		map[string]int64{"nvidia:0": 800000000})
	if err != nil || c.GPUs[0].Overhead.Known() {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := readCalibration([]byte("Traceback"), pythons.Interpreter{}, nil, nil); err == nil {
		t.Error("no JSON was taken")
	}
}
