package mem

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestMask goes through the cases that the agent is tested with as well.
func TestMask(t *testing.T) {
	text, err := os.ReadFile("../../testdata/mask/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Args []struct{ In, Out []string }
		Text []struct{ In, Out string }
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases.Args) < 10 || len(cases.Text) < 10 {
		t.Fatalf("%d and %d cases: %v", len(cases.Args), len(cases.Text), err)
	}
	for _, c := range cases.Args {
		before := append([]string{}, c.In...)
		if got := MaskArgs(c.In); !reflect.DeepEqual(got, c.Out) {
			t.Errorf("%q becomes %q, want %q", c.In, got, c.Out)
		}
		if !reflect.DeepEqual(before, c.In) {
			t.Errorf("%q was changed in place", before)
		}
		if again := MaskArgs(c.Out); !reflect.DeepEqual(again, c.Out) {
			t.Errorf("masked twice: %q becomes %q", c.Out, again)
		}
	}
	for _, c := range cases.Text {
		if got := MaskText(c.In); got != c.Out {
			t.Errorf("%q becomes %q, want %q", c.In, got, c.Out)
		}
	}
}

func TestAllowedEnv(t *testing.T) {
	got := AllowedEnv([]string{"RANK=3", "HOME=/home/me", "NCCL_DEBUG=INFO", "TORCH_TOKEN=abc", "WANDB_API_KEY=abc",
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "MASTER_ADDR=http://me:abc@host", "novalue"})
	want := map[string]string{"RANK": "3", "NCCL_DEBUG": "INFO", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
		"MASTER_ADDR": "http://" + Masked + "@host"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// FuzzMask: no panic, and a secret that follows an option never comes through.
func FuzzMask(f *testing.F) {
	f.Add("--token", "abc")
	f.Add("password=\"", "x")
	f.Fuzz(func(t *testing.T, option, text string) {
		secret := "Zq9" + strings.Repeat("x", 8)
		got := MaskArgs([]string{option, text, "--api-key", secret})
		if len(got) != 4 || got[3] == secret {
			t.Fatalf("%q", got)
		}
	})
}
