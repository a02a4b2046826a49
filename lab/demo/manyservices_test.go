// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
)

// bulkStage is a stage with all Services of act two in sync, on one node.
type bulkStage struct {
	*stage
	emu      *armemu.Emulator
	services []*corev1.Service
	all      []serviceFixture
	watched  cache.Indexer
	lines    *bytes.Buffer
}

func newIndexer(t *testing.T, objects ...any) cache.Indexer {
	t.Helper()
	i := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, o := range objects {
		if err := i.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func bulkOn(t *testing.T) *bulkStage {
	t.Helper()
	emu, o := emptyAzure(t)
	c := &bulkStage{emu: emu, lines: &bytes.Buffer{}}
	var services, published []any
	for i := range bulkSize {
		s := statusOf(bulkServiceName(i+1), addressAt(i).String())
		c.services, services = append(c.services, s), append(services, s)
		c.all = append(c.all, serviceFixture{name: s.Name, members: addressSet(1)})
		published = append(published, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: s.Name, Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{onNode("node-1", yes, yes, no)},
		})
	}
	c.watched = newIndexer(t, services...)
	c.stage = &stage{
		observer: o, print: newPrinter(c.lines), deadline: 10 * time.Second, bulkServices: &BulkSummary{},
		desired: &desiredState{
			services: corelisters.NewServiceLister(c.watched),
			slices:   discoverylisters.NewEndpointSliceLister(newIndexer(t, published...)),
			nodes:    corelisters.NewNodeLister(newIndexer(t, node("node-1", nil, "10.0.0.1"))),
		},
	}
	c.buildAzure(t)
	return c
}

func (b *bulkStage) buildAzure(t *testing.T) {
	t.Helper()
	buildAzure(t, b.emu, b.all...)
	b.observer.mustLook(t)
}

func lag50(t *testing.T, behind []string, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(behind) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(behind), behind[0])
}

func TestUnservedServicesOfManyAreListed(t *testing.T) {
	c := bulkOn(t)
	ask := func() string {
		behind, err := c.pendingServices(c.dataPathReason)
		return lag50(t, behind, err)
	}
	if got := ask(); got != "0" {
		t.Error(got)
	}
	if reason, err := c.dataPathMismatch(); reason != "" || err != nil {
		t.Error(reason, err)
	}
	if err := c.emu.Put(provider+"publicIPAddresses/left", []byte(`{"location":"eastus"}`)); err != nil {
		t.Fatal(err)
	}
	c.observer.mustLook(t)
	if reason, err := c.dataPathMismatch(); reason != "Azure has 51 public IPs for 50 Services" || err != nil {
		t.Error(reason, err)
	}
	c.services[3].Status.LoadBalancer.Ingress = nil
	c.all[7].members = nil
	c.buildAzure(t)
	if got := ask(); got != "2: Service stall-04 has no address" {
		t.Error(got)
	}
	if reason, err := c.dataPathMismatch(); reason != "Service stall-04 has no address" || err != nil {
		t.Error(reason, err)
	}
	c.services[0].DeletionTimestamp = new(metav1.Now())
	if reason, _ := c.dataPathMismatch(); reason != "Service stall-01 is still going" {
		t.Error(reason)
	}
	if err := c.watched.Delete(c.services[0]); err != nil {
		t.Fatal(err)
	}
	if got := ask(); !strings.HasPrefix(got, "3: ") {
		t.Error("one that the watch does not show is not behind: ", got)
	}
}

func TestServicesOfManyWithOldTimeoutAreListed(t *testing.T) {
	c := bulkOn(t)
	ask := func() string {
		behind, err := c.pendingServices(unchangedReason)
		return lag50(t, behind, err)
	}
	if got := ask(); got != "50: Service stall-01 has an idle timeout of 4 minutes" {
		t.Error(got)
	}
	for i := range c.all {
		c.all[i].idle = idleMinutes
	}
	c.all[49].idle = 4
	c.buildAzure(t)
	if got := ask(); got != "1: Service stall-50 has an idle timeout of 4 minutes" {
		t.Error(got)
	}
	c.all[49].idle = idleMinutes
	c.buildAzure(t)
	if got := ask(); got != "0" {
		t.Error(got)
	}
	c.services[5].Status.LoadBalancer.Ingress = nil
	if got := ask(); got != "1: Service stall-06 has no rule" {
		t.Error(got)
	}
}

func TestLeftoversOfManyServices(t *testing.T) {
	c := bulkOn(t)
	ask := func() string {
		remaining, err := c.leftoverResources()
		return lag50(t, remaining, err)
	}
	if got := ask(); got != "0" {
		t.Error(got)
	}
	c.services[1].DeletionTimestamp = new(metav1.Now())
	if got := ask(); got != "1: Service stall-02 is still going" {
		t.Error(got)
	}
	if err := c.watched.Delete(c.services[1]); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != "1: Azure has 50 frontends, 50 rules, 50 pools, 50 probes, 50 public IPs for 49 Services" {
		t.Error(got)
	}
}

// writeCalls writes something in Azure as a client.
func (b *bulkStage) writeCalls(t *testing.T, times int) {
	t.Helper()
	for range times {
		for _, path := range []string{"loadBalancers/none", "publicIPAddresses/none"} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, provider+path+"?api-version=2025-05-01", nil)
			req.Header.Set("Authorization", "Bearer any")
			b.emu.ServeHTTP(httptest.NewRecorder(), req)
		}
	}
	b.observer.mustLook(t)
}

func TestTogether(t *testing.T) {
	c := bulkOn(t)
	remaining := []string{"a", "b"}
	f, err := c.applyToServices(t.Context(), 3, "served", func() error { c.writeCalls(t, 2); return nil }, func() ([]string, error) {
		defer func() { remaining = nil }()
		return remaining, nil
	})
	if err != nil || f.Services != 3 || f.Balancers != 2 || f.PublicIPs != 2 || f.Seconds <= 0 {
		t.Errorf("%+v %v", f, err)
	}
	if got := c.lines.String(); !strings.Contains(got, "3/3 served, 0.") || !strings.HasSuffix(got, "s; writes: 2 load balancer, 2 public IPs\n") {
		t.Error(got)
	}
	if of := c.observer.currentTraffic().pools; len(of) > 0 {
		t.Errorf("no pool was written, and these are counted: %v", of)
	}
	// More writes than usual add a note.
	none := func() ([]string, error) { return nil, nil }
	_, err = c.applyToServices(t.Context(), 50, "served", func() error { c.writeCalls(t, expectedWrites+1); return nil }, none)
	if err != nil || fmt.Sprint(c.notes) != "[6 writes of the load balancer; up to 5 are usual]" {
		t.Errorf("%v %q", err, c.notes)
	}
	broken := errors.New("broken")
	if _, err = c.applyToServices(t.Context(), 50, "served", func() error { return broken }, none); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err = c.applyToServices(t.Context(), 50, "", func() error { return nil }, func() ([]string, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestTogetherEndsWhenItTakesTooLong(t *testing.T) {
	c := bulkOn(t)
	log := filepath.Join(t.TempDir(), "weir.log")
	if err := os.WriteFile(log, []byte("last words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.lab, c.deadline = &lab{controller: controllerRuns{current: &process.Process{Log: log}}}, 3*pollInterval
	nothing := func() error { return nil }
	never := func() ([]string, error) { return []string{"Service stall-01 waits", "Service stall-02 waits"}, nil }
	_, err := c.applyToServices(t.Context(), 50, "served", nothing, never)
	if late, ok := errors.AsType[*syncTimeoutError](err); !ok || fmt.Sprint(late.details) != "[Service stall-01 waits the controller's last lines: last words]" {
		t.Errorf("%v %+v", err, late)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	if _, err := c.applyToServices(ctx, 50, "served", nothing, never); !errors.Is(err, stopped) {
		t.Error(err)
	}
}

func TestTheSecondActInTheSummary(t *testing.T) {
	feat := func(n int, seconds float64, balancers, ips int) SyncCost {
		return SyncCost{Services: n, Seconds: seconds, traffic: traffic{Balancers: balancers, PublicIPs: ips}}
	}
	c := &BulkSummary{
		Appeared: feat(50, 11.75, 2, 50), Changed: feat(50, 1.6, 1, 0), Refused: feat(1, 0.04, 0, 0), Deleted: feat(47, 107.7, 2, 47),
		Events: 1, Services: 5, Frontends: 5, PublicIPs: 5,
	}
	want := `50 Services appear together     11.8 s  writes: 2 load balancer, 50 public IPs
an annotation changes on 50      1.6 s  writes: 1 load balancer
an annotation is wrong           0.0 s  writes: 0; 1 event
47 Services are deleted        107.7 s  writes: 2 load balancer, 47 public IPs
Left in Azure: 5 frontends and 5 public IPs for 5 Services.`
	lines := Summary{Bulk: c}.formatTable()
	if got := strings.Join(lines[len(lines)-5:], "\n"); got != want {
		t.Errorf("\n%s", got)
	}
	for _, l := range lines {
		if len(l) > width {
			t.Errorf("%q", l)
		}
	}
	if wrong := (Summary{Bulk: c, SyncFailed: 1}).failureText(); wrong != "" {
		t.Error(wrong)
	}
	if wrong := (Summary{Bulk: c, SyncFailed: 3}).failureText(); wrong != "2 events that a load balancer cannot be had" {
		t.Error(wrong)
	}
	if wrong := (Summary{SyncFailed: 1}).failureText(); wrong != "1 event that a load balancer cannot be had" {
		t.Error(wrong)
	}
}
