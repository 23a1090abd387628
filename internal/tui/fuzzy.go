package tui

import (
	"strings"
	"unicode"
)

// matches says whether each word of a filter stands in a text. It does so whole, or by its letters in order with the
// first of them at the beginning of a word, as "trpy" in "train.py". Capitals count where the filter has some.
func matches(filter, text string) bool {
	if filter == strings.ToLower(filter) {
		text = strings.ToLower(text)
	}
	for word := range strings.FieldsSeq(filter) {
		if !strings.Contains(text, word) && !inOrder([]rune(word), []rune(text)) {
			return false
		}
	}
	return true
}

// inOrder looks for the letters within one word of the text, where a word is what has no space in it.
func inOrder(letters, text []rune) bool {
	for start := range text {
		if text[start] != letters[0] || start > 0 && (unicode.IsLetter(text[start-1]) || unicode.IsDigit(text[start-1])) {
			continue
		}
		next := 0
		for _, r := range text[start:] {
			if unicode.IsSpace(r) {
				break
			}
			if r == letters[next] {
				if next++; next == len(letters) {
					return true
				}
			}
		}
	}
	return false
}
