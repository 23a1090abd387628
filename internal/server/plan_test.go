package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/plan"
	"hightide/internal/report"
)

const smallLlama = `{"model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
	"num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 512}`

// TestPlanOfAConfiguration: a configuration that is sent is planned; what cannot be is refused in a line.
func TestPlanOfAConfiguration(t *testing.T) {
	d := open(t, Options{})
	var r plan.Result
	d.get("POST", "/plan", `{"config": `+smallLlama+`, "users": 4, "gpu": ["l4", "a10"]}`, 200, &r)
	if len(r.Rows) != 2 || r.Cheapest != "l4" || r.Model.Bytes == 0 || r.Use.Seq != 512 || r.Rows[0].Users.Low < 4 {
		t.Errorf("%+v", r)
	}
	for body, want := range map[string]string{
		`{"config": {"model_type": "walrus"}}`: "config.json",
		`{"config": "no object"}`:              "no JSON object",
		`{}`:                                   "",
		`{"config": ` + smallLlama + `, "for": "dance"}`:                    "dance is not known",
		`{"config": ` + smallLlama + `, "gpu": ["a1000"]}`:                  "no GPU",
		`{"config": ` + smallLlama + `, "gpus": 3}`:                         "cannot be split evenly",
		`{"config": ` + smallLlama + `, "path": "/etc/passwd"}`:             "",
		`{"config": ` + smallLlama + `, "seq": 999999999}`:                  "more than hightide plans with",
		`{"config": ` + smallLlama + `, "for": "lora", "lora_rank": 99999}`: "more than hightide plans with",
	} {
		if text := d.get("POST", "/plan", body, 422, nil); !strings.Contains(text, want) {
			t.Errorf("%s: %s", body, text)
		}
	}
}

// sentAs is a file as a page sends it: its first bytes alone.
func sentAs(t *testing.T, path string, head int) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	part, err := json.Marshal(sentFile{filepath.Base(path), int64(len(text)), text[:min(head, len(text))]})
	if err != nil {
		t.Fatal(err)
	}
	return string(part)
}

// TestPlanOfHeaders: a file whose header is sent is planned as the file itself, and what is told of it is what a
// terminal shows. A header that is cut is refused.
func TestPlanOfHeaders(t *testing.T) {
	d := open(t, Options{AllowExec: true})
	type answer struct {
		plan.Result
		Told plan.Told
	}
	for name, header := range map[string]int{"little.gguf": 3225, "numpy.safetensors": 8 + 0x460} {
		path := filepath.Join("../modelfile/testdata", name)
		var named, sent answer
		d.get("POST", "/plan", fmt.Sprintf(`{"model": %q, "gpu": ["l4", "t4"]}`, path), 200, &named)
		d.get("POST", "/plan", fmt.Sprintf(`{"files": [%s], "name": %q, "gpu": ["l4", "t4"]}`, sentAs(t, path, header), path), 200,
			&sent)
		named.Model.Source, sent.Model.Source = "", ""
		one, _ := json.Marshal(named)
		if two, _ := json.Marshal(sent); !bytes.Equal(one, two) || named.Model.Bytes == 0 {
			t.Errorf("%s: named %s\nsent %s", name, one, two)
		}
		text := named.Text(report.TextOptions{})
		for _, told := range append([]string{named.Told.Model, named.Told.Answer, fmt.Sprint(named.Told.Table.Rows[0][0])}, named.Told.Remarks...) {
			if !strings.Contains(text, told) {
				t.Errorf("%s: the terminal does not say %q: %s", name, told, text)
			}
		}
		large := strings.Replace(sentAs(t, path, header), `"name"`, `"name": "`+strings.Repeat("x", 5<<20)+`", "name"`, 1)
		d.get("POST", "/plan", `{"files": [`+large+`], "gpu": ["l4"]}`, 200, nil)
		if text := d.get("POST", "/plan", `{"files": [`+sentAs(t, path, 40)+`]}`, 422, nil); !strings.Contains(text, "behind what was sent") &&
			!strings.Contains(text, "ends in the middle") {
			t.Errorf("%s, cut: %s", name, text)
		}
	}
	for body, want := range map[string]string{
		`{"files": [{"name": "../x.gguf", "bytes": 9, "head": "AAAA"}]}`:     "no name of a file",
		`{"files": [{"name": "x.gguf", "bytes": 1, "head": "AAAA"}]}`:        "1 bytes, and 3 of them",
		`{"files": [{"name": "x.gguf", "bytes": 9, "head": "?"}]}`:           "no such JSON object",
		`{"files": [], "config": ` + smallLlama + `, "model": "meta/llama"}`: "a model is named, and another one sent",
		`{"files": [{"name": "config.json", "bytes": 2, "head": "e30="}]}`:   "model_type",
		`{"files": [{"name": "x", "bytes": 0}, {"name": "x", "bytes": 0}]}`:  "sent twice",
		`{"model": "", "for": "serve"}`:                                      "no model to plan",
		`[]`:                                                                 "",
		`{"config": ` + smallLlama + `, "kv_dtype": 7}`:                      "kv",
		`{"config": ` + smallLlama + `, "catalogue": ["/etc/passwd"]}`:       "of another door",
		`{"files": [{"name": ""}]}`:                                          "no name of a file",
	} {
		if text := d.get("POST", "/plan", body, 422, nil); !strings.Contains(text, want) {
			t.Errorf("%s: %s", body, text)
		}
	}
}

// TestPlanReadsItsPlaces: without --allow-exec a model is read where the server was started, with the recordings and in
// the hub's cache. What lies elsewhere is refused in the same words whether it is there or not.
func TestPlanReadsItsPlaces(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"work/model/config.json": smallLlama, "elsewhere/config.json": smallLlama,
		"hub/models--a--b/refs/main": "abc", "hub/models--a--b/snapshots/abc/config.json": smallLlama} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "elsewhere"), filepath.Join(root, "work/link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "work"))
	t.Setenv("HF_HUB_CACHE", filepath.Join(root, "hub"))
	ask := func(d *front, model string, status int) string {
		return d.get("POST", "/plan", fmt.Sprintf(`{"model": %q, "gpu": ["l4"], "offline": true}`, model), status, nil)
	}
	closed := open(t, Options{})
	for _, model := range []string{"model", "model/config.json", "./model", "a/b"} {
		ask(closed, model, 200)
	}
	var refused []string
	for _, model := range []string{"../elsewhere", "../elsewhere/config.json", "link", "../elsewhere/none", "/etc/shadow",
		"/etc/none", filepath.Join(root, "elsewhere")} {
		text := ask(closed, model, 422)
		refused = append(refused, strings.ReplaceAll(text, model, "MODEL"))
		if !strings.Contains(text, "outside the folders") {
			t.Errorf("%s: %s", model, text)
		}
	}
	if slices.Sort(refused); len(slices.Compact(refused)) != 1 {
		t.Errorf("several words: %q", refused)
	}
	may := open(t, Options{AllowExec: true})
	for _, model := range []string{"../elsewhere", "link"} {
		ask(may, model, 200)
	}
}
