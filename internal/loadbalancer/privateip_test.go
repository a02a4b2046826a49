// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

const subnet = "/subscriptions/s/virtualNetworks/net/subnets/Nodes"

var epoch = time.Unix(1000, 0).UTC()

func private(name, ip string) lb.Frontend {
	return lb.Frontend{Name: name, Family: lb.IPv4, Subnet: subnet, PrivateIP: netip.MustParseAddr(ip), Static: true}
}

var vip = AddressKey(private("", "10.0.0.9"))

// storePrivateIP is a record that outlives a Keeper.
type storePrivateIP struct {
	record         PrivateIPRecord
	writes         int
	failsRead      bool
	failsWrite     bool
	lostAfterWrite bool // the response to a write that took effect
}

func (s *storePrivateIP) ReadReservations(context.Context) (PrivateIPRecord, error) {
	if s.failsRead {
		return PrivateIPRecord{}, errors.New("away")
	}
	return PrivateIPRecord{Version: s.record.Version, Reservations: maps.Clone(s.record.Reservations)}, nil
}

func (s *storePrivateIP) WriteReservations(_ context.Context, r PrivateIPRecord) (string, error) {
	if s.failsWrite || r.Version != s.record.Version {
		return "", errors.New("conflict")
	}
	s.writes++
	s.record = PrivateIPRecord{Version: strconv.Itoa(s.writes), Reservations: maps.Clone(r.Reservations)}
	if s.lostAfterWrite {
		return "", errors.New("timeout")
	}
	return s.record.Version, nil
}

func keeperOf(t *testing.T, s *storePrivateIP) *PrivateIPManager {
	k := NewPrivateIPManager(PrivateIPConfig{Store: s, LoadBalancers: []string{"a", "b"}, Limit: func(string) int { return 5 }, Log: slog.New(slog.DiscardHandler)})
	k.Load(t.Context())
	return k
}

func wantsPrivateIP(service string, created int64, keys ...string) PrivateIPRequest {
	return PrivateIPRequest{Owner: strings.ReplaceAll(service, "/", ""), Service: service, Created: time.Unix(created, 0), Keys: keys}
}

// Each row is the record of an address and its users, and the result for Services of namespaces
// bank and shop.
func TestPrivateAddressUsers(t *testing.T) {
	bank, older := wantsPrivateIP("bank/web", 2, vip), wantsPrivateIP("shop/web", 1, vip)
	soon, past := epoch.Add(time.Second), epoch
	for name, row := range map[string]struct {
		record     PrivateIPReservation
		unreadable error
		users      []string
		wants      []PrivateIPRequest
		wantText   string // for bank/web
	}{
		"never used":                      {wants: []PrivateIPRequest{bank}},
		"its own":                         {record: PrivateIPReservation{"bank", "a", soon}, wants: []PrivateIPRequest{bank}},
		"another's until then":            {record: PrivateIPReservation{"shop", "a", soon}, wants: []PrivateIPRequest{bank}, wantText: "private address 10.0.0.9 of subnet nodes is reserved for namespace shop, which used it last, until 1970-01-01T00:16:41Z. Choose another address, or wait until then"},
		"another's, not left yet":         {record: PrivateIPReservation{"shop", "a", time.Time{}}, wants: []PrivateIPRequest{bank}, wantText: "private address 10.0.0.9 of subnet nodes is reserved for namespace shop until 1h0m0s after its last Service has left it. Choose another address"},
		"another's, expired":              {record: PrivateIPReservation{"shop", "a", past}, wants: []PrivateIPRequest{bank}},
		"in use by it":                    {record: PrivateIPReservation{"shop", "a", soon}, users: []string{"bank"}, wants: []PrivateIPRequest{bank}},
		"in use by another":               {record: PrivateIPReservation{"shop", "a", soon}, users: []string{"shop"}, wants: []PrivateIPRequest{bank}}, // the plan rejects it
		"record away":                     {unreadable: errors.New("away"), wants: []PrivateIPRequest{bank}, wantText: "is given to no Service that does not have it already: away"},
		"record away, in use by it":       {unreadable: errors.New("away"), users: []string{"bank"}, wants: []PrivateIPRequest{bank}},
		"an older Service":                {wants: []PrivateIPRequest{bank, older}, wantText: "is assigned to Service shop/web, which is older and requests it, too"},
		"an older one of its own":         {wants: []PrivateIPRequest{bank, wantsPrivateIP("bank/older", 1, vip)}},
		"a newer Service":                 {wants: []PrivateIPRequest{wantsPrivateIP("shop/new", 3, vip), bank}},
		"an older one that may not":       {record: PrivateIPReservation{"bank", "a", soon}, wants: []PrivateIPRequest{bank, older}},
		"an older one with another fault": {record: PrivateIPReservation{"bank", "a", soon}, wants: []PrivateIPRequest{wantsPrivateIP("shop/two", 1, "x 10.0.0.8", vip), wantsPrivateIP("bank/web", 2, "x 10.0.0.8")}},
	} {
		err := checkRequests(map[string]PrivateIPReservation{vip: row.record}, row.unreadable, PrivateIPUsers{vip: row.users}, row.wants, epoch)["bankweb"]
		if (err == nil) != (row.wantText == "") || err != nil && !strings.Contains(err.Error(), row.wantText) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only static private frontends and known Services count.
func TestUsersOf(t *testing.T) {
	b := lb.LoadBalancer{
		Frontends: []lb.Frontend{
			private("shop", "10.0.0.9"), private("unknown", "10.0.0.8"),
			{Name: "dynamic", Subnet: subnet, PrivateIP: netip.MustParseAddr("10.0.0.7")}, {Name: "public", PublicIP: "/p"},
		},
		Rules: []lb.Rule{{Name: "bank-1", Frontend: "SHOP"}, {Name: "shop-1", Frontend: "shop"}, {Name: "bank-2", Frontend: "dynamic"}},
	}
	services := map[string]string{"shop": "shop/web", "shop-1": "shop/web", "bank-1": "bank/web", "bank-2": "bank/web", "dynamic": "bank/web", "public": "bank/web"}
	got := FindPrivateIPUsers(b, func(name string) string { return services[name] })
	if len(got) != 2 || !slices.Equal(got[vip], []string{"shop", "bank"}) {
		t.Errorf("%v", got)
	}
}

// A Service is deleted and recreated: its address is recorded before use and reserved for TTL
// afterwards, across processes, then free. Without a change nothing is written.
func TestAnAddressIsReserved(t *testing.T) {
	s, now := &storePrivateIP{}, epoch
	k := keeperOf(t, s)
	shop, bank := wantsPrivateIP("shop/web", 1, vip), wantsPrivateIP("bank/web", 2, vip)
	used := PrivateIPUsers{vip: {"shop"}}
	if refused := k.Reserve(t.Context(), "a", nil, []PrivateIPRequest{shop}, now); len(refused) > 0 || s.record.Reservations[vip] != (PrivateIPReservation{"shop", "a", time.Time{}}) {
		t.Fatalf("%v, %v", refused, s.record)
	}
	k = keeperOf(t, s) // the process ended before writing the load balancer
	if refused := k.Check(nil, []PrivateIPRequest{bank}, now); refused["bankweb"] == nil {
		t.Error("a recorded address goes to another namespace")
	}
	for range 3 {
		if refused := k.Reserve(t.Context(), "a", used, []PrivateIPRequest{shop}, now); len(refused) > 0 {
			t.Error(refused)
		}
		k.RecordUsers(t.Context(), "a", used, now)
		k.RecordUsers(t.Context(), "b", nil, now) // another load balancer does not show it
	}
	if s.writes != 1 {
		t.Errorf("%d writes for one owner", s.writes)
	}
	k.RecordUsers(t.Context(), "a", nil, now)
	for range 3 { // a rejected Service causes no write
		now = now.Add(PrivateIPTTL/3 - time.Second)
		if refused := k.Check(nil, []PrivateIPRequest{bank}, now); refused["bankweb"] == nil {
			t.Errorf("after %s: another namespace has it", now.Sub(epoch))
		}
		k.RecordUsers(t.Context(), "a", nil, now)
		if refused := k.Check(nil, []PrivateIPRequest{shop}, now); len(refused) > 0 {
			t.Error(refused)
		}
	}
	if s.writes != 2 {
		t.Errorf("%d writes", s.writes)
	}
	k = keeperOf(t, s)
	if refused := k.Check(nil, []PrivateIPRequest{bank}, epoch.Add(PrivateIPTTL)); len(refused) > 0 {
		t.Errorf("expired: %v", refused)
	}
	if refused := k.Reserve(t.Context(), "a", nil, []PrivateIPRequest{bank}, epoch.Add(PrivateIPTTL)); len(refused) > 0 || s.record.Reservations[vip].Namespace != "bank" {
		t.Errorf("expired: %v, %v", refused, s.record)
	}
	// A load balancer outside the cluster has no users.
	s.record.Reservations[vip] = PrivateIPReservation{"shop", "former", time.Time{}}
	keeperOf(t, s).RecordUsers(t.Context(), "a", nil, now)
	if s.record.Reservations[vip].Expires.IsZero() {
		t.Error("reserved for ever")
	}
}

// Two load balancers request an address concurrently: the second one to record it is rejected.
func TestTwoLoadBalancersReserveOneAddress(t *testing.T) {
	s := &storePrivateIP{}
	k := keeperOf(t, s)
	shop, bank := wantsPrivateIP("shop/web", 1, vip), wantsPrivateIP("bank/web", 2, vip)
	if refused := k.Check(nil, []PrivateIPRequest{bank}, epoch); len(refused) > 0 {
		t.Fatal(refused)
	}
	k.Reserve(t.Context(), "a", nil, []PrivateIPRequest{shop}, epoch)
	if refused := k.Reserve(t.Context(), "b", nil, []PrivateIPRequest{bank}, epoch); refused["bankweb"] == nil || s.record.Reservations[vip].Namespace != "shop" {
		t.Errorf("%v, %v", refused, s.record)
	}
}

// If the record can't be read or written, no Service gets a new address.
func TestWithoutTheRecord(t *testing.T) {
	s := &storePrivateIP{failsRead: true}
	k := keeperOf(t, s)
	have, wanted := wantsPrivateIP("shop/web", 1, vip), wantsPrivateIP("bank/web", 2, "x 10.0.0.8")
	used := PrivateIPUsers{vip: {"shop"}}
	fails := func(when string) {
		t.Helper()
		if refused := k.Reserve(t.Context(), "a", used, []PrivateIPRequest{have, wanted}, epoch); refused["shopweb"] != nil || refused["bankweb"] == nil {
			t.Errorf("%s: %v", when, refused)
		}
	}
	fails("unreadable")
	k.RecordUsers(t.Context(), "a", used, epoch)
	if s.writes > 0 {
		t.Error("a record that was not read is overwritten")
	}
	s.failsRead, s.failsWrite = false, true
	k.Load(t.Context())
	fails("unwritable")
	s.failsWrite, s.lostAfterWrite = false, true
	k.Load(t.Context())
	fails("a lost answer")
	s.lostAfterWrite = false
	k.Load(t.Context())
	if refused := k.Reserve(t.Context(), "a", used, []PrivateIPRequest{have, wanted}, epoch); len(refused) > 0 || s.record.Reservations["x 10.0.0.8"].Namespace != "bank" || s.record.Reservations[vip].Namespace != "shop" {
		t.Errorf("%v, %v", refused, s.record)
	}
}

// Under any sequence of Services: a namespace has at most its limit of recorded addresses, or those
// in use; an address in use is recorded for one of its users; no reservation outlives TTL;
// repeating a state changes nothing.
func TestLawReservations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record, now := map[string]PrivateIPReservation{}, epoch
		limit := rapid.IntRange(0, 3).Draw(t, "limit")
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
			s := loadBalancerState{name: "a", users: PrivateIPUsers{}, claims: map[string]string{}}
			inUse := map[string]int{}
			for i := range 8 {
				key := fmt.Sprintf("x 10.0.0.%d", i)
				if namespace := rapid.SampledFrom([]string{"", "", "shop", "bank"}).Draw(t, "user"); namespace != "" {
					s.users[key] = []string{namespace}
					inUse[namespace]++
				}
			}
			record = nextRecord(record, s, func(string) int { return limit }, now)
			present := map[string]int{}
			for key, r := range record {
				present[r.Namespace]++
				if users := s.users[key]; len(users) > 0 != r.Expires.IsZero() || len(users) > 0 && users[0] != r.Namespace {
					t.Fatalf("%s is used by %v: %v", key, users, r)
				}
				if !r.Expires.IsZero() && (r.Expires.After(now.Add(PrivateIPTTL)) || !r.Expires.After(now)) {
					t.Fatalf("at %s: %v", now, r)
				}
			}
			for namespace, n := range present {
				if n > max(limit, inUse[namespace]) {
					t.Fatalf("%s has %d of %d", namespace, n, limit)
				}
			}
			if second := nextRecord(record, s, func(string) int { return limit }, now); !maps.Equal(second, record) {
				t.Fatalf("%v becomes %v", record, second)
			}
		}
	})
}

// Above the limit of a namespace the reservation that expires first is removed, never one of
// another namespace or load balancer, or one in use.
func TestTheReservationThatEndsFirstIsDropped(t *testing.T) {
	in := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	record := map[string]PrivateIPReservation{
		"x 1": {"shop", "a", in(30)}, "x 2": {"shop", "a", in(10)}, "x 3": {"shop", "a", in(20)},
		"x 4": {"bank", "a", in(5)}, "x 5": {"shop", "b", in(5)}, "x 6": {"shop", "b", time.Time{}},
	}
	got := nextRecord(record, loadBalancerState{name: "a", users: PrivateIPUsers{"x 7": {"shop"}}, others: []string{"b"}}, func(string) int { return 2 }, epoch)
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, []string{"x 1", "x 4", "x 5", "x 6", "x 7"}) {
		t.Error(keys)
	}
}
