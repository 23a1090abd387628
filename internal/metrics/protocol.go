package metrics

import (
	"net/http"

	dto "github.com/prometheus/client_model/go"
)

// protocol is how metrics are sent.
type protocol struct {
	name     string
	headers  map[string]string
	encode   func(families []*dto.MetricFamily, at int64, of origin) ([]byte, error)
	rejected func(*http.Response) uint64 // of the samples in a request that was taken
}

// origin is who tells.
type origin struct {
	host  string
	began int64 // when counters began to be told, ns since 1970
}
