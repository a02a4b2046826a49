// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"net/netip"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func sameAddr(a, b netip.Addr) bool { return a == b }

// made returns an existing Private Link Service of a Service.
func made(owner string, changes ...func(*lb.PrivateLinkService)) lb.PrivateLinkService {
	p := buildDesired(*asks(owner, 1).Link, owner, frontend(), settings())
	p.Etag, p.Provisioning, p.Alias = "1", lb.Succeeded, "pls-aaaa.guid.eastus.azure.privatelinkservice"
	for _, change := range changes {
		change(&p)
	}
	return p
}

func tagged(name, value string) func(*lb.PrivateLinkService) {
	return func(p *lb.PrivateLinkService) { p.Tags[name] = value }
}

func TestOwnerOfSettings(t *testing.T) {
	t.Parallel()
	wrong := FrontendService{Service: "n/a", Problems: []service.Problem{{Field: service.PLSCount, Value: "x", Expected: "a number"}}}
	before := func(p *lb.PrivateLinkService) {
		delete(p.Tags, service.TagLinkOwner)
		p.Tags[service.TagLinkOwnerBefore] = "n/b"
	}
	recorded := asks("n/b", 2)
	recorded.IsRecordedOwner = true
	for _, tt := range []struct {
		about   string
		sharers []FrontendService
		seen    []lb.PrivateLinkService
		owner   string
		want    bool
		holds   bool
	}{
		{"nobody is there", nil, nil, "", false, false},
		{"nobody asks", []FrontendService{{Service: "n/a"}}, nil, "", false, false},
		{"one asks", []FrontendService{{Service: "n/a"}, asks("n/b", 2)}, nil, "n/b", true, false},
		{"the oldest that asks", []FrontendService{asks("n/a", 2), asks("n/b", 1)}, nil, "n/b", true, false},
		{"as old, by name", []FrontendService{asks("n/b", 1), asks("n/a", 1)}, nil, "n/a", true, false},
		{"whom the tag names", []FrontendService{asks("n/a", 1), asks("n/b", 2)}, []lb.PrivateLinkService{made("n/b")}, "n/b", true, false},
		{"whom the tag of before names", []FrontendService{asks("n/a", 1), asks("n/b", 2)}, []lb.PrivateLinkService{made("", before)}, "n/b", true, false},
		{"of several, the one that is asked for", []FrontendService{asks("n/a", 2), asks("n/b", 1)}, []lb.PrivateLinkService{made("n/b", as("a")), made("n/a")}, "n/a", true, false},
		{"of several, one whose owner is there", []FrontendService{asks("n/a", 1), asks("n/b", 2)}, []lb.PrivateLinkService{made("n/b", as("a")), made("n/gone", as("b"))}, "n/b", true, false},
		{"the owner has left", []FrontendService{asks("n/b", 2), asks("n/c", 1)}, []lb.PrivateLinkService{made("n/a")}, "n/c", true, false},
		{"the owner asks no more", []FrontendService{{Service: "n/a"}, asks("n/b", 2)}, []lb.PrivateLinkService{made("n/a")}, "n/b", true, false},
		{"all have left", []FrontendService{{Service: "n/a"}}, []lb.PrivateLinkService{made("n/a")}, "", false, false},
		{"a tag of another cluster names nobody", []FrontendService{asks("n/a", 1), asks("n/b", 2)}, []lb.PrivateLinkService{made("n/b", tagged(service.TagCluster, "other"))}, "n/a", true, false},
		{"on record, while nothing is there", []FrontendService{asks("n/a", 1), recorded}, nil, "n/b", true, false},
		{"on record, and another tag", []FrontendService{asks("n/a", 1), recorded}, []lb.PrivateLinkService{made("n/a")}, "n/a", true, false},
		{"the owner is wrong", []FrontendService{wrong, asks("n/b", 2)}, []lb.PrivateLinkService{made("n/a")}, "n/a", false, true},
		{"another is wrong", []FrontendService{wrong, asks("n/b", 2)}, []lb.PrivateLinkService{made("n/b")}, "n/b", true, false},
		{"one is wrong, another makes it", []FrontendService{wrong, asks("n/b", 2)}, nil, "n/b", true, false},
		{"who may ask is wrong, the owner has left", []FrontendService{wrong}, []lb.PrivateLinkService{made("n/gone")}, "", false, true},
		{"one is wrong, nothing is there", []FrontendService{wrong}, nil, "", false, false},
	} {
		t.Run(tt.about, func(t *testing.T) {
			v := ResolveOwner(frontend(), settings(), tt.sharers, tt.seen)
			if v.Owner != tt.owner || (v.Desired != nil) != tt.want || v.KeepCurrent != tt.holds {
				t.Errorf("%+v", v)
			}
			if v.Desired != nil && v.Desired.Tags[service.TagLinkOwner] != tt.owner {
				t.Errorf("tagged %v", v.Desired.Tags)
			}
		})
	}
}

// Only the owner changes a shared one. The others get a problem for each setting that differs, in
// any order, and none for settings they leave open.
func TestSharersAreWarned(t *testing.T) {
	t.Parallel()
	owner, other, silent := asks("n/a", 2, count(2)), asks("n/b", 1, count(3), called("mine")), asks("n/c", 3)
	same := asks("n/d", 4, called("PLS-aaaa"), count(2))
	for _, sharers := range [][]FrontendService{{owner, other, silent, same}, {same, silent, other, owner}} {
		v := ResolveOwner(frontend(), settings(), sharers, []lb.PrivateLinkService{made("n/a")})
		var fields []string
		for _, p := range v.Problems["n/b"] {
			fields = append(fields, p.Field)
		}
		if !slices.Equal(fields, []string{service.PLSName, service.PLSCount}) || len(v.Problems["n/a"])+len(v.Problems["n/c"])+len(v.Problems["n/d"]) > 0 || len(v.Desired.NAT) != 2 {
			t.Errorf("%+v", v)
		}
	}
}
