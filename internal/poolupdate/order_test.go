// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// The pool that loses most goes first, ahead of changes and of what has waited for long; one that flaps, or has failed, stands in line.
func TestWhichAdminStatesGoFirst(t *testing.T) {
	at := seconds(1000)
	admin := func(leaves, tries int) *Operation {
		return &Operation{Admin: true, Stake: Stake{Stays: 1, Leaves: leaves}, tries: tries, queuedAt: at}
	}
	groups := map[string]group{
		"most":     {admin: admin(3, 0)},
		"one":      {admin: admin(1, 0)},
		"overdue":  {fresh: true, firstQueued: at.Add(-time.Hour)},
		"failed":   {admin: admin(9, 1)},
		"flapping": {admin: admin(9, 0), history: history{lastAdmin: at.Add(-interval / 2)}},
		"fresh":    {fresh: true, firstQueued: at.Add(-time.Second)},
		"retry":    {retry: true, history: history{lastAttempt: at.Add(-interval)}},
	}
	var order []string
	for len(groups) > 0 {
		var all []group
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(groups))) { // so that the last name comes first
			g := groups[name]
			g.pool = lb.PoolKey(name)
			all = append(all, g)
		}
		pick, ok, _ := admit(all, at, interval)
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

// A look goes last, takes nobody's pass, and is no operation that waits.
func TestALookStandsBackBehindChanges(t *testing.T) {
	fresh := group{pool: "fresh", fresh: true, firstQueued: seconds(30)}
	retry := group{pool: "retry", retry: true, history: history{lastAttempt: seconds(0)}}
	look := group{pool: "a look", firstQueued: seconds(25)}
	if pick, _, _ := admit([]group{look, retry, fresh}, seconds(50), interval); pick != "fresh" {
		t.Errorf("%s goes first", pick)
	}
	if pick, _, _ := admit([]group{look, retry}, seconds(50), interval); pick != "retry" {
		t.Errorf("%s goes before a retry", pick)
	}
	if pick, _, _ := admit([]group{look, fresh}, seconds(500), interval); pick != "fresh" {
		t.Errorf("%s goes first, though nobody waits for the look", pick)
	}
	if pick, _, _ := admit([]group{look, fresh}, seconds(25+looksWait*30), interval); pick != "a look" {
		t.Errorf("%s goes first, though the look has waited for ten minutes", pick)
	}
}
