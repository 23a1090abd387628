// Package nvml carries hightide-nvml, a small C program that asks NVIDIA's management library.
//
//	nvml.c ──make──▶ lib/hightide-nvml ──embed──▶ Program ──▶ run from memory by the sampler
//
// This file only embeds the built program; docs/decisions/nvml.md says why there is one.
package nvml

import "embed"

//go:embed all:lib
var lib embed.FS

// Program returns the built program, an x86-64 ELF executable, and whether there is one: a binary
// built before `make -C internal/sampler/nvml` records everything but NVIDIA devices.
func Program() ([]byte, bool) {
	data, err := lib.ReadFile("lib/hightide-nvml")
	return data, err == nil
}
