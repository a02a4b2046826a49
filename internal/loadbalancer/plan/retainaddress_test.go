// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

var retainedAt = time.Date(2026, 11, 28, 4, 0, 0, 0, time.UTC)

const nodesSubnet = "/vnet/subnets/nodes"

func privateFrontend(name, addr string, static bool) lb.Frontend {
	ip := netip.MustParseAddr(addr)
	family := lb.IPv4
	if ip.Is6() {
		family = lb.IPv6
	}
	return lb.Frontend{Name: name, Subnet: nodesSubnet, PrivateIP: ip, Static: static, Family: family}
}

func retainedTags(key string, addrs ...string) map[string]string {
	tags := map[string]string{"team": "x"}
	for _, a := range addrs {
		r := lb.RetainedAddress{Address: netip.MustParseAddr(a), Service: key, Since: retainedAt, Subnet: path.Base(nodesSubnet)}
		tags[r.TagName()] = r.TagValue()
	}
	return tags
}

func ruleOf(owner, frontend string) lb.Rule {
	return lb.Rule{Name: owner + "-TCP-80", Frontend: frontend, Pool: "kubernetes", Transport: lb.TCP, FrontendPort: 80, BackendPort: 80, FloatingIP: true}
}

func internalLoadBalancer() lb.LoadBalancer {
	return lb.LoadBalancer{
		ID: lb.LoadBalancerID{Name: "kubernetes-internal"}, Etag: "1", Tags: map[string]string{"team": "x"},
		Frontends: []lb.Frontend{privateFrontend("a1", "10.0.0.4", false), privateFrontend("a2", "10.0.0.5", true)},
		Pools:     []lb.Pool{{ID: lb.PoolID{Name: "kubernetes"}}},
		Rules:     []lb.Rule{ruleOf("a1", "a1"), ruleOf("a2", "a2")},
	}
}

// A Service that leaves an address with the annotation leaves a static frontend with a tag; a plan of the result is empty.
func TestAddressIsRetained(t *testing.T) {
	moved := ServiceParts{Owner: "a1", RetainFor: "shop/web", Frontends: []lb.Frontend{privateFrontend("a1", "10.0.0.9", true)}, Rules: []lb.Rule{ruleOf("a1", "a1")}}
	for name, c := range map[string]struct {
		share  ServiceParts
		frames string
		tag    string
	}{
		"it leaves":                        {ServiceParts{Owner: "a1", RetainFor: "shop/web"}, "a1=10.0.0.4 a2=10.0.0.5", "2026-11-28T04:00:00Z shop/web nodes"},
		"it leaves without the annotation": {ServiceParts{Owner: "a1"}, "a2=10.0.0.5", ""},
		"it requests another address":      {moved, alternateName(moved.Frontends[0]) + "=10.0.0.9 a1=10.0.0.4 a2=10.0.0.5", "2026-11-28T04:00:00Z shop/web nodes"},
		"it needs the address elsewhere":   {ServiceParts{Owner: "a1", RetainFor: "shop/web", NeedsAddress: func(lb.Frontend) bool { return true }}, "a2=10.0.0.5", ""},
		"it remains":                       {ServiceParts{Owner: "a1", RetainFor: "shop/web", Frontends: []lb.Frontend{privateFrontend("a1", "10.0.0.4", false)}, Rules: []lb.Rule{ruleOf("a1", "a1")}}, "a1=10.0.0.4 a2=10.0.0.5", ""},
	} {
		in := Input{Observed: internalLoadBalancer(), Services: []ServiceParts{c.share}, Others: []string{"a2"}, SharedPools: []string{"kubernetes"}, Now: retainedAt}
		p := Make(in)
		var frames []string
		for _, f := range p.Next.Frontends {
			frames = append(frames, f.Name+"="+f.PrivateIP.String())
			if f.Name == "a1" && f.Static != (c.tag != "") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		slices.Sort(frames)
		if got := strings.Join(frames, " "); got != c.frames || p.Next.Tags["weir-retained-10.0.0.4"] != c.tag || len(p.Rejected) > 0 {
			t.Errorf("%s: %s, tags %v, %v", name, got, p.Next.Tags, p.Rejected)
		}
		in.Observed = p.Next
		if second := Make(in); !second.IsEmpty() {
			t.Errorf("%s: again %v", name, second.Changes)
		}
	}
}

// A Service without rules changes only the tag, and that is written.
func TestAddressWithoutRulesIsRetained(t *testing.T) {
	b := internalLoadBalancer()
	b.Rules = b.Rules[:1]
	p := Make(Input{Observed: b, Services: []ServiceParts{{Owner: "a2", RetainFor: "shop/db"}}, Others: []string{"a1"}, Now: retainedAt})
	if p.IsEmpty() || p.Next.Tags["weir-retained-10.0.0.5"] == "" {
		t.Errorf("%v %v", p.Changes, p.Next.Tags)
	}
}

// A load balancer with only a retained address, or only the record of a claim, is not deleted.
func TestRetainedAddressKeepsTheLoadBalancer(t *testing.T) {
	for name, b := range map[string]lb.LoadBalancer{
		"the last Service leaves": {Frontends: []lb.Frontend{privateFrontend("a1", "10.0.0.4", true)}, Rules: []lb.Rule{ruleOf("a1", "a1")}},
		"a frontend":              {Tags: retainedTags("shop/web", "10.0.0.4"), Frontends: []lb.Frontend{privateFrontend("a0", "10.0.0.4", true)}, Rules: []lb.Rule{ruleOf("a1", "a0")}},
		"a claim":                 {Tags: retainedTags("shop/web", "10.0.0.7"), Frontends: []lb.Frontend{privateFrontend("a1", "10.0.0.4", true)}, Rules: []lb.Rule{ruleOf("a1", "a1")}},
	} {
		b.Etag, b.Pools = "1", []lb.Pool{{ID: lb.PoolID{Name: "kubernetes"}}}
		share := ServiceParts{Owner: "a1", RetainFor: "shop/web"}
		if name == "a claim" {
			share.RetainFor = ""
		}
		p := Make(Input{Observed: b, Services: []ServiceParts{share}, SharedPools: []string{"kubernetes"}, Now: retainedAt})
		if p.Delete || len(p.Next.RetainedAddresses()) != 1 || len(p.Next.Frontends) != 1 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A retained address is for its namespace: as a limit, and as a right.
func TestRetainedAddressBelongsToItsNamespace(t *testing.T) {
	wants := func(owner, key, addr string) ServiceParts {
		f := privateFrontend(owner, addr, true)
		return ServiceParts{Owner: owner, Namespace: namespaceOfKey(key), Frontends: []lb.Frontend{f}, Rules: []lb.Rule{ruleOf(owner, owner)}}
	}
	many := make([]string, service.MaxRetained)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.1.%d", i)
	}
	held := func(addrs ...string) lb.LoadBalancer {
		b := lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes-internal"}, Etag: "1", Tags: retainedTags("shop/web", addrs...), Pools: []lb.Pool{{ID: lb.PoolID{Name: "kubernetes"}}}}
		for i, a := range addrs {
			b.Frontends = append(b.Frontends, privateFrontend(fmt.Sprintf("r%d", i), a, true))
		}
		return b
	}
	full := held("10.0.0.4")
	for i := len(full.Tags) + reservedTags; i < lb.MaxTags; i++ {
		full.Tags[fmt.Sprint("t", i)] = "x"
	}
	full.Frontends = append(full.Frontends, privateFrontend("a9", "10.0.0.9", true))
	claim := held()
	lb.SetTags(claim.Tags, retainedTags("shop/web", "10.0.0.4"))
	for name, c := range map[string]struct {
		observed lb.LoadBalancer
		share    ServiceParts
		max      int
		want     string
	}{
		"its own":                    {held("10.0.0.4"), wants("a1", "shop/api", "10.0.0.4"), 0, ""},
		"of another":                 {held("10.0.0.4"), wants("a1", "evil/api", "10.0.0.4"), 0, "is retained for Service shop/web"},
		"a claim of another":         {claim, wants("a1", "evil/api", "10.0.0.4"), 0, "is retained for Service shop/web"},
		"too many":                   {held(many...), wants("a1", "shop/api", "10.0.0.4"), 0, "has 20 retained private addresses"},
		"one of too many":            {held(many...), wants("a1", "shop/api", many[3]), 0, ""},
		"too many of another":        {held(many...), wants("a1", "bank/api", "10.0.0.4"), 0, ""},
		"they count for the bound":   {held(many[:3]...), wants("a1", "shop/api", "10.0.0.4"), 3, "3"},
		"they count for no other":    {held(many[:3]...), wants("a1", "bank/api", "10.0.0.4"), 3, ""},
		"there is no room for a tag": {full, ServiceParts{Owner: "a9", RetainFor: "shop/db"}, 0, "cannot be retained"},
	} {
		in := Input{Observed: c.observed, Services: []ServiceParts{c.share}, SharedPools: []string{"kubernetes"}, Now: retainedAt, MaxFrontends: 600, ServiceOf: func(name string) string {
			if hasOwner(c.share.Owner, name) {
				return c.share.Namespace + "/x"
			}
			return ""
		}}
		in.NamespaceBounds = func(namespace string) service.NamespaceSettings {
			annotations := map[string]string{}
			if c.max > 0 {
				annotations[service.MaxFrontends] = fmt.Sprint(c.max)
			}
			return service.ParseNamespaceSettings(namespace, annotations)
		}
		err := Make(in).Rejected[c.share.Owner]
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func namespaceOfKey(key string) string { return lb.RetainedAddress{Service: key}.Namespace() }

func TestReleaseAddress(t *testing.T) {
	for name, c := range map[string]struct {
		frontends []lb.Frontend
		pools     []string
		tags      []string
		delete    bool
		want      Release
		left      string
	}{
		"another frontend is there":    {frontends: []lb.Frontend{privateFrontend("a1", "10.0.0.5", true)}, pools: []string{"kubernetes"}, left: "a1"},
		"the last with a pool":         {pools: []string{"kubernetes"}, want: Release{NeededBy: []string{"backend pool kubernetes"}}, left: "r"},
		"with deletion":                {pools: []string{"kubernetes"}, delete: true, want: Release{Delete: true}},
		"with deletion, and a claim":   {pools: []string{"kubernetes"}, tags: []string{"10.0.0.7"}, delete: true, want: Release{NeededBy: []string{"backend pool kubernetes"}}, left: "r"},
		"the last of all":              {want: Release{Delete: true}},
		"the last IPv4 beside an IPv6": {frontends: []lb.Frontend{privateFrontend("a1", "fd00::5", true)}, want: Release{NeededBy: []string{"IPv6 frontends"}}, left: "a1 r"},
	} {
		b := lb.LoadBalancer{Etag: "1", Tags: retainedTags("shop/web", append(c.tags, "10.0.0.4")...), Frontends: append(c.frontends, privateFrontend("r", "10.0.0.4", true))}
		for _, p := range c.pools {
			b.Pools = append(b.Pools, lb.Pool{ID: lb.PoolID{Name: p}})
		}
		found, r, f, ok := FindRetained([]lb.LoadBalancer{b}, netip.MustParseAddr("10.0.0.4"))
		if !ok || f.Name != "r" || CheckUnused(found, r, f) != nil {
			t.Fatalf("%s: %v %v", name, r, f)
		}
		got := ReleaseAddress(b, r, f, c.delete)
		remaining := ""
		if !got.Delete {
			for _, f := range got.Next.Frontends {
				remaining += " " + f.Name
			}
		}
		needed := lb.TagValue(got.Next.Tags, TagRetained) != ""
		if got.Delete != c.want.Delete || !slices.Equal(got.NeededBy, c.want.NeededBy) || strings.TrimSpace(remaining) != c.left || needed != (len(c.want.NeededBy) > 0) || lb.TagValue(got.Next.Tags, r.TagName()) != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	b := lb.LoadBalancer{Tags: retainedTags("shop/web", "10.0.0.4"), Frontends: []lb.Frontend{privateFrontend("r", "10.0.0.4", true)}, Rules: []lb.Rule{ruleOf("a1", "r")}}
	_, r, f, _ := FindRetained([]lb.LoadBalancer{b}, netip.MustParseAddr("10.0.0.4"))
	if err := CheckUnused(b, r, f); err == nil || !strings.Contains(err.Error(), "in use by rule a1-TCP-80") {
		t.Error(err)
	}
	b.Rules, b.Pinned = nil, map[string]bool{"r": true}
	if err := CheckUnused(b, r, f); err == nil {
		t.Error("a NAT rule uses it")
	}
}
