package server

import (
	"cmp"
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
	"/health": "device gpu_available gpu_memory_total_gb gpu_name status timestamp",
	"/models": "description huggingface_id id name type",
	"/analyze": "cost_savings_annual current_batch_size current_memory_gb device gpu_total_gb model_name " +
		"optimal_batch_size optimal_memory_gb results speedup waste_gb waste_percent",
	"results": "batch_size memory_gb success",
}

// markOrigin is where a page of MemoryMark's is served.
const markOrigin = "http://localhost:3000"

var markOptions = Options{Token: right, Origins: []string{markOrigin}}

// ask sends a request as a page of another origin does.
func ask(t *testing.T, handler http.Handler, method, path, body string) (status int, answer map[string]any,
	header http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, "http://localhost:5001"+path, strings.NewReader(body))
	r.Header.Set("Origin", markOrigin)
	r.Header.Set("Authorization", "Bearer "+right)
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

// TestMemoryMark: what its README shows is there, to pages of the origins that were named, and what is imaginary says
// so.
func TestMemoryMark(t *testing.T) {
	e := &engine.Engine{DataDir: t.TempDir()}
	handler := NewMemoryMark(e, markOptions)
	status, health, header := ask(t, handler, "GET", "/health", "")
	has(t, "/health", health)
	if status != 200 || header.Get("Access-Control-Allow-Origin") != markOrigin || health["status"] != "healthy" {
		t.Errorf("%d %v %v", status, health, header)
	}
	if !e.HasGPUs() && (health["gpu_name"] != "NVIDIA A10 (imaginary)" || health["label"] != "imagined" ||
		health["gpu_available"] != false || health["device"] != "cpu") {
		t.Errorf("without a GPU: %v", health)
	}
	_, models, _ := ask(t, handler, "GET", "/models", "")
	if all := models["models"].([]any); len(all) == 3 {
		has(t, "/models", all[0].(map[string]any))
	} else {
		t.Errorf("models %v", all)
	}
	status, _, header = ask(t, handler, "OPTIONS", "/analyze", "")
	if status != 204 || !strings.Contains(header.Get("Access-Control-Allow-Methods"), "POST") ||
		!strings.Contains(header.Get("Access-Control-Allow-Headers"), "Content-Type") {
		t.Errorf("a page asks whether it may post: %d %v", status, header)
	}
}

// TestMemoryMarkRefuses: what is wrong is said in one line, and nothing else of hightide is to be had there.
func TestMemoryMarkRefuses(t *testing.T) {
	handler := NewMemoryMark(&engine.Engine{DataDir: t.TempDir()}, markOptions)
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
		if said, _ := answer["error"].(string); status != test.status || answer["status"] != "error" || said == "" ||
			strings.Contains(said, "\n") {
			t.Errorf("%s %s: %d %v, want %d", test.method, test.path, status, answer, test.status)
		}
	}
}

// TestMemoryMarkRights: its routes are closed as all others are, to pages that nobody named and to who does not have
// the token.
func TestMemoryMarkRights(t *testing.T) {
	handler := NewMemoryMark(&engine.Engine{DataDir: t.TempDir()}, markOptions)
	for _, test := range []struct {
		who     string
		prefix  string
		headers []string
		want    int
	}{
		{"the token", "", []string{"Authorization", "Bearer " + right}, 0},
		{"its page, by the token in a header", "", []string{"Authorization", "Bearer " + right, "Origin", markOrigin}, 0},
		{"its page, by a base address", "/" + right, []string{"Origin", markOrigin, "Sec-Fetch-Site", "same-site",
			"Sec-Fetch-Mode", "cors"}, 0},
		{"nobody", "", nil, 401},
		{"its page without a token", "", []string{"Origin", markOrigin}, 401},
		{"a wrong base address", "/wrong", []string{"Origin", markOrigin}, 401},
		{"an empty base address", "/", []string{"Origin", markOrigin}, 401},
		{"the token in a cookie", "", []string{"Cookie", "hightide-session-5001=" + right}, 401},
		{"any page", "", []string{"Authorization", "Bearer " + right, "Origin", "https://evil.example"}, 403},
		{"any page, by a base address", "/" + right, []string{"Origin", "https://evil.example"}, 403},
		{"a page of another port", "", []string{"Authorization", "Bearer " + right, "Origin", "http://localhost:3001"}, 403},
		{"a page of no origin", "", []string{"Authorization", "Bearer " + right, "Origin", "null"}, 403},
		{"a form elsewhere", "/" + right, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"a rebound name", "", []string{"Authorization", "Bearer " + right, "Host", "evil.example"}, 421},
	} {
		for _, route := range [][2]string{{"GET", "/health"}, {"GET", "/models"}, {"POST", "/analyze"}, {"GET", "/"},
			{"HEAD", "/health"}, {"POST", "/health"}} {
			if test.who == "a form elsewhere" && route[0] != "POST" { // a link is followed, and shows its reader an answer
				continue
			}
			r := httptest.NewRequest(route[0], "http://localhost:5001"+test.prefix+route[1],
				strings.NewReader(`{"model_name": "none"}`))
			for i := 0; i < len(test.headers); i += 2 {
				r.Header.Set(test.headers[i], test.headers[i+1])
			}
			r.Host = cmp.Or(r.Header.Get("Host"), r.Host)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if refused := w.Code == 401 || w.Code == 403 || w.Code == 421; refused != (test.want != 0) || test.want != 0 && w.Code != test.want {
				t.Errorf("%s %s of %s: %d; want %d", route[0], route[1], test.who, w.Code, test.want)
			}
			if allowed := w.Header().Get("Access-Control-Allow-Origin"); allowed != "" && allowed != markOrigin || allowed != "" && allowed != r.Header.Get("Origin") {
				t.Errorf("%s: pages of %s may read the answer", test.who, allowed)
			}
		}
	}
}

// TestMemoryMarkAnalyses: the largest batches that MemoryMark published for a real A10, from an imaginary one.
func TestMemoryMarkAnalyses(t *testing.T) {
	testkit.Torch(t)
	e := &engine.Engine{DataDir: t.TempDir()}
	if !engine.CanImagine() || e.HasGPUs() {
		t.Skip("it takes the imaginary A10: make device, on a machine without a GPU")
	}
	status, answer, _ := ask(t, NewMemoryMark(e, markOptions), "POST", "/analyze", `{"model_name": "gpt2"}`)
	if status != 200 || answer["status"] != "success" || answer["label"] != "imagined" {
		t.Fatalf("%d %v", status, answer)
	}
	data := answer["data"].(map[string]any)
	has(t, "/analyze", data)
	if data["optimal_batch_size"] != 152.0 || data["speedup"] != 9.5 || data["current_batch_size"] != 16.0 ||
		data["device"] != "cuda" {
		t.Errorf("of GPT-2 MemoryMark published 152 and 9.5: %v", data)
	}
	for _, one := range data["results"].([]any) {
		has(t, "results", one.(map[string]any))
	}
}
