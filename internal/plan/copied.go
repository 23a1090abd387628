package plan

import (
	"strings"

	"hightide/internal/modelfile"
)

// copied are parts of the names of matrices that vLLM has whole on each GPU: the choice of experts, and what makes
// latent vectors. Source: ReplicatedLinear in its models.
var copied = []string{".q_a_proj.", ".kv_a_proj_with_mqa.", ".mlp.gate.", ".mixer.gate.", ".block_sparse_moe.gate.",
	".router.", ".shared_expert_gate."}

// fused are names of matrices that have queries, keys and values.
var fused = []string{".qkv_proj.", ".query_key_value.", ".c_attn."}

// copiedPart is what part of a matrix each of so many GPUs of vLLM's has whole, and of what part a share: 1 is all.
// Where GPUs are more than heads of keys and values, each has one head, so several have the same.
func copiedPart(t *modelfile.Tensor, s *modelfile.Shape, count int64) (whole, split float64) {
	is := func(names ...string) bool {
		for _, part := range names {
			if strings.Contains(t.Name, part) {
				return true
			}
		}
		return false
	}
	keys, all := float64(s.KVHeads), float64(s.Heads+2*s.KVHeads)
	switch {
	case is(copied...):
		return 1, 0
	case latent(s) || s.KVHeads == 0 || count <= int64(s.KVHeads):
		return 0, 1
	case is(".k_proj.", ".v_proj."):
		return 1 / keys, 0
	case is(fused...):
		return 2 / all, float64(s.Heads) / all
	}
	return 0, 1
}

// latent says whether keys and values are computed from a vector that all heads share.
func latent(s *modelfile.Shape) bool {
	for i := range s.Caches {
		if s.Caches[i].Kind == modelfile.CacheLatent {
			return true
		}
	}
	return false
}

// uneven says that vLLM cannot share the heads of keys and values among so many GPUs.
func uneven(s *modelfile.Shape, count int64) bool {
	heads := int64(s.KVHeads)
	return heads > 0 && !latent(s) && heads%count != 0 && count%heads != 0
}
