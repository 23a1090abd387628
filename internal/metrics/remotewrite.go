package metrics

import (
	"cmp"
	"math"
	"net/http"
	"slices"

	"github.com/klauspost/compress/snappy"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// Remote write 1.0, which every receiver of Prometheus metrics takes: a WriteRequest of protocol buffers, in a block
// of Snappy.
var remoteWrite = protocol{
	name: "remote_write",
	headers: map[string]string{
		"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0",
	},
	encode: func(families []*dto.MetricFamily, at int64, of origin) ([]byte, error) {
		return snappy.Encode(nil, writeRequest(families, at, of)), nil
	},
	rejected: func(*http.Response) uint64 { return 0 },
}

// Fields of WriteRequest, TimeSeries, Label, Sample and MetricMetadata in the protocol's definition.
const (
	requestSeries, requestMetadata         = 1, 3
	seriesLabel, seriesSample              = 1, 2
	labelName, labelValue                  = 1, 2
	sampleValue, sampleTime                = 1, 2
	metadataType, metadataName, metadataIs = 1, 2, 4
)

// writeRequest is the families as of a moment, in ns since 1970.
func writeRequest(families []*dto.MetricFamily, at int64, of origin) (request []byte) {
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if value, ok := number(m); ok {
				request = message(request, requestSeries, timeSeries(family.GetName(), m, value, at, of))
			}
		}
		request = message(request, requestMetadata, metadata(family))
	}
	return request
}

func timeSeries(name string, m *dto.Metric, value float64, at int64, of origin) (series []byte) {
	all := []*dto.LabelPair{pair("__name__", name), pair("job", "hightide"), pair("instance", of.host)}
	for _, l := range m.GetLabel() {
		if l.GetValue() != "" { // as Prometheus takes one without a value: it is not there
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	for _, l := range all {
		series = message(series, seriesLabel, text(text(nil, labelName, l.GetName()), labelValue, l.GetValue()))
	}
	sample := double(nil, sampleValue, value)
	sample = protowire.AppendTag(sample, sampleTime, protowire.VarintType)
	sample = protowire.AppendVarint(sample, uint64(at/1e6))
	return message(series, seriesSample, sample)
}

// metadata says what a family is: 1 is a counter, 2 a gauge.
func metadata(family *dto.MetricFamily) []byte {
	kind := uint64(2)
	if family.GetType() == dto.MetricType_COUNTER {
		kind = 1
	}
	m := protowire.AppendTag(nil, metadataType, protowire.VarintType)
	m = protowire.AppendVarint(m, kind)
	return text(text(m, metadataName, family.GetName()), metadataIs, family.GetHelp())
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// number is the value of a counter or gauge. Summaries and histograms, of which Go's runtime has one, are not pushed.
func number(m *dto.Metric) (value float64, ok bool) {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue(), true
	case m.Gauge != nil:
		return m.Gauge.GetValue(), true
	}
	return 0, false
}

// message, text, double append a field to a message.
func message(to []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), content)
}

func text(to []byte, field protowire.Number, content string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), content)
}

func double(to []byte, field protowire.Number, value float64) []byte {
	return fixed(to, field, math.Float64bits(value))
}

func fixed(to []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(to, field, protowire.Fixed64Type), value)
}
