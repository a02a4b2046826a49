// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

// share puts the town's second Service onto the frontend of the first.
func (tn *town) share(link *service.PrivateLink, edit func(*desired.FrontendService)) {
	tn.balancer.Observed.Frontends = tn.balancer.Observed.Frontends[:1]
	tn.balancer.Observed.Rules[1].Frontend = "a000"
	s := tn.sharers["a001"]
	s.Link, tn.requests[1].Desired.Link = link, link
	edit(&s)
	tn.sharers["a001"] = s
}

// asksNoMore removes the request of the first Service.
func (tn *town) asksNoMore() {
	s := tn.sharers["a000"]
	s.Link, tn.requests[0].Desired.Link = nil, nil
	tn.sharers["a000"] = s
}

// A Service is not released while another Service freezes its Private Link Service: with its record
// gone, nothing would find it.
func TestLeavingServiceWaitsForRemainingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTown(2)
		n.share(nil, func(*desired.FrontendService) {})
		n.inSync(t)
		n.share(nil, func(s *desired.FrontendService) { s.Frozen = true })
		n.asksNoMore()
		r := n.requests[0]
		var pauses []time.Duration
		for range 4 {
			n.inSync(t)
			f := armerror.FromError(r.Err)
			if f == nil || f.Code != CodeUpdating || !r.IsIncomplete || len(n.links) != 1 {
				t.Fatalf("it says %v, and %d are left", r.Err, len(n.links))
			}
			pauses = append(pauses, time.Until(f.RetryAt))
		}
		if pauses[3] <= pauses[0] {
			t.Errorf("tried again after %v", pauses)
		}
		n.share(nil, func(s *desired.FrontendService) { s.Frozen = false })
		if n.inSync(t); r.Err != nil || len(n.links) > 0 {
			t.Errorf("once nobody holds it: %v, and %d are left", r.Err, len(n.links))
		}
	})
}

// The next owner's resource group is read, so that no second one is created. The new one waits for
// that Service's own request, which records the group.
func TestNextOwnerCreatesPrivateLinkService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTown(2)
		elsewhere := &service.PrivateLink{Subnet: "nodes", Count: 1, ResourceGroup: "elsewhere", SetAnnotations: map[string]string{}}
		n.share(nil, func(*desired.FrontendService) {})
		n.inSync(t)
		n.share(elsewhere, func(s *desired.FrontendService) { s.ResourceGroups = []string{"before"} })
		n.asksNoMore()
		requests := n.requests
		n.requests = requests[:1]
		wants(t, "the end of the first one", n.inSync(t), map[string]int{"list rg": 1, "list elsewhere": 1, "list before": 1, "subnet": 1, "delete": 1})
		if n.requests[0].Err != nil {
			t.Error(n.requests[0].Err)
		}
		n.requests = requests[1:]
		if n.inSync(t); n.requests[0].Err != nil || len(n.links) != 1 || slices.Collect(maps.Values(n.links))[0].ID.ResourceGroup != "elsewhere" {
			t.Errorf("the second one says %v, and there is %v", n.requests[0].Err, n.links)
		}
	})
}

// An unreadable resource group affects only the Services that name it and their frontends, because
// any user may name one.
func TestAGroupThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTown(3)
		n.closes = "closed"
		n.requests[1].ResourceGroups = []string{"closed"}
		wants(t, "the round", n.inSync(t), map[string]int{"list rg": 1, "list closed": 1, "subnet": 1, "put": 2})
		if n.requests[0].Err != nil || n.requests[1].Err == nil || n.requests[2].Err != nil {
			t.Errorf("they say %v, %v, %v", n.requests[0].Err, n.requests[1].Err, n.requests[2].Err)
		}
		id := func(name string) string { return FrontendID(kubernetes, name) }
		n.keeper.RemovePublishers(t.Context(), map[string][]*Request{id("a000"): {n.requests[0], n.requests[1]}, id("a002"): {n.requests[2]}}, n.requests)
		if n.requests[0].Err == nil || n.requests[2].Err != nil || len(n.links) != 1 {
			t.Errorf("at the end they say %v, %v, and %d are left", n.requests[0].Err, n.requests[2].Err, len(n.links))
		}
		n = newTown(2)
		n.share(nil, func(*desired.FrontendService) {})
		n.inSync(t)
		n.closes = "closed"
		n.share(nil, func(s *desired.FrontendService) { s.ResourceGroups = []string{"closed"} })
		n.requests = n.requests[:1]
		if n.inSync(t); n.requests[0].State == nil || n.requests[0].State.Reason != ReasonFrozen {
			t.Errorf("beside one that names it: %+v", n.requests[0].State)
		}
	})
}
