// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
)

// stormAzure returns an emulator with the storm's faults.
func stormAzure(t *testing.T) (*armemu.Emulator, *observer) {
	t.Helper()
	emu, o := azureWithWorkloads(t)
	if err := o.azure.setFaults(t.Context(), stormFaults()); err != nil {
		t.Fatal(err)
	}
	return emu, o
}

func TestStormRejectsAnnouncedRequests(t *testing.T) {
	emu, o := stormAzure(t)
	for i, c := range []struct {
		pool string
		code int
	}{{throttledPool, 429}, {throttledPool, 429}, {busyPool, 429}, {busyPool, 409}, {busyPool, 200}, {throttledPool, 429}} {
		// The emulator rejects an early call of the same caller before the storm's faults apply.
		if code := writePoolAs(t, emu, fmt.Sprint("caller-", i), c.pool, 1); code != c.code {
			t.Errorf("%s: %d, want %d", c.pool, code, c.code)
		}
	}
	o.mustLook(t)
	calls := o.currentTraffic()
	if got := fmt.Sprint(calls.pools[throttledPool], calls.pools[busyPool]); got != "{0 3 3 0 0} {0 3 1 1 0}" || calls.pools[busyPool].rejected() != 2 {
		t.Errorf("%s", got)
	}
	// No caller waited: the second write of each was early, and all after the gate closed.
	if calls.Early != 4 || calls.Throttled != 4 || calls.Conflicts != 1 {
		t.Errorf("%+v", calls)
	}
	if wrong := (Summary{ARM: calls}).failureText(); wrong != "4 calls before the time that Azure had asked for" {
		t.Errorf("%q", wrong)
	}
}

func TestPatience(t *testing.T) {
	at := func(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }
	call := func(seconds float64, kind armemu.Kind, pool, fault string) armemu.Call {
		c := armemu.Call{Time: at(seconds), Kind: kind, Resource: provider + "loadBalancers/kubernetes/backendAddressPools/" + pool, Fault: fault, Status: 200}
		if fault == faultNotProvisioned || fault == faultSubscription {
			c.Status = 429
		}
		return c
	}
	whole := func(seconds float64, kind armemu.Kind) armemu.Call {
		return armemu.Call{Time: at(seconds), Kind: kind, Resource: provider + "loadBalancers/kubernetes", Status: 200}
	}
	for _, c := range []struct {
		name  string
		early int
		calls []armemu.Call
	}{
		{"a pool waits", 0, []armemu.Call{call(1, "put", "a", faultNotProvisioned), call(8, "get", "a", "")}},
		{"a pool does not", 2, []armemu.Call{call(1, "put", "a", faultNotProvisioned), call(7.9, "get", "a", ""), call(7.95, "put", "a", "")}},
		{"another need not", 0, []armemu.Call{call(1, "put", "a", faultNotProvisioned), call(2, "put", "b", "")}},
		{"no other may write", 1, []armemu.Call{call(1, "put", "a", faultSubscription), call(2, "get", "b", ""), call(6.9, "put", "b", "")}},
		{"not even the load balancer", 1, []armemu.Call{call(1, "put", "a", faultSubscription), whole(2, "get"), whole(3, "put"), whole(7, "put")}},
		{"which waits for no pool", 0, []armemu.Call{call(1, "put", "a", faultNotProvisioned), whole(2, "put")}},
		{"until then", 0, []armemu.Call{call(1, "put", "a", faultSubscription), call(7, "put", "b", "")}},
		{"a conflict asks for nothing", 0, []armemu.Call{call(1, "put", "a", faultOtherOperation), call(1, "put", "a", "")}},
	} {
		var total traffic
		for _, made := range c.calls {
			total.addCall(made)
		}
		if total.Early != c.early {
			t.Errorf("%s: %d early", c.name, total.Early)
		}
	}
}

func newWriter(t *testing.T, emu *armemu.Emulator) *secondWriter {
	t.Helper()
	arm := httptest.NewServer(emu)
	t.Cleanup(arm.Close)
	return newSecondWriter(arm.URL)
}

// The second writer's calls are not counted, and its address must survive.
func TestTheSecondWriter(t *testing.T) {
	emu, o := azureWithWorkloads(t)
	ip, name := secondWriterAddress(1)
	o.recordDesired("api", time.Now(), addressSet(1))
	if code := writePool(t, emu, conflictPool, 1); code >= 300 {
		t.Fatal(code)
	}
	w := newWriter(t, emu)
	if err := w.addAddress(t.Context(), conflictPool, name, ip); err != nil {
		t.Fatal(err)
	}
	if err := w.addAddress(t.Context(), busyPool, name, netip.MustParseAddr("10.225.0.99")); err != nil {
		t.Fatal(err)
	}
	o.addForeign("api", ip, name)
	o.mustLook(t)
	pools := o.poolStates()
	if got := formatPoolStates(pools); got != "web 0/0         api 1/1         db 0/0 +1" || !pools[1].isInSync {
		t.Errorf("%q %+v", got, pools[1])
	}
	if got := fmt.Sprint(o.foreignNames("api"), o.foreignNames("db")); got != "[10.225.0.21] [10.225.0.10]" {
		t.Error(got)
	}
	if calls := o.currentTraffic(); calls.Others != 4 || calls.Reads != 0 || calls.Writes != 1 {
		t.Errorf("%+v", calls)
	}
	// A client writes an old read.
	if code := writePool(t, emu, conflictPool, 1); code >= 300 {
		t.Fatal(code)
	}
	o.mustLook(t)
	total, _, _ := o.newSummaries(time.Now())
	if wrong := (Summary{Total: total}).failureText(); !strings.Contains(wrong, "1 foreign address lost") || len(o.foreignNames("api")) != 0 {
		t.Errorf("%q", wrong)
	}
}

func TestTheSecondWriterOvertakenBeginsAnew(t *testing.T) {
	emu, o := azureWithWorkloads(t)
	if err := emu.SetFaults("rules: [{match: {kind: put, maxMatches: 2}, action: {bumpEtag: true}}]"); err != nil {
		t.Fatal(err)
	}
	ip, name := secondWriterAddress(1)
	w := newWriter(t, emu)
	if err := w.addAddress(t.Context(), conflictPool, name, ip); err != nil {
		t.Fatal(err)
	}
	o.addForeign("api", ip, name)
	if o.mustLook(t); len(o.foreignNames("api")) != 1 || o.currentTraffic().Others != 6 || o.currentTraffic().Conflicts != 0 {
		t.Errorf("%v %+v", o.foreignNames("api"), o.currentTraffic())
	}
	if err := w.addAddress(t.Context(), "none-such", name, ip); err == nil || !strings.Contains(err.Error(), "none-such") {
		t.Error(err)
	}
	if err := emu.SetFaults("rules: [{match: {kind: get}, action: {status: 403}}]"); err != nil {
		t.Fatal(err)
	}
	if err := w.addAddress(t.Context(), conflictPool, name, ip); err == nil || !strings.Contains(err.Error(), "403") {
		t.Error(err)
	}
}

func TestLagsOfTheStormAreApart(t *testing.T) {
	pool := newFollowed()
	pool.recordWanted(1, 1)
	pool.recordShown(2, 1)
	pool.inStorm = true
	pool.recordWanted(3, 1, 2)
	pool.inStorm = false
	pool.recordWanted(14, 1, 2, 3)
	if s := pool.newSummary(pool.at(15)); s.LagMax != 1000 || s.StormMax != 12_000 {
		t.Errorf("before the end: %+v", s)
	}
	pool.recordShown(16, 1, 2, 3)
	if s := pool.newSummary(pool.at(20)); s.LagMax != 2000 || s.LagP50 != 1000 || s.StormMax != 13_000 {
		t.Errorf("%+v", s)
	}
}

func TestEachRejectionIsReportedOnce(t *testing.T) {
	refused := map[string]poolCalls{"shop-web": {writes: 9, throttled: 5}, "shop-api": {writes: 3, conflicts: 2, preconditionFailed: 2}}
	for _, c := range []struct {
		reported map[string]int
		want     string
	}{
		{map[string]int{"web": 5, "api": 1}, ""},
		{map[string]int{"web": 2, "api": 1}, ""}, // three were pipelined writes
		{map[string]int{"web": 1, "api": 1}, "Service web has 1 Retrying event for 5 attempts at shop-web that Azure refused"},
		{map[string]int{"web": 5}, "Service api has 0 Retrying events for 1 attempt at shop-api that Azure refused"},
		{map[string]int{"web": 6, "api": 1, "db": 1}, "Service web has 6 Retrying events for 5 attempts at shop-web that Azure refused; " +
			"Service db has 1 Retrying event for 0 attempts at shop-db that Azure refused"},
	} {
		if got := eventMismatch(c.reported, refused); got != c.want {
			t.Errorf("%v: %q", c.reported, got)
		}
	}
}

func TestStormWithoutEffectFails(t *testing.T) {
	emu, o := stormAzure(t)
	storm := &stormState{stage: &stage{observer: o, print: newPrinter(io.Discard)}}
	storm.latestTable = table{header: []string{"NAME"}, rows: [][]string{{"web"}}}
	if err := storm.missedError(); err == nil || !strings.HasSuffix(err.Error(), "no write was refused of shop-web, shop-api, shop-db") {
		t.Error(err)
	}
	if err := emu.SetFaults("rules: [{match: {kind: put}, action: {status: 412}}]"); err != nil {
		t.Fatal(err)
	}
	for _, w := range allWorkloads {
		if code := writePool(t, emu, w.poolName(), 1); code != 412 {
			t.Fatal(code)
		}
	}
	o.mustLook(t)
	for _, c := range []struct {
		reported         map[string]int
		shown, gateShown bool
		want             string
	}{
		{map[string]int{"web": 1}, false, false, "no event LoadBalancerBackendPoolUpdateRetrying on Service api, db"},
		{map[string]int{"web": 1, "api": 1, "db": 2}, false, true, "not all Retrying"},
		{map[string]int{"web": 1, "api": 1, "db": 2}, true, false, "until when all are parked"},
	} {
		storm.eventsPrinted, storm.tablePrinted, storm.gatePrinted = c.reported, c.shown, c.gateShown
		err := storm.missedError()
		if unseen, ok := errors.AsType[*notVisibleError](err); !ok || len(unseen.details) != 3 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	storm.tablePrinted, storm.gatePrinted = true, true
	if err := storm.missedError(); err != nil {
		t.Error(err)
	}
}

func TestAFailedEventFailsTheStory(t *testing.T) {
	s := Summary{Pools: []PoolSummary{{Name: "web"}, {Name: "db"}}}
	s.addEvents(map[string]int{"web": 2, "db": 1}, map[string]int{"db": 1})
	if s.Total.Retrying != 3 || s.Pools[0].Retrying != 2 || s.Pools[1].Failed != 1 || s.failureText() != "1 Failed event" {
		t.Errorf("%+v %q", s, s.failureText())
	}
}
