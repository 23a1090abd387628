// Package words reads and compares words: mistyped names of GPUs, of budgets, of settings, and patterns of text.
package words

// Distance is how many letters must change, come or go to make one word of the other. Only the first 64
// bytes of each count.
func Distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Near is the choice that a mistyped word most likely meant: at most two letters differ, and no more than half of the
// word. "" where none is so near.
func Near(word string, choices []string) string {
	near := Nearest(word, choices)
	if d := Distance(word, near); d > 2 || 2*d > len(word) {
		return ""
	}
	return near
}

// Nearest is the choice that is closest to a word, the first of several; "" where there is none.
func Nearest(word string, choices []string) string {
	best, least := "", -1
	for _, choice := range choices {
		if d := Distance(word, choice); least < 0 || d < least {
			best, least = choice, d
		}
	}
	return best
}
