// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
)

// The PUT always reports success. web holds a and b (Up); the body has a (Down) and c in web and in
// a new pool.
func TestWholeWrites(t *testing.T) {
	for _, row := range []struct {
		addresses, states, pools behavior.Result
		web, fresh               string
	}{
		{behavior.Accepted, behavior.Accepted, behavior.Populated, "a=Down c=Up", "a=Down c=Up"},
		{behavior.Accepted, behavior.Ignored, behavior.Populated, "a=- c=Up", "a=Down c=Up"},
		{behavior.Ignored, behavior.Accepted, behavior.Empty, "a=Down b=Up", ""},
		{behavior.Ignored, behavior.Ignored, behavior.Empty, "a=- b=Up", ""},
	} {
		world := behavior.Behavior{UpdateAddresses: row.addresses, UpdateAdminStates: row.states, UpdateNewPools: row.pools}
		emu := newCloud(t, armemu.Options{Behavior: world})
		sendRequest(t, emu, http.MethodPut, poolID, poolWith(inVNet, poolEntry("a", ip(1), ""), poolEntry("b", ip(2), "Up")))
		before := sendRequest(t, emu, http.MethodGet, lbID, "").stringField("etag")
		named := func(name string) string {
			return strings.Replace(poolWith(inVNet, poolEntry("a", ip(1), "Down"), poolEntry("c", ip(3), "Up")), "{", `{"name":"`+name+`",`, 1)
		}
		a := sendRequest(t, emu, http.MethodPut, lbID, lbBody(named("WEB")+","+named("new")))
		if a.status != http.StatusOK || a.stringField("etag") == before {
			t.Fatalf("%v: %d %s", world, a.status, a.raw)
		}
		if web, fresh := poolAdminStates(t, emu, poolID), poolAdminStates(t, emu, lbID+"/backendAddressPools/new"); web != row.web || fresh != row.fresh {
			t.Errorf("%v: web holds %q, want %q; new holds %q, want %q", world, web, row.web, fresh, row.fresh)
		}
		if _, ok := emu.Get(lbID + "/backendAddressPools/spare"); ok {
			t.Errorf("%v: a pool that the body leaves out is still there", world)
		}
	}
}

func TestWholeWriteOfInterfacesStates(t *testing.T) {
	for answer, want := range map[behavior.Result]string{behavior.Accepted: "rg_nicip=Down", behavior.Ignored: "rg_nicip=-"} {
		emu := newCloud(t, armemu.Options{Behavior: behavior.Behavior{UpdateAddresses: behavior.Ignored, UpdateAdminStates: answer}})
		putResource(t, emu, nics+"nic", nic(poolID))
		body := strings.Replace(poolWith("", poolEntry("rg_nicip", `"networkInterfaceIPConfiguration":{"id":"`+nics+`nic/ipConfigurations/ip"}`, "Down")), "{", `{"name":"web",`, 1)
		if a := sendRequest(t, emu, http.MethodPut, lbID, lbBody(body)); a.status != http.StatusOK {
			t.Fatal(a.raw)
		}
		if got := poolAdminStates(t, emu, poolID); got != want {
			t.Errorf("admin states are %s: %s, want %s", answer, got, want)
		}
	}
}

// Only pools and load balancers ignore preconditions.
func TestIgnoredPreconditions(t *testing.T) {
	ignored := behavior.Behavior{PoolIfMatch: behavior.Ignored, IfNoneMatch: behavior.Ignored}
	for _, row := range []struct {
		world             behavior.Behavior
		id, header, value string
		body, method      string
		want              int
	}{
		{behavior.Behavior{}, poolID, "If-Match", `W/"stale"`, poolBody(), http.MethodPut, 412},
		{ignored, poolID, "If-Match", `W/"stale"`, poolBody(), http.MethodPut, 200},
		{ignored, lbID, "If-Match", `W/"stale"`, lbBody(`{"name":"web"}`), http.MethodPut, 412},
		{ignored, lbID + "/backendAddressPools/spare", "If-Match", `W/"stale"`, "", http.MethodDelete, 412},
		{behavior.Behavior{}, poolID, "If-None-Match", "*", poolBody(), http.MethodPut, 412},
		{ignored, poolID, "If-None-Match", "*", poolBody(), http.MethodPut, 200},
		{ignored, lbID, "If-None-Match", "*", lbBody(`{"name":"web"}`), http.MethodPut, 200},
		{ignored, vnetID, "If-None-Match", "*", `{"location":"eastus"}`, http.MethodPut, 412},
	} {
		emu := newCloud(t, armemu.Options{Behavior: row.world})
		if a := sendRequest(t, emu, row.method, row.id, row.body, row.header, row.value); a.status != row.want {
			t.Errorf("%v: %s %s with %s: got %d, want %d: %s", row.world, row.method, row.id, row.header, a.status, row.want, a.raw)
		}
	}
}

// SetBehavior retains unset answers; an invalid answer changes nothing.
func TestSetBehaviour(t *testing.T) {
	emu := armemu.New(armemu.Options{Behavior: behavior.Behavior{PoolIfMatch: behavior.Ignored}})
	if err := emu.SetBehavior(behavior.Behavior{Overlap: behavior.Lock}); err != nil {
		t.Fatal(err)
	}
	if err := emu.SetBehavior(behavior.Behavior{Overlap: "fight", IfNoneMatch: behavior.Ignored}); err == nil || !strings.Contains(err.Error(), `overlap: "fight"`) {
		t.Errorf("got %v", err)
	}
	if got := emu.Behavior(); got.PoolIfMatch != behavior.Ignored || got.Overlap != behavior.Lock || got.IfNoneMatch != behavior.Enforced {
		t.Errorf("got %+v", got)
	}
}

func TestParseBehaviour(t *testing.T) {
	for text, want := range map[string]string{
		`{"weir":"v1","behaviour":{"overlap":"conflict-409"},"calls":[1]}`: "overlap=conflict-409",
		`{"overlap":"conflict-409"}`:                                       "error: want a JSON object with the key",
		`{"behaviour":{"overlap":"fight"}}`:                                `error: want a JSON object with the key "behaviour": overlap: "fight" is invalid`,
		`[]`:                                                               "error: want a JSON object",
	} {
		b, err := armemu.ParseBehavior([]byte(text))
		got := b.String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestReferenceShowsTheQuestions(t *testing.T) {
	referencepage.ExpectSection(t, "../../docs/reference/emulator.md", "questions", armemu.QuestionsMarkdown())
}
