package server

import "hightide/internal/metrics"

// Metrics is what GET /metrics has. It can be pushed as well.
func (s *Server) Metrics() *metrics.Exporter { return s.metrics }
