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

// sample is the controller's resource usage since its start, and its progress.
type sample struct {
	at             time.Time
	cpu            time.Duration
	bytes, objects float64 // allocated
	resident       float64 // bytes
	// api counts requests to the API server, reads the GETs, and conflicts the 409s. The few
	// watches are included.
	api, reads, conflicts float64
	// armReads and armWrites count requests to Azure.
	armReads, armWrites float64
	level, waiting      int // pools, operations
	looks               int // number of metrics reads
	// cluster and azure are the CPU time of kubelab and the emulator, on the same machine.
	cluster, azure time.Duration
}

// measure reads the controller's metrics.
func (l *lab) measure(ctx context.Context) (sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.metrics+"/metrics", nil)
	if err != nil {
		return sample{}, err
	}
	s := sample{at: time.Now()}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = resp.Body.Close() }() // already read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return sample{}, fmt.Errorf("the controller's metrics: %w", err)
	}
	sum := func(name string, labels ...string) float64 { return sumOf(families[name], labels) }
	s.cpu = time.Duration(sum("process_cpu_seconds_total") * float64(time.Second))
	s.bytes, s.objects, s.resident = sum("go_memstats_alloc_bytes_total"), sum("go_memstats_mallocs_total"), sum("process_resident_memory_bytes")
	s.api, s.reads = sum("rest_client_requests_total"), sum("rest_client_requests_total", "method", "GET")
	s.conflicts = sum("rest_client_requests_total", "code", "409")
	s.armReads = sum("weir_arm_calls_total", "operation", "get") + sum("weir_arm_calls_total", "operation", "list")
	s.armWrites = sum("weir_arm_calls_total", "operation", "put")
	l.looks++
	s.looks = l.looks
	s.cluster, s.azure = cpuOf(l.kubelab.ID()), cpuOf(l.emulator.ID())
	s.level, s.waiting = int(sum("weir_backendpools", "state", "Level")), int(sum("weir_pool_operations_waiting"))
	return s, nil
}

// sumOf sums the series with these labels, given as alternating names and values.
func sumOf(family *dto.MetricFamily, labels []string) (sum float64) {
	for _, m := range family.GetMetric() {
		if has(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

func has(m *dto.Metric, labels []string) bool {
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

// tick is Linux's unit of CPU time in /proc.
const tick = 10 * time.Millisecond

// cpuOf returns the CPU time of a process; 0 if unavailable.
func cpuOf(id int) time.Duration {
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
		sum += time.Duration(ticks) * tick
	}
	return sum
}

// highest returns the controller's peak resident memory since forgetHighest, in bytes; 0 if
// unavailable.
func (l *lab) highest() float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.weir.ID()))
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

// forgetHighest resets the peak.
func (l *lab) forgetHighest() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", l.weir.ID()), []byte("5"), 0o200) // otherwise it is the peak since the start
}
