package sampler

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/system"
)

// drm is a vendor whose kernel driver publishes devices in /sys/class/drm and the share of each
// process in /proc/PID/fdinfo. amd.go and intel.go say what their files are called.
//
// Sources: Documentation/gpu/drm-usage-stats.rst of the kernel (fdinfo),
// Documentation/hwmon/sysfs-interface.rst (units of temperature and power).
type drm struct {
	root     string
	name     string
	regions  []string
	cards    []*card
	clients  map[*Process]*drmFiles
	readings []Reading
	last     int64 // of our own clock of calls: descriptors are looked for every tenth call
	sampled  func(c *card, live []*Process)
}

// card is one device. Files that it does not have are "".
type card struct {
	gpu    mem.GPU
	device string // "amd:0"
	pci    string // "0000:03:00.0"
	dir    string // /sys/class/drm/cardN/device
	used   string // bytes in use on the device
	busy   string // percent
	temp   string // millidegrees
	power  string // microwatts
	kfd    string // amd: id under which the compute driver counts memory of processes
}

// openDRM lists the cards of one PCI vendor; nil where there is none.
func openDRM(root, name, prefix, pciVendor string, describe func(*card)) *drm {
	d := &drm{root: root, name: name, clients: map[*Process]*drmFiles{}}
	dirs, _ := filepath.Glob(filepath.Join(root, "sys/class/drm/card[0-9]*/device"))
	for _, dir := range dirs {
		if strings.Contains(filepath.Base(filepath.Dir(dir)), "-") || word(filepath.Join(dir, "vendor")) != pciVendor {
			continue // card0-HDMI-A-1 is a connector
		}
		c := &card{dir: dir, device: prefix + ":" + strconv.Itoa(len(d.cards))}
		c.gpu = mem.GPU{Index: len(d.cards), Vendor: name}
		uevent, _ := os.ReadFile(filepath.Join(dir, "uevent"))
		for line := range strings.Lines(string(uevent)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "DRIVER":
				c.gpu.Driver = value
			case "PCI_SLOT_NAME":
				c.pci = value
			}
		}
		c.temp, c.power = first(dir, "hwmon/hwmon*/temp1_input"),
			first(dir, "hwmon/hwmon*/power1_average", "hwmon/hwmon*/power1_input")
		if c.gpu.Name = word(filepath.Join(dir, "product_name")); c.gpu.Name == "" {
			c.gpu.Name = name + " " + strings.TrimPrefix(word(filepath.Join(dir, "device")), "0x")
		}
		describe(c)
		d.cards = append(d.cards, c)
	}
	if len(d.cards) == 0 {
		return nil
	}
	return d
}

func (d *drm) Name() string { return d.name }

func (d *drm) Devices() []mem.GPU {
	var gpus []mem.GPU
	for _, c := range d.cards {
		gpus = append(gpus, c.gpu)
	}
	return gpus
}

func (d *drm) Close() {}

func (d *drm) Sample(live []*Process) ([]Reading, error) {
	d.readings = d.readings[:0]
	for _, c := range d.cards {
		d.file(c, c.used, mem.SeriesDeviceUsed, 1, 1)
		d.file(c, c.busy, mem.SeriesDeviceUtilisation, 10, 1) // percent to thousandths
		d.file(c, c.temp, mem.SeriesDeviceTemperature, 1, 1000)
		d.file(c, c.power, mem.SeriesDevicePower, 1, 1000) // to milliwatts
		if d.sampled != nil {
			d.sampled(c, live)
		}
	}
	d.processes(live)
	return d.readings, nil
}

func (d *drm) file(c *card, path string, series mem.Quantity, times, over int64) {
	if path == "" {
		return
	}
	var buffer [32]byte
	n, err := readFile(path, buffer[:])
	if err != nil {
		return // a card that sleeps answers with an error
	}
	if value, ok := quantity(buffer[:n]); ok {
		d.readings = append(d.readings, Reading{Device: c.device, Name: series, Value: value * times / over})
	}
}

// drmFiles are the descriptors of a process that belong to a card.
type drmFiles struct {
	fds  []string // paths in fdinfo
	seen int64
}

// processes sums what each process holds on each card, a client once however many descriptors it has.
func (d *drm) processes(live []*Process) {
	d.last++
	for _, p := range live {
		files := d.clients[p]
		if files == nil || d.last-files.seen >= 10 {
			files = &drmFiles{d.findDescriptors(p), d.last}
			d.clients[p] = files
		}
		if len(files.fds) == 0 {
			continue
		}
		var buffer [4096]byte
		counted := map[[2]string]bool{}
		totals := map[*card]int64{}
		for _, path := range files.fds {
			n, err := readFile(path, buffer[:])
			if err != nil {
				continue
			}
			info, ok := parseFdinfo(buffer[:n], d.regions)
			c := d.card(info.pci)
			if !ok || c == nil || counted[[2]string{info.pci, info.client}] {
				continue
			}
			counted[[2]string{info.pci, info.client}] = true
			totals[c] += info.bytes
		}
		for c, total := range totals {
			d.process(c, p, total)
		}
	}
	if len(d.clients) > 2*len(live)+16 {
		alive := map[*Process]*drmFiles{}
		for _, p := range live {
			alive[p] = d.clients[p]
		}
		d.clients = alive
	}
}

// process counts bytes of p, or more of them: the compute driver may have counted some already.
func (d *drm) process(c *card, p *Process, bytes int64) {
	for i, r := range d.readings {
		if r.Process == p && r.Device == c.device && r.Name == mem.SeriesDeviceProcess {
			d.readings[i].Value = max(r.Value, bytes)
			return
		}
	}
	d.readings = append(d.readings, Reading{Device: c.device, Process: p, Name: mem.SeriesDeviceProcess, Value: bytes})
}

// findDescriptors lists the descriptors of p that are open on a card.
func (d *drm) findDescriptors(p *Process) []string {
	dir, err := openFile(p.dir+"/fd", system.Folder)
	if err != nil {
		return nil
	}
	defer closeFile(dir)
	var found []string
	var buffer [8192]byte
	_ = eachName(dir, buffer[:], func(name []byte) { // what was found until it ended counts
		target, err := os.Readlink(p.dir + "/fd/" + string(name))
		if err == nil && strings.HasPrefix(target, "/dev/dri/") {
			found = append(found, p.dir+"/fdinfo/"+string(name))
		}
	})
	return found
}

func (d *drm) card(pci string) *card {
	for _, c := range d.cards {
		if c.pci == pci {
			return c
		}
	}
	return nil
}

// fdinfo is what one descriptor of a card says.
type fdinfo struct {
	pci    string
	client string
	bytes  int64 // resident in the memory of the device
}

// parseFdinfo sums drm-resident-REGION over the regions that are device memory. Older drivers write
// drm-memory-REGION (amdgpu) for the same, or only drm-total-REGION.
func parseFdinfo(text []byte, regions []string) (info fdinfo, ok bool) {
	sums := map[string]int64{}
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		key, value, found := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if !found {
			continue
		}
		value = bytes.TrimSpace(value)
		switch name := string(key); name {
		case "drm-pdev":
			info.pci = string(value)
		case "drm-client-id":
			info.client = string(value)
		default:
			for _, kind := range []string{"drm-resident-", "drm-memory-", "drm-total-"} {
				region, is := strings.CutPrefix(name, kind)
				if n, valid := quantity(value); is && valid && deviceRegion(region, regions) {
					sums[kind] += n
					seen[kind] = true
				}
			}
		}
	}
	for _, kind := range []string{"drm-resident-", "drm-memory-", "drm-total-"} {
		if seen[kind] {
			info.bytes = sums[kind]
			return info, info.pci != "" && info.client != ""
		}
	}
	return info, false
}

// deviceRegion matches "vram" and "vram0" with the region "vram".
func deviceRegion(name string, regions []string) bool {
	return slices.ContainsFunc(regions, func(r string) bool { return strings.TrimRight(name, "0123456789") == r })
}

// word reads a file of one short line; "" where there is none.
func word(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// first is the first file that matches one of the patterns; "" where none does.
func first(dir string, patterns ...string) string {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// fileQuantity reads a file that holds one number.
func fileQuantity(path string) mem.Optional {
	return optional(quantity([]byte(word(path))))
}
