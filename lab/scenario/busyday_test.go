// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

// busyDayLength is the length of the busy day; make busyday runs a whole day.
var busyDayLength = flag.Duration("busy-day", time.Hour, "how long TestBusyDay lasts, in virtual time")

// tenPools is a load balancer with ten pools, one per Service, and a foreign pool of network
// interfaces.
func tenPools() string {
	world, services := "cluster drift=10m\nnodes 12\nlb kubernetes\npool kubernetes/others", ""
	for i := range 10 {
		world += fmt.Sprintf("\npool kubernetes/p%d foreign=(10.9.0.%d)", i, i+1)
		services += fmt.Sprintf("\nservice s%d pools=(p%d) nodes=(n1, n2)", i, i)
	}
	return world + services
}

// toggleForeignInterface adds or removes a foreign network interface alternately, which changes the load
// balancer's etag.
func (s *Stage) toggleForeignInterface(t *testing.T, n int) {
	t.Helper()
	root, _, _ := strings.Cut(networkID, "/virtualNetworks/")
	pool := ""
	if n%2 == 0 {
		pool = `,"loadBalancerBackendAddressPools":[{"id":"` + s.loadBalancers[0].String() + `/backendAddressPools/others"}]`
	}
	body := `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":"` + networkID + `/subnets/nodes"}` + pool + `}}]}}`
	before := s.loadBalancerETag(t)
	if err := s.putByOthers(fmt.Sprintf("%s/networkInterfaces/other%d", root, n/2%20), []byte(body)); err != nil {
		t.Fatal(err)
	}
	if s.loadBalancerETag(t) == before {
		t.Fatal("the load balancer keeps its etag")
	}
}

func (s *Stage) loadBalancerETag(t *testing.T) string {
	t.Helper()
	raw, _ := s.emulator.Get(s.loadBalancers[0].String())
	var body struct {
		Etag string `json:"etag"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	return body.Etag
}

// figures are the results of a day.
type figures struct {
	changes, writes, refused, retrying, failed int
	lags                                       []time.Duration
}

func (f figures) String() string {
	slices.Sort(f.lags)
	at := func(share float64) time.Duration {
		return f.lags[int(share*float64(len(f.lags)-1))].Round(100 * time.Millisecond)
	}
	return fmt.Sprintf("%d changes, %d writes (%d met 412), Retrying %d, Failed %d, lag p50 %s p95 %s longest %s",
		f.changes, f.writes, f.refused, f.retrying, f.failed, at(.5), at(.95), at(1))
}

// runDay changes one Service a minute with recorded Azure latencies of load balancers with machines.
func runDay(t *testing.T, duration time.Duration, neighbours bool) (f figures) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(15, 5))
		s := newStageOf(t, Options{Settle: synctest.Wait, MaxRetries: 3, Latency: armemu.Busy, Seed: 15})
		runStep(t, s, tenPools())
		if err := s.emulator.Put(networkID+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/8"}}`)); err != nil {
			t.Fatal(err)
		}
		runStep(t, s, "clock 10m quiet", "expect in-sync")
		s.takeCounts()
		s.takeEvents()
		s.history.delays = nil
		for n := 0; time.Duration(n)*10*time.Second < duration; n++ {
			if n%6 == 0 {
				nodes := r.Perm(12)[:1+r.IntN(6)]
				names := make([]string, len(nodes))
				for i, at := range nodes {
					names[i] = fmt.Sprintf("n%d", at+1)
				}
				runStep(t, s, fmt.Sprintf("scale s%d nodes=(%s)", r.IntN(10), strings.Join(names, ", ")))
				f.changes++
			}
			at := time.Duration(r.IntN(10_000)) * time.Millisecond // also between a read and its write
			runStep(t, s, fmt.Sprintf("clock %s quiet", at))
			if neighbours {
				s.toggleForeignInterface(t, n)
			}
			runStep(t, s, fmt.Sprintf("clock %s quiet", 10*time.Second-at))
			for _, word := range s.takeEvents() {
				f.retrying += strings.Count(word, ":Retrying")
				f.failed += strings.Count(word, ":Failed")
			}
		}
		runStep(t, s, "clock 20m quiet", "expect in-sync")
		f.writes, f.lags = s.takeCounts()["PUT"], s.history.delays
		f.refused = s.emulator.Stats().Conflicts
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestBusyDay changes the load balancer's etag every ten seconds while each write takes 30 s or
// more: no Failed event is emitted. It compares lag and writes with an undisturbed day.
func TestBusyDay(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, neighbours := range []bool{false, true} {
		f := runDay(t, *busyDayLength, neighbours)
		t.Logf("%s, neighbours=%t: %s", *busyDayLength, neighbours, f)
		if f.failed > 0 {
			t.Errorf("neighbours=%t: Failed was told %d times, and nothing did fail", neighbours, f.failed)
		}
	}
}

// putByOthers writes a resource as another client.
func (s *Stage) putByOthers(id string, body []byte) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, "http://azure"+id+"?api-version=2025-05-01", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer somebody-else")
	resp, err := s.emulator.Transport().Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("another owner's PUT %s: %s", id, resp.Status)
	}
	return resp.Body.Close()
}
