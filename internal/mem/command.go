package mem

import "strings"

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

// needsQuotes says whether a shell may take a letter for more than itself.
func needsQuotes(r rune) bool {
	return r <= ' ' || strings.ContainsRune("\x7f!\"#$&'()*;<>?[\\]^`{|}", r)
}
