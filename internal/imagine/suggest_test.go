package imagine

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestKernelsOfAttention: kernels are those that were called, whatever an implementation of the model is called.
func TestKernelsOfAttention(t *testing.T) {
	result := func(value string, kernels ...string) *Result {
		run := mem.NewRun()
		if err := run.Add(mem.Condition{Process: 1, Name: "attention", Value: value, Kernels: kernels}); err != nil {
			t.Fatal(err)
		}
		return &Result{Imagined: &report.Imagined{Conditions: map[string]string{"attention": value}}, run: run}
	}
	if own := result("flash_attention_2"); own.attends() || own.called("flash") {
		t.Error("a model's own attention is taken for PyTorch's")
	}
	if both := result("flash and math", "flash", "math"); !both.attends() || !both.called("math") || both.called("cudnn") {
		t.Error("the kernels that were called are not known")
	}
}
