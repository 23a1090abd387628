package plan

import (
	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// Result is the answer.
type Result struct {
	Version  int           `json:"version" doc:"The version of this form."`
	Model    ModelInfo     `json:"model" doc:"What the files say."`
	Use      Use           `json:"use" doc:"What was asked."`
	Alone    bool          `json:"weights_alone,omitempty" doc:"Whether only the weights are known, and nothing else is counted."`
	Rows     []Row         `json:"rows" doc:"A GPU each: those that fit first, the cheapest first."`
	Cheapest string        `json:"cheapest,omitempty" doc:"The GPU, or the machine, with the lowest known price among those that fit; absent: none does."`
	Smallest string        `json:"smallest,omitempty" doc:"The one with the least memory among those that fit."`
	Changes  []Alternative `json:"changes" doc:"What would let a cheaper GPU do, or where none fits, a GPU at all: each was computed."`
	Notes    []string      `json:"notes" doc:"What was assumed, and what is not known."`
}

// ModelInfo is what the files of a model say.
type ModelInfo struct {
	Name         string           `json:"name" doc:"As it was given."`
	Source       string           `json:"source" doc:"Where the files were: folder, file, cache or hub; sent: what of them is read was sent."`
	Format       modelfile.Format `json:"format" doc:"safetensors, gguf, or config: no weights were read."`
	Kind         string           `json:"kind,omitempty" doc:"The architecture, as llama."`
	Files        int              `json:"files" doc:"Files with weights."`
	Tensors      int              `json:"tensors" doc:"Tensors that are loaded."`
	Elements     int64            `json:"elements" doc:"Numbers in them as stored: of a packed type several weights may share one."`
	Bytes        mem.Bytes        `json:"bytes" doc:"What they take as stored, in bytes."`
	Label        mem.Label        `json:"label" doc:"exact: read from the files; computed: from the configuration."`
	Types        []TypeInfo       `json:"types" doc:"The same by type, the largest first."`
	Left         mem.Bytes        `json:"not_loaded_bytes,omitempty" doc:"What the files hold besides, in bytes."`
	Context      int              `json:"context,omitempty" doc:"The most tokens of a sequence."`
	PerToken     mem.Bytes        `json:"cache_bytes_per_token,omitempty" doc:"What a further token of a long sequence takes in the cache, all GPUs together, in bytes."`
	PerSequence  Estimate         `json:"cache_per_sequence" doc:"What a sequence of the length asked takes in the cache."`
	Quantization string           `json:"quantization,omitempty" doc:"How the weights are packed, as the configuration says it."`

	Caches []modelfile.Cache `json:"caches" doc:"What the layers keep of a sequence, by kind."`
}

// TypeInfo is what the tensors of one type take.
type TypeInfo struct {
	Type     string    `json:"type" doc:"As BF16 or Q4_K."`
	Elements int64     `json:"elements" doc:"Numbers as stored."`
	Bytes    mem.Bytes `json:"bytes" doc:"In bytes."`
}

// Version of the JSON form.
const Version = 1

// Row is the answer for one GPU, or several of a kind together.
type Row struct {
	GPU     string    `json:"gpu" doc:"Its short name."`
	Count   int       `json:"gpus" doc:"How many are used together."`
	Machine *Rental   `json:"machine,omitempty" doc:"With --instances: the machine that has them."`
	Name    string    `json:"name" doc:"Its full name."`
	Verdict Verdict   `json:"verdict" doc:"fits, likely, unlikely or no, by the room that is left."`
	Label   mem.Label `json:"label" doc:"estimated; imagined: the use was run on this GPU, which is not there."`
	Total   mem.Bytes `json:"total_bytes" doc:"The memory of one GPU, in bytes."`
	Budget  Estimate  `json:"budget" doc:"Of that, what may be taken."`
	Parts   []Portion `json:"parts" doc:"What takes memory on one GPU, but a server's cache."`
	Cache   *Estimate `json:"cache,omitempty" doc:"Of a server: what all users' sequences take in the cache."`
	Room    Estimate  `json:"room" doc:"What is left of the budget; negative: what is missing."`
	Tokens  *Range    `json:"tokens,omitempty" doc:"Of a server: tokens that the cache holds, where each sequence has the length asked."`
	Users   *Range    `json:"users,omitempty" doc:"Of a server: sequences of that length at once."`
	Batch   *Range    `json:"batch,omitempty" doc:"Of other uses: the largest batch on each GPU; low: at the upper ends of the estimates."`
	Price   float64   `json:"price_usd_per_hour,omitempty" doc:"Of all GPUs together in USD an hour; absent: none is known."`
	Source  string    `json:"price_source,omitempty" doc:"Whose price it is."`
	Date    string    `json:"price_date,omitempty" doc:"Of which day the price is."`
	Note    string    `json:"note,omitempty" doc:"What stands against it besides memory."`

	Estimated *Guess `json:"estimated,omitempty" doc:"Of an imagined row: what was estimated before the run."`
	barred    string // why the use does not run on it, whatever its memory; "": nothing known
}

// Guess is what a row said of a use before it was run.
type Guess struct {
	Verdict Verdict  `json:"verdict" doc:"By the room that was estimated."`
	Room    Estimate `json:"room" doc:"What was estimated to be left."`
	Tokens  *Range   `json:"tokens,omitempty" doc:"Of a server: tokens that its cache would hold."`
	Users   *Range   `json:"users,omitempty" doc:"Of a server: sequences at once."`
	Batch   *Range   `json:"batch,omitempty" doc:"Of other uses: the largest batch."`
}

func (r *Row) guess() *Guess { return &Guess{r.Verdict, r.Room, r.Tokens, r.Users, r.Batch} }

// contradicts says whether a run says otherwise than the estimate: a worse verdict, or a figure that is not between its
// ends.
func (r *Row) contradicts() bool {
	g := r.Estimated
	return g != nil && (rank[r.Verdict] > rank[g.Verdict] || r.Room.Bytes < g.Room.Low || r.Room.Bytes > g.Room.High)
}

// Rental is what a cloud rents.
type Rental struct {
	Name     string    `json:"instance" doc:"As its provider calls it."`
	Provider string    `json:"provider" doc:"Who rents it."`
	GPUs     int       `json:"gpus" doc:"GPUs in it."`
	VCPUs    int       `json:"vcpus" doc:"Virtual processors."`
	Memory   mem.Bytes `json:"host_bytes" doc:"Memory of the host, in bytes."`
	Host     Portion   `json:"host" doc:"What the processes take of it."`
	Notes    string    `json:"notes,omitempty" doc:"What else is to be known of it."`
}

// key is by what a row is named in an answer: its machine, else its GPU.
func (r *Row) key() string {
	if r.Machine != nil {
		return r.Machine.Name
	}
	return r.GPU
}

// Alternative is another way to use a model, and the GPU on which it fits then.
type Alternative struct {
	GPU   string   `json:"gpu" doc:"The GPU, or the machine, on which it fits."`
	Price float64  `json:"price_usd_per_hour,omitempty" doc:"Of all GPUs together in USD an hour; absent: none is known."`
	Flags string   `json:"flags" doc:"What to change of the command, as --kv-dtype fp8."`
	Says  string   `json:"says" doc:"The same in words."`
	Room  Estimate `json:"room" doc:"What is left then."`
}

// conclude names the best of the rows.
func (r *Result) conclude() {
	var least mem.Bytes
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict != Fits {
			continue
		}
		if r.Cheapest == "" && row.Price > 0 {
			r.Cheapest = row.key()
		}
		if least == 0 || row.Total < least {
			least, r.Smallest = row.Total, row.key()
		}
	}
}
