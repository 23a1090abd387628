package frameworks

import "hightide/internal/fail"

// cupy is arrays on NVIDIA's GPUs: what they take is told by line. It trains nothing, so there are no steps. Its wheels are
// built for CUDA alone.
var cupy = Framework{Name: "cupy", Title: "CuPy", Code: []string{"/cupy/", "/cupyx/", "/cupy_backends/"},
	Imagined: func(string, Build, string) (note string, err error) { return "", nil }}

// FactInside names a framework whose library has CUDA's runtime inside, where no imaginary GPU can stand in.
const FactInside = "runtime inside"

// Inside refuses that framework.
func Inside(framework, command string) error {
	return fail.Environment("a build that loads libcudart.so, as conda's packages do",
		"%s of %s has CUDA's runtime inside a library that tells no names: no imaginary GPU can stand in", framework, command)
}

// cupyProbe knows the packages that it comes in, one for each CUDA.
const cupyProbe = `
    for package in ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x"):
        try:
            out["frameworks"].setdefault("cupy", version(package))
        except Exception:
            pass
`
