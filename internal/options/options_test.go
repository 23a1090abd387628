package options

import (
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
)

// taken is a value of each kind.
type taken struct {
	word, mode string
	on, off    bool
	n          int
	rate       float64
	size       mem.Bytes
	time       time.Duration
	all, parts []string
	tags       map[string]string
}

func (t *taken) settings() List {
	return List{
		{Name: "word", Help: "a `word`; see --mode, or hightide info --all", To: &t.word, Older: "term"},
		{Name: "mode", Help: "how", To: &t.mode, Default: "fast", Among: []string{"fast", "slow"}},
		{Name: "on", To: &t.on}, {Name: "stacks", To: Off{&t.off}},
		{Name: "count-of", To: &t.n, Least: 1, Default: "3"},
		{Name: "rate", To: &t.rate},
		{Name: "size", To: &t.size, Example: "24GiB"},
		{Name: "time", To: &t.time, Least: int64(time.Second)},
		{Name: "all", To: &t.all}, {Name: "parts", To: &t.parts, Commas: true},
		{Name: "tag", To: Tags{To: &t.tags}},
		{Name: "output", To: new(string), Not: CommandOnly, Why: "it names a file"},
	}
}

func TestRead(t *testing.T) {
	var got taken
	err := got.settings().Read(HTTP, []byte(`{"term": "x", "mode": "", "on": true, "stacks": false, "count_of": 0, "rate": 0.5,
		"size": "1GiB", "time": "2s", "all": ["a b", ""], "parts": ["c,d", "e"], "tag": {"k": "v"}}`))
	if err != nil || got.word != "x" || got.mode != "fast" || !got.on || !got.off || got.n != 3 || got.rate != 0.5 ||
		got.size != mem.GiB || got.time != 2*time.Second || len(got.all) != 2 || strings.Join(got.parts, " ") != "c d e" ||
		got.tags["k"] != "v" {
		t.Errorf("%+v, %v", got, err)
	}
	got = taken{n: 7}
	if err := got.settings().Read(HTTP, nil); err != nil || got.n != 7 || got.mode != "fast" {
		t.Errorf("nothing is given: %+v, %v", got, err)
	}
}

// Whatever is wrong is said with the name of the setting, and why a door does not take one.
func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"coun_of": 1}`:       "did you mean count_of?",
		`{"count-of": 1}`:      "did you mean count_of?",
		`{"output": "/tmp"}`:   "it names a file",
		`{"count_of": 1.5}`:    "count_of is a number 1.5, not a whole number",
		`{"count_of": -1}`:     "--count-of -1 is less than 1",
		`{"on": "yes"}`:        "on is a string, not true or false",
		`{"all": "a"}`:         "all is a string, not a list of words",
		`{"tag": ["a"]}`:       "tag is a array, not names with their texts",
		`{"tag": {"": "a"}}`:   "tag \"=a\" is not of the form key=value",
		`{"size": "plenty"}`:   "size: ",
		`{"size": "0"}`:        "size: ",
		`{"time": "20ms"}`:     "time: 20ms is too short: 1s is the least",
		`{"mode": "slower"}`:   "--mode slower is not known; did you mean slow?",
		`["a"]`:                "no JSON object",
		`{"word": ["a", "b"`:   "no JSON object",
		`{"rate": {"a": "b"}}`: "rate is a object, not a number",
	} {
		if err := new(taken).settings().Read(HTTP, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if err := (&taken{mode: "x"}).settings().Verify(); err == nil {
		t.Error("a word that no door has read is not looked at")
	}
}

func TestAbout(t *testing.T) {
	list := new(taken).settings()
	if got := list.Find("word").About(); got != "a word; see mode, or hightide info --all" {
		t.Error(got)
	}
	if got := list.Find("mode").About(); got != "how (default fast)" {
		t.Error(got)
	}
	if len(list.Of(HTTP)) != len(list)-1 || len(list.Without(MCP, "so").Of(MCP)) != 0 {
		t.Error("doors")
	}
}

// Of several places that switch something off, one is enough: a project's file does not switch it on again.
func TestOff(t *testing.T) {
	var off bool
	for _, text := range []string{"true", "false", "true"} {
		if err := (Off{&off}).Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if !off || (Off{&off}).Set("x") == nil {
		t.Error(off)
	}
}

// TestFill: what is zero gets its default. A text "0" is no zero value: --steps 0 is all of them.
func TestFill(t *testing.T) {
	steps, sizes, n := "0", "", 0
	List{{Name: "steps", To: &steps, Default: "auto"}, {Name: "sizes", To: &sizes, Default: "upper"},
		{Name: "count", To: &n, Default: "3"}}.Fill()
	if steps != "0" || sizes != "upper" || n != 3 {
		t.Errorf("steps %q, sizes %q, count %d", steps, sizes, n)
	}
}
