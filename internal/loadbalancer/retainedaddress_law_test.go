// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

var retainedSeeds = flag.Uint64("retained-seeds", 60, "seeds of TestLawRetainedAddressesSurvive")

// retainedServices are Services that retain their addresses; the families of each never change.
var retainedServices = map[string]map[string]string{
	"shop/web":  {"retain-address": "true"},
	"shop/dual": {"retain-address": "true", "families": "IPv4 IPv6"},
	"bank/web":  {"retain-address": "true", "azure-dns-label-name": "bank"},
	"shop/in":   {"retain-address": "true", "azure-load-balancer-internal": "true"},
	"bank/in":   {"retain-address": "true", "azure-load-balancer-internal": "true", "families": "IPv4 IPv6"},
	"shop/app":  {"retain-address": "true", "azure-load-balancer-internal": "true", "azure-load-balancer-internal-subnet": "apps", "azure-load-balancer-ipv4": "10.1.0.77"},
}

// Services that retain their addresses are deleted and recreated in random order, in the same and in another cluster, with a kill
// of each controller and of each claim at any call: each has its first addresses whenever it exists, and Azure has no
// other ones.
func TestLawRetainedAddressesSurvive(t *testing.T) {
	cases := *retainedSeeds
	if testing.Short() {
		cases = min(cases, 10)
	}
	for seed := range cases {
		if err := retainAddresses(t, rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// twoClusters are two clusters with one Azure.
type twoClusters struct {
	clusters [2]formerStage
	at       map[string]int // the cluster of each Service
	first    map[string][]netip.Addr
	rnd      *rand.Rand
}

func retainAddresses(t *testing.T, rnd *rand.Rand) (err error) {
	synctest.Test(t, func(t *testing.T) {
		blue := newStage()
		defer blue.close()
		green := newStageOn(blue.emu, func(set *loadbalancer.Settings) {
			set.ClusterName, set.Configurations = "green", []service.Configuration{{Name: "green"}}
		})
		defer green.close()
		w := twoClusters{clusters: [2]formerStage{{blue}, {green}}, at: map[string]int{}, first: map[string][]netip.Addr{}, rnd: rnd}
		names := slices.Sorted(maps.Keys(retainedServices))
		for _, name := range names {
			_, w.first[name] = w.clusters[0].apply(name, retainedFields(name, 80))
		}
		known := w.addresses()
		for n := range 4 {
			name := names[rnd.IntN(len(names))]
			if err = w.moveService(t, name, rnd.IntN(2), n); err != nil {
				err = fmt.Errorf("step %d: %s: %w\n%s", n, name, err, blue.cloud().spell())
				return
			}
			for _, of := range names {
				if got := w.clusters[w.at[of]].status(of); !slices.Equal(got, w.first[of]) {
					err = fmt.Errorf("step %d, of %s: %s had %v and has %v\n%s\n%s", n, name, of, w.first[of], got, w.clusters[w.at[of]].harvest(false), blue.cloud().spell())
					return
				}
			}
			if current := w.addresses(); !maps.Equal(current, known) {
				err = fmt.Errorf("step %d, of %s: Azure has %v, had %v\n%s", n, name, current, known, blue.cloud().spell())
				return
			}
		}
	})
	return err
}

// moveService deletes a Service and creates it in a cluster, with kills.
func (tc *twoClusters) moveService(t *testing.T, name string, to, n int) error {
	from, next := tc.clusters[tc.at[name]], tc.clusters[to]
	from.arm([]killPoint{{1 + tc.rnd.IntN(12), tc.rnd.IntN(2) == 0}})
	for _, other := range slices.Sorted(maps.Keys(tc.at)) {
		if other != name && tc.clusters[tc.at[other]] == from && tc.rnd.IntN(8) == 0 { // with a change of another Service
			from.stage.apply(other, specOf(retainedFields(other, 81+n)), nil)
		}
	}
	from.remove(name)
	from.settle(formerWait)
	from.revive()
	if tc.at[name] != to {
		if err := tc.claim(t, name, next); err != nil {
			return err
		}
	}
	tc.at[name] = to
	next.arm([]killPoint{{1 + tc.rnd.IntN(12), tc.rnd.IntN(2) == 0}})
	next.stage.apply(name, specOf(retainedFields(name, 80)), nil)
	next.settle(formerWait)
	next.revive()
	return nil
}

func (s formerStage) revive() {
	s.arm(nil)
	s.restart()
	s.settle(time.Hour)
}

// claim claims the addresses of a Service for a cluster; each claim is killed once, and repeated.
func (tc *twoClusters) claim(t *testing.T, name string, next formerStage) error {
	for _, addr := range tc.first[name] { // the first claim of a private address has all
		target, err := tc.claimName(t, addr, next)
		if err != nil {
			return err
		}
		next.arm([]killPoint{{1 + tc.rnd.IntN(10), tc.rnd.IntN(2) == 0}})
		for try := range 3 {
			c := cli.AddressCommand{
				Azure: next.process.client, SubscriptionID: subscription, ResourceGroup: resources, ClusterName: next.settings.ClusterName,
				Settings: next.settings, Out: io.Discard, DeleteLoadBalancer: true,
			}
			if err = c.Claim(t.Context(), target, ""); err == nil {
				break
			}
			if try > 0 {
				return fmt.Errorf("claim of %s: %w", target, err)
			}
			next.revive()
			time.Sleep(time.Minute)
		}
		next.revive()
	}
	return nil
}

// claimName returns the name of a public IP for an address; a private one is its own name.
func (tc *twoClusters) claimName(t *testing.T, addr netip.Addr, next formerStage) (string, error) {
	ips, err := next.process.client.ListPublicIPs(t.Context(), subscription, resources)
	for _, r := range publicip.ListRetained(ips, "") {
		if r.Address == addr {
			return r.ID.Name, err
		}
	}
	return addr.String(), err
}

// addresses counts the public IPs, and the private frontends by address.
func (tc *twoClusters) addresses() map[string]int {
	addresses := map[string]int{}
	for _, line := range strings.Split(tc.clusters[0].cloud().spell(), "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 1 && strings.HasPrefix(line, "publicIPAddresses/"):
			addresses[fields[1]]++
		case len(fields) > 3 && fields[0] == "frontend" && (fields[2] == "static" || fields[2] == "dynamic"):
			addresses[fields[3]]++
		}
	}
	return addresses
}

func retainedFields(name string, port int) map[string]string {
	fields := map[string]string{"ports": fmt.Sprint(port)}
	for key, value := range retainedServices[name] {
		fields[key] = value
	}
	return fields
}
