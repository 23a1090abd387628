package format

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"hightide/internal/format/stacks"
	"hightide/internal/pickle"
)

// hostile are files that want to run something, to fill the memory, or to lie about it.
var hostile = map[string]struct {
	data string
	want error // nil: any
	says string
}{
	// what fickling injects, and its kin
	"GLOBAL os.system": {"cos\nsystem\n(S'true'\ntR.", pickle.ErrUnsafe, "os.system"},
	"GLOBAL builtins.exec": {"\x80\x02cbuiltins\nexec\nX\x04\x00\x00\x00pass\x85R.", pickle.ErrUnsafe,
		"builtins.exec"},
	"GLOBAL nt.system": {"\x80\x02cnt\nsystem\n.", pickle.ErrUnsafe, "nt.system"},
	"GLOBAL torch": {"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n.", pickle.ErrUnsafe,
		"torch._utils._rebuild_tensor_v2"},
	"GLOBAL numpy scalar": {"\x80\x02cnumpy.core.multiarray\nscalar\n.", pickle.ErrUnsafe,
		"numpy.core.multiarray.scalar"},
	"STACK_GLOBAL": {"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.", pickle.ErrUnsafe,
		"posix.system"},
	"STACK_GLOBAL from memo":  {"\x80\x04\x8c\x02os\x94\x8c\x06system\x94h\x00h\x01\x93.", pickle.ErrUnsafe, "os.system"},
	"GLOBAL for a terminal":   {"\x80\x02c\x1b]0;evil\x07os\nsys\x0btem\n.", pickle.ErrUnsafe, "?]0;evil?os.sys?tem"},
	"INST":                    {"(S'true'\nios\nsystem\n.", pickle.ErrUnsafe, "os.system"},
	"OBJ":                     {"\x80\x02(]o.", pickle.ErrUnsafe, ""},
	"REDUCE":                  {"\x80\x02])R.", pickle.ErrUnsafe, ""},
	"BUILD":                   {"\x80\x02}}b.", pickle.ErrUnsafe, ""},
	"NEWOBJ":                  {"\x80\x02])\x81.", pickle.ErrUnsafe, ""},
	"NEWOBJ_EX":               {"\x80\x04])}\x92.", pickle.ErrUnsafe, ""},
	"EXT1":                    {"\x80\x02\x82\x01.", pickle.ErrUnsafe, ""},
	"EXT2":                    {"\x80\x02\x83\x01\x00.", pickle.ErrUnsafe, ""},
	"EXT4":                    {"\x80\x02\x84\x01\x00\x00\x00.", pickle.ErrUnsafe, ""},
	"PERSID":                  {"\x80\x02Pthing\n.", pickle.ErrUnsafe, ""},
	"BINPERSID":               {"\x80\x02NQ.", pickle.ErrUnsafe, ""},
	"NEXT_BUFFER":             {"\x80\x05\x97.", pickle.ErrUnsafe, ""},
	"READONLY_BUFFER":         {"\x80\x05N\x98.", pickle.ErrUnsafe, ""},
	"in the midst of a trace": {snapshotWith("cos\nsystem\n"), pickle.ErrUnsafe, "os.system"},
	"after a genuine snapshot": {strings.TrimSuffix(snapshotWith(""), ".") + "cos\nsystem\n.", pickle.ErrUnsafe,
		"os.system"},

	// bombs
	"nesting":           {"\x80\x04" + strings.Repeat("]", 1<<20), pickle.ErrLimit, "open"},
	"nesting closed":    {"\x80\x04" + strings.Repeat("]", 5000) + strings.Repeat("a", 4999) + ".", pickle.ErrLimit, ""},
	"tuples":            {"\x80\x04)" + strings.Repeat("\x85", 1<<20) + ".", nil, "not a segment"},
	"memo number":       {"\x80\x02]r\xff\xff\xff\x7f.", pickle.ErrLimit, ""},
	"doubling":          {"\x80\x04" + doubling(64) + ".", nil, ""},
	"length beyond":     {"\x80\x04X\xff\xff\x7f\x00abc", pickle.ErrTruncated, ""},
	"length of 2 GiB":   {"\x80\x04X\xff\xff\xff\x7f", pickle.ErrLimit, ""},
	"length of 2^64":    {"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff", pickle.ErrLimit, ""},
	"bytes of 2^63":     {"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f", pickle.ErrLimit, ""},
	"integer of 2 GiB":  {"\x80\x02\x8b\xff\xff\xff\x7f", pickle.ErrLimit, ""},
	"endless line":      {"\x80\x02I" + strings.Repeat("1", 1<<20), nil, ""},
	"many dictionaries": {"\x80\x02](" + strings.Repeat("}(K\x01K\x02u", 1<<20) + "e.", pickle.ErrLimit, "open"},
	"itself":            {"\x80\x04]\x94(h\x00e.", pickle.ErrMalformed, "itself"},

	// lies
	"size NaN":             {snapshotWith("}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00addrK\x01X\x04\x00\x00\x00sizeG\x7f\xf8\x00\x00\x00\x00\x00\x00u"), nil, "NaN"},
	"size negative":        {snapshotWith("}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00addrK\x01X\x04\x00\x00\x00sizeJ\xff\xff\xff\xffu"), nil, "-1 bytes"},
	"size of 2^62":         {snapshotWith("}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00addrK\x01X\x04\x00\x00\x00size\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40u"), nil, "bytes"},
	"size a text":          {snapshotWith("}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00addrK\x01X\x04\x00\x00\x00sizeX\x03\x00\x00\x00bigu"), nil, "no integer"},
	"an event twice":       {snapshotWith("}q\x10(X\x06\x00\x00\x00actionX\x05\x00\x00\x00alloc" + "uh\x10"), nil, ""},
	"a trace of numbers":   {snapshotWith("K\x01"), nil, "not an event"},
	"blocks overlap":       {`{"segments": [{"device": 0, "address": 4096, "total_size": 1024, "blocks": [{"address": 4096, "size": 600, "state": "inactive"}, {"address": 4600, "size": 512, "state": "inactive"}]}], "device_traces": []}`, nil, "overlaps"},
	"block beyond":         {`{"segments": [{"device": 0, "address": 4096, "total_size": 1024, "blocks": [{"address": 4096, "size": 1600, "state": "inactive"}]}], "device_traces": []}`, nil, "beyond its segment"},
	"segments overlap":     {`{"segments": [{"device": 0, "address": 4096, "total_size": 1024, "blocks": []}, {"device": 0, "address": 4097, "total_size": 1, "blocks": []}], "device_traces": []}`, nil, "overlaps"},
	"segment negative":     {`{"segments": [{"device": 0, "address": 4096, "total_size": -1024, "blocks": []}], "device_traces": []}`, nil, "-1024 bytes"},
	"NaN in JSON":          {`{"segments": [{"total_size": NaN}]}`, nil, "byte"},
	"JSON nesting":         {`{"segments": ` + strings.Repeat("[", 1<<20), nil, ""},
	"a trace of ones":      {`{"ph": 0, "traceEvents": [` + strings.Repeat("1,", 1<<21) + `1]}`, nil, "another form"},
	"JSON float size":      {`{"segments": [{"device": 0, "address": 1, "total_size": 10.5, "blocks": []}]}`, nil, "10.5"},
	"profile of a length":  {"\x0a\x04\x08\x01\x10\x02\x12\xff\xff\xff\xff\x0f", nil, ""},
	"smaps past the world": {"0-ffffffffffffffff r--p 0 0:0 0\nRss: 1 kB\n", nil, "line 1"},
	"smaps of an RSS":      {"1000-2000 r--p 0 0:0 0\nRss: 99999999999999999 kB\n", nil, "line 2"},
}

// snapshotWith is a pickle of protocol 2 with a trace of whatever events says.
func snapshotWith(events string) string {
	return "\x80\x02}(X\x08\x00\x00\x00segments]X\x0d\x00\x00\x00device_traces](](" + events + "eeu."
}

// doubling is a billion laughs: each list holds the one before twice.
func doubling(levels int) string {
	var b strings.Builder
	b.WriteString("]\x94")
	for i := range levels {
		b.WriteString("]\x94(h" + string(rune(i)) + "h" + string(rune(i)) + "e")
	}
	return b.String()
}

// TestHostile refuses each by its reason, in bounded time and memory.
func TestHostile(t *testing.T) {
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := processorTime(t)
			document, err := Decode(strings.NewReader(test.data), name)
			took := processorTime(t) - began
			runtime.ReadMemStats(&after)
			if err == nil || document != nil {
				t.Fatalf("accepted: %+v", document)
			}
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q would be acted on by a terminal", err)
			}
			if test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; want %v that says %q", err, test.want, test.says)
			}
			if !strings.ContainsAny(err.Error(), "0123456789") && !strings.Contains(err.Error(), "segment") {
				t.Errorf("no position in %q", err)
			}
			if took > 20*time.Second {
				t.Errorf("took %v of processor time", took)
			}
			if spent := after.TotalAlloc - before.TotalAlloc; spent > 192<<20+100*uint64(len(test.data)) {
				t.Errorf("allocated %d MiB for %d bytes", spent>>20, len(test.data))
			}
			checkPosition(t, err, len(test.data))
		})
	}
}

// processorTime is what this process has used so far: on a busy machine a clock on the wall says little.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func checkPosition(t *testing.T, err error, size int) {
	t.Helper()
	var where *pickle.Error
	if errors.As(err, &where) && (where.Offset < 0 || where.Offset > int64(size)) {
		t.Errorf("position %d in %d bytes", where.Offset, size)
	}
}

// flat are contents that repeat one thing without end: a few hundred KiB of gzip, millions of values.
var flat = map[string]string{
	"nothing":              "\x80\x02(" + strings.Repeat("N", 4<<20),
	"floats":               "\x80\x02](" + strings.Repeat("G\x01\x01\x01\x01\x01\x01\x01\x01", 4<<20),
	"floats thrown away":   "\x80\x02](" + strings.Repeat("G\x01\x01\x01\x01\x01\x01\x01\x010", 6<<20),
	"wide integers":        "\x80\x02](" + strings.Repeat("\x8a\x08\x01\x01\x01\x01\x01\x01\x01\x010", 6<<20),
	"lists":                "\x80\x02](" + strings.Repeat("]", 4<<20),
	"tuples":               "\x80\x02](" + strings.Repeat("N\x850", 4<<20),
	"memo":                 "\x80\x04](" + strings.Repeat("N\x940", 20<<20),
	"long strings":         "\x80\x04" + strings.Repeat("X\x00\x00\x7f\x00"+strings.Repeat("a", 0x7f0000), 4),
	"one string":           `{"segments": "` + strings.Repeat("a", 40<<20),
	"events without a use": "\x80\x02]((" + strings.Repeat("}(X\x06\x00\x00\x00actionX\x05\x00\x00\x00allocX\x04\x00\x00\x00addrK\x01X\x04\x00\x00\x00sizeK\x01u", 1<<20),
}

// TestBomb refuses gzip bombs of pickled nothing without holding what they become: all that is allocated on the way,
// collected or not, is less than 300 MB. What is held at a time is about half of that.
func TestBomb(t *testing.T) {
	for name, content := range flat {
		bomb := gzipped([]byte(content))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(bytes.NewReader(bomb), "bomb.gz")
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; err == nil || spent > 300e6 {
			t.Errorf("%s: %d KiB of gzip, %d MiB unpacked: allocated %d MB; %v", name, len(bomb)>>10, len(content)>>20,
				spent/1e6, err)
		}
	}
}

func seeds(f *testing.F) {
	f.Helper()
	for _, h := range hostile {
		if len(h.data) < 4096 {
			f.Add([]byte(h.data))
		}
	}
}

// FuzzIntake: a file of any kind gives a document with exactly one part, or an error.
func FuzzIntake(f *testing.F) {
	seeds(f)
	f.Add(real(f, "mosaic-synthetic.pickle")[:9000])
	f.Add([]byte("\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x05\x22\x04\x08\x01\x22\x00\x32\x00\x32\x05space\x32\x05bytes"))
	f.Add([]byte(`{"traceEvents":[{"ph":"i","name":"[memory]","ts":1.5,"tid":1,"args":{"Bytes":5,"Addr":3,"Device Type":1,"Device Id":0,"Total Allocated":5}}]}`))
	f.Add([]byte(`[{"cat":"Node","name":"a_kernel_time","ts":1,"dur":2,"args":{"op_name":"Add","output_size":"8","mem_bytes_in_use":"9","mem_in_use_peak":"9"}}]`))
	f.Add([]byte("1000-2000 r--p 00000000 00:00 0 [heap]\nRss: 4 kB\nVmFlags: rd\n"))
	f.Add([]byte(stacks.MemrayHeader + "\nMALLOC,1,2,3,t,f;a.py;1|g;b.py;2\n"))
	f.Add([]byte("CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 2.00 GiB total capacity; 1.00 GiB already " +
		"allocated)"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.HasPrefix(string(data), "\x1f\x8b") || strings.HasPrefix(string(data), "\x28\xb5\x2f\xfd") {
			t.Skip("compression is another's decoder; bombs have their own test")
		}
		var in io.Reader = bytes.NewReader(data)
		if len(data)%2 == 0 {
			in = struct{ io.Reader }{in} // of a size that nobody knows: then it is worked at on several cores
		}
		document, err := Decode(in, "fuzz")
		if (document == nil) == (err == nil) {
			t.Fatalf("%v, %v: want one of them", document, err)
		}
		if err != nil {
			checkPosition(t, err, len(data))
			return
		}
		parts := 0
		for _, set := range []bool{document.Snapshot != nil, document.Profile != nil, document.Mappings != nil,
			document.OOM != nil, document.Recording != nil, document.Nodes != nil} {
			if set {
				parts++
			}
		}
		if parts != 1 {
			t.Fatalf("%d parts", parts)
		}
		if s := document.Snapshot; s != nil {
			s.Totals(-1)
		}
	})
}
