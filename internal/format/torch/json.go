package torch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"hightide/internal/mem"
	"hightide/internal/pickle"
)

// jsonPickle is a JSON text as a pickle that says the same, made while it is read. Snapshots that
// were saved as JSON go through the same builder as all others.
type jsonPickle struct {
	pickler
	in      *json.Decoder
	whole   *tokens
	out     bytes.Buffer
	nesting []jsonContainer
	done    bool
	fault   error // why it ended early
}

type jsonContainer struct {
	dict  bool
	count int // values since the last batch
}

const (
	jsonBatch = 1000 // values a batch, as Python's pickler has it
	jsonDepth = 64
	jsonToken = 8 << 20 // bytes of the longest text
)

// tokens fails where one text goes on and on: the decoder of JSON holds each as a whole.
type tokens struct {
	r    io.Reader
	left int
}

func (t *tokens) Read(p []byte) (int, error) {
	if t.left <= 0 {
		return 0, fmt.Errorf("a text of more than %d bytes", jsonToken)
	}
	n, err := t.r.Read(p)
	t.left -= n
	return n, err
}

// Stored is pickle.Stored, where the file says.
func (j *jsonPickle) Stored() int64 {
	if stored, ok := j.whole.r.(pickle.Stored); ok {
		return stored.Stored()
	}
	return j.in.InputOffset()
}

func newJSONPickle(r io.Reader) *jsonPickle {
	whole := &tokens{r: r, left: jsonToken}
	in := json.NewDecoder(bufio.NewReaderSize(whole, 256<<10))
	in.UseNumber()
	j := &jsonPickle{in: in, whole: whole}
	j.w = bufio.NewWriter(&j.out)
	return j
}

func (j *jsonPickle) Read(p []byte) (int, error) {
	for j.out.Len() == 0 {
		if j.done {
			return 0, io.EOF
		}
		if j.fault = j.token(); j.fault != nil {
			return 0, j.fault
		}
	}
	return j.out.Read(p)
}

func (j *jsonPickle) token() error {
	for n := 0; n < 256 && !j.done; n++ {
		token, err := j.in.Token()
		j.whole.left = jsonToken
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("JSON at byte %d: %w", j.in.InputOffset(), err)
		}
		if err := j.write(token); err != nil {
			return fmt.Errorf("JSON at byte %d: %w", j.in.InputOffset(), err)
		}
		if len(j.nesting) == 0 {
			j.op('.')
			j.done = true
		}
	}
	return j.w.Flush()
}

func (j *jsonPickle) write(token json.Token) error {
	if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
		last := j.nesting[len(j.nesting)-1]
		j.nesting = j.nesting[:len(j.nesting)-1]
		j.op(j.batch(last))
		return nil
	}
	j.room()
	switch token := token.(type) {
	case json.Delim:
		if len(j.nesting) == jsonDepth {
			return fmt.Errorf("more than %d containers inside each other", jsonDepth)
		}
		j.op(map[json.Delim]byte{'{': '}', '[': ']'}[token], '(')
		j.nesting = append(j.nesting, jsonContainer{dict: token == '{'})
	case string:
		j.string(token)
	case json.Number:
		return j.number(token.String())
	case bool:
		j.bool(token)
	case nil:
		j.op('N')
	}
	return nil
}

// room ends a batch that is full, so that no list waits as a whole.
func (j *jsonPickle) room() {
	if len(j.nesting) == 0 {
		return
	}
	last := &j.nesting[len(j.nesting)-1]
	if last.count++; !last.dict && last.count > jsonBatch {
		j.op(j.batch(*last), '(')
		last.count = 1
	}
}

func (j *jsonPickle) batch(c jsonContainer) byte {
	if c.dict {
		return 'u'
	}
	return 'e'
}

func (j *jsonPickle) number(text string) error {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		j.int(i)
	} else if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		j.unsigned(u)
	} else if f, err := strconv.ParseFloat(text, 64); err == nil {
		j.float(f)
	} else {
		return fmt.Errorf("%.40s is not a number that there is room for", text)
	}
	return nil
}

// jsonHas says whether the first bytes of a JSON text have one of these keys.
func jsonHas(head []byte, keys ...string) bool {
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	return slices.ContainsFunc(keys, func(key string) bool { return bytes.Contains(head, []byte(`"`+key+`"`)) })
}

// IsJSON knows a snapshot that was saved as JSON by its keys.
func IsJSON(head []byte) bool {
	return jsonHas(head, "device_traces", "total_size", "segment_type", "segments", "action") &&
		!jsonHas(head, "traceEvents", "ph")
}

// ReadJSON reads a snapshot that was saved as JSON. Positions in errors are of the JSON.
func ReadJSON(r io.Reader) (*mem.AllocatorSnapshot, error) {
	text := newJSONPickle(r)
	snapshot, err := readSnapshot(text, 0, "torch-json")
	if text.fault != nil {
		return nil, text.fault
	}
	var where *pickle.Error
	if errors.As(err, &where) { // its position is in the pickle that nobody sees
		return nil, fmt.Errorf("JSON, before byte %d: %w", text.in.InputOffset(), where.Err)
	}
	if err != nil {
		return nil, err
	}
	return snapshot, nil
}
