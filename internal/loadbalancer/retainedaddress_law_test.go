// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// retainedServices are Services that retain their addresses; the families of each never change.
var retainedServices = map[string]map[string]string{
	"shop/web":  {"retain-address": "true"},
	"shop/dual": {"retain-address": "true", "families": "IPv4 IPv6"},
	"bank/web":  {"retain-address": "true", "azure-dns-label-name": "bank"},
}

// Services that retain their addresses are deleted and recreated in random order, with a kill at any call: each has its
// first addresses whenever it exists, and no public IP is lost or made twice.
func TestLawRetainedAddressesSurvive(t *testing.T) {
	cases := uint64(200)
	if testing.Short() {
		cases = 30
	}
	for seed := range cases {
		if err := retainAddresses(t, rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func retainAddresses(t *testing.T, rnd *rand.Rand) (err error) {
	synctest.Test(t, func(*testing.T) {
		s := formerStage{newStage()}
		defer func() { s.close() }()
		names := []string{"bank/web", "shop/dual", "shop/web"}
		first := map[string][]netip.Addr{}
		for _, name := range names {
			_, first[name] = s.apply(name, retainedFields(name, 80))
		}
		known := strings.Count(s.cloud().spell(), "publicIPAddresses/")
		for n := range 3 {
			name := names[rnd.IntN(len(names))]
			s.arm([]killPoint{{1 + rnd.IntN(12), rnd.IntN(2) == 0}})
			if rnd.IntN(4) == 0 { // with a change of another Service
				other := names[rnd.IntN(len(names))]
				s.stage.apply(other, specOf(retainedFields(other, 81+n)), nil)
			}
			s.remove(name)
			s.settle(formerWait)
			s.arm(nil)
			s.restart()
			s.settle(time.Hour)
			s.arm([]killPoint{{1 + rnd.IntN(12), rnd.IntN(2) == 0}})
			s.stage.apply(name, specOf(retainedFields(name, 80)), nil)
			s.settle(formerWait)
			s.arm(nil)
			s.restart()
			s.settle(time.Hour)
			for _, of := range names {
				if is := s.status(of); !slices.Equal(is, first[of]) {
					err = fmt.Errorf("step %d: %s had %v and has %v\n%s", n, of, first[of], is, s.harvest(false))
					return
				}
			}
			if now := strings.Count(s.cloud().spell(), "publicIPAddresses/"); now != known {
				err = fmt.Errorf("step %d: %d public IPs, had %d\n%s", n, now, known, s.cloud().spell())
				return
			}
		}
	})
	return err
}

func retainedFields(name string, port int) map[string]string {
	all := map[string]string{"ports": fmt.Sprint(port)}
	for key, value := range retainedServices[name] {
		all[key] = value
	}
	return all
}
