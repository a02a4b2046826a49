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

// lasts is the length of the busy day; make busyday runs a whole day.
var lasts = flag.Duration("busy-day", time.Hour, "how long TestBusyDay lasts, in virtual time")

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

// neighbour adds or removes a foreign network interface alternately, which changes the load
// balancer's etag.
func (s *Stage) neighbour(t *testing.T, n int) {
	t.Helper()
	root, _, _ := strings.Cut(networkID, "/virtualNetworks/")
	pool := ""
	if n%2 == 0 {
		pool = `,"loadBalancerBackendAddressPools":[{"id":"` + s.balances[0].String() + `/backendAddressPools/others"}]`
	}
	body := `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":"` + networkID + `/subnets/nodes"}` + pool + `}}]}}`
	before := s.etag(t)
	if err := s.putByOthers(fmt.Sprintf("%s/networkInterfaces/other%d", root, n/2%20), []byte(body)); err != nil {
		t.Fatal(err)
	}
	if s.etag(t) == before {
		t.Fatal("the load balancer keeps its etag")
	}
}

// etag returns the load balancer's etag.
func (s *Stage) etag(t *testing.T) string {
	t.Helper()
	raw, _ := s.emu.Get(s.balances[0].String())
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

// day changes one Service a minute with recorded Azure latencies of load balancers with machines.
func day(t *testing.T, lasts time.Duration, neighbours bool) (f figures) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(15, 5))
		s := newStageOf(t, Options{Settle: synctest.Wait, MaxRetries: 3, Latency: armemu.Busy, Seed: 15})
		do(t, s, tenPools())
		if err := s.emu.Put(networkID+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/8"}}`)); err != nil {
			t.Fatal(err)
		}
		do(t, s, "clock 10m quiet", "expect level")
		s.counted()
		s.told()
		s.journal.lags = nil
		for n := 0; time.Duration(n)*10*time.Second < lasts; n++ {
			if n%6 == 0 {
				nodes := r.Perm(12)[:1+r.IntN(6)]
				names := make([]string, len(nodes))
				for i, at := range nodes {
					names[i] = fmt.Sprintf("n%d", at+1)
				}
				do(t, s, fmt.Sprintf("scale s%d nodes=(%s)", r.IntN(10), strings.Join(names, ", ")))
				f.changes++
			}
			at := time.Duration(r.IntN(10_000)) * time.Millisecond // also between a read and its write
			do(t, s, fmt.Sprintf("clock %s quiet", at))
			if neighbours {
				s.neighbour(t, n)
			}
			do(t, s, fmt.Sprintf("clock %s quiet", 10*time.Second-at))
			for _, word := range s.told() {
				f.retrying += strings.Count(word, ":Retrying")
				f.failed += strings.Count(word, ":Failed")
			}
		}
		do(t, s, "clock 20m quiet", "expect level")
		f.writes, f.lags = s.counted()["PUT"], s.journal.lags
		f.refused = s.emu.Stats().Conflicts
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
		f := day(t, *lasts, neighbours)
		t.Logf("%s, neighbours=%t: %s", *lasts, neighbours, f)
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
	resp, err := s.emu.Transport().Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("somebody else's PUT %s: %s", id, resp.Status)
	}
	return resp.Body.Close()
}
