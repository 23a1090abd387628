package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// tree is a Builder of ordinary Go values, for tests.
type tree struct{ made []any }

func (t *tree) keep(v any) (Value, error) {
	t.made = append(t.made, v)
	return MakeValue(uint64(len(t.made) - 1)), nil
}

func (t *tree) Dict(d *Decoder, pairs []Value) (Value, error) {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(t.value(d, pairs[i]))] = t.value(d, pairs[i+1])
	}
	return t.keep(m)
}

func (t *tree) List(d *Decoder, items []Value) (Value, error) {
	l := []any{}
	for _, v := range items {
		l = append(l, t.value(d, v))
	}
	return t.keep(l)
}

func (t *tree) Tuple(d *Decoder, items []Value) (Value, error) { return t.List(d, items) }

func (t *tree) value(d *Decoder, v Value) any {
	switch v.Tag() {
	case None:
		return nil
	case Bool:
		return v.Payload() == 1
	case Float:
		f, _ := d.Float(v)
		return f
	case Str:
		return d.String(v)
	case Made:
		return t.made[v.Payload()]
	}
	i, ok := d.Int(v)
	if !ok {
		panic(fmt.Sprintf("value %x has no Go form", uint64(v)))
	}
	return i
}

func decode(data []byte, limits Limits) (any, error) {
	t := &tree{}
	v, d, err := Decode(bytes.NewReader(data), t, limits)
	if err != nil {
		return nil, err
	}
	return t.value(d, v), nil
}

// TestPython compares with what a real Python pickled, in every protocol.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here to pickle something")
	}
	expressions := map[string]any{
		"{'a': [1, 255, 256, 65535, 65536, -1, 2**31, -2**31-1], 'b': (True, False, None)}": map[string]any{
			"a": []any{int64(1), int64(255), int64(256), int64(65535), int64(65536), int64(-1), int64(1) << 31,
				-int64(1)<<31 - 1},
			"b": []any{true, false, nil}},
		"[2**63, 2**64-1, -2**63, 2**60]":           []any{-int64(1) << 63, int64(-1), -int64(1) << 63, int64(1) << 60},
		"[1.5, -0.25, '', 'é', 'a\\nb', '€' * 100]": []any{1.5, -0.25, "", "é", "a\nb", strings.Repeat("€", 100)},
		"(lambda l: [l, l])([{'x': ()}, {'x': (1,2,3,4)}])": []any{
			[]any{map[string]any{"x": []any{}}, map[string]any{"x": []any{int64(1), int64(2), int64(3), int64(4)}}},
			[]any{map[string]any{"x": []any{}}, map[string]any{"x": []any{int64(1), int64(2), int64(3), int64(4)}}}},
		"'s' * 300000": strings.Repeat("s", 300000),
	}
	names := slices.Collect(maps.Keys(expressions))
	// One Python for all of them: each start of it takes longer than what it is asked for.
	program := `import pickle, struct, sys
for expression in sys.argv[1:]:
    for protocol in range(6):
        data = pickle.dumps(eval(expression), protocol)
        sys.stdout.buffer.write(struct.pack("<I", len(data)) + data)`
	out, err := exec.Command(python, append([]string{"-c", program}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, expression := range names {
		for protocol := 0; protocol <= 5; protocol++ {
			length := int(binary.LittleEndian.Uint32(out))
			data := out[4 : 4+length]
			out = out[4+length:]
			t.Run(fmt.Sprintf("%d/%.20s", protocol, expression), func(t *testing.T) {
				got, err := decode(data, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, expressions[expression]) {
					t.Errorf("got %.200v, want %.200v", got, expressions[expression])
				}
			})
		}
	}
	if len(out) > 0 {
		t.Errorf("%d bytes more than were asked for", len(out))
	}
}

// TestHostile refuses each with a reason and a position.
func TestHostile(t *testing.T) {
	for _, test := range []struct {
		name, data string
		want       error
		offset     int64
	}{
		{"global", "cos\nsystem\n(S'true'\ntR.", ErrUnsafe, 0},
		{"stack global", "\x80\x04\x8c\x02os\x8c\x06system\x93.", ErrUnsafe, 14},
		{"inst", "(S'true'\nios\nsystem\n.", ErrUnsafe, 9},
		{"obj", "(]o.", ErrUnsafe, 2},
		{"reduce", "])R.", ErrUnsafe, 2},
		{"build", "]}b.", ErrUnsafe, 2},
		{"newobj", "])\x81.", ErrUnsafe, 2},
		{"extension", "\x80\x02\x82\x01.", ErrUnsafe, 2},
		{"persistent id", "Pthing\n.", ErrUnsafe, 0},
		{"out of band buffer", "\x80\x05\x97.", ErrUnsafe, 2},
		{"protocol 6", "\x80\x06N.", ErrMalformed, 0},
		{"length that lies", "\x80\x04X\xff\xff\xff\x7f.", ErrLimit, 2},
		{"length beyond the file", "\x80\x04X\x10\x00\x00\x00ab", ErrTruncated, 2},
		{"huge string", "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", ErrLimit, 2},
		{"nesting", strings.Repeat("]", 101) + strings.Repeat("a", 100) + ".", ErrLimit, 164},
		{"memo bomb", "]r\xff\xff\xff\x7f.", ErrLimit, 1},
		{"memo unset", "h\x05.", ErrMalformed, 0},
		{"self reference", "](q\x00h\x00e.", ErrMalformed, 2},
		{"list inside itself", "]q\x00(h\x00e.", ErrMalformed, 4},
		{"duplicated container", "]2a.", ErrMalformed, 1},
		{"odd pairs", "}(Nu.", ErrMalformed, 3},
		{"append to dict", "}Na.", ErrMalformed, 2},
		{"append to tuple", ")Na.", ErrMalformed, 2},
		{"no mark", "]e.", ErrMalformed, 1},
		{"left over", "NN.", ErrMalformed, 2},
		{"empty", "", ErrTruncated, 0},
		{"integer of 300 bytes", "\x80\x02\x8b\x2c\x01\x00\x00.", ErrLimit, 2},
		{"unknown opcode", "\xff.", ErrMalformed, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			value, err := decode([]byte(test.data), Limits{})
			var where *Error
			if !errors.Is(err, test.want) || !errors.As(err, &where) || value != nil {
				t.Fatalf("value %v, error %v; want %v with a position", value, err, test.want)
			}
			if where.Offset != test.offset {
				t.Errorf("stopped at byte %d (%v), want %d", where.Offset, err, test.offset)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	many := "](" + strings.Repeat("N", 1000) + "e."
	for name, limits := range map[string]Limits{
		"items": {Items: 500}, "open": {Open: 500},
	} {
		if _, err := decode([]byte(many), limits); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	float, wide := "G\x00\x00\x00\x00\x00\x00\x00\x01", "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x7f"
	for name, data := range map[string]string{
		"floats":             "](" + strings.Repeat(float, 501) + "e.",
		"floats dropped":     strings.Repeat(float+"0", 501) + "N.",
		"wide integers":      "](" + strings.Repeat(wide, 501) + "e.",
		"pairs of them":      "](" + strings.Repeat(wide+wide+"\x86", 251) + "e.",
		"floats as text":     "](" + strings.Repeat("F1.5\n", 501) + "e.",
		"integers as text":   "](" + strings.Repeat("I8000000000000000000\n", 501) + "e.",
		"of one kind or two": "](" + strings.Repeat(wide+float, 251) + "e.",
	} {
		if _, err := decode([]byte(data), Limits{Memory: numberCost * 500, PerByte: -1}); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := decode([]byte(data), Limits{Memory: numberCost * 502}); err != nil {
			t.Errorf("%s within the limit: %v", name, err)
		}
	}
	texts := "](\x8c\x02aa\x8c\x02bbe."
	if _, err := decode([]byte(texts), Limits{Memory: 60, PerByte: -1}); !errors.Is(err, ErrLimit) {
		t.Errorf("table: %v", err)
	}
}

func TestTrailing(t *testing.T) {
	for data, want := range map[string][2]bool{"N.": {}, "N.r": {true, false}, "N.\x80\x04N.": {true, true},
		"N.\x80": {true, false}} {
		_, d, err := Decode(strings.NewReader(data), &tree{}, Limits{})
		if err != nil || [2]bool{d.Trailing, d.Another} != want || d.Offset() != 2 {
			t.Errorf("%q: trailing %v, another %v at %d, %v", data, d.Trailing, d.Another, d.Offset(), err)
		}
	}
}

// FuzzDecode: a stranger's file gives a value or an *Error, never both, never a panic, and never
// more memory than its limits.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("cos\nsystem\n"))
	f.Add([]byte("\x80\x04X\xff\xff"))
	f.Add([]byte("\x80\x04]\x94(}\x94(\x8c\x06action\x94\x8c\x05alloc\x94ueh\x01h\x02\x86e."))
	f.Add([]byte("(dp0\nS'a'\np1\nI1\nsS'b'\n(lp2\nF1.5\naL12L\nas."))
	if data, err := os.ReadFile("testdata/small.pickle"); err == nil {
		f.Add(data)
	}
	limits := Limits{Depth: 64, Items: 1 << 16, Memo: 1 << 16, StringBytes: 1 << 16, Memory: 1 << 20, Open: 1 << 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := decode(data, limits)
		var where *Error
		if err != nil && (value != nil || !errors.As(err, &where)) {
			t.Fatalf("value %v, error %v: want no value and a position", value, err)
		}
		if where != nil && (where.Offset < 0 || where.Offset > int64(len(data))) {
			t.Fatalf("position %d in %d bytes", where.Offset, len(data))
		}
		rng := rand.New(rand.NewPCG(uint64(len(data)), 1))
		if _, _, lent := Decode(lend(data, rng), &tree{}, limits); fmt.Sprint(lent) != fmt.Sprint(err) {
			t.Fatalf("error %v; lent in parts: %v", err, lent)
		}
	})
}
