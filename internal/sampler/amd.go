package sampler

import (
	"path/filepath"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// openAMD finds cards of the amdgpu driver. Sources: Documentation/gpu/amdgpu/driver-misc.rst and
// thermal.rst of the kernel; kfd_process.c for the memory of compute processes
// (/sys/class/kfd/kfd/proc/PID/vram_GPUID, bytes).
func openAMD(root string) Vendor {
	d := openDRM(root, "AMD", "amd", "0x1002", func(c *card) {
		c.gpu.Memory = fileQuantity(filepath.Join(c.dir, "mem_info_vram_total"))
		c.gpu.UUID = word(filepath.Join(c.dir, "unique_id"))
		c.used = filepath.Join(c.dir, "mem_info_vram_used")
		c.busy = first(c.dir, "gpu_busy_percent")
		c.kfd = kfdID(root, c.dir)
	})
	if d == nil {
		return nil
	}
	d.regions = []string{"vram"}
	d.sampled = d.compute
	return d
}

// compute reads what ROCm processes hold: the compute driver counts it apart from fdinfo.
func (d *drm) compute(c *card, live []*Process) {
	if c.kfd == "" {
		return
	}
	for _, p := range live {
		value := fileQuantity(filepath.Join(d.root, "sys/class/kfd/kfd/proc", strconv.Itoa(p.PID), "vram_"+c.kfd))
		if bytes, ok := value.Get(); ok {
			d.readings = append(d.readings, Reading{Device: c.device, Process: p, Name: mem.SeriesDeviceProcess, Value: bytes})
		}
	}
}

// kfdID finds the compute driver's number of a card: the two know each other by the render node.
func kfdID(root, dir string) string {
	render := strings.TrimPrefix(filepath.Base(first(dir, "drm/renderD*")), "renderD")
	if render == "." || render == "" {
		return ""
	}
	nodes, _ := filepath.Glob(filepath.Join(root, "sys/class/kfd/kfd/topology/nodes/*"))
	for _, node := range nodes {
		for line := range strings.Lines(word(filepath.Join(node, "properties"))) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if key == "drm_render_minor" && value == render {
				return word(filepath.Join(node, "gpu_id"))
			}
		}
	}
	return ""
}
