package sampler

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/sampler/nvml"
	"hightide/internal/testkit"
)

// fakeNVML is the helper, which finds a library that answers as NVML does.
func fakeNVML(t *testing.T, flags ...string) []byte {
	t.Helper()
	image, ok := nvml.Program()
	if !ok {
		t.Skip("the NVML helper is not built: make -C internal/sampler/nvml")
	}
	testkit.FakeNVML(t, flags...)
	return image
}

// openFake starts the helper as on a machine with the driver.
func openFake(t *testing.T, flags ...string) *nvidia {
	image := fakeNVML(t, flags...)
	v := startNVIDIA(image, os.Getenv("LD_LIBRARY_PATH"))
	t.Cleanup(v.Close)
	v.Devices()
	return v
}

// settle asks until an answer has come.
func settle(t *testing.T, v *nvidia, live []*Process) ([]Reading, error) {
	t.Helper()
	var readings []Reading
	var err error
	until(t, "an answer", func() bool {
		readings, err = v.Sample(live)
		return len(readings) > 0 || v.problem != nil
	})
	return readings, err
}

func TestNVIDIA(t *testing.T) {
	v := openFake(t)
	if v.problem != nil {
		t.Fatal(v.problem)
	}
	wantGPUs := []mem.GPU{
		{Index: 0, UUID: "GPU-00000000", Vendor: "NVIDIA", Name: "NVIDIA Test A", Memory: mem.Some(80 << 30),
			Driver: "550.54.15"},
		{Index: 1, UUID: "GPU-00000001", Vendor: "NVIDIA", Name: "NVIDIA Test B", Memory: mem.Some(80 << 30),
			Driver: "550.54.15"},
	}
	if !reflect.DeepEqual(v.Devices(), wantGPUs) {
		t.Errorf("%+v", v.Devices())
	}
	own := &Process{PID: os.Getpid()}
	before := monotonic()
	readings, err := settle(t, v, []*Process{own})
	if err == nil || !strings.Contains(err.Error(), "does not say what each process holds") {
		t.Errorf("a process without a figure is not mentioned: %v", err)
	}
	got := map[string]int64{}
	for _, r := range readings {
		if r.Time < before || r.Time > monotonic() {
			t.Errorf("%s at %d", r.Name, r.Time)
		}
		got[key(r.Process, r.Device, r.Name)] = r.Value
	}
	want := map[string]int64{
		key(nil, "nvidia:0", mem.SeriesDeviceUsed): 2 << 30, key(nil, "nvidia:1", mem.SeriesDeviceUsed): 3 << 30,
		key(nil, "nvidia:0", mem.SeriesDeviceUtilisation): 870,
		key(nil, "nvidia:0", mem.SeriesDeviceTemperature): 61, key(nil, "nvidia:1", mem.SeriesDeviceTemperature): 62,
		key(nil, "nvidia:0", mem.SeriesDevicePower): 350123, key(nil, "nvidia:1", mem.SeriesDevicePower): 350123,
		key(own, "nvidia:0", mem.SeriesDeviceProcess): 1500 << 20,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	v.program.Process.Kill()
	until(t, "the helper's end", func() bool { _, err = v.Sample(nil); return v.problem != nil })
	if err == nil || !strings.Contains(err.Error(), "helper ended") {
		t.Errorf("the helper's end is not noticed: %v", err)
	}
}

// TestNVIDIAOldDriver: one that has only the first versions of the functions.
func TestNVIDIAOldDriver(t *testing.T) {
	v := openFake(t, "-DOLD")
	own := &Process{PID: os.Getpid()}
	readings, _ := settle(t, v, []*Process{own})
	got := map[string]int64{}
	for _, r := range readings {
		got[key(r.Process, r.Device, r.Name)] = r.Value
	}
	if got[key(nil, "nvidia:0", mem.SeriesDeviceUsed)] != 3<<30 ||
		got[key(own, "nvidia:0", mem.SeriesDeviceProcess)] != 1500<<20 {
		t.Errorf("%v", got)
	}
}

func TestNVIDIANotLoaded(t *testing.T) {
	v := openFake(t, "-DBROKEN")
	if v.problem == nil || !strings.Contains(v.problem.Error(), "Driver Not Loaded") {
		t.Errorf("%v", v.problem)
	}
}

// TestNVIDIAHangs: a device that never answers costs no time, and the helper is ended all the same.
func TestNVIDIAHangs(t *testing.T) {
	v := openFake(t, "-DHANGS")
	began := time.Now()
	for range 1000 {
		if readings, err := v.Sample(nil); len(readings) > 0 || err != nil {
			t.Fatal(readings, err)
		}
	}
	pid := v.HelperPid()
	v.Close()
	if time.Since(began) > 20*time.Second { // one second of waiting for each would make a quarter of an hour
		t.Errorf("took %v", time.Since(began))
	}
	until(t, "the helper's end", func() bool { return syscall.Kill(pid, 0) != nil })
}

// TestNVIDIAElsewhere: without the driver nothing is started.
func TestNVIDIAElsewhere(t *testing.T) {
	if v := openNVIDIA(t.TempDir()); v != nil {
		t.Errorf("%+v", v)
	}
}

// TestNVIDIAOfWindows: in WSL 2 the library that Windows lends is asked.
func TestNVIDIAOfWindows(t *testing.T) {
	fakeNVML(t)
	library, err := os.ReadFile(filepath.Join(os.Getenv("LD_LIBRARY_PATH"), "libnvidia-ml.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", "")
	root := t.TempDir()
	write := func(path string, data []byte) {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("dev/dxg", nil)
	if v := openNVIDIA(root); v != nil {
		t.Errorf("without a library: %+v", v)
	}
	write("usr/lib/wsl/lib/libnvidia-ml.so.1", library)
	v, ok := openNVIDIA(root).(*nvidia)
	if !ok {
		t.Fatal("not opened")
	}
	t.Cleanup(v.Close)
	if len(v.Devices()) != 2 || v.problem != nil {
		t.Errorf("%+v: %v", v.Devices(), v.problem)
	}
}

// FuzzReadAnswer: any text gives values in range, and never a panic.
func FuzzReadAnswer(f *testing.F) {
	f.Add("driver 1\ngpu 0 u 5 A B\nend\nsample 5\nused 0 7\nprocess 0 1 2\nnote x\nend\n")
	f.Add("used 0 99999999999999999999\nutil -1 5\nend\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := bufio.NewScanner(strings.NewReader(text))
		for {
			answer, ok := readAnswer(lines)
			for _, v := range answer.values {
				if v.value < 0 || v.device < 0 || v.pid < 0 {
					t.Fatalf("%+v", v)
				}
			}
			if !ok {
				return
			}
		}
	})
}
