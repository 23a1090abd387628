package matrix

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

func TestWorkloadsAreThoseOfTheDriver(t *testing.T) {
	command := exec.Command("python3", filepath.Join("../../agent/python/src", WorkloadScript), "--list")
	command.Env = append(command.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	type words struct {
		Frameworks, Models, DTypes, Runtimes []string
		FileDTypes                           []string `json:"file_dtypes"`
	}
	var told words
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatal(err)
	}
	if want := (words{Frameworks, Models, DTypes, Runtimes, FileDTypes}); !reflect.DeepEqual(told, want) {
		t.Errorf("the driver has %v, the lists here %v", told, want)
	}
}
