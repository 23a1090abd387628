package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/engine"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestPlaces: no tool and no resource reads a file outside of the working folder, that of the recordings and those
// that were named, by whatever way, and none tells whether one is there.
func TestPlaces(t *testing.T) {
	snapshot, _ := filepath.Abs(snapshot)
	recording, _ := filepath.Abs(recording)
	root := t.TempDir()
	work, elsewhere := filepath.Join(root, "work"), filepath.Join(root, "elsewhere")
	for _, dir := range []string{work, elsewhere, filepath.Join(work, "run"), filepath.Join(elsewhere, "run")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const secret = "root:$6$secret"
	for name, text := range map[string]string{
		"elsewhere/shadow": secret + "\n", "elsewhere/run/run.hightide": secret, "work/budget.yaml": "peak: 1GiB\n",
		"work/by-baseline.yaml":          "baseline: {file: " + elsewhere + "/shadow, peak: 5%}\n",
		"work/by-relative-baseline.yaml": "baseline: {file: ../elsewhere/shadow, peak: 5%}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"shadow": elsewhere + "/shadow", "folder": elsewhere,
		"run/run.hightide": elsewhere + "/run/run.hightide", "nowhere": elsewhere + "/nothing"} {
		if err := os.Symlink(to, filepath.Join(work, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(work)
	session := assistantOf(t, &engine.Engine{DataDir: filepath.Join(root, "data")},
		Options{Folders: []string{filepath.Dir(snapshot), filepath.Dir(recording)}})
	calls := []string{
		`check {"budget": %q, "of": "` + snapshot + `"}`, `check {"budget": "budget.yaml", "of": %q}`,
		`check {"budget": "by-baseline.yaml", "of": "` + snapshot + `", "baseline": %q}`,
		`explain {"files": ["` + snapshot + `", %q]}`, `diff {"a": %q, "b": "` + snapshot + `"}`, `diff {"a": "` +
			snapshot + `", "b": %q}`, `replay {"files": [%q]}`, `report {"run": %q}`, `curves {"run": %q}`,
	}
	refused := func(what, text string, failed bool) {
		if !failed || !strings.Contains(text, "lies outside the folders that may be read") ||
			strings.Contains(text, secret) || strings.Contains(text, "did you mean") {
			t.Errorf("%s: failed is %v, %s", what, failed, text)
		}
	}
	for _, path := range []string{elsewhere + "/shadow", "../elsewhere/shadow", "./../elsewhere/shadow", "shadow",
		"folder/shadow", "folder/nothing", "run", "run/run.hightide", "nowhere", elsewhere + "/shadov", elsewhere,
		"/etc/shadow", "/etc/nothing", "..", "/"} {
		for _, one := range calls {
			tool, arguments, _ := strings.Cut(fmt.Sprintf(one, path), " ")
			_, text, failed := call(t, session, tool, rawJSON(arguments))
			refused(tool+" "+arguments, text, failed)
		}
		if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: reportPrefix + path + reportSuffix}); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("the resource of %s: %v", path, err)
		}
	}
	for _, file := range []string{"by-baseline.yaml", "by-relative-baseline.yaml"} {
		_, text, failed := call(t, session, "check", map[string]any{"budget": file, "of": snapshot})
		refused(file, text, failed)
	}
	for _, may := range []string{"budget.yaml", "./budget.yaml", work + "/budget.yaml", "../work/budget.yaml"} {
		if _, text, failed := call(t, session, "check", map[string]any{"budget": may, "of": snapshot}); failed {
			t.Errorf("%s: %s", may, text)
		}
	}
}

// TestNoParameterReadsElsewhere: whatever parameter of whatever tool names a file, nothing of one elsewhere comes back.
func TestNoParameterReadsElsewhere(t *testing.T) {
	snapshot, _ := filepath.Abs(snapshot)
	const secret = "root:$6$secret"
	path := filepath.Join(t.TempDir(), "shadow.py")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	session := assistantOf(t, &engine.Engine{DataDir: t.TempDir()}, Options{Folders: []string{filepath.Dir(snapshot)}})
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, tool := range tools.Tools {
		text, _ := json.Marshal(tool.InputSchema)
		var schema struct {
			Properties map[string]struct{ Type any }
			Required   []string
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		for name, property := range schema.Properties {
			list := strings.Contains(fmt.Sprint(property.Type), "array")
			if !list && property.Type != "string" {
				continue
			}
			arguments := map[string]any{}
			for _, other := range schema.Required {
				arguments[other] = snapshot
			}
			if arguments[name] = path; list {
				arguments[name] = []string{path}
			}
			tried++
			if result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: arguments}); err == nil {
				if text, _ := json.Marshal(result); strings.Contains(string(text), secret) {
					t.Errorf("%s %v: %s", tool.Name, arguments, text)
				}
			}
		}
	}
	if tried < 25 {
		t.Errorf("%d parameters", tried)
	}
}

// TestRootIsNoPlace: a server that an assistant starts in the root reads no more of the machine by that.
func TestRootIsNoPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "budget.yaml")
	if err := os.WriteFile(path, []byte("peak: 1GiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir("/")
	session := assistantOf(t, &engine.Engine{DataDir: t.TempDir()}, Options{Folders: []string{"/nothing"}})
	if _, text, failed := call(t, session, "check", map[string]any{"budget": path, "of": path}); !failed || !strings.Contains(text, "hightide mcp --folder") {
		t.Errorf("failed is %v, %s", failed, text)
	}
}

// rawJSON are arguments as an assistant writes them.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }
