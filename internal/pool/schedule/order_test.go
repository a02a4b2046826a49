// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// The pool with the highest loss ranks first, before changes and overdue claims; a flapping or
// failed one does not.
func TestOrderOfAdminStates(t *testing.T) {
	at := seconds(1000)
	admin := func(leaves, tries int) *Operation {
		return &Operation{Admin: true, Impact: Impact{Serving: 1, Stopping: leaves}, FailedAttempts: tries, QueuedAt: at}
	}
	groups := map[string]Group{
		"most":     {Admin: admin(3, 0)},
		"one":      {Admin: admin(1, 0)},
		"overdue":  {hasNewChange: true, FirstQueued: at.Add(-time.Hour)},
		"failed":   {Admin: admin(9, 1)},
		"flapping": {Admin: admin(9, 0), history: History{LastAdmin: at.Add(-interval / 2)}},
		"fresh":    {hasNewChange: true, FirstQueued: at.Add(-time.Second)},
		"retry":    {Retry: true, history: History{LastAttempt: at.Add(-interval)}},
	}
	var order []string
	for len(groups) > 0 {
		var items []Group
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(groups))) { // so that the last name comes first
			g := groups[name]
			g.Pool = lb.PoolKey(name)
			items = append(items, g)
		}
		pick, ok, _ := SelectPool(items, at, interval)
		if !ok {
			t.Fatalf("nothing is ready of %v", groups)
		}
		order = append(order, string(pick))
		delete(groups, string(pick))
	}
	if got := strings.Join(order, " "); got != "most one overdue fresh failed flapping retry" {
		t.Errorf("got %s", got)
	}
}

// A check ranks last, uses no turn, and is not a waiting operation.
func TestALookStandsBackBehindChanges(t *testing.T) {
	fresh := Group{Pool: "fresh", hasNewChange: true, FirstQueued: seconds(30)}
	retry := Group{Pool: "retry", Retry: true, history: History{LastAttempt: seconds(0)}}
	look := Group{Pool: "a look", FirstQueued: seconds(25)}
	if pick, _, _ := SelectPool([]Group{look, retry, fresh}, seconds(50), interval); pick != "fresh" {
		t.Errorf("%s goes first", pick)
	}
	if pick, _, _ := SelectPool([]Group{look, retry}, seconds(50), interval); pick != "retry" {
		t.Errorf("%s goes before a retry", pick)
	}
	if pick, _, _ := SelectPool([]Group{look, fresh}, seconds(500), interval); pick != "fresh" {
		t.Errorf("%s goes first, though nobody waits for the look", pick)
	}
	if pick, _, _ := SelectPool([]Group{look, fresh}, seconds(25+maxCheckWait*30), interval); pick != "a look" {
		t.Errorf("%s goes first, though the look has waited for ten minutes", pick)
	}
}
