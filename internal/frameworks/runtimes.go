package frameworks

// Runtimes run models and train none.
var (
	onnxruntime = Framework{Name: "onnxruntime", Title: "ONNX Runtime", Runtime: "onnxruntime"}
	litert      = Framework{Name: "ai_edge_litert", Title: "LiteRT", Runtime: "litert"}
	openvino    = Framework{Name: "openvino", Title: "OpenVINO", Runtime: "openvino"}
	executorch  = Framework{Name: "executorch", Title: "ExecuTorch", Runtime: "executorch"}
	llamacpp    = Framework{Name: "llama_cpp", Title: "llama.cpp", Runtime: "llama.cpp", Package: "llama_cpp_python"}
)
