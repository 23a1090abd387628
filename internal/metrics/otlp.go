package metrics

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/format/protobuf"

	"github.com/klauspost/compress/gzip"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// OTLP over HTTP, as collectors of OpenTelemetry take it: an ExportMetricsServiceRequest of protocol buffers, in gzip.
var otlp = protocol{
	name:    "otlp",
	headers: map[string]string{"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"},
	encode: func(f []*dto.MetricFamily, at int64, of origin) ([]byte, error) {
		return zipped(exportRequest(f, at, of))
	},
	rejected: rejectedPoints,
}

// Fields of the messages in OpenTelemetry's definition.
const (
	requestResource                       = 1
	resourceItself, resourceScopes        = 1, 2
	resourceAttribute                     = 1
	scopeItself, scopeMetrics             = 1, 2
	scopeName, scopeVersion               = 1, 2
	metricName, metricAbout, metricUnit   = 1, 2, 3
	metricGauge, metricSum                = 5, 7
	dataPoints, sumTemporality, sumGrows  = 1, 2, 3
	pointStart, pointTime, pointDouble    = 2, 3, 4
	pointAttribute, pointFlags            = 7, 8
	attributeKey, attributeValue, anyText = 1, 2, 1
	cumulative, noRecordedValue           = 2, 1
)

// exportRequest is the families as of a moment, in ns since 1970.
func exportRequest(families []*dto.MetricFamily, at int64, of origin) []byte {
	resource := message(nil, resourceAttribute, attribute("service.name", "hightide"))
	resource = message(resource, resourceAttribute, attribute("service.version", engine.Version))
	resource = message(resource, resourceAttribute, attribute("host.name", of.host))
	scope := text(text(nil, scopeName, "hightide"), scopeVersion, engine.Version)
	scoped := message(nil, scopeItself, scope)
	for _, family := range families {
		if m := otlpMetric(family, at, of); m != nil {
			scoped = message(scoped, scopeMetrics, m)
		}
	}
	return message(nil, requestResource, message(message(nil, resourceItself, resource), resourceScopes, scoped))
}

// otlpMetric is nil for a family without numbers.
func otlpMetric(family *dto.MetricFamily, at int64, of origin) []byte {
	var points []byte
	counts := family.GetType() == dto.MetricType_COUNTER
	for _, m := range family.GetMetric() {
		value, ok := number(m)
		if !ok {
			continue
		}
		var point []byte
		if counts {
			point = fixed(point, pointStart, uint64(of.began))
		}
		point = fixed(point, pointTime, uint64(at))
		if hasEnded(value) {
			point = protowire.AppendVarint(protowire.AppendTag(point, pointFlags, protowire.VarintType), noRecordedValue)
		} else {
			point = double(point, pointDouble, value)
		}
		for _, l := range m.GetLabel() {
			if l.GetValue() != "" {
				point = message(point, pointAttribute, attribute(l.GetName(), l.GetValue()))
			}
		}
		points = message(points, dataPoints, point)
	}
	if points == nil {
		return nil
	}
	metric := text(text(text(nil, metricName, family.GetName()), metricAbout, family.GetHelp()), metricUnit,
		unit(family.GetName()))
	if !counts {
		return message(metric, metricGauge, points)
	}
	points = protowire.AppendVarint(protowire.AppendTag(points, sumTemporality, protowire.VarintType), cumulative)
	points = protowire.AppendVarint(protowire.AppendTag(points, sumGrows, protowire.VarintType), 1)
	return message(metric, metricSum, points)
}

func attribute(key, value string) []byte {
	return message(text(nil, attributeKey, key), attributeValue, text(nil, anyText, value))
}

// unit is that of a metric as UCUM writes it, told by its name; "" where it counts.
func unit(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for suffix, unit := range map[string]string{"_bytes": "By", "_seconds": "s", "_celsius": "Cel", "_watts": "W",
		"_ratio": "1"} {
		if strings.HasSuffix(name, suffix) {
			return unit
		}
	}
	return ""
}

func zipped(request []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(request); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// rejectedPoints reads from an answer how many points the receiver would not have, though it took the request.
func rejectedPoints(answer *http.Response) (rejected uint64) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return 0
	}
	_ = protobuf.Fields(body, func(field int, _ uint64, partial []byte) error {
		if field != 1 {
			return nil
		}
		return protobuf.Fields(partial, func(field int, value uint64, _ []byte) error {
			if field == 1 {
				rejected = value
			}
			return nil
		})
	})
	return rejected
}
