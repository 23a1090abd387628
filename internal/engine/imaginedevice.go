package engine

import (
	"path/filepath"

	"hightide/internal/record"
)

// deviceFiles are the libraries of the imaginary GPUs, by their path in the helpers' folder.
func deviceFiles() (map[string][]byte, error) {
	return nil, EnvironmentError("build it with make", "this hightide was built without its device library")
}

// deviceHelper is the device as it rides along.
func deviceHelper(dir string) record.Helper {
	lib := filepath.Join(dir, "device")
	return record.Helper{Name: "device", Preload: filepath.Join(lib, "libhightide_device.so"), Libraries: lib}
}

// CanImagine says whether this build has the imaginary GPU.
func CanImagine() bool {
	_, err := deviceFiles()
	return err == nil
}
