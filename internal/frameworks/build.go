package frameworks

// Build is what an interpreter's frameworks were built for.
type Build struct {
	CUDA string `json:"torch_cuda,omitempty"` // that it was built for
	ROCm string `json:"torch_rocm,omitempty"`
	// RuntimeInside says that its own library has CUDA's runtime in it, as the wheels before 2.0 do.
	RuntimeInside bool   `json:"torch_runtime_inside,omitempty"`
	JAXCUDA       string `json:"jax_cuda,omitempty"`         // that JAX's plugin was built for: 12, 13
	TFCUDA        string `json:"tensorflow_cuda,omitempty"`  // that TensorFlow was built for: 12.5.1
	TFCUDNN       string `json:"tensorflow_cudnn,omitempty"` // its cuDNN: 9
}
