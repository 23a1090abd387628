package frameworks

import (
	"path"
	"slices"
)

// openaiServer is the module of vLLM's server, as it was started before `vllm serve`.
const openaiServer = "vllm.entrypoints.openai.api_server"

// ServerOf is the LLM server that a command starts, by its engine's name, and what follows: `vllm serve MODEL …`,
// `python -m vllm.entrypoints.openai.api_server --model MODEL …` or `python -m sglang.launch_server …`. "": it starts another program.
func ServerOf(command []string) (engine string, words []string) {
	if at := slices.Index(command, "serve"); at > 0 && path.Base(command[at-1]) == "vllm" {
		return "vLLM", command[at+1:]
	}
	if at := slices.Index(command, openaiServer); at > 1 && command[at-1] == "-m" {
		return "vLLM", command[at+1:]
	}
	if at := slices.Index(command, "sglang.launch_server"); at > 1 && command[at-1] == "-m" {
		return "SGLang", command[at+1:]
	}
	return "", nil
}

// Setting is another value of an argument of an LLM server's engine.
type Setting struct {
	Argument string `json:"argument" doc:"The engine's argument, by vLLM's name."`
	Value    string `json:"value" doc:"Its value."`
	Flag     string `json:"flag" doc:"The same as the server's command says it."`
	GPUs     int    `json:"gpus,omitempty" doc:"How many GPUs that takes; absent: as many as without it."`
}
