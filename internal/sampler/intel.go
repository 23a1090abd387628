package sampler

import (
	"path/filepath"

	"hightide/internal/mem"
)

// openIntel finds cards of the i915 and xe drivers. Neither publishes the bytes in use on the whole
// device, so only the share of our own processes is seen (fdinfo: region local of i915, vram of xe).
// An integrated GPU has no memory of its own: what it uses is the host's and not counted here.
// Sources: Documentation/gpu/drm-usage-stats.rst; xe's physical_vram_size_bytes of each tile
// (tests/intel/xe_sysfs_tile.c of IGT); Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon.
func openIntel(root string) Vendor {
	d := openDRM(root, "Intel", "intel", "0x8086", func(c *card) {
		c.gpu.Memory = fileQuantity(filepath.Join(filepath.Dir(c.dir), "lmem_total_bytes"))
		tiles, _ := filepath.Glob(filepath.Join(c.dir, "tile*/physical_vram_size_bytes"))
		for _, tile := range tiles {
			if bytes, ok := fileQuantity(tile).Get(); ok {
				c.gpu.Memory = mem.Some(c.gpu.Memory.Or(0) + bytes)
			}
		}
	})
	if d == nil {
		return nil
	}
	d.regions = []string{"local", "vram"}
	return d
}
