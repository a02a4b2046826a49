// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// needingOwner is an owner that needs every deleted BackendPool.
type needingOwner struct{ *world }

func (needingOwner) IsInUse(*v1alpha1.BackendPool) bool { return true }

// managedNames lists the addresses that the next attempt considers Weir's.
func (c *cluster) managedNames(t *testing.T, p *v1alpha1.BackendPool, names ...string) string {
	t.Helper()
	if _, err := c.statuses.LoadEntry(t.Context(), p, time.Now()); err != nil {
		t.Fatal(err)
	}
	want := c.desiredOf(t, RefOf(p))
	var own []string
	for _, name := range names {
		if want.IsOwnAddress(nodeIP(name)) {
			own = append(own, name)
		}
	}
	return fmt.Sprintf("%v, taken %t", own, want.Record.Adopted)
}

// A user deletes the BackendPool of a live Service. The pool contains n1, n2, which is removed from the
// cluster, and the foreign n7. After Weir recreates the BackendPool, n1 and n2 are Weir's and n7 remains. A
// new process considers all of them Weir's, as after a takeover.
func TestNextBackendPoolKeepsForeignMembers(t *testing.T) {
	for _, about := range []struct {
		process string
		dies    bool
		own     string
	}{
		{"the same", false, "[n1 n2], taken false"},
		{"another", true, "[n1 n2 n7], taken false"},
	} {
		made := func(p *v1alpha1.BackendPool) { p.Status.MadeFor = "svc" }
		old := bp("a", 0, took, made, deleting, func(p *v1alpha1.BackendPool) { p.Status.WrittenAddresses = []string{"10.0.0.1", "10.0.0.2"} })
		c, _ := newLoadedPool(t, old, serviceOfType(corev1.ServiceTypeLoadBalancer), "n1")
		c.Owner = needingOwner{c.world}
		c.restartProcess(&statusAPI{stored: old})
		if _, err := c.reconcilePool(t, old); err != nil {
			t.Fatal(err)
		}
		next := bp("a", 1, made)
		next.UID = "next"
		c.world.addObjects(next)
		if about.dies {
			c.Controller = New(c.Config, nil)
		}
		c.restartProcess(&statusAPI{stored: next})
		if got := c.managedNames(t, next, "n1", "n2", "n7"); got != about.own {
			t.Errorf("%s process takes %s, want %s", about.process, got, about.own)
		}
		// The record replaces the memory.
		binding := c.ResolveBinding(next, time.Now())
		c.Report(t.Context(), updater.Report{Ref: RefOf(next), Pool: binding.Pool, Outcome: diff.Written, InSync: true})
		if _, known := c.retained.getRecord(binding.Pool.Key()); known {
			t.Error("what is on record is still remembered")
		}
	}
}
