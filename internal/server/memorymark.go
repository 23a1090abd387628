package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/fit"
	"hightide/internal/gpus"
)

// MemoryMark's API: GET /health, GET /models, POST /analyze, with its fields, for pages and scripts that were written
// for it. It is a server of its own, with nothing else on it: it reads no file and no run, and builds the three
// models below alone. Who asks is known by the token, in a header or before the path: MemoryMark's own page knows no
// header, but has a base address. Pages of another origin may ask where Options.Origins names it.

// imaginaryGPU answers where the machine has no GPU: the one on which MemoryMark's figures were measured.
const imaginaryGPU = "a10"

// As MemoryMark searches: multiples of 8 are tried, and 16 is what people use.
const (
	memoryMarkStep    = 8
	memoryMarkCurrent = 16
)

// memoryMarkModel is one that MemoryMark knows.
type memoryMarkModel struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"`
	HuggingFace string `json:"huggingface_id"`
}

var memoryMarkModels = []memoryMarkModel{
	{"bert", "BERT Base", "Bidirectional Encoder Representations from Transformers", "nlp",
		"google-bert/bert-base-uncased"},
	{"gpt2", "GPT-2", "Generative Pre-trained Transformer 2", "nlp", "openai-community/gpt2"},
	{"resnet", "ResNet-50", "Residual Network with 50 layers", "vision", "microsoft/resnet-50"},
}

// memoryMark answers by an engine.
type memoryMark struct {
	engine *engine.Engine
	env    []string
	turn   chan struct{} // one analysis at a time
}

// NewMemoryMark makes the handler of MemoryMark's API. Of the options it takes those that say who may ask.
func NewMemoryMark(e *engine.Engine, o Options) http.Handler {
	m := &memoryMark{e, os.Environ(), make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", m.health)
	mux.HandleFunc("GET /models", m.models)
	mux.HandleFunc("POST /analyze", m.analyze)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNotFound, failed(fmt.Errorf("there is no %s here: GET /health, GET /models, POST /analyze",
			r.URL.Path)))
	})
	mux.HandleFunc("OPTIONS /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Authorization")
		w.WriteHeader(http.StatusNoContent)
	})
	s := &Server{door: newDoor(o.Token, ""), options: o}
	// browsers ask so whether they may ask, without the token
	asks := func(r *http.Request) bool { return r.Method == http.MethodOptions && s.mayAsk(r) }
	return keyed(s.crossing(s.guard(mux, asks, func(w http.ResponseWriter, _ *http.Request, status int, text string) {
		reply(w, status, failed(errors.New(text)))
	})))
}

// keyed takes a token that stands before the path for one in the header.
func keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token, path, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); found && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = "/"+path, ""
			r.Header.Set("Authorization", "Bearer "+token)
		}
		next.ServeHTTP(w, r)
	})
}

// crossing tells browsers that pages of the origins that were named may read the answers.
func (s *Server) crossing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		if s.mayAsk(r) {
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		}
		next.ServeHTTP(w, r)
	})
}

// health is MemoryMark's answer and, where the GPU is imaginary, two fields that say so. Then the device is what
// MemoryMark names on a machine without a GPU.
type health struct {
	Status    string  `json:"status"`
	Available bool    `json:"gpu_available"`
	Name      string  `json:"gpu_name"`
	TotalGB   float64 `json:"gpu_memory_total_gb"`
	Device    string  `json:"device"`
	Timestamp string  `json:"timestamp"`
	Label     string  `json:"label,omitempty"`
	Note      string  `json:"note,omitempty"`
}

const imaginaryNote = "This machine has no GPU: figures are those of an imaginary NVIDIA A10, on which PyTorch ran " +
	"with its real allocator."

func (m *memoryMark) health(w http.ResponseWriter, _ *http.Request) {
	h := health{Status: "healthy", Available: true, Device: "cuda",
		Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")}
	if real := m.engine.GPUs(); len(real) > 0 {
		h.Name, h.TotalGB = real[0].Name, gibibytes(real[0].Memory.Or(0))
	} else {
		list, err := gpus.Listed(nil, imaginaryGPU)
		if err != nil {
			reply(w, http.StatusInternalServerError, failed(err))
			return
		}
		gpu := list.GPUs[0]
		h.Name, h.TotalGB, h.Label, h.Note = gpu.Name+" (imaginary)", gibibytes(int64(gpu.Total)), "imagined", imaginaryNote
		h.Available, h.Device = false, "cpu"
	}
	reply(w, http.StatusOK, h)
}

func (m *memoryMark) models(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"models": memoryMarkModels})
}

// analysis is MemoryMark's answer.
type analysis struct {
	Status string          `json:"status"`
	Data   *fit.MemoryMark `json:"data,omitempty"`
	Error  string          `json:"error,omitempty"`
	Label  string          `json:"label,omitempty"`
	Notes  []string        `json:"notes,omitempty"`
}

// speedupNote says what MemoryMark's figure is, as it is easily taken for another.
const speedupNote = "speedup is optimal_batch_size by current_batch_size, and cost_savings_annual follows from it: " +
	"neither was measured as time."

func (m *memoryMark) analyze(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model string `json:"model_name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		reply(w, http.StatusBadRequest, failed(errors.New(`the body must be JSON, as {"model_name": "bert"}`)))
		return
	}
	known := false
	for _, model := range memoryMarkModels {
		known = known || model.ID == asked.Model
	}
	if !known {
		reply(w, http.StatusBadRequest, failed(fmt.Errorf("there is no model %q: bert, gpt2 and resnet can be analysed",
			asked.Model)))
		return
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-r.Context().Done():
		return
	}
	status, answer := m.fit(r.Context(), asked.Model)
	reply(w, status, answer)
}

func (m *memoryMark) fit(ctx context.Context, model string) (status int, answer analysis) {
	o := fit.Options{
		Model: fit.Model{Model: model, DType: "fp32", Optimizer: "none", SeqLen: 128, ImageSize: 224},
		Env:   m.env, Granularity: memoryMarkStep, Current: memoryMarkCurrent,
	}
	notes := []string{speedupNote}
	if !m.engine.HasGPUs() {
		o.GPU = imaginaryGPU
		notes = append(notes, imaginaryNote)
	}
	result, err := m.engine.Fit(ctx, o)
	if err != nil {
		return http.StatusInternalServerError, failed(err)
	}
	data := result.AsMemoryMark()
	if data == nil {
		return http.StatusInternalServerError, failed(fmt.Errorf("not even a batch of %d fits", memoryMarkStep))
	}
	return http.StatusOK, analysis{Status: "success", Data: data, Label: string(result.Label), Notes: notes}
}

// failed is an error as MemoryMark's pages show it.
func failed(err error) analysis {
	text := err.Error()
	if hint := fail.Hint(err); hint != "" {
		text += " (" + hint + ")"
	}
	return analysis{Status: "error", Error: text}
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // who asked may be gone
}

func gibibytes(n int64) float64 { return float64((n*10+1<<29)>>30) / 10 }
