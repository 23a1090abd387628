package fit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigurationOfAModel: a folder, a file and a model of the hub's cache are read as plan reads them, and what is
// none of these is left to the worker.
func TestConfigurationOfAModel(t *testing.T) {
	dir := t.TempDir()
	const config = `{"model_type": "llama", "vocab_size": 10}`
	for name, text := range map[string]string{"model/config.json": config, "broken.json": `{"model_type": `, "empty/readme": "",
		"hub/models--org--tiny/refs/main": "abc", "hub/models--org--tiny/snapshots/abc/config.json": config, "kindless.json": `{}`} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub"))
	t.Setenv("HF_HUB_OFFLINE", "1")
	for name, want := range map[string]string{
		filepath.Join(dir, "model"):             config,
		filepath.Join(dir, "model/config.json"): config,
		"org/tiny":                              config,
		"bert":                                  "",
		"train:make":                            "",
		filepath.Join(dir, "none"):              "",
		filepath.Join(dir, "broken.json"):       "at byte",
		filepath.Join(dir, "kindless.json"):     "model_type",
		filepath.Join(dir, "empty"):             "has no config.json",
		"org/none":                              "does not have a model of that name",
	} {
		o := Options{Model: Model{Model: name}}
		file, forget, err := o.config(t.Context())
		text, _ := os.ReadFile(file)
		switch {
		case err != nil && (want == "" || want == config || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", name, err)
		case err == nil && string(text) != want:
			t.Errorf("%s: %q, want %q", name, text, want)
		}
		if forget(); file != "" {
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s: %s stays", name, file)
			}
		}
	}
}
