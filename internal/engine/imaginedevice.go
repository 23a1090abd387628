package engine

import (
	"fmt"
	"path/filepath"

	"hightide/device"
	"hightide/internal/launch"
	"hightide/internal/pythons"
)

// deviceFiles are the libraries of the imaginary GPUs, by their path in the helpers' folder. The driver's
// own names stand beside the one that is preloaded: Triton links against libcuda.so, and pynvml opens
// libnvidia-ml.so.1 in processes of its own.
func deviceFiles() (map[string][]byte, error) {
	libraries, ok := device.Libraries()
	if !ok {
		return nil, EnvironmentError("build it with make", "this hightide was built without its device library")
	}
	files := map[string][]byte{}
	for name, image := range libraries {
		files["device/"+name] = image
	}
	for _, name := range []string{"libcuda.so.1", "libcuda.so"} {
		files["device/"+name] = libraries[device.LibraryName]
	}
	return files, nil
}

// deviceHelper is the device as it rides along.
func deviceHelper(dir string) launch.Helper {
	lib := filepath.Join(dir, "device")
	return launch.Helper{Name: "device", Preload: filepath.Join(lib, device.LibraryName), Libraries: lib}
}

// CanImagine says whether this build has the imaginary GPU.
func CanImagine() bool {
	_, err := deviceFiles()
	return err == nil
}

// imagineAbility says whether programs of this interpreter can be imagined.
func imagineAbility(p *pythons.Interpreter) Ability {
	a := Ability{Name: "imaginary GPUs", Can: Yes}
	switch {
	case !CanImagine():
		a.Can, a.Text, a.Hint = No, "this hightide was built without its device library", "build it with make"
	case p == nil || p.Version == "":
		a.Can, a.Text = Partly, "no Python was found; a command names its own"
	case p.Frameworks["torch"] == "" || p.CUDA == "":
		a.Can, a.Text, a.Hint = Partly, "this Python has no CUDA build of PyTorch; a command names its own", "pip install torch; it needs no GPU"
	default:
		a.Text = fmt.Sprintf("hightide imagine runs torch %s on any GPU of the catalogue", p.Frameworks["torch"])
	}
	return a
}
