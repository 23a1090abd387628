package mem

import "strings"

// Variable is one of an environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MaskEnv takes apart an environment of "NAME=value" for someone to look at, with secrets hidden: the whole value where the name
// asks for it, and in others what gives itself away. What is not an assignment is left out.
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
