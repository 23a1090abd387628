package record

import (
	"regexp"
	"strings"
)

const masked = "•••"

// secretName matches names of options and variables whose values are nobody's business.
var secretName = regexp.MustCompile(`(?i)(^|[-_.])(pass(word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|auth|authorization|credential[s]?|cookie|session[-_]?key|dsn)$`)

// secretText matches what gives itself away as a secret wherever it stands.
var secretText = []*regexp.Regexp{
	regexp.MustCompile(`\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`),
	regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{20,}`),
	regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{20,}`),
	regexp.MustCompile(`\bhf_[A-Za-z0-9]{16,}`),
	regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`),
	regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`),
	regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`),
}

var (
	urlPassword = regexp.MustCompile(`([a-z][a-z0-9+.-]*://[^/\s:@]*):[^/\s@]+@`)
	bearer      = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}`)
	assignment  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)(["']?\s*[=:]\s*["']?)([^\s"',;&]+)`)
)

// Mask hides secrets in a text, such as a traceback: what looks like a key, a password in an
// address, and the values of names that say what they are.
func Mask(text string) string {
	for _, secret := range secretText {
		text = secret.ReplaceAllString(text, masked)
	}
	text = urlPassword.ReplaceAllString(text, "$1:"+masked+"@")
	text = bearer.ReplaceAllString(text, "$1 "+masked)
	return assignment.ReplaceAllStringFunc(text, func(found string) string {
		parts := assignment.FindStringSubmatch(found)
		if !secretName.MatchString(parts[1]) {
			return found
		}
		return parts[1] + parts[2] + masked
	})
}

// MaskArgs hides secrets in a command line: also the word after an option that asks for one.
func MaskArgs(args []string) []string {
	out := make([]string, len(args))
	hide := false
	for i, arg := range args {
		if hide && !strings.HasPrefix(arg, "-") {
			out[i], hide = masked, false
			continue
		}
		out[i] = Mask(arg)
		hide = strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && secretName.MatchString(strings.TrimLeft(arg, "-"))
	}
	return out
}

// envAllowed are the variables that say how a training was set up and never hold a secret; names
// ending in * are prefixes.
var envAllowed = []string{
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "HIP_VISIBLE_DEVICES",
	"ROCR_VISIBLE_DEVICES", "PYTORCH_*", "TORCH_*", "NCCL_*", "OMP_*", "MKL_*", "OPENBLAS_NUM_THREADS", "MALLOC_*",
	"LD_PRELOAD", "PYTHONMALLOC", "PYTHONPATH", "PYTHONHASHSEED", "TF_*", "XLA_*", "JAX_*", "RANK", "LOCAL_RANK", "WORLD_SIZE",
	"LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID",
	"SLURM_NTASKS", "SLURM_NNODES", "OMPI_COMM_WORLD_*", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV", "ACCELERATE_*",
	"TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE",
}

// allowedEnv picks the allowed variables out of an environment.
func allowedEnv(env []string) map[string]string {
	out := map[string]string{}
	for _, entry := range env {
		key, value, ok := strings.Cut(entry, "=")
		if !ok || secretName.MatchString(key) {
			continue
		}
		for _, allowed := range envAllowed {
			prefix, open := strings.CutSuffix(allowed, "*")
			if key == allowed || open && strings.HasPrefix(key, prefix) {
				out[key] = Mask(value)
			}
		}
	}
	return out
}
