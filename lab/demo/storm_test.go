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

// stormy returns an emulator with the storm's faults.
func stormy(t *testing.T) (*armemu.Emulator, *observer) {
	t.Helper()
	emu, o := azureOf(t)
	if err := o.azure.setFaults(t.Context(), stormFaults()); err != nil {
		t.Fatal(err)
	}
	return emu, o
}

func TestTheStormRefusesWhatItSays(t *testing.T) {
	emu, o := stormy(t)
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
	calls := o.counted()
	if got := fmt.Sprint(calls.pools[throttledPool], calls.pools[busyPool]); got != "{0 3 3 0 0} {0 3 1 1 0}" || calls.pools[busyPool].refused() != 2 {
		t.Errorf("%s", got)
	}
	// No caller waited: the second write of each was early, and all after the gate closed.
	if calls.Early != 4 || calls.Throttled != 4 || calls.Conflicts != 1 {
		t.Errorf("%+v", calls)
	}
	if wrong := (Summary{ARM: calls}).wrong(); wrong != "4 calls before the time that Azure had asked for" {
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
		var all traffic
		for _, made := range c.calls {
			all.add(made)
		}
		if all.Early != c.early {
			t.Errorf("%s: %d early", c.name, all.Early)
		}
	}
}

// writerOf returns a second writer for an emulator.
func writerOf(t *testing.T, emu *armemu.Emulator) *secondWriter {
	t.Helper()
	arm := httptest.NewServer(emu)
	t.Cleanup(arm.Close)
	return newSecondWriter(arm.URL)
}

// The second writer's calls are not counted, and its address must survive.
func TestTheSecondWriter(t *testing.T) {
	emu, o := azureOf(t)
	ip, name := secondAddress(1)
	o.want("api", time.Now(), set(1))
	if code := writePool(t, emu, contestedPool, 1); code >= 300 {
		t.Fatal(code)
	}
	w := writerOf(t, emu)
	if err := w.add(t.Context(), contestedPool, name, ip); err != nil {
		t.Fatal(err)
	}
	if err := w.add(t.Context(), busyPool, name, netip.MustParseAddr("10.225.0.99")); err != nil {
		t.Fatal(err)
	}
	o.foreign("api", ip, name)
	o.mustLook(t)
	pools := o.levels()
	if got := levelText(pools); got != "web 0/0         api 1/1         db 0/0 +1" || !pools[1].level {
		t.Errorf("%q %+v", got, pools[1])
	}
	if got := fmt.Sprint(o.foreignIn("api"), o.foreignIn("db")); got != "[10.225.0.21] [10.225.0.10]" {
		t.Error(got)
	}
	if calls := o.counted(); calls.Others != 4 || calls.Reads != 0 || calls.Writes != 1 {
		t.Errorf("%+v", calls)
	}
	// A client writes an old read.
	if code := writePool(t, emu, contestedPool, 1); code >= 300 {
		t.Fatal(code)
	}
	o.mustLook(t)
	total, _, _ := o.summarize(time.Now())
	if wrong := (Summary{Total: total}).wrong(); !strings.Contains(wrong, "1 address of somebody else's lost") || len(o.foreignIn("api")) != 0 {
		t.Errorf("%q", wrong)
	}
}

func TestTheSecondWriterOvertakenBeginsAnew(t *testing.T) {
	emu, o := azureOf(t)
	if err := emu.SetFaults("rules: [{match: {kind: put, maxMatches: 2}, action: {bumpEtag: true}}]"); err != nil {
		t.Fatal(err)
	}
	ip, name := secondAddress(1)
	w := writerOf(t, emu)
	if err := w.add(t.Context(), contestedPool, name, ip); err != nil {
		t.Fatal(err)
	}
	o.foreign("api", ip, name)
	if o.mustLook(t); len(o.foreignIn("api")) != 1 || o.counted().Others != 6 || o.counted().Conflicts != 0 {
		t.Errorf("%v %+v", o.foreignIn("api"), o.counted())
	}
	if err := w.add(t.Context(), "none-such", name, ip); err == nil || !strings.Contains(err.Error(), "none-such") {
		t.Error(err)
	}
	if err := emu.SetFaults("rules: [{match: {kind: get}, action: {status: 403}}]"); err != nil {
		t.Fatal(err)
	}
	if err := w.add(t.Context(), contestedPool, name, ip); err == nil || !strings.Contains(err.Error(), "403") {
		t.Error(err)
	}
}

func TestLagsOfTheStormAreApart(t *testing.T) {
	pool := follow()
	pool.wants(1, 1)
	pool.shows(2, 1)
	pool.storm = true
	pool.wants(3, 1, 2)
	pool.storm = false
	pool.wants(14, 1, 2, 3)
	if s := pool.summary(pool.at(15)); s.LagMax != 1000 || s.StormMax != 12_000 {
		t.Errorf("before the end: %+v", s)
	}
	pool.shows(16, 1, 2, 3)
	if s := pool.summary(pool.at(20)); s.LagMax != 2000 || s.LagP50 != 1000 || s.StormMax != 13_000 {
		t.Errorf("%+v", s)
	}
}

func TestEveryRefusalIsToldOnce(t *testing.T) {
	refused := map[string]poolCalls{"shop-web": {writes: 9, throttled: 5}, "shop-api": {writes: 3, conflicts: 2, overtaken: 2}}
	for _, c := range []struct {
		told map[string]int
		want string
	}{
		{map[string]int{"web": 5, "api": 1}, ""},
		{map[string]int{"web": 2, "api": 1}, ""}, // three were pipelined writes
		{map[string]int{"web": 1, "api": 1}, "Service web has 1 Retrying event for 5 attempts at shop-web that Azure refused"},
		{map[string]int{"web": 5}, "Service api has 0 Retrying events for 1 attempt at shop-api that Azure refused"},
		{map[string]int{"web": 6, "api": 1, "db": 1}, "Service web has 6 Retrying events for 5 attempts at shop-web that Azure refused; " +
			"Service db has 1 Retrying event for 0 attempts at shop-db that Azure refused"},
	} {
		if got := untold(c.told, refused); got != c.want {
			t.Errorf("%v: %q", c.told, got)
		}
	}
}

func TestAStormThatNobodySees(t *testing.T) {
	emu, o := stormy(t)
	storm := &tempest{stage: &stage{observer: o, print: newPrinter(io.Discard)}}
	storm.seen = table{header: []string{"NAME"}, rows: [][]string{{"web"}}}
	if err := storm.missed(); err == nil || !strings.HasSuffix(err.Error(), "no write was refused of shop-web, shop-api, shop-db") {
		t.Error(err)
	}
	if err := emu.SetFaults("rules: [{match: {kind: put}, action: {status: 412}}]"); err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		if code := writePool(t, emu, w.pool(), 1); code != 412 {
			t.Fatal(code)
		}
	}
	o.mustLook(t)
	for _, c := range []struct {
		told             map[string]int
		shown, gateShown bool
		want             string
	}{
		{map[string]int{"web": 1}, false, false, "no event LoadBalancerBackendPoolUpdateRetrying on Service api, db"},
		{map[string]int{"web": 1, "api": 1, "db": 2}, false, true, "not all Retrying"},
		{map[string]int{"web": 1, "api": 1, "db": 2}, true, false, "until when all are parked"},
	} {
		storm.told, storm.shown, storm.gateShown = c.told, c.shown, c.gateShown
		err := storm.missed()
		if unseen, ok := errors.AsType[*notShown](err); !ok || len(unseen.details) != 3 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	storm.shown, storm.gateShown = true, true
	if err := storm.missed(); err != nil {
		t.Error(err)
	}
}

func TestAFailedEventFailsTheStory(t *testing.T) {
	s := Summary{Pools: []PoolSummary{{Name: "web"}, {Name: "db"}}}
	s.count(map[string]int{"web": 2, "db": 1}, map[string]int{"db": 1})
	if s.Total.Retrying != 3 || s.Pools[0].Retrying != 2 || s.Pools[1].Failed != 1 || s.wrong() != "1 Failed event" {
		t.Errorf("%+v %q", s, s.wrong())
	}
}
