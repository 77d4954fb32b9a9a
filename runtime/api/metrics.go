package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"slipway/runtime/engine"
)

// metrics serves GET /metrics in Prometheus' text format, version 0.0.4.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) *Error {
	var text strings.Builder
	ready := 0
	if model := s.model.Load(); model != nil {
		ready = 1
		writeMetrics(&text, model.Engine.Metrics())
	}
	writeMetric(&text, "slipway_ready", "gauge", "1 once the model serves.", ready)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write([]byte(text.String()))
	return nil
}

func writeMetrics(text *strings.Builder, m engine.Metrics) {
	writeHead(text, "slipway_requests_total", "counter", "Requests by how they ended.")
	for _, end := range slices.Sorted(maps.Keys(m.Finished)) {
		fmt.Fprintf(text, "slipway_requests_total{end=%q} %d\n", end, m.Finished[end])
	}
	writeMetric(text, "slipway_prompt_tokens_total", "counter", "Prompt tokens read for ended requests.", m.PromptTokens)
	writeMetric(text, "slipway_generated_tokens_total", "counter", "Tokens generated for ended requests.", m.GeneratedTokens)
	writeMetric(text, "slipway_requests_waiting", "gauge", "Requests without a slot.", m.Waiting)
	writeMetric(text, "slipway_requests_running", "gauge", "Slots in use.", m.Running)
	writeMetric(text, "slipway_slots", "gauge", "Slots.", m.Slots)
	writeMetric(text, "slipway_steps_failed_total", "counter", "Steps that failed.", m.FailedSteps)
	writeHead(text, "slipway_step_seconds", "histogram", "Duration of the model's steps.")
	for i, bound := range engine.StepBounds {
		fmt.Fprintf(text, "slipway_step_seconds_bucket{le=\"%g\"} %d\n", bound, m.StepBuckets[i])
	}
	fmt.Fprintf(text, "slipway_step_seconds_bucket{le=\"+Inf\"} %d\n", m.Steps)
	fmt.Fprintf(text, "slipway_step_seconds_sum %g\nslipway_step_seconds_count %d\n", m.StepSeconds, m.Steps)
}

func writeHead(text *strings.Builder, name, kind, help string) {
	fmt.Fprintf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func writeMetric[N int | int64](text *strings.Builder, name, kind, help string, value N) {
	writeHead(text, name, kind, help)
	fmt.Fprintf(text, "%s %d\n", name, value)
}
