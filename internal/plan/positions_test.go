package plan

import (
	"strings"
	"testing"
)

// TestPositions: more tokens than the model has positions for are told, with what its rotary embeddings are stretched by.
func TestPositions(t *testing.T) {
	const config = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":1000,"hidden_size":256,
		"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":512,"max_position_embeddings":2048,
		"rope_scaling":SCALING}`
	for scaling, positions := range map[string]int64{
		`null`:                               2048,
		`{"type":"linear","factor":2.0}`:     4096,
		`{"rope_type":"dynamic","factor":4}`: 8192,
		`{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":1024}`:     4096,
		`{"rope_type":"llama3","factor":8.0,"original_max_position_embeddings":256}`:    2048,
		`{"type":"longrope","factor":8.0,"original_max_position_embeddings":256}`:       2048,
		`{"type":"linear","factor":1e30}`:                                               2048,
		`{"rope_type":"yarn","factor":0.25,"original_max_position_embeddings":1048576}`: 1048576,
	} {
		text := strings.Replace(config, "SCALING", scaling, 1)
		for asked, told := range map[int]bool{int(positions): false, int(positions) + 1: true} {
			notes := strings.Join(planned(t, text, Use{For: Serve, Seq: asked, Users: 1, Batch: 1}, "a10").Notes, "\n")
			if got := strings.Contains(notes, "the model has positions for"); got != told {
				t.Errorf("%s, %d tokens: %s", scaling, asked, notes)
			}
		}
	}
}
