// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
)

// A Service of another namespace is in the next batch, however many Services of one namespace came before.
func TestACrowdHoldsANeighbourUpByOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer s.close()
		var names []string
		for i := range 280 { // shared: the limit is half of 600 frontends
			names = append(names, fmt.Sprintf("crowd/s%04d", i))
		}
		names = append(names, "shop/web")
		s.act("created", names, func(name string) { s.apply(name, simple(), nil) })
		s.mu.Lock()
		defer s.mu.Unlock()
		before := 0
		for _, elapsed := range s.took {
			if elapsed < s.took["shop/web"] {
				before++
			}
		}
		if before >= 100 || len(s.took) != len(names) {
			t.Errorf("%d of %d were served before the neighbour", before, len(s.took))
		}
	})
}

// Any number of edits during a round costs as much as two.
func TestManyEditsCostFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer s.close()
		edit := func(i int) {
			spec := simple()
			annotate(&spec, service.IdleTimeout, fmt.Sprint(4+i%90))
			s.apply("shop/web", spec, nil)
		}
		edit(0)
		s.settle(time.Hour)
		s.emu.ClearCalls()
		for i := range 200 {
			edit(i + 1)
		}
		s.settle(time.Hour)
		writes, all := len(s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))), len(s.emu.Calls())
		if writes > 2 || all > 30 {
			t.Errorf("200 edits cost %d writes, and %d calls in all", writes, all)
		}
	})
}

// Concurrent dry runs share their reads of Azure; a namespace whose dry runs read different things is limited
// by its read budget, which refills.
func TestRehearsalsShareTheirReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer s.close()
		s.apply("shop/web", simple(), nil)
		s.settle(time.Hour)
		s.emu.ClearCalls()
		rehearsals := dryrun.NewSimulatorFactory(loadbalancer.Config{Settings: s.settings, Azure: s.process.client, Cluster: s.process})
		once := func(i int, group string) error {
			spec := simple()
			annotate(&spec, service.IdleTimeout, fmt.Sprint(4+i%90))
			annotate(&spec, service.PIPResourceGroup, group)
			spec.Namespace, spec.Name, spec.UID = "shop", fmt.Sprint("s", i), fmt.Sprintf("%032d", i)
			desired, problems := service.BuildSpec(spec, s.settings.Settings)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			r := rehearsals.NewSimulator()
			on, _, err := r.FindPlacement(s.process.ctx, loadbalancer.PlacementRequest{Service: spec.Key(), Owner: spec.OwnerName(), Desired: &desired})
			if err != nil {
				return err
			}
			results, err := r.RunRequests(s.process.ctx, []loadbalancer.Request{{Service: spec.Key(), Owner: spec.OwnerName(), Desired: &desired, On: r.ID(on)}})
			if err != nil {
				return err
			}
			return results[0].Err
		}
		for i := range 15 { // four per second
			if err := once(i, resources); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.emu.Calls()); n > 4 {
			t.Errorf("15 rehearsals within four seconds made %d calls", n)
		}
		s.emu.ClearCalls()
		start, stopped := time.Now(), 0
		for i := range 200 {
			err := once(i, fmt.Sprint("rg-", i))
			if f, ok := errors.AsType[*armerror.Fault](err); ok && f.Code == dryrun.CodeReadLimit {
				stopped++
				if until := time.Until(f.RetryAt); until <= 0 || until > time.Second {
					t.Fatalf("told to come again in %s", until)
				}
			}
		}
		if limit := 26 + int(time.Since(start).Seconds()*2.5); len(s.emu.Calls()) > limit || stopped == 0 {
			t.Errorf("200 rehearsals in %s made %d calls, %d were stopped", time.Since(start), len(s.emu.Calls()), stopped)
		}
		time.Sleep(10 * time.Second)
		if err := once(7, resources); err != nil {
			t.Errorf("the share has not come back: %v", err)
		}
	})
}
