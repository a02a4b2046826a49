// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

const vnetID = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v"

var kubernetes = lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes"}

// newEmulator returns a client of an emulator with one load balancer and an empty pool.
func newEmulator(t *testing.T, opts armemu.Options) (*armemu.Emulator, *azure.Client, lb.PoolID) {
	t.Helper()
	emu := patient.Watch(t, armemu.New(opts))
	id := lb.PoolID{LoadBalancer: kubernetes, Name: "web"}
	for resource, body := range map[string]string{
		vnetID:              `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`,
		kubernetes.String(): `{"location":"eastus","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"web"}]}}`,
	} {
		if err := emu.Put(resource, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	endpoint, credential, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{
		Endpoint: endpoint, Credential: credential, Transport: emu.Transport(), VirtualNetworkID: vnetID,
		Retry: azure.Retry{Delay: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return emu, client, id
}

func ips(pool lb.Pool) string {
	var list []string
	for _, a := range pool.Addresses {
		list = append(list, a.IP.String())
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestAPoolFillsAndEmpties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, id := newEmulator(t, armemu.Options{Seed: 1, LatencyScale: 1})
		for _, want := range []string{"10.0.0.1", "10.0.0.1 10.0.0.2", "10.0.0.2", ""} {
			pool, err := client.GetPool(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			pool.Addresses = nil
			for i, ip := range strings.Fields(want) {
				pool.Addresses = append(pool.Addresses, lb.Address{Name: fmt.Sprintf("n%d-%s", i, ip[len(ip)-1:]), IP: netip.MustParseAddr(ip)})
			}
			shown, err := client.PutPool(t.Context(), pool)
			if err != nil {
				t.Fatal(err)
			}
			if ips(shown) != want || shown.Etag == pool.Etag {
				t.Errorf("shows %q with etag %s, want %q", ips(shown), shown.Etag, want)
			}
		}
	})
}

// Concurrent writers lose no update, however Azure treats overlapping writes.
func TestConcurrentWritersLoseNothing(t *testing.T) {
	for _, overlap := range armemu.OverlapAnswers() {
		t.Run(string(overlap), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client, id := newEmulator(t, armemu.Options{Seed: 3, LatencyScale: 1, Behavior: behavior.Behavior{Overlap: overlap}})
				const writers = 6
				var wg sync.WaitGroup
				for i := range writers {
					wg.Go(func() { addAddress(t, client, id, i) })
				}
				wg.Wait()
				pool, err := client.GetPool(t.Context(), id)
				if err != nil || len(pool.Addresses) != writers {
					t.Errorf("%d writers left %q, %v", writers, ips(pool), err)
				}
			})
		})
	}
}

// addAddress reads and writes until Azure shows the address.
func addAddress(t *testing.T, client *azure.Client, id lb.PoolID, i int) {
	own := lb.Address{Name: fmt.Sprintf("n%d", i), IP: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})}
	for range 200 {
		if at, _ := client.Enter(id.LoadBalancer); !at.IsZero() {
			time.Sleep(time.Until(at) + time.Duration(i)*time.Second)
		}
		pool, err := client.GetPool(t.Context(), id)
		if err == nil {
			if slices.ContainsFunc(pool.Addresses, func(a lb.Address) bool { return a.IP == own.IP }) {
				return
			}
			pool.Addresses = append(slices.Clone(pool.Addresses), own)
			_, err = client.PutPool(t.Context(), pool)
		}
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Retriable {
			t.Errorf("writer %d: %s: %v", i, f.Class, err)
			return
		}
		time.Sleep(time.Duration(3+i) * time.Second)
	}
	t.Errorf("writer %d gave up", i)
}

func TestMissingResourcesAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, id := newEmulator(t, armemu.Options{})
		other := id
		other.Name = "no-such-pool"
		lost := id
		lost.LoadBalancer.Name = "no-such-balancer"
		for _, gone := range []lb.PoolID{other, lost} {
			if _, err := client.GetPool(t.Context(), gone); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Stale {
				t.Errorf("%s: %v, want stale", gone, err)
			}
		}
		pool, err := client.GetPool(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		pool.ID = lost
		if _, err := client.PutPool(t.Context(), pool); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Stale {
			t.Errorf("a write to %s: %v, want stale", lost, err)
		}
	})
}

func TestAGuardedWriteThatCameLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu, client, id := newEmulator(t, armemu.Options{})
		pool, err := client.GetPool(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := emu.SetFaults(`rules: [{match: {method: PUT, nth: 1}, action: {bumpEtag: true}}]`); err != nil {
			t.Fatal(err)
		}
		_, err = client.PutPool(t.Context(), pool)
		f := armerror.FromError(err)
		if f == nil || f.Class != armerror.Retriable || f.Code != "PreconditionFailedEtagMismatch" {
			t.Errorf("got %v", err)
		}
		if errors.Unwrap(f) == nil {
			t.Error("what came back is lost")
		}
	})
}
