package plan

import (
	"cmp"
	"context"
	"fmt"

	"hightide/internal/mem"
)

// Excluded says of GPUs, by their short names, why a server cannot be enough on them: its weights and the KV cache of
// its users are more than the share of the memory, whatever is estimated besides. Where the files do not tell, none is.
func Excluded(ctx context.Context, o Options) map[string]string {
	result, err := Run(ctx, o)
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for i := range result.Rows {
		if why := result.Rows[i].neverEnough(&result.Use); why != "" {
			found[result.Rows[i].GPU] = why
		}
	}
	return found
}

// neverEnough is why a GPU is not enough whatever is estimated; "": that is not certain.
func (r *Row) neverEnough(use *Use) string {
	if r.barred != "" || r.Cache == nil {
		return r.barred
	}
	var known mem.Bytes
	for _, part := range r.Parts {
		if part.Label != mem.Estimated {
			known += part.Low
		}
	}
	if known+r.Cache.Low <= r.Budget.High {
		return ""
	}
	return fmt.Sprintf("weights %v and the KV cache of %d × %d tokens, %v, are more than %v of its memory (computed)",
		known, use.Users, use.Seq, r.Cache.Low, cmp.Or(r.Budget.High, r.Total))
}
