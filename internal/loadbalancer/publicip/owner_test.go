// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// store is a record that survives the process.
type store struct {
	record         OwnerRecord
	reads, writes  int
	failsRead      bool
	failsWrite     bool
	written        func(OwnerRecord)
	lostAfterWrite bool // the response of a successful write is lost
}

func (s *store) ReadOwners(context.Context) (OwnerRecord, error) {
	s.reads++
	if s.failsRead {
		return OwnerRecord{}, errors.New("away")
	}
	return OwnerRecord{Version: s.record.Version, Owners: maps.Clone(s.record.Owners)}, nil
}

func (s *store) WriteOwners(_ context.Context, r OwnerRecord) (string, error) {
	if s.failsWrite || r.Version != s.record.Version {
		return "", errors.New("conflict")
	}
	s.writes++
	s.record = OwnerRecord{Version: strconv.Itoa(s.writes), Owners: maps.Clone(r.Owners)}
	if s.written != nil {
		s.written(r)
	}
	if s.lostAfterWrite {
		return "", errors.New("timeout")
	}
	return s.record.Version, nil
}

func (s *store) owner(name string) string { return s.record.Owners[named(name).Key()].Namespace }

// city is a cluster with an Azure and Services by owner.
type city struct {
	*store
	azure    *cloud
	grants   map[string]string
	services map[string]string
	keeper   *Manager
	log      strings.Builder
}

func newCity(ips ...lb.PublicIP) *city {
	c := &city{store: &store{}, grants: map[string]string{}, services: map[string]string{}}
	_, c.azure = keeperOf(ips...)
	c.restart()
	return c
}

func (c *city) restart() {
	keeper, _ := keeperOf()
	cfg := keeper.cfg
	cfg.Azure, cfg.Owners, cfg.Log = c.azure, c.store, slog.New(slog.NewTextHandler(&c.log, nil))
	cfg.GrantsOf = func(namespace string) string { return c.grants[namespace] }
	cfg.Services = func() func(string) string {
		return func(frontend string) string { return c.services[frontend] }
	}
	c.keeper = New(cfg)
}

// asks returns a request of a Service whose owner is its name.
func (c *city) asks(key string, wants ...service.PublicIP) *Request {
	req := requestOf(wants...)
	req.Service, req.Owner = key, strings.ReplaceAll(key, "/", "")
	c.services[req.Owner] = key
	return req
}

func (c *city) round(t *testing.T, requests ...*Request) {
	t.Helper()
	c.keeper.BeginRound(t.Context(), kubernetes, requests).WriteRequired(t.Context())
}

// use marks a public IP as used by the frontend of a Service, or as free.
func (c *city) use(name, key string) {
	ip := c.azure.ips[named(name).Key()]
	if ip.UsedBy = ""; key != "" {
		ip.UsedBy = kubernetes.String() + "/frontendIPConfigurations/" + strings.ReplaceAll(key, "/", "")
	}
	c.azure.ips[named(name).Key()] = ip
}

func free(name string) lb.PublicIP {
	ip := exists(name, "", "20.0.0."+strconv.Itoa(len(name)))
	ip.Tags = map[string]string{}
	return ip
}

// Each row is a user, an owner and a grant, with the decision for a Service of namespace bank.
func TestPublicIPUsers(t *testing.T) {
	shop, bank := Owner{"shop", time.Unix(1000, 0)}, Owner{"bank", time.Unix(1000, 0)}
	use, no, named := service.PublicIPGrant{Use: true}, service.PublicIPGrant{FromTag: true}, service.PublicIPGrant{FromTag: true, Use: true, Label: true}
	away := errors.New("away")
	for name, row := range map[string]struct {
		usage
		claims   bool
		wantText string
	}{
		"never used":                      {usage{}, true, ""},
		"its own":                         {usage{owner: bank}, false, ""},
		"another's":                       {usage{owner: shop}, false, "belongs to namespace shop, which has used it since 1970-01-01T00:16:40Z. Choose another public IP, or have an administrator add rg/bank to the annotation weir.dev/allowed-public-ips of Namespace bank"},
		"another's, with a bad grant":     {usage{owner: shop, invalid: errors.New("entry 2")}, false, "(entry 2)"},
		"another's, granted":              {usage{owner: shop, grant: use}, true, ""},
		"another's, tagged for it":        {usage{owner: shop, grant: named}, true, ""},
		"its own, tagged for others":      {usage{owner: bank, grant: no}, false, "is not for namespace bank, by its tag weir-allowed-namespaces"},
		"never used, tagged for others":   {usage{grant: no}, false, "add bank to the tag"},
		"in use by it":                    {usage{user: "bank", owner: bank}, false, ""},
		"in use by it, tagged for others": {usage{user: "bank", owner: bank, grant: no}, false, ""},
		"in use by it, not recorded":      {usage{user: "bank"}, false, ""}, // it is recorded as its user
		"its own, not recorded yet":       {usage{owner: bank, pending: true}, true, ""},
		"in use by it, record away":       {usage{user: "bank", ownerErr: away}, false, ""},
		"in use by another":               {usage{user: "shop", owner: shop}, false, ""}, // the plan rejects it
		"in use by another, granted":      {usage{user: "shop", owner: shop, grant: use}, false, ""},
		"record away":                     {usage{ownerErr: away}, false, "given to no Service that does not have it already: away"},
		"record away, granted":            {usage{ownerErr: away, grant: use}, false, "away"},
	} {
		row.ip, row.namespace = exists("bank", "", "20.0.0.1"), "bank"
		claims, err := row.checkUse()
		if want := fmt.Sprint(err); claims != row.claims || (err == nil) != (row.wantText == "") || err != nil && !strings.Contains(want, row.wantText) {
			t.Errorf("%s: %v, %v", name, claims, err)
		}
	}
}

// While a Service is recreated, no other namespace gets its public IP: not in the same round, not after a
// restart, and not before the owner is recorded.
func TestAPublicIPStaysWithItsNamespace(t *testing.T) {
	c := newCity(free("vip"))
	c.written = func(OwnerRecord) {
		if len(c.azure.said) > 0 {
			t.Errorf("%q was written before the record", c.azure.said)
		}
	}
	shop, bank := c.asks("shop/web", brought("vip", "")), c.asks("bank/web", brought("vip", ""))
	shop.Created = time.Unix(1, 0)
	bank.Created = time.Unix(2, 0)
	c.round(t, bank, shop)
	if shop.Err != nil || bank.Err == nil || c.owner("vip") != "shop" || c.writes != 1 {
		t.Fatalf("the older Service: %v; the other: %v; owner %q after %d writes", shop.Err, bank.Err, c.owner("vip"), c.writes)
	}
	// The process ends after the record and before the load balancer is written.
	c.restart()
	c.round(t, bank)
	if bank.Err == nil || c.owner("vip") != "shop" {
		t.Errorf("after a restart: %v", bank.Err)
	}
	c.use("vip", "shop/web")
	for range 3 {
		c.round(t, shop)
	}
	c.use("vip", "")
	leaves := c.asks("shop/web")
	leaves.Desired, leaves.IsLeaving = nil, true
	c.round(t, leaves, bank)
	second := c.asks("shop/again", brought("vip", ""))
	if c.round(t, bank, second); second.Err != nil || bank.Err == nil || c.writes != 1 {
		t.Errorf("recreated: %v; the other: %v; %d writes", second.Err, bank.Err, c.writes)
	}
	byAddress := c.asks("bank/address", service.PublicIP{ID: named("c-x"), Address: c.azure.ips[named("vip").Key()].Address, Family: lb.IPv4})
	if c.round(t, byAddress); byAddress.Err == nil {
		t.Error("another namespace has it by its address")
	}
	c.grants["bank"] = "vip,"
	if c.round(t, bank); bank.Err == nil || !strings.Contains(bank.Err.Error(), "entry 2") {
		t.Errorf("a list with an error in it: %v", bank.Err)
	}
	c.grants["bank"] = "vip"
	if c.round(t, bank); bank.Err != nil || c.owner("vip") != "bank" {
		t.Errorf("granted: %v, owner %q", bank.Err, c.owner("vip"))
	}
	delete(c.grants, "bank")
	if c.round(t, bank, shop); bank.Err != nil || shop.Err == nil {
		t.Errorf("transferred: %v, before: %v", bank.Err, shop.Err)
	}
}

// A DNS label changes only with a grant and stays when the Service leaves.
func TestTheLabelOfAPublicIPThatWeirDidNotMake(t *testing.T) {
	vip := free("vip")
	vip.DNSLabel = "bank"
	c := newCity(vip)
	ask := func(label string, sets bool) error {
		want := brought("vip", label)
		want.SetsDNSLabel = sets
		req := c.asks("shop/web", want)
		round := c.keeper.BeginRound(t.Context(), kubernetes, []*Request{req})
		round.WriteRequired(t.Context())
		round.FinishServices(t.Context(), []*Request{req})
		return req.Err
	}
	for range 2 { // the owner by mere use may not, either
		for _, label := range []string{"evil", ""} {
			if err := ask(label, true); err == nil || !strings.Contains(err.Error(), "changes only with a grant") {
				t.Errorf("label %q: %v", label, err)
			}
		}
		if err := ask("bank", true); err != nil {
			t.Errorf("the label that is there: %v", err)
		}
	}
	for _, tag := range []string{"*", "bank", "shop,", "bank, shop"} { // the last one allows it
		c.azure.said = nil
		allowed := tag == "bank, shop"
		vip.Tags = map[string]string{"Weir-Allowed-Namespaces": tag}
		c.azure.ips[vip.ID.Key()] = vip
		if err := ask("evil", true); (err == nil) != allowed || (len(c.azure.said) > 0) != allowed {
			t.Errorf("tag %q: %v, %q", tag, err, c.azure.said)
		}
	}
	c.azure.said = nil
	leaves := c.asks("shop/web")
	leaves.Desired, leaves.IsLeaving = nil, true
	c.keeper.BeginRound(t.Context(), kubernetes, []*Request{leaves}).FinishServices(t.Context(), []*Request{leaves})
	if got := c.azure.ips[vip.ID.Key()]; got.DNSLabel != "evil" || lb.TagValue(got.Tags, service.TagDNSLabel) != "" {
		t.Errorf("after the Service: label %q, tags %v", got.DNSLabel, got.Tags)
	}
}

// If owners cannot be read or written, no public IP changes its owner, and existing use continues.
func TestWithoutTheRecord(t *testing.T) {
	c := newCity(free("vip"), free("other"))
	c.use("vip", "shop/web")
	c.failsRead = true
	have, wants := c.asks("shop/web", brought("vip", "")), c.asks("bank/web", brought("other", ""))
	if c.round(t, have, wants); have.Err != nil || wants.Err == nil {
		t.Errorf("unreadable: %v, %v", have.Err, wants.Err)
	}
	c.failsRead, c.failsWrite = false, true
	if c.round(t, wants); wants.Err == nil {
		t.Error("a public IP is used that is not on record")
	}
	if c.round(t, have); have.Err != nil {
		t.Errorf("in use, and unwritable: %v", have.Err)
	}
	c.failsWrite, c.lostAfterWrite = false, true
	c.round(t, wants)
	c.lostAfterWrite = false
	if c.round(t, have, wants); have.Err != nil || wants.Err != nil || c.owner("vip") != "shop" || c.owner("other") != "bank" {
		t.Errorf("after a lost answer: %v, %v, %v", have.Err, wants.Err, c.record)
	}
	// After a lost record, used public IPs are found again; the first namespace gets a free one.
	c.record = OwnerRecord{}
	c.use("other", "")
	c.restart()
	third := c.asks("third/web", brought("other", ""))
	if c.round(t, third); third.Err != nil || c.owner("vip") != "shop" || c.owner("other") != "third" || !strings.Contains(c.log.String(), "free=other") {
		t.Errorf("after a loss: %v, %v, %s", third.Err, c.record, c.log.String())
	}
}

// The record holds existing public IPs that Services used, and a round without a change writes nothing.
func TestTheRecordIsBounded(t *testing.T) { synctest.Test(t, theRecordIsBounded) }

func theRecordIsBounded(t *testing.T) {
	first := exists("c-a1", "shop/web", "20.0.0.9")
	c := newCity(free("vip"), free("unused"), first)
	c.use("c-a1", "a/1")
	req := c.asks("shop/web", brought("vip", ""))
	for range 3 {
		c.round(t, req)
	}
	if len(c.record.Owners) != 1 || c.writes != 1 || c.reads != 1 {
		t.Errorf("%v after %d writes, %d reads", c.record.Owners, c.writes, c.reads)
	}
	vip := c.azure.ips[named("vip").Key()]
	lists := func(omits bool) {
		if delete(c.azure.ips, vip.ID.Key()); !omits {
			c.azure.ips[vip.ID.Key()] = vip
		}
		// A Service without a named public IP does not need the record; it was read before.
		c.round(t, c.asks("shop/api", own("")))
		time.Sleep(pruneAfter - time.Second)
	}
	for _, omits := range []bool{true, true, false, true, true} { // never omitted for pruneAfter in a row
		if lists(omits); c.owner("vip") != "shop" {
			t.Fatalf("one list omitted the public IP, and its owner is %q", c.owner("vip"))
		}
	}
	if lists(true); len(c.record.Owners) != 0 {
		t.Errorf("a public IP that is gone stays on record: %v", c.record.Owners)
	}
}

// A public IP of another namespace may not be an additional address.
func TestAdditionalAddressesOfOwners(t *testing.T) {
	c := newCity(free("vip"))
	c.round(t, c.asks("shop/web", brought("vip", "")))
	others := func(key string) int {
		addresses, err := c.keeper.ForeignAddresses(t.Context(), key, "x", &service.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		return len(addresses)
	}
	if others("bank/web") != 1 || others("shop/api") != 0 {
		t.Errorf("bank: %d, shop: %d", others("bank/web"), others("shop/api"))
	}
	c.grants["bank"] = "*"
	if others("bank/web") != 0 {
		t.Error("granted, and refused")
	}
}

// Whatever Services of two namespaces do, across restarts, a public IP used by shop is not written for bank
// without a grant.
func TestOwnersLaw(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCity(free("vip"))
		owner := ""
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0:
				c.restart()
			case 1:
				c.use("vip", "")
			case 2:
				c.failsWrite, c.failsRead = rapid.Bool().Draw(rt, "unwritable"), rapid.Bool().Draw(rt, "unreadable")
			default:
				var requests []*Request
				for _, namespace := range rapid.SliceOfN(rapid.SampledFrom([]string{"shop", "bank"}), 1, 3).Draw(rt, "namespaces") {
					requests = append(requests, c.asks(fmt.Sprintf("%s/s%d", namespace, len(requests)), brought("vip", "")))
				}
				before := c.azure.ips[named("vip").Key()].UsedBy
				c.keeper.BeginRound(t.Context(), kubernetes, requests)
				for _, req := range slices.DeleteFunc(requests, func(r *Request) bool { return r.Err != nil || before != "" }) {
					namespace := namespaceOf(req.Service)
					if owner == "" {
						owner = namespace
					}
					if namespace != owner || c.owner("vip") != owner {
						rt.Fatalf("%s gets the public IP of %s, on record for %q", req.Service, owner, c.owner("vip"))
					}
					c.use("vip", req.Service)
				}
			}
		}
	})
}
