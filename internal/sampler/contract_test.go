package sampler

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// answering opens each vendor where recorded or written answers stand in for a device, with a process that has some of
// its memory. root is where that was; "" where no other vendor can look.
var answering = map[string]func(t *testing.T) (v Vendor, own *Process, root string){
	"NVIDIA": func(t *testing.T) (Vendor, *Process, string) {
		v := openFake(t)
		own := &Process{PID: os.Getpid()}
		settle(t, v, []*Process{own})
		return v, own, ""
	},
	"AMD":   func(t *testing.T) (Vendor, *Process, string) { return openedTree(t, "amd", openAMD, 4711) },
	"Intel": func(t *testing.T) (Vendor, *Process, string) { return openedTree(t, "intel", openIntel, 4712) },
}

func openedTree(t *testing.T, tree string, open func(string) Vendor, pid int) (Vendor, *Process, string) {
	own, err := openProcess(fixtures+tree, pid, make([]byte, 4096))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.close)
	v := open(fixtures + tree)
	if v == nil {
		t.Fatalf("no device in %s", tree)
	}
	t.Cleanup(v.Close)
	return v, own, fixtures + tree
}

// TestVendors is the contract that every vendor of the list keeps.
func TestVendors(t *testing.T) {
	named := map[string]bool{}
	for _, maker := range Vendors {
		t.Run(maker.Name, func(t *testing.T) {
			if named[maker.Name] {
				t.Errorf("two vendors are called %s", maker.Name)
			}
			named[maker.Name] = true
			if v := maker.Open(t.TempDir()); v != nil {
				v.Close()
				t.Error("it has a device where there is none")
			}
			open := answering[maker.Name]
			if open == nil {
				t.Fatal("nothing answers for it: add it to answering")
			}
			v, own, root := open(t)
			if v.Name() != maker.Name {
				t.Errorf("it calls itself %s", v.Name())
			}
			for _, other := range Vendors {
				if root == "" || other.Name == maker.Name {
					continue
				}
				if stranger := other.Open(root); stranger != nil {
					stranger.Close()
					t.Errorf("%s takes its devices for its own", other.Name)
				}
			}
			devices := checkDevices(t, v)
			until(t, "a reading of the process that has memory on a device", func() bool {
				readings := checkReadings(t, v, devices, []*Process{own})
				return slices.ContainsFunc(readings, func(r Reading) bool { return r.Process == own })
			})
			for _, r := range checkReadings(t, v, devices, nil) {
				if r.Process != nil {
					t.Errorf("%s is of a process, and none is alive", r.Name)
				}
			}
		})
	}
}

// checkDevices: they are numbered from 0, each with its maker and a size that can be, and the same when asked again.
func checkDevices(t *testing.T, v Vendor) []mem.GPU {
	t.Helper()
	devices := slices.Clone(v.Devices())
	if len(devices) == 0 {
		t.Fatal("it has no device")
	}
	for i, gpu := range devices {
		if gpu.Index != i || gpu.Vendor != v.Name() || gpu.Name == "" || gpu.Memory.Known() && gpu.Memory.Or(0) <= 0 {
			t.Errorf("device %d: %+v", i, gpu)
		}
	}
	if again := v.Devices(); !slices.Equal(devices, again) {
		t.Errorf("asked again, it has %+v", again)
	}
	return devices
}

// ofDevices are the quantities of a device, and the largest value that one can have.
var ofDevices = map[mem.Quantity]int64{
	mem.SeriesDeviceUsed:        1 << 50,
	mem.SeriesDeviceProcess:     1 << 50,
	mem.SeriesDeviceUtilisation: 1000,      // thousandths
	mem.SeriesDeviceTemperature: 150,       // degrees Celsius
	mem.SeriesDevicePower:       5_000_000, // milliwatts
}

// checkReadings: each is of a device that is there and of a live process, or of none; it is a quantity of devices in its
// unit, no more than the device has, and there once.
func checkReadings(t *testing.T, v Vendor, devices []mem.GPU, live []*Process) []Reading {
	t.Helper()
	got, _ := v.Sample(live) // an error says what else cannot be observed
	readings := slices.Clone(got)
	seen := map[string]bool{}
	for _, r := range readings {
		name := key(r.Process, r.Device, r.Name)
		most, ofDevice := ofDevices[r.Name]
		at := slices.IndexFunc(devices, func(gpu mem.GPU) bool {
			return r.Device == fmt.Sprintf("%s:%d", strings.ToLower(v.Name()), gpu.Index)
		})
		switch {
		case seen[name]:
			t.Errorf("%s is there twice", name)
		case !ofDevice || r.Value < 0 || r.Value > most:
			t.Errorf("%s is %d", name, r.Value)
		case at < 0:
			t.Errorf("%s: there is no such device", name)
		case r.Process != nil && !slices.Contains(live, r.Process):
			t.Errorf("%s is of a process that is not alive", name)
		case (r.Process != nil) != (r.Name == mem.SeriesDeviceProcess):
			t.Errorf("%s: only what a process holds is of a process", name)
		case r.Name == mem.SeriesDeviceUsed && devices[at].Memory.Known() && r.Value > devices[at].Memory.Or(0):
			t.Errorf("%s: %d of %d bytes are in use", name, r.Value, devices[at].Memory.Or(0))
		}
		seen[name] = true
	}
	return readings
}
