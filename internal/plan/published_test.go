package plan

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"hightide/internal/mem"
	"hightide/internal/modelfile"
)

// TestPublishedCaches: the tokens that a published cache holds follow from its bytes and the model's shape, whatever the
// engine left for the cache. Of several GPUs the fewest tokens are published, and the bytes of one: that may be another.
func TestPublishedCaches(t *testing.T) {
	configs := map[string]string{
		"llama-3.1-8b": llama31, "qwen3-235b-a22b": qwen3moe,
		// 32 layers of attention to the text and 8 to the picture, all with a cache of the same size.
		"llama-3.2-11b-vision": strings.Replace(llama31, `"num_hidden_layers":32`, `"num_hidden_layers":40`, 1),
	}
	file, err := os.Open("testdata/serving.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		source, engine, config := row[0], row[1], configs[row[2]]
		gpus, err := strconv.Atoi(row[3])
		gib, err2 := strconv.ParseFloat(row[4], 64)
		tokens, err3 := strconv.ParseFloat(row[5], 64)
		if config == "" || err != nil || err2 != nil || err3 != nil {
			t.Fatalf("%q: %v %v %v", row, err, err2, err3)
		}
		model, err := modelfile.Read(fstest.MapFS{"config.json": {Data: []byte(config)}}, "")
		if err != nil {
			t.Fatal(err)
		}
		f := newFacts(model, Use{For: Serve, Seq: 1000, GPUs: gpus})
		each := f.sequence(1)
		if each.Low != each.High {
			t.Fatalf("%s: a token takes %+v", source, each)
		}
		limit := 0.002 // two digits behind the point
		if gpus > 1 {
			limit = 0.02
		}
		ours := gib * float64(mem.GiB) / float64(each.Bytes)
		if off := ours/tokens - 1; off < -limit || off > limit {
			t.Errorf("%s, %s: %.2f GiB hold %.0f tokens, published %.0f: %+.2f %%", source, engine, gib, ours, tokens, 100*off)
		}
	}
}
