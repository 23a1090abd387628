package modelfile

// family is how the weights of an architecture follow from its configuration.
type family struct {
	gated    bool // the MLP has a gate beside its first matrix
	qkv, out bool // the attention's matrices have biases; a field attention_bias overrides it
	mlp      bool // the MLP's have; a field mlp_bias overrides it
	norms    int  // of a layer
	normBias bool
	qkNorm   int    // 1: queries and keys are normed by head, 2: all heads together
	learned  int    // positions are learned, and so many more than the configuration says; 0: they are not, or are rotary
	fixed    bool   // they are added to the scores, or states tell them
	headDim  int    // where the configuration does not say it
	tied     bool   // the output is the embedding's, where the configuration does not say it
	headBias bool   // the output has a bias
	fused    bool   // queries, keys and values come from one matrix
	fusedMLP bool   // the gate and what it gates, too
	embNorm  bool   // the embedding is normed
	latent   bool   // keys and values come from a latent vector
	sinks    bool   // a number for each head
	router   bool   // the choice of experts has a bias
	sum      Type   // of one that is added to the scores; zero: there is none
	experts  bool   // their matrices have biases
	gate     bool   // what every token uses has a gate
	composed bool   // the activation is made of several operations, where the configuration does not name it
	always   bool   // every layer has experts
	mixer    string // how layers mix tokens that keep a state in place of keys and values, or besides
	alone    bool   // a layer has nothing else
	bare     bool   // norms have no weights
	wide     bool   // what chooses experts has 32 bits
}

// rotary says whether positions are turned into the queries and keys.
func (f *family) rotary() bool { return f.learned == 0 && !f.fixed }

// families are those whose weights are computed where no file has them. What each has is held against the classes of
// transformers by a test.
var families = map[string]family{
	"llama":             {gated: true, norms: 2},
	"mistral":           {gated: true, norms: 2},
	"ministral":         {gated: true, norms: 2},
	"granite":           {gated: true, norms: 2},
	"smollm3":           {gated: true, norms: 2, tied: true},
	"phi3":              {gated: true, norms: 2, fused: true, fusedMLP: true},
	"qwen2":             {gated: true, norms: 2, qkv: true},
	"qwen2_vl":          {gated: true, norms: 2, qkv: true},
	"qwen2_vl_text":     {gated: true, norms: 2, qkv: true},
	"qwen2_5_vl":        {gated: true, norms: 2, qkv: true},
	"qwen2_5_vl_text":   {gated: true, norms: 2, qkv: true},
	"qwen3":             {gated: true, norms: 2, qkNorm: 1},
	"qwen3_vl_text":     {gated: true, norms: 2, qkNorm: 1},
	"gemma":             {gated: true, norms: 2, tied: true, headDim: 256},
	"gemma2":            {gated: true, norms: 4, tied: true, headDim: 256},
	"gemma3_text":       {gated: true, norms: 4, tied: true, headDim: 256, qkNorm: 1},
	"olmo2":             {gated: true, norms: 2, qkNorm: 2},
	"olmo3":             {gated: true, norms: 2, qkNorm: 2},
	"cohere":            {gated: true, norms: 1, tied: true},
	"cohere2":           {gated: true, norms: 1, tied: true},
	"glm4":              {gated: true, norms: 4, fusedMLP: true},
	"stablelm":          {gated: true, norms: 2, normBias: true},
	"starcoder2":        {norms: 2, normBias: true, qkv: true, out: true, mlp: true, tied: true},
	"gpt_neox":          {norms: 2, normBias: true, qkv: true, out: true, mlp: true, fused: true},
	"gpt2":              {norms: 2, normBias: true, qkv: true, out: true, mlp: true, learned: 1, tied: true, composed: true, fused: true},
	"gpt_bigcode":       {norms: 2, normBias: true, qkv: true, out: true, mlp: true, learned: 1, tied: true, fused: true},
	"opt":               {norms: 2, normBias: true, qkv: true, out: true, mlp: true, learned: 3, tied: true},
	"bloom":             {norms: 2, normBias: true, qkv: true, out: true, mlp: true, fixed: true, tied: true, embNorm: true, fused: true},
	"phi":               {norms: 1, normBias: true, qkv: true, out: true, mlp: true, headBias: true, composed: true},
	"falcon":            {norms: 1, normBias: true, tied: true, fused: true},
	"mixtral":           {gated: true, norms: 2, always: true},
	"qwen2_moe":         {gated: true, norms: 2, qkv: true, gate: true},
	"qwen3_moe":         {gated: true, norms: 2, qkNorm: 1},
	"qwen3_vl_moe_text": {gated: true, norms: 2, qkNorm: 1},
	"olmoe":             {gated: true, norms: 2, qkNorm: 2, always: true},
	"gpt_oss":           {gated: true, norms: 2, qkv: true, out: true, sinks: true, router: true, experts: true, always: true},
	"deepseek_v2":       {gated: true, norms: 2, latent: true},
	"deepseek_v3":       {gated: true, norms: 2, latent: true, sum: BF16},
	"kimi_k2":           {gated: true, norms: 2, latent: true, sum: BF16},
	"glm4_moe":          {gated: true, norms: 2, sum: F32},
	"granitemoe":        {gated: true, norms: 2, always: true},
	"seed_oss":          {gated: true, norms: 2, qkv: true},
	"exaone4":           {gated: true, norms: 2, qkNorm: 1},
	"ernie4_5":          {gated: true, norms: 2},
	"helium":            {gated: true, norms: 2},
	"arcee":             {norms: 2},
	"nemotron":          {norms: 2, normBias: true},
	"codegen":           {norms: 1, normBias: true, mlp: true, headBias: true, composed: true, fused: true},
	"gptj":              {norms: 1, normBias: true, mlp: true, headBias: true, composed: true},
	"bamba":             {gated: true, norms: 2, mixer: "mamba2"},
	"granitemoehybrid":  {gated: true, norms: 2, fusedMLP: true, always: true, mixer: "mamba2"},
	"falcon_h1":         {gated: true, norms: 2, mixer: "mamba2"},
	"mamba2":            {norms: 1, mixer: "mamba2", alone: true},
	"mamba":             {norms: 1, mixer: "mamba", alone: true, tied: true},
	"falcon_mamba":      {norms: 1, mixer: "mamba", alone: true, tied: true},
	"jamba":             {gated: true, norms: 2, fixed: true, mixer: "mamba"},
	"lfm2":              {gated: true, norms: 2, qkNorm: 1, tied: true, mixer: "conv"},
	"qwen3_next":        {gated: true, norms: 2, qkNorm: 1, gate: true, mixer: "delta"},
	"qwen3_5_text":      {gated: true, norms: 2, qkNorm: 1, mixer: "delta"},
	"qwen3_5_moe_text":  {gated: true, norms: 2, qkNorm: 1, gate: true, always: true, mixer: "delta"},
	"granitemoeshared":  {gated: true, norms: 2, fusedMLP: true, always: true},
	"minimax_m2":        {gated: true, norms: 2, qkNorm: 2, sum: BF16, always: true},
	"phimoe":            {gated: true, norms: 2, normBias: true, always: true},
	"olmo":              {gated: true, bare: true},
	"glm":               {gated: true, norms: 2, qkv: true, fusedMLP: true},
	"ministral3":        {gated: true, norms: 2},
	"cwm":               {gated: true, norms: 2},
	"gpt_neo":           {norms: 2, normBias: true, out: true, mlp: true, learned: 1, tied: true, composed: true},
	"mpt":               {norms: 2, fixed: true, tied: true, fused: true},
	"xglm":              {norms: 2, normBias: true, qkv: true, out: true, mlp: true, fixed: true, tied: true},
	"biogpt":            {norms: 2, normBias: true, qkv: true, out: true, mlp: true, learned: 3, tied: true},
	"hunyuan_v1_dense":  {gated: true, norms: 2, qkNorm: 1},
	"hunyuan_v1_moe":    {gated: true, norms: 2, qkNorm: 1, always: true, wide: true},
	"dots1":             {gated: true, norms: 2, qkNorm: 1, sum: BF16},
	"ernie4_5_moe":      {gated: true, norms: 2, tied: true, sum: F32, wide: true},
	"llama4_text":       {gated: true, norms: 2},
	"nemotron_h":        {norms: 1, fixed: true, sum: BF16, mixer: "mamba2"},
	"glm4v_text":        {gated: true, norms: 4, qkv: true, fusedMLP: true},
	"glm4v_moe_text":    {gated: true, norms: 2, qkv: true, sum: F32},
	"glm4_moe_lite":     {gated: true, norms: 2, latent: true, sum: F32},
	"youtu":             {gated: true, norms: 2, latent: true, tied: true},
	"solar_open":        {gated: true, norms: 2, sum: F32, always: true},
	"lfm2_moe":          {gated: true, norms: 2, qkNorm: 1, tied: true, sum: F32, mixer: "conv"},
	"flex_olmo":         {gated: true, norms: 2, qkNorm: 2, always: true},
	"exaone_moe":        {gated: true, norms: 2, qkNorm: 1, sum: BF16},
	"apertus":           {norms: 2, qkNorm: 1},
}
