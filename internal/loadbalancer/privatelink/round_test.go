// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

const network = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v"

var kubernetes = lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}

// cloud fakes an Azure whose writes take ten seconds.
type cloud struct {
	mu     sync.Mutex
	links  map[string]lb.PrivateLinkService
	closed bool // the subnet
	calls  map[string]int
	busy   int
	most   int
	refuse error // of the next write
	list   error
	closes string                       // a resource group that can't be read
	keeps  func(*lb.PrivateLinkService) // edits what a write stores
}

func newCloud() *cloud {
	return &cloud{links: map[string]lb.PrivateLinkService{}, calls: map[string]int{}}
}

func (c *cloud) note(about string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[about]++
}

func (c *cloud) write(about string, then func()) error {
	c.note(about)
	c.mu.Lock()
	c.busy++
	c.most = max(c.most, c.busy)
	err := c.refuse
	c.refuse = nil
	c.mu.Unlock()
	time.Sleep(10 * time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy--; err == nil {
		then()
	}
	return err
}

func (c *cloud) List(_ context.Context, _, group string) ([]lb.PrivateLinkService, error) {
	c.note("list " + group)
	c.mu.Lock()
	defer c.mu.Unlock()
	var links []lb.PrivateLinkService
	for _, key := range slices.Sorted(maps.Keys(c.links)) {
		if strings.EqualFold(c.links[key].ID.ResourceGroup, group) {
			links = append(links, c.links[key])
		}
	}
	if group == c.closes {
		return nil, armerror.Classify(armerror.Failure{Status: 403, Codes: []string{"AuthorizationFailed"}}, errors.New("403"))
	}
	return links, c.list
}

func (c *cloud) Get(_ context.Context, id lb.ResourceID) (lb.PrivateLinkService, error) {
	c.note("get")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[id.Key()], nil
}

func (c *cloud) Put(_ context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error) {
	err := c.write("put", func() {
		next.Etag, next.Alias, next.Provisioning = "1", next.ID.Name+".alias", lb.Succeeded
		if c.keeps != nil {
			c.keeps(&next)
		}
		c.links[next.ID.Key()] = next
	})
	return next, err
}

func (c *cloud) Delete(_ context.Context, p lb.PrivateLinkService) error {
	return c.write("delete", func() { delete(c.links, p.ID.Key()) })
}

func (c *cloud) DeleteConnection(_ context.Context, of lb.ResourceID, connection lb.PrivateEndpointConnection) error {
	return c.write("disconnect", func() {
		p := c.links[of.Key()]
		p.Connections = slices.DeleteFunc(slices.Clone(p.Connections), func(o lb.PrivateEndpointConnection) bool { return o.Name == connection.Name })
		c.links[of.Key()] = p
	})
}

func (c *cloud) GetSubnet(_ context.Context, of lb.ResourceID, name string) (lb.Subnet, error) {
	c.note("subnet")
	c.mu.Lock()
	defer c.mu.Unlock()
	return lb.Subnet{Network: of, Name: name, LinkPolicies: c.closed}, nil
}

func (c *cloud) OpenSubnet(_ context.Context, next lb.Subnet) (lb.Subnet, error) {
	next.LinkPolicies = false
	return next, c.write("open", func() { c.closed = false })
}

// town is n Services, each with its own frontend, that request a Private Link Service.
type town struct {
	*cloud
	keeper    *Reconciler
	balancer  LoadBalancer
	requests  []*Request
	sharers   map[string]desired.FrontendService
	contests  conflict.Conflicts
	progress  conflict.InProgress
	overtaken []bool
	lease     lost
	bounds    map[string]map[string]string // annotations by Namespace
}

func (tn *town) NamespaceBounds(namespace string) service.NamespaceSettings {
	return service.ParseNamespaceSettings(namespace, tn.bounds[namespace])
}

func (tn *town) FrontendServices(owners map[string]bool) map[string]desired.FrontendService {
	services := map[string]desired.FrontendService{}
	for owner := range owners {
		if s, ok := tn.sharers[owner]; ok {
			services[owner] = s
		}
	}
	return services
}

// lost is a lease that is lost once is is true.
type lost struct{ is bool }

func (l *lost) Enter(context.Context) (func() bool, func(), error) {
	return func() bool { return !l.is }, func() {}, nil
}

func newTown(n int) *town {
	w := &town{cloud: newCloud(), sharers: map[string]desired.FrontendService{}}
	w.balancer.Observed = lb.LoadBalancer{ID: kubernetes, Etag: "1", SKU: lb.Standard, Location: "eastus"}
	for i := range n {
		owner, name := fmt.Sprintf("a%03d", i), fmt.Sprintf("shop/s%03d", i)
		link := &service.PrivateLink{Subnet: "nodes", Count: 1, SetAnnotations: map[string]string{}}
		w.balancer.Observed.Frontends = append(w.balancer.Observed.Frontends, lb.Frontend{Name: owner, Family: lb.IPv4, Subnet: network + "/subnets/nodes"})
		w.balancer.Observed.Rules = append(w.balancer.Observed.Rules, lb.Rule{Name: owner + "-TCP-80", Frontend: owner, Pool: "kubernetes"})
		w.sharers[owner] = desired.FrontendService{Service: name, Link: link}
		spec := &service.Spec{Owner: owner, Link: link, Frontends: []service.Frontend{{}}}
		w.requests = append(w.requests, &Request{Service: name, Owner: owner, Desired: spec, ResourceGroups: []string{"rg"}, DesiredKey: conflict.DesiredKey{Desired: spec}})
	}
	w.keeper = New(Config{
		Azure: w.cloud, Cluster: w, Lease: &w.lease, Conflicts: &w.contests, InProgress: &w.progress, Log: slog.New(slog.DiscardHandler),
		OnConflict: func(settled bool) { w.overtaken = append(w.overtaken, settled) },
		Settings: desired.Settings{
			ClusterName: "kubernetes", Group: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg"}, VirtualNetwork: network,
			MaxPerLoadBalancer: 100, CanOpenSubnets: true,
		},
	})
	return w
}

// inSync runs a round and returns its calls.
func (tn *town) inSync(t *testing.T) map[string]int {
	t.Helper()
	tn.mu.Lock()
	clear(tn.calls)
	tn.mu.Unlock()
	tn.keeper.Reconcile(t.Context(), tn.balancer, tn.requests)
	return maps.Clone(tn.calls)
}

func wants(t *testing.T, about string, got, want map[string]int) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s costs %v, want %v", about, got, want)
	}
}

// Twenty Services cost one list, one subnet read, one subnet write, and twenty parallel writes;
// another round costs one list. A change costs one write.
func TestRequestsOfARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, began := newTown(20), time.Now()
		n.closed = true
		wants(t, "a crowd", n.inSync(t), map[string]int{"list rg": 1, "subnet": 1, "open": 1, "put": 20})
		if elapsed := time.Since(began); n.most != 20 || elapsed != 20*time.Second {
			t.Errorf("%d side by side, %v in all", n.most, elapsed)
		}
		for _, r := range n.requests {
			if r.Err != nil || !r.State.IsPublished() || !r.Changed {
				t.Fatalf("%s: %+v, %v", r.Service, r.State, r.Err)
			}
		}
		wants(t, "a look", n.inSync(t), map[string]int{"list rg": 1})
		n.requests[7].Desired.Link.FQDNs = []string{"web.example"}
		wants(t, "a change", n.inSync(t), map[string]int{"list rg": 1, "put": 1})
		n.requests[7].Desired.Link.ProxyProtocol, n.requests = true, n.requests[:3]
		wants(t, "a round without the Service that changed", n.inSync(t), map[string]int{"list rg": 1})
	})
}

// Connections are removed before deletion; a foreign Private Link Service keeps the frontend.
func TestFrontendsAreClearedBeforeTheyGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTown(1)
		n.inSync(t)
		key := slices.Collect(maps.Keys(n.links))[0]
		p := n.links[key]
		p.Connections = []lb.PrivateEndpointConnection{{Name: "one"}, {Name: "two"}}
		n.links[key] = p
		foreign := p
		foreign.ID.Name, foreign.Tags, foreign.Connections = "theirs", nil, nil
		n.links[foreign.ID.Key()] = foreign
		r, id := n.requests[0], FrontendID(kubernetes, "a000")
		r.Desired = nil
		clear(n.calls)
		look := n.keeper.NewSnapshot()
		for range 2 {
			if gone, err := look.FindPublished(t.Context(), r, []string{id, id + "0"}); err != nil || !slices.Equal(gone, []string{id}) {
				t.Errorf("published are %v, %v", gone, err)
			}
		}
		wants(t, "a look that is asked twice", n.calls, map[string]int{"list rg": 1})
		clear(n.calls)
		n.keeper.RemovePublishers(t.Context(), map[string][]*Request{id: {r}}, n.requests)
		wants(t, "the end", n.calls, map[string]int{"list rg": 1, "disconnect": 2, "get": 2, "delete": 1})
		if f := armerror.FromError(r.Err); f == nil || f.Code != CodeFrontendInUse || !strings.Contains(f.Error(), "/theirs") {
			t.Errorf("beside a foreign one: %v", r.Err)
		}
		delete(n.links, foreign.ID.Key())
		n.keeper.RemovePublishers(t.Context(), map[string][]*Request{id: {r}}, n.requests)
		if r.Err != nil || len(n.links) > 0 {
			t.Errorf("%v, and %d are left", r.Err, len(n.links))
		}
	})
}

// Failures are isolated: a write conflict is retried once after a fresh list, a rejection affects
// no other frontend, and without the lease nothing is written.
func TestFailures(t *testing.T) {
	for about, trouble := range map[string]struct {
		before func(*town)
		want   map[string]int
		check  func(*town) error
	}{
		"overtaken": {func(n *town) {
			n.refuse = armerror.Classify(armerror.Failure{Status: 412, Codes: []string{"PreconditionFailed"}}, errors.New("412"))
		}, map[string]int{"list rg": 2, "subnet": 1, "put": 3}, func(n *town) error {
			if !slices.Equal(n.overtaken, []bool{true}) || n.requests[0].Err != nil || n.requests[1].Err != nil {
				return fmt.Errorf("overtaken %v, %w", n.overtaken, errors.Join(n.requests[0].Err, n.requests[1].Err))
			}
			return nil
		}},
		"refused": {func(n *town) {
			n.refuse = armerror.Classify(armerror.Failure{Status: 400, Codes: []string{"Refused"}}, errors.New("400"))
		}, map[string]int{"list rg": 1, "subnet": 1, "put": 2}, func(n *town) error {
			failed := 0
			for _, r := range n.requests {
				if r.Err != nil && r.State.Reason == ReasonFailed {
					failed++
				}
			}
			if failed != 1 {
				return fmt.Errorf("%d failed", failed)
			}
			return nil
		}},
		"shown otherwise": {func(n *town) { n.keeps = func(p *lb.PrivateLinkService) { p.FQDNs = []string{"policy.example"} } },
			map[string]int{"list rg": 1, "subnet": 1, "put": 4}, func(n *town) error {
				if f := armerror.FromError(n.requests[0].Err); f == nil || f.Code != armerror.CodeOutcomeUnknown {
					return fmt.Errorf("it says %w", n.requests[0].Err)
				}
				return nil
			}},
		"no lease": {func(n *town) { n.lease.is = true }, map[string]int{"list rg": 1, "subnet": 1}, func(n *town) error {
			if !errors.Is(n.requests[0].Err, conflict.ErrLeaseExpired) {
				return fmt.Errorf("it says %w", n.requests[0].Err)
			}
			return nil
		}},
		"the list fails": {func(n *town) {
			n.list = armerror.Classify(armerror.Failure{Status: 403, Codes: []string{"AuthorizationFailed"}}, errors.New("403"))
		},
			map[string]int{"list rg": 1}, func(n *town) error {
				if n.requests[0].Err == nil || n.requests[1].Err == nil {
					return errors.New("it says nothing")
				}
				return nil
			}},
		"no such group": {func(n *town) { n.list = &armerror.Fault{Class: armerror.Stale, Code: "ResourceGroupNotFound"} },
			map[string]int{"list rg": 1, "subnet": 1, "put": 2}, func(n *town) error { return n.requests[0].Err }},
		"one is only rehearsed": {func(n *town) {
			s := n.sharers["a000"]
			s.Frozen = true
			n.sharers["a000"] = s
		}, map[string]int{"list rg": 1, "subnet": 1, "put": 1}, func(n *town) error {
			if s := n.requests[0].State; s == nil || s.Reason != ReasonFrozen {
				return fmt.Errorf("it says %+v", s)
			}
			if !n.requests[0].IsIncomplete || n.requests[1].IsIncomplete {
				return errors.New("what stays is not told of the one that is held, or of the other one")
			}
			return n.requests[0].Err
		}},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newTown(2)
				trouble.before(n)
				wants(t, about, n.inSync(t), trouble.want)
				if err := trouble.check(n); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
