// Package nvml carries hightide-nvml, a small C program that asks NVIDIA's management library.
//
//	nvml.c ──make──▶ lib/ARCH/hightide-nvml ──embed──▶ Program ──▶ run from memory by the sampler
//
// This file only embeds the built program; docs/decisions/nvml.md says why there is one.
package nvml

// Program returns the built program, an ELF executable for this processor, and whether there is one: a binary
// built before `make -C internal/sampler/nvml` records everything but NVIDIA devices.
func Program() ([]byte, bool) {
	data, err := built.ReadFile(folder + "hightide-nvml")
	return data, err == nil
}
