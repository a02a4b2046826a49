// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

// newTenants returns a town with one Service per given namespace, with Azure's limit.
func newTenants(namespaces ...string) *town {
	n := newTown(len(namespaces))
	for i, namespace := range namespaces {
		r := n.requests[i]
		s := n.sharers[r.Owner]
		r.Service = fmt.Sprintf("%s/s%03d", namespace, i)
		s.Service = r.Service
		n.sharers[r.Owner] = s
	}
	n.keeper.cfg.Settings.MaxPerLoadBalancer = 0
	return n
}

// published counts the Private Link Services by namespace.
func (tn *town) published() map[string]int {
	items := map[string]int{}
	for _, p := range tn.links {
		items[desired.Namespace(desired.OwnerOf(p))]++
	}
	return items
}

// due runs a round for some of the requests.
func (tn *town) due(t *testing.T, requests ...*Request) {
	t.Helper()
	all := tn.requests
	tn.requests = requests
	tn.inSync(t)
	tn.requests = all
}

func times(n int, namespace string) []string { return slices.Repeat([]string{namespace}, n) }

func TestOneNamespaceLeavesPrivateLinkServicesForOthers(t *testing.T) {
	eight := append(times(8, "team"), "shop")
	for about, tt := range map[string]struct {
		namespaces []string
		bounds     map[string]string // of namespace team
		first      int               // number of requests in a first round
		want       map[string]int
		text       string // a part of the rejection
	}{
		"alone":                                {times(9, "team"), nil, 0, map[string]int{"team": 7}, "namespace team would have 8 Private Link Services in load balancer kubernetes and may have 7 (default: 1 is reserved for other namespaces, of 8, the limit of Azure)"},
		"beside a neighbor":                    {eight, nil, 0, map[string]int{"team": 4, "shop": 1}, "would have 5 Private Link Services in load balancer kubernetes and may have 4 (default: other namespaces use it, too, so half of 8"},
		"the neighbor has none yet":            {eight, nil, 8, map[string]int{"team": 4, "shop": 1}, "may have 4"},
		"a part as large as that of frontends": {eight, map[string]string{service.MaxFrontends: "525"}, 8, map[string]int{"team": 7, "shop": 1}, "may have 7 (annotation weir.dev/max-frontends of Namespace team)"},
		"few frontends":                        {eight, map[string]string{service.MaxFrontends: "10"}, 8, map[string]int{"team": 4, "shop": 1}, "may have 4 (default"},
		"annotation in error":                  {eight, map[string]string{service.MaxFrontends: "all"}, 8, map[string]int{"team": 4, "shop": 1}, `annotation weir.dev/max-frontends of Namespace team is "all"`},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTenants(tt.namespaces...)
				n.bounds = map[string]map[string]string{"team": tt.bounds}
				if tt.first > 0 {
					n.due(t, n.requests[:tt.first]...)
				}
				n.inSync(t)
				if got := n.published(); !maps.Equal(got, tt.want) {
					t.Errorf("published %v, want %v", got, tt.want)
				}
				refused := 0
				for _, r := range n.requests {
					if r.State.Reason != ReasonRejected {
						continue
					}
					refused++
					if !strings.Contains(r.State.Text, tt.text) || !strings.HasPrefix(r.Service, "team/") || len(r.Warnings) == 0 {
						t.Errorf("%s: %s", r.Service, r.State.Text)
					}
				}
				if services := len(tt.namespaces) - len(n.links); refused != services {
					t.Errorf("%d of %d have a rejection", refused, services)
				}
			})
		})
	}
}

// A namespace above its limit keeps what it has, and may change and replace it.
func TestPrivateLinkServicesAboveTheBoundStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTenants(append(times(7, "team"), "shop")...)
		shop := n.requests[7]
		without := n.sharers[shop.Owner]
		delete(n.sharers, shop.Owner)
		n.due(t, n.requests[:7]...)
		n.sharers[shop.Owner] = without
		n.requests[0].Desired.Link.FQDNs = []string{"web.example"}
		n.requests[1].Desired.Link.Name = "renamed"
		n.inSync(t)
		if got := n.published(); got["team"] != 7 || got["shop"] != 1 {
			t.Errorf("published %v", got)
		}
		for _, r := range n.requests {
			if r.Err != nil || !r.State.IsPublished() {
				t.Errorf("%s: %v, %+v", r.Service, r.Err, r.State)
			}
		}
	})
}

// Private Link Services count in every resource group recorded for the namespace's Services;
// foreign ones count for none.
func TestPrivateLinkServicesCountInEachGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTenants(append(times(5, "team"), "shop")...)
		for i, r := range n.requests[:4] {
			s := n.sharers[r.Owner]
			group := fmt.Sprint("group", i)
			r.Desired.Link.ResourceGroup, r.ResourceGroups, s.ResourceGroups = group, []string{group}, []string{group}
			n.sharers[r.Owner] = s
			n.due(t, r)
		}
		n.due(t, n.requests[4])
		if got := n.published(); got["team"] != 4 {
			t.Errorf("published %v", got)
		}
		foreign := lb.PrivateLinkService{ID: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePrivateLinkService, Name: "theirs"},
			Frontends: []string{FrontendID(kubernetes, "other")}}
		n.links[foreign.ID.Key()] = foreign
		n.due(t, n.requests[5])
		if got := n.published(); got["shop"] != 1 {
			t.Errorf("published %v", got)
		}
	})
}

// A retry after a write conflict is not counted again.
func TestASecondTryIsWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTenants(append(times(4, "team"), "shop")...)
		n.due(t, n.requests[:3]...)
		n.refuse = armerror.Classify(armerror.Failure{Status: 412, Codes: []string{"PreconditionFailed"}}, errors.New("412"))
		n.due(t, n.requests[3])
		if got := n.published(); got["team"] != 4 || n.requests[3].Err != nil {
			t.Errorf("published %v, %v", got, n.requests[3].Err)
		}
	})
}

// In any order of requests, no namespace exceeds its limit, and one below its guaranteed half is
// never rejected.
func TestLawNamespacesDoNotCompeteForPrivateLinkServices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		namespaces := rapid.SliceOfN(rapid.SampledFrom([]string{"team", "shop"}), 1, 12).Draw(rt, "Services")
		rounds := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, len(namespaces)-1), 1, -1, rapid.ID[int]), 1, 4).Draw(rt, "due")
		synctest.Test(t, func(t *testing.T) {
			n, asks := newTenants(namespaces...), map[string]int{}
			for _, namespace := range namespaces {
				asks[namespace]++
			}
			limit := 4
			if len(asks) == 1 {
				limit = 7
			}
			for _, round := range rounds {
				var due []*Request
				for _, i := range round {
					due = append(due, n.requests[i])
				}
				n.due(t, due...)
				for namespace, have := range n.published() {
					if have > limit {
						rt.Fatalf("namespace %s has %d", namespace, have)
					}
				}
				for _, r := range due {
					if namespace := desired.Namespace(r.Service); !r.State.IsPublished() && (asks[namespace] <= limit || n.published()[namespace] < limit) {
						rt.Fatalf("%s: %s", r.Service, r.State.Text)
					}
				}
			}
		})
	})
}
