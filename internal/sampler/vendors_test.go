package sampler

import (
	"reflect"
	"testing"

	"hightide/internal/mem"
)

const fixtures = "../../testdata/vendors/"

// sampleTree opens one vendor on a tree of files and samples one process of it.
func sampleTree(t *testing.T, tree string, open func(string) Vendor, pid int) (Vendor, map[string]int64, *Process) {
	t.Helper()
	v := open(fixtures + tree)
	if v == nil {
		t.Fatal("no device was found")
	}
	p, err := openProcess(fixtures+tree, pid, make([]byte, 4096))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	got := map[string]int64{}
	for range 2 { // the second answer replaces the first
		readings, err := v.Sample([]*Process{p})
		if err != nil {
			t.Fatal(err)
		}
		clear(got)
		for _, r := range readings {
			name := key(r.Process, r.Device, r.Name)
			if _, twice := got[name]; twice {
				t.Errorf("%s was read twice", name)
			}
			got[name] = r.Value
		}
	}
	v.Close()
	return v, got, p
}

func TestAMD(t *testing.T) {
	v, got, p := sampleTree(t, "amd", openAMD, 4711)
	wantGPUs := []mem.GPU{
		{Index: 0, UUID: "a1b2c3d4e5f60718", Vendor: "AMD", Name: "AMD Instinct MI300X OAM", Memory: mem.Some(206141652992),
			Driver: "amdgpu"},
		{Index: 1, Vendor: "AMD", Name: "AMD 73bf", Memory: mem.Some(17163091968), Driver: "amdgpu"},
	}
	if !reflect.DeepEqual(v.Devices(), wantGPUs) {
		t.Errorf("%+v", v.Devices())
	}
	want := map[string]int64{
		key(nil, "amd:0", mem.SeriesDeviceUsed): 2048000000, key(nil, "amd:1", mem.SeriesDeviceUsed): 536870912,
		key(nil, "amd:0", mem.SeriesDeviceUtilisation): 730, key(nil, "amd:1", mem.SeriesDeviceUtilisation): 40,
		key(nil, "amd:0", mem.SeriesDeviceTemperature): 54, key(nil, "amd:1", mem.SeriesDeviceTemperature): 41,
		key(nil, "amd:0", mem.SeriesDevicePower): 142000, key(nil, "amd:1", mem.SeriesDevicePower): 33000,
		key(p, "amd:0", mem.SeriesDeviceProcess): 1 << 30,   // the compute driver's, above fdinfo's
		key(p, "amd:1", mem.SeriesDeviceProcess): 256 << 20, // one client on two descriptors: once
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestIntel(t *testing.T) {
	v, got, p := sampleTree(t, "intel", openIntel, 4712)
	if gpus := v.Devices(); len(gpus) != 2 || gpus[0].Memory != mem.Some(12<<30) || gpus[0].Driver != "xe" ||
		gpus[1].Memory.Known() {
		t.Errorf("%+v", gpus)
	}
	want := map[string]int64{
		key(nil, "intel:0", mem.SeriesDeviceTemperature): 47,
		key(p, "intel:0", mem.SeriesDeviceProcess):       48 << 20,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestVendorsElsewhere: no vendor finds a device in another's tree, nor where there is none.
func TestVendorsElsewhere(t *testing.T) {
	for _, tree := range []string{"cgroup1", "intel"} {
		if v := openAMD(fixtures + tree); v != nil {
			t.Errorf("AMD in %s", tree)
		}
	}
	if v := openIntel(fixtures + "amd"); v != nil {
		t.Error("Intel in amd")
	}
	if all := OpenVendors(t.TempDir()); len(all) != 0 || all == nil {
		t.Errorf("%v", all)
	}
}

func TestCgroups(t *testing.T) {
	for _, test := range []struct {
		tree                   string
		version                int
		used, limit, oom, kill mem.Optional
	}{
		{"cgroup1", 1, mem.Some(123456789), mem.Some(4 << 30), mem.Optional{}, mem.Some(2)},
		{"cgroup2", 2, mem.Some(987654321), mem.Some(16 << 30), mem.Some(4), mem.Some(1)},
		{"container2", 2, mem.Some(555), mem.Some(1 << 30), mem.Some(0), mem.Some(0)},
		{"amd", 0, mem.Optional{}, mem.Optional{}, mem.Optional{}, mem.Optional{}},
	} {
		group := OpenCgroup(fixtures+test.tree, 0)
		oom, kill := group.Events()
		if group.Version != test.version || group.Used() != test.used || group.Limit() != test.limit || oom != test.oom ||
			kill != test.kill {
			t.Errorf("%s: version %d, used %v, limit %v, oom %v, kill %v", test.tree, group.Version, group.Used(),
				group.Limit(), oom, kill)
		}
		group.Close()
	}
}

// FuzzFdinfo and FuzzStat: the kernel's text or anything else, values stay in range.
func FuzzFdinfo(f *testing.F) {
	f.Add([]byte("drm-pdev:\t0000:05:00.0\ndrm-client-id:\t1\ndrm-resident-vram0:\t8 MiB\n"))
	f.Add([]byte("drm-resident-vram:\t99999999999999999999 KiB\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if info, ok := parseFdinfo(text, []string{"vram"}); ok && (info.pci == "" || info.client == "") {
			t.Fatalf("%+v", info)
		}
		if bytes, ok := field(text, "Pss"); ok && bytes < 0 {
			t.Fatal(bytes)
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (a) b) (c) S 2 1 1 0 -1 4194304 900 0 3 0 150 50 0 0 20 0 9 0 123456 9000000000 250000 1 4096 5000 " +
		"140721000 0"))
	f.Add([]byte("1 ()"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStat(text)
		if err == nil && (s.vms < 0 || s.rssPages < 0 || s.start < 0) {
			t.Fatalf("%+v", s)
		}
	})
}

func TestParseStat(t *testing.T) {
	s, err := parseStat([]byte("77 (a) b) (c) S 2 1 1 0 -1 4194304 900 0 3 0 150 50 0 0 20 0 9 0 123456 9000000000 " +
		"250000 1 4096 5000 140721000 0"))
	want := stat{'S', 2, 900, 3, 200, 9, 123456, 9000000000, 250000, 140721000, []byte("a) b) (c")}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v", s, err)
	}
}
