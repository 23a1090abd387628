package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/testkit"
)

// memoryMarkFields are those that MemoryMark's README shows.
var memoryMarkFields = map[string]string{
	"/health":  "device gpu_available gpu_memory_total_gb gpu_name status timestamp",
	"/models":  "description huggingface_id id name type",
	"/analyze": "cost_savings_annual current_batch_size current_memory_gb device gpu_total_gb model_name optimal_batch_size optimal_memory_gb results speedup waste_gb waste_percent",
	"results":  "batch_size memory_gb success",
}

// ask sends a request as a page of another origin does.
func ask(t *testing.T, handler http.Handler, method, path, body string) (status int, answer map[string]any, header http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, "http://localhost:5001"+path, strings.NewReader(body))
	r.Header.Set("Origin", "http://localhost:3000")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
		}
	}
	return w.Code, answer, w.Header()
}

// has checks that an answer has all fields of MemoryMark's.
func has(t *testing.T, what string, answer map[string]any) {
	t.Helper()
	for _, field := range strings.Fields(memoryMarkFields[what]) {
		if value, ok := answer[field]; !ok || value == nil && field != "memory_gb" {
			t.Errorf("%s: %s is %v, in %v", what, field, value, slices.Sorted(maps.Keys(answer)))
		}
	}
}

// TestMemoryMark: what its README shows is there, to pages of any origin, and what is imaginary says so.
func TestMemoryMark(t *testing.T) {
	e := &engine.Engine{DataDir: t.TempDir()}
	handler := NewMemoryMark(e, Options{})
	status, health, header := ask(t, handler, "GET", "/health", "")
	has(t, "/health", health)
	if status != 200 || header.Get("Access-Control-Allow-Origin") != "*" || health["status"] != "healthy" {
		t.Errorf("%d %v %v", status, health, header)
	}
	if !e.HasGPUs() && (health["gpu_name"] != "NVIDIA A10 (imaginary)" || health["label"] != "imagined" || health["gpu_available"] != false || health["device"] != "cpu") {
		t.Errorf("without a GPU: %v", health)
	}
	_, models, _ := ask(t, handler, "GET", "/models", "")
	if all := models["models"].([]any); len(all) == 3 {
		has(t, "/models", all[0].(map[string]any))
	} else {
		t.Errorf("models %v", all)
	}
	status, _, header = ask(t, handler, "OPTIONS", "/analyze", "")
	if status != 204 || !strings.Contains(header.Get("Access-Control-Allow-Methods"), "POST") || !strings.Contains(header.Get("Access-Control-Allow-Headers"), "Content-Type") {
		t.Errorf("a page asks whether it may post: %d %v", status, header)
	}
}

// TestMemoryMarkRefuses: what is wrong is said in one line, and nothing else of hightide is to be had there.
func TestMemoryMarkRefuses(t *testing.T) {
	handler := NewMemoryMark(&engine.Engine{DataDir: t.TempDir()}, Options{})
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/analyze", `{"model_name": "os:system"}`, 400},
		{"POST", "/analyze", `{"model_name": ["bert"]}`, 400},
		{"POST", "/analyze", `not JSON`, 400},
		{"POST", "/analyze", `{"model_name": "` + strings.Repeat("x", 1<<20) + `"}`, 400},
		{"GET", "/analyze", "", 404},
		{"GET", "/api/v1/runs", "", 404},
		{"GET", "/metrics", "", 404},
	} {
		status, answer, _ := ask(t, handler, test.method, test.path, test.body)
		if said, _ := answer["error"].(string); status != test.status || answer["status"] != "error" || said == "" || strings.Contains(said, "\n") {
			t.Errorf("%s %s: %d %v, want %d", test.method, test.path, status, answer, test.status)
		}
	}
	rebound := httptest.NewRequest("GET", "http://evil.example/health", nil)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, rebound)
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("under another name: %d", w.Code)
	}
	if status, _, _ := ask(t, NewMemoryMark(&engine.Engine{}, Options{Token: "secret"}), "GET", "/health", ""); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
}

// TestMemoryMarkAnalyses: the largest batches that MemoryMark published for a real A10, from an imaginary one.
func TestMemoryMarkAnalyses(t *testing.T) {
	testkit.Torch(t)
	e := &engine.Engine{DataDir: t.TempDir()}
	if !engine.CanImagine() || e.HasGPUs() {
		t.Skip("it takes the imaginary A10: make device, on a machine without a GPU")
	}
	status, answer, _ := ask(t, NewMemoryMark(e, Options{}), "POST", "/analyze", `{"model_name": "gpt2"}`)
	if status != 200 || answer["status"] != "success" || answer["label"] != "imagined" {
		t.Fatalf("%d %v", status, answer)
	}
	data := answer["data"].(map[string]any)
	has(t, "/analyze", data)
	if data["optimal_batch_size"] != 152.0 || data["speedup"] != 9.5 || data["current_batch_size"] != 16.0 || data["device"] != "cuda" {
		t.Errorf("of GPT-2 MemoryMark published 152 and 9.5: %v", data)
	}
	for _, one := range data["results"].([]any) {
		has(t, "results", one.(map[string]any))
	}
}
