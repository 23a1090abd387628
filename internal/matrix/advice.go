package matrix

import "fmt"

// Advice is a recommendation: a sentence that is true of this matrix, and the cells that it speaks of.
type Advice struct {
	Kind     string `json:"kind"` // framework, batch, device, mode, least, repeats
	Sentence string `json:"sentence"`
	Cells    []int  `json:"cells,omitempty"`
}

func (w *comparing) advise() {}

// notes say what is not known.
func (w *comparing) notes() {
	single := 0
	for _, c := range w.Cells {
		if c.Done == 1 {
			single++
		}
	}
	if single > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("%d of %d cells ran once: what they say has no interval.", single, len(w.Cells)))
	}
}
