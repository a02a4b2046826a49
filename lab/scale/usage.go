// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// usageSample is the controller's resource usage and progress.
type usageSample struct {
	at             time.Time
	cpu            time.Duration
	bytes, objects float64 // allocated
	resident       float64 // bytes
	// requests to the API server: all including watches, GETs, and 409s
	api, reads, conflicts float64
	// requests to Azure
	armReads, armWrites float64
	inSync, waiting     int // pools, operations
	metricsReads        int
	// CPU time of kubelab and the emulator
	cluster, azure time.Duration
}

func (l *lab) readMetrics(ctx context.Context) (usageSample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.metrics+"/metrics", nil)
	if err != nil {
		return usageSample{}, err
	}
	s := usageSample{at: time.Now()}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return usageSample{}, err
	}
	defer func() { _ = resp.Body.Close() }() // already read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return usageSample{}, fmt.Errorf("the controller's metrics: %w", err)
	}
	sum := func(name string, labels ...string) float64 { return sumMetrics(families[name], labels) }
	s.cpu = time.Duration(sum("process_cpu_seconds_total") * float64(time.Second))
	s.bytes, s.objects, s.resident = sum("go_memstats_alloc_bytes_total"), sum("go_memstats_mallocs_total"), sum("process_resident_memory_bytes")
	s.api, s.reads = sum("rest_client_requests_total"), sum("rest_client_requests_total", "method", "GET")
	s.conflicts = sum("rest_client_requests_total", "code", "409")
	s.armReads = sum("weir_arm_calls_total", "operation", "get") + sum("weir_arm_calls_total", "operation", "list")
	s.armWrites = sum("weir_arm_calls_total", "operation", "put")
	l.metricsReads++
	s.metricsReads = l.metricsReads
	s.cluster, s.azure = processCPU(l.kubelab.ProcessID()), processCPU(l.emulator.ProcessID())
	s.inSync, s.waiting = int(sum("weir_backendpools", "state", "InSync")), int(sum("weir_pool_operations_waiting"))
	return s, nil
}

// sumMetrics expects labels as alternating names and values.
func sumMetrics(family *dto.MetricFamily, labels []string) (sum float64) {
	for _, m := range family.GetMetric() {
		if hasLabels(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// cpuTick is Linux's unit of CPU time in /proc.
const cpuTick = 10 * time.Millisecond

// processCPU returns 0 if unavailable.
func processCPU(id int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name may contain spaces
	fields := strings.Fields(rest)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	var sum time.Duration
	for _, at := range []int{user, system} {
		ticks, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(ticks) * cpuTick
	}
	return sum
}

// peakMemory is in bytes since resetPeakMemory; 0 if unavailable.
func (l *lab) peakMemory() float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.controller.ProcessID()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 0
	}
	return kib * 1024
}

func (l *lab) resetPeakMemory() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", l.controller.ProcessID()), []byte("5"), 0o200) // otherwise it is the peak since the start
}
