package frameworks

var onnxruntime = Framework{Name: "onnxruntime", Title: "ONNX Runtime"}
