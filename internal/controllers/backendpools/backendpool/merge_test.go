// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// versioned is an API server for one status written by two processes. It rejects a write with another
// version.
type versioned struct{ stored *v1alpha1.BackendPool }

func (v *versioned) Load(context.Context, schedule.Ref) (*v1alpha1.BackendPool, error) {
	return v.stored.DeepCopy(), nil
}

func (v *versioned) Apply(_ context.Context, _ schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	if version != v.stored.ResourceVersion {
		return "", metadata.ErrConflict
	}
	text, err := json.Marshal(status)
	if err != nil {
		return "", err
	}
	v.stored.Status = v1alpha1.BackendPoolStatus{}
	if err := json.Unmarshal(text, &v.stored.Status); err != nil {
		return "", err
	}
	v.changeObject()
	return v.stored.ResourceVersion, nil
}

func (v *versioned) All(context.Context) ([]*v1alpha1.BackendPool, error) {
	return []*v1alpha1.BackendPool{v.stored.DeepCopy()}, nil
}

func (v *versioned) SetFinalizer(_ context.Context, p *v1alpha1.BackendPool, want bool) (*v1alpha1.BackendPool, error) {
	if hasFinalizer(v.stored) != want {
		v.stored.Finalizers = nil
		if want {
			v.stored.Finalizers = []string{v1alpha1.Finalizer}
		}
		v.changeObject()
	}
	return v.stored.DeepCopy(), nil
}

func (v *versioned) changeObject() {
	n, _ := strconv.Atoi(v.stored.ResourceVersion)
	v.stored.ResourceVersion = strconv.Itoa(n + 1)
}

func (v *versioned) writtenAddresses() []string { return v.stored.Status.WrittenAddresses }

func newReplica(t *testing.T, api *versioned) *cluster {
	t.Helper()
	c := newCluster(t, api.stored.DeepCopy(), serviceOfType(corev1.ServiceTypeLoadBalancer))
	c.restartProcess(api)
	if _, err := c.statuses.LoadEntry(t.Context(), api.stored, time.Now()); err != nil {
		t.Fatal(err)
	}
	return c
}

func parseIPs(ips ...string) []netip.Addr { return ParseAddresses(ips) }

func (c *cluster) recordMembers(t *testing.T, ref schedule.Ref, members ...string) error {
	t.Helper()
	c.desiredOf(t, ref)
	return c.Record(t.Context(), ref, diff.Intent{Written: parseIPs(members...)})
}

func (c *cluster) recordedMembers(t *testing.T, ref schedule.Ref) []string {
	t.Helper()
	return FormatAddresses(c.desiredOf(t, ref).Record.Written)
}

func inSyncReport(ref schedule.Ref, names ...string) updater.Report {
	return updater.Report{Ref: ref, Outcome: diff.Written, InSync: true, Written: parseIPs(names...), At: time.Unix(0, 0)}
}

// Two processes that both claim leadership record addresses in turn. Neither loses the other's record, and
// the one that finds a conflict reads it before it writes the pool.
func TestTheLateRecordOfAnotherLeaderErasesNothing(t *testing.T) {
	api := &versioned{stored: bp("a", 0)}
	api.stored.ResourceVersion = "1"
	ref := RefOf(api.stored)
	older, newer := newReplica(t, api), newReplica(t, api)
	if err := newer.recordMembers(t, ref, "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if err := older.recordMembers(t, ref, "10.0.0.2"); !errors.Is(err, errRecordConflict) {
		t.Fatalf("the older one goes on: %v", err)
	}
	if got := api.writtenAddresses(); !slices.Equal(got, []string{"10.0.0.1", "10.0.0.2"}) {
		t.Fatalf("the record holds %v", got)
	}
	newer.Report(t.Context(), inSyncReport(ref, "10.0.0.1")) // its attempt has not seen the other record
	if got := api.writtenAddresses(); !slices.Equal(got, []string{"10.0.0.1", "10.0.0.2"}) {
		t.Errorf("after the report the record holds %v", got)
	}
	if e := newer.statuses.GetEntry(ref); e.nextCheckAt.IsZero() || e.status.PoolID == "" {
		t.Errorf("nobody looks at the pool again: %v, %q", e.nextCheckAt, e.status.PoolID)
	}
	if got := newer.recordedMembers(t, ref); !slices.Equal(got, []string{"10.0.0.1", "10.0.0.2"}) {
		t.Errorf("its next attempt works with %v", got)
	}
	newer.Report(t.Context(), inSyncReport(ref, "10.0.0.1")) // removed by that attempt
	if got := api.writtenAddresses(); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("at the end the record holds %v", got)
	}
	if got := older.recordedMembers(t, ref); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("the older one works with %v", got)
	}
}

// An unrelated change of the object, such as a finalizer, restores no address.
func TestAnObjectThatMovesOnKeepsItsRecord(t *testing.T) {
	api := &versioned{stored: bp("a", 0)}
	api.stored.ResourceVersion = "1"
	ref := RefOf(api.stored)
	c := newReplica(t, api)
	if err := c.recordMembers(t, ref, "10.0.0.1", "10.0.0.2"); err != nil {
		t.Fatal(err)
	}
	api.changeObject()
	c.Report(t.Context(), inSyncReport(ref, "10.0.0.1"))
	if got := api.writtenAddresses(); !slices.Equal(got, []string{"10.0.0.1"}) || !c.statuses.GetEntry(ref).nextCheckAt.IsZero() {
		t.Errorf("the record holds %v", got)
	}
}

// lostAnswer applies the next write and returns an error.
type lostAnswer struct {
	*versioned
	lose bool
}

func (a *lostAnswer) Apply(ctx context.Context, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	version, err := a.versioned.Apply(ctx, ref, version, status)
	if a.lose {
		a.lose = false
		return "", errAPI
	}
	return version, err
}

// A lost response does not count as a write of another process.
func TestLostResponseIsNoConflict(t *testing.T) {
	api := &lostAnswer{versioned: &versioned{stored: bp("a", 0)}}
	api.stored.ResourceVersion = "1"
	ref := RefOf(api.stored)
	c := newReplica(t, api.versioned)
	c.statuses.api = api
	api.lose = true
	if err := c.recordMembers(t, ref, "10.0.0.1", "10.0.0.2"); !errors.Is(err, errAPI) {
		t.Fatal(err)
	}
	if err := c.recordMembers(t, ref, "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if got := api.writtenAddresses(); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("the record holds %v", got)
	}
}

// The union contains exactly the addresses of both records.
func TestTheUnionOfTwoRecords(t *testing.T) {
	address := rapid.Custom(func(t *rapid.T) string {
		return netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 9).Draw(t, "ip"))}).String()
	})
	record := rapid.Custom(func(t *rapid.T) *v1alpha1.BackendPoolStatus {
		s := &v1alpha1.BackendPoolStatus{WrittenAddresses: rapid.SliceOfDistinct(address, rapid.ID[string]).Draw(t, "written")}
		slices.Sort(s.WrittenAddresses)
		for _, a := range rapid.SliceOfDistinct(address, rapid.ID[string]).Draw(t, "down") {
			s.Down = append(s.Down, v1alpha1.DownAddress{Address: a, Since: metav1.Now()})
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := record.Draw(t, "a"), record.Draw(t, "b")
		status := a.DeepCopy()
		MergeRecord(status, b)
		has := func(s *v1alpha1.BackendPoolStatus, ip string) (written, down bool) {
			return slices.Contains(s.WrittenAddresses, ip), slices.Contains(ParseDown(s.Down), netip.MustParseAddr(ip))
		}
		for n := range 10 {
			ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}).String()
			wa, da := has(a, ip)
			wb, db := has(b, ip)
			if w, d := has(status, ip); w != (wa || wb) || d != (da || db) {
				t.Fatalf("%s: written %t, down %t", ip, w, d)
			}
		}
		second := status.DeepCopy()
		MergeRecord(second, b)
		if statusHash(second) != statusHash(status) {
			t.Fatal("united again, it is another")
		}
	})
}
