package modelfile

import "strings"

// Shape is what of a configuration decides on memory. Where a number is 0 the files do not tell it.
type Shape struct {
	Kind string // of the architecture, as llama

	Layers       int // of the decoder
	NextLayers   int // behind those, which predict further tokens and are loaded on request
	Hidden       int
	Intermediate int  // of a dense layer's MLP
	Gated        bool // the MLP has a gate
	Composed     bool // its activation is made of several operations, each of which keeps what it reads
	LayerNorm    bool // norms are a kernel of their own, and not made of operations in 32 bits
	Heads        int  // of the queries
	KVHeads      int
	HeadDim      int
	RotaryDim    int  // numbers of a head that rotary embeddings turn; 0: it has none
	Sections     bool // positions have several parts, as those of videos
	Vocabulary   int
	Context      int // the most positions

	Experts      int
	ExpertsUsed  int // for one token
	ExpertWidth  int // of one expert's MLP
	SharedWidth  int // of the experts that every token uses, together
	Type         Type
	Quantization string // how weights are packed, as the configuration says it; "": they are not

	Caches  []Cache
	Unknown []string // what is not counted of the cache, or taken as other models have it: sentences
}

// Cache is what layers of one kind keep of a sequence. A token takes Heads × (Key + Value) numbers in each layer.
type Cache struct {
	Kind   CacheKind `json:"kind" doc:"attention, window, latent or state."`
	Layers int       `json:"layers" doc:"How many layers are of this kind."`
	Heads  int       `json:"heads,omitempty" doc:"Heads of keys and values."`
	Key    int       `json:"key,omitempty" doc:"Numbers of a key in a head."`
	Value  int       `json:"value,omitempty" doc:"Numbers of a value in a head."`
	Window int       `json:"window,omitempty" doc:"Tokens that are looked back on; absent: all."`
	State  int64     `json:"state,omitempty" doc:"Numbers that a sequence takes in a layer, however long it is."`
}

// CacheKind says how a cache grows.
type CacheKind string

// The kinds.
const (
	CacheAttention CacheKind = "attention" // with each token
	CacheWindow    CacheKind = "window"    // up to a number of tokens
	CacheLatent    CacheKind = "latent"    // with each token: what keys and values of all heads are computed from
	CacheState     CacheKind = "state"     // not at all
)

// Numbers is what a token takes in one layer, in numbers of the cache's type.
func (c *Cache) Numbers() int64 { return int64(c.Heads) * int64(c.Key+c.Value) }

// decoderLayer says that a tensor with a number in its name is of the layers that Layers counts, and not of another
// part, as one for images.
func (s *Shape) decoderLayer(name string) bool {
	for _, other := range []string{"vision", "visual", "audio", "encoder."} {
		if strings.Contains(name, other) {
			return false
		}
	}
	return true
}
