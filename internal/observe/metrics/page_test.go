// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/observe/metrics"
)

// described collects names and labels of registered metrics.
type described map[string][]string

var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// Register implements prometheus.Registerer.
func (d described) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	go func() { c.Describe(ch); close(ch) }()
	for desc := range ch {
		m := description.FindStringSubmatch(desc.String())
		if m == nil {
			panic("what is " + desc.String())
		}
		labels := []string{}
		for label := range strings.SplitSeq(m[2]+","+m[3], ",") {
			if name, _, _ := strings.Cut(label, "="); name != "" {
				labels = append(labels, name)
			}
		}
		slices.Sort(labels)
		d[m[1]] = labels
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (d described) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		_ = d.Register(c)
	}
}

// Unregister implements prometheus.Registerer.
func (described) Unregister(prometheus.Collector) bool { return false }

// registered returns all metrics of Weir.
func registered() described {
	d := described{}
	metrics.NewARMRequests(d)
	metrics.NewPoolUpdates(d, pool.LoadBalancer)
	metrics.NewMachines(d)
	metrics.RegisterBuild(d, "v1")
	metrics.RegisterConflicts(d, nil)
	metrics.RegisterDraining(d, nil)
	metrics.RegisterRetainedMembers(d, nil)
	_ = metrics.NewReadinessGates(d, nil)
	metrics.RegisterWaitingGates(d, nil)
	metrics.RegisterWorkers(d, nil)
	metrics.RegisterLease(d, nil)
	metrics.RegisterLimits(d, nil)
	metrics.RegisterLeftovers(d, nil)
	metrics.RegisterMachines(d, nil)
	metrics.RegisterOutOfSync(d, nil)
	metrics.RegisterPrivateLinks(d, nil)
	metrics.RegisterProvisionerBuild(d, "v1")
	metrics.RegisterProvisions(d, nil)
	metrics.RegisterServices(d, nil)
	metrics.RegisterStates(d, nil)
	metrics.RegisterSerialUpdates(d, nil)
	_ = metrics.CountDeferrals(d)
	metrics.RegisterWrites(d, pool.LoadBalancer, nil)
	return d
}

// The page lists exactly the registered metrics with their labels; alert rules and the dashboard are compared
// with the page.
func TestThePageListsTheSeries(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	page := described{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)(?:\\{([a-z_,]+)\\})?` \\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
		if strings.HasPrefix(m[1], "cloudprovider_azure_") { // listed together on the page
			labels = []string{"request", "resource_group", "source", "subscription_id"}
		}
		slices.Sort(labels)
		page[m[1]] = labels
	}
	got := registered()
	for name, labels := range got {
		if on, listed := page[name]; !listed || !slices.Equal(on, labels) {
			t.Errorf("%s%v is %v on the page, listed: %v", name, labels, on, listed)
		}
	}
	for name := range page {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is on the page, and not registered", name)
		}
	}
}
