package server

import (
	"strings"
	"testing"

	"hightide/internal/plan"
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
