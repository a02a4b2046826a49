// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/zones"
)

// A read of the zones that hangs delays new private frontends, and no pool of their load balancer: it is not locked
// during the read. The frontend gets the zones once they are read, in one write.
func TestZonesAreReadWhileTheLoadBalancerIsNotLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer func() { s.close() }()
		reads := 0
		s.zones = zones.NewRegions(func(ctx context.Context) (map[string][]string, error) {
			if reads++; reads > 1 {
				return map[string][]string{"eastus": {"1", "2", "3"}}, nil
			}
			<-ctx.Done()
			return nil, errors.New("no answer")
		}, quiet)
		s.stop()
		s.launch()
		locks := func() time.Duration {
			start := time.Now()
			unlock, err := s.process.lanes.Lock(s.process.ctx, s.process.balancers.ID("kubernetes-internal"))
			if err != nil {
				t.Fatal(err)
			}
			unlock()
			return time.Since(start)
		}
		s.applyAll(`shop/a: {ports: 80, azure-load-balancer-internal: "true"}`)
		s.settle(10 * time.Second)
		if reads != 1 {
			t.Fatalf("%d reads of the zones", reads)
		}
		if elapsed := locks(); elapsed > 0 {
			t.Errorf("the load balancer is locked for %s while the zones are read", elapsed)
		}
		s.settle(5 * time.Minute)
		if output := s.harvest(false); strings.Count(output, "PUT loadBalancers/kubernetes-internal") != 1 || reads != 2 {
			t.Errorf("%d reads of the zones\n%s", reads, output)
		}
		raw, _ := s.emu.Get(network + "/loadBalancers/kubernetes-internal")
		if !strings.Contains(strings.ReplaceAll(string(raw), " ", ""), `"zones":["1","2","3"]`) {
			t.Errorf("the frontend has no zones: %s", raw)
		}
		s.applyAll(`shop/b: {ports: 81, azure-load-balancer-internal: "true"}`)
		s.settle(5 * time.Minute)
		if reads != 2 {
			t.Errorf("known zones are read again")
		}
	})
}
