// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// The published progress, each state once.
func TestPublishedProgress(t *testing.T) {
	asks := func(w *world) { w.manual, w.asked.Run = true, &phase.UserRequest{} }
	for _, tt := range []struct {
		about  string
		expect func(*world)
		want   string
	}{
		{"it begins by itself", func(*world) {}, "UnderWay Static 0/6 , UnderWay Detach 1/6 , UnderWay Delete 2/6 , UnderWay Upgrade 3/6 , UnderWay Make 4/6 , Ended  0/0 "},
		{"nobody has asked", func(w *world) { w.manual = true }, "Listens  0/0 "},
		{"nobody is heard", func(w *world) { w.manual, w.hears = true, false }, "NoSKU  0/0 "},
		{"it has ended before", func(w *world) { w.manual = true; w.kept = w.stock(); w.kept.Done = true }, "Ended  0/0 "},
		{"nothing is Basic", func(w *world) { asks(w); w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard }, "NotNeeded  0/0 "},
		{"something keeps it from starting", func(w *world) { asks(w); w.lacks = []string{"Microsoft.Network/loadBalancers/delete"} }, "Refused  0/0 RightMissing: "},
		{"Azure refuses", func(w *world) { asks(w); w.fails = func(string) error { return refusal("AuthorizationFailed") } }, "GivenUp  0/0 load balancers of resource group rg: AuthorizationFailed"},
		{"Azure fails three times", func(w *world) {
			n := 0
			w.fails = func(string) error {
				if n++; n > 3 {
					return nil
				}
				return &armerror.Fault{Class: armerror.Retriable, Code: "X", Err: errors.New("X")}
			}
		}, "UnderWay  0/6 , UnderWay Static"},
		{"nobody knows the load balancers of the journal", func(w *world) { w.kept = w.stock(); w.kept.LoadBalancers[0].ID.Name = "other" }, "GivenUp  0/0 the journal of the migration has load balancer other"},
	} {
		w := newWorld()
		tt.expect(w)
		w.run(t)
		if got := strings.Join(w.kepts, ", "); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}
