// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

type countingAPI struct {
	stored     map[string]*v1alpha1.BackendPool
	lists      int
	reads      int
	finalizers int
	writes     int
}

func (a *countingAPI) All(context.Context) (pools []*v1alpha1.BackendPool, err error) {
	a.lists++
	for _, p := range a.stored {
		pools = append(pools, p.DeepCopy())
	}
	return pools, nil
}

func (a *countingAPI) Load(_ context.Context, ref schedule.Ref) (*v1alpha1.BackendPool, error) {
	a.reads++
	if p := a.stored[ref.Name]; p != nil {
		return p.DeepCopy(), nil
	}
	return nil, metadata.ErrDeleted
}

func (a *countingAPI) Apply(_ context.Context, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	a.writes++
	p := a.stored[ref.Name]
	if p.ResourceVersion != version {
		return "", metadata.ErrConflict
	}
	p.Status, p.ResourceVersion = *status.DeepCopy(), version+"+"
	return p.ResourceVersion, nil
}

func (a *countingAPI) SetFinalizer(_ context.Context, p *v1alpha1.BackendPool, _ bool) (*v1alpha1.BackendPool, error) {
	a.finalizers++
	pool := a.stored[p.Name]
	if pool.ResourceVersion == p.ResourceVersion { // otherwise it is read again and has one
		pool.Finalizers, pool.ResourceVersion = []string{v1alpha1.Finalizer}, pool.ResourceVersion+"f"
	}
	return pool.DeepCopy(), nil
}

// newClusterWith returns a Controller with a cache equal to the API server's content.
func newClusterWith(t *testing.T, api *countingAPI) *cluster {
	t.Helper()
	c := newCluster(t, serviceOfType(corev1.ServiceTypeLoadBalancer))
	for _, p := range api.stored {
		c.world.addObjects(p.DeepCopy())
	}
	c.restartProcess(api)
	return c
}

func newCountingAPI(n int, edit ...func(*v1alpha1.BackendPool)) *countingAPI {
	api := &countingAPI{stored: map[string]*v1alpha1.BackendPool{}}
	for i := range n {
		p := bp(fmt.Sprint("p", i), 0, edit...)
		p.ResourceVersion = "1"
		api.stored[p.Name] = p
	}
	return api
}

// One list reads a thousand BackendPools of an earlier process; a later one is read individually.
func TestOneListReadsEarlierRecords(t *testing.T) {
	api := newCountingAPI(1000, func(p *v1alpha1.BackendPool) { p.Status.WrittenAddresses = []string{"10.0.0.1"} })
	c := newClusterWith(t, api)
	api.stored["p7"].Status.WrittenAddresses = []string{"10.0.0.1", "10.0.0.2"} // not yet in the cache
	for _, p := range api.stored {
		e, err := c.statuses.LoadEntry(t.Context(), p, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := e.MemberRecord().Written; p.Name == "p7" && len(got) != 2 {
			t.Errorf("p7 has %v on record", got)
		}
	}
	late := bp("late", 0)
	api.stored["late"] = late
	if _, err := c.statuses.LoadEntry(t.Context(), late, time.Now()); err != nil || api.lists != 1 || api.reads != 1 {
		t.Errorf("%v: read in %d lists and %d single reads", err, api.lists, api.reads)
	}
}

// The list expires after a minute.
func TestAnOldReadOfAllStandsInForNothing(t *testing.T) {
	api := newCountingAPI(2)
	c := newClusterWith(t, api)
	now := time.Now()
	for i, at := range []time.Time{now, now.Add(firstReadTTL + time.Second)} {
		if _, err := c.statuses.LoadEntry(t.Context(), api.stored[fmt.Sprint("p", i)], at); err != nil {
			t.Fatal(err)
		}
	}
	if api.lists != 1 || api.reads != 1 {
		t.Errorf("%d lists, %d reads", api.lists, api.reads)
	}
}

// A new BackendPool takes three writes to get in sync (finalizer, record, outcome), no read and no conflict.
func TestANewBackendPoolCostsThreeWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCountingAPI(1, func(p *v1alpha1.BackendPool) { p.Finalizers = nil })
		c := newClusterWith(t, api)
		reconciles := func() {
			t.Helper()
			if _, err := c.Reconcile(t.Context(), "shop", "p0", time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		reconciles()
		c.world.addObjects(api.stored["p0"].DeepCopy())
		reconciles()
		reconciles() // for the queued request
		ref, single := RefOf(api.stored["p0"]), []netip.Addr{nodeIP("n1")}
		if _, err := c.DesiredPool(ref); err != nil {
			t.Fatal(err)
		}
		if err := c.Record(t.Context(), ref, diff.Intent{Written: single, Add: 1, Desired: 1}); err != nil {
			t.Fatal(err)
		}
		c.Report(t.Context(), updater.Report{Ref: ref, Pool: c.ResolveBinding(api.stored["p0"], time.Now()).Pool, Outcome: diff.Written, InSync: true, Written: single, Desired: 1, Observed: 1, At: time.Now()})
		time.Sleep(2 * maxStatusDelay)
		reconciles()
		if api.reads != 0 || api.lists != 0 || api.finalizers != 1 || api.writes != 2 {
			t.Errorf("%d reads, %d lists, %d finalizers, %d statuses; want 0, 0, 1 and 2", api.reads, api.lists, api.finalizers, api.writes)
		}
		if status := api.stored["p0"].Status; syncedReason(status.Conditions) != v1alpha1.ReasonInSync || len(status.WrittenAddresses) != 1 {
			t.Errorf("%+v", status)
		}
	})
}

// A BackendPool created by Weir has the finalizer from the start, and a reconciliation waits for the create
// response instead of reading.
func TestABackendPoolThatWeirMakesCostsNoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCountingAPI(1, func(p *v1alpha1.BackendPool) { p.Finalizers = nil })
		c := newClusterWith(t, api)
		err := c.statuses.CreatePool(api.stored["p0"], func() error {
			c.world.addObjects(api.stored["p0"].DeepCopy())
			go func() { _, _ = c.Reconcile(t.Context(), "shop", "p0", time.Now()) }()
			time.Sleep(time.Second) // the watch event arrives much earlier
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		single := []netip.Addr{nodeIP("n1")}
		if err := c.Record(t.Context(), RefOf(api.stored["p0"]), diff.Intent{Written: single, Add: 1, Desired: 1}); err != nil {
			t.Fatal(err)
		}
		if api.reads != 0 || api.lists != 0 || api.finalizers != 0 || api.writes != 1 {
			t.Errorf("%d reads, %d lists, %d finalizers, %d statuses; want 0, 0, 0 and 1", api.reads, api.lists, api.finalizers, api.writes)
		}
	})
}

// A failed creation ends the wait.
func TestFailedCreationEndsTheWait(t *testing.T) {
	api := newCountingAPI(1)
	c := newClusterWith(t, api)
	refused := errors.New("there is one")
	if err := c.statuses.CreatePool(api.stored["p0"].DeepCopy(), func() error { return refused }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(t.Context(), "shop", "p0", time.Now()); err != nil || api.lists != 1 {
		t.Errorf("%v, after %d lists", err, api.lists)
	}
}

// Another process took the pool and the cache is stale.
func TestStaleBackendPoolIsReadAgain(t *testing.T) {
	api := newCountingAPI(1, func(p *v1alpha1.BackendPool) { p.Finalizers = nil })
	c := newClusterWith(t, api)
	pool := api.stored["p0"]
	pool.Finalizers, pool.ResourceVersion = []string{v1alpha1.Finalizer}, "2"
	pool.Status.PoolID, pool.Status.WrittenAddresses = "taken", []string{"10.0.0.9"}
	for range 2 { // the finalizer exists first, then the cache has it
		if _, err := c.Reconcile(t.Context(), "shop", "p0", time.Now()); err != nil && !errors.Is(err, metadata.ErrDeleted) {
			t.Fatal(err)
		}
		c.world.addObjects(pool.DeepCopy())
	}
	if got := fmt.Sprint(c.statuses.GetEntry(RefOf(pool)).MemberRecord().Written); got != "[10.0.0.9]" || api.lists != 1 {
		t.Errorf("on record are %s, after %d lists", got, api.lists)
	}
}

// A pending status is written only if no attempt follows.
func TestAStatusThatWaitsIsWrittenInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCountingAPI(1)
		c := newClusterWith(t, api)
		for turn, want := range []int{0, 0, 1, 1} {
			result, err := c.Reconcile(t.Context(), "shop", "p0", time.Now())
			if err != nil || api.writes != want {
				t.Fatalf("turn %d: %v, %d statuses written, want %d", turn, err, api.writes, want)
			}
			if want == 0 && (result.After <= 0 || result.After > maxStatusDelay) {
				t.Fatalf("turn %d: again after %s", turn, result.After)
			}
			time.Sleep(maxStatusDelay * 2 / 3)
		}
		if reason := fmt.Sprint(api.stored["p0"].Status.Conditions); !strings.Contains(reason, v1alpha1.ReasonPending) {
			t.Error(reason)
		}
	})
}

// A check that finds the pool as written writes no status.
func TestALookThatFindsNothingWritesNothing(t *testing.T) {
	api := newCountingAPI(1)
	c := newClusterWith(t, api)
	if _, err := c.Reconcile(t.Context(), "shop", "p0", time.Now()); err != nil {
		t.Fatal(err)
	}
	ref := RefOf(api.stored["p0"])
	c.statuses.GetEntry(ref).recordInput(membership.Set{}, operationInput{})
	for _, outcome := range []diff.Outcome{diff.Written, diff.Unchanged, diff.Unchanged} {
		c.Report(t.Context(), updater.Report{Ref: ref, Pool: c.ResolveBinding(api.stored["p0"], time.Now()).Pool, Outcome: outcome, InSync: true, At: time.Now()})
	}
	if api.writes != 1 {
		t.Errorf("%d statuses written, want one", api.writes)
	}
}

// An endpoint change found at a start is not delayed like a check; a pool that matches its record is.
func TestMissedChangeIsNotBatched(t *testing.T) {
	for name, differs := range map[string]bool{"n1": false, "n2": true} {
		api := newCountingAPI(1, func(p *v1alpha1.BackendPool) {
			p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
			p.Status.PoolID, p.Status.WrittenAddresses = "taken", []string{nodeIP("n1").String()}
		})
		c := newClusterWith(t, api)
		c.world.nodes[name] = nodeIP(name)
		lanes := &queued{}
		c.Workers = lanes
		if _, err := c.Reconcile(t.Context(), "shop", "p0", time.Now()); err != nil {
			t.Fatal(err)
		}
		if len(lanes.ops) != 1 || lanes.ops[0].OutOfSync != differs || !lanes.ops[0].ChangedAt.IsZero() {
			t.Errorf("%s: %+v", name, lanes.ops)
		}
	}
}
