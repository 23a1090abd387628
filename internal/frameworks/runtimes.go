package frameworks

// Runtimes run models and train none.
var (
	onnxruntime = Framework{Name: "onnxruntime", Title: "ONNX Runtime"}
	litert      = Framework{Name: "ai_edge_litert", Title: "LiteRT"}
	openvino    = Framework{Name: "openvino", Title: "OpenVINO"}
)
