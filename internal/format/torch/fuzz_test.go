package torch

import (
	"bytes"
	"strconv"
	"testing"
)

// FuzzProfilerTrace: a value or an error, never both.
func FuzzProfilerTrace(f *testing.F) {
	f.Add([]byte(`{"baseTimeNanoseconds":7,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":9,"tid":1},{"ph":"i","name":"[memory]","ts":2,"tid":1,"args":{"Bytes":5,"Addr":3,"Total Allocated":5}},{"ph":"i","name":"[memory]","ts":` + strconv.Itoa(3) + `,"tid":1,"args":{"Bytes":-5,"Addr":3,"Total Allocated":0}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadTrace(bytes.NewReader(data))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
	})
}
