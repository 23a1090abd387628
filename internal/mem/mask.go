package mem

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"hightide/internal/words"
)

// Masked stands where a secret stood.
const Masked = "***"

var (
	// secretName matches names of options and variables whose values are nobody's business.
	secretName = words.Lazy(`(?i)(^|[-_.])(pass(word|wd|phrase)?|pwd|pw|secret|token|(api|access|private|secret|auth|session|signing|encryption)[-_]?key|auth|authorization|credentials?|cookie|dsn)$`)

	// innocentName matches what language models call their tokens.
	innocentName = words.Lazy(`(?i)(^|[-_.])(pad|eos|bos|unk|mask|sep|cls|image|audio|video|special|start|end|stop|max|min|num|next|per|new)[-_]token$`)

	// secretText matches what gives itself away as a secret wherever it stands: keys of OpenAI,
	// Anthropic and Stripe, GitHub, GitLab, Hugging Face, AWS, Slack, Google, and JSON web tokens.
	secretText = words.Lazy(`\b(?:[spr]k[-_][A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*)?)`)

	privateKey = words.Lazy(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|$)`)
	// a token may stand in the user's place, and a password may hold an @
	urlUser    = words.Lazy(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"']+@`)
	bearer     = words.Lazy(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}`)
	assignment = words.Lazy(`([A-Za-z][A-Za-z0-9_.-]*)(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"',;&]+)`)
)

// MaskText hides secrets in a text such as a traceback. They are what looks like a key, users and
// passwords in addresses, and the values of names that say what they are. testdata/mask/cases.json has the
// rules by example. The agent masks by the same ones.
func MaskText(text string) string {
	text = secretText.Regexp().ReplaceAllString(text, Masked)
	text = privateKey.Regexp().ReplaceAllString(text, Masked)
	text = urlUser.Regexp().ReplaceAllString(text, "${1}"+Masked+"@")
	text = bearer.Regexp().ReplaceAllString(text, "$1 "+Masked)
	return maskAssignments(text)
}

// maskAssignments hides the value of name=value and "name": "value" where the name asks for it. A
// value that stays is looked through in its turn: https://host/?token=x.
func maskAssignments(text string) string {
	var out strings.Builder
	for {
		at := assignment.Regexp().FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		name, value := text[at[2]:at[3]], text[at[6]:at[7]]
		scheme, _, _ := strings.Cut(strings.ToLower(value), " ")
		out.WriteString(text[:at[6]])
		switch {
		case !isSecretName(name), scheme == "bearer", scheme == "basic": // masked by now
			text = text[at[6]:]
			continue
		case value[0] == '"' || value[0] == '\'':
			out.WriteString(value[:1] + Masked + value[:1])
		default:
			out.WriteString(Masked)
		}
		text = text[at[7]:]
	}
}

// MaskArgs hides secrets in a command line: as MaskText does in each word, and the word that
// follows an option whose name asks for a secret. The words given stay as they are.
func MaskArgs(args []string) []string {
	if args == nil {
		return nil
	}
	out := make([]string, len(args))
	hide, pytest := false, slices.ContainsFunc(args, isPytest)
	for i, arg := range args {
		if hide && !strings.HasPrefix(arg, "--") {
			out[i], hide = Masked, false
			continue
		}
		out[i] = MaskText(arg)
		if i > 0 && (!pytest || args[i-1] != "-p") { // to pytest that names a plugin
			out[i] = maskShort(args[0], args[i-1], out[i])
		}
		name, isOption := strings.CutPrefix(arg, "-")
		hide = isOption && isSecretName(strings.TrimLeft(name, "-"))
	}
	return out
}

// shortSecret are options whose value is a password in many programs, and something else in others.
var shortSecret = map[string]bool{"-p": true, "-pw": true}

// innocentShort is what -p takes elsewhere: a port, a path, an option.
var innocentShort = words.Lazy(`^([0-9]{1,5}|-.*|.*/.*|\.+)$`)

// maskShort hides what only its place gives away: -p s3cr3t, -ps3cr3t of MySQL's programs, -u user:s3cr3t, login
// s3cr3t.
func maskShort(program, before, arg string) string {
	name, password, isUser := strings.Cut(arg, ":")
	switch {
	case shortSecret[before] && !innocentShort.MatchString(arg):
		return Masked
	case strings.HasPrefix(arg, "-p") && len(arg) > 2 && mysql.MatchString(program):
		return "-p" + Masked
	case (before == "-u" || before == "--user" || before == "--proxy-user") && isUser && password != "":
		return name + ":" + Masked
	case before == "login" && longWord.MatchString(arg):
		return Masked
	}
	return arg
}

var (
	mysql    = words.Lazy(`(^|/)(mysql[a-z]*|mariadb[a-z-]*|sshpass)$`)
	longWord = words.Lazy(`^[A-Za-z0-9_-]{16,}$`)
)

func isPytest(arg string) bool {
	name := path.Base(arg)
	return name == "pytest" || name == "py.test"
}

func isSecretName(name string) bool {
	return secretName.MatchString(name) && !innocentName.MatchString(name)
}

// allowedEnv are the variables that say how a training was set up; names that end in * are
// prefixes. A prefix is that of one program alone: TF_ is Terraform's too, with TF_TOKEN_… and TF_VAR_…. No other
// variable is ever stored.
var allowedEnv = []string{
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_LAUNCH_BLOCKING",
	"CUDA_MODULE_LOADING",
	"CUBLAS_WORKSPACE_CONFIG", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	"HSA_OVERRIDE_GFX_VERSION",
	"PYTORCH_*", "TORCH_*", "TORCHDYNAMO_*", "TORCHINDUCTOR_*", "NCCL_*", "GLOO_*", "OMP_*", "KMP_*", "MKL_*",
	"OPENBLAS_NUM_THREADS", "NUMEXPR_*", "MALLOC_*", "LD_PRELOAD", "PYTHONMALLOC", "PYTHONHASHSEED", "PYTHONPATH",
	"TF_CONFIG", "TF_CPP_*", "TF_CUDA_*", "TF_CUDNN_*", "TF_DETERMINISTIC_OPS", "TF_DISABLE_*", "TF_ENABLE_*",
	"TF_FORCE_*", "TF_GPU_*",
	"TF_NUM_*", "TF_USE_*", "TF_XLA_*", "XLA_*", "JAX_*", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
	"GROUP_RANK", "NODE_RANK",
	"MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NNODES",
	"OMPI_COMM_WORLD_*", "PMI_RANK", "PMI_SIZE", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV", "ACCELERATE_*",
	"TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
}

// AllowedEnv picks the allowed variables out of an environment of "NAME=value" and masks their
// values; one whose name asks for a secret is left out whatever the list says.
func AllowedEnv(environ []string) map[string]string {
	out := map[string]string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || isSecretName(name) {
			continue
		}
		for _, allowed := range allowedEnv {
			prefix, open := strings.CutSuffix(allowed, "*")
			if name == allowed || open && strings.HasPrefix(name, prefix) {
				out[name] = MaskText(value)
			}
		}
	}
	return out
}

// Variable is one of an environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MaskEnv takes apart an environment of "NAME=value" for someone to look at, with secrets hidden. It hides the whole
// value where the name asks for it, and in others what gives itself away. What is not an assignment is left out.
func MaskEnv(environ []string) []Variable {
	var out []Variable
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		switch {
		case !ok || name == "":
			continue
		case value != "" && isSecretName(name):
			value = Masked
		default:
			value = MaskText(value)
		}
		out = append(out, Variable{name, value})
	}
	return out
}

// CommandLine writes a command as it can be typed again, quotes and all.
func CommandLine(command []string) string {
	quoted := make([]string, len(command))
	for i, word := range command {
		if quoted[i] = word; word == "" || strings.ContainsFunc(strings.ReplaceAll(word, Masked, ""), needsQuotes) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

var interpreter = regexp.MustCompile(`^(python|pypy)[\d.]*t?$`)

// Program is a command as people know it: from the script on, without the interpreter and its options.
func Program(command []string) []string {
	if len(command) == 0 {
		return nil
	}
	short := append([]string{path.Base(command[0])}, command[1:]...)
	if !interpreter.MatchString(short[0]) {
		return short
	}
	at := 1
	for at < len(short) && strings.HasPrefix(short[at], "-") && short[at] != "-m" && short[at] != "-c" &&
		short[at] != "-" {
		if short[at] == "-W" || short[at] == "-X" { // their values
			at++
		}
		at++
	}
	switch {
	case at >= len(short), short[at] == "-c", short[at] == "-":
		return short
	case short[at] == "-m":
		return short[at+1:]
	}
	return append([]string{path.Base(short[at])}, short[at+1:]...)
}

// needsQuotes says whether a shell may take a letter for more than itself.
func needsQuotes(r rune) bool {
	return r <= ' ' || strings.ContainsRune("\x7f!\"#$&'()*;<>?[\\]^`{|}", r)
}
