package torch

import (
	"os"
	"testing"
)

// BenchmarkTorch reads the snapshot that HIGHTIDE_SNAPSHOT names.
func BenchmarkTorch(b *testing.B) {
	path := os.Getenv("HIGHTIDE_SNAPSHOT")
	if path == "" {
		path = "../../../testdata/real/h100-lm-ctx128-train-step.pickle"
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		file, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		snapshot, err := Read(file)
		file.Close()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(snapshot.Traces[0].Len()), "events")
	}
}
