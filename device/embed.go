// Package device carries the imaginary GPU: C libraries that are preloaded into the observed process
// and answer for CUDA, and keep in shared memory who uses how much of which device.
//
//	device/src/*.c ──make──▶ packed/ARCH/*.gz ──embed──▶ Libraries ──▶ extracted, LD_PRELOAD, LD_LIBRARY_PATH
//
// This file only embeds the built libraries; DESIGN.md says how they work.
package device

import "embed"

//go:embed smi
var smi embed.FS

// Names of the libraries, as programs look for them.
const (
	LibraryName = "libhightide_device.so" // preloaded; its soname is libcuda.so.1
	NVMLName    = "libnvidia-ml.so.1"
)

// Programs returns what stands first on the PATH of an imaginary machine, by name: nvidia-smi, which asks the
// libraries, and what it is made of.
func Programs() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range []string{"nvidia-smi", "nvidia_smi.py"} {
		files[name], _ = smi.ReadFile("smi/" + name) // embedded: it is there
	}
	return files
}

// Libraries returns the built libraries by name, ELF shared objects for this processor compressed by gzip, and whether there are
// any: a binary built before `make -C device` can do all but imagine.
func Libraries() (gzipped map[string][]byte, ok bool) {
	files := map[string][]byte{}
	for _, name := range []string{LibraryName, NVMLName} {
		data, err := built.ReadFile(folder + name + ".gz")
		if err != nil {
			return nil, false
		}
		files[name] = data
	}
	return files, true
}
